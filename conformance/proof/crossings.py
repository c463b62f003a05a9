"""Crossed faults: a fault that acts from the second call on, behind a refusal, in memory, or on older rules only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import parse_yaml
from conformance.proof.reasons import is_one_of, reasons_for
from conformance.reference import create_service
from conformance.reference.errors import ApiError
from conformance.reference.http import Request, Response, error_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from conformance.proof.faults import Apply, Fault
    from conformance.reference import Service
    from conformance.reference.store import Snapshot

_FILE = "crossings.yaml"
_REFUSED, _BROKEN = 400, 500


@dataclass
class Pair:
    """A healthy service and a faulty one with a shared store: each request is answered by one of them."""

    sound: Service
    faulty: Service
    calls: Counter[str] = field(default_factory=Counter)
    """How often each operation was called."""

    def __post_init__(self) -> None:
        """Keep the methods of the healthy service before they are replaced."""
        self._admit = self.sound.access.admit

    @property
    def memory(self) -> Snapshot:
        """The complete state of the service."""
        return self.sound.store.snapshot()

    def remember(self, memory: Snapshot) -> None:
        """Replace the state by another one."""
        self.sound.store.restore(memory)

    def rightly(self, request: Request) -> Response:
        """Answer as the healthy service does."""
        try:
            self._admit(request)
            return request.route.handler(request)
        except ApiError as error:
            return error_response(error, self.sound.choices)

    def wrongly(self, request: Request) -> Response:
        """Answer as the faulty one does."""
        service = self.faulty
        service.store.restore(self.memory)
        scope = {"raw_path": request.raw_path, "query_string": request.query, "headers": request.headers.items()}
        again = Request(service, request.method, service.routes.find(request.method, request.raw_path), scope)
        again.body, again.form = request.body, request.form
        try:
            service.access.admit(again)
            answer = again.route.handler(again)
        except ApiError as error:
            answer = error_response(error, service.choices)
        for transform in service.transformers:
            answer = transform(again.route, again, answer)
        self.remember(service.store.snapshot())
        return answer

    def both(self, request: Request) -> tuple[Response, Response, Snapshot]:
        """Return the right answer, the wrong one, and the state of the faulty service; keep that of the healthy one."""
        before = self.memory
        wrong = self.wrongly(request)
        spoiled = self.memory
        self.remember(before)
        return self.rightly(request), wrong, spoiled


def _is_refused(answer: Response) -> bool:
    return _REFUSED <= answer.status < _BROKEN


def _from_the_second_call(pair: Pair, request: Request) -> Response:
    pair.calls[request.route.key] += 1
    return pair.wrongly(request) if pair.calls[request.route.key] > 1 else pair.rightly(request)


def _breaking(pair: Pair, request: Request) -> Response:
    before = pair.memory
    right, wrong, _ = pair.both(request)
    if _is_refused(right) == _is_refused(wrong):
        return right
    pair.remember(before)
    return Response(_BROKEN)


def _in_memory_only(pair: Pair, request: Request) -> Response:
    right, _, spoiled = pair.both(request)
    pair.remember(spoiled)
    return right


def _behind_a_refusal(pair: Pair, request: Request) -> Response:
    right, wrong, spoiled = pair.both(request)
    if _is_refused(right) and not _is_refused(wrong):
        pair.remember(spoiled)
    return right


def _to_an_older_rule(pair: Pair, request: Request) -> Response:
    number = request.path.get("approval_rule_id", "")
    rules = pair.sound.approval_rules.rules
    own = rules.get(int(number)) if number.isdecimal() else None
    is_older = own is not None and any(one.id > own.id and one.home == own.home for one in rules.values())
    return pair.wrongly(request) if is_older else pair.rightly(request)


#: Requirements that a change of a rule has what was sent, as patterns.
_ABOUT_CHANGES = (
    "*rules.update.approvals-required",
    "*rules.update.approvers-are-lists",
    "*rules.update.group-ids*",
    "*rules.update.groups-are-replaced",
    "*rules.update.leaves-unsent",
    "*rules.update.name",
    "*rules.update.protected-branch-ids",
    "*rules.update.stored",
    "*rules.update.user-ids*",
    "*rules.update.usernames",
    "*rules.update.users-are-replaced",
    "*rules.update.values",
)


@dataclass(frozen=True, slots=True)
class Crossing:
    """One way to derive a fault from another one."""

    name: str
    says: str
    """What the service does, after what the fault says it does."""
    of: frozenset[str]
    """It applies to faults that are seen for these reasons; to all if there are none here."""
    answer: Callable[[Pair, Request], Response]
    seen_as: frozenset[str] = frozenset()
    """For which reasons the new faults may be seen; those of the original fault if there are none here."""

    about: tuple[str, ...] = ()
    """Patterns of requirements: it applies to faults that violate one of these; to all if there are none here."""

    def fits(self, fault: Fault) -> bool:
        """Tell whether a fault can be derived from this one; faults of schemas are never crossed."""
        is_meant = not self.about or is_one_of(fault.requirement, self.about)
        return is_meant and fault.sort in {"written", "rule"} and (not self.of or reasons_for(fault) <= self.of)

    def leaves_out(self, fault: Fault) -> bool:
        """Tell whether the table leaves out a fault to which the crossing could be applied."""
        names, requirements = left_out(self.name)
        return self.fits(fault) and (is_one_of(fault.name, names) or is_one_of(fault.requirement, requirements))


CROSSINGS = (
    Crossing(
        "from the second call",
        "So it does from the second call of an operation on.",
        frozenset(),
        _from_the_second_call,
    ),
    Crossing(
        "breaking",
        "There it answers with a server error instead.",
        frozenset({"served", "refused"}),
        _breaking,
        frozenset({"breaks"}),
    ),
    Crossing(
        "behind a refusal",
        "That call it refuses, and does what was asked.",
        frozenset({"served"}),
        _behind_a_refusal,
        frozenset({"shows"}),
    ),
    Crossing(
        "in memory only",
        "So it does in what it remembers; it answers as it should.",
        frozenset({"shows"}),
        _in_memory_only,
        frozenset({"shows"}),
    ),
    Crossing(
        "to an older rule",
        "So it does where a call names a rule, and a newer one is there beside it.",
        frozenset(),
        _to_an_older_rule,
        about=_ABOUT_CHANGES,
    ),
)


def crossed(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Yield the faults that crossings derive from others, except what the table leaves out."""
    for fault in faults:
        for crossing in CROSSINGS:
            if crossing.fits(fault) and not crossing.leaves_out(fault):
                yield replace(
                    fault,
                    name=f"{fault.name}, {crossing.name}",
                    says=f"{fault.says} {crossing.says}",
                    apply=_crossed(fault.apply, crossing),
                    sort="crossed",
                    crossing=crossing.name,
                    seen_as=crossing.seen_as or reasons_for(fault),
                )


@cache
def left_out(crossing: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the patterns that the table leaves out of a crossing: names of faults, and violated requirements."""
    table: Any = parse_yaml(files("conformance.proof").joinpath(_FILE).read_text(encoding="utf-8"), _FILE)
    own = [entry for entry in table["left_out"] if entry["crossing"] == crossing]
    faults, requirements = (
        tuple(name for entry in own for name in entry.get(what, ())) for what in ("faults", "requirements")
    )
    return faults, requirements


def _crossed(fault: Apply, crossing: Crossing) -> Apply:
    def apply(service: Service) -> None:
        faulty = create_service(service.version, service.choices, service.clock)
        faulty.begin_with(service.beginning, service.worlds)
        fault(faulty)
        pair = Pair(service, faulty)

        def admit(request: Request) -> None:
            answer = crossing.answer(pair, request)
            request.route = replace(request.route, handler=lambda _: answer)

        service.access.admit = admit  # type: ignore[assignment, method-assign] # that is what a fault does

    return apply
