"""Profiles that a program of the operator writes, and where the secrets in a profile go."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import jsonschema
import pytest
import yaml

from conformance.target.names import FIXTURES
from conformance.target.profile_file import load_profile, profile_from
from conformance.target.provisioning.files import SecretsFile
from conformance.target.provisioning.program import needed, without_secrets
from selftest.conftest import serving
from selftest.target.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable

    from selftest.conftest import Outcome

EXAMPLE = Path(__file__).parents[2] / "examples" / "provision"

#: A secret in each place where a profile may have one.
EVERYWHERE = {
    "base_url": "https://gate:KEPT-of-the-address@service.test",
    "proxy": "http://me:KEPT%2Fof-the-proxy@proxy.test:3128",
    "headers": {"X-Gateway-Key": "KEPT-of-a-gateway", "X-Short": "yes"},
    "client_certificate": {"file": "client.pem", "password": "KEPT-of-the-certificate"},
    "actors": {"owner": {"id": 7, "token": "KEPT-of-the-owner"}, "guest": {"token": "${GUEST_TOKEN}"}},
    "fixtures": {
        "job_token": {"token": "KEPT-of-a-job"},
        "integrations": [
            {"slug": "chat", "settings": {"webhook": "https://hooks.test/KEPT", "active": True}},
            {
                "slug": "bot",
                "settings": {
                    "inner": [{"api_key": "KEPT-deep"}, {"api_key": {"value": "KEPT-below"}}],
                    "tokens": ["KEPT-in-a-list"],
                },
                "required": ["token"],
            },
        ],
    },
    "worlds": [{"actors": {"owner": {"token": "KEPT-of-another"}}, "fixtures": {"project": {"id": 1}}}],
}


def test_no_secret_stays_in_a_profile_in_any_possible_place(tmp_path: Path) -> None:
    file = tmp_path / "mine.secrets.env"
    secrets = SecretsFile(file)
    hidden = without_secrets(EVERYWHERE, "conformance", secrets)
    secrets.close()
    text = yaml.safe_dump(hidden)
    assert "KEPT" not in text
    assert hidden["actors"]["guest"] == {"token": "${GUEST_TOKEN}"}
    assert hidden["headers"]["X-Short"] == "yes"
    assert hidden["fixtures"]["integrations"][1]["required"] == ["token"]
    kept = dict(line.split("=", 1) for line in file.read_text(encoding="utf-8").splitlines())
    for name, value in kept.items():
        assert f"${{{name}}}" in text
        text = text.replace(f"${{{name}}}", value)
    assert yaml.safe_load(text) == EVERYWHERE
    shown = str(profile_from({**EVERYWHERE, "client_certificate": None}, "mine.yaml").redacted())
    assert not [value for value in kept.values() if value in shown]


def test_an_edited_file_of_secrets_is_continued_on_a_new_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.secrets.env"
    file.write_text("BY_HAND=one", encoding="utf-8")
    secrets = SecretsFile(file)
    secrets.keep("MADE", "another")
    secrets.close()
    assert file.read_text(encoding="utf-8") == "BY_HAND=one\nMADE=another\n"


def test_a_profile_that_a_program_wrote_is_read_as_written(conformance: Callable[..., Outcome], tmp_path: Path) -> None:
    with serving() as (_, base_url):
        told = {"base_url": base_url, "headers": {"X-Gateway-Key": "a-key-of-the-gateway"}}
        told |= {"actors": {"owner": {"token": "the-token-of-an-owner"}}}
        told |= {"fixtures": {"integrations": [{"slug": "chat", "settings": {"token": "a-token-of-the-chat"}}]}}
        program = shlex.join([sys.executable, "-c", f"print({json.dumps(told)!r})"])
        made = conformance("provision", "--base-url", base_url, "--with", program)
        assert made.code == 0, made.text
    text = (tmp_path / "target.yaml").read_text(encoding="utf-8")
    profile = load_profile(tmp_path / "target.yaml")
    assert profile.headers["X-Gateway-Key"] == "a-key-of-the-gateway"
    assert [secret for secret in profile.secrets() if secret in text] == []
    assert len(profile.secrets()) == 3


PASSWORD = "KEPT%2Fof-an-address"


def with_password(base_url: str) -> str:
    return base_url.replace("//", f"//gate:{PASSWORD}@")


def files_with(text: str, folder: Path) -> list[str]:
    return [str(file) for file in folder.rglob("*") if file.is_file() and text in file.read_text("utf-8", "replace")]


def test_the_password_in_a_url_is_in_no_file_except_that_of_the_secrets(
    conformance: Callable[..., Outcome], tmp_path: Path
) -> None:
    with serving() as (service, base_url):
        (tmp_path / "admin.token").write_text(service.administrator.token)
        address = with_password(base_url)
        made = conformance("provision", "--base-url", address, "--admin-token-file", "admin.token", "--out", "a.yaml")
        assert made.code == 0, made.text
        assert load_profile(tmp_path / "a.yaml").base_url == address
        few = ("--requirement", "job-token-scope.settings.read", "-q")
        ran = conformance("run", "--target", "a.yaml", "--base-url", f"{address}/", *few, "--out", "out")
        assert ran.code == 0, ran.text
        assert "job-token-scope.settings.read" in (tmp_path / "out" / "report.json").read_text(encoding="utf-8")
    for secret in (PASSWORD, unquote(PASSWORD)):
        assert files_with(secret, tmp_path) in ([], [str(tmp_path / "a.secrets.env")])
        assert secret not in made.text + ran.text


def test_a_program_creates_fixtures_and_its_secrets_are_kept_separate(
    conformance: Callable[..., Outcome], tmp_path: Path
) -> None:
    program = f"{sys.executable} {EXAMPLE / 'provision.py'}"
    with serving() as (service, base_url):
        environment = {**os.environ, "ADMIN_TOKEN": service.administrator.token}
        order = ("provision", "--base-url", base_url, "--with", program)
        for _ in "ab":
            made = conformance(*order, environment=environment)
            assert made.code == 0, made.text
        profile = load_profile(tmp_path / "target.yaml")
        assert profile.actors["owner"].token not in (tmp_path / "target.yaml").read_text(encoding="utf-8")
        checked = conformance("target", "--check", "target.yaml")
        assert checked.code == 0, checked.text


def test_input_and_output_of_programs_match_the_schemas() -> None:
    told, written = (json.loads((EXAMPLE / f"{name}.schema.json").read_text()) for name in ("needed", "provided"))
    jsonschema.validate(needed("http://127.0.0.1:1", 2, "conformance", None), told)
    bench = Bench()
    jsonschema.validate(bench.profile(bench.provision()), written)
    assert needed("http://127.0.0.1:1", 1, "conformance", None)["fixtures"] == dict(FIXTURES)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("no-such-program", "Cannot run no-such-program"),
        ("import sys; sys.exit('no licence')", "no licence"),
        ("print('hello')", "must write JSON"),
        ("print('[]')", "must write a JSON object"),
        ("print('{\"actors\": {}}')", "names no actors"),
    ],
)
def test_a_program_that_fails_gives_one_message(conformance: Callable[..., Outcome], program: str, says: str) -> None:
    command = program if program.startswith("no-") else shlex.join([sys.executable, "-c", program])
    outcome = conformance("provision", "--base-url", "http://127.0.0.1:1", "--with", command)
    assert (outcome.code, says in outcome.err) == (4, True), outcome.text
