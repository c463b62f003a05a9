"""The files of exports, byte by byte: gzipped lines of JSON, whatever the file name is."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from typing import TYPE_CHECKING
from urllib.parse import unquote

from conformance.suite.expectations.words import given, must

if TYPE_CHECKING:
    from conformance.suite.arrange.exports import Export
    from conformance.suite.expectations import Answer

_GZIP = b"\x1f\x8b"


def file_names(file: Answer) -> list[str]:
    """Return the names that an answer gives its file: the plain name, the encoded one that clients prefer, or both."""
    disposition = file.exchange.headers.get("content-disposition", "")
    plain = re.search(r'filename="?([^";]+)', disposition, re.IGNORECASE)
    extended = re.search(r"filename\*=[^']*'[^']*'([^;]+)", disposition, re.IGNORECASE)
    return [*([plain[1].strip()] if plain else []), *([unquote(extended[1].strip())] if extended else [])]


def lines_of(file: Answer) -> list[bytes]:
    """Return the lines of a file that are not empty, like `unpacked_lines`; a file of zero bytes has none."""
    return unpacked_lines(file) if file.exchange.body or file.exchange.problem else []


def unpacked_lines(file: Answer) -> list[bytes]:
    """Expect a file that is packed with gzip, and return its lines that are not empty."""
    packed = file.exchange.body
    given(file.exchange.problem is None, f"the file could not be read whole: {file.exchange.problem}")
    must(
        packed[:2] == _GZIP,
        "a file that begins with 1f 8b, as gzip does",
        packed[:2].hex(" ") or "no byte",
        file.exchange,
    )
    content, problem = _unpacked(packed)
    if content[:2] == _GZIP and "gzip" in file.exchange.headers.get("content-encoding", "").lower():
        # Packed a second time for the transfer.
        content, problem = _unpacked(content)
    must(problem is None, "a whole gzip file", str(problem), file.exchange)
    return [line for line in content.splitlines() if line.strip()]


def _unpacked(packed: bytes) -> tuple[bytes, str | None]:
    try:
        return gzip.decompress(packed), None
    except (OSError, EOFError, zlib.error) as error:
        return b"", str(error)


def must_be_json(lines: list[bytes], file: Answer) -> None:
    """Expect one JSON value on every line; a file with one array of objects is a list and does not count as lines."""
    for number, line in enumerate(lines, start=1):
        shown = line[:100].decode("utf-8", "replace")
        try:
            value = json.loads(line)
        except ValueError:
            must(False, f"JSON on line {number}", shown, file.exchange)
        is_list = len(lines) == 1 and isinstance(value, list) and all(isinstance(entry, dict) for entry in value)
        must(not is_list, f"one object on line {number}", f"an array: {shown}", file.exchange)
    must(True, "JSON on every line", "")


def must_hold_once(file: Answer, text: str) -> None:
    """Expect an object in a file, found by a text that only it has; no object may occur twice with equal content."""
    found = lines_with(text, lines_of(file))
    must(bool(found), f"a line with {text}", "no such line", file.exchange)
    must(len(set(found)) == len(found), f"the object {text} once", "the same line twice", file.exchange)


def lines_with(text: str, lines: list[bytes]) -> list[bytes]:
    """Return those lines of JSON that contain a text, in any of the ways in which JSON can write its characters."""
    written = json.dumps(text)[1:-1]
    return [line for line in lines if text.encode() in line or written in as_ascii(line)]


def missing_in(file: Answer, texts: list[str]) -> list[str]:
    """Return the texts that no line of a file holds."""
    lines = lines_of(file)
    return [text for text in texts if not lines_with(text, lines)]


def given_its_objects(export: Export, texts: list[str]) -> None:
    """Export the relation in one piece, if necessary, as a step of a story; again if the file lacks these texts."""
    missing = missing_in(export.in_one_piece(), texts)
    if missing:
        # The file may be that of a group that was exported later.
        export.ended_anew(*export.begun_anew(batched=False), batched=False)
        missing = missing_in(export.in_one_piece(), texts)
    given(not missing, "the file lacks the objects of its group")


def as_ascii(line: bytes) -> str:
    """Return a line of JSON with all non-ASCII characters escaped; nothing if it is no JSON."""
    try:
        return json.dumps(json.loads(line))
    except ValueError:
        return ""
