"""Creates the contents of a world's projects: branches, commits, merge requests, code owners, protected branches."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.target.provisioning.blueprint import Blueprint
from conformance.target.provisioning.calls import UNTIL_KNOWN, Calls, Entry, RefusedError, Wanted, segment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.target.provisioning.accounts import Person
    from conformance.target.provisioning.blueprint import Names, Protection

#: These signs have a meaning in HTML, or need more than one byte; in an answer they must be unchanged.
SIGNS = "<b>R&D</b> \"&amp;\" 'x' é"
_FILE = "changes.md"
_OWNERS = "CODEOWNERS"
_DESCRIPTION = f"Ready for review: {SIGNS}."


@dataclass(frozen=True)
class Contents:
    """Creates the contents of projects. Raises RefusedError when a target refuses, KeyError for missing people."""

    calls: Calls
    names: Names
    administrator: str
    """The token of an administrator."""
    people: Mapping[str, Person]
    """The people created so far, by name."""

    def _branch(self, project: Entry, name: str, token: str, ref: str = "") -> None:
        path = f"/projects/{project['id']}/repository/branches"
        self.calls.ensure(
            Wanted(
                what=f"branch {name}",
                path=path,
                tokens=[token, self.administrator],
                bodies=[{"branch": name, "ref": ref or project["default_branch"]}],
                look_up=partial(self.calls.find, self.administrator, f"{path}/{segment(name)}"),
            )
        )

    def merge_request(self, name: str, project: Entry) -> Entry:
        """Return an open merge request of the blueprint, new or existing, with what is known about its branches.

        `newer_sha` is the commit that was pushed to its branch, if its `sha` did not follow.
        """
        path = f"/projects/{project['id']}"
        pairs = self._branches_of(name, project)
        find = partial(self._find_merge_request, path, pairs)
        found = find()
        if found is None:
            # A committer may not approve, so the author, who approves nothing, makes all commits.
            author = self.people[Blueprint.load().opener_of(name)].token
            self._branches(name, project, author)
            texts = {"title": f"{self.names.title(name.replace('_', ' '))}, R&D", "description": _DESCRIPTION}
            is_renamed = name in Blueprint.load().renamed_later
            first = {key: f"{text} (at first)" for key, text in texts.items()} if is_renamed else texts
            bodies = [{"source_branch": source, "target_branch": target, **first} for source, target in pairs]
            found = self.calls.make(
                Wanted(
                    what=f"{name} of {path}",
                    path=f"{path}/merge_requests",
                    tokens=[author],
                    bodies=bodies,
                    look_up=find,
                    waits_after=UNTIL_KNOWN,
                    shows=("id", "iid"),
                )
            )
            if is_renamed:
                own = f"{path}/merge_requests/{found['iid']}"
                self.calls.put(author, own, texts)  # which a target may refuse
                found = self.calls.find(self.administrator, own) or found
        if not found.get("sha"):
            found = self.calls.until(partial(self._with_head, f"{path}/merge_requests/{found['iid']}")) or found
        heads = {}
        if name in Blueprint.load().pushed_to_later:
            found, former = self._pushed_to(found, path, _branch_name(name))
            heads = {"former_sha": former, "target_sha": self._tip(path, project["default_branch"]).get("id")}
            tip = self._tip(path, _branch_name(name)).get("id")
            heads |= {"newer_sha": tip} if tip and found.get("sha") not in {None, tip} else {}
        return {**found, **heads, "project_id": project["id"]}

    def _pushed_to(self, opened: Entry, path: str, branch: str) -> tuple[Entry, Any]:
        """Return a merge request after one more commit, as soon as it shows this; unchanged when it cannot be pushed.

        Also return its branch's HEAD before that, if the service shows it.
        """
        author = self.people["author"].token
        try:
            self._commit(path, branch, author, _file_name(branch, "-later"), f"Another change on {branch}.\n")
        except RefusedError:
            return opened, None
        own, tip = f"{path}/merge_requests/{opened['iid']}", self._tip(path, branch)
        found = self.calls.until(lambda: self._with_head(own, tip.get("id"))) or self._with_head(own) or opened
        former = [one for one in tip.get("parent_ids") or () if isinstance(one, str)]
        return found, former[0] if former else None

    def _tip(self, path: str, branch: str) -> Entry:
        """Return the last commit of a branch; an empty entry when it is not shown."""
        found = self.calls.find(self.administrator, f"{path}/repository/branches/{segment(branch)}") or {}
        commit = found.get("commit")
        return dict(commit) if isinstance(commit, dict) else {}

    def _branches_of(self, name: str, project: Entry) -> list[tuple[str, str]]:
        """Return the pairs of source and target branch that a merge request may have, the preferred one first."""
        own, default = _branch_name(name), project["default_branch"]
        source = Blueprint.load().same_source.get(name)
        # Some targets accept only one merge request from each branch.
        return [*([(_branch_name(source), f"{own}-target")] if source else []), (own, default)]

    def _branches(self, name: str, project: Entry, author: str) -> None:
        """Create the branches of a merge request."""
        own, source = _branch_name(name), Blueprint.load().same_source.get(name)
        if source:
            self._branch(project, f"{own}-target", author)
            self._branch(project, own, author, ref=_branch_name(source))
        else:
            self._branch(project, own, author)
            self._commit(f"/projects/{project['id']}", own, author, _file_name(own), f"Change on {own}.\n")

    def code_owners(self, name: str, project: Entry) -> None:
        """Name the code owners of a merge request's file on the default branch, if that can be pushed to."""
        person = self.people[Blueprint.load().code_owners[name]]
        content = f"/{_file_name(_branch_name(name))} @{person.username}\n"
        path, owner = f"/projects/{project['id']}", self.people["owner"].token
        self._commit(path, project["default_branch"], owner, _OWNERS, content)

    def has_code_owners(self, opened: Entry) -> bool | None:
        """Tell whether the rules of a merge request name its code owners; None if no rules are shown."""
        path = f"/projects/{opened['project_id']}/merge_requests/{opened['iid']}/approval_state"
        # An administrator without a role there may be refused.
        answers = [self.calls.get(token, path) for token in (self.administrator, self.people["maintainer"].token)]
        lists = [rules for answer in answers if isinstance(rules := answer.entry.get("rules"), list)]
        if not lists:
            return None
        return any(rule.get("rule_type") == "code_owner" for rules in lists for rule in rules if isinstance(rule, dict))

    def _with_head(self, path: str, head: str | None = None) -> Entry | None:
        found = self.calls.find(self.administrator, path)
        return found if found and found.get("sha") and head in {None, found["sha"]} else None

    def _find_merge_request(self, path: str, pairs: Sequence[tuple[str, str]]) -> Entry | None:
        for source, target in pairs:
            query = {"state": "opened", "source_branch": source}
            wanted = {**query, "target_branch": target}.items()
            for entry in self.calls.walk(self.administrator, f"{path}/merge_requests", **query):
                if all(entry.get(key) == value for key, value in wanted):
                    return entry
        return None

    def _commit(self, path: str, branch: str, token: str, file: str, content: str) -> None:
        def committed() -> Entry | None:
            entries = self.calls.walk(self.administrator, f"{path}/repository/tree", ref=branch)
            with suppress(RefusedError):  # the repository may not exist yet
                return next((entry for entry in entries if entry.get("name") == file), None)
            return None

        body = {"branch": branch, "content": content, "commit_message": f"Change {file}"}
        target = f"{path}/repository/files/{segment(file)}"
        self.calls.ensure(
            Wanted(
                what=f"commit to {branch}",
                path=target,
                tokens=[token],
                bodies=[body],
                look_up=committed,
                waits_after=UNTIL_KNOWN,
            )
        )

    def protected_branch(self, wanted: Protection, project: Entry) -> Entry:
        """Protect a branch of a project, create the branch if needed, and return the protection."""
        owner = self.people["owner"].token
        path, name = f"/projects/{project['id']}/protected_branches", wanted.branch or project["default_branch"]
        if wanted.branch:
            self._branch(project, name, owner)

        levels = {
            "push_access_level": wanted.push,
            "merge_access_level": wanted.merge,
            "unprotect_access_level": wanted.unprotect,
        }
        found = self.calls.ensure(
            Wanted(
                what=f"protected branch {name}",
                path=path,
                tokens=[owner, self.administrator],
                bodies=[{"name": name, **levels}, {"name": name}],
                look_up=partial(self.calls.first, owner, path, "name", name),
                shows=("id", "name"),
            )
        )
        return {**found, "project_id": project["id"]}


def _branch_name(merge_request: str) -> str:
    """Return the source branch of a merge request; one that is pushed to later has a slash in its name."""
    name = merge_request.replace("_", "-")
    return f"feature/{name}" if merge_request in Blueprint.load().pushed_to_later else name


def _file_name(branch: str, more: str = "") -> str:
    return f"{branch.replace('/', '-')}{more}-{_FILE}"
