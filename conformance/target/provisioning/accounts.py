"""Creates the people of a world: users and bots, each with a valid token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.target.provisioning.blueprint import Blueprint, is_ours
from conformance.target.provisioning.calls import (
    MOMENTARY,
    NOT_OFFERED,
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

_DAYS = (364, 29)  # lifetimes to try: a token may have to expire within a year
_SCOPES = ["api"]
#: The scopes of an administrator's token: some services require one for an administrator's rights.
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
    """The target does not allow users, or tokens for them, to be created; then nothing else can be created."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """Creates users and bots on a target, and finds existing ones."""

    calls: Calls
    names: Names
    administrator: str
    """The token of an administrator."""
    secrets: Secrets

    def user(self, name: str) -> Person:
        """Return a user with a token; raise RefusedError when there is none, NotOursError for another's user."""
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
            waits_after=MOMENTARY - NOT_OFFERED,
            has_name=True,
            shows=("id", "username"),
        )
        user = wanted.look_up()
        if user is not None:
            user = wanted.whole(user)
        else:
            user = self.calls.make(wanted)
            # Measured here, because nothing depends on the user yet, and the next calls read what was created.
            self.calls.see_lag(wanted.look_up)
        if name == "admin":
            self._require_administrator(int(user["id"]))
        token = self.token(name, int(user["id"]))
        if name == "admin" and self._is_told_to_be_none(token):
            token = self._token_of_administrator(name, int(user["id"]))
        return Person(int(user["id"]), str(user["username"]), token, password)

    def _require_administrator(self, user_id: int) -> None:
        """Raise RefusedError when the target says that a user is no administrator although one was requested."""
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
        """Return a token with administrator's rights for an administrator; raise RefusedError when there is none."""
        variable, place = self.names.secret(name, "token"), f"/users/{user_id}/personal_access_tokens"
        self._revoke_lost("/personal_access_tokens", user_id)
        issued = self._issue(variable, place, {"scopes": _SCOPES_IN_ADMIN_MODE}, [self.administrator])
        if self._is_told_to_be_none(str(issued["token"])):
            raise RefusedError(f"POST {place}: by a token of an administrator, GET /user shows is_admin = false")
        return str(issued["token"])

    def bot(self, bot: BotToken, place: int, maker: Person) -> Person:
        """Return the bot, with a token, of the project or group with this id; raise RefusedError when there is none."""
        path = f"/{bot.kind}s/{place}/access_tokens"
        variable = self.names.secret(bot.name, "token")
        user = (self.calls.find(known, "/user") or {}) if (known := self.secrets.get(variable)) else {}
        if known is None or not user:
            self._revoke_lost(path)
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

    def token(self, name: str, user_id: int, kind: str = "token") -> str:
        """Return a token of a user: the known one if it is still valid, or a new one; `kind` tells it from another.

        Raise RefusedError when there is none.
        """
        variable = self.names.secret(name, kind)
        known = self.secrets.get(variable)
        if known and self.calls.get(known, "/user").entry.get("id") == user_id:
            return known
        if kind == "token":  # the second one is made while the first one is good
            self._revoke_lost("/personal_access_tokens", user_id)
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

    def _revoke_lost(self, place: str, user_id: int | None = None) -> None:
        """Revoke tokens that provisioning created and whose values are lost, as far as the target lists them."""
        asked = {"user_id": user_id} if user_id is not None else {}
        try:
            entries = list(self.calls.walk(self.administrator, place, **asked))
        except RefusedError:
            return
        for entry in entries:
            if is_ours(entry) and not entry.get("revoked") and user_id in {None, entry.get("user_id")}:
                self.calls.remove(self.administrator, f"{place}/{entry['id']}")


def require_ours(entry: Entry, what: str) -> Entry:
    """Return an entry that provisioning created; raise NotOursError for any other."""
    if not is_ours(entry):
        raise NotOursError(
            f"{what} exists and was not made by provisioning, so it is left alone. Choose other names with --prefix."
        )
    return entry
