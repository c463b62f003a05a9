"""Makes the people of a world: users and bots, each with a token that is still good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.target.provisioning.blueprint import Blueprint, is_ours
from conformance.target.provisioning.calls import (
    ABSENT,
    MOMENTARY,
    Calls,
    Entry,
    NotOursError,
    RefusedError,
    Wanted,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.target.provisioning.blueprint import BotToken, Names
    from conformance.target.provisioning.files import Secrets

_DAYS = (364, 29)  # a token may have to expire, and within a year at most
_SCOPES = ["api"]
#: Where the rights of an administrator are asked for with each token.
_SCOPES_IN_ADMIN_MODE = ["api", "admin_mode"]
_BOT_LEVEL = 40


@dataclass(frozen=True, slots=True)
class Person:
    """A user or bot with a token."""

    id: int
    username: str
    token: str
    password: str | None = None


class UsersRefusedError(RefusedError):
    """The target lets no users be made, or no tokens for them: nothing else can be made then."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """Makes users and bots on a target, and finds those that are there already."""

    calls: Calls
    names: Names
    administrator: str
    """The token of an administrator."""
    secrets: Secrets

    def user(self, name: str) -> Person:
        """Return a user with a token; raise RefusedError when the target makes none, NotOursError for another's."""
        beginning = Blueprint.load().username_begins_with.get(name)
        username = self.names.path(f"{beginning}_{name}" if beginning else name)
        password = self.secrets.password(self.names.secret(name, "password"))
        needed = {
            "email": f"{username}@example.com",
            "username": username,
            "name": self.names.shown(name),
            "password": password,
        } | ({"admin": True} if name == "admin" else {})
        wanted = Wanted(
            what=f"user {username}",
            path="/users",
            tokens=[self.administrator],
            bodies=[{**needed, "skip_confirmation": True}, needed],
            look_up=partial(self._find_user, username),
            waits_after=MOMENTARY - ABSENT,
            has_name=True,
        )
        user = wanted.look_up()
        if user is None:
            user = self.calls.make(wanted)
            # Here, where nothing hangs on it yet: what is made next is read at once.
            self.calls.see_lag(wanted.look_up)
        if name == "admin":
            self._require_administrator(int(user["id"]))
        token = self._token(name, int(user["id"]))
        if name == "admin" and self._is_told_to_be_none(token):
            token = self._token_of_administrator(name, int(user["id"]))
        return Person(int(user["id"]), str(user["username"]), token, password)

    def _require_administrator(self, user_id: int) -> None:
        """Raise RefusedError where a user is told to be none, though that was asked for; untold, it may be one."""
        path = f"/users/{user_id}"

        def is_told_to_be_none() -> bool:
            return (self.calls.find(self.administrator, path) or {}).get("is_admin") is False

        if is_told_to_be_none():
            self.calls.send(self.administrator, "PUT", path, {"admin": True})
            if is_told_to_be_none():
                raise RefusedError(f"POST /users: asked for with admin = true, and GET {path} shows is_admin = false")

    def _is_told_to_be_none(self, token: str) -> bool:
        return self.calls.get(token, "/user").entry.get("is_admin") is False

    def _token_of_administrator(self, name: str, user_id: int) -> str:
        """Return a token that says it is an administrator's, of a user who is one; raise RefusedError without one."""
        variable, place = self.names.secret(name, "token"), f"/users/{user_id}/personal_access_tokens"
        self._revoke_lost(f"/personal_access_tokens?user_id={user_id}", "/personal_access_tokens", user_id)
        issued = self._issue(variable, place, {"scopes": _SCOPES_IN_ADMIN_MODE}, [self.administrator])
        if self._is_told_to_be_none(str(issued["token"])):
            raise RefusedError(f"POST {place}: by a token of an administrator, GET /user shows is_admin = false")
        return str(issued["token"])

    def bot(self, bot: BotToken, place: int, maker: Person) -> Person:
        """Return the bot of the project or group with this id, with a token; raise RefusedError when there is none."""
        path = f"/{bot.kind}s/{place}/access_tokens"
        variable = self.names.secret(bot.name, "token")
        user = (self.calls.find(known, "/user") or {}) if (known := self.secrets.get(variable)) else {}
        if known is None or not user:
            self._revoke_lost(path, path)
            tokens = [maker.token, self.administrator]
            issued = self._issue(variable, path, {"access_level": _BOT_LEVEL}, tokens)
            known, user = issued["token"], {"id": issued.get("user_id")}
            user = self.calls.find(known, "/user") or user
        if user.get("id") is None:
            raise RefusedError(f"POST {path}: the answer does not say which user the token is of")
        return Person(int(user["id"]), str(user.get("username", "")), known)

    def _find_user(self, username: str) -> Entry | None:
        for entry in self.calls.walk(self.administrator, "/users", username=username):
            if str(entry.get("username", "")).lower() == username.lower():
                return require_ours(entry, f"The user {username}")
        return None

    def second_token(self, name: str, person: Person) -> str:
        """Return another token of a user than the first one; raise RefusedError when the target makes none."""
        return self._token(name, person.id, kind="second_token")

    def _token(self, name: str, user_id: int, kind: str = "token") -> str:
        """Return a token of a user: the one that is known, if it is still good, or a new one."""
        variable = self.names.secret(name, kind)
        known = self.secrets.get(variable)
        if known and self.calls.get(known, "/user").entry.get("id") == user_id:
            return known
        if kind == "token":  # the second one is made while the first one is good
            self._revoke_lost(f"/personal_access_tokens?user_id={user_id}", "/personal_access_tokens", user_id)
        issued = self._issue(variable, f"/users/{user_id}/personal_access_tokens", {}, [self.administrator])
        return str(issued["token"])

    def _issue(self, variable: str, path: str, more: Mapping[str, Any], tokens: Sequence[str]) -> Entry:
        base = {"name": self.names.shown("token"), "scopes": _SCOPES, **more}
        today = datetime.now(UTC).date()
        dated = [{**base, "expires_at": (today + timedelta(days=days)).isoformat()} for days in _DAYS]
        wanted = Wanted(what="token", path=path, tokens=tokens, bodies=[*dated, base], look_up=lambda: None)
        issued = self.calls.ensure(wanted)
        if not isinstance(issued.get("token"), str):
            raise RefusedError(f"POST {path}: the answer shows no token")
        self.secrets.keep(variable, issued["token"])
        return issued

    def _revoke_lost(self, listing: str, place: str, user_id: int | None = None) -> list[Entry]:
        """End the tokens that were made here and whose value is lost, as far as the target lists them."""
        path, _, query = listing.partition("?")
        asked = dict([query.split("=")]) if query else {}
        try:
            entries = list(self.calls.walk(self.administrator, path, **asked))
        except RefusedError:
            return []
        lost = [
            entry
            for entry in entries
            if is_ours(entry) and not entry.get("revoked") and user_id in {None, entry.get("user_id")}
        ]
        for entry in lost:
            self.calls.remove(self.administrator, f"{place}/{entry['id']}")
        return lost


def require_ours(entry: Entry, what: str) -> Entry:
    """Return an entry that provisioning made; raise NotOursError for any other."""
    if not is_ours(entry):
        raise NotOursError(
            f"{what} exists and was not made by provisioning, so it is left alone. Choose other names with --prefix."
        )
    return entry
