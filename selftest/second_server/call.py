"""One call: who makes it, what it sends, and the response."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl

from selftest.second_server.store import RefusalError, now
from selftest.second_server.web import Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from selftest.second_server.app import App
    from selftest.second_server.store import Record
    from selftest.second_server.web import Header, Request


NATIVE = "application/vnd.automation+json"

#: Handles a call: it gets the call, and the values of the path parts that begin with a colon.
Handler: TypeAlias = Callable[..., Response]
#: Method, path and handler of an operation.
Route: TypeAlias = tuple[str, str, Handler]


class Params:
    """The parameters of a call: body, or query."""

    def __init__(self, values: Mapping[str, Any], *, loose: bool = False) -> None:
        self.values, self.loose = values, loose

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def raw(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)

    def absent(self, name: str, *, required: bool) -> bool:
        if name in self.values and (self.values[name] is not None or required):
            if self.values[name] is None:
                raise RefusalError(422, f"{name} must not be null")
            return False
        if required:
            raise RefusalError(400, f"{name} has to be given")
        return True

    def integer(
        self, name: str, default: Any = None, least: int | None = None, most: int = 2**53, *, required: bool = False
    ) -> Any:
        if self.absent(name, required=required):
            return default
        value = self.values[name]
        if self.loose and isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,15}", value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise RefusalError(422, f"{name} has to be a whole number")
        if (least is not None and value < least) or value > most:
            raise RefusalError(422, f"{name} is out of bounds")
        return value

    def boolean(self, name: str, default: Any = None, *, required: bool = False) -> Any:
        if self.absent(name, required=required):
            return default
        value = self.values[name]
        if self.loose and value in ("true", "false"):
            value = value == "true"
        if not isinstance(value, bool):
            raise RefusalError(422, f"{name} has to be true or false")
        return value

    def text(
        self, name: str, default: Any = None, most: int = 100000, *, required: bool = False, empty: bool = True
    ) -> Any:
        if self.absent(name, required=required):
            return default
        value = self.values[name]
        if not isinstance(value, str) or len(value) > most:
            raise RefusalError(422, f"{name} has to be a text of {most} characters at most")
        if not empty and not value.strip():
            raise RefusalError(422, f"{name} must not be blank")
        return value

    def integers(self, name: str) -> list[int] | None:
        """None if absent."""
        if self.absent(name, required=False):
            return None
        value = self.values[name]
        if not isinstance(value, list):
            raise RefusalError(422, f"{name} has to be a list")
        return [Params({name: v}, loose=self.loose).integer(name, required=True) for v in value]

    def texts(self, name: str) -> list[str] | None:
        if self.absent(name, required=False):
            return None
        value = self.values[name]
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise RefusalError(422, f"{name} has to be a list of texts")
        return value


class Call:
    """One call, with its caller."""

    def __init__(self, app: App, request: Request, user: Record, token: Record) -> None:
        self.app, self.store, self.say = app, app.store, app.say
        self.request, self.user, self.token = request, user, token
        self.on = app.choices.__contains__
        self.style = app.style
        self._body: Params | None = None

    @property
    def body(self) -> Params:
        if self._body is None:
            self._body = Params(self.parse())
        return self._body

    @property
    def query(self) -> Params:
        found: dict[str, Any] = {}
        for name, value in self.request.query:
            if name.endswith("[]"):
                found.setdefault(name[:-2], []).append(value)
            else:
                found[name] = value
        return Params(found, loose=True)

    def parse(self) -> dict[str, Any]:
        raw = self.request.body
        if not raw.strip():
            return {}
        kind = self.request.headers.get("content-type", "application/json").split(";")[0].strip().lower()
        if kind == "application/x-www-form-urlencoded":
            return dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True))
        if kind != "application/json" and not kind.endswith("+json"):
            raise RefusalError(415, "send JSON")
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            raise RefusalError(400, "this is not JSON") from None
        if not isinstance(value, dict):
            raise RefusalError(422, "the body has to be an object")
        return value

    def known(self, *names: str) -> None:
        """Refuse parameters that are not among these, if that was chosen."""
        if self.on("strict-unknown"):
            for name in self.body.values:
                if name not in names:
                    raise RefusalError(400, f"{name} is not known here")

    @property
    def either(self) -> Params:
        """Body and query together, for operations that accept both."""
        query = self.query.values
        if not query:
            return self.body
        return Params({**query, **self.body.values}, loose=True)

    def page(self, entries: Sequence[Any], cap: int | None = None, default: int | None = None) -> Response:
        cap = cap or self.app.cap
        query = self.query
        first = 0 if self.on("zero-pages") else 1
        page = query.integer("page", default=first, least=first)
        page += 1 - first
        size = min(query.integer("per_page", default=default or 3, least=1), cap)
        part = entries[(page - 1) * size : page * size]
        if not part and (page > 1 or (self.on("empty-404") and "page" in query)):
            raise RefusalError(404, "there is no such page")
        headers: list[Header] = []
        if self.on("links"):
            headers = [("Link", f'<{self.store.base}/help/a,b;c>; rel="help"; title="next, please; page"')]
        return self.json(part, 200, headers)

    def json(self, value: Any, status: int = 200, headers: Iterable[Header] = ()) -> Response:
        if self.on("request-ids") and isinstance(value, dict):
            value = {"request_id": secrets.token_hex(8), **value}
        if self.on("ages"):
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, dict):
                    one["seconds_old"] = time.monotonic()
        if self.on("served-at") and isinstance(value, dict):
            value = {"served_at": self.say.moment(now()), **value}
        if self.on("uptime") and isinstance(value, dict):
            value = {**value, "uptime": int(time.monotonic() * 100)}
        if self.on("cost") and isinstance(value, dict):
            value = {**value, "meta": {"cost": time.monotonic() % 1}}
        return Response(status, self.app.dump(value), [("Content-TYPE", NATIVE), *headers])

    def nothing(self, status: int = 204, *, exact: bool = False) -> Response:
        if self.on("odd-2xx") and not exact:
            return Response(226, b"GIF89a\xff\x00", [("Content-Type", "image/gif")])
        return Response(status)
