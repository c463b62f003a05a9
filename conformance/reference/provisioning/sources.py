"""The repository of a project: branches, new files, its tree, and protected branches.

Specification: Versioning, row 17.7, for the tree of a missing path.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import ForbiddenError, InvalidError, RejectedError, StatedError, not_found
from conformance.reference.http import Route, created, no_content, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.provisioning import fields
from conformance.reference.repositories import NewCommit
from conformance.reference.versions import SUPPORTED_VERSIONS, Version

if TYPE_CHECKING:
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Project, User
    from conformance.reference.parameters import Parameters
    from conformance.reference.presenters import Json
    from conformance.reference.repositories import Branch, Commit, ProtectedBranch

MISSING_TREE_REFUSED = Version(17, 7)
_LEVELS = (Role.NONE, Role.DEVELOPER, Role.MAINTAINER, 60)  # of pushing, merging and unprotecting
CODE_OWNERS = "CODEOWNERS"


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file ("blob") or folder ("tree") of a repository."""

    path: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """What is needed to protect a branch; `push`, `merge` and `unprotect` are least access levels."""

    name: str
    push: int
    merge: int
    unprotect: int
    allow_force_push: bool
    code_owner_approval_required: bool


class Sources(Behaviour):
    """The repositories, as they can be read and changed from outside."""

    name = "sources"

    def branches(self, project: Project) -> list[Branch]:
        """Return the branches of a project."""
        known = self.service.repositories.branches.values()
        return [branch for branch in known if branch.project_id == project.id]

    def branch(self, project: Project, name: str) -> Branch:
        """Find a branch. Raise NotFoundError."""
        branch = self.service.repositories.branches.get((project.id, name))
        if branch is None:
            raise not_found("Branch")
        return branch

    def create_branch(self, project: Project, name: str, ref: str) -> Branch:
        """Create a branch where another branch or commit stands. Raise RejectedError."""
        if (project.id, name) in self.service.repositories.branches:
            raise RejectedError("Branch already exists")
        branch = self.service.repositories.create_branch(project, name, ref)
        if branch is None:
            raise RejectedError(f"Invalid reference name: {ref}")
        return branch

    def delete_branch(self, project: Project, name: str) -> None:
        """Delete a branch that is neither the default nor a protected one."""
        branch = self.branch(project, name)
        if name == project.default_branch:
            raise RejectedError("The default branch cannot be removed")
        if self.protection_of(project, name) is not None:
            raise ForbiddenError("Protected branch cannot be removed")
        self.service.repositories.remove_branch(branch)

    def commit(self, project: Project, new: NewCommit, content: str, start_branch: str | None) -> None:
        """Commit a new file to a branch, which is made when needed. Raise RejectedError, ForbiddenError."""
        repositories = self.service.repositories
        self.require_push(project, new.author, new.branch)
        known = repositories.branches.get((project.id, new.branch))
        start = known
        if known is None and project.default_branch is not None:
            start = repositories.branches.get((project.id, start_branch or ""))
            if start is None:
                raise RejectedError("You can only create or edit files when you are on a branch")
        if start is not None and new.file_path in start.files:
            raise RejectedError("A file with this name already exists")
        if known is None and start is not None:
            repositories.create_branch(project, new.branch, start.name)
        repositories.commit(project, new)
        if (new.branch, new.file_path) == (self.service.identities.projects[project.id].default_branch, CODE_OWNERS):
            repositories.code_owners[project.id] = content

    def require_push(self, project: Project, user: User, name: str) -> None:
        """Require that a user may push to a branch. Raise ForbiddenError."""
        protection = self.protection_of(project, name)
        if protection is None or not protection.push_access_levels:
            return
        levels = [level.access_level for level in protection.push_access_levels]
        role = self.service.identities.role_in(user, project)
        if not user.admin and not any(Role.NONE < level <= role for level in levels):
            raise ForbiddenError("You are not allowed to push into this branch")

    def tree(self, project: Project, ref: str | None, path: str, *, recursive: bool) -> list[TreeEntry]:
        """Return what lies in a folder.

        Raise NotFoundError for an unknown ref, and StatedError with 404 for a path that is missing from 17.7 on.
        """
        branch = self.service.repositories.branches.get((project.id, ref or project.default_branch or ""))
        if branch is None:
            raise not_found("Tree")
        folder = path.strip("/")
        within = f"{folder}/" if folder else ""
        inside = [file[len(within) :] for file in branch.files if file.startswith(within)]
        if not inside and folder and self.service.version >= MISSING_TREE_REFUSED:
            raise StatedError(404, "404 invalid revision or path Not Found")
        entries: dict[str, str] = {}
        for file in inside:
            parts = file.split("/")
            folders = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
            entries |= dict.fromkeys(folders if recursive else folders[:1], "tree")
            if recursive or not folders:
                entries[file] = "blob"
        listed = sorted(entries.items(), key=lambda entry: (entry[1] != "tree", entry[0]))
        return [TreeEntry(within + name, kind) for name, kind in listed]

    def protection_of(self, project: Project, name: str) -> ProtectedBranch | None:
        """Return the protection of a branch, or None."""
        known = self.service.repositories.protected_branches_of(project)
        return next((branch for branch in known if branch.name == name), None)

    def protect(self, project: Project, new: Protection) -> ProtectedBranch:
        """Protect a branch. Raise DuplicateError when it is protected already."""
        if self.protection_of(project, new.name) is not None:
            raise fields.DuplicateError(f"Protected branch '{new.name}' already exists")
        repositories = self.service.repositories
        protected = repositories.protect(project, new.name, push=new.push, merge=new.merge, unprotect=new.unprotect)
        branch = replace(
            protected,
            allow_force_push=new.allow_force_push,
            code_owner_approval_required=new.code_owner_approval_required,
        )
        repositories.protected_branches[branch.id] = branch
        return branch

    def unprotect(self, project: Project, name: str) -> None:
        """Protect a branch no longer. Raise NotFoundError when it is not protected."""
        branch = self.protection_of(project, name)
        if branch is None:
            raise not_found("Protected Branch")
        del self.service.repositories.protected_branches[branch.id]

    def present_branch(self, project: Project, branch: Branch) -> Json:
        """Present a branch."""
        commit = self.service.repositories.commits[branch.sha]
        return {
            "name": branch.name,
            "default": branch.name == project.default_branch,
            "protected": self.protection_of(project, branch.name) is not None,
            "merged": False,
            "commit": self.present_commit(commit),
        }

    def present_commit(self, commit: Commit) -> Json:
        """Present a commit."""
        author = self.service.identities.users.get(commit.author_id)
        moment = self.service.present.timestamp(commit.created_at)
        return {
            "id": commit.sha,
            "short_id": commit.sha[:8],
            "parent_ids": [commit.parent] if commit.parent else [],
            "title": commit.message.split("\n", 1)[0],
            "message": commit.message,
            "author_name": author.name if author else "",
            "author_email": author.email if author else "",
            "created_at": moment,
            "committed_date": moment,
        }

    def present_entry(self, entry: TreeEntry) -> Json:
        """Present an entry of a tree."""
        return {
            "id": self.service.identities.secret(f"tree {entry.path}"),
            "name": entry.path.rsplit("/", 1)[-1],
            "type": entry.type,
            "path": entry.path,
            "mode": "040000" if entry.type == "tree" else "100644",
        }


def _list_branches(request: Request) -> Response:
    sources, project = request.area(Sources), request.project
    return request.collection(sources.branches(project), lambda branch: sources.present_branch(project, branch))


def _get_branch(request: Request) -> Response:
    sources, project = request.area(Sources), request.project
    return ok(sources.present_branch(project, sources.branch(project, request.path["branch"])))


def _create_branch(request: Request) -> Response:
    sources, project, parameters = request.area(Sources), request.project, request.parameters
    name, ref = fields.branch_name(parameters, "branch"), fields.text(parameters, "ref")
    sources.require_push(project, request.caller, name)
    return created(sources.present_branch(project, sources.create_branch(project, name, ref)))


def _delete_branch(request: Request) -> Response:
    request.area(Sources).delete_branch(request.project, request.path["branch"])
    return no_content()


def _create_file(request: Request) -> Response:
    parameters = request.parameters
    new = NewCommit(
        branch=fields.branch_name(parameters, "branch"),
        author=request.caller,
        file_path=fields.file_path(request.path["file_path"]),
        message=fields.text(parameters, "commit_message", longest=10_000),
    )
    content, start_branch = _content(parameters), parameters.optional_string("start_branch")
    request.area(Sources).commit(request.project, new, content, start_branch)
    return created({"file_path": new.file_path, "branch": new.branch})


def _content(parameters: Parameters) -> str:
    content = parameters.string("content")
    if parameters.optional_choice("encoding", ("text", "base64")) != "base64":
        return content
    try:
        return base64.b64decode(content, validate=True).decode("utf-8", "replace")
    except ValueError as error:
        raise InvalidError("content is invalid", parameter="content") from error


def _tree(request: Request) -> Response:
    sources, parameters = request.area(Sources), request.parameters
    entries = sources.tree(
        request.project,
        parameters.optional_string("ref"),
        parameters.optional_string("path") or "",
        recursive=bool(parameters.optional_boolean("recursive")),
    )
    return request.collection(entries, sources.present_entry)


def _list_protected(request: Request) -> Response:
    protected = request.service.repositories.protected_branches_of(request.project)
    return request.collection(protected, request.service.present.group_protected_branch)


def _get_protected(request: Request) -> Response:
    branch = request.area(Sources).protection_of(request.project, request.path["name"])
    if branch is None:
        raise not_found("Protected Branch")
    return ok(request.service.present.group_protected_branch(branch))


def _protect(request: Request) -> Response:
    parameters = request.parameters
    new = Protection(
        name=fields.text(parameters, "name"),
        push=_level(parameters, "push_access_level"),
        merge=_level(parameters, "merge_access_level"),
        unprotect=_level(parameters, "unprotect_access_level"),
        allow_force_push=bool(parameters.optional_boolean("allow_force_push")),
        code_owner_approval_required=bool(parameters.optional_boolean("code_owner_approval_required")),
    )
    branch = request.area(Sources).protect(request.project, new)
    return created(request.service.present.group_protected_branch(branch))


def _level(parameters: Parameters, name: str) -> int:
    level = parameters.optional_integer(name)
    if level is not None and level not in _LEVELS:
        raise InvalidError(f"{name} does not have a valid value", parameter=name)
    return Role.MAINTAINER if level is None else level


def _unprotect(request: Request) -> Response:
    request.area(Sources).unprotect(request.project, request.path["name"])
    return no_content()


_REPOSITORY = "/projects/:id/repository"
_PROTECTED = "/projects/:id/protected_branches"
_route = partial(Route, subject=Kind.PROJECT)
_read = partial(_route, "GET", least_role=Role.REPORTER)
_list = partial(_read, paginated=SUPPORTED_VERSIONS.first)
_write = partial(_route, least_role=Role.DEVELOPER)
_admin = partial(_route, least_role=Role.MAINTAINER)

AREA = Area(
    Sources,
    (
        _list(f"{_REPOSITORY}/tree", _tree),
        _list(f"{_REPOSITORY}/branches", _list_branches),
        _read(f"{_REPOSITORY}/branches/:branch", _get_branch),
        _write("POST", f"{_REPOSITORY}/branches", _create_branch),
        _write("DELETE", f"{_REPOSITORY}/branches/:branch", _delete_branch),
        _write("POST", f"{_REPOSITORY}/files/:file_path", _create_file),
        _list(_PROTECTED, _list_protected),
        _read(f"{_PROTECTED}/:name", _get_protected),
        _admin("POST", _PROTECTED, _protect),
        _admin("DELETE", f"{_PROTECTED}/:name", _unprotect),
    ),
)
