"""The proof that there are no false alarms: the suite finds no fault in any variant of the reference."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, fields, replace

import pytest

from conformance.proof.variants import VARIANTS, Variant, runs_of
from conformance.proof.variants.approval_settings import removes_selectively_while_retaining
from conformance.proof.variants.bundles import bundles, members, together
from conformance.proof.variants.combinations import LEGAL, NOT_DRAWN
from conformance.proof.variants.false_alarms import SEEDS, VERSIONS, every_run
from conformance.proof.variants.running import WITHOUT_DRAWN, VariantRun, run_each
from conformance.reference import Choices
from conformance.reference.choices import Unfit
from selftest.conftest import VERSION
from selftest.inside import inside

#: Variants that differ in most places, on one service; `make variants-sample` takes others with each commit.
HANDFUL = {"always-200", "strict-input", "nulls-and-truth-values", "other-rules", "no-order", "short-pages"}
RULES = "approval_rules or merge_request_approvals_rules or merge_request_approvals_input"
#: At which versions they are tried, and whether the suite knows the version.
TRIED_AT = (("15.9", True), ("16.0", False), ("17.7", True), ("19.0", True))


def wanted() -> list[VariantRun]:
    """Return one run of these variants for each version."""
    (handful,) = bundles([variant for variant in VARIANTS if variant.name in HANDFUL], 1)
    return [replace(one, is_told=is_told) for version, is_told in TRIED_AT for one in runs_of([handful], version)]


@pytest.mark.parametrize("one", wanted(), ids=lambda one: one.version)
def test_variants_violate_nothing(one: VariantRun) -> None:
    assert set(members(one.name)) == HANDFUL
    with inside() if one.version != VERSION else nullcontext():  # one of the runs uses connections, as operators do
        (run,) = run_each((one,), *WITHOUT_DRAWN)
    assert (run.alarms, run.broken) == ((), ())
    assert run.verified > 400


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("updated-rules-become-default", RULES),
        ("updated-rules-keep-somebody", RULES),
        ("values-passed-on-later", "approval_settings"),
        ("no-more-approvals-than-approvers", "rules_deleted or rule_origins"),
    ],
)
def test_what_a_service_leaves_open_about_updates_violates_nothing(name: str, tests: str) -> None:
    """Each may meet few tests only, so that no sample of whole runs is needed to see it."""
    (one,) = runs_of([variant for variant in VARIANTS if variant.name == name], VERSION)
    (run,) = run_each((one,), "-k", f"({tests}) and not model and not test_fuzz", "--max-examples=3")
    assert (run.alarms, run.broken) == ((), ())
    assert run.verified > 0


def test_the_query_is_verified_where_each_rule_names_somebody() -> None:
    """A list has no form in a query, so it comes in the body."""
    (one,) = runs_of([variant for variant in VARIANTS if variant.name == "updated-rules-keep-somebody"], VERSION)
    (run,) = run_each((one,), "-k", "test_group_approval_rules.py")
    assert (run.alarms, run.broken) == ((), ())
    assert [gap for gap in run.gaps if "query-parameters" in gap] == []
    assert run.verified > 0


def test_selective_removals_that_are_taken_and_dropped_are_a_warning_and_no_more() -> None:
    """A service may have them only together with kept approvals; an answer shows what is stored."""
    (variant,) = (variant for variant in VARIANTS if removes_selectively_while_retaining in variant.alterations)
    dropping = replace(variant.choices, selective_removals_while_retaining=Unfit.DROP)
    (one,) = runs_of([replace(variant, choices=dropping)], VERSION)
    (run,) = run_each((one,), "-k", "test_approval_settings.py", "--max-examples=3")
    ends = {alarm.partition(" in ")[0].rpartition(".")[2] for alarm in run.alarms}
    assert (ends, run.broken) == ({"selective-code-owner-removals"}, ())


def test_every_variant_runs_with_every_version_known_or_not_and_every_seed() -> None:
    runs = every_run()
    assert len({one.key for one in runs}) == len(runs)
    met = [(name, one.version, one.is_told, one.seed) for one in runs for name in members(one.name)]
    assert len(set(met)) == len(met) == len(VARIANTS) * len(VERSIONS) * 2 * len(SEEDS)


def test_variants_on_one_service_do_not_contradict_each_other() -> None:
    for bundle in bundles(VARIANTS, 1):
        for variant in VARIANTS:
            if variant.name in members(bundle.name):
                assert changes(variant).items() <= changes(bundle).items()
                assert set(variant.alterations) <= set(bundle.alterations)


def changes(variant: Variant) -> dict[str, object]:
    own = asdict(Choices())
    return {name: value for name, value in asdict(variant.choices).items() if value != own[name]}


@pytest.mark.parametrize(
    ("meant", "version", "requirement"),
    [
        # A state may show a rule of the project and its copy under one number.
        (
            ("rules-of-both-levels-count", "first-rule-brings-others"),
            VERSION,
            "merge-request-approvals.rules.create.in-state",
        ),
        # A list without pages refuses to be asked for one, and whoever may not read it is refused otherwise.
        (("maintainers-only", "documented-parameters-only"), "12.3", "group-approval-rules.list"),
    ],
)
def test_what_is_legal_alone_is_legal_together(meant: tuple[str, str], version: str, requirement: str) -> None:
    (both,) = runs_of([together([variant for variant in VARIANTS if variant.name in meant])], version)
    (run,) = run_each((replace(both, is_told=version == VERSION),), *WITHOUT_DRAWN, f"--requirement={requirement}")
    assert (run.alarms, run.broken) == ((), ())


def test_a_choice_that_the_text_rules_out_raises_an_alarm() -> None:
    """Without this test, all others here could be green because nothing is checked."""
    illegal = VariantRun("illegal", "17.7", Choices(approved_code=418))
    (run,) = run_each((illegal,), *WITHOUT_DRAWN, "--requirement=merge-request-approvals.approve.answer")
    assert not run.is_clean
    assert "merge-request-approvals.approve.answer" in [alarm.partition(" in ")[0] for alarm in run.alarms]


def test_every_choice_is_varied_by_some_variant_or_listed_as_not_drawn() -> None:
    own = Choices()
    varied = {
        field.name
        for field in fields(Choices)
        for variant in VARIANTS
        if getattr(variant.choices, field.name) != getattr(own, field.name)
    }
    assert {field.name for field in fields(Choices)} - varied - NOT_DRAWN.keys() == set()


def test_every_choice_is_drawn_or_listed_and_the_default_is_legal() -> None:
    own = Choices()
    assert {field.name for field in fields(Choices)} - LEGAL.keys() - NOT_DRAWN.keys() == set()
    assert [name for name, values in LEGAL.items() if getattr(own, name) not in values] == []
