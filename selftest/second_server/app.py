"""Routing, authentication, parameters, errors, pages."""

from __future__ import annotations

import gzip
import json
import re
import time
from typing import TYPE_CHECKING, Any

from selftest.second_server import (
    completion,
    export,
    fixtures,
    group_rules,
    integrations,
    merge_requests,
    project_rules,
    scope,
    settings,
)
from selftest.second_server.call import Call
from selftest.second_server.choices import CHOICES
from selftest.second_server.say import Views, dump
from selftest.second_server.store import RefusalError, Store, now
from selftest.second_server.web import Response

if TYPE_CHECKING:
    from collections.abc import Iterable

    from selftest.second_server.call import Handler, Route
    from selftest.second_server.store import Record
    from selftest.second_server.web import Request


ODD = {400: 418, 403: 402, 404: 451, 422: 499, 409: 424, 410: 417, 423: 421}


def floated(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return float(value)
    if isinstance(value, dict):
        return {k: floated(v) for k, v in value.items()}
    return [floated(v) for v in value] if isinstance(value, list) else value


def odd_dump(value: Any) -> bytes:
    """The same, with every character of every text escaped, and spaces wherever they are allowed."""
    plain = json.dumps(value, separators=("\n,\t", "\r\n :"), indent=None)

    def escape(match: re.Match[str]) -> str:
        text = json.loads(match[0])
        raw = text.encode("utf-16-be")
        return '"' + "".join(f"\\u{raw[i]:02X}{raw[i + 1]:02x}" for i in range(0, len(raw), 2)) + '"'

    return ("\n\t " + re.sub(r'"(?:[^"\\]|\\.)*"', escape, plain) + "\r\n").encode()


#: Everything that is answered; the first match counts.
ROUTES: list[Route] = [
    *scope.ROUTES,
    *completion.ROUTES,
    *group_rules.ROUTES,
    *project_rules.ROUTES,
    *merge_requests.ROUTES,
    *settings.ROUTES,
    *export.ROUTES,
    *integrations.ROUTES,
    *fixtures.ROUTES,
]


def is_beside(act: Handler) -> bool:
    """Whether this is not a call of the specification, but one that creates fixtures."""
    return ".fixtures." in act.__module__


class App:
    """The service.

    `cap` is the maximum length of a page, `completions` how many completions a user has per minute, and `pace` how many
    times faster than normal everything delayed is done: exports, and resets of approvals.
    """

    def __init__(
        self,
        base: str,
        admin_token: str,
        style: str = "a",
        cap: int = 4,
        choices: Iterable[str] = (),
        completions: int = 60,
        pace: float = 1,
    ) -> None:
        self.store = Store(base, admin_token)
        self.say = Views(self.store)
        self.style, self.cap, self.completions = style, cap, completions
        self.choices = set(choices)
        if unknown := self.choices - CHOICES.keys():
            raise ValueError(f"no such choices: {', '.join(sorted(unknown))}")
        self.store.choices, self.store.pace = self.choices, pace
        self.table: dict[int, list[tuple[str, tuple[str, ...], Handler]]] = {}
        for method, pattern, act in ROUTES:
            parts = tuple(pattern.strip("/").split("/"))
            self.table.setdefault(len(parts), []).append((method, parts, act))

    def dump(self, value: Any) -> bytes:
        if "floats" in self.choices:
            value = floated(value)
        return (odd_dump if "odd-json" in self.choices else dump)(value)

    def find(self, method: str, segments: list[str]) -> tuple[Handler, list[str]]:
        allowed: set[str] = set()
        for verb, parts, act in self.table.get(len(segments), ()):
            args = []
            for want, have in zip(parts, segments, strict=True):
                if want[0] == ":":
                    args.append(have)
                elif want != have:
                    break
            else:
                if verb == method:
                    return act, args
                allowed.add(verb)
        if allowed:
            raise RefusalError(405, "not in this way", [("Allow", ", ".join(sorted(allowed)))])
        raise RefusalError(404, "nothing is here")

    def who(self, request: Request) -> Record:
        secret = request.headers.get("private-token")
        if secret is None:
            bearer = request.headers.get("authorization", "")
            if bearer.lower().startswith("bearer ") and request.path == "/api/v4/code_suggestions/completions":
                secret = bearer[7:].strip()
        if not secret:
            if request.method in ("GET", "HEAD"):
                raise RefusalError(302, "sign in", [("Location", self.store.base + "/users/sign_in")])
            raise RefusalError(401, "say who you are")
        token = self.store.tokens.get(secret)
        if token is None or token.revoked or (token.expires and token.expires <= now().date().isoformat()):
            raise RefusalError(401, "this token is not known")
        return token

    def __call__(self, request: Request) -> Response:
        with self.store.lock:
            self.store.run_due()
            try:
                return self.answer(request)
            except RefusalError as problem:
                return self.refuse(problem)

    def answer(self, request: Request) -> Response:
        if request.segments[:2] != ["api", "v4"]:
            if request.segments == ["users", "sign_in"]:
                return Response(200, b"<!doctype html><title>Sign in</title>", [("content-type", "text/html")])
            raise RefusalError(404, "nothing is here")
        token = self.who(request)
        self.throttle(token.user)
        if "services-redirect" in self.choices and request.segments[2:5:2] == ["projects", "services"]:
            raise RefusalError(308, "moved", [("Location", request.path.replace("/services", "/integrations", 1))])
        method = "GET" if request.method == "HEAD" else request.method
        self.store.powerless = False
        act, args = self.find(method, request.segments[2:])
        self.store.powerless = (
            "powerless-admin" in self.choices
            and not is_beside(act)
            and not act.__name__.endswith("system_rule")
            and act.__name__ != "install"
        )
        self.look_at_query(act, request)
        return self.finish(request, act(Call(self, request, token.user, token), *args))

    def throttle(self, user: Record) -> None:
        if "throttle" not in self.choices or user.admin:
            return
        moment = int(time.monotonic() // 5)
        window, count = self.store.calls.get(user.id, (moment, 0))
        count = count if window == moment else 0
        self.store.calls[user.id] = (moment, count + 1)
        if count >= 250:
            raise RefusalError(429, "slow down", [("Retry-After", "2")])

    def look_at_query(self, act: Handler, request: Request) -> None:
        if "strict-query" not in self.choices or is_beside(act):
            return
        if request.method == "POST" and act.__name__ in ("group_create", "schedule"):
            return
        known: tuple[str, ...] | None = {
            "listed": ("page", "per_page"),
            "groups_listed": ("page", "per_page"),
            "group_list": ("page", "per_page"),
            "project_list": ("page", "per_page"),
            "own_list": ("page", "per_page"),
            "status": ("relation",),
            "download": ("relation", "batched", "batch_number"),
            "group_update": None,
        }.get(act.__name__, ())
        if act.__module__.endswith("integrations"):
            known = ()
        for name, _ in request.query:
            if known is not None and name not in known:
                raise RefusalError(400, f"{name} is not known here")

    def finish(self, request: Request, response: Response) -> Response:
        if (
            "compressed" in self.choices
            and response.chunked is None
            and response.body
            and "gzip" in request.headers.get("accept-encoding", "")
            and response.status != 204
        ):
            response.body = gzip.compress(response.body, 1)
            response.headers = [*response.headers, ("content-encoding", "GZip"), ("Vary", "Accept-Encoding")]
        if "chunked" in self.choices and response.chunked is None and response.status != 204:
            middle = len(response.body) // 2
            response.chunked = [response.body[:middle], response.body[middle:]]
        if "close" in self.choices:
            response.headers = [*response.headers, ("Connection", "close")]
        return response

    def refuse(self, problem: RefusalError) -> Response:
        if "odd-4xx" in self.choices and not problem.exact and problem.status in ODD:
            problem.status = ODD[problem.status]
        if "retry-after" in self.choices:
            problem.headers = [*problem.headers, ("Retry-After", "1")]
        body = dump([{"reason": problem.text, "kind": "refusal", "number": problem.status}])
        headers = [("content-type", "application/problem+json"), *problem.headers]
        if problem.status == 302:
            body, headers = b"<a href='/users/sign_in'>Sign in</a>", [("content-type", "text/html"), *problem.headers]
        if problem.status == 401:
            headers.append(("WWW-Authenticate", 'PrivateToken realm="api"'))
        return Response(problem.status, body, headers)
