"""Issues of a project, and notes on issues and merge requests, which may be confidential.

Specification: Versioning, row 18.0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import ApiError, ForbiddenError, InvalidError, not_found
from conformance.reference.http import Route, created, no_content, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.store import Table
from conformance.reference.versions import SUPPORTED_VERSIONS, Version
from conformance.reference.world import Fixture

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Project, User
    from conformance.reference.presenters import Json
    from conformance.reference.world import World

TOGGLE_UNSUPPORTED = Version(18, 0)
_LONGEST_TITLE = 255
_LONGEST_BODY = 100_000

Noteable = tuple[str, int, int]  # "issues" or "merge_requests", project id and iid


class ToggleUnsupportedError(ApiError):
    """The confidentiality of a note was to be switched where that is no longer supported."""

    choice = "confidentiality_refused_code"
    prefix = "The confidentiality of a note cannot be changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue of a project."""

    id: int
    iid: int
    project_id: int
    author_id: int
    title: str
    description: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note on an issue or merge request; a confidential one is for reporters and above."""

    id: int
    noteable: Noteable
    author_id: int
    body: str
    confidential: bool
    created_at: datetime
    updated_at: datetime


class Notes(Behaviour):
    """All issues and notes."""

    name = "notes"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.issues: Table[tuple[int, int], Issue] = Table(service.store)  # by project id and iid
        self.notes: Table[int, Note] = Table(service.store)

    def seed(self, world: World) -> Mapping[str, Fixture | tuple[Fixture, ...]]:
        """Open an issue with a note in the main project."""
        project = self.service.identities.projects[world.one("project").id]
        author = self.service.identities.users[world.actors["author"].id]
        issue = self.open_issue(project, author, "Explain the first step", "It is not obvious.")
        note = self.add(("issues", project.id, issue.iid), author, "Which one?", confidential=False)
        extra: dict[str, str | int] = {"iid": issue.iid, "project_id": project.id, "note_id": note.id}
        return {"issue": Fixture(issue.id, None, extra)}

    def open_issue(self, project: Project, author: User, title: str, description: str) -> Issue:
        """Open an issue."""
        issue = Issue(
            id=self.service.store.next_id("issues"),
            iid=self.service.store.next_number(f"issues/{project.id}"),
            project_id=project.id,
            author_id=author.id,
            title=title,
            description=description,
            created_at=self.service.clock.now(),
        )
        self.issues[project.id, issue.iid] = issue
        return issue

    def issues_of(self, project: Project) -> list[Issue]:
        """Return the issues of a project."""
        return [issue for issue in self.issues.values() if issue.project_id == project.id]

    def issue(self, project: Project, iid: int) -> Issue:
        """Find an issue by its iid. Raise NotFoundError."""
        issue = self.issues.get((project.id, iid))
        if issue is None:
            raise not_found("Issue")
        return issue

    def add(self, noteable: Noteable, author: User, body: str, *, confidential: bool) -> Note:
        """Write a note."""
        now = self.service.clock.now()
        note = Note(
            id=self.service.store.next_id("notes"),
            noteable=noteable,
            author_id=author.id,
            body=body,
            confidential=confidential,
            created_at=now,
            updated_at=now,
        )
        self.notes[note.id] = note
        return note

    def of(self, noteable: Noteable, role: Role) -> list[Note]:
        """Return the notes that somebody of that role may see."""
        return [n for n in self.notes.values() if n.noteable == noteable and self.is_visible(n, role)]

    def is_visible(self, note: Note, role: Role) -> bool:
        """Say whether somebody of that role may see a note."""
        return not note.confidential or role >= Role.REPORTER

    def require_toggle(self) -> bool:
        """Say whether confidentiality can be switched. Raise ToggleUnsupportedError when trying is refused."""
        if self.service.version < TOGGLE_UNSUPPORTED:
            return True
        if self.service.choices.confidentiality_refused_code is not None:
            raise ToggleUnsupportedError
        return False

    def change(self, note: Note, *, body: str, confidential: bool) -> Note:
        """Change body and confidentiality of a note."""
        changed = replace(note, body=body, confidential=confidential, updated_at=self.service.clock.now())
        self.notes[note.id] = changed
        return changed

    def delete(self, note: Note) -> None:
        """Delete a note."""
        del self.notes[note.id]

    def present_issue(self, issue: Issue) -> Json:
        """Present an issue."""
        return {
            "id": issue.id,
            "iid": issue.iid,
            "project_id": issue.project_id,
            "title": issue.title,
            "description": issue.description,
            "state": "opened",
            "author": self._author(issue.author_id),
            "created_at": self.service.present.timestamp(issue.created_at),
        }

    def present(self, note: Note) -> Json:
        """Present a note."""
        timestamp = self.service.present.timestamp
        return {
            "id": note.id,
            "body": note.body,
            "author": self._author(note.author_id),
            "confidential": note.confidential,
            "internal": note.confidential,
            "noteable_type": "Issue" if note.noteable[0] == "issues" else "MergeRequest",
            "noteable_iid": note.noteable[2],
            "project_id": note.noteable[1],
            "created_at": timestamp(note.created_at),
            "updated_at": timestamp(note.updated_at),
        }

    def _author(self, user_id: int) -> Json | None:
        author = self.service.identities.users.get(user_id)
        return self.service.present.user(author) if author else None


def _list_issues(request: Request) -> Response:
    notes = request.area(Notes)
    return request.collection(notes.issues_of(request.project), notes.present_issue)


def _get_issue(request: Request) -> Response:
    notes = request.area(Notes)
    return ok(notes.present_issue(notes.issue(request.project, request.path_id("issue_iid"))))


def _open_issue(request: Request) -> Response:
    notes = request.area(Notes)
    title = _text(request, "title", _LONGEST_TITLE)
    description = request.parameters.optional_string("description") or ""
    if len(description) > _LONGEST_BODY:
        raise InvalidError("description is too long", parameter="description")
    return created(notes.present_issue(notes.open_issue(request.project, request.caller, title, description)))


def _text(request: Request, name: str, longest: int) -> str:
    text = request.parameters.string(name)
    if not text.strip() or len(text) > longest:
        raise InvalidError(f"{name} is invalid", parameter=name)
    return text


def _noteable(request: Request) -> Noteable:
    if "issue_iid" in request.path:
        issue = request.area(Notes).issue(request.project, request.path_id("issue_iid"))
        return "issues", issue.project_id, issue.iid
    place = request.project.id, request.path_id("merge_request_iid")
    if place not in request.service.repositories.merge_requests:
        raise not_found("Merge Request")
    return "merge_requests", *place


def _role(request: Request) -> Role:
    return request.service.identities.role_in(request.caller, request.project)


def _note(request: Request) -> Note:
    noteable, number = _noteable(request), request.path_id("note_id")
    for note in request.area(Notes).of(noteable, _role(request)):
        if note.id == number:
            return note
    raise not_found("Note")


def _list(request: Request) -> Response:
    notes = request.area(Notes)
    return request.collection(notes.of(_noteable(request), _role(request)), notes.present)


def _get(request: Request) -> Response:
    return ok(request.area(Notes).present(_note(request)))


def _add(request: Request) -> Response:
    notes, parameters = request.area(Notes), request.parameters
    confidential = parameters.optional_boolean("internal")
    if confidential is None:
        confidential = parameters.optional_boolean("confidential")
    if confidential and _role(request) < Role.REPORTER:
        raise ForbiddenError
    body = _text(request, "body", _LONGEST_BODY)
    return created(notes.present(notes.add(_noteable(request), request.caller, body, confidential=bool(confidential))))


def _change(request: Request) -> Response:
    notes, parameters, note = request.area(Notes), request.parameters, _own_note(request)
    confidential = parameters.optional_boolean("confidential")
    if confidential is None or not notes.require_toggle():
        confidential = note.confidential
    elif confidential and _role(request) < Role.REPORTER:
        raise ForbiddenError
    body = _text(request, "body", _LONGEST_BODY) if parameters.given("body") else note.body
    return ok(notes.present(notes.change(note, body=body, confidential=confidential)))


def _delete(request: Request) -> Response:
    request.area(Notes).delete(_own_note(request))
    return no_content()


def _own_note(request: Request) -> Note:
    note = _note(request)
    if note.author_id != request.caller.id and _role(request) < Role.MAINTAINER:
        raise ForbiddenError
    return note


_ISSUES = "/projects/:id/issues"
_ISSUE = f"{_ISSUES}/:issue_iid"
_guest = partial(Route, subject=Kind.PROJECT, least_role=Role.GUEST)
_reporter = partial(Route, subject=Kind.PROJECT, least_role=Role.REPORTER)
_paged = SUPPORTED_VERSIONS.first


def _routes(prefix: str, route: partial[Route]) -> tuple[Route, ...]:
    return (
        route("GET", f"{prefix}/notes", _list, paginated=_paged),
        route("POST", f"{prefix}/notes", _add),
        route("GET", f"{prefix}/notes/:note_id", _get),
        route("PUT", f"{prefix}/notes/:note_id", _change),
        route("DELETE", f"{prefix}/notes/:note_id", _delete),
    )


AREA = Area(
    Notes,
    (
        _guest("GET", _ISSUES, _list_issues, paginated=_paged),
        _guest("POST", _ISSUES, _open_issue),
        _guest("GET", _ISSUE, _get_issue),
        *_routes(_ISSUE, _guest),
        *_routes("/projects/:id/merge_requests/:merge_request_iid", _reporter),
    ),
)
