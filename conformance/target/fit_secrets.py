"""Finds the secrets in a profile, and rejects secrets that no header can carry or no report could mask."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.contract import Contract
from conformance.errors import UsageError
from conformance.http.redaction import Redaction
from conformance.target.names import ACTORS, FIXTURES

#: The characters that a token may have.
_CARRIED = re.compile(r"[!-~]+")
#: A reference to an environment variable.
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: The least length of a header value that may be a key; shorter values are no keys, and occur in many texts.
_SHORTEST_KEY = 8
_NAMES = re.compile(r"token|password|secret|webhook|api_key", re.IGNORECASE)


def is_name_of_secret(key: str) -> bool:
    """Tell whether a key of a profile names a secret."""
    return _NAMES.search(key) is not None


def may_be_key(value: str) -> bool:
    """Tell whether the value of a header may be a key."""
    return len(value) >= _SHORTEST_KEY


def secrets_below(value: Any, place: str, *, is_secret: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the texts below keys that name secrets, alone or in lists, at any depth, each with its place."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from secrets_below(entry, f"{place}.{key}", is_secret=is_secret or is_name_of_secret(str(key)))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from secrets_below(entry, f"{place}.{number}", is_secret=is_secret)
    elif is_secret and isinstance(value, str):
        yield place, value


def stated_secrets(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the secrets of a profile's data as it stands in its file, before the file is checked."""
    for key, value in data.items():
        if key == "fixtures" and isinstance(value, Mapping):  # whose names say what they are of: `token_integration`
            yield from (found for name, entries in value.items() for found in secrets_below(entries, str(name)))
        elif key == "worlds" and isinstance(value, list):
            yield from (found for world in value if isinstance(world, Mapping) for found in stated_secrets(world))
        elif key != "secrets":
            yield from secrets_below({key: value}, "profile")


def shell_variables(secrets: Mapping[str, str]) -> dict[str, str]:
    """Return for each secret, given by its place in the profile, the shell variable that replaces it in commands.

    The variable has the name of the secret's key, such as `$WEBHOOK`; the next secrets with the same key have a number,
    such as `$WEBHOOK_2`. The token of an actor is `$TOKEN_MAINTAINER` in every world.
    """
    found: dict[str, str] = {}
    for place, secret in secrets.items():
        name, number = _variable(place), 1
        is_taken = {variable for other, variable in found.items() if other != secret}
        while (variable := f"{name}_{number}" if number > 1 else name) in is_taken and not name.startswith("$TOKEN_"):
            number += 1
        found.setdefault(secret, variable)
    return found


def _variable(place: str) -> str:
    """Return the variable for what a profile has at a place such as `0.integration.1.settings.webhook`."""
    keys = [key for key in place.split(".") if not key.isdecimal()]
    if place.startswith("headers."):
        keys = ["header", place.partition(".")[2]]
    elif len(keys) == 1:
        keys.append("password")
    elif keys[0] in ACTORS:
        keys.reverse()
    else:
        keys = keys[-1:]
    return "$" + re.sub(r"[^A-Z0-9]", "_", "_".join(keys).upper())


def require_carried(tokens: Mapping[str, str], source: str) -> None:
    """Raise UsageError for a token that no header can carry, such as one that ends with the line break of a file."""
    for place, token in tokens.items():
        if token.startswith("${") and not VARIABLE.fullmatch(token):  # a program may write a variable
            raise UsageError(
                f"{source} has at {place} what begins like a variable, ${{...}}, and is none: the name of one has "
                "letters, digits and underscores only. Write the token itself in a variable of the environment."
            )
        if not _CARRIED.fullmatch(token):
            raise UsageError(
                f"{source} gives a token with a blank, a line break or another sign that no header takes, at {place}. "
                "Was it read from a file together with the end of its line?"
            )


def require_no_words(secrets: Mapping[str, str], source: str) -> None:
    """Raise UsageError for a secret that reports cannot mask because it is part of words that all reports contain."""
    needed = "\n".join((*Contract.load().requirements, *ACTORS, *FIXTURES))
    if Redaction(tuple(secrets.values())).is_in(needed):
        places = [place for place, text in secrets.items() if Redaction([text]).is_in(needed)]
        raise UsageError(
            f"{source} gives as a secret what is also part of a name in every report: {', '.join(places)}. It "
            "could not be kept out of them. Use another one, such as twenty random letters; a password may be left out."
        )
