"""Files that provisioning keeps beside the profile: the secrets, and the list of what it made."""

from __future__ import annotations

import json
import os
import secrets
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from conformance.errors import UsageError, or_usage_error
from conformance.http.redaction import keep_in
from conformance.target.profile_file import secrets_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


def secrets_beside(profile: Path) -> Path:
    """Return the secrets file of a profile: `target.secrets.env` for `target.yaml`; no other profile has the same."""
    name = profile.stem if profile.suffix.lower() in {".yaml", ".yml"} else profile.name
    return profile.with_name(f"{name}.secrets.env")


def new_password(_: str = "") -> str:
    """Return a random password with letters of both cases, a digit and a plus, which a form would read as a blank."""
    return f"{secrets.token_urlsafe(18)}+aA1"


class Secrets:
    """Tokens and passwords by name, in memory."""

    def __init__(self, invent: Callable[[str], str] = new_password) -> None:
        """Start empty; `invent` generates the password of a name."""
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()
        self._invent = invent

    @property
    def known(self) -> Mapping[str, str]:
        """All known secrets, by name."""
        return dict(self._known)

    def get(self, name: str) -> str | None:
        """Return the secret of a name; None if it is not known."""
        return self._known.get(name)

    def password(self, name: str) -> str:
        """Return the password of a name; generate it when none is known."""
        return self.get(name) or self.keep(name, self._invent(name))

    def keep(self, name: str, value: str) -> str:
        """Remember a secret, mask it in all reports and on the terminal, and return it."""
        keep_in([value])
        with self._lock:
            if self._known.get(name) != value:
                self._known[name] = value
                self._write(name, value)
        return value

    def _write(self, name: str, value: str) -> None:
        """Write a secret to the file, if there is one."""


class SecretsFile(Secrets):
    """Secrets in a private file; each is written as soon as it is known, because a target shows a token only once."""

    def __init__(self, file: Path) -> None:
        """Read the secrets of an earlier call; raise UsageError when the file cannot be used."""
        super().__init__()
        self.file = file
        self._is_new = not file.exists()
        try:
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            os.fchmod(self._descriptor, 0o600)
            self._known.update(secrets_in(file))
            if file.stat().st_size and not file.read_bytes().endswith(b"\n"):  # somebody wrote to it by hand
                os.write(self._descriptor, b"\n")
            keep_in(self._known.values())
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            told = f"Cannot keep the secrets in {file}: {why}. Name a file in a folder that is there (--out)."
            raise UsageError(told) from error

    def _write(self, name: str, value: str) -> None:
        """Raise UsageError when there is no room; half a secret is not kept, because it would be taken for a whole."""
        line, length = f"{name}={value}\n".encode(), os.fstat(self._descriptor).st_size
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, length)
            raise UsageError(f"Cannot keep a secret in {self.file}: {error.strerror or error}.") from error

    def close(self) -> None:
        """Close the file; delete it if it is new and empty."""
        os.close(self._descriptor)
        _remove_if_empty(self.file, is_new=self._is_new)


class Made:
    """The list of what was made, in memory."""

    def __init__(self) -> None:
        """Start with an empty list."""
        self.entries: list[Mapping[str, str]] = []
        self._lock = threading.Lock()

    def note(self, method: str, path: str, what: str) -> None:
        """Record a call that creates something, before it is sent."""
        entry = {"at": datetime.now(UTC).isoformat(), "method": method, "path": path, "what": what}
        with self._lock:
            self.entries.append(entry)
            self._write(entry)

    def _write(self, entry: Mapping[str, str]) -> None:
        """Write an entry to the file, if there is one."""


class MadeFile(Made):
    """The list of what was made in a file of JSON lines; each line is on the disk before its call is sent."""

    def __init__(self, file: Path, base_url: str) -> None:
        """Append to a file; raise UsageError when it cannot be used."""
        super().__init__()
        self._base_url = base_url
        self.file, self._is_new = file, not file.exists()
        with or_usage_error(f"Cannot write the list of what is made to {file}"):
            self._stream = file.open("a", encoding="utf-8")

    def _write(self, entry: Mapping[str, str]) -> None:
        with or_usage_error(f"Cannot write the list of what is made to {self.file}"):
            self._stream.write(json.dumps({**entry, "target": self._base_url}) + "\n")
            self._stream.flush()
            os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the file; delete it if it is new and empty."""
        with suppress(OSError):  # of a full disk, which was told before
            self._stream.close()
        _remove_if_empty(self.file, is_new=self._is_new)


def _remove_if_empty(file: Path, *, is_new: bool) -> None:
    if is_new and file.is_file() and not file.stat().st_size:
        file.unlink()
