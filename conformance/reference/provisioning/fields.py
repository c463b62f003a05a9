"""What the parameters of provisioning calls have in common: names, paths, levels and days."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

from conformance.reference.errors import ApiError, InvalidError, RejectedError
from conformance.reference.identity import Role, Visibility

if TYPE_CHECKING:
    from conformance.reference.parameters import Parameters

LONGEST = 255
_LONGEST_TEXT = 100_000
_PATH = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
_BRANCH = re.compile(r"[^\s\x00-\x20~^:?*\[\\\x7f]+")


class DuplicateError(ApiError):
    """What was to be made exists already."""

    choice = "duplicate_code"


def text(parameters: Parameters, name: str, longest: int = LONGEST) -> str:
    """Read a required text that is neither blank nor longer than allowed. Raise InvalidError otherwise."""
    value = parameters.string(name)
    if not value.strip() or len(value) > longest:
        raise InvalidError(f"{name} is invalid", parameter=name)
    return value


def prose(parameters: Parameters, name: str) -> str | None:
    """Read an optional text of some length. Raise InvalidError when it is longer than a description may be."""
    value = parameters.optional_string(name)
    if value is not None and len(value) > _LONGEST_TEXT:
        raise InvalidError(f"{name} is too long", parameter=name)
    return value


def path(parameters: Parameters, name: str) -> str:
    """Read a required path of a user, group or project: letters, digits, "_", "-" and "." inside."""
    value = text(parameters, name)
    if not _PATH.fullmatch(value):
        raise RejectedError("can contain only letters, digits, '_', '-' and '.'", parameter=name)
    return value


def branch_name(parameters: Parameters, name: str) -> str:
    """Read the required name of a branch that may come to exist."""
    value = text(parameters, name)
    if not _BRANCH.fullmatch(value) or value.startswith(("/", "-")) or value.endswith(("/", ".", ".lock")):
        raise RejectedError("is not a valid branch name", parameter=name)
    return value


def file_path(value: str) -> str:
    """Check the path of a file inside a repository, and return it."""
    parts = value.split("/")
    if len(value) > LONGEST or any(part in {"", ".", ".."} for part in parts) or not value.isprintable():
        raise InvalidError("file_path should be a valid file path", parameter="file_path")
    return value


def visibility(parameters: Parameters) -> Visibility:
    """Read the optional `visibility`; private when it is missing."""
    value = parameters.optional_choice("visibility", [level.value for level in Visibility])
    return Visibility(value) if value else Visibility.PRIVATE


def role(value: int) -> Role:
    """Turn an access level into a role of a member. Raise InvalidError for a number that is none."""
    if value not in set(Role) - {Role.NONE}:
        raise InvalidError("access_level does not have a valid value", parameter="access_level")
    return Role(value)


def day(parameters: Parameters, name: str) -> date | None:
    """Read an optional day as YYYY-MM-DD."""
    value = parameters.optional_string(name)
    if not value:
        return None
    try:
        return date.fromisoformat(value)
    except ValueError as error:
        raise InvalidError(f"{name} is invalid", parameter=name) from error
