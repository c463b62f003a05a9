"""Records that together are one run: the shards of several machines, or an interrupted run and its continuation."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from conformance.errors import ExitCode, UsageError
from conformance.results.grouping import grouped
from conformance.results.record import (
    Footer,
    Header,
    Latency,
    NetworkUse,
    Notice,
    Reason,
    RunRecord,
    TestEnd,
    TestOutcome,
)
from conformance.results.recorder import encoded
from conformance.results.trust import record_in, trusted_record
from conformance.results.verdicts import RunResult, RunVerdict, add_up

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.results.recorder import Recorder

Row = dict[str, Any]

EMBEDDED = "the embedded reference"

#: Header fields that must be equal in the records of one run, and their names for messages.
_SAME = {
    "suite": "versions of the suite",
    "contract": "contracts",
    "target": "targets",
    "base_url": "addresses",
    "version": "versions",
    "edition": "editions",
    "seed": "seeds",
    "scope": "scopes",
    "undeclared": "declared features",
    "selection": "selections",
    "fail_on": "answers to --fail-on",
    # Reports and attestation of the whole would say of every part what is true only of the first.
    "subjects": "subjects",
    "read_only": "uses of --read-only",
    "drawing": "numbers of generated calls",
}
#: Marks a thing left on the target as restorable: it counts only until a run, or somebody, restores it.
_RESTORE = "conformance restore"
#: Outcomes of tests that need not run again.
_SETTLED = frozenset({TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.UNSTABLE})


@dataclass(frozen=True)
class Part:
    """The record of a part of a run, and its lines as they stand in the file."""

    name: str
    record: RunRecord
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, place: Path) -> Part:
        """Read the record in a file or folder; raise UsageError when there is none, or when it cannot be trusted."""
        file = record_in(place)
        record = trusted_record(file)
        if record.damage:
            raise UsageError(f"{file} is damaged: {record.damage[0]}.")
        with file.open(encoding="utf-8", errors="replace", newline="") as stream:
            # Only the last line may be invalid JSON: the run was cut off while it wrote the line.
            rows = tuple(json.loads(line) for line in stream if line.endswith("\n"))
        return cls(str(place), record, rows)

    @property
    def settled(self) -> frozenset[str]:
        """The tests that have a result."""
        return frozenset(end.test for end in self.record.tests if end.outcome in _SETTLED)

    @property
    def own(self) -> frozenset[str]:
        """The tests that were not left to another shard."""
        others = {end.test for end in self.record.tests if (end.detail or "").startswith(Reason.ANOTHER_SHARD)}
        return frozenset(test for entry in self.record.plan for test in entry.tests if test not in others)

    def lines_of(self, tests: Collection[str]) -> Iterator[str]:
        """Yield the lines that some tests wrote."""
        for row in self.rows:
            # A missing operation is detected before the first test, so its lines belong to no test.
            is_before = row.get("reason") == Reason.OPERATION_ABSENT and row["kind"] == "check"
            if row["kind"] in ("check", "item", "test") and row["test"] in tests and not is_before:
                yield line_of(row)

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices of this part, and a line that says when it ran."""
        header, footer = self.record.header, self.record.footer
        ended = f"to {footer.ended}, when {footer.detail or 'it ended'}" if footer else "and was cut off"
        told = f"This run was resumed: its first part ran from {header.started} {ended}."
        return (*(line_of(row) for row in self.rows if row["kind"] == "notice"), encoded(Notice(told)))

    def followed_by(self, footer: Footer) -> Footer:
        """Return the footer of this part and its continuation; `footer` already counts the requests of both."""
        before = self.record.footer
        if before is None:
            return footer
        return replace(
            footer,
            seconds=round(before.seconds + footer.seconds, 3),
            drawn=dict(Counter(before.drawn or {}) + Counter(footer.drawn or {})),
            network=(before.network or NetworkUse()) + (footer.network or NetworkUse()),
            # When this run began, it tried again to restore what could not be restored then.
            left=tuple(dict.fromkeys((*(what for what in before.left if _RESTORE not in what), *footer.left))),
            contradicted=tuple(dict.fromkeys((*before.contradicted, *footer.contradicted))),
        )

    def requests_of(self, tests: Collection[str]) -> int:
        """Return how many requests some tests sent."""
        return sum(end.requests for end in self.record.tests if end.test in tests)


def line_of(row: Row) -> str:
    """Return a line as it stands in a record."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def require_same_run(name: str, header: Header, other_name: str, other: Header) -> None:
    """Raise UsageError when two records cannot belong to one run."""
    for field, words in _SAME.items():
        one, two = getattr(header, field), getattr(other, field)
        # Each run starts its own embedded reference, so its address does not matter.
        is_reference = EMBEDDED in (header.version_source or "") and EMBEDDED in (other.version_source or "")
        if one != two and not (field == "base_url" and is_reference):
            shown = [" ".join(map(str, value)) if isinstance(value, tuple) else value for value in (one, two)]
            raise UsageError(
                f"{name} and {other_name} are not of one run: their {words} differ, {shown[0] or 'none'} and "
                f"{shown[1] or 'none'}."
            )


def require_same_fixtures(name: str, before: Header, now: Header) -> None:
    """Raise UsageError when actors, projects or groups have other ids than in the run that is resumed."""
    was, is_now = _ids_of(before.profile), _ids_of(now.profile)
    for what, number in was.items():
        if is_now.get(what, number) != number:
            raise UsageError(
                f"The target was made anew since {name} began: {what} had the id {number}, and has {is_now[what]} "
                "now. Begin a new run."
            )


def _ids_of(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the ids of a profile's actors, and of its first project and group."""
    actors, fixtures = profile.get("actors") or {}, profile.get("fixtures") or {}
    found = {f"the {name}": actor.get("id") for name, actor in actors.items()}
    found |= {f"the {kind}": fixtures[kind][0].get("id") for kind in ("project", "group") if fixtures.get(kind)}
    return {what: number for what, number in found.items() if number is not None}


def closed(recorder: Recorder, footer: Footer) -> tuple[RunRecord, RunResult]:
    """Close a record with a footer that has the sums of its lines; return both record and result."""
    result = add_up(replace(recorder.read_back(), footer=footer))
    recorder.close_with(replace(footer, verdict=result.verdict, exit_code=result.exit_code))
    record = recorder.read_back()
    return record, add_up(record)


def merge_into(recorder: Recorder, parts: Sequence[Part]) -> tuple[RunRecord, RunResult]:
    """Write the shards of a run into one record, as one machine would have written it."""
    first = parts[0]
    for row in first.rows:
        if row["kind"] == "header":
            recorder.append(line_of({**_without_shard(row), **_merged(parts)}))
        elif row["kind"] in ("plan", "table", "access"):
            recorder.append(line_of(row))
    taken: set[str] = set()
    ended = [part.own & {end.test for end in part.record.tests} for part in parts]
    for part, its in zip(parts, ended, strict=True):
        # A shard that was cut off at its beginning does not say what belongs to others; what it saw itself is its own.
        of_others = frozenset[str]().union(*ended) - its
        own = part.own - of_others - taken  # what the operator deselected is of every part
        for line in part.lines_of(own):
            recorder.append(line)
        for test in sorted(own - {end.test for end in part.record.tests}):
            recorder.write(TestEnd(test, TestOutcome.NOT_BEGUN, detail=f"{part.name} was cut off before it"))
        taken |= own
    missing = " or ".join(_missing(parts))
    for end in first.record.tests:
        if end.test not in taken:
            recorder.write(replace(end, detail=f"{Reason.ANOTHER_SHARD}: {missing}, which is missing"))
    for line in _said_once(parts):
        recorder.append(line)
    recorder.write_latencies(together(part.record.latencies for part in parts))
    return closed(recorder, _footer(parts))


def require_shards(parts: Sequence[Part]) -> None:
    """Raise UsageError when these are not shards of one run, each named once."""
    first = parts[0]
    taken: dict[str, str] = {}
    for part in parts:
        require_same_run(first.name, first.record.header, part.name, part.record.header)
        if not part.record.header.shard:
            raise UsageError(f"{part.name} is no part of a run: it was not run with --shard.")
        if part.record.plan != first.record.plan:
            raise UsageError(f"{first.name} and {part.name} are not of one run: their plans differ.")
        shard, number = part.record.header.shard, part.record.header.shard.partition("/")[2]
        if number != first.record.header.shard.partition("/")[2]:
            raise UsageError(f"{first.name} and {part.name} are parts of runs with different numbers of shards.")
        if shard in taken:
            raise UsageError(f"{taken[shard]} and {part.name} are both shard {shard}. Name each shard once.")
        taken[shard] = part.name


def _without_shard(header: Row) -> Row:
    own = ("--shard", "--out")
    kept = [word for word in header.get("arguments", ()) if not word.startswith(own)]
    words = [word for word in header.get("command", "").split(" ") if not word.startswith(own)]
    return {
        **{key: value for key, value in header.items() if key not in ("shard", "started_in")},
        "arguments": kept,
        "command": " ".join(words),
    }


def _merged(parts: Sequence[Part]) -> Row:
    """Return what the header of a merged record says of its shards: which they were, and when they ran."""
    told = []
    for part in parts:
        header, footer = part.record.header, part.record.footer
        ended = f"to {footer.ended}" if footer is not None else "and was cut off"
        told.append(f"{header.shard} from {part.name}, which ran from {header.started} {ended}")
    return {"merged": told, "started": min(part.record.header.started for part in parts)}


def _said_once(parts: Sequence[Part]) -> Iterator[str]:
    """Yield the lines of shards that belong to no single test: notices and missing operations, each once."""
    lines = [line_of({"kind": "notice", "text": f"Shard {shard} is missing."}) for shard in _missing(parts)]
    absent: set[str] = set()
    for row in (row for part in parts for row in part.rows):
        if row["kind"] == "notice":
            lines.append(line_of(row))
        elif row["kind"] == "check" and row.get("reason") == Reason.OPERATION_ABSENT:
            if row["requirement"] not in absent:
                lines.append(line_of(row))
            absent.add(row["requirement"])
    yield from dict.fromkeys(lines)


def _missing(parts: Sequence[Part]) -> list[str]:
    """Return the shards that were not given, such as `3/8`."""
    number = int(parts[0].record.header.shard.partition("/")[2])
    given = {part.record.header.shard for part in parts}
    return [shard for shard in (f"{count}/{number}" for count in range(1, number + 1)) if shard not in given]


def together(parts: Iterable[Iterable[Latency]]) -> tuple[Latency, ...]:
    """Combine the latencies of all parts: the mean of the medians, weighted by calls, and the worst of the rest."""
    found = grouped((latency.operation, latency) for part in parts for latency in part)
    return tuple(
        Latency(
            operation,
            calls := sum(one.calls for one in each),
            round(sum(one.median * one.calls for one in each) / calls, 1),
            max(one.most for one in each),
        )
        for operation, each in found.items()
    )


def _footer(parts: Sequence[Part]) -> Footer:
    footers = [part.record.footer for part in parts if part.record.footer is not None]
    details = [
        f"{part.name}: {part.record.footer.detail}"
        for part in parts
        if part.record.footer and part.record.footer.detail
    ]
    details += [f"{part.name} was cut off" for part in parts if part.record.footer is None]
    drawn: Counter[str] = sum((Counter(footer.drawn or {}) for footer in footers), Counter())
    return Footer(
        verdict=RunVerdict.INCOMPLETE,
        exit_code=ExitCode.INCOMPLETE,
        ended=max((footer.ended for footer in footers), default=parts[0].record.header.started),
        requests=sum(footer.requests for footer in footers),
        seconds=max((footer.seconds for footer in footers), default=0.0),
        detail="; ".join(details) or None,
        drawn=dict(drawn),
        network=sum((footer.network for footer in footers if footer.network), NetworkUse()),
        could_not_run=bool(footers) and all(footer.could_not_run for footer in footers),
        left=tuple(dict.fromkeys(what for footer in footers for what in footer.left)),
        contradicted=tuple(dict.fromkeys(what for footer in footers for what in footer.contradicted)),
    )
