"""Second kinds of faults for requirements with only one kind: mostly calls that cause a server error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from conformance.proof.faults import fault, named
from conformance.proof.tampering import breaking, handling, replacing, sent
from conformance.reference.http import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

_COMPLETIONS = "POST /code_suggestions/completions"
_PROJECT_RULES = "/projects/:id/approval_rules"

#: Requirement -> what causes a server error, by the name of the fault, the operation, and for which calls.
_BREAKS: dict[str, tuple[str, str, Callable[[Request], bool]]] = {
    "code-completion.stream.off": ("a_stream_that_is_off_breaks", _COMPLETIONS, lambda call: "stream" in sent(call)),
    "code-completion.stream.is-off-by-default": (
        "no_word_of_a_stream_breaks",
        _COMPLETIONS,
        lambda call: "stream" not in sent(call),
    ),
    "group-relations-export.schedule.batched.may-be-true": (
        "batches_break",
        "POST /groups/:id/export_relations",
        lambda call: sent(call).get("batched") is True,
    ),
}


def _that_breaks(name: str, key: str, when: Callable[[Request], bool]) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        breaking(service, key, when)

    return named(name, f"{key} causes a server error: {name.replace('_', ' ')}.", apply)


for _requirement, _broken in _BREAKS.items():
    fault(_requirement)(_that_breaks(*_broken))


#: Requirement -> the creation that refuses users which are not a list, but creates a rule without them.
_CREATIONS = {
    "group-approval-rules.create.approvers-are-lists": "POST /groups/:id/approval_rules",
    "merge-request-approvals.rules.create.approvers-are-lists": (
        "POST /projects/:id/merge_requests/:merge_request_iid/approval_rules"
    ),
    "project-approval-rules.create.approvers-are-lists": f"POST {_PROJECT_RULES}",
}


def _that_creates_all_the_same(key: str) -> Callable[[Service], None]:
    def is_wrong(call: Request) -> bool:
        return not isinstance(sent(call).get("user_ids", []), list)

    def make(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def creating(call: Request) -> Response:
            if not is_wrong(call):
                return handler(call)
            call.body = json.dumps({**sent(call), "user_ids": []}).encode()
            handler(call)
            return Response(400)

        return creating

    name = "what_is_no_list_of_users_is_refused_and_creates"
    return named(name, f"{key} refuses the call, but creates a rule.", lambda service: handling(service, key, make))


for _requirement, _key in _CREATIONS.items():
    fault(_requirement)(_that_creates_all_the_same(_key))


@fault("project-approval-rules.update.values", operation="updateProjectApprovalRule")
def answer_to_change_asks_for_99(service: Service) -> None:
    """The answer to a change of a rule has 99 required approvals, whatever was sent."""
    replacing(service, f"PUT {_PROJECT_RULES}/:approval_rule_id", approvals_required=99)


@fault("project-approval-rules.create.applies-to-all-protected-branches.stored")
def flag_is_kept_and_not_answered(service: Service) -> None:
    """The answer to a new rule for all protected branches has the flag off."""
    replacing(service, f"POST {_PROJECT_RULES}", applies_to_all_protected_branches=False)
