"""A real browser, if one is installed: what a page prints, and what its script returns."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_PAGE = re.compile(rb"/Type\s*/Page\b")
_ANSWER = re.compile(r'<pre id="answer">(.*?)</pre>', re.DOTALL)


def _run(folder: Path, *arguments: str) -> str:
    command = [str(CHROMIUM), *_OPTIONS, f"--user-data-dir={folder / 'browser'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def printed_pages(page: Path) -> int:
    """Print a page on A4 and count the sheets."""
    file = page.with_suffix(".pdf")
    _run(page.parent, "--no-pdf-header-footer", f"--print-to-pdf={file}", page.as_uri())
    return len(_PAGE.findall(file.read_bytes()))


def evaluated(page: Path, script: str, *, libraries: str = "", width: int = 1400) -> Any:
    """Load a copy of a page with a script at its end, and return what the script's promise gives."""
    asked = (
        f"<script>{libraries}</script><script>addEventListener('load', async () => {{"
        f"const answer = await (async () => {{ {script} }})();"
        "const place = document.createElement('pre'); place.id = 'answer';"
        "place.textContent = JSON.stringify(answer); document.body.append(place); });</script></body>"
    )
    copy = page.with_name(f"asked-{page.name}")
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", asked), encoding="utf-8")
    dom = _run(page.parent, f"--window-size={width},900", "--virtual-time-budget=20000", "--dump-dom", copy.as_uri())
    found = _ANSWER.search(dom)
    assert found is not None, dom[-500:]
    return json.loads(html.unescape(found[1]))
