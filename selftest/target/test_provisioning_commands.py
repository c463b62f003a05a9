"""The commands that prepare a target and write its profile: what they say, and where secrets go."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from conformance.reference.errors import NoRouteError
from conformance.target.embedded import prepared_service
from conformance.target.profile_file import load_profile
from conformance.target.provisioning.files import secrets_beside
from selftest.conftest import VERSION, lacking, serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.target.provisioning import Provisioned
    from selftest.conftest import Outcome
    from selftest.target.bench import Bench


def test_what_a_service_refuses_alike_is_told_in_one_line_with_other_ways_to_a_profile(
    conformance: Callable[..., Outcome], tmp_path: Path
) -> None:
    service = lacking({"POST /groups"}, NoRouteError, prepared_service(version=VERSION))
    with serving(service) as (_, base_url):
        (tmp_path / "admin.token").write_text(service.administrator.token)
        where = ("--base-url", base_url, "--admin-token-file", "admin.token", "--prefix", "half-built")
        made = conformance("provision", *where)
    refused, waiting = (line for line in made.out.splitlines() if "POST /groups" in line or "they need what" in line)
    assert {"group", "sibling_group"} <= {*re.split("[ ,:]+", refused)}  # in whatever order they were tried
    assert {"project", "sibling_project"} <= {*re.split("[ ,:]+", waiting)}
    assert "conformance target --discover" in made.out


def test_the_command_writes_a_profile_without_secrets(conformance: Callable[..., Outcome], tmp_path: Path) -> None:
    with serving() as (service, base_url):
        (tmp_path / "admin.token").write_text(service.administrator.token + "\n")
        where = ("--base-url", base_url, "--admin-token-file", "admin.token")
        made = conformance("provision", *where, "--worlds", "2", "--out", "mine.yaml")
        assert made.code == 0, made.text
        assert "installed_chat_app_integration" in made.out
        profile = load_profile(tmp_path / "mine.yaml")
        assert len(profile.worlds) == 1
        secrets = tmp_path / "mine.secrets.env"
        assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
        text = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
        data = yaml.safe_load(text)
        assert data["secrets"] == "mine.secrets.env"
        for line in secrets.read_text(encoding="utf-8").splitlines():
            assert line.partition("=")[2] not in text
        checked = conformance("target", "--check", "mine.yaml")
        assert checked.code == 0, checked.text
        by_hand = {"fixtures": {**data["fixtures"], "job_token": {"token": "${JOB_TOKEN}"}}, "version": "17.7"}
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**data, **by_hand}), encoding="utf-8")
        assert conformance("provision", *where, "--worlds", "2", "--out", "mine.yaml").code == 0
        assert yaml.safe_load((tmp_path / "mine.yaml").read_text(encoding="utf-8")) == {**data, **by_hand}
        listed = (tmp_path / "made.jsonl").read_text(encoding="utf-8").splitlines()
        assert {json.loads(line)["target"] for line in listed} == {base_url}
        swept = conformance("sweep", *where)
        assert swept.code == 0, swept.text
        assert " 0 left" in swept.out


@pytest.mark.parametrize(
    ("profile", "secrets"),
    [
        ("target.yaml", "target.secrets.env"),
        ("a/staging.yml", "a/staging.secrets.env"),
        ("staging.eu", "staging.eu.secrets.env"),
    ],
)
def test_each_profile_has_its_own_secrets(profile: str, secrets: str) -> None:
    assert secrets_beside(Path(profile)) == Path(secrets)


@pytest.mark.parametrize(
    ("content", "code", "says"), [("", 4, "a token and nothing else"), ("wrong\n", 8, "administrator's token")]
)
def test_a_wrong_token_file_gives_one_message(
    conformance: Callable[..., Outcome],
    reference: tuple[Service, str],
    tmp_path: Path,
    content: str,
    code: int,
    says: str,
) -> None:
    (tmp_path / "admin.token").write_text(content)
    outcome = conformance("provision", "--base-url", reference[1], "--admin-token-file", "admin.token")
    assert (outcome.code, says in outcome.err) == (code, True), outcome.text
    assert [file.name for file in tmp_path.iterdir()] == ["admin.token"]


def test_a_service_without_a_call_for_the_current_user_does_not_refuse_the_token(
    conformance: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "admin.token").write_text("anything\n")
    with serving(lacking({"GET /user"}, NoRouteError, prepared_service(version=VERSION))) as (_, base_url):
        outcome = conformance("provision", "--base-url", base_url, "--admin-token-file", "admin.token")
    assert (outcome.code, "does not have the calls" in outcome.err) == (8, True), outcome.text


def test_a_profile_with_only_tokens_is_filled_with_what_they_can_read(
    conformance: Callable[..., Outcome], whole: tuple[Bench, Provisioned], tmp_path: Path
) -> None:
    bench, done = whole
    with serving(bench.service) as (_, base_url):
        world = done.worlds[0]
        tokens = {name: {"token": person.token} for name, person in world.people.items() if name != "foreign_bot"}
        bare = {"base_url": base_url, "actors": tokens}
        (tmp_path / "bare.yaml").write_text(yaml.safe_dump(bare))
        assert "say `disposable: true`" in conformance("target", "--discover", "bare.yaml").err
        (tmp_path / "bare.yaml").write_text(yaml.safe_dump({**bare, "disposable": True}))
        filled = conformance("target", "--discover", "bare.yaml")
        assert filled.code == 0, filled.text
        data = yaml.safe_load(filled.out)
        assert not any(each.active for each in bench.service.integrations.known.values())  # tried, and disabled again
        assert data["fixtures"]["integrations"] == bench.profile(done)["fixtures"]["integrations"]
        assert {"enabled_project", "disabled_project", "oauth_token_endpoint"} <= data["fixtures"].keys()
        assert {"code_owner_merge_request", "password_merge_request", "branch_rule_group"} <= data["fixtures"].keys()
        assert (data["version"], data["edition"]) == ("auto", "enterprise")
        assert data["features"].items() <= bench.profile(done)["features"].items()
        wanted = bench.profile(done)["fixtures"]
        for name in ("group", "project", "subgroup", "subgroup_project", "public_project"):
            assert (name, data["fixtures"][name]["id"]) == (name, wanted[name]["id"])
        assert {"merge_request", "second_merge_request", "reset_merge_request"} <= data["fixtures"].keys()
        assert {"sibling_project", "fuzz_project", "allowlist_projects", "allowlist_groups"} <= data["fixtures"].keys()
        assert {"hidden_group", "approver_group", "protected_branch", "export_group"} <= data["fixtures"].keys()
        assert data["actors"]["author"]["id"] == world.people["author"].id
        perhaps = {"untouched_merge_request", "fresh_project", "fresh_group"}
        assert {name for name in perhaps if f"#   {name}:" in filled.out} == perhaps
        assert not perhaps & data["fixtures"].keys()
        (tmp_path / "filled.yaml").write_text(filled.out, encoding="utf-8")
        checked = conformance("target", "--check", "filled.yaml")
        assert checked.code == 0, checked.text


def test_secrets_in_a_profile_are_moved_to_the_file_that_it_names(
    conformance: Callable[..., Outcome], whole: tuple[Bench, Provisioned], tmp_path: Path
) -> None:
    bench, done = whole
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "start.env").write_text("# ours\n", encoding="utf-8")
    token = done.worlds[0].people["maintainer"].token
    with serving(bench.service) as (_, base_url):
        bare = {"base_url": base_url, "actors": {"maintainer": {"token": token}}, "secrets": "keys/start.env"}
        (tmp_path / "bare.yaml").write_text(yaml.safe_dump(bare), encoding="utf-8")
        filled = conformance("target", "--discover", "bare.yaml")
    assert filled.code == 0, filled.text
    assert token in (tmp_path / "keys" / "start.env").read_text(encoding="utf-8")
    assert token not in filled.out


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("notes of mine\n", "no profile"),
        ("base_url: http://me:pass@elsewhere.test/\nactors: {}\n", "the profile of http://elsewhere.test."),
    ],
)
@pytest.mark.parametrize("way", ["--admin-token-file", "--with"])
def test_a_file_that_is_no_profile_of_the_target_is_not_written_over(
    conformance: Callable[..., Outcome], tmp_path: Path, text: str, what: str, way: str
) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    (tmp_path / "admin.token").write_text("glpat-of-the-admin")
    made = conformance("provision", "--base-url", "http://127.0.0.1:1", way, "admin.token", "--out", "mine.yaml")
    assert (made.code, f"mine.yaml is there, and is {what}" in made.err) == (4, True), made.text
    assert (tmp_path / "mine.yaml").read_text() == text
    assert not (tmp_path / "mine.secrets.env").exists()


@pytest.mark.parametrize("form", ["{}/api/v4/", "${{STAGING}}"])
def test_what_was_added_to_a_profile_stays_however_its_address_is_written(
    conformance: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    with serving() as (service, base_url):
        (tmp_path / "admin.token").write_text(service.administrator.token)
        monkeypatch.setenv("STAGING", base_url)
        address = form.format(base_url)
        (tmp_path / "mine.yaml").write_text(f"base_url: {address}\nactors: {{}}\nlimits: {{page_walk: 77}}\n")
        conformance("provision", "--base-url", base_url, "--admin-token-file", "admin.token", "--out", "mine.yaml")
    assert load_profile(tmp_path / "mine.yaml").limits.page_walk == 77
