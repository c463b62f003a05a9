"""Faults of projects in several groups: by such a path something is answered as done, and is not done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import handling

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service

#: So many groups are around a project whose path is cut.
_DEEP = 3
_SCOPE = "/projects/:id/job_token_scope"
_RULES = "/projects/:id/approval_rules"
_BY_PATH = "conventions.project-id.encoded-subgroup-path"
#: The operations that do nothing: what each is called here, and the requirement by which it is seen.
_WRITES = {
    f"POST {_SCOPE}/allowlist": ("let_projects_in", "job-token-scope.allowlist.add.present"),
    f"DELETE {_SCOPE}/allowlist/:target_project_id": ("put_projects_out", "job-token-scope.allowlist.remove.gone"),
    f"POST {_SCOPE}/groups_allowlist": ("let_groups_in", "job-token-scope.groups-allowlist.add.present"),
    f"DELETE {_SCOPE}/groups_allowlist/:target_group_id": (
        "put_groups_out",
        "job-token-scope.groups-allowlist.remove.gone",
    ),
    f"PATCH {_SCOPE}": ("switch_the_limit", _BY_PATH),
    f"POST {_RULES}": ("add_rules", _BY_PATH),
    f"PUT {_RULES}/:approval_rule_id": ("change_rules", _BY_PATH),
    f"DELETE {_RULES}/:approval_rule_id": ("delete_rules", _BY_PATH),
    "PUT /projects/:id/merge_request_approval_setting": ("change_settings", _BY_PATH),
}


def _undone(key: str) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        def make(handler: Any) -> Any:
            def pretending(request: Any) -> Any:
                if request.path["id"].count("/") < _DEEP:
                    return handler(request)
                before = service.store.snapshot()
                answer = handler(request)
                service.store.restore(before)
                return answer

            return pretending

        handling(service, key, make)

    return apply


for _key, (_what, _requirement) in _WRITES.items():
    _says = f"{_key} is answered and does nothing, if it names a project in several groups by its path."
    fault(_requirement)(named(f"long_paths_{_what}_in_words_alone", _says, _undone(_key)))
