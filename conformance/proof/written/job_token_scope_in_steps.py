"""Faults of the job token scope that set in after several steps: a thing that returns, or goes with another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import (
    afterwards,
    altering,
    answering,
    around,
    beforehand,
    breaking,
    done_and_refused,
    let_in,
    refusing,
    remembering_lists,
    sent,
)
from conformance.proof.written.job_token_scope import ALLOWLIST, GROUPS, SCOPE
from conformance.reference.errors import NoRouteError
from conformance.reference.http import no_content

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.proof.tampering import Holds
    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group, Project

Numbers = tuple[int, ...]
Json = dict[str, Any]

#: The two lists: what is on them, the area of their requirements, and the address.
LISTS = (("project", "allowlist", ALLOWLIST), ("group", "groups-allowlist", GROUPS))
OTHER = {"project": "group", "group": "project"}


def listed(service: Service, project: Project, kind: str) -> Numbers:
    """Return the numbers of the projects, or groups, on a list."""
    found: Numbers = getattr(service.job_token_scope.of(project), f"{kind}s")
    return found


def keep(service: Service, project: Project, kind: str, numbers: Numbers, *, once: bool = True) -> None:
    """Let a list hold these numbers, each once if that is wanted."""
    scopes, changed = service.job_token_scope, {f"{kind}s": tuple(dict.fromkeys(numbers)) if once else numbers}
    scopes.scopes[project.id] = replace(scopes.of(project), **changed)


def for_each_list(name: str, says: str, rest: str, make: Callable[[Service, str], None]) -> None:
    """Register a fault for both lists; `rest` ends the name of its requirement."""
    for kind, segment, _ in LISTS:

        def apply(service: Service, kind: str = kind) -> None:
            make(service, kind)

        names = {"kind": kind, "other": OTHER[kind]}
        own = "allowlists" if rest == "belong-to-their-project" else segment
        fault(f"job-token-scope.{own}.{rest}")(named(name.format(**names), says.format(**names), apply))


def address_of(kind: str) -> str:
    """Return the address of a list."""
    return next(address for one, _, address in LISTS if one == kind)


def removal_from(kind: str) -> str:
    """Return the operation that removes something from a list."""
    return f"DELETE {address_of(kind)}/:target_{kind}_id"


def target_of(request: Request, kind: str) -> int:
    """Return the number that a call adds or removes."""
    return int(request.path.get(f"target_{kind}_id") or sent(request).get(f"target_{kind}_id", 0))


# -- what was removed --------------------------------------------------------------------------------------------------


def _next_addition_brings_back(service: Service, kind: str) -> None:
    gone: dict[int, list[int]] = {}
    beforehand(
        service.job_token_scope, f"remove_{kind}", lambda project, one: gone.setdefault(project.id, []).append(one.id)
    )

    def bring(_: object, project: Project, __: object) -> None:
        keep(service, project, kind, (*listed(service, project, kind), *gone.pop(project.id, ())))

    afterwards(service.job_token_scope, f"add_{kind}", bring)


for_each_list(
    "removed_{kind}s_return_with_the_next_one",
    "A removed {kind} is on the list again as soon as another one is added.",
    "remove.gone",
    _next_addition_brings_back,
)


def _next_removal_brings_back(service: Service, kind: str) -> None:
    last: dict[int, Numbers] = {}

    def make(remove: Any) -> Any:
        def removing(project: Project, target: Any) -> None:
            before = listed(service, project, kind)
            remove(project, target)
            again = last.get(project.id, ())
            keep(service, project, kind, (*listed(service, project, kind), *(n for n in again if n != target.id)))
            last[project.id] = before

        return removing

    around(service.job_token_scope, f"remove_{kind}", make)


for_each_list(
    "removed_{kind}s_return_with_the_next_removal",
    "Removing a {kind} brings back the one that was removed before.",
    "remove.gone",
    _next_removal_brings_back,
)


def _returning_takes_a_place(service: Service, kind: str) -> None:
    gone: set[tuple[int, int]] = set()
    beforehand(service.job_token_scope, f"remove_{kind}", lambda project, one: gone.add((project.id, one.id)))

    def make(add: Any) -> Any:
        def adding(project: Project, target: Any) -> Any:
            if (project.id, target.id) in gone:
                keep(service, project, kind, listed(service, project, kind)[:-1])
            return add(project, target)

        return adding

    around(service.job_token_scope, f"add_{kind}", make)


for_each_list(
    "returning_{kind}s_take_the_place_of_another",
    "A {kind} that was removed and is added again takes the place of the newest one.",
    "change.leaves-others",
    _returning_takes_a_place,
)


# -- what is there, or is not ------------------------------------------------------------------------------------------


for _kind, _segment, _path in LISTS:

    def _adds_again(service: Service, kind: str = _kind, path: str = _path) -> None:
        breaking(service, f"POST {path}", lambda q: target_of(q, kind) in listed(service, q.project, kind))

    def _removes_nothing(service: Service, kind: str = _kind, path: str = _path) -> None:
        key = removal_from(kind)
        breaking(service, key, lambda q: target_of(q, kind) not in listed(service, q.project, kind))

    fault(f"job-token-scope.{_segment}.add.repeated")(
        named(f"second_addition_of_a_{_kind}_breaks", f"Adding a listed {_kind} causes a server error.", _adds_again)
    )
    fault(f"job-token-scope.{_segment}.remove.absent")(
        named(
            f"removal_of_an_absent_{_kind}_breaks",
            f"Removing a {_kind} that is not listed causes a server error.",
            _removes_nothing,
        )
    )


def _means_the_last(service: Service, kind: str, is_meant: Callable[[str], bool]) -> None:
    def remove(request: Request) -> bool:
        if is_meant(request.path[f"target_{kind}_id"]):
            keep(service, request.project, kind, listed(service, request.project, kind)[:-1])
        return False

    answering(service, removal_from(kind), remove, no_content)


for_each_list(
    "a_word_removes_the_newest_{kind}",
    "Removing a {kind} whose number cannot be read removes the one that was added last.",
    "remove.absent",
    lambda service, kind: _means_the_last(service, kind, lambda number: not number.isdecimal()),
)
for_each_list(
    "a_number_beyond_32_bits_removes_the_newest_{kind}",
    "Removing a {kind} by a number beyond 32 bits removes the one that was added last.",
    "remove.absent",
    lambda service, kind: _means_the_last(service, kind, lambda number: number.isdecimal() and int(number) >= 2**32),
)


def _unknown_one_clears(service: Service, kind: str) -> None:
    def clear(request: Request) -> bool:
        if target_of(request, kind) not in getattr(service.identities, f"{kind}s"):
            keep(service, request.project, kind, ())
        return False

    answering(service, f"POST {address_of(kind)}", clear, no_content)


for_each_list(
    "unknown_{kind}s_clear_the_list",
    "A {kind} that does not exist is refused, and the list is empty afterwards.",
    "add.unknown-target",
    _unknown_one_clears,
)


def _shares_its_memory(service: Service, kind: str) -> None:
    def write(_: object, project: Project, __: object) -> None:
        written = listed(service, project, kind)
        for number, scope in list(service.job_token_scope.scopes.items()):
            theirs: Numbers = getattr(scope, f"{kind}s")
            changed = (*written, *theirs[len(written) :])[: len(theirs)]
            service.job_token_scope.scopes[number] = replace(scope, **{f"{kind}s": changed})

    afterwards(service.job_token_scope, f"add_{kind}", write)


for_each_list(
    "{kind}s_of_all_projects_are_kept_in_one_place",
    "Adding a {kind} writes over what other projects have at the same places of their lists.",
    "belong-to-their-project",
    _shares_its_memory,
)


# -- both lists --------------------------------------------------------------------------------------------------------


def _breaks_on_the_other(service: Service, kind: str) -> None:
    other = OTHER[kind]

    def is_on_the_other(request: Request) -> bool:
        number = target_of(request, kind)
        return number in listed(service, request.project, other) and number not in listed(
            service, request.project, kind
        )

    breaking(service, removal_from(kind), is_on_the_other)


def _removes_from_the_other(service: Service, kind: str) -> None:
    def remove(_: object, project: Project, target: Any) -> None:
        numbers = listed(service, project, OTHER[kind])
        keep(service, project, OTHER[kind], tuple(number for number in numbers if number != target.id))

    afterwards(service.job_token_scope, f"remove_{kind}", remove)


for _kind, _, _ in LISTS:

    def _breaks(service: Service, kind: str = _kind) -> None:
        _breaks_on_the_other(service, kind)

    def _takes_both(service: Service, kind: str = _kind) -> None:
        _removes_from_the_other(service, kind)

    fault("job-token-scope.allowlists.are-separate")(
        named(
            f"removal_of_a_{_kind}_breaks_at_the_other_list",
            f"Removing a {_kind} of which only the number is listed, on the other list, causes a server error.",
            _breaks,
        )
    )
    fault("job-token-scope.allowlists.are-separate")(
        named(
            f"removal_of_a_{_kind}_removes_its_number_from_both_lists",
            f"Removing a {_kind} removes from the other list what has the same number.",
            _takes_both,
        )
    )


def _around(service: Service, number: int | None) -> set[int]:
    """Return the number of a group, and those of the groups in which it lies."""
    found: set[int] = set()
    while number is not None and number in service.identities.groups:
        found.add(number)
        number = service.identities.groups[number].parent_id
    return found


@fault("job-token-scope.allowlists.are-separate")
def groups_take_their_projects_with_them(service: Service) -> None:
    """Removing a group removes its projects from the other list."""

    def remove(_: object, project: Project, group: Group) -> None:
        known = service.identities.projects
        left = (
            n for n in listed(service, project, "project") if group.id not in _around(service, known[n].namespace_id)
        )
        keep(service, project, "project", tuple(left))

    afterwards(service.job_token_scope, "remove_group", remove)


@fault("job-token-scope.allowlists.are-separate")
def projects_of_listed_groups_are_not_added(service: Service) -> None:
    """A project is not listed if the group in which it lies is."""

    def make(add: Any) -> Any:
        def adding(project: Project, target: Project) -> Any:
            is_in = {*listed(service, project, "group")} & _around(service, target.namespace_id)
            return True if is_in else add(project, target)

        return adding

    around(service.job_token_scope, "add_project", make)


@fault("job-token-scope.groups-allowlist.change.leaves-others")
def inner_groups_replace_the_group_around_them(service: Service) -> None:
    """Adding a group removes the group in which it lies from the list."""

    def remove(_: object, project: Project, group: Group) -> None:
        outer = _around(service, group.parent_id)
        keep(service, project, "group", tuple(n for n in listed(service, project, "group") if n not in outer))

    afterwards(service.job_token_scope, "add_group", remove)


# -- other projects ----------------------------------------------------------------------------------------------------


@fault("job-token-scope.allowlists.belong-to-their-project")
def who_removes_a_project_leaves_its_list(service: Service) -> None:
    """A project that removes another one from its list is removed from the list of that one."""

    def remove(_: object, project: Project, target: Project) -> None:
        numbers = listed(service, target, "project")
        keep(service, target, "project", tuple(number for number in numbers if number != project.id))

    afterwards(service.job_token_scope, "remove_project", remove)


@fault("job-token-scope.allowlists.belong-to-their-project")
def who_switches_the_limit_leaves_every_list(service: Service) -> None:
    """A project of which the limit is switched is removed from the lists of all others."""
    limit = service.job_token_scope.limit_inbound

    def switching(project: Project, *, enabled: bool) -> None:
        is_switched = service.job_token_scope.of(project).inbound_enabled is not enabled
        limit(project, enabled=enabled)
        for other in service.identities.projects.values() if is_switched else ():
            numbers = listed(service, other, "project")
            if project.id in numbers:
                keep(service, other, "project", tuple(number for number in numbers if number != project.id))

    service.job_token_scope.limit_inbound = switching  # type: ignore[method-assign]


# -- the limit ---------------------------------------------------------------------------------------------------------


@fault("job-token-scope.switch.off", version="18.0")
def limit_is_switched_off_behind_a_refusal(service: Service) -> None:
    """PATCH refuses to switch the limit off, and switches it off."""
    done_and_refused(service, f"PATCH {SCOPE}", lambda request: sent(request).get("enabled") is False)


@fault("job-token-scope.available")
def settings_are_not_offered(service: Service) -> None:
    """The settings of the scope are answered with 404."""
    refusing(service, f"GET {SCOPE}", lambda _: True, NoRouteError)


def _switching_on(service: Service, name: str) -> None:
    def switch(_: object, project: Project, __: object) -> None:
        scopes = service.job_token_scope
        scopes.scopes[project.id] = replace(scopes.of(project), inbound_enabled=True)

    afterwards(service.job_token_scope, name, switch)


def _breaking_while_off(service: Service, key: str) -> None:
    breaking(service, key, lambda request: not service.job_token_scope.of(request.project).inbound_enabled)


for _kind, _, _path in LISTS:
    for _name, _act, _key in (
        (f"add_{_kind}", "Adding", f"POST {_path}"),
        (f"remove_{_kind}", "Removing", removal_from(_kind)),
    ):

        def _on(service: Service, name: str = _name) -> None:
            _switching_on(service, name)

        def _broken(service: Service, key: str = _key) -> None:
            _breaking_while_off(service, key)

        fault("job-token-scope.leaves-the-rest")(
            named(f"{_act.lower()}_a_{_kind}_switches_the_limit_on", f"{_act} a {_kind} switches the limit on.", _on)
        )
        fault("job-token-scope.leaves-the-rest")(
            named(
                f"{_act.lower()}_a_{_kind}_breaks_while_the_limit_is_off",
                f"{_act} a {_kind} causes a server error while the limit is off.",
                _broken,
            )
        )


# -- what entries show -------------------------------------------------------------------------------------------------


def _entries(service: Service, alter: Callable[[Request, list[Json]], list[Json]]) -> None:
    def altered(request: Request, response: Response) -> None:
        content: Any = response.content
        response.content = alter(request, content)

    altering(service, f"GET {ALLOWLIST}", altered)


@fault("job-token-scope.project-entry.same-everywhere")
def entries_lead_to_the_list(service: Service) -> None:
    """The web_url of an entry depends on the list in which it is shown."""
    _entries(
        service, lambda q, shown: [{**one, "web_url": f"{one['web_url']}?listed_by={q.project.id}"} for one in shown]
    )


@fault("job-token-scope.project-entry.same-everywhere")
def entries_take_the_description_of_the_one_before(service: Service) -> None:
    """An entry without a description shows that of the entry before it."""

    def filled(_: Request, shown: list[Json]) -> list[Json]:
        last, found = None, list[Json]()
        for one in shown:
            last = one["description"] or last
            found.append({**one, "description": last})
        return found

    _entries(service, filled)


@fault("job-token-scope.project-entry.same-everywhere")
def entries_lie_in_the_namespace_of_the_list(service: Service) -> None:
    """The id of an entry's namespace is that of the project to which the list belongs."""
    _entries(
        service,
        lambda q, shown: [{**one, "namespace": {**one["namespace"], "id": q.project.namespace_id}} for one in shown],
    )


# -- who may -----------------------------------------------------------------------------------------------------------


def _by_the_bot(service: Service, key: str) -> Holds:
    """Tell whether a call of this operation has the token of the project that is let in."""
    token = service.world.actors["project_bot"].token.encode()
    return lambda request: request.route.key == key and request.headers.get(b"private-token") == token


@fault("job-token-scope.authorization.without-role")
def bots_may_let_their_project_in(service: Service) -> None:
    """The bot of a project may add it to the list of any other one."""
    let_in(service, _by_the_bot(service, f"POST {ALLOWLIST}"), "maintainer")


@fault("job-token-scope.authorization.without-role")
def bots_remove_their_project(service: Service) -> None:
    """The bot of a project may remove it from the list of any other one."""
    let_in(service, _by_the_bot(service, removal_from("project")), "maintainer")


@fault("job-token-scope.authorization.without-role")
def bots_may_remove_their_project_in_vain(service: Service) -> None:
    """The bot of a project is told that it removed it from the list of another one."""
    is_by_the_bot = _by_the_bot(service, removal_from("project"))
    let_in(service, is_by_the_bot, "maintainer")

    def silence(request: Request) -> None:
        if is_by_the_bot(request):
            request.route = replace(request.route, handler=lambda _: no_content())

    beforehand(service.access, "admit", silence)


# -- several readers and writers ---------------------------------------------------------------------------------------


def _shown_until_the_next_addition(service: Service, kind: str) -> None:
    place = address_of(kind)
    remembering_lists(service, f"GET {place}", added=f"POST {place}", removed=removal_from(kind))


for_each_list(
    "removed_{kind}s_are_shown_to_others",
    "A caller who has read the list of {kind}s is shown what another one removed, until the next addition.",
    "change.shows-to-everybody",
    _shown_until_the_next_addition,
)
