"""What the commands that write figures of the proof share: their options, the file, and what determines a sample."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from conformance import __version__
from conformance.contract import Contract

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_Any = TypeVar("_Any")

FILE = click.argument("file", type=click.Path(path_type=Path))
WORKERS = click.option("--workers", default=2, show_default=True, help="Processes.")
SECONDS = click.option("--seconds", type=float, help="A sample: begin no run after so many seconds.")
SAMPLE = click.option("--sample", help="What decides the sample; the commit that is checked out by default.")


def write_figures(file: Path, figures: Mapping[str, Any]) -> None:
    """Write figures to a file, with the version of the suite and the digest of the contract that they hold for."""
    data = {"suite": __version__, "contract": Contract.load().digest, **figures}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def sampled(everything: Iterable[_Any], sample: str | None) -> list[_Any]:
    """Return the items in a random order that is determined by a text, or by the commit if there is none."""
    mixed = list(everything)
    random.Random(sample or _commit()).shuffle(mixed)  # noqa: S311 - a sample is no secret
    return mixed


def _commit() -> str:
    """Return the id of the commit that is checked out; outside a checkout, the version of the suite."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607 - git
    return asked.stdout.strip() or __version__
