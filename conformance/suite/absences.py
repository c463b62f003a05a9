"""Operations that the target does not have at all: searched before the first test, and again when a test needs one.

An operation counts as absent only if everybody who must be served gets 404, 405 or 501, for every project or group, by
number and by path, and no other answer was ever seen. For a read-only operation, the first look is enough. For a write,
only a call that a test considers correct can decide, because any service may answer 404 to a call that changes nothing,
such as a call about a thing that does not exist. An operation is also absent if its first call gets the page, or the
redirect, that any path gets, unless things that do not exist get it as well.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from conformance.http.bodies import json_in
from conformance.http.exchange import NOT_THERE, next_page
from conformance.results.record import Outcome, Reason
from conformance.results.text import plural
from conformance.suite.exceptions import NotTested, Unmet
from conformance.suite.probes import Probes, must_be_given, short_of_scope
from conformance.suite.served_reads import SHOWS_WHAT_WAS_MADE
from conformance.suite.shown_records import values_under
from conformance.target.ownership import UNUSED_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from conformance.contract import Operation
    from conformance.http.client import Client
    from conformance.http.exchange import Exchange
    from conformance.schema.response_validator import ResponseValidator
    from conformance.target import Profile

#: Answers that say nothing about the operation: a service may check token and role before it looks up the path.
_SAYS_NOTHING = frozenset({401, 403, 429, 502, 503, 504})
#: Writes that a project may forbid. Then any 4xx may refuse them, 404 included.
_MAY_BE_FORBIDDEN = frozenset(
    {"createMergeRequestApprovalRule", "updateMergeRequestApprovalRule", "deleteMergeRequestApprovalRule"}
)
#: Resource below the project -> the setting in it that forbids these writes, and the forbidding value.
_FORBIDDING: Mapping[str, tuple[str, bool]] = {
    "merge_request_approval_setting": ("allow_overrides_to_approver_list_per_merge_request", False),
    "approvals": ("disable_overriding_approvers_per_merge_request", True),
}
#: Methods of calls that need what they name, and that do not remove it.
_KEEPING = ("GET", "PUT")
#: The operation that takes an approval back.
_TAKES_BACK = "unapproveMergeRequest"


class OperationAbsent(Unmet):
    """A test needs an operation that the target does not have. Only the absence itself counts as the fault."""

    outcome = Outcome.NOT_TESTED

    def __init__(self, absence: Absence) -> None:
        """Name the operation."""
        operation = absence.operation
        detail = f"the target does not have {operation.label}"
        super().__init__(Reason.OPERATION_ABSENT, detail, waits_for=operation.success.requirement)


@dataclass(frozen=True, slots=True)
class Absence:
    """An operation that is not there, and the calls that showed it."""

    operation: Operation
    exchanges: tuple[Exchange, ...]

    @property
    def below_the_prefix(self) -> list[Exchange]:
        """The calls where the specification has the operation; others looked for it below another prefix."""
        return [exchange for exchange in self.exchanges if not exchange.call.is_elsewhere]

    @property
    def seen(self) -> str:
        """Describe the answers and who got them."""
        codes = " or ".join(sorted({str(exchange.status) for exchange in self.exchanges}))
        if self.exchanges[0].is_as_anywhere:
            codes += ", as any other path gets it,"
        names = dict.fromkeys(exchange.call.actor.name for exchange in self.exchanges if exchange.call.actor)
        first, *others = dict.fromkeys(exchange.call.path for exchange in self.below_the_prefix)
        elsewhere = f" and at {plural(len(others), 'other path')}" if others else ""
        return f"status {codes} for {', '.join(names)} at {first}{elsewhere}"


class Absences:
    """Knows which operations of a target are not there."""

    def __init__(self, profile: Profile, validator: ResponseValidator, client: Client) -> None:
        """Begin without suspicion: before `look_for`, no operation counts as absent."""
        self._profile = profile
        self._validator = validator
        self._client = client
        self._probes = Probes(profile, client)
        self._suspected: set[str] = set()
        self._unimplemented: set[str] = set()
        """Operations that the target itself calls not implemented, in its answer about a thing that does not exist."""
        self._answered: set[str] = set()
        """Operations that gave an answer of their own."""
        self._served_to: set[tuple[str, str]] = set()
        """By id and name, which operations served which actors."""
        self._asked: set[str] = set()
        self._served_slugs: set[str] = set()
        """Integrations with at least one served call."""
        self._lies_elsewhere = False
        self.found: dict[str, Absence] = {}
        """The absent operations, by id."""
        self.barred: set[str] = set()
        """The methods whose every call gets a page that forbids it, while calls with others get data."""
        self.short_of_scope: set[str] = set()
        """The actors whose every write is refused because of the scope of the token."""
        self._tell: Callable[[Absence], None] = lambda _: None

    def see(self, exchange: Exchange) -> None:
        """Note that an operation gave an answer of its own."""
        status = exchange.status
        if status is None or status in NOT_THERE or status in _SAYS_NOTHING or exchange.is_redirect:
            return
        if _is_about_the_body(exchange) or exchange.is_as_anywhere:
            return
        operation = self._validator.operation_of(exchange.call.method, exchange.call.path)
        self._lies_elsewhere |= exchange.call.is_elsewhere and exchange.is_success
        if operation is not None:
            self._answered.add(operation.id)
            if exchange.is_success and exchange.call.actor is not None:
                self._served_to.add((operation.id, exchange.call.actor.name))
            if exchange.is_success and _names_an_integration(operation):
                self._served_slugs.add(exchange.call.path.rpartition("/")[2])

    def has_served(self, exchange: Exchange) -> bool:
        """Tell whether the operation that was called served the same actor at any time of the run."""
        operation = self._validator.operation_of(exchange.call.method, exchange.call.path)
        actor = exchange.call.actor
        return operation is not None and actor is not None and (operation.id, actor.name) in self._served_to

    # -- before the tests --------------------------------------------------------------------------------------------

    def look_for(self, operations: Iterable[Operation], *, only_reads: bool = False) -> None:
        """Call each operation once, in a way that changes nothing.

        A read-only operation that nobody gets an answer from is absent; a write is only suspected to be absent.
        """
        wanted = [operation for operation in operations if operation.is_read or not only_reads]
        self._probes.learn_what_any_path_gets()
        # Side by side, also where a target answers at once: several operations of a half-built one may never answer.
        with ThreadPoolExecutor(self._client.settings.at_once) as pool, self._client.ending_when_interrupted():
            answered = list(zip(wanted, pool.map(self._probes.first_call, wanted), strict=True))
        is_for_things = self._is_page_for_unknown_things(answered)
        families: dict[str, list[tuple[Operation, Exchange]]] = {}
        for operation, exchange in answered:
            if exchange is None or exchange.status is None:
                continue
            if exchange.is_as_anywhere:
                if _names_what_exists(operation) or not is_for_things:
                    self._asked.add(operation.id)
                    self._suspected.add(operation.id)
                    self._add(operation, [exchange])
                continue
            if _is_telling(operation, exchange):
                self._asked.add(operation.id)
            if exchange.status in NOT_THERE and operation.id not in self._answered:
                self._suspected.add(operation.id)
                if exchange.status == HTTPStatus.NOT_IMPLEMENTED:
                    self._unimplemented.add(operation.id)
                families.setdefault(_collection(operation), []).append((operation, exchange))
                if _always_served(operation):
                    self._conclude(operation, exchange)
        for path, members in families.items():
            self._conclude_family(path, members)
        answers = [exchange for _, exchange in answered if exchange is not None and exchange.status]
        self.barred |= self._probes.barred(answers)
        self.short_of_scope |= short_of_scope(answers)

    def _is_page_for_unknown_things(self, answered: Iterable[tuple[Operation, Exchange | None]]) -> bool:
        """Tell whether a served read gets the page of any path for a project or group that does not exist.

        Then a write about a made-up thing gets it as well, and the operation may be there.
        """
        seen = [exchange for operation, exchange in answered if exchange is not None and operation.is_read]
        served = next((one.call for one in seen if one.is_success and not one.is_as_anywhere), None)
        if served is None or self._client.anywhere.look is None:
            return False
        kind, _, *below = served.path.removeprefix("/").split("/")
        unknown = "/".join(["", kind, str(UNUSED_ID), *below])
        return self._client.perform(replace(served, path=unknown)).is_as_anywhere

    def known(self) -> Mapping[str, list[str]] | None:
        """Return the result of the look, for others on the same target; None when they have to look themselves."""
        if self.found:
            return None
        sets = {"suspected": self._suspected, "unimplemented": self._unimplemented, "answered": self._answered}
        return {name: sorted(found) for name, found in sets.items()}

    def take(self, known: Mapping[str, list[str]]) -> None:
        """Take over the result of somebody else's look."""
        self._probes.learn_what_any_path_gets()
        self._suspected |= {*known["suspected"]}
        self._unimplemented |= {*known["unimplemented"]}
        self._answered |= {*known["answered"]}

    def _conclude_family(self, path: str, members: list[tuple[Operation, Exchange]]) -> None:
        """Treat all methods of a collection and its entries as absent if its list is absent and no addition accepted.

        The same holds when the operation says that it is not implemented, even for a thing that does not exist.
        """
        own = [entry for entry in self._validator.operations if _collection(entry) == path]
        adds = any(must_be_given(entry) and entry.path == path for entry, _ in members)
        says_so = all(exchange.status == HTTPStatus.NOT_IMPLEMENTED for _, exchange in members)
        if (adds or says_so) and len(own) == len(members) and any(entry.id in self.found for entry, _ in members):
            for operation, _ in members:
                if operation.id not in self.found:
                    exchange = self._probes.first_call(operation)
                    if exchange is not None and exchange.status in NOT_THERE:
                        self._add(operation, [exchange])

    @property
    def is_something_there(self) -> bool:
        """Whether at least one of all operations asked is known, below the expected prefix or another one."""
        return bool(self._asked - self._suspected) or self._lies_elsewhere

    @property
    def is_nothing_there(self) -> bool:
        """Whether some operations could be asked, and not one of them is known."""
        return bool(self._asked) and not self.is_something_there

    def tell_of_each(self, tell: Callable[[Absence], None]) -> None:
        """Call a function for each absent operation: those already found and those found later."""
        self._tell = tell
        for absence in self.found.values():
            tell(absence)

    # -- while tests run ---------------------------------------------------------------------------------------------

    def require(self, method: str, path: str) -> None:
        """Raise OperationAbsent when the operation of this call does not exist."""
        if self.found:
            operation = self._validator.operation_of(method, path)
            self.require_operation(operation.id if operation else "")

    def require_operation(self, name: str) -> None:
        """Raise OperationAbsent when this operation does not exist."""
        if name in self.found:
            raise OperationAbsent(self.found[name])

    def seems_unimplemented(self, name: str) -> bool:
        """Tell whether an operation said that it is not implemented, and has given no other answer since."""
        return name in self._unimplemented - self._answered

    def require_answer(self, exchange: Exchange) -> None:
        """Raise OperationAbsent when a call that was considered correct shows that its operation does not exist.

        Everybody else who must be served makes the same call, also by the full path. Raise NotTested when the target
        does not know the integration that is called but knows another one of the profile: then the profile gives a slug
        that the target does not have.
        """
        call = exchange.call
        if exchange.status not in NOT_THERE or call.headers.keys() - {"Content-Type", "Accept-Encoding"}:
            return
        operation = self._validator.operation_of(call.method, call.path)
        if operation is not None and operation.method == "PUT" and _names_an_integration(operation):
            self._require_known(exchange)
        if operation is None:
            return
        is_hidden = self._is_hidden(operation, exchange)
        if is_hidden and operation.method in _KEEPING:
            raise Unmet(Reason.PRECONDITION, f"{call.path} was made, and its list does not show it")
        # What a removal names may be gone by it: that is judged.
        if is_hidden or operation.id not in self._suspected - self._answered:
            return
        if call.actor is not None:
            self._conclude(operation, exchange)
        self.require_operation(operation.id)

    def _is_hidden(self, operation: Operation, exchange: Exchange) -> bool:
        """Tell whether a call got 404 about something that its readable list does not show.

        A half-built service may accept a creation, or an approval, and store nothing: then the 404 is right, and the
        operation that was called is not to blame. Of a list with further pages, one page shows nothing.
        """
        if exchange.status != HTTPStatus.NOT_FOUND:
            return False
        call, (head, _, last) = exchange.call, exchange.call.path.rpartition("/")
        is_integration = _names_an_integration(operation)
        is_of_entry = operation.path.endswith("}") and (is_integration or not operation.is_named_by_fixtures)
        is_set_up_by_it = operation.method == "PUT" and is_integration
        if operation.id == _TAKES_BACK:
            shown = self._client.send(call.actor, "GET", f"{head}/approvals").served_object.get("approved_by")
            last = str(next((actor.id for actor in self._profile.actors.values() if actor == call.actor), None))
        elif is_of_entry and not is_set_up_by_it:
            page = self._client.send(call.actor, "GET", head, query={"per_page": 100})
            shown = page.served_json if next_page(page.headers) is None else None
        else:
            return False
        names = {str(value) for key in ("id", "slug") for value in values_under(key, shown)}
        return isinstance(shown, list) and last not in names

    def _require_known(self, exchange: Exchange) -> None:
        """Raise NotTested when no call about an integration was ever served, and another one is known to exist."""
        head, _, slug = exchange.call.path.rpartition("/")
        if slug in self._served_slugs:
            return
        # A known integration refuses a call without required input in another way, and nothing changes.
        asking = [str(one.get("slug")) for one in self._profile.fixtures.get("integration", ()) if one.get("required")]
        others = [other for other in asking if other != slug]
        is_unknown = slug in asking and not self._is_known(exchange, f"{head}/{slug}")
        if is_unknown and others and not self._is_listed(exchange, head, slug):
            known = next((other for other in others if self._is_known(exchange, f"{head}/{other}")), None)
            if known is not None:
                raise NotTested(
                    Reason.PREREQUISITE_MISSING,
                    f"the target knows the integration {known} and not {slug}, which the profile has under "
                    "integrations: give the slug that the target calls it by, or leave it out",
                )

    def _is_known(self, exchange: Exchange, path: str) -> bool:
        answer = self._client.send(exchange.call.actor, "PUT", path, json_body={})
        return answer.status is not None and answer.status not in NOT_THERE | _SAYS_NOTHING

    def _is_listed(self, exchange: Exchange, path: str, slug: str) -> bool:
        """Tell whether the list shows the integration: then the target knows it, whatever else it answers."""
        listed = self._client.send(exchange.call.actor, "GET", path, query={"per_page": 100})
        return slug in values_under("slug", listed.served_json)

    def of_all(self, areas: Iterable[str]) -> Absence | None:
        """Return an absent operation of these areas if none of their operations ever gave an answer of its own."""
        wanted = {*areas}
        own = [operation.id for operation in self._validator.operations if operation.area in wanted]
        absent = next((self.found[name] for name in own if name in self.found), None)
        return None if self._answered & {*own} else absent

    # -- what it takes to be sure --------------------------------------------------------------------------------------

    def _conclude(self, operation: Operation, exchange: Exchange) -> None:
        """Repeat the call in every other way that must be served; the operation is absent if none of them finds it."""
        if self._may_be_forbidden(operation, exchange):
            return  # the project may allow it at another time
        tried = [exchange]
        for other in self._probes.other_ways(operation, exchange):
            tried.append(other)
            if other.status not in NOT_THERE:
                return
        self._add(operation, tried)

    def _may_be_forbidden(self, operation: Operation, exchange: Exchange) -> bool:
        """Tell whether a readable setting of the project allows the target to refuse the call."""
        if operation.id not in _MAY_BE_FORBIDDEN or exchange.status == HTTPStatus.NOT_IMPLEMENTED:
            return False
        project = "/".join(exchange.call.path.split("/")[:3])
        for below, (setting, value) in _FORBIDDING.items():
            read = self._client.send(exchange.call.actor, "GET", f"{project}/{below}").served_object
            if value in values_under(setting, read):
                return True
        return False

    def _add(self, operation: Operation, tried: list[Exchange]) -> None:
        self.found[operation.id] = Absence(operation, tuple(tried))
        self._tell(self.found[operation.id])


def _is_telling(operation: Operation, exchange: Exchange) -> bool:
    """Tell whether the first call of an operation shows if it is there: 404 about a made-up thing does not."""
    return operation.is_read or must_be_given(operation) or exchange.status not in NOT_THERE


def _names_what_exists(operation: Operation) -> bool:
    """Tell whether the first call of an operation is about things of the profile, and not about a made-up one."""
    return operation.is_named_by_fixtures and (operation.is_read or must_be_given(operation))


def _is_about_the_body(exchange: Exchange) -> bool:
    """Tell whether a body is refused that is no JSON object: a service may read it before it looks up the path."""
    return exchange.is_refusal and bool(exchange.call.body) and not isinstance(json_in(exchange.call.body), dict)


def _always_served(operation: Operation) -> bool:
    """Tell whether a read shows things that always exist without being created, such as settings and lists."""
    is_plain = operation.is_read and operation.is_named_by_fixtures
    return is_plain and operation.id not in SHOWS_WHAT_WAS_MADE and not _names_an_integration(operation)


def _names_an_integration(operation: Operation) -> bool:
    return operation.path.endswith("{integration_slug}")


def _collection(operation: Operation) -> str:
    """Return the path of the list that an operation is about: its own, or the one above its entry."""
    head, _, last = operation.path.rpartition("/")
    return head if last.startswith("{") else operation.path
