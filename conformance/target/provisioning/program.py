"""Lets an operator's program create what is needed: it reads the request as JSON, and writes the profile as JSON."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from conformance.contract.yaml_files import first_problem
from conformance.errors import UsageError
from conformance.http.bodies import with_values
from conformance.target.fit_secrets import is_name_of_secret, may_be_key
from conformance.target.names import ACTORS, FEATURES, FIXTURES, PLURALS
from conformance.target.provisioning.blueprint import MARK, Blueprint, Names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.target.provisioning.files import Secrets

Data = dict[str, Any]

_SHOWN_OF_ERRORS = 5  # lines


def needed(base_url: str, worlds: int, prefix: str, known: Data | None) -> Data:
    """Return the request for a program: see examples/provision/needed.schema.json."""
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
    """Run a program with the request on its standard input, and return what it writes to its standard output.

    Raise UsageError when it cannot be run, fails, or does not write the data of a profile.
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
    if not data["actors"]:
        raise UsageError(f"What {name} wrote names no actors: give at least one, with a token.")
    return data


def without_secrets(data: Data, prefix: str, secrets: Secrets) -> Data:
    """Return the data of a profile with variables instead of secrets; `secrets` keeps these.

    Secrets are: texts below keys that name secrets, at any depth; headers that may be keys; and the password in an
    address.
    """
    worlds = [data, *data.get("worlds", ())]
    hidden = [
        {part: hiding.of(world.get(part, {}), ()) for part in ("actors", "fixtures")}
        for number, world in enumerate(worlds, start=1)
        for hiding in [_Hiding(Names(prefix, number), secrets)]
    ]
    around = _Hiding(Names(prefix, 1), secrets)
    return {
        **data,
        **{key: around.address(data[key], key) for key in ("base_url", "proxy") if isinstance(data.get(key), str)},
        **({"headers": around.headers(data["headers"])} if "headers" in data else {}),
        **(around.of({key: data[key] for key in ("client_certificate",) if key in data}, ())),
        **hidden[0],
        **({"worlds": hidden[1:]} if len(hidden) > 1 else {}),
    }


def without_password(data: Data, prefix: str, secrets: Secrets) -> Data:
    """Return the data of a profile with a variable in the place of the password of its address, wherever that is."""
    password = urlsplit(data["base_url"]).password
    if not password:
        return data
    hidden = _Hiding(Names(prefix, 1), secrets).address(data["base_url"], "base_url")
    before, after = (urlsplit(url).netloc for url in (data["base_url"], hidden))
    replaced: Data = with_values(data, lambda one: one.replace(before, after) if isinstance(one, str) else one)
    return replaced


@dataclass(frozen=True)
class _Hiding:
    """Puts variables in the place of the secrets of one world."""

    names: Names
    secrets: Secrets

    def of(self, value: Any, place: tuple[str, ...]) -> Any:
        """Return a value without the secrets in it; `place` are the keys that lead to it."""
        if isinstance(value, list):
            return [self.of(entry, (*place, str(number))) for number, entry in enumerate(value, start=1)]
        if isinstance(value, dict):
            return {key: self.of(entry, (*place, str(key))) for key, entry in value.items()}
        is_secret = isinstance(value, str) and any(map(is_name_of_secret, place[1:]))
        return self._variable(value, place) if is_secret else value

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return headers without those that may be keys."""
        return {
            name: self._variable(value, ("headers", name)) if may_be_key(value) else value
            for name, value in headers.items()
        }

    def address(self, url: str, name: str) -> str:
        """Return an address without the password in it."""
        password = urlsplit(url).password
        return url.replace(f":{password}@", f":{self._variable(password, (name, 'password'))}@", 1) if password else url

    def _variable(self, value: str, place: tuple[str, ...]) -> str:
        if not value or value.startswith("${"):
            return value
        variable = self.names.secret(place[0], "-".join(place[1:]))
        self.secrets.keep(variable, value)
        return f"${{{variable}}}"
