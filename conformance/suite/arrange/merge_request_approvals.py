"""Merge request approvals: the rules of a merge request, and who has approved it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.suite.arrange.approval_settings import OVERRIDES, given_no_password, of_project
from conformance.suite.arrange.project_approval_configuration import OVERRIDING
from conformance.suite.arrange.request_examples import Area, RequestExample, Values, left_to_the_next_call
from conformance.suite.arrange.reviews import (
    MANY,
    approvers_of,
    approving,
    created,
    created_for_two,
    essences,
    fresh_name,
    given_withdrawn,
    merge_request_path,
    rule_read_back,
    user_id,
)
from conformance.suite.arrange.rule_lists import (
    delete_added,
    forbid_override_again,
    let_override,
    may_override_for_now,
    names_of_rules,
)
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import Caller, Path, given, project_path
from conformance.suite.per_run import PerRun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.suite.arrange.places import Place


#: The lists in which a rule was created once, so that nothing forbids it.
_OVERRIDABLE: PerRun[set[Path]] = PerRun(set)
#: The lists with a rule that names everybody who may approve, until it is restored.
_FOR_APPROVALS: PerRun[set[Path]] = PerRun(set)


def _merge_request(place: Place) -> Path:
    return merge_request_path(place.fixture("project"), place.fixture("merge_request"))


def _rules(place: Place) -> Path:
    return _merge_request(place) / "approval_rules"


# -- preparation before a call -----------------------------------------------------------------------------------------


def _overriding(keeper: Caller, place: Place) -> Values:
    """Make the merge request accept rules: change the project settings if they do not allow it and a rule is refused.

    If they cannot be changed, a refusal proves nothing.
    """
    rules = _rules(place)
    if rules in _OVERRIDABLE():
        return {}
    if _takes_a_rule(keeper, place):
        if not may_override_for_now(rules):
            _OVERRIDABLE().add(rules)
        return {}
    allowed = let_override(keeper, rules)
    if allowed is None:
        given(
            not _is_forbidden(keeper, place), "the settings of the project let no merge request have rules of its own"
        )
    elif allowed.given_served() and _takes_a_rule(keeper, place):
        return {}
    around = essences(keeper, project_path(place.fixture("project")) / "approval_rules").values()
    most = max((rule["approvals_required"] or 0 for rule in around), default=0)
    given(most <= MANY, f"a rule of the project requires {most} approvals, and one of a merge request may have to, too")
    shown: Any = None
    with suppress(Unmet):
        shown = keeper.read(project_path(place.fixture("project")) / "approvals")
    # Whether the project approval configuration and these settings are the same is open; each may forbid it.
    forbids = isinstance(shown, dict) and shown.get(OVERRIDING) is True
    given(not forbids, f"the project has {OVERRIDING} on")
    return {}


def _is_forbidden(keeper: Caller, place: Place) -> bool:
    """Tell whether the settings of the project, as far as they can be read, forbid rules in merge requests."""
    with suppress(Unmet):
        return not of_project(keeper, place.fixture("project")).values()[OVERRIDES]
    return False


def _takes_a_rule(keeper: Caller, place: Place) -> bool:
    """Tell whether the merge request accepts a rule, which is deleted at once."""
    rules, users = _rules(place), [user_id(caller) for caller in approving(place)]
    answer = keeper.post(rules, {"name": fresh_name(), "approvals_required": MANY, "user_ids": users})
    if answer.is_served and isinstance(answer.json, dict) and "id" in answer.json:
        keeper.delete(rules / answer.json["id"])
    return answer.is_served


def _own_rule(keeper: Caller, place: Place) -> Values:
    """Create a rule with users and groups in the merge request."""
    _overriding(keeper, place)
    users = [user_id(caller) for caller in approving(place)]
    groups = [place.value("approver_group")] if "approver_group" in place.profile.fixtures else []
    rule = created(keeper, _rules(place), user_ids=users, group_ids=groups)
    return {"approval_rule_id": rule["id"]}


def _withdraw_from_outsider(place: Place, path: Path, approved: list[int]) -> None:
    """Remove the approval of an outsider, who should have been refused and would be now, because there is one already.

    Perhaps only the approval was open to the outsider; then a bot resets all.
    """
    actors = place.profile.actors
    outsider, bot = actors.get("outsider"), actors.get("project_bot")
    if outsider is None or outsider.id not in approved:
        return
    is_withdrawn = Caller(current_run(), outsider).post(path / "unapprove").is_served
    if bot is not None and not is_withdrawn:
        Caller(current_run(), bot).put(path / "reset_approvals")


def _approval_by(keeper: Caller, place: Place, *, given_by_all: bool) -> Values:
    """Name everybody who may approve in a rule, and let all of them approve, or none."""
    path, named = _merge_request(place), _FOR_APPROVALS()
    given_no_password(path)
    if _rules(place) not in named:
        _own_rule(keeper, place)
        named.add(_rules(place))
    _withdraw_from_outsider(place, path, approvers_of(keeper, path))
    approved = approvers_of(keeper, path)
    for caller in approving(place):
        if given_by_all and user_id(caller) not in approved:
            caller.post(path / "approve").given_served()
        elif not given_by_all and user_id(caller) in approved:
            given_withdrawn(keeper, path, caller)
    shown = approvers_of(keeper, path)
    given(
        all((user_id(caller) in shown) is given_by_all for caller in approving(place)),
        f"the approvers cannot be brought to {'have' if given_by_all else 'not have'} approved",
    )
    return {}


_approved = partial(_approval_by, given_by_all=True)
_not_approved = partial(_approval_by, given_by_all=False)


def _approvals(keeper: Caller, place: Place) -> list[int]:
    return approvers_of(keeper, _merge_request(place))


def _rules_state(keeper: Caller, place: Place) -> dict[Any, dict[str, Any]]:
    return essences(keeper, _rules(place))


def _several_rules(keeper: Caller, place: Place) -> list[Any]:
    _overriding(keeper, place)
    one = {"user_ids": [place.value("approver.id")]}
    return [created_for_two(keeper, _rules(place), place, **one)["id"] for _ in range(3)]


def _sha_and_no_password(place: Place) -> dict[str, Any]:
    """Send the HEAD if the profile gives it, and no password."""
    sha = place.fixture("merge_request").get("sha")
    return {"sha": sha} if sha else {}


# -- restoring after a call --------------------------------------------------------------------------------------------


def _remember(keeper: Caller, place: Place) -> Mapping[str, Any]:
    rules = _rules(place)
    return {
        "rules": names_of_rules(keeper, rules),
        "approvals": _approvals(keeper, place),
        "may_override": may_override_for_now(rules),
    }


def _put_back(keeper: Caller, place: Place, before: Mapping[str, Any]) -> None:
    """Remove new rules and new approvals; give lost approvals again, if their giver is an actor."""
    path = _merge_request(place)
    _FOR_APPROVALS().discard(_rules(place))
    _withdraw_from_outsider(place, path, _approvals(keeper, place))
    now = _approvals(keeper, place)
    for caller in approving(place):
        if (user_id(caller) in now) != (user_id(caller) in before["approvals"]):
            caller.post(path / ("unapprove" if user_id(caller) in now else "approve"))
    delete_added(keeper, _rules(place), before["rules"])
    if may_override_for_now(_rules(place)) and not before["may_override"]:
        forbid_override_again(keeper, _rules(place)).given_served()


AREA = Area(
    keeper="maintainer",
    remember=_remember,
    put_back=_put_back,
    request_examples={
        "getMergeRequestApprovals": RequestExample(before=_approved),
        "getMergeRequestApprovalState": RequestExample(before=_approved),
        "listMergeRequestApprovalRules": RequestExample(before=_own_rule, fill=_several_rules),
        "createMergeRequestApprovalRule": RequestExample(
            before=_overriding,
            instead={"approvals_required": MANY},
            state=_rules_state,
            read_back=rule_read_back(lambda _: "merge-request-approvals.rules.create.name-and-number", is_new=True),
        ),
        "getMergeRequestApprovalRule": RequestExample(before=_own_rule),
        "updateMergeRequestApprovalRule": RequestExample(
            before=_own_rule,
            instead={"approvals_required": MANY + 1},
            state=_rules_state,
            read_back=rule_read_back(
                lambda sent: (
                    f"merge-request-approvals.rules.update.{'name' if 'name' in sent else 'approvals-required'}"
                )
            ),
        ),
        "deleteMergeRequestApprovalRule": RequestExample(before=_own_rule, state=_rules_state),
        "approveMergeRequest": RequestExample(
            before=_not_approved, body=_sha_and_no_password, state=_approvals, undo=left_to_the_next_call
        ),
        "unapproveMergeRequest": RequestExample(before=_approved, state=_approvals, undo=left_to_the_next_call),
        "resetMergeRequestApprovals": RequestExample(
            before=_approved, state=_approvals, takes_seconds=3, undo=left_to_the_next_call
        ),
    },
)
