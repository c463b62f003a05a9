"""Code completion."""

from __future__ import annotations

import secrets
import time
from email.utils import formatdate
from typing import TYPE_CHECKING

from selftest.second_server.call import Params
from selftest.second_server.store import RefusalError
from selftest.second_server.web import Response

if TYPE_CHECKING:
    from selftest.second_server.call import Call, Route


INTENTS = ("completion", "generation")


def throttle(call: Call) -> None:
    """A fixed window of one minute by the clock; every request counts."""
    minute = int(time.time() // 60)
    window, count = call.store.completions.get(call.user.id, (minute, 0))
    if window != minute:
        count = 0
    if count >= call.app.completions:
        raise RefusalError(
            429, "so many are enough for a minute", [("Retry-After", formatdate((minute + 1) * 60 + 1, usegmt=True))]
        )
    call.store.completions[call.user.id] = (minute, count + 1)


def complete(call: Call) -> Response:
    if not call.store.flags["code_suggestions_completion_api"]:
        raise RefusalError(404, "nothing is here")
    throttle(call)
    body = call.body
    if "current_file" not in body:
        raise RefusalError(400, "current_file has to be given")
    file = body.raw("current_file")
    if not isinstance(file, dict):
        raise RefusalError(422, "current_file has to be an object")
    inner = Params(file)
    name = inner.text("file_name", required=True)
    above = inner.text("content_above_cursor", required=True)
    inner.text("content_below_cursor")
    intent = body.text("intent")
    if intent is not None and intent not in INTENTS:
        raise RefusalError(422, "intent is one of completion and generation")
    stream = body.boolean("stream", default=False)
    body.text("project_path")
    text = f"    return {len(above)}  # {name}"
    if stream:
        return Response(
            200,
            b"",
            [("Content-Type", "text/plain; charset=utf-8")],
            chunked=[text[i : i + 5].encode() for i in range(0, len(text), 5)],
        )
    choices = [
        {"index": n, "text": text + "\n" * n, "finish_reason": reason, "score": 0.5}
        for n, reason in enumerate(("stop", "length", ""))
    ]
    if call.on("no-choices"):
        choices = []
    return call.json(
        {
            "object": "text_completion",
            "id": "cmp/" + secrets.token_urlsafe(9),
            "created": int(time.time()),
            "model": {"name": "palimpsest-2", "engine": "quill", "lang": None},
            "choices": choices,
            "usage": {"total": 7},
        }
    )


def enabled(call: Call) -> Response:
    path = call.body.text("project_path", required=True)
    try:
        project = call.store.find_project(call.user, path if not path.isdigit() else "no/" + path)
    except RefusalError:
        raise RefusalError(404, "there is no such project", exact=True) from None
    if project.completion or any(g.completion for g in call.store.project_groups(project)):
        return Response(200, b"", [("Content-Type", "text/plain")])
    raise RefusalError(403, "completion is off there", exact=True)


ROUTES: list[Route] = [
    ("POST", "code_suggestions/completions", complete),
    ("POST", "code_suggestions/enabled", enabled),
]
