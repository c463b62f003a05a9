"""Writes files that are needed later: each has its old text or its new one, also if the disk is full."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path

#: The folder may not be written to, or the file is mounted by itself, as in a container: it cannot be replaced there.
_IRREPLACEABLE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY})


def write_whole(file: Path, text: str) -> None:
    """Write a text to a file, and keep the rights of one that exists; raise OSError and leave the old text there."""
    place = file.resolve()  # a link stays one
    if place.exists():
        try:
            _replace(place, text)
        except OSError as error:
            if error.errno not in _IRREPLACEABLE:
                raise
        else:
            return
    place.write_text(text, encoding="utf-8")


def _replace(place: Path, text: str) -> None:
    """Write a text beside a file, and put it in the place of the file when all of it is there."""
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            os.fchmod(stream.fileno(), place.stat().st_mode & 0o777)
        Path(name).replace(place)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
