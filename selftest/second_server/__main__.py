"""Serve until stopped: python -m selftest.second_server --port 8080 --with floats,odd-times."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from selftest.second_server.app import App
from selftest.second_server.choices import CHOICES
from selftest.second_server.web import Server


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m selftest.second_server")
    parser.add_argument("--port", type=int, default=0, help="a free one by default")
    parser.add_argument("--token", default="x-keeper-of-the-keys-2026", help="the administrator's")
    parser.add_argument(
        "--style", choices="ab", default="a", help="with b the approval configuration can be changed, as before 16.0"
    )
    parser.add_argument("--cap", type=int, default=4, help="most entries of a page")
    parser.add_argument("--completions", type=int, default=60, help="how many a user has in a minute")
    parser.add_argument("--pace", type=float, default=1, help="how much faster to do what is done later")
    parser.add_argument("--with", dest="choices", default="", help=f"with commas: {', '.join(CHOICES)}")
    parser.add_argument("--log", type=Path, help="a file for what was called")
    given = parser.parse_args()
    choices = filter(None, given.choices.split(","))

    def made(base_url: str) -> App:
        return App(base_url, given.token, given.style, given.cap, choices, given.completions, given.pace)

    server = Server(given.port, made, given.log)
    sys.stdout.write(f"{server.base_url}\n{given.token}\n")
    sys.stdout.flush()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.serve_forever()


if __name__ == "__main__":
    main()
