"""Group relations export: how it is scheduled and followed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from conformance.suite.accepted import DONE_WITHIN_SECONDS
from conformance.suite.arrange import INHERITED, UNUSED_ID
from conformance.suite.arrange.export_entries import FAILED, FINISHED, STARTED, entries_in, marks_in
from conformance.suite.arrange.export_files import given_its_objects, missing_in, must_hold_once
from conformance.suite.arrange.exports import Export, export_of
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    as_json,
    given,
    left_to_others,
    must,
    observe,
    unchanged,
    verifies,
)
from conformance.suite.expectations.words import settles

if TYPE_CHECKING:
    from conformance.suite import Fixture

NO_RELATION = "conformance_no_such_relation"
#: Number of further relations whose status is asked for alone.
MOST_FILTERED = 2


# -- scheduling and following ------------------------------------------------------------------------------------------


def test_entries_appear_after_an_export_was_scheduled(export: Export) -> None:
    """How long that takes is open; but a downloadable relation has been exported, and must have an entry."""
    before, batched = export.marks(), not export.is_batched()
    export.accepted(batched=batched).given_served()
    with verifies("group-relations-export.schedule.entries-appear"):
        if not export.shows_anew(before):
            file = export.download(**({"batched": True, "batch_number": 1} if batched else {}))
            given(file.is_served, "before the deadline, neither an entry nor a file of the export appeared")
            export.caller.get(export.path / "status").given_served()  # a status that is refused is a fault of its own
        must(bool(export.entries()), "entries in the status", "none")


def test_an_export_in_batches_shows_its_batches(export: Export, export_group: Fixture) -> None:
    with suppress(Unmet):
        may_come_in_batches_by_path(export, export_group)
    # By the number last, because only what was scheduled so is waited for by the tests that follow.
    before, answer = export.begun_anew(batched=True)
    with verifies("group-relations-export.schedule.batched.may-be-true", go_on=True):
        given(answer.is_served or export.is_accepted, "no export is accepted, in batches or not")
        answer.must_be(202)
    entries = export.ended_anew(before, answer, batched=True)
    with verifies("group-relations-export.schedule.in-batches"):
        own = next((entry for entry in entries if entry.get("relation") == export.relation), {})
        given(own.get("status") == FINISHED, f"{export.relation} did not finish, so that it owes no batches")
        cut = [entry for entry in entries if entry.get("batched") is True and entry.get("batches")]
        must(bool(cut), "entries with batched = true and batches", f"none among {len(entries)} entries")


def may_come_in_batches_by_path(export: Export, group: Fixture) -> None:
    """Expect batches if the group is named by its path, provided that the export is accepted and the relation ends."""
    for by_its_path in export.named_by_path(group):
        export.finished(batched=False)
        before = export.marks()
        by_its_path.entries()  # an answer that is kept from now on does not show the batches
        if by_its_path.schedule(batched=True).is_served:
            own = export.own(export.settled(before, batched=True))
            if own.get("status") == FINISHED:
                with verifies("group-relations-export.schedule.in-batches", go_on=True):
                    must(
                        own.get("batched") is True, f"batched = true of {export.relation}", as_json(own.get("batched"))
                    )
                    shown = by_its_path.own()  # none if such a status cannot be read, which other tests report
                    told = shown.get("batched", True)
                    must(told is True, f"batched = true of {export.relation} by the path as well", as_json(told))


def test_an_export_in_one_piece_shows_no_batched_entry(export: Export) -> None:
    before, answer = export.begun_anew(batched=False)
    with verifies("group-relations-export.schedule.batched.may-be-false", go_on=True):
        answer.must_be(202)
    entries = export.ended_anew(before, answer, batched=False)
    with verifies("group-relations-export.schedule.unbatched"):
        own = next((entry for entry in entries if entry.get("relation") == export.relation), {})
        must(own.get("batched") is False, f"batched = false of {export.relation}", as_json(own.get("batched")))


def test_an_export_can_be_scheduled_without_saying_in_which_form(export: Export) -> None:
    """Its form shows only if its entry differs from that of the export before."""
    export.finished(batched=True)
    before = export.marks()
    with verifies("group-relations-export.schedule.batched.is-optional"):
        export.accepted().must_be(202)
        with suppress(Unmet):
            export.settled(before, batched=False)
            form = "in batches" if export.is_batched() else "in one piece"
            observe("group-relations-export.schedule.default-form", f"an export without batched comes {form}")


def test_a_form_that_is_no_truth_value_is_refused_or_passed_over(export: Export) -> None:
    export.marks()
    with verifies("group-relations-export.schedule.batched.is-boolean"):
        before = export.marks()
        odd = export.schedule(batched="maybe").must_not_break()
        if odd.exchange.is_refusal:
            must(export.marks() == before, "the export status as before a refusal", "another one")
        control = export.accepted(batched=True)
        given(control.status == 202, f"the right form is answered {control.status}, so this shows nothing")


def test_what_a_second_scheduling_gives_is_noted(export: Export) -> None:
    export.marks()
    export.accepted(batched=False).given_served()
    running = any(entry.get("status") == STARTED for entry in export.entries())
    again = export.schedule(batched=False)
    while_running = "while an export is running" if running else "right after another one, not seen running"
    observe("group-relations-export.schedule.repeated-answer", f"scheduling {while_running} answers {again.status}")


def test_an_export_of_one_group_starts_none_of_another(export: Export, foreign_export: Export) -> None:
    with (
        verifies("group-relations-export.schedule.belongs-to-its-group"),
        unchanged(lambda: marks_in(foreign_export.entries()), "the export status of the other group"),
    ):
        anew = not export.is_batched()
        export.ended_anew(*export.begun_anew(batched=anew), batched=anew)
    left_to_others("group-relations-export.status.filtered")  # unless nothing of the other group was exported
    alone = foreign_export.caller.get(foreign_export.path / "status", relation=export.relation)
    if alone.is_served and not foreign_export.entries():
        with verifies("group-relations-export.status.filtered"):
            found = entries_in(alone.json)
            must(not found, "no entry of a group of which nothing was exported", as_json(found), alone.exchange)


def test_the_export_of_a_group_leaves_the_file_of_a_group_inside_it(
    owner: Caller, export: Export, export_group: Fixture
) -> None:
    """Whether inner groups are exported too is open, and whether a file shows what is inherited; not whose it is."""
    left_to_others()  # unless the profile names such a group, and texts that show in its file
    inner = current_run().profile.first("inner_export_group")
    texts = inner.get("objects") if inner is not None else None
    if inner is None or not texts or export_group.get("objects") is None:
        return
    inside = export_of(owner, inner, export.relation)
    with suppress(Unmet):
        given_its_objects(inside, texts)
        export.ended_anew(*export.begun_anew(batched=False), batched=False)
        inside.quiet()
        with verifies("group-relations-export.download.belongs-to-its-group"):
            file = inside.download()
            lost = missing_in(file, texts) if file.is_served else []
            must(not lost, "its objects after the export of the group around it", f"none of {lost}", file.exchange)


def test_the_status_of_one_relation_shows_no_other(export: Export, export_group: Fixture, anonymous: Caller) -> None:
    export.finished(batched=False)
    relations = relations_in(export.entries())
    if len(set(relations)) == 1:  # each entry may appear when the export of its relation begins
        settles(lambda: len(set(relations_in(export.entries()))) > 1, DONE_WITHIN_SECONDS)
        relations = relations_in(export.entries())
    given(len(set(relations)) > 1, "the status holds one relation only, so that nothing can be left out")
    others = sorted(set(map(str, relations)) - {export.relation})[:MOST_FILTERED]  # some may begin alike
    with verifies("group-relations-export.status.one-entry-a-relation", go_on=True):
        must(len(set(relations)) == len(relations), "each relation once", ", ".join(map(str, relations)))
    with verifies("group-relations-export.status.filtered", go_on=True):
        answer = export.caller.get(export.path / "status", relation=export.relation).must_be(200)
        shown = relations_in(answer.json)
        must(set(shown) == {export.relation}, f"the entry of {export.relation}", f"entries of {shown}", answer.exchange)
        must_show_the_form(answer, batched=False)
        form = "an array" if isinstance(answer.json, list) else "the bare entry"
        observe("group-relations-export.status.filtered-form", f"the status of one relation is {form}")
        for other in others:
            of_it = export.caller.get(export.path / "status", relation=other).must_be(200)
            shown = relations_in(of_it.json)
            must(set(shown) == {other}, f"the entry of {other}", f"entries of {shown}", of_it.exchange)
        after = relations_in(export.entries())  # after asking for one relation, ask for all of them again
        must(len(set(after)) > 1, "more than one relation where none is asked for", f"{after}")
    with verifies("group-relations-export.authorization.following-anonymous", go_on=True):
        control = export.caller.get(export.path / "status", relation=export.relation)
        anonymous.get(export.path / "status", relation=export.relation).must_be_refused(beside=control)
    for other in [name for name in map(str, relations) if "_" in name and name != export.relation][:1]:
        with verifies("group-relations-export.status.filtered", go_on=True):
            named = relations_in(must_show_no_other(export, other).must_be(200).json)
            must(other in named, f"the entry of {other}", f"entries of {named}")
    with verifies("group-relations-export.status.unknown-relation"):
        if export.relation[:-1] not in {"", *relations}:
            must_show_no_other(export, export.relation[:-1])
        must_show_no_other(export, INHERITED)
        unknown = must_show_no_other(export, NO_RELATION)
    observe(
        "group-relations-export.status.unknown-relation-answer", f"an unknown relation is answered {unknown.status}"
    )
    with suppress(Unmet):
        export.finished(batched=True)
        with verifies("group-relations-export.status.filtered", go_on=True):
            must_show_the_form(export.caller.get(export.path / "status", relation=export.relation), batched=True)
        with verifies("group-relations-export.status.filtered"):
            for by_its_path in export.named_by_path(export_group):
                must_show_no_other(by_its_path, export.relation)
            for name in [export.relation, *others]:
                must_show_no_other(export, name)


def must_show_the_form(answer: Answer, *, batched: bool) -> None:
    """Expect that the status of one relation, if served, shows the finished export, in either form."""
    found = answer.json if isinstance(answer.json, list) else [answer.json]
    entries = [entry for entry in found if isinstance(entry, dict)] if answer.is_served else []
    for name, wanted in (("batched", batched), ("status", FINISHED)):
        values = [entry.get(name) for entry in entries]
        must(not values or wanted in values, f"an entry with {name} = {wanted}", f"{name} = {values}", answer.exchange)


def must_show_no_other(export: Export, name: object) -> Answer:
    """Expect that a status request for this name shows no entry of another name."""
    answer = export.caller.get(export.path / "status", relation=str(name)).must_not_break()
    foreign = set(relations_in(answer.json)) - {None, name} if answer.is_served else set()
    must(not foreign, f"no entry of another relation than {name}", f"entries of {foreign}", answer.exchange)
    return answer


def relations_in(status: object) -> list[object]:
    """Return the relations in a status, which may be an array of entries or a single entry."""
    entries = status if isinstance(status, list) else [status]
    return [entry.get("relation") if isinstance(entry, dict) else None for entry in entries]


def test_who_else_may_follow_an_export_is_noted(
    export: Export,
    maintainer: Caller,
    developer: Caller,
    outsider: Caller,
) -> None:
    """The text requires a token and names no role."""
    for caller in (maintainer, developer, outsider):
        answer = caller.get(export.path / "status")
        observe(
            "group-relations-export.authorization.other-roles-answer",
            f"the actor {caller.name}, asking for the status, is answered {answer.status}",
        )


def test_a_group_that_does_not_exist_is_not_exported(export: Export) -> None:
    export.finished(batched=False)
    unknown = Export(export.caller, Path(f"/groups/{UNUSED_ID}/export_relations"), export.relation)
    with verifies("group-relations-export.status.unknown-group", go_on=True):
        control = export.caller.get(export.path / "status")
        unknown.caller.get(unknown.path / "status").must_be_refused(beside=control)
    with verifies("group-relations-export.download.unknown-group", go_on=True):
        unknown.download().must_be_refused(beside=export.download())
    with verifies("group-relations-export.schedule.unknown-group"):
        unknown.schedule(batched=False).must_be_refused(beside=export.accepted(batched=False))


def test_which_relations_failed_is_noted(export: Export) -> None:
    export.marks()
    failed = [entry for entry in export.entries() if entry.get("status") == FAILED]
    told = [f"{entry.get('relation')} failed: {entry.get('error')}" for entry in failed] or ["no relation failed"]
    for text in told:
        observe("group-relations-export.entry.failed", text)


# -- groups inside others ----------------------------------------------------------------------------------------------


def test_the_file_of_a_group_inside_another_one_holds_its_own_objects(owner: Caller, export: Export) -> None:
    left_to_others()  # unless the profile names such a group, and texts that show in its file
    inner = current_run().profile.first("inner_export_group")
    texts = (inner and inner.get("objects")) or ()
    if inner is None or not texts:
        return
    with suppress(Unmet):
        file = export_of(owner, inner, export.relation).in_one_piece()
        with verifies("group-relations-export.download.holds-its-objects"):
            for text in texts:
                must_hold_once(file, text)
