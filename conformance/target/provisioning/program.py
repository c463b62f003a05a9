"""Lets a program of the operator's make what is needed: JSON says what that is, JSON comes back with the profile."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import first_problem
from conformance.errors import UsageError
from conformance.target.names import ACTORS, FEATURES, FIXTURES, PLURALS
from conformance.target.provisioning.blueprint import MARK, Blueprint, Names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.target.provisioning.files import Secrets

Data = dict[str, Any]

_SECRET_KEYS = ("token", "password")
_SHOWN_OF_ERRORS = 5  # lines


def needed(base_url: str, worlds: int, prefix: str, known: Data | None) -> Data:
    """Return what a program is told: see examples/provision/needed.schema.json."""
    plan = asdict(Blueprint.load())
    return {
        "form": 1,
        "base_url": base_url,
        "worlds": worlds,
        "prefix": prefix,
        "mark": MARK,
        "actors": dict(ACTORS),
        "fixtures": dict(FIXTURES),
        "lists": dict(PLURALS),
        "features": dict(FEATURES),
        "blueprint": {key: list(value) if isinstance(value, tuple) else value for key, value in plan.items()},
        "known": known,
    }


def provided_by(command: Sequence[str], request: Data) -> Data:
    """
    Run a program with what is needed on its standard input, and return what it writes to its standard output.

    Raise UsageError when it cannot be run, fails, or does not answer with the data of a profile.
    """
    name = command[0]
    try:
        done = subprocess.run(  # noqa: S603 - the operator names the program
            command, input=json.dumps(request), capture_output=True, encoding="utf-8", errors="replace", check=False
        )
    except OSError as error:
        hint = f" Is it executable (chmod +x {name})?" if isinstance(error, PermissionError) else ""
        raise UsageError(f"Cannot run {name}: {error.strerror or error}.{hint}") from error
    if done.returncode:
        said = "\n".join(done.stderr.strip().splitlines()[-_SHOWN_OF_ERRORS:])
        raise UsageError(f"{name} ended with {done.returncode}, so there is no profile. It said:\n{said or 'nothing'}")
    try:
        answer = json.loads(done.stdout)
    except ValueError as error:
        raise UsageError(f"{name} must write JSON to its standard output, and nothing else: {error}.") from error
    if not isinstance(answer, dict):
        raise UsageError(f"{name} must write a JSON object: the keys of a profile, such as actors and fixtures.")
    data = {"disposable": True, **answer, "base_url": answer.get("base_url", request["base_url"])}
    problem = first_problem(data, "target.schema.json")
    if problem:
        raise UsageError(f"What {name} wrote is not valid {problem}.")
    return data


def without_secrets(data: Data, prefix: str, secrets: Secrets) -> Data:
    """Return the data of a profile with variables in the place of tokens and passwords, which `secrets` keeps."""
    worlds = [data, *data.get("worlds", ())]
    hidden = [_hidden(world, Names(prefix, number), secrets) for number, world in enumerate(worlds, start=1)]
    return {**data, **hidden[0], **({"worlds": hidden[1:]} if len(hidden) > 1 else {})}


def _hidden(world: Data, names: Names, secrets: Secrets) -> Data:
    found = {}
    for part in ("actors", "fixtures"):
        found[part] = {name: _entry(name, entry, names, secrets) for name, entry in world.get(part, {}).items()}
    return found


def _entry(name: str, entry: Any, names: Names, secrets: Secrets) -> Any:
    if not isinstance(entry, dict):
        return entry
    hidden = dict(entry)
    for key in _SECRET_KEYS:
        value = entry.get(key)
        if isinstance(value, str) and not value.startswith("${"):
            variable = names.secret(name, key)
            secrets.keep(variable, value)
            hidden[key] = f"${{{variable}}}"
    return hidden
