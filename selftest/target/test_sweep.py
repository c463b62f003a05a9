"""What provisioning created is removed, recognized by its mark, and nothing else is touched."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from conformance.errors import TargetError
from conformance.http.client import Client
from conformance.http.settings import ClientSettings
from conformance.proof.chaos.kinds import Disturbed
from conformance.proof.chaos.proxy import Proxy
from conformance.reference import EmbeddedServer
from conformance.target.marker import KEY
from conformance.target.provisioning import provision
from conformance.target.provisioning.calls import Answer, Body, Calls, Way, by_http
from conformance.target.provisioning.sweep import Removal, sweep
from selftest.target.bench import Bench, reads
from selftest.target.services import changed


def test_sweeping_restores_the_service() -> None:
    bench = Bench()
    before = reads(bench)
    bench.provision(worlds=2)
    assert reads(bench) != before
    removals = sweep(bench.calls, bench.administrator, "conformance", lambda _: None)
    assert not [removal for removal in removals if removal.problem]
    assert reads(bench) == before
    again = bench.provision()  # with secrets that are no longer valid
    assert again.refused == {}
    assert {"project_bot", "group_bot"} <= bench.profile(again)["actors"].keys()


def test_a_world_that_a_run_uses_is_not_swept() -> None:
    bench = Bench()
    project = bench.provision().worlds[0].projects["project"]["id"]
    before, variables, now = reads(bench), f"/projects/{project}/variables", datetime.now(UTC)
    for age in (timedelta(), timedelta(hours=1)):
        mark = {"run": "r", "host": "another", "beat": (now - age).isoformat()}
        bench.calls.remove(bench.administrator, f"{variables}/{KEY}")
        bench.calls.send(bench.administrator, "POST", variables, {"key": KEY, "value": json.dumps(mark)})
        if age:
            assert sweep(bench.calls, bench.administrator, "conformance", lambda _: None)
        else:
            with pytest.raises(TargetError, match=r"A run uses .*: run r of somebody on another"):
                sweep(bench.calls, bench.administrator, "conformance", lambda _: None)
            assert reads(bench) == before


@pytest.mark.parametrize(("kind", "share", "seed"), [("gateway", 0.02, 1), ("gateway", 0.1, 4), ("mixed", 0.02, 5)])
def test_after_a_sweep_on_a_failing_network_nothing_is_left(kind: str, share: float, seed: int) -> None:
    bench = Bench()
    before = reads(bench)
    with (
        EmbeddedServer(bench.service) as server,
        Proxy(server.port, Disturbed(kind, share), seed) as proxy,
        Client(ClientSettings(base_url=proxy.base_url)) as client,
    ):
        calls = Calls(by_http(client), bench.made)
        order = replace(bench.order(), base_url=proxy.base_url, at_once=4)
        assert provision(order, calls, bench.secrets).refused == {}
        removals = sweep(calls, bench.administrator, "conformance", lambda _: None)
    assert proxy.done[kind]
    assert [removal for removal in removals if removal.problem] == []
    assert reads(bench) == before


def test_what_provisioning_did_not_create_is_never_touched() -> None:
    bench = Bench()
    bench.provision()
    admin = bench.administrator
    group = bench.calls.find(admin, "/groups/conformance-1-fresh-group")
    assert group is not None
    bench.calls.send(admin, "POST", "/groups", {"name": "Mine", "path": "conformance-mine"})
    inner = {"name": "Mine too", "path": "mine-too", "parent_id": group["id"]}
    bench.calls.send(admin, "POST", "/groups", inner)
    removals = {removal.what: removal.problem for removal in sweep(bench.calls, admin, "conformance", lambda _: None)}
    assert "mine-too lies in it" in removals["group conformance-1-fresh-group"]
    assert [what for what, problem in removals.items() if problem] == ["group conformance-1-fresh-group"]
    assert bench.calls.find(admin, "/groups/conformance-mine") is not None


@pytest.mark.parametrize("lists_contents", [True, False])
def test_what_a_search_does_not_show_keeps_its_group(lists_contents: bool) -> None:  # noqa: FBT001
    def by_name(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        """Search in names only, and perhaps list the projects in a group."""
        if lists_contents and re.fullmatch(r"/groups/\d+/projects", path):
            own = way(token, "GET", path.rpartition("/")[0], {}, None).entry["full_path"]
            found = way(token, "GET", "/projects", {}, None)
            inside = [one for one in found.body if one["path_with_namespace"].startswith(f"{own}/")]
            return replace(found, body=inside)
        asked = {name: value for name, value in query.items() if not name.startswith("search")}
        answer = way(token, method, path, asked, body)
        if "search" not in query or not isinstance(answer.body, list):
            return answer
        return replace(answer, body=[one for one in answer.body if query["search"] in one["name"]])

    bench = Bench()
    bench.provision()
    group = bench.calls.find(bench.administrator, "/groups/conformance-1-fresh-group") or {}
    inner = {"name": "Mine", "path": "mine", "namespace_id": group["id"]}
    bench.calls.send(bench.administrator, "POST", "/projects", inner)
    bench.alter = changed(by_name)
    removals = sweep(bench.calls, bench.administrator, "conformance", lambda _: None)
    assert [one.what for one in removals if one.problem] == ["group conformance-1-fresh-group"]
    assert bench.calls.find(bench.administrator, "/projects/conformance-1-fresh-group%2Fmine") is not None


def test_a_project_that_is_deleted_later_with_its_owner_is_no_leftover() -> None:
    def kept(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        """Accept the deletion of a project outside of groups, but delete it only with its owner."""
        if method == "DELETE" and re.fullmatch(r"/projects/\d+", path):
            project = way(token, "GET", path, {}, None).entry
            if project.get("namespace", {}).get("kind") == "user":
                return Answer(202, None)
        if method == "DELETE" and path.startswith("/users/"):
            user = way(token, "GET", path.partition("?")[0], {}, None).entry
            for one in bench.service.identities.projects.values():
                if one.full_path.startswith(f"{user.get('username')}/"):
                    way(token, "DELETE", f"/projects/{one.id}", {}, None)
                    break
        return way(token, method, path, query, body)

    bench = Bench(alter=changed(kept), patience=0.05)
    before = reads(bench)
    bench.provision()
    told: list[Removal] = []
    removals = sweep(bench.calls, bench.administrator, "conformance", told.append)
    assert [removal for removal in removals if removal.problem] == []
    assert told == list(removals)
    assert any(removal.what.startswith("project ") for removal in removals)
    assert reads(bench) == before
