"""Services with different behaviour, as a table of altered calls to a reference: provisioning must work with each."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

from conformance.target.provisioning.calls import Answer, Body, Way
from conformance.target.provisioning.integrations import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def changed(change: Callable[..., Answer]) -> Callable[[Way], Way]:
    def alter(way: Way) -> Way:
        def send(token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
            return change(way, token, method, path, query, body)

        return send

    return alter


def refused(status: int, message: Any = None) -> Answer:
    return Answer(status, None if message is None else {"message": message})


def exists_is_400_without_a_word(way: Way, *call: Any) -> Answer:
    answer = way(*call)
    return refused(400) if answer.status == 409 else answer


def forbidden_is_404(way: Way, *call: Any) -> Answer:
    answer = way(*call)
    return refused(404) if answer.status == 403 else answer


def groups_by_admins_only(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    if (method, path) == ("POST", "/groups") and not way(token, "GET", "/user", {}, None).entry["is_admin"]:
        return refused(403, "403 Forbidden")
    return way(token, method, path, query, body)


def tokens_expire(days: int | None) -> Callable[..., Answer]:
    """Tokens must have an expiry date within a number of days, or must not have one."""

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        if method == "POST" and path.endswith("access_tokens"):
            given = (body or {}).get("expires_at")
            left = (date.fromisoformat(given) - datetime.now(UTC).date()).days if given else None
            if (left is None) is not (days is None) or (left is not None and days is not None and left > days):
                return refused(400, {"expires_at": ["is invalid"]})
        return way(token, method, path, query, body)

    return change


def strict_parameters(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    """Parameters that are not needed are refused."""
    unknown = {"skip_confirmation", "description", "expires_at", "unprotect_access_level", "push_access_level"}
    if method == "POST" and unknown & {*(body or {})} and "merge_requests" not in path:
        return refused(400, "unknown parameter")
    return way(token, method, path, query, body)


def lagging(kind: str, calls: int) -> Callable[..., Answer]:
    """What was just created answers 404 for a number of calls."""
    seen: Counter[str] = Counter()

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        place = "/".join(path.split("/")[:3])
        if kind in path:
            seen[place] += 1
            if seen[place] <= calls:
                return refused(404)
        return way(token, method, path, query, body)

    return change


def roles_count_later(calls: int) -> Callable[..., Answer]:
    """A new member may not write at first: a number of calls of each kind to a project is refused."""
    seen: Counter[str] = Counter()

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        kind = "/".join(path.split("/")[:4])
        if method == "POST" and kind.endswith(("/repository", "/merge_requests")) and "/branches" not in path:
            seen[kind] += 1
            if seen[kind] <= calls:
                return refused(403, "403 Forbidden")
        return way(token, method, path, query, body)

    return change


def reads_behind(seconds: float) -> Callable[..., Answer]:
    """Reads come from a replica that lags behind: new things do not show yet, changed ones show their former state."""
    hidden: list[tuple[float, str, Mapping[str, Any]]] = []
    before: dict[str, tuple[float, Answer]] = {}

    def write(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        old = way(token, "GET", path, {}, None) if method != "POST" else None
        answer = way(token, method, path, query, body)
        until = time.monotonic() + seconds
        if old is not None:
            before[path] = until, old
        elif answer.is_served and "id" in answer.entry:
            hidden.append((until, path, answer.entry))
        return answer

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        if method != "GET":
            return write(way, token, method, path, query, body)
        answer, now, bare = way(token, method, path, query, body), time.monotonic(), path.partition("?")[0]
        if now < before.get(bare, (now, None))[0]:
            return before[bare][1]
        for place, entry in [(place, entry) for until, place, entry in hidden if now < until]:
            if bare == place and isinstance(answer.body, list):
                answer = replace(answer, body=[one for one in answer.body if one.get("id") != entry["id"]])
            names = {str(entry.get(key)) for key in ("id", "iid", "full_path", "path_with_namespace", "name")}
            first = bare.removeprefix(f"{place}/").partition("/")[0].replace("%2F", "/")
            if bare.startswith(f"{place}/") and first in names:
                return refused(404)
        return answer

    return change


def path_is_kept(calls: int) -> Callable[..., Answer]:
    """The path of a deleted group stays taken for a moment."""
    seen: Counter[str] = Counter()

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        if (method, path) == ("POST", "/groups"):
            seen[str((body or {})["path"])] += 1
            if seen[str((body or {})["path"])] <= calls:
                return refused(400, {"path": ["has already been taken"]})
        return way(token, method, path, query, body)

    return change


def small_pages(size: int, *, at_the_end: int | None = None, keyset: bool = False) -> Callable[..., Answer]:
    """Pages are smaller than requested: by number without links and with a refusal at the end, or only by cursor."""

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        bare, _, rest = path.partition("?")
        asked = {**dict(pair.split("=") for pair in rest.split("&") if pair), **query}
        start = int(asked.pop("cursor", 0)) if keyset else (int(asked.pop("page", 1)) - 1) * size
        if keyset and "page" in asked:
            return refused(405)
        asked.pop("per_page", None)
        answer = way(token, method, bare, {**asked, "per_page": 100}, body) if method == "GET" else None
        if answer is None or not isinstance(answer.body, list):
            return way(token, method, path, query, body)
        entries = [*answer.body]
        page = 2
        while 'rel="next"' in answer.headers.get("link", "") and "x-next-page" in answer.headers:
            answer = way(token, method, bare, {**asked, "per_page": 100, "page": page}, body)
            entries, page = [*entries, *answer.body], page + 1
        if at_the_end is not None and start >= len(entries) and start:
            return refused(at_the_end)
        more = keyset and start + size < len(entries)
        kept = "&".join(f"{name}={value}" for name, value in {**asked, "cursor": start + size}.items())
        following = f'<http://x.example.com/api/v4{bare}?{kept}>; rel="next"'
        return Answer(200, entries[start : start + size], {"link": following if more else ""} if keyset else {})

    return change


def only_as_open_as(*levels: str) -> Callable[..., Answer]:
    """Nothing may have a visibility that is more open than this."""

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        wanted = (body or {}).get("visibility")
        if method == "POST" and wanted is not None and wanted not in levels:
            return refused(400, {"visibility_level": [f"{wanted} has been restricted"]})
        return way(token, method, path, query, body)

    return change


KINDS_OF_SIGNS = ("[A-Z]", "[a-z]", "[0-9]", "[^A-Za-z0-9]")


def passwords_of_all_kinds(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    """A password needs upper-case and lower-case letters, a digit and a special character."""
    password = str((body or {}).get("password", ""))
    if (method, path) == ("POST", "/users") and not all(re.search(kind, password) for kind in KINDS_OF_SIGNS):
        return refused(400, {"password": ["must be complex"]})
    return way(token, method, path, query, body)


def admin_mode() -> Callable[..., Answer]:
    """An administrator has the rights of one only with a token that says so."""
    plain: set[str] = set()

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        answer = way(token, method, path, query, body)
        is_issued = method == "POST" and path.endswith("/personal_access_tokens") and answer.is_served
        if is_issued and "admin_mode" not in (body or {})["scopes"]:
            plain.add(answer.entry["token"])
        if path == "/user" and token in plain:
            return Answer(answer.status, {**answer.entry, "is_admin": False}, answer.headers)
        return answer

    return change


def main_is_protected(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    """The default branch of a new project is called trunk and is already protected."""
    if (method, path) == ("POST", "/projects") and (body or {}).get("initialize_with_readme"):
        answer = way(token, method, path, query, {**(body or {}), "default_branch": "trunk"})
        if answer.is_served:
            levels = {"push_access_level": 40, "merge_access_level": 40}
            place = f"/projects/{answer.entry['id']}/protected_branches"
            way(token, "POST", place, {}, {"name": "trunk", **levels})
        return answer
    return way(token, method, path, query, body)


def no_repository_yet(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    """initialize_with_readme is ignored."""
    if (method, path) == ("POST", "/projects"):
        kept = {key: value for key, value in (body or {}).items() if key != "initialize_with_readme"}
        return way(token, method, path, query, kept)
    return way(token, method, path, query, body)


def settings_stand_elsewhere(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    """The settings of an integration are nested deep inside the response."""
    answer = way(token, method, path, query, body)
    if method == "GET" and "/integrations/" in path and "properties" in answer.entry:
        rest = {name: value for name, value in answer.entry.items() if name != "properties"}
        return replace(answer, body={**rest, "own": {"values": answer.entry["properties"]}})
    return answer


def set_up_anew(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    """A change of an integration resets what it does not send, and `active` is refused if it has no effect."""
    place, _, slug = path.rpartition("/")
    if method != "PUT" or not place.endswith("/integrations"):
        return way(token, method, path, query, body)
    if "active" in (body or {}) and not any(kind.active for kind in catalogue() if kind.slug == slug):
        return refused(422)
    before = way(token, "GET", path, {}, None)
    if before.is_served and way(token, method, path, query, body).is_served:
        way(token, "DELETE", path, {}, None)
    return way(token, method, path, query, body)


def inactive_ones_are_not_found(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    """An inactive integration cannot be read."""
    answer = way(token, method, path, query, body)
    is_hidden = method == "GET" and "/integrations/" in path and answer.entry.get("active") is False
    return refused(404) if is_hidden else answer


def flags_show_in_the_list(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    """The single integration shows only its slug; everything else is only in the list of integrations."""
    answer = way(token, method, path, query, body)
    around, _, slug = path.rpartition("/")
    if method != "GET" or not around.endswith("/integrations") or not isinstance(answer.body, dict):
        return answer
    listed = way(token, "GET", around, {"per_page": 100}, None).body or []
    shown = next((entry for entry in listed if entry["slug"] == slug), {"active": None})
    left = {name: value for name, value in answer.body.items() if name == "slug" or name not in shown}
    return replace(answer, body=left)


def in_each_others_way() -> Callable[..., Answer]:
    """Every third integration to be set up is refused, as if another one were being set up."""
    numbers = count(1)

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        is_meant = method == "PUT" and path.split("/")[-2] == "integrations"
        return refused(409) if is_meant and next(numbers) % 3 == 0 else way(token, method, path, query, body)

    return change


def incomplete_like_unknown(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    """An issue tracker needs a user name as well, and incomplete settings have the status of an unknown integration."""
    if method != "PUT" or path.split("/")[-2] != "integrations":
        return way(token, method, path, query, body)
    if path.endswith("/jira") and "username" not in {**way(token, "GET", path, {}, None).entry, **(body or {})}:
        return refused(404)
    answer = way(token, method, path, query, body)
    return refused(404) if answer.status == 400 else answer


def completion_is_on_where_the_group_says_so() -> Callable[..., Answer]:
    """Code completion is off only if both project and group say so."""
    off: set[str] = set()

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        if method == "PUT" and "duo_features_enabled" in (body or {}):
            (off.discard if (body or {})["duo_features_enabled"] else off.add)(path)
            return way(token, method, path, query, body)
        if path == "/code_suggestions/enabled":
            name = str((body or {}).get("project_path")).replace("/", "%2F")
            entry = way(token, "GET", f"/projects/{name}", {}, None).entry
            if entry:
                both = {f"/projects/{entry['id']}", f"/groups/{entry['namespace']['id']}"}
                return refused(403) if both <= off else Answer(200)
        return way(token, method, path, query, body)

    return change


def rules_name_somebody(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
    """A group has one rule for any approver from the start, and every other rule must name somebody."""
    if method == "POST" and path.endswith("/approval_rules") and not (body or {}).get("user_ids"):
        return refused(409, "there is one for anybody already")
    return way(token, method, path, query, body)


def answers_get_lost(every: int) -> Callable[..., Answer]:
    """In regular intervals, the response to a write is lost after the work was done."""
    numbers = count(1)

    def change(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        answer = way(token, method, path, query, body)
        is_lost = method in {"POST", "PUT"} and not path.endswith("access_tokens") and next(numbers) % every == 0
        return Answer(None, problem="connection reset") if is_lost else answer

    return change


class StoppedError(Exception):
    """The machine stops in the middle of a preparation."""


def stopping_after(calls: int) -> Callable[[Way], Way]:
    """Let a number of calls through; the last one is processed, but its response never arrives."""
    numbers = count(1)

    def alter(way: Way) -> Way:
        def send(token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
            answer = way(token, method, path, query, body)
            if next(numbers) >= calls:
                raise StoppedError
            return answer

        return send

    return alter


SERVICES: Mapping[str, Callable[[], Callable[..., Answer]]] = {
    "exists is 400 without a message": lambda: exists_is_400_without_a_word,
    "forbidden reads as 404": lambda: forbidden_is_404,
    "groups are made by administrators": lambda: groups_by_admins_only,
    "tokens expire within a year": lambda: tokens_expire(365),
    "tokens expire within a month": lambda: tokens_expire(30),
    "tokens must not expire": lambda: tokens_expire(None),
    "a parameter too many is refused": lambda: strict_parameters,
    "a new repository is 404 for a moment": lambda: lagging("/repository/", 2),
    "a new role counts a moment later": lambda: roles_count_later(2),
    "a deleted group keeps its path": lambda: path_is_kept(1),
    "pages are smaller than asked for": lambda: small_pages(3),
    "pages end in 404": lambda: small_pages(4, at_the_end=404),
    "pages are by cursor only": lambda: small_pages(3, keyset=True),
    "nothing may be public": lambda: only_as_open_as("private", "internal"),
    "nothing may be more than private": lambda: only_as_open_as("private"),
    "passwords are of all kinds of signs": lambda: passwords_of_all_kinds,
    "administrators say so with each token": admin_mode,
    "the default branch is protected already": lambda: main_is_protected,
    "a new project stays empty": lambda: no_repository_yet,
    "settings stand elsewhere": lambda: settings_stand_elsewhere,
    "inactive integrations are not found": lambda: inactive_ones_are_not_found,
    "integrations are set up anew": lambda: set_up_anew,
    "integrations show their flags in the list": lambda: flags_show_in_the_list,
    "integrations are in each other's way": in_each_others_way,
    "incomplete integrations are like unknown ones": lambda: incomplete_like_unknown,
    "completion is on where the group has it on": completion_is_on_where_the_group_says_so,
    "rules name somebody": lambda: rules_name_somebody,
    "answers get lost": lambda: answers_get_lost(5),
}
