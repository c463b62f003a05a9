"""Variants in the fields of records of any area, and the alterations that make them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from conformance.contract import Contract
from conformance.proof.variants.variant import Variant, transform
from conformance.reference.choices import Choices, TimestampStyle
from conformance.reference.identity import Role
from conformance.reference.repositories import AccessLevel

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import User
    from conformance.reference.presenters import Json
    from conformance.reference.routing import Route
    from conformance.reference.world import Fixture

_ADDITIONS = {
    "POST /projects/:id/job_token_scope/allowlist": "target_group_id",
    "POST /projects/:id/job_token_scope/groups_allowlist": "target_project_id",
}
_SUCCESS = range(200, 300)


def adds_fields_everywhere(service: Service) -> None:
    """Give every object of every response two undocumented fields."""
    transform(service, lambda _, __, answer: _replace_content(answer, _with_extra(answer.content)))


def shows_fields_of_other_records(service: Service) -> None:
    """Show the field for the other kind of target, as null, in the answer to an allowlist addition."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key in _ADDITIONS and isinstance(answer.content, dict) and answer.status < 300:  # noqa: PLR2004
            answer.content = {**answer.content, _ADDITIONS[route.key]: None}

    transform(service, change)


def tells_the_last_event(service: Service) -> None:
    """Add the last event to each record, in an extra field that always changes."""
    numbers = itertools.count(1)

    def add(record: Json) -> None:
        event = {"id": next(numbers), "name": f"event {next(numbers)}", "users": [{"id": next(numbers)}]}
        record["last_event"] = {**event, "created_at": service.present.timestamp(service.clock.now())}

    _add_to_records(service, add)


def shows_fields_that_move(service: Service) -> None:
    """Add fields that the text has in other records to each record, with values that always change."""
    numbers = itertools.count(1)

    def add(record: Json) -> None:
        record.setdefault("updated_at", service.present.timestamp(service.clock.now()))
        record.setdefault("state", f"looked at {next(numbers)} times")
        record.setdefault("star_count", next(numbers))
        record.setdefault("message", f"hello {next(numbers)}")

    _add_to_records(service, add)


def moves_values_by_itself(service: Service) -> None:
    """Let the merge status be recalculated, star counts grow, and update times change with every response.

    The entries of an export are such records. Each record also says when it was shown and how many were shown before,
    which the text does not name.
    """
    states = itertools.cycle(("unchecked", "checking", "can_be_merged", "cannot_be_merged_recheck"))
    stars, shown = itertools.count(1), itertools.count(1)

    def move(record: dict[str, Any]) -> None:
        now = service.present.timestamp(service.clock.now())
        record |= {"as_of": str(datetime.now(tz=UTC)), "times_shown": next(shown)}
        if "merge_status" in record:
            record["merge_status"] = next(states)
        if "star_count" in record:
            record |= {"star_count": next(stars), "last_activity_at": now}
        if {"slug", "relation"} & record.keys() and "updated_at" in record:
            record["updated_at"] = now

    _every_record(service, move)


def leaves_values_null(service: Service) -> None:
    """Have users without an avatar, and no description of a hidden group and of merge requests with system rules."""
    present, approvals, world = service.present, service.merge_request_approvals, service.world
    of_user, of_group, of_merge_request = present.user, present.group, approvals.status
    bare_group = world.one("hidden_group").id
    bare = {world.one(f"{kind}_merge_request").id for kind in ("code_owner", "report_approver")}

    def user_without(user: Any) -> dict[str, Any]:
        return {**of_user(user), "avatar_url": None}

    def group_without(group: Any) -> dict[str, Any]:
        return {**of_group(group), **({"description": None} if group.id == bare_group else {})}

    def status_without(merge_request: Any, viewer: Any) -> dict[str, Any]:
        return {
            **of_merge_request(merge_request, viewer),
            **({"description": None} if merge_request.id in bare else {}),
        }

    present.user = user_without
    present.group = group_without
    approvals.status = status_without


def leaves_ldap_out(service: Service) -> None:
    """Leave out everything about LDAP, like an edition without it."""
    present = service.present.group

    def without(group: Any) -> dict[str, Any]:
        return {name: value for name, value in present(group).items() if not name.startswith("ldap_")}

    service.present.group = without


def shows_code_owner_flag_as_truth_value(service: Service) -> None:
    """Show code_owner_approval_required of a project's branches as the type column says."""
    present = service.present.project_protected_branch

    def shown(branch: Any) -> dict[str, Any]:
        return {**present(branch), "code_owner_approval_required": branch.code_owner_approval_required}

    service.present.project_protected_branch = shown


def protects_branches_for_single_users(service: Service) -> None:
    """Show a user and nobody, in addition to a level, among those who may push to a branch."""
    present = service.present
    of_group, of_project = present.group_protected_branch, present.project_protected_branch

    def with_more(shown: Any, branch: Any) -> Any:
        levels = branch.push_access_levels
        single = AccessLevel(id=levels[0].id + 1_000_000, access_level=Role.MAINTAINER, description="Ada", user_id=1)
        nobody = AccessLevel(id=single.id + 1, access_level=0, description="No one")
        return shown(replace(branch, push_access_levels=(*levels, single, nobody)))

    present.group_protected_branch = partial(with_more, of_group)
    present.project_protected_branch = partial(with_more, of_project)


def gives_everybody_one_name(service: Service) -> None:
    """Show the same name for all users, and one of them as blocked."""
    of_user = service.present.user

    def shown(user: Any) -> dict[str, Any]:
        return {**of_user(user), "name": "Ines Ünal", "state": "blocked" if user.id % 2 else "active"}

    service.present.user = shown


def gives_places_one_name(service: Service) -> None:
    """Give all projects one name and all groups another, also in the profile."""
    known, fixtures = service.identities, service.world.fixtures
    known.projects.update({number: replace(one, name="Copy of") for number, one in known.projects.items()})
    known.groups.update({number: replace(one, name="Team", full_name="Team") for number, one in known.groups.items()})
    of_projects = {one.full_path for one in known.projects.values()}

    def renamed(one: Fixture) -> Fixture:
        name = "Copy of" if one.path in of_projects else "Team"
        return replace(one, extra={**one.extra, "name": name}) if one.path and "name" in one.extra else one

    for place, found in list(fixtures.items()):
        fixtures[place] = tuple(map(renamed, found)) if isinstance(found, tuple) else renamed(found)


def shows_groups_by_the_letter(service: Service) -> None:
    """Show the web_url of groups as a path without a host, as the text writes it."""
    of_group = service.present.group

    def shown(group: Any) -> dict[str, Any]:
        return {**of_group(group), "web_url": f"/groups/{group.full_path}", "avatar_url": "", "visibility": "internal"}

    service.present.group = shown


def signs_pictures(service: Service) -> None:
    """Let the address of each picture hold a signature that is another one each time."""
    numbers = itertools.count(1)

    def sign(record: dict[str, Any]) -> None:
        if "avatar_url" in record:
            record["avatar_url"] = f"https://pictures.example.com/{record.get('id')}.png?signature={next(numbers):08x}"

    _every_record(service, sign)


def keeps_names_of_bots(service: Service) -> None:
    """Show stars for the names of bots."""
    present = service.present.user

    def shown(user: User) -> Json:
        return {**present(user), "name": "****"} if user.bot else present(user)

    service.present.user = shown


def addresses_by_number(service: Service) -> None:
    """Let addresses hold the numbers of what they lead to, and no path."""

    def change(record: dict[str, Any]) -> None:
        if "web_url" in record:
            record["web_url"] = f"https://service.example.com/#/{len(record)}?id={record.get('id')}"
        if "http_url_to_repo" in record:
            record |= {"http_url_to_repo": f"https://git.example.com/{record.get('id')}", "ssh_url_to_repo": ""}

    _every_record(service, change)


def _replace_content(answer: Response, content: object) -> None:
    if answer.has_content:
        answer.content = content


def _with_extra(value: object) -> object:
    if isinstance(value, dict):
        return {**{name: _with_extra(inner) for name, inner in value.items()}, "x_note": {"of": []}, "_links": None}
    if isinstance(value, list):
        return [_with_extra(entry) for entry in value]
    return value


def _add_to_records(service: Service, add: Callable[[Json], None]) -> None:
    """Let a function change each described record in each response; for lists, each entry."""
    described = {
        (operation.method, operation.path.replace("{", ":").replace("}", ""))
        for operation in Contract.load().operations(None)
        if operation.area != "versions"
    }

    def change(route: Route, _: Request, answer: Response) -> None:
        if (route.method, route.path) in described and answer.has_content and answer.status in _SUCCESS:
            content = answer.content
            for record in content if isinstance(content, list) else [content]:
                if isinstance(record, dict):
                    add(record)
            answer.content = content

    transform(service, change)


def _every_record(service: Service, change: Callable[[dict[str, Any]], None]) -> None:
    def each(value: object) -> None:
        if isinstance(value, dict):
            change(value)
        for inner in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
            each(inner)

    def changed(_: Route, __: Request, answer: Response) -> None:
        if answer.has_content:
            # Records that are cached between responses must not be changed with this one.
            content = orjson.loads(orjson.dumps(answer.content))
            each(content)
            answer.content = content

    transform(service, changed)


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "nothing-extra",
        "Bodies hold what is described and no more, times come in seconds.",
        replace(_PLAIN, extra_fields=False, timestamps=TimestampStyle.SECONDS, project_in_own_allowlist=False),
    ),
    Variant(
        "extra-fields-everywhere",
        "Every object has more fields than described, those of other records among them.",
        replace(_PLAIN, pagination_totals=False),
        alterations=(adds_fields_everywhere, shows_fields_of_other_records),
    ),
    Variant(
        "nulls-and-truth-values",
        "Some pictures and descriptions are null, LDAP is absent, and projects show a truth value for code owners.",
        replace(_PLAIN, web_url="https://code.example.org/base"),
        alterations=(
            leaves_values_null,
            leaves_ldap_out,
            shows_code_owner_flag_as_truth_value,
            protects_branches_for_single_users,
        ),
    ),
    Variant(
        "places-have-one-name",
        "All projects have one name, and all groups another one: paths alone tell them apart.",
        alterations=(gives_places_one_name,),
    ),
    Variant(
        "values-move",
        "Merge status, stars and times of last changes move between two reads; each record says when it was shown.",
        alterations=(moves_values_by_itself,),
    ),
    Variant(
        "everybody-has-one-name",
        "All people have one name, and half of them are blocked.",
        alterations=(gives_everybody_one_name,),
    ),
    Variant(
        "groups-by-the-letter",
        "Groups have texts where no address is asked for.",
        alterations=(shows_groups_by_the_letter,),
    ),
    Variant(
        "tells-the-last-event",
        "Each record holds a record of what happened last, with an id and a name of its own.",
        alterations=(tells_the_last_event,),
    ),
    Variant(
        "fields-of-others-move",
        "Each record has fields that the text has in others, and these say something else each time.",
        alterations=(shows_fields_that_move,),
    ),
    Variant(
        "pictures-are-signed",
        "Addresses of pictures are signed anew each time, others hold numbers, and bots have stars for names.",
        alterations=(signs_pictures, keeps_names_of_bots, addresses_by_number),
    ),
)
