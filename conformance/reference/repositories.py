"""What lies in the repositories of projects: commits, branches, protected branches and merge requests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.reference.identity import Role
from conformance.reference.store import Table

if TYPE_CHECKING:
    from datetime import datetime

    from conformance.reference.clock import Clock
    from conformance.reference.identity import Identities, Project, User
    from conformance.reference.store import Store

DEFAULT_BRANCH = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit; `sha` has 40 hexadecimal digits, and so has that of the one before it, `parent`."""

    sha: str
    project_id: int
    branch: str
    message: str
    author_id: int
    created_at: datetime
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch with its HEAD and the paths of its files."""

    project_id: int
    name: str
    sha: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLevel:
    """Who may do something with a protected branch: everybody of a level, or one user, group or key."""

    id: int
    access_level: int
    description: str
    user_id: int | None = None
    group_id: int | None = None
    deploy_key_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedBranch:
    """A protected branch of a project, as approval rules refer to it."""

    id: int
    project_id: int
    name: str
    push_access_levels: tuple[AccessLevel, ...]
    merge_access_levels: tuple[AccessLevel, ...]
    unprotect_access_levels: tuple[AccessLevel, ...]
    code_owner_approval_required: bool = False
    allow_force_push: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """A merge request. Its HEAD is that of its source branch: ask `Repositories.head_of`."""

    id: int
    iid: int
    project_id: int
    author_id: int
    source_branch: str
    target_branch: str
    title: str
    description: str
    created_at: datetime
    updated_at: datetime
    state: str = "opened"
    merge_status: str = "can_be_merged"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommit:
    """What is needed to commit one file to a branch."""

    branch: str
    author: User
    file_path: str
    message: str = "Change a file"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMergeRequest:
    """What is needed to open a merge request."""

    source_branch: str
    title: str
    author: User
    target_branch: str = DEFAULT_BRANCH
    description: str = ""


class Repositories:
    """The repositories of all projects."""

    def __init__(self, store: Store, clock: Clock, identities: Identities) -> None:
        self._store = store
        self._clock = clock
        self._identities = identities
        self.commits: Table[str, Commit] = Table(store)
        self.branches: Table[tuple[int, str], Branch] = Table(store)
        self.protected_branches: Table[int, ProtectedBranch] = Table(store)
        self.merge_requests: Table[tuple[int, int], MergeRequest] = Table(store)  # by project id and iid
        self.code_owners: Table[int, str] = Table(store)  # by project id, what its file of code owners says
        self._last_heads: Table[tuple[int, str], str] = Table(store)  # of removed branches

    def commit(self, project: Project, new: NewCommit) -> Commit:
        """Add a commit with one file. The first commit of a project makes its default branch."""
        number = self._store.next_number("commits")
        known = self.branches.get((project.id, new.branch))
        commit = Commit(
            sha=self._identities.secret(f"commit {number}"),
            project_id=project.id,
            branch=new.branch,
            message=new.message,
            author_id=new.author.id,
            created_at=self._clock.now(),
            parent=known.sha if known else None,
        )
        self.commits[commit.sha] = commit
        files = {*(known.files if known else ()), new.file_path}
        branch = Branch(project.id, new.branch, commit.sha, tuple(sorted(files)))
        self.branches[project.id, new.branch] = branch
        current = self._identities.projects[project.id]
        self._identities.projects[project.id] = replace(
            current, default_branch=current.default_branch or new.branch, last_activity_at=commit.created_at
        )
        return commit

    def create_branch(self, project: Project, name: str, ref: str) -> Branch | None:
        """Create a branch where another branch or a commit stands; None when `ref` names neither."""
        origin = self.branches.get((project.id, ref))
        commit = self.commits.get(ref)
        if origin is None and (commit is None or commit.project_id != project.id):
            return None
        branch = Branch(project.id, name, origin.sha if origin else ref, origin.files if origin else ())
        self.branches[project.id, name] = branch
        return branch

    def remove_branch(self, branch: Branch) -> None:
        """Forget a branch; its merge requests keep their HEAD."""
        self._last_heads[branch.project_id, branch.name] = branch.sha
        del self.branches[branch.project_id, branch.name]

    def protect(self, project: Project, name: str, *, push: int, merge: int, unprotect: int) -> ProtectedBranch:
        """Protect a branch: the least access levels to push, merge and unprotect, such as Role.MAINTAINER."""
        protected = ProtectedBranch(
            id=self._store.next_id("protected_branches"),
            project_id=project.id,
            name=name,
            push_access_levels=(self._level(push),),
            merge_access_levels=(self._level(merge),),
            unprotect_access_levels=(self._level(unprotect),),
        )
        self.protected_branches[protected.id] = protected
        return protected

    def protected_branches_of(self, project: Project) -> list[ProtectedBranch]:
        """Return the protected branches of a project, oldest first."""
        return [branch for branch in self.protected_branches.values() if branch.project_id == project.id]

    def open_merge_request(self, project: Project, new: NewMergeRequest) -> MergeRequest:
        """Open a merge request; both branches must exist."""
        now = self._clock.now()
        merge_request = MergeRequest(
            id=self._store.next_id("merge_requests"),
            iid=self._store.next_number(f"merge_requests/{project.id}"),
            project_id=project.id,
            author_id=new.author.id,
            source_branch=new.source_branch,
            target_branch=new.target_branch,
            title=new.title,
            description=new.description,
            created_at=now,
            updated_at=now,
        )
        self.merge_requests[project.id, merge_request.iid] = merge_request
        return merge_request

    def head_of(self, merge_request: MergeRequest) -> str:
        """Return the sha that the source branch of a merge request points to now, or pointed to at last."""
        place = merge_request.project_id, merge_request.source_branch
        branch = self.branches.get(place)
        return branch.sha if branch else self._last_heads[place]

    def committers_of(self, merge_request: MergeRequest) -> set[int]:
        """Return the ids of the users who committed to the source branch."""
        place = merge_request.project_id, merge_request.source_branch
        return {c.author_id for c in self.commits.values() if (c.project_id, c.branch) == place}

    def _level(self, level: int) -> AccessLevel:
        words = {0: "No one", Role.DEVELOPER: "Developers + Maintainers", Role.MAINTAINER: "Maintainers"}
        return AccessLevel(
            id=self._store.next_id("access_levels"),
            access_level=level,
            description=words.get(level, "Administrators"),
        )
