"""Several targets in one command: tested side by side, each with its own reports, and compared."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from conformance.cli.several import worst_of
from conformance.errors import ExitCode
from selftest.altering import called
from selftest.conftest import Outcome, run_conformance, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


ID = "job-token-scope.settings.inbound-enabled"


def test_two_targets_are_tested_and_compared(
    conformance: Callable[..., Outcome], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    out = tmp_path / "both"
    with serving() as one, serving() as other:
        profiles = [write_profile(*one, name="staging.yaml"), write_profile(*other, name="canary.yaml", actors={})]
        outcome = conformance(
            "run",
            *(f"--target={file}" for file in profiles),
            f"--out={out}",
            f"--requirement={ID}",
            "--corpus=none",
            "-q",
        )
    assert outcome.code == 6, outcome.text  # one profile has no actors, so nothing could be verified with it
    compared = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert compared["targets"] == ["staging", "canary"]
    assert [row["cells"] for row in compared["requirements"]] == [["passed", "not tested"]]
    again = conformance("compare", str(out / "staging"), str(out / "canary"), "--format", "json")
    assert json.loads(again.text) == compared


def test_two_profiles_of_one_project_are_refused_before_the_first_call(
    conformance: Callable[..., Outcome], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    with serving() as (service, base_url):
        calls = called(service)
        write_profile(service, base_url, name="one.yaml")
        write_profile(service, f"{base_url}/", name="other.yaml")
        outcome = conformance("run", "--target=one.yaml", "--target=other.yaml", "--out=out", "-q")
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert "one.yaml and other.yaml both name project " in outcome.err
    assert calls == []
    assert not (tmp_path / "out").exists()


def test_two_profiles_that_share_only_a_project_of_a_further_world_are_refused(
    conformance: Callable[..., Outcome], tmp_path: Path
) -> None:
    world = "actors: {}\nfixtures: {project: {id: 7}}"
    further = "worlds: [{actors: {}, fixtures: {sibling_project: {id: 8}}}]"
    base_url, alone = "base_url: http://x.example", "actors: {}\nfixtures: {project: {id: 8}}"
    (tmp_path / "one.yaml").write_text(f"{base_url}\n{world}\n{further}", encoding="utf-8")
    (tmp_path / "other.yaml").write_text(f"{base_url}\n{alone}", encoding="utf-8")
    outcome = conformance("run", "--target=one.yaml", "--target=other.yaml", "--out=out", "-q")
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert "one.yaml and other.yaml both name project 8 of http://x.example" in outcome.err


def test_what_an_earlier_command_left_is_not_compared(
    conformance: Callable[..., Outcome], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    few = (f"--requirement={ID}", "--corpus=none", "-q", "--out=out", "--target=one.yaml", "--target=other.yaml")
    with serving() as one, serving() as other:
        profiles = [write_profile(*one, name="one.yaml"), write_profile(*other, name="other.yaml")]
        assert conformance("run", *few).code == 0
        for file in (tmp_path / "out").rglob("results.jsonl"):
            os.utime(file, (0, 0))
        profiles[1].write_text("base_url: [", encoding="utf-8")
        outcome = conformance("run", *few)
    assert (outcome.code, "No comparison" in outcome.err) == (4, True), outcome.text
    assert not list((tmp_path / "out").glob("comparison.*"))


def test_a_run_in_the_current_folder_has_a_name_in_a_comparison(
    conformance: Callable[..., Outcome], tmp_path: Path
) -> None:
    for name in ("one", "other"):
        assert conformance("run", f"--requirement={ID}", "--corpus=none", "-q", f"--out={name}").code == 0
    compared = run_conformance("compare", ".", "../other", "--format", "json", cwd=tmp_path / "one")
    assert json.loads(compared.out)["targets"] == ["one", "other"]


def test_two_profiles_with_the_same_name_are_refused(conformance: Callable[..., Outcome]) -> None:
    outcome = conformance("run", "--target=a/target.yaml", "--target=b/a/target.yaml")
    assert outcome.code == 4
    assert "the same name" in outcome.text


def test_same_names_in_two_folders_are_told_apart_by_their_folders(conformance: Callable[..., Outcome]) -> None:
    outcome = conformance("run", "--target=a/target.yaml", "--target=b/target.yaml", "--out=out")
    assert "a | " in outcome.out
    assert "b | " in outcome.out


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        ((0, 0), ExitCode.CONFORMANT),
        ((0, 6), ExitCode.INCOMPLETE),
        ((6, 1), ExitCode.NON_CONFORMANT),
        ((8, 1), ExitCode.NON_CONFORMANT),
        ((4, 8), ExitCode.USAGE),
        ((143, 0), ExitCode.TERMINATED),
        ((-9, 0), ExitCode.SUITE_BROKE),
        ((137, 1), ExitCode.NON_CONFORMANT),
        ((7, 1), ExitCode.NON_CONFORMANT),
        ((3, 7, 6), ExitCode.SUITE_BROKE),
        ((137, 6), ExitCode.SUITE_BROKE),
    ],
)
def test_the_exit_code_for_several_targets_is_that_of_the_worst(codes: tuple[int, ...], worst: ExitCode) -> None:
    assert worst_of(codes) == worst
