"""Merge requests: listing, reading, opening and closing them."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.areas.merge_request_approval_rules import MergeRequestApprovalRules
from conformance.reference.errors import RejectedError, not_found
from conformance.reference.http import Route, created, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.provisioning import fields
from conformance.reference.repositories import NewMergeRequest
from conformance.reference.versions import SUPPORTED_VERSIONS

if TYPE_CHECKING:
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Project
    from conformance.reference.presenters import Json
    from conformance.reference.repositories import MergeRequest

_EVENTS = {"close": "closed", "reopen": "opened"}


class MergeRequests(Behaviour):
    """The merge requests, apart from their approvals."""

    name = "merge_requests"

    def of(self, project: Project) -> list[MergeRequest]:
        """Return the merge requests of a project."""
        known = self.service.repositories.merge_requests.values()
        return [merge_request for merge_request in known if merge_request.project_id == project.id]

    def find(self, project: Project, iid: int) -> MergeRequest:
        """Find a merge request by its iid. Raise NotFoundError."""
        merge_request = self.service.repositories.merge_requests.get((project.id, iid))
        if merge_request is None:
            raise not_found("Merge Request")
        return merge_request

    def open(self, project: Project, new: NewMergeRequest) -> MergeRequest:
        """Open a merge request. Raise RejectedError for branches that do not fit, DuplicateError for a second one."""
        branches = self.service.repositories.branches
        for name, branch in (("source_branch", new.source_branch), ("target_branch", new.target_branch)):
            if (project.id, branch) not in branches:
                raise RejectedError("does not exist", parameter=name)
        if new.source_branch == new.target_branch:
            raise RejectedError("You can't use same project/branch for source and target")
        pair = new.source_branch, new.target_branch
        for other in self.of(project):
            if other.state == "opened" and (other.source_branch, other.target_branch) == pair:
                raise fields.DuplicateError(
                    f"Another open merge request already exists for this source branch: !{other.iid}"
                )
        opened = self.service.repositories.open_merge_request(project, new)
        self.ask_code_owners(project, opened)
        return opened

    def ask_code_owners(self, project: Project, merge_request: MergeRequest) -> None:
        """Give a merge request a rule for each line of the project's code owners whose files it adds."""
        repositories, identities = self.service.repositories, self.service.identities
        source, target = (
            set(repositories.branches[project.id, name].files)
            for name in (merge_request.source_branch, merge_request.target_branch)
        )
        for line in repositories.code_owners.get(project.id, "").splitlines():
            pattern, *names = line.split() or [""]
            if pattern and any(fnmatchcase(file, pattern.lstrip("/")) for file in source - target):
                users = (identities.find_username(name.removeprefix("@")) for name in names)
                approvers = tuple(user.id for user in users if user)
                rules = self.service.area(MergeRequestApprovalRules)
                rules.add_system_rule(merge_request, pattern, RuleType.CODE_OWNER, approvers)

    def change(self, merge_request: MergeRequest, **changes: str) -> MergeRequest:
        """Change title, description or state."""
        changed = replace(merge_request, **changes, updated_at=self.service.clock.now())  # type: ignore[arg-type] # one class of values
        self.service.repositories.merge_requests[changed.project_id, changed.iid] = changed
        return changed

    def present(self, merge_request: MergeRequest) -> Json:
        """Present a merge request; `sha` is its HEAD."""
        present, users = self.service.present, self.service.identities.users
        author = users.get(merge_request.author_id)
        return {
            "id": merge_request.id,
            "iid": merge_request.iid,
            "project_id": merge_request.project_id,
            "title": merge_request.title,
            "description": merge_request.description,
            "state": merge_request.state,
            "created_at": present.timestamp(merge_request.created_at),
            "updated_at": present.timestamp(merge_request.updated_at),
            "source_branch": merge_request.source_branch,
            "target_branch": merge_request.target_branch,
            "author": present.user(author) if author else None,
            "merge_status": merge_request.merge_status,
            "sha": self.service.repositories.head_of(merge_request),
        }


def _list(request: Request) -> Response:
    merge_requests = request.area(MergeRequests)
    state = request.parameters.optional_choice("state", ("opened", "closed", "merged", "all")) or "all"
    found = [found for found in merge_requests.of(request.project) if state in {"all", found.state}]
    return request.collection(found, merge_requests.present)


def _get(request: Request) -> Response:
    merge_requests = request.area(MergeRequests)
    found = merge_requests.find(request.project, request.path_id("merge_request_iid"))
    return ok(merge_requests.present(found))


def _open(request: Request) -> Response:
    merge_requests, parameters = request.area(MergeRequests), request.parameters
    new = NewMergeRequest(
        source_branch=parameters.string("source_branch"),
        target_branch=parameters.string("target_branch"),
        title=fields.text(parameters, "title"),
        description=fields.prose(parameters, "description") or "",
        author=request.caller,
    )
    return created(merge_requests.present(merge_requests.open(request.project, new)))


def _change(request: Request) -> Response:
    merge_requests, parameters = request.area(MergeRequests), request.parameters
    found = merge_requests.find(request.project, request.path_id("merge_request_iid"))
    event = parameters.optional_choice("state_event", tuple(_EVENTS))
    description = fields.prose(parameters, "description")
    changes = {
        **({"title": fields.text(parameters, "title")} if parameters.given("title") else {}),
        **({"description": description} if description is not None else {}),
        **({"state": _EVENTS[event]} if event else {}),
    }
    return ok(merge_requests.present(merge_requests.change(found, **changes)))


_ALL = "/projects/:id/merge_requests"
_ONE = f"{_ALL}/:merge_request_iid"
_read = partial(Route, "GET", subject=Kind.PROJECT, least_role=Role.REPORTER)
_write = partial(Route, subject=Kind.PROJECT, least_role=Role.DEVELOPER)

AREA = Area(
    MergeRequests,
    (
        _read(_ALL, _list, paginated=SUPPORTED_VERSIONS.first),
        _read(_ONE, _get),
        _write("POST", _ALL, _open),
        _write("PUT", _ONE, _change),
    ),
)
