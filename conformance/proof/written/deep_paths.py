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
#: Requirement -> the operation that does nothing, by its name here.
_WRITES = {
    "job-token-scope.allowlist.add.present": ("let_projects_in", f"POST {_SCOPE}/allowlist"),
    "job-token-scope.allowlist.remove.gone": ("put_projects_out", f"DELETE {_SCOPE}/allowlist/:target_project_id"),
    "job-token-scope.groups-allowlist.add.present": ("let_groups_in", f"POST {_SCOPE}/groups_allowlist"),
    "job-token-scope.groups-allowlist.remove.gone": (
        "put_groups_out",
        f"DELETE {_SCOPE}/groups_allowlist/:target_group_id",
    ),
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


for _requirement, (_what, _key) in _WRITES.items():
    _says = f"{_key} is answered and does nothing, if it names a project in several groups by its path."
    fault(_requirement)(named(f"long_paths_{_what}_in_words_alone", _says, _undone(_key)))
