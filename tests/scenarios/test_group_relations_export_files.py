"""The files of group relations exports: in one piece and in batches, byte by byte, each of its group and relation."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.suite import Reason
from conformance.suite.accepted import DONE_WITHIN_SECONDS
from conformance.suite.arrange import INHERITED, UNUSED_ID
from conformance.suite.arrange.approval_rules import own_group
from conformance.suite.arrange.export_entries import FINISHED, finished_marks_in, has_ended, marks_in
from conformance.suite.arrange.export_files import (
    file_names,
    given_its_objects,
    lines_of,
    lines_with,
    missing_in,
    must_be_json,
    must_hold_once,
    unpacked_lines,
)
from conformance.suite.arrange.exports import Export, export_of
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import (
    Answer,
    Caller,
    as_json,
    does_not_apply,
    given,
    given_field,
    left_to_others,
    must,
    must_be_as_before,
    must_settle,
    observe,
    verifies,
    whole_number,
)
from conformance.suite.expectations.words import settles
from conformance.suite.load import at_once, in_turns

if TYPE_CHECKING:
    from conformance.suite import Fixture
    from conformance.suite.arrange.export_entries import Marks

NO_RELATION = "conformance_no_such_relation"
MOST_BATCHES = 20
MOST_RELATIONS = 12
#: Number of further relations whose batches are compared with the file.
MOST_SHARING = 3
#: Names of relations that a file can have unchanged on any system.
FIT_FOR_FILES = re.compile(r"[A-Za-z0-9_.-]+")


def test_a_finished_relation_is_downloaded_as_packed_lines_of_json(export: Export) -> None:
    """The bytes are checked as sent: automatic decompression may hide that nothing was packed."""
    entry = export.finished(batched=False)
    told = "null" if entry.get("error") is None else "not null"
    observe("group-relations-export.entry.error-of-a-finished-relation", f"error of a finished relation is {told}")
    with verifies(
        "group-relations-export.download.answered",
        "group-relations-export.entry.finished-is-downloadable",
        "group-relations-export.download.batch-parameters-are-optional",
    ):
        file = export.file_of(entry).must_be(200)
    with verifies("group-relations-export.download.is-gzip"):
        lines = unpacked_lines(file)
    with verifies("group-relations-export.download.is-ndjson", go_on=True):
        given(bool(lines), f"the file of {export.relation} has no line to look at")
        must_be_json(lines, file)
    names = file_names(file)
    if not names:
        does_not_apply("group-relations-export.download.file-name", Reason.NOT_OFFERED, "no download names its file")
    for name in names:
        with verifies("group-relations-export.download.file-name"):
            must_be_named_after(export.relation, name, file)
    with verifies("group-relations-export.download.answered"):
        export.file_of(entry).must_be(200)  # a file can be downloaded again


def must_be_named_after(relation: str, name: str, file: Answer) -> None:
    """Expect the name of a file to be that of its relation, and to show how the file is packed.

    A relation may have a name that no file can have unchanged.
    """
    is_its_own = name.startswith(relation) or not FIT_FOR_FILES.fullmatch(relation)
    is_named_after = is_its_own and name.endswith(".ndjson.gz")
    must(is_named_after, f"a name like {relation}.ndjson.gz", name, file.exchange)


def test_a_finished_batch_is_downloaded_by_its_number(export: Export) -> None:
    entry = export.finished(batched=True)
    batches = [batch for batch in entry.get("batches") or () if isinstance(batch, dict)]
    given(bool(batches), f"{export.relation} has no batch")
    numbers = [whole_number(batch.get("batch_number")) for batch in batches]
    counted = "is" if entry.get("batches_count") == len(batches) else "is not"
    observe("group-relations-export.entry.counts-its-batches", f"batches_count {counted} the number of batches")
    # The last one first, because none depends on an earlier download.
    for number, batch in reversed(list(zip(numbers, batches, strict=True))[:3]):
        with verifies("group-relations-export.download.batch"):
            file = export.file_of(entry, batched=True, batch_number=number).must_be(200)
            lines = unpacked_lines(file)
            must_be_json(lines, file)
        with verifies("group-relations-export.download.batch-holds-its-objects", go_on=True):
            wanted = batch.get("objects_count")
            must(len(lines) == wanted, f"{wanted} lines in batch {number}", f"{len(lines)}")
        left_to_others("group-relations-export.download.file-name")  # unless the answer names the file
        for name in file_names(file):
            with verifies("group-relations-export.download.file-name", go_on=True):
                # The text before the number, and its place, are open.
                must(".ndjson" in name and ".gz" in name, f"a name with .ndjson and .gz for batch {number}", name)
    with verifies("group-relations-export.batch.numbers-are-distinct"):
        given(len(numbers) > 1, f"{export.relation} has one batch only")
        must(len(set(numbers)) == len(numbers), "a number of its own for each batch", f"{numbers}")


def test_the_batches_of_a_relation_hold_together_what_its_file_holds(export: Export, export_group: Fixture) -> None:
    """A batch that is not announced is missing wherever the group is imported; one announced twice is there twice.

    Files of two exports are compared by number of lines, because an object may have changed meanwhile. Known objects of
    the group are found by their text.
    """
    whole = lines_of(export.in_one_piece())
    given(bool(whole), f"the file of {export.relation} has no line to look for")
    of_others = {other: lines for other in export.others() if (lines := lines_without_twins(export, other))}
    export.finished(batched=True)
    export.accepted(batched=True).given_served()  # no batches of the export before may remain
    batches = batch_files(export)
    held = [line for lines in batches for line in lines]
    must_be_other_batches_by_path(export, export_group, batches)
    in_whole = [text for text in export_group.get("objects") or () if lines_with(text, whole)]
    if not in_whole:
        left_to_others("group-relations-export.download.holds-its-objects")
    else:
        with verifies("group-relations-export.download.holds-its-objects", go_on=True):
            lost = [text for text in in_whole if not lines_with(text, held)]
            must(not lost, f"each object of {export.relation} in one of its batches", f"{lost} in none of them")
    with verifies("group-relations-export.download.batches-hold-the-relation", go_on=True):
        if len(held) != len(whole):
            again = lines_of(export.in_one_piece())
            given(len(again) == len(whole), f"{export.relation} changed while it was looked at")
        must(len(held) == len(whole), f"{len(whole)} lines in all batches of {export.relation}", f"{len(held)}")
    with verifies("group-relations-export.download.batches-share-no-object"):
        given(len(set(whole)) == len(whole), f"the file of {export.relation} has the same line twice itself")
        twice = [line for line, count in Counter(held).items() if count > 1]
        must(not twice, "each object in one batch", f"{len(twice)} of them in more than one, such as {twice[:1]}")

    left_to_others("group-relations-export.download.is-of-its-relation")  # unless another one comes in batches
    for other, lines in list(of_others.items())[:MOST_SHARING]:
        with suppress(Unmet):  # another relation may not be exported in batches
            of_other = replace(export, relation=other)
            batches = batch_files(of_other)
            if Counter(line for batch in batches for line in batch) != Counter(lines):
                batches = batch_files(of_other)  # the data may come from two exports
            counted = Counter(line for batch in batches for line in batch)
            with verifies("group-relations-export.download.is-of-its-relation", go_on=True):
                strange = (counted.keys() & {*held}) - lines
                must(
                    not strange, f"no object of {export.relation} in the batches of {other}", f"{len(strange)} of them"
                )
            with verifies("group-relations-export.download.batches-share-no-object", go_on=True):
                twice = [line for line in lines if counted[line] > 1]
                must(not twice, f"each object of {other} in one batch", f"{twice[:1]} in two of them")
            with verifies("group-relations-export.download.batches-hold-the-relation", go_on=True):
                if counted.total() != len(lines):
                    again = lines_of(of_other.in_one_piece())
                    given(len(again) == len(lines), f"{other} changed while it was looked at")
                must(
                    counted.total() == len(lines), f"{len(lines)} lines in all batches of {other}", f"{counted.total()}"
                )


def must_be_other_batches_by_path(export: Export, group: Fixture, batches: list[list[bytes]]) -> None:
    """Expect that no two batches are one file when they are requested by the path of the group."""
    numbers = export.numbers()
    if len(numbers) < 2 or set(batches[0]) & set(batches[-1]):
        return

    def shared(by_its_path: Export) -> set[bytes]:
        files = [by_its_path.download(batched=True, batch_number=number) for number in (numbers[0], numbers[-1])]
        first, last = (set(lines_of(file)) if file.is_served else set() for file in files)
        return first & last

    for by_its_path in export.named_by_path(group):
        with verifies("group-relations-export.download.batches-share-no-object", go_on=True):
            # Twice, because the files may come from two exports.
            found = shared(by_its_path) and shared(by_its_path)
            must(not found, "another file for each of two batches", f"{len(found)} lines in both of them")


def must_be_told_apart_by_path(
    export: Export, group: Fixture, others: list[tuple[str, Answer]], lines: list[bytes]
) -> None:
    """Expect the same for files requested by the path of the group; `lines` are those of the first relation."""
    for by_its_path in export.named_by_path(group):
        for other, _ in others:
            file = by_its_path.download(relation=other)
            same = file.is_served and set(lines_of(file)) == set(lines)
            must(not same, f"another file for {other} than for {export.relation}", "the same lines", file.exchange)


def lines_without_twins(export: Export, relation: str) -> set[bytes]:
    """Return the lines of another relation's file; empty if there are no two, or the same line occurs twice."""
    file = export.download(relation=relation)
    lines = lines_of(file) if file.is_served else []
    return set(lines) if 1 < len(lines) == len(set(lines)) else set()


def batch_files(export: Export) -> list[list[bytes]]:
    """Export the relation in batches, and return the lines of each."""
    numbers = export.numbers()
    given(len(numbers) <= MOST_BATCHES, f"{export.relation} has {len(numbers)} batches, more than are fetched here")
    files = [export.download(batched=True, batch_number=number) for number in numbers]
    return [lines_of(file.given_served()) for file in files]


def test_a_file_holds_the_objects_of_its_relation(export: Export, export_group: Fixture) -> None:
    """The file contains the known objects of a group, and the files of two relations differ."""
    texts = given_field(export_group, "objects", list)
    file = export.in_one_piece()
    lines = lines_of(file)
    with verifies("group-relations-export.download.holds-its-objects", go_on=True):
        for text in texts:
            must_hold_once(file, text)
        for by_its_path in export.named_by_path(export_group):
            by_path = by_its_path.download()
            for text in texts if by_path.is_served else ():
                must_hold_once(by_path, text)
    files = [(other, export.download(relation=other)) for other in export.others()[:MOST_RELATIONS]]
    if files:
        with verifies("group-relations-export.entry.finished-is-downloadable", go_on=True):
            # A relation without objects has an empty file; one that is exported again meanwhile shows nothing.
            refused = [one.exchange for other, one in files if one.exchange.is_refusal and other in export.others()]
            must(not refused, "a file of every finished relation", f"none of {len(refused)}", *refused[:1])
    else:
        left_to_others("group-relations-export.entry.finished-is-downloadable")
    with verifies("group-relations-export.download.is-ndjson", go_on=True):
        # Names are short; other relations have texts with several lines, quotation marks and much else.
        for one in [file, *(other for _, other in files if other.is_served)]:
            must_be_json(lines_of(one), one)
    left_to_others("group-relations-export.download.file-name")  # unless an answer names the file
    named = [(other, name, one) for other, one in files if one.is_served for name in file_names(one)]
    for other, name, its_file in named:
        with verifies("group-relations-export.download.file-name", go_on=True):
            must_be_named_after(other, name, its_file)
    with verifies("group-relations-export.download.is-of-its-relation"):
        filled = [(other, one) for other, one in files if one.is_served and lines_of(one)]
        given(bool(filled) and bool(lines), "no other relation holds anything that could differ")
        for other, one in filled:
            same = set(lines_of(one)) == set(lines)
            must(not same, f"another file for {other} than for {export.relation}", "the same lines", one.exchange)
        must_be_told_apart_by_path(export, export_group, filled, lines)
        for other, _ in filled[:1]:
            for beside in in_turns(export.download, partial(export.download, relation=other)):
                held = [set(lines_of(one)) for one in beside if one.is_served]
                must(len(held) < len(beside) or held[0] != held[1], "two files at once", "the same lines twice")


def test_a_file_holds_the_objects_of_its_group(
    owner: Caller,
    export: Export,
    export_group: Fixture,
    subgroup: Fixture,
    group: Fixture,
) -> None:
    """Two groups have their own labels and milestones, and an export of one removes none of the other."""
    texts = given_field(export_group, "objects", list)
    other = export_of(owner, subgroup, export.relation)
    given_its_objects(export, texts)
    before = finished_marks_in(export.quiet())
    with verifies("group-relations-export.download.belongs-to-its-group"):
        file = file_of_what_there_is(other)
        held = lines_of(file)
        # Before downloading its file, because that may change the time of an entry.
        after = marks_in(export.entries())
        strange = [text for text in texts if lines_with(text, held)]
        must(not strange, "the objects of this group", f"{strange} of another group", file.exchange)
        again = export.download()
        lost = missing_in(again, texts) if again.is_served else []
        must(not lost, "the objects of the group after the export of another one", f"none of {lost}", again.exchange)
    with verifies("group-relations-export.schedule.belongs-to-its-group"):
        others = [relation for relation, mark in before.items() if after.get(relation) != mark]
        must(not others, "the entries of a group as before the export of another one", f"others of {others}")
        # Whether a group is exported with its surrounding group is open; what was exported of it exists afterwards.
        around = export_of(owner, group, export.relation)
        if around.schedule().is_served:
            # At first that may show nothing.
            shown = "the entries of a group inside the one that is exported"
            must_settle(lambda: bool(other.entries()), shown, lambda: "none of them", within=DONE_WITHIN_SECONDS)
            if around.entries() and other.schedule().is_served:
                shown = "the entries of a group around the one that is exported"
                must_settle(lambda: bool(around.entries()), shown, lambda: "none of them", within=DONE_WITHIN_SECONDS)


def test_what_was_exported_of_a_group_is_not_the_export_of_one_inside_it(owner: Caller, group: Fixture) -> None:
    """Whether inner groups are exported too is open; if not, they have no file, not even that of another group."""
    left_to_others()  # unless the profile names such a group that has not been exported
    inner = current_run().profile.first("inner_group")
    relation = current_run().profile.value("export_group.relation")
    if inner is None or relation is None:
        return
    around, inside = (export_of(owner, one, relation) for one in (group, inner))
    around.schedule()  # which may be refused while an export of another test is running
    if settles(lambda: around.download().is_served, DONE_WITHIN_SECONDS) and not inside.entries():
        with verifies("group-relations-export.download.before-finished"):
            file = inside.download().must_not_break()
            # An inner group that was exported too shows by now.
            from_nothing = file.is_served and not settles(lambda: bool(inside.entries()), DONE_WITHIN_SECONDS)
            must(not from_nothing, "a refusal, for the status shows no export", "a file", file.exchange)


def test_the_export_of_a_group_inside_or_beside_leaves_the_file_of_a_group(
    owner: Caller, export: Export, export_group: Fixture
) -> None:
    """The file is fetched as soon as the other export has ended; what was not exported again is unchanged."""
    left_to_others()  # unless the profile names such groups, and texts that show in the file
    named = [current_run().profile.first(name) for name in ("group", "inner_export_group")]
    others, texts = [one for one in named if one is not None], export_group.get("objects")
    if not others or not texts:
        return
    given_its_objects(export, texts)
    before = finished_marks_in(export.quiet())  # other relations may end after the one that was waited for
    for other in others:
        another = export_of(owner, other, export.relation)
        with suppress(Unmet):
            another.quiet()
            another.accepted(batched=False)
            another.quiet()
        if "/" in str(other.get("path")):
            with verifies("conventions.group-id.encoded-subgroup-path", go_on=True):
                must_have_one_file(another, other, texts)
            if (is_batched := is_batched_by_path(another, other)) is not None:
                with verifies("group-relations-export.schedule.in-batches", go_on=True):
                    must(is_batched, f"batched = true of group {other.id} by its path, as by its number", "false")
        with verifies("group-relations-export.download.belongs-to-its-group"):
            file = export.download()
            lost = missing_in(file, texts) if file.is_served else []
            must(not lost, f"its objects after the export of group {other.id}", f"none of {lost}", file.exchange)
        with verifies("group-relations-export.schedule.belongs-to-its-group"):
            after = marks_in(export.entries())
            must_be_as_before("the export status of the group", before, {one: after.get(one) for one in before})


def is_batched_by_path(export: Export, group: Fixture) -> bool | None:
    """Tell whether a group comes in batches that is exported by its path; None unless it does by its number."""
    with suppress(Unmet):
        for named in export.named_by_path(group):
            before = export.marks()
            if not named.schedule(batched=True).is_served:
                return None
            form = form_of(export, before)
            if form is not False:
                return form
            before = export.marks()
            export.accepted(batched=True).given_served()
            return False if form_of(export, before) else None
    return None


def must_have_one_file(inner: Export, group: Fixture, texts: list[str]) -> None:
    """Expect the file of a group inside another one under its path too, and not that of the group around it.

    Whether its own file shows what it inherits is open, and so is whether there is a file without objects.
    """
    for named in inner.named_by_path(group):
        expected = "by the path of the group the file that is downloaded by its number"
        has_one = partial(show_the_same, (inner, named), texts)
        must_settle(has_one, expected, lambda: "another one, or only one of them", within=1)


def show_the_same(exports: tuple[Export, ...], texts: list[str]) -> bool:
    """Tell whether the same texts are in the file of each export, or none of them has a file."""
    files = [export.download() for export in exports]
    shown = [file.is_served and [text for text in texts if lines_with(text, lines_of(file))] for file in files]
    return all(one == shown[0] for one in shown)


def test_two_groups_that_are_exported_at_once_have_files_of_their_own(
    owner: Caller,
    export: Export,
    export_group: Fixture,
    subgroup: Fixture,
) -> None:
    texts = given_field(export_group, "objects", list)
    other = export_of(owner, subgroup, export.relation)
    if not export.is_batched():
        export.finished(batched=True)  # so that its entry shows when the next one has ended
    before, before_other = export.marks(), other.marks()
    answers = at_once(partial(export.accepted, batched=False), partial(other.accepted, batched=True))
    if not all(answer.is_served for answer in answers):
        left_to_others()  # a service may export one group at a time
        return
    export.settled(before, batched=False)
    is_batched = form_of(other, before_other)
    other.accepted(batched=True)  # once more, certainly later
    alone = other.own(other.quiet()).get("batched")
    left_to_others("group-relations-export.schedule.in-batches")  # unless that is the form of such an export
    if alone is True and is_batched is not None:
        with verifies("group-relations-export.schedule.in-batches", go_on=True):
            must(is_batched, f"batched = true of {other.path} beside another export in one piece, as alone", "false")
    with verifies("group-relations-export.schedule.unbatched", go_on=True):
        told = export.own(export.anew(export.quiet(), before)).get("batched", False)  # beside an older entry, if any
        must(told is False, f"batched = false of {export.relation} beside another export in batches", as_json(told))
    with verifies("group-relations-export.download.belongs-to-its-group"):
        file = export.download().given_served()
        lost = missing_in(file, texts)
        must(
            not lost, "the objects of the group that was exported beside another one", f"none of {lost}", file.exchange
        )
        beside = other.download(batched=True, batch_number=1)
        strange = [text for text in texts if beside.is_served and lines_with(text, lines_of(beside))]
        must(not strange, "the objects of this group", f"{strange} of another group", beside.exchange)


def form_of(export: Export, before: Marks) -> bool | None:
    """Wait for the end of an export, and tell whether its relation came in batches; None if that does not show."""
    with suppress(Unmet):
        entry = export.own(export.anew(export.quiet(), before))
        if entry.get("status") == FINISHED and isinstance(entry.get("batched"), bool):
            return bool(entry["batched"])
    return None


def file_of_what_there_is(export: Export) -> Answer:
    """Return the file of the relation or, if a group has none of its objects and does not export it, of another one."""
    try:
        return export.in_one_piece()
    except Unmet:
        others = export.others()
        given(bool(others), f"nothing of {export.path} was exported")
        return replace(export, relation=others[0]).in_one_piece()


def test_batches_that_do_not_exist_cannot_be_downloaded(export: Export) -> None:
    numbers = export.numbers()
    given(bool(numbers), f"{export.relation} has no batch")
    control = export.download(batched=True, batch_number=numbers[0])
    with verifies("group-relations-export.download.unknown-batch", go_on=True):
        for number in {UNUSED_ID, 0, -1, max(numbers) + 1} - {*numbers}:
            export.download(batched=True, batch_number=number).must_be_refused(beside=control)
    control.given_served()
    with verifies("group-relations-export.download.batch", go_on=True):
        export.download(batched=True, batch_number=numbers[0]).must_be_served()  # asking for a missing one loses none
    with verifies("group-relations-export.download.batch-number-is-integer", go_on=True):
        export.download(batched=True, batch_number="first").must_not_break()
    with verifies("group-relations-export.download.batched-is-boolean"):
        export.download(batched="maybe", batch_number=numbers[0]).must_not_break()


def test_a_download_names_a_relation_of_the_group(export: Export) -> None:
    export.finished(batched=False)
    control = export.download()
    with verifies("group-relations-export.download.relation-is-required", go_on=True):
        export.download(relation=None).must_be_refused(beside=control)
    known = {export.relation, *export.others()}
    with verifies("group-relations-export.download.unknown-relation"):
        for name in {NO_RELATION, INHERITED, export.relation[:-1], f"{export.relation}-none"} - {*known, ""}:
            export.download(relation=name).must_be_refused(beside=control)


def test_what_was_never_exported_cannot_be_downloaded(export: Export, foreign_export: Export) -> None:
    given(not foreign_export.entries(), "the other group has been exported before")
    export.finished(batched=False)
    with verifies("group-relations-export.download.before-finished"):
        foreign_export.download().must_be_refused(beside=export.download())


def test_nothing_can_be_downloaded_before_the_first_export_has_finished(owner: Caller, export: Export) -> None:
    """Nothing else was ever exported of the group, so a file that is served early is the one that is served later."""
    left_to_others()  # unless the run made a group of which nothing was exported
    named = filter(None, map(current_run().profile.first, ("fuzz_group", "group")))
    made = [export_of(owner, own, export.relation) for one in named if (own := own_group(one)) is not one]
    # If the test runs once more, it uses the next of these groups.
    first = next((one for one in made if not one.entries()), None)
    # What is named last is often exported last.
    relations = [str(entry.get("relation")) for entry in reversed(export.quiet())][:MOST_RELATIONS]
    if first is None or not first.schedule(batched=False).is_served:
        return
    early = {relation: first.download(relation=relation) for relation in relations}
    settles(lambda: all(map(has_ended, first.entries() or ({},))), DONE_WITHIN_SECONDS)
    for relation, file in early.items():
        whole = first.download(relation=relation)
        if whole.is_served:
            with verifies("group-relations-export.download.before-finished", go_on=True):
                must_be_whole_or_refused(file, whole)


def must_be_whole_or_refused(file: Answer, whole: Answer) -> None:
    file.must_not_break()
    lines = len(lines_of(whole))
    found = len(lines_of(file)) if file.is_served else lines
    must(found >= lines, "a refusal, or the whole file", f"{found} of {lines} lines", file.exchange)
