#!/usr/bin/env python3
"""A worked example for `conformance provision --with`: makes what the area job token scope needs, and names it.

The token of an administrator stands in the environment: ADMIN_TOKEN.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import urllib.error
import urllib.request
from typing import Any

LEVELS = {"owner": 50, "maintainer": 40, "developer": 30, "reporter": 20, "guest": 10}
if not os.environ.get("ADMIN_TOKEN"):
    sys.exit("Set ADMIN_TOKEN to the token of an administrator.")
NEEDED = json.load(sys.stdin)


def call(method: str, path: str, body: dict[str, Any] | None = None, token: str | None = None) -> Any:
    """Send a call and return the JSON of the answer; None where it is refused."""
    headers = {"PRIVATE-TOKEN": token or os.environ["ADMIN_TOKEN"], "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{NEEDED['base_url']}/api/v4{path}", content, headers, method=method)  # noqa: S310 - the operator's address
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - see above
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sys.stderr.write(f"{method} {path}: status {error.code}\n")
        return None


def user(name: str) -> dict[str, Any]:
    """Make a user with a token, or find the one of an earlier call and give it another token."""
    username = f"{NEEDED['prefix']}-{name}"
    password = secrets.token_urlsafe(18)
    shown = {"username": username, "name": f"{NEEDED['prefix']} {name} ({NEEDED['mark']})"}
    found = call("GET", f"/users?username={username}") or [None]
    made = found[0] or call("POST", "/users", {**shown, "email": f"{username}@example.com", "password": password})
    token = call("POST", f"/users/{made['id']}/personal_access_tokens", {"name": "conformance", "scopes": ["api"]})
    return {"id": made["id"], "username": username, "token": token["token"]}


def group(name: str, people: dict[str, Any]) -> dict[str, Any]:
    """Make a top-level group with all people in it, or find it."""
    path = f"{NEEDED['prefix']}-{name}"
    made = call("GET", f"/groups/{path}")
    if made is None:
        made = call("POST", "/groups", {"name": f"{NEEDED['prefix']} {name} ({NEEDED['mark']})", "path": path})
        for role, level in LEVELS.items():
            call("POST", f"/groups/{made['id']}/members", {"user_id": people[role]["id"], "access_level": level})
    return {"id": made["id"], "path": made["full_path"], "name": made["name"]}


def project(within: dict[str, Any], name: str) -> dict[str, Any]:
    """Make a project with a repository in a group, or find it."""
    made = call("GET", f"/projects/{within['path']}%2F{name}") or call(
        "POST", "/projects", {"name": name, "namespace_id": within["id"], "initialize_with_readme": True}
    )
    return {"id": made["id"], "path": made["path_with_namespace"]}


def main() -> None:
    """Make one world, and write what a profile says of it."""
    actors = {name: user(name) for name in (*LEVELS, "outsider")}
    own, other = group("own", actors), group("other", actors)
    fixtures = {
        "group": own,
        "project": project(own, "main"),
        "sibling_project": project(other, "sibling"),
        "fuzz_project": project(other, "fuzz"),
        "allowlist_projects": [project(other, f"consumer-{number}") for number in range(1, 4)],
        "allowlist_groups": [group(f"client-{number}", actors) for number in range(1, 4)],
    }
    answer = {"version": "auto", "scope": ["job-token-scope"], "actors": actors, "fixtures": fixtures}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
