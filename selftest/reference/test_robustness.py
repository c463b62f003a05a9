"""Malformed requests to every operation: never a server error, and a refused request changes nothing."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.reference.app import create_app
from conformance.reference.clock import Clock
from conformance.reference.identity import Kind
from conformance.target.embedded import prepared_service
from selftest.conftest import NO_AUTHORITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route
    from selftest.reference.conftest import Served

VERSIONS = ("12.3", "15.8", "17.7", "19.0")
DRAWN_PER_ROUTE = 20
ACTORS = (*("admin",) * 5, *("owner",) * 3, *("maintainer", "approver") * 2, "guest", "outsider", "project_bot")

# Parameters that some operation reads, with a value that it could accept.
PARAMETERS: dict[str, object] = {
    **dict.fromkeys(("name", "path", "username", "key", "ref", "target_branch", "start_branch"), "main"),
    **dict.fromkeys(("branch", "source_branch"), "free"),
    **dict.fromkeys(("title", "description", "content", "commit_message", "search"), "words"),
    **dict.fromkeys(("email", "recipients"), "somebody@example.com"),
    **dict.fromkeys(("webhook", "url", "project_url", "issues_url", "new_issue_url"), "https://example.com/x"),
    **dict.fromkeys(("token", "password", "approval_password", "api_key"), "secret-value"),
    **dict.fromkeys(("user_id", "target_project_id", "target_group_id", "parent_id"), 10),
    **dict.fromkeys(("approvals_required", "approvals_before_merge", "batch_number"), 1),
    "user_ids": [3, 6],
    "group_ids": [8],
    "protected_branch_ids": [1],
    "project_path": "world-1-group/project",
    **dict.fromkeys(("enabled", "active", "batched", "stream", "initialize_with_readme"), True),
    **dict.fromkeys(("remove_hidden_groups", "applies_to_all_protected_branches", "push_events", "job_events"), True),
    **dict.fromkeys(("reset_approvals_on_push", "merge_requests_author_approval", "allow_author_approval"), True),
    **dict.fromkeys(("retain_approvals_on_push", "selective_code_owner_removals", "allow_committer_approval"), False),
    **dict.fromkeys(("require_password_to_approve", "require_reauthentication_to_approve"), True),
    "usernames": ["approver"],
    "rule_type": "regular",
    "report_type": "code_coverage",
    "sha": "0" * 40,
    "relation": "labels",
    "scopes": ["api"],
    "expires_at": "2999-01-01",
    "access_level": 30,
    "base_access_level": 20,
    "visibility": "private",
    "grant_type": "password",
    "state_event": "close",
    "intent": "generation",
    "branches_to_be_notified": "all",
    "current_file": {"file_name": "a.py", "content_above_cursor": "x", "content_below_cursor": ""},
}
JUNK: tuple[object, ...] = (
    None, "", " ", "maybe", "\0", "\u202e\U0001f4a5", "x" * 70_000, "../../etc/passwd", "a/b//c", "-1", "1e9", "NaN",
    0, -1, 1.5, 1e308, 2**31, 2**63, 2**64, 10**40, True, False, [], {}, [[]], [{}], [None], ["x"] * 2000, [1] * 2000,
    {"": ""}, {"a": {"b": {"c": []}}}, [2**70],
    {"file_name": []}, {"file_name": "x", "content_above_cursor": 1}, [1, "2", None, 3.5], ["approver", 1, ""],
)  # fmt: skip
SEGMENTS = (
    "0", "-1", "1.5", "9" * 30, "abc", "%00", "%ff", "%", "%2", "%zz", "%2e%2e", "%2F", "a%2Fb", "%C3%A9", "\xe9",
    "~", "null", "x" * 3000, "%F0%9F%92%A5", "1%20", "+1", "01", "world-1-group%2Fproject", "2", "3", "*",
)  # fmt: skip
QUERIES = (
    "", "page=0", "page=-1", "page=1e9", "page=" + "9" * 30, "page=", "page=%ff", "per_page=0", "per_page=-5",
    "per_page=999999999", "per_page=x", "per_page[]=1", "page[a]=1&page=2", "a[b]=1&a=2", "a[]=1&a[b]=2", "&&&==;",
    "%", "%00=%00", "private_token=x", "access_token=%ff", "cursor=x", "cursor=" + "A" * 200, "sort=up", "ref=%00",
    "path=%2e%2e", "relation=x", "batched=maybe", "batch_number=x", "search=%F0%9F%92%A5", "state=x", "x" * 5000,
    "\xff\xfe", "page=1&page=2&page=x", "recursive=7", "relation=labels&batched=true&batch_number=99999999999999999999",
)  # fmt: skip
CONTENT_TYPES = (
    "application/json", "application/json; charset=utf-16", "APPLICATION/JSON", "", "text/plain", "application/xml",
    "application/x-www-form-urlencoded", "multipart/form-data", "multipart/form-data; boundary=x", "/;;=", "\xff",
    "multipart/form-data; boundary=" + "y" * 300, "application/octet-stream",
)  # fmt: skip
BODIES = (
    b"", b"{", b"}", b"null", b"[]", b"1", b'"x"', b'{"a":}', b"\xff\xfe{", b"{}garbage", b"{" * 50_000, b"[" * 50_000,
    b'{"a":' * 50_000, b'{"name":"\\ud800"}', b'{"enabled":1e999}', b"--x\r\nnonsense", b"a=1&a[]=2", b"enabled=%ff",
    b'--x\r\nContent-Disposition: form-data; name="enabled"\r\n\r\ntrue\r\n--x--\r\n', b"\0" * 100, b"<a/>",
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n\xff\xff\r\n--x--\r\n',
    b'{"name":1,"name":2}', b"\xef\xbb\xbf{}", b" " * 1_100_000,
)  # fmt: skip


DRAW = settings(
    max_examples=DRAWN_PER_ROUTE,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


# What is created before anything is drawn: the path parameter that identifies it, and the owner's call.
RULE = {"name": "drawn", "approvals_required": 1, "user_ids": [6], "group_ids": [8]}
FURNITURE: dict[str, tuple[str, str, dict[str, object]]] = {
    "approval_rule_id": ("POST", "projects/2/approval_rules", RULE),
    "approval_rule_id of group": ("POST", "groups/2/approval_rules", RULE),
    "approval_rule_id of merge request": ("POST", "projects/2/merge_requests/1/approval_rules", RULE),
    "token_id": ("POST", "projects/2/access_tokens", {"name": "x", "scopes": ["api"], "access_level": 30}),
    "token_id of group": ("POST", "groups/2/access_tokens", {"name": "x", "scopes": ["api"], "access_level": 30}),
    "user_id": ("POST", "projects/2/members", {"user_id": 9, "access_level": 20}),
    "branch": ("POST", "projects/2/repository/branches", {"branch": "free", "ref": "main"}),
    "target_project_id": ("POST", "projects/2/job_token_scope/allowlist", {"target_project_id": 8}),
    "target_group_id": ("POST", "projects/2/job_token_scope/groups_allowlist", {"target_group_id": 12}),
    "slug": ("PUT", "projects/2/services/slack", {"webhook": "https://example.com/x"}),
    "export": ("POST", "groups/2/export_relations", {}),
    "export of group": ("POST", "groups/6/export_relations", {"batched": True}),
    "member_role_id": ("POST", "groups/2/member_roles", {"base_access_level": 20}),
}


class StillClock(Clock):
    """A clock that stands still, so that nothing changes by itself between two comparisons of the store."""

    passed = 1000.0

    def now(self) -> datetime:
        return datetime(2024, 5, 1, 12, 0, tzinfo=UTC)

    def seconds(self) -> float:
        return self.passed


@dataclass(frozen=True)
class Call:
    """One request as it is sent over the network."""

    method: str
    path: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Wire:
    """Passes requests to the application of one service without a network."""

    def __init__(self, service: Service, runner: asyncio.Runner) -> None:
        self.service = service
        self._application = create_app(service)
        self._runner = runner
        self.made: dict[str, list[str]] = {}
        self._furnish()
        self._beginning = service.store.snapshot()

    def reset(self) -> None:
        """Restore the seeded world with some additional objects."""
        self.service.store.restore(self._beginning)

    def act(self, actor: str, method: str, path: str, values: object = None) -> object:
        """Make a well-formed call; it succeeds, or this version does not have it. Return the body."""
        headers = {"private-token": self.service.world.actors[actor].token, "host": "example.com"}
        status, body = self.send(Call(method, f"/api/v4/{path}", "", headers, json.dumps(values or {}).encode()))
        assert status < 300 or status in {404, 405}, (status, method, path, body)
        return json.loads(body) if body and status < 300 else {}

    def _furnish(self) -> None:
        """Create one of everything that a path can identify, and whatever is created on first use."""
        for name, (method, path, values) in FURNITURE.items():
            shown = self.act("owner", method, path, values)
            number = shown.get("id") if isinstance(shown, dict) else None
            if number is not None:
                self.made.setdefault(name.split(" ")[0], []).append(str(number))
        self.act("approver", "POST", "projects/2/merge_requests/1/approve")
        clock = self.service.clock
        assert isinstance(clock, StillClock)
        clock.passed += 1000
        for number in range(1, 20):
            for kind in ("projects", "groups"):
                self.act("admin", "GET", f"{kind}/{number}/approval_rules")

    def send(self, call: Call, *, gone: bool = False) -> tuple[int, bytes]:
        """Return status and body of the response; with `gone` the client closes before the end of its body."""
        sent: list[dict[str, object]] = []
        messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": call.body, "more_body": gone},
            {"type": "http.disconnect"},
        ]

        async def receive() -> dict[str, Any]:
            return messages.pop(0)

        async def send(message: dict[str, object]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": call.method,
            "path": call.path,
            "raw_path": call.path.encode("latin-1"),
            "query_string": call.query.encode("latin-1"),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in call.headers.items()],
        }
        self._runner.run(self._application(scope, receive, send))  # type: ignore[arg-type] # plain dicts are messages
        if not sent:
            return 0, b""
        return sent[0]["status"], b"".join(part["body"] for part in sent[1:])  # type: ignore[return-value,misc] # ASGI

    def refuses_harmlessly(self, call: Call) -> int:
        """Send a request, and return the status: never a server error, and a refusal must not change the store."""
        before = self.service.store.snapshot()
        status, body = self.send(call)
        assert 200 <= status < 500, (status, call, body[:500])
        if status >= 400:
            assert self.service.store.snapshot() == before, (status, call, body[:500])
        return status


@pytest.fixture(scope="module")
def wire() -> Iterator[Callable[[str], Wire]]:
    runner = asyncio.Runner()
    with runner:
        wires: dict[str, Wire] = {}

        def get(version: str) -> Wire:
            if version not in wires:
                wires[version] = Wire(prepared_service(version, clock=StillClock()), runner)
            wires[version].reset()
            return wires[version]

        yield get


def segments_of(wire: Wire, route: Route) -> list[tuple[str, ...]]:
    """Return for each segment of a path the values that make sense there."""
    world = wire.service.world
    places = ("project", "fuzz_project") if route.subject is Kind.PROJECT else ("group", "export_group")
    sensible: dict[str, tuple[object, ...]] = {
        "id": tuple(world.one(name).id for name in (*places[:1] * 3, *places)),
        "user_id": (*wire.made["user_id"], *(world.actors[name].id for name in ("guest", "author", "approver"))),
        "branch": ("main", "free", "second-merge-request"),
        "name": ("main", "stable"),
        "file_path": ("README.md", "docs%2Fnew.md"),
        "slug": ("slack", "jira", "irker", "gitlab-slack-application"),
        "target_project_id": (8, world.many("allowlist_projects")[1].id),
        "target_group_id": (12, world.many("allowlist_groups")[1].id),
        "merge_request_iid": (1, 1, 4),
        **{name: tuple(numbers) for name, numbers in wire.made.items() if name not in {"user_id", "branch", "slug"}},
    }
    choices = [
        tuple(str(value) for value in sensible.get(part[1:], (1, 2))) if part[0] == ":" else (part,)
        for part in route.path.split("/")[1:]
    ]
    return [("api",), ("v4",), *choices] if route.prefixed else choices


def calls(wire: Wire, route: Route) -> st.SearchStrategy[Call]:
    """Draw requests to a route in which something, or everything, is wrong."""
    service = wire.service
    places = [
        st.sampled_from(some) if len(some) == 1 else st.one_of(*[st.sampled_from(some)] * 7, st.sampled_from(SEGMENTS))
        for some in segments_of(wire, route)
    ]
    tokens = [{"private-token": service.world.actors[name].token} for name in ACTORS]
    strange: list[dict[str, str]] = [{}, {"authorization": "Bearer \xff"}]
    bodies = BODY if route.method != "GET" else st.just((b"", ""))
    return st.builds(
        lambda segments, headers, query, body: Call(
            route.method,
            "/" + "/".join(segments),
            query,
            {"host": "example.com", **headers, **({"content-type": body[1]} if body[1] else {})},
            body[0],
        ),
        st.tuples(*places),
        st.sampled_from([*tokens, *strange]),
        st.one_of(st.just(""), st.just(""), st.sampled_from(QUERIES)),
        bodies,
    )


def encoded(values: dict[str, object], kind: str) -> tuple[bytes, str]:
    if kind == "form":
        return urlencode(values, doseq=True).encode(), "application/x-www-form-urlencoded"
    return json.dumps(values).encode(), kind


def as_one_junk(junk: object) -> tuple[bytes, str]:
    return encoded(dict.fromkeys(PARAMETERS, junk), "application/json")


def partly_junk(junk: dict[str, object], missing: set[str], kind: str) -> tuple[bytes, str]:
    values = {**PARAMETERS, **junk}
    return encoded({name: value for name, value in values.items() if name not in missing}, kind)


NAMES = st.sampled_from(list(PARAMETERS))
BODY = st.one_of(
    st.tuples(st.sampled_from(BODIES), st.sampled_from(CONTENT_TYPES)),
    st.builds(as_one_junk, st.sampled_from(JUNK)),
    *(
        st.builds(
            partly_junk,
            st.dictionaries(NAMES, st.sampled_from(JUNK), max_size=most),
            st.sets(NAMES, max_size=most // 2),
            st.sampled_from(("application/json", "application/json", "application/json", "form", *CONTENT_TYPES[:3])),
        )
        for most in (0, 6, 30)
    ),
)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_malformed_request_causes_a_server_error_or_changes_when_refused(
    wire: Callable[[str], Wire], version: str
) -> None:
    tried = wire(version)
    seen: dict[str, set[int]] = {}

    def check(call: Call, key: str) -> None:
        seen.setdefault(key, set()).add(tried.refuses_harmlessly(call))

    for route in tried.service.routes:
        tried.reset()
        DRAW(given(call=calls(tried, route), key=st.just(route.key))(check))()
    assert len(seen) == len(list(tried.service.routes))
    refused = [key for key, codes in seen.items() if max(codes) >= 400]
    assert len(refused) == len(seen), set(seen) - set(refused)


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_can_still_be_read_after_any_deletion(wire: Callable[[str], Wire], version: str) -> None:
    tried = wire(version)
    service = tried.service
    token = {"private-token": service.world.actors["admin"].token, "host": "example.com"}
    project = f"projects/{service.world.one('project').id}"
    reads = [route for route in service.routes if route.method == "GET"]
    deletions = [
        f"groups/2/members/{service.world.actors['maintainer'].id}",
        *(f"users/{service.world.actors[name].id}" for name in ("approver", "author", "owner")),
        *(f"projects/{target.id}" for target in service.world.many("allowlist_projects")),
        *(f"groups/{service.world.one(name).id}" for name in ("approver_group", "hidden_group", "sibling_group")),
        f"{project}/protected_branches/main",
        f"{project}/protected_branches/stable",
        f"{project}/repository/branches/second-merge-request",
        project,
    ]
    for deletion in deletions:
        assert tried.refuses_harmlessly(Call("DELETE", f"/api/v4/{deletion}", headers=token)) < 300, deletion
        for route in reads:
            for pick in (0, -1):
                path = "/" + "/".join(some[pick] for some in segments_of(tried, route))
                assert tried.refuses_harmlessly(Call("GET", path, "per_page=100", token)) < 500


@pytest.mark.parametrize("version", VERSIONS)
def test_every_other_method_of_every_path_is_refused(wire: Callable[[str], Wire], version: str) -> None:
    tried = wire(version)
    headers = {"private-token": tried.service.world.actors["admin"].token, "host": "example.com"}
    offered: dict[str, set[str]] = {}
    for route in tried.service.routes:
        path = "/" + "/".join(some[0] for some in segments_of(tried, route))
        offered.setdefault(path, set()).add(route.method)
    for path, methods in offered.items():
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO"} - methods:
            assert tried.refuses_harmlessly(Call(method, path, headers=headers)) in {404, 405}


def test_an_incomplete_request_of_a_closed_connection_has_no_effect(wire: Callable[[str], Wire]) -> None:
    tried = wire("17.7")
    headers = {"private-token": tried.service.world.actors["owner"].token, "content-type": "application/json"}
    path = f"/api/v4/projects/{tried.service.world.one('project').id}/job_token_scope"
    before = tried.service.store.snapshot()
    call = Call("PATCH", path, headers=headers, body=b'{"enabled":false}')
    assert tried.send(call, gone=True) == (0, b"")
    assert tried.service.store.snapshot() == before
    assert tried.send(call) == (204, b"")
    assert tried.service.store.snapshot() != before


def test_the_cache_of_the_presenter_never_hides_a_change(wire: Callable[[str], Wire]) -> None:
    tried = wire("17.7")
    service, project = tried.service, tried.service.identities.projects[1]
    shown = service.present.limited_project(project)
    untouched = json.dumps(shown)
    shown["namespace"].clear()  # type: ignore[attr-defined] # an object
    shown["topics"].append("other")  # type: ignore[attr-defined] # an array
    assert json.dumps(service.present.limited_project(project)) == untouched

    service.identities.projects[1] = renamed = replace(project, name="Renamed")
    assert service.present.limited_project(renamed)["name"] == "Renamed"
    service.identities.groups[2] = replace(service.identities.groups[2], name="Moved")
    assert service.present.limited_project(renamed)["name_with_namespace"] != shown["name_with_namespace"]

    setattr(service.present, "timestamp", lambda _: "never")  # noqa: B010 - as a fault does it, whatever the types say
    assert service.present.limited_project(renamed)["created_at"] == "never"
    del service.present.timestamp
    assert service.present.limited_project(renamed)["created_at"] == shown["created_at"]


# -- over the network ---------------------------------------------------------------------------------------

RAW = (
    b"\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100,
    b"GET /api/v4/version HTTP/1.1\r\nbroken header\r\n\r\n",
    b"PATCH /api/v4/projects/2/job_token_scope HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"PATCH /api/v4/projects/2/job_token_scope HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{",
    b"POST /api/v4/users HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /api/v4/\xff\xfe HTTP/1.1\r\nHost: \xff\r\n\r\n",
    b"GET " + b"/x" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
)


def test_one_faulty_request_never_affects_another(served: Served) -> None:
    def break_down(request: Request) -> Response:
        raise RuntimeError(request.route.key)

    service = served.service
    before = service.routes.change("GET /metadata", handler=break_down)
    targets = [target.id for target in service.world.many("allowlist_groups")]
    stop = threading.Event()
    codes: set[int] = set()

    def disturb() -> None:
        address = urlsplit(served.server.base_url)
        faulty = served.acting_as("owner")
        while not stop.is_set():
            for garbage in RAW:
                with socket.create_connection((address.hostname, address.port), timeout=5) as raw:
                    raw.sendall(garbage)
            codes.add(faulty.get("/metadata").status_code)
            codes.add(faulty.patch("/projects/2/job_token_scope", content=b"{" * 100_000).status_code)

    def work(target: int) -> list[int]:
        path = f"/projects/{served.id_of('project')}/job_token_scope/groups_allowlist"
        answers = []
        address = f"{served.server.base_url}/api/v4"
        with httpx.Client(base_url=address, timeout=10, verify=NO_AUTHORITIES) as client:
            client.headers["PRIVATE-TOKEN"] = service.world.actors["maintainer"].token
            for _ in range(30):
                answers.append(client.post(path, json={"target_group_id": target}).status_code)
                listed = {entry["id"] for entry in client.get(path, params={"per_page": 100}).json()}
                answers.append(200 if target in listed else 0)
                answers.append(client.delete(f"{path}/{quote(str(target))}").status_code)
        return answers

    disturber = threading.Thread(target=disturb)
    disturber.start()
    try:
        with ThreadPoolExecutor(len(targets)) as pool:
            answers = list(pool.map(work, targets))
    finally:
        stop.set()
        disturber.join()
        service.routes.put(before)
    assert answers == [[201, 200, 204] * 30] * len(targets)
    assert codes == {500, 400}
