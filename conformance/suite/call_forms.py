"""The forms in which a call may be made, and the places where a caller without the role may try it as well."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from conformance.http.bodies import object_in
from conformance.suite.arrange import ABSENT
from conformance.suite.context import Unmet, current_run
from conformance.suite.derived import ANONYMOUS, caller_named, is_known, served_caller
from conformance.suite.expectations import Path
from conformance.suite.per_run import PerRun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.contract import Operation
    from conformance.suite.arrange import Arranged, Prepared
    from conformance.suite.expectations import Answer, Caller

#: Reads that need the same role: if one is refused, the caller does not have the role in that place either. The second
#: tells whether the first one has to be refused.
_WITNESSES = {
    "projects": {"getProjectApprovalSettings": "merge_request_approval_setting", "getJobTokenScope": "job_token_scope"},
    "groups": {
        "getGroupApprovalSettings": "merge_request_approval_setting",
        "listGroupApprovalRules": "approval_rules",
    },
}
#: The places: those further inside, and those that everybody may see, where finding them needs no role. For groups,
#: these are the one around the public project, which the profile does not name, so that it is only read there, and one
#: of those that may be named in rules.
_ELSEWHERE = {
    "projects": ("subgroup_project", "public_project"),
    "groups": ("subgroup", "public_project", "second_approver_group"),
}
_PUBLIC = ("public_project", "second_approver_group")
#: Callers whose role in the group around a public project gives them none of the rights there.
_WITH_A_LOW_ROLE = ("reporter", "guest")
_BELOW_EVERY_ROLE = ("developer", "reporter", "guest", "outsider", ANONYMOUS)
#: A developer whose part in the project gives no right to read more. The author of a merge request is none by
#: definition, because whoever writes a profile may have opened it as a maintainer.
_WITH_A_PART = "approver"
#: By actor and path: the answer of such a read; roles do not change within a run.
_TOLD: PerRun[dict[tuple[str, Path], Answer]] = PerRun(dict)


def sent_in_all_forms(prepared: Arranged, caller: Caller) -> list[Answer]:
    """Let an actor make a call by number and by path, in all its forms, and in the places further inside.

    If the actor is a developer who reads, the approver of merge requests reads as well, and is owed no more for that
    role.
    """
    forms = [prepared.sent_by(caller), *(call.sent_by(caller) for call in _in_other_forms(prepared))]
    if _may_have_a_part(prepared, caller):
        forms.append(prepared.sent_by(caller_named(_WITH_A_PART)))
    for call in _elsewhere(prepared, caller):
        forms.append(call.sent_by(caller))
        take_back(call, forms[-1])
    return forms


def take_back(call: Prepared, answer: Answer) -> None:
    """Remove what a call added that should have been refused: it may be listed nowhere, and be added only once."""
    if answer.is_served and call.operation.method == "POST" and isinstance(call.body, dict):
        sent = [value for name, value in call.body.items() if name.startswith("target_")]
        named = [*sent, object_in(answer.exchange.body).get("id")]
        for number in [one for one in named if isinstance(one, int) and not isinstance(one, bool)][:1]:
            served_caller(call.operation).delete(Path(f"{call.path}/{number}"))


def _may_have_a_part(prepared: Arranged, caller: Caller) -> bool:
    """Tell whether a developer reads in the project of the profile, where another one approves merge requests."""
    operation, project = prepared.operation, current_run().profile.first("project")
    is_there = project is not None and prepared.call.path.startswith(f"/projects/{project.id}/")
    is_tried = _WITH_A_PART in {*operation.served, *operation.refused}
    return caller.name == "developer" and operation.is_read and is_there and is_known(_WITH_A_PART) and not is_tried


def _in_other_forms(prepared: Arranged) -> list[Prepared]:
    """Return the other forms of the call: by the path, with its parameters in the query, for a later page."""
    call, by_path = prepared.call, prepared.by_path
    forms = [by_path] if by_path else []
    if prepared.operation.takes_body_in_query and isinstance(call.body, dict):
        single = {name: value for name, value in call.body.items() if not isinstance(value, list)}
        forms.append(replace(call, query={**call.query, **single}, body=ABSENT))
    if prepared.operation.paginated:
        forms.append(replace(call, query={**call.query, "page": 2, "per_page": 1}))
    return forms


def _elsewhere(prepared: Arranged, caller: Caller) -> Iterator[Prepared]:
    """Yield the call for a project or group further inside, and reads of public ones, by the path.

    The profile need not say who has which role there: a place is skipped unless the caller is refused something there
    that needs the role, and somebody else is served the same.
    """
    operation, kind = prepared.operation, prepared.operation.path.split("/")[1]
    witnesses, owner = _WITNESSES.get(kind, {}), operation.owner
    if not witnesses or caller.name not in _BELOW_EVERY_ROLE or owner is None:
        return
    is_witness = operation.id == next(iter(witnesses))
    if is_witness and caller.name not in _WITH_A_LOW_ROLE:
        return
    below = next(path for witness, path in witnesses.items() if witness != operation.id)
    for name in ["public_project"] if is_witness else _ELSEWHERE[kind]:
        place = current_run().profile.first(name)
        is_around = (kind, name) == ("groups", "public_project")
        if place is None or not place.get("path") or not _is_in_question(operation, caller, name, is_around=is_around):
            continue
        full_path = place["path"].rpartition("/")[0] if is_around else place["path"]
        path = Path(f"/{kind}/{quote(full_path, safe='') if is_around else place.id}") / below
        is_below = False
        with suppress(Unmet):  # a target may lack the read that would tell
            is_below = caller.name == ANONYMOUS or _told_once(caller, path).exchange.is_refusal
            is_below = is_below and _told_once(served_caller(operation), path).is_served
        if is_below:
            yield _without_lists(prepared.call.having(owner, full_path))


def _is_in_question(operation: Operation, caller: Caller, name: str, *, is_around: bool) -> bool:
    """Tell whether a caller's right to call an operation in that place is not asked for elsewhere.

    Public things are no more public for callers known elsewhere. Writes can be tried there only if they need nothing
    else that is in the place.
    """
    if name not in _PUBLIC:
        return caller.name != ANONYMOUS
    names = {parameter.name for parameter in operation.path_parameters}
    if not operation.is_read:
        needs_more = operation.method == "DELETE" or names - {"id", "integration_slug"}
        return not (is_around or needs_more) and caller.name in ("outsider", ANONYMOUS)
    if caller.name == ANONYMOUS:  # about public projects there is a test of its own
        return is_around and "outsider" in operation.refused
    is_low = caller.name in _WITH_A_LOW_ROLE and names == {"id"}
    return name == "public_project" and (caller.name == "outsider" or is_low)


def _without_lists(call: Prepared) -> Prepared:
    """Leave lists out of the body of a write: they name people, groups and branches of another place."""
    if not isinstance(call.body, dict):
        return call
    return replace(call, body={name: value for name, value in call.body.items() if not isinstance(value, list)})


def _told_once(caller: Caller, path: Path) -> Answer:
    """Return the answer to an actor at a path; ask only once in a run, unless no answer comes."""
    known = _TOLD()
    if (caller.name, path) not in known or known[caller.name, path].exchange.status is None:
        known[caller.name, path] = caller.get(path)
    return known[caller.name, path]
