"""The story that shows foreign faults: everything that happens to a service, in order, and what it answers."""

from __future__ import annotations

import gzip
import json
import re
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from conformance.reference.server import ask
from selftest.conftest import NO_AUTHORITIES
from selftest.reference.chapters import LAST_CHAPTERS, LATER_CHAPTERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.proof.matrix import MovedClock
    from conformance.reference import Service

_MOMENT = re.compile(r"\d{4}-(0\d|1[0-2])-([0-2]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z")
_FEBRUARY = re.compile(r"-02-30")


class ToldOtherwiseError(Exception):
    """A service answers otherwise than a healthy one."""


class Story:
    """
    Everything that happens, in order, to a service; `told` are the answers.

    With the answers of a healthy service it ends at the first that differs.
    """

    def __init__(
        self, service: Service, client: httpx.Client, clock: MovedClock, healthy: Sequence[str] | None = None
    ) -> None:
        self.world, self.client, self.service, self.clock = service.world, client, service, clock
        self.told: list[str] = []
        self._healthy = healthy

    def remember(self, answer: str) -> None:
        """Remember an answer; raise ToldOtherwiseError where a healthy service gave another."""
        place = len(self.told)
        self.told.append(answer)
        if self._healthy is not None and self._healthy[place : place + 1] != [answer]:
            raise ToldOtherwiseError(answer)

    def call(self, actor: str, method: str, path: str, body: Any = None, *, token: str | None = None) -> Any:
        """Send one call, by an actor or with a token, and remember the answer."""
        sent = token if token is not None else self.world.actors[actor].token if actor else ""
        status, headers, content = self._ask(method, path, body, sent)
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        text = content.decode(errors="replace")  # what is packed twice is no text
        if not _FEBRUARY.search(text):
            text = _MOMENT.sub("MOMENT", text)
        text = re.sub(r'"created":(\d{10})\b', '"created":SECONDS', text)
        name = headers.get("content-disposition", "")
        self.remember(f"{actor} {method} {path} {body or ''} -> {status} {name} {text}")
        try:
            return json.loads(content)
        except ValueError:
            return None

    def _ask(self, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Mapping[str, str], bytes]:
        """Send one call without a connection, which would take most of the time."""
        headers = {"accept-encoding": "gzip"} | ({"private-token": token} if token else {})
        place, _, query = path.partition("?")
        content = b"" if body is None else json.dumps(body).encode()
        headers |= {"content-type": "application/json"} if content else {}
        return ask(self.service, method, f"/api/v4{place}", query, headers, content)

    def read(self, path: str) -> Any:
        """Return what an owner reads; it is not remembered."""
        return json.loads(self._ask("GET", path, token=self.world.actors["owner"].token)[2])

    def at_once(self, *calls: tuple[str, str, str, Any]) -> None:
        """Send calls side by side; what they are answered is not remembered, for any may come first."""

        together = threading.Barrier(len(calls))

        def send(actor: str, method: str, path: str, body: Any) -> None:
            headers = {"private-token": self.world.actors[actor].token}
            with httpx.Client(base_url=self.client.base_url, trust_env=False, verify=NO_AUTHORITIES) as own:
                own.get("/version")  # connected before they meet
                together.wait(10)
                own.request(method, path, json=body, headers=headers)

        threads = [threading.Thread(target=send, args=each) for each in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    # -- chapters -----------------------------------------------------------------------------------------------------

    def tell(self) -> list[str]:
        """Tell everything and return what was answered."""
        self._scope()
        self._scope_by_path()
        self._rules()
        self._approvals()
        self._passwords()
        self._rules_of_merge_requests()
        self._settings()
        self._integrations()
        self._exports()
        self._completions()
        self._tokens()
        for chapter in LATER_CHAPTERS:
            chapter(self)
        self._at_once()
        # Last, for these are most of the calls, and most faults have shown by now.
        for project in ("project", "subgroup_project"):
            for form in ("id", "path"):
                self._callers(project, form)
        for group in ("group", "subgroup"):
            for form in ("id", "path"):
                self._callers_of_groups(group, form)
        for chapter in LAST_CHAPTERS:
            chapter(self)
        return self.told

    def _place(self, name: str, form: str = "id") -> str:
        fixture = self.world.one(name)
        kind = "groups" if "group" in name and "project" not in name else "projects"
        return f"/{kind}/{fixture.id if form == 'id' else quote(fixture.path or '', safe='')}"

    def _callers(self, project: str, form: str) -> None:
        place = self._place(project, form)
        target = self.world.many("allowlist_projects")[4].id
        group = self.world.many("allowlist_groups")[4].id
        scope, settings = f"{place}/job_token_scope", f"{place}/merge_request_approval_setting"
        slack = {"webhook": "https://hooks.example.com/a"}
        for actor in ("", "outsider", "guest", "reporter", "developer", "maintainer", "owner", "admin"):
            self.call(actor, "GET", scope)
            self.call(actor, "PATCH", scope, {"enabled": False})
            self.call("maintainer", "GET", scope)
            self.call(actor, "PATCH", scope, {"enabled": True})
            self.call(actor, "POST", f"{scope}/allowlist", {"target_project_id": target})
            self.call(actor, "GET", f"{scope}/allowlist?page=1&per_page=9")
            self.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": target})
            self.call(actor, "DELETE", f"{scope}/allowlist/{target}")
            self.call(actor, "POST", f"{scope}/groups_allowlist", {"target_group_id": group})
            self.call("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": group})
            self.call("maintainer", "GET", f"{scope}/groups_allowlist?page=1&per_page=9")
            self.call(actor, "DELETE", f"{scope}/groups_allowlist/{group}")
            self.call("maintainer", "GET", f"{scope}/groups_allowlist?page=1&per_page=9")
            for name in ("integrations", "services"):
                self.call(actor, "PUT", f"{place}/{name}/slack", slack)
                self.call(actor, "GET", f"{place}/{name}")
                self.call(actor, "GET", f"{place}/{name}/slack")
                self.call("maintainer", "PUT", f"{place}/{name}/slack", slack)
                self.call(actor, "DELETE", f"{place}/{name}/slack")
                self.call("maintainer", "GET", f"{place}/{name}")
            self.call(actor, "GET", settings)
            self.call(actor, "PUT", settings, {"allow_committer_approval": actor != "outsider"})
            self.call(actor, "GET", f"{place}/merge_requests/1/approval_state")
            self.call(actor, "PUT", f"{place}/merge_requests/1/reset_approvals")
            self.call(actor, "GET", f"{place}/approval_rules?page=1&per_page=9")
        made = self.call("maintainer", "POST", f"{place}/approval_rules", self._rule("Of a form", 1))
        self.call("maintainer", "DELETE", f"{place}/approval_rules/{made['id']}")
        self.call("maintainer", "GET", f"{place}/approval_rules?page=1&per_page=9")

    def _callers_of_groups(self, group: str, form: str) -> None:
        place = self._place(group, form)
        rules = f"{place}/approval_rules"
        for actor in ("", "outsider", "reporter", "developer", "maintainer", "owner", "admin"):
            self.call(actor, "GET", f"{place}/merge_request_approval_setting")
            self.call(actor, "PUT", f"{place}/merge_request_approval_setting", {"retain_approvals_on_push": True})
            self.call(actor, "GET", f"{rules}?page=1&per_page=1")
            self.call(actor, "GET", f"{rules}?page=2&per_page=1")
            self.call(actor, "POST", f"{rules}?name=queried&approvals_required=1")
            made = self.call("owner", "POST", rules, self._rule(f"Of {actor}", 1))
            self.call(actor, "PUT", f"{rules}/{made['id']}", {"name": f"changed by {actor}"})
            self.call(actor, "GET", f"{place}/export_relations/status")
        self.call("owner", "GET", f"{rules}?page=1&per_page=50")

    def _scope(self) -> None:
        scope = f"{self._place('project')}/job_token_scope"
        targets = [one.id for one in self.world.many("allowlist_projects")]
        groups = [one.id for one in self.world.many("allowlist_groups")]

        def look() -> None:
            for actor in ("maintainer", "owner", "admin"):
                self.call(actor, "GET", scope)
                self.call(actor, "GET", f"{scope}/allowlist?page=1&per_page=20")
                self.call(actor, "GET", f"{scope}/groups_allowlist?page=1&per_page=20")
            self.call("maintainer", "GET", f"{self._place('sibling_project')}/job_token_scope")
            self.call("maintainer", "GET", f"{self._place('sibling_project')}/job_token_scope/allowlist")

        look()
        for number in targets:
            self.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": number})
        for number in [*groups, *targets[:2]]:
            self.call("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": number})
        look()
        self.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{groups[0]}")
        self.call("maintainer", "DELETE", f"{scope}/groups_allowlist/{targets[0]}")
        self.call("maintainer", "DELETE", f"{scope}/allowlist/{targets[0]}")
        look()
        self.call("maintainer", "POST", f"{scope}/groups_allowlist", {"target_group_id": groups[0]})
        look()
        self.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": targets[0]})
        self.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": 4711})
        for enabled in (True, True, False, False, True):
            self.call("maintainer", "PATCH", scope, {"enabled": enabled})
            look()
        self.call("owner", "DELETE", f"{scope}/groups_allowlist/{groups[1]}")
        look()

    def _scope_by_path(self) -> None:
        scope = f"{self._place('project', 'path')}/job_token_scope"
        target = self.world.many("allowlist_projects")[3].id
        self.call("maintainer", "DELETE", f"{scope}/allowlist/{target}")
        self.call("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": target})
        self.call("maintainer", "GET", f"/projects/{2**32 + self.world.one('project').id}/job_token_scope")
        self.call("maintainer", "GET", f"{self._place('project', 'path')}-2/job_token_scope")
        self.call("owner", "GET", "/groups/subgroup/approval_rules")

    def _rule(self, name: str, number: int, **more: Any) -> dict[str, Any]:
        return {"name": name, "approvals_required": number, **more}

    def _people(self, *names: str) -> list[int]:
        return [self.world.actors[name].id for name in names]

    def _rules(self) -> None:
        project, other = self._place("project"), self._place("sibling_project")
        group, other_group = self._place("group"), self._place("sibling_group")
        two = self._people("approver", "second_approver")
        groups = [self.world.one("approver_group").id, self.world.one("second_approver_group").id]
        branches = [self.world.one("protected_branch").id, self.world.one("second_protected_branch").id]
        rules = f"{project}/approval_rules"
        lists = {"user_ids": two, "group_ids": groups, "protected_branch_ids": branches}
        older = self.call("maintainer", "POST", rules, self._rule("Older", 2, **lists))
        newer = self.call("maintainer", "POST", rules, self._rule("Newer", 1, user_ids=two[:1]))
        foreign = self.call("maintainer", "POST", f"{other}/approval_rules", self._rule("Elsewhere", 1, user_ids=two))
        of_group = self.call("owner", "POST", f"{group}/approval_rules", self._rule("G", 1, group_ids=groups))
        of_other = self.call("owner", "POST", f"{other_group}/approval_rules", self._rule("H", 1))
        own = self.call("maintainer", "POST", f"{project}/merge_requests/1/approval_rules", self._rule("Own", 1))
        for number in (older["id"], foreign["id"], of_group["id"], own["id"]):
            self.call("maintainer", "GET", f"{rules}/{number}")
            self.call("maintainer", "PUT", f"{rules}/{number}", self._rule("Changed", 1, user_ids=two, group_ids=[]))
            self.call("maintainer", "PUT", f"{rules}/{number}", {"name": "Refused"})
        both = {"user_ids": two[:1], "usernames": [self.world.actors["second_approver"].username], "group_ids": []}
        self.call("maintainer", "PUT", f"{rules}/{older['id']}", self._rule("Both", 2, **both))
        for number in (of_other["id"], older["id"], of_group["id"]):
            self.call("owner", "PUT", f"{group}/approval_rules/{number}", {"name": "Changed by the group"})
        self.call("maintainer", "GET", f"{rules}?page=1&per_page=50")
        self.call("maintainer", "GET", f"{other}/approval_rules?page=1&per_page=50")
        self.call("owner", "GET", f"{other_group}/approval_rules?page=1&per_page=50")
        for number in (foreign["id"], newer["id"]):
            self.call("maintainer", "DELETE", f"{rules}/{number}")
            self.call("maintainer", "GET", f"{rules}?page=1&per_page=50")
        self.call("maintainer", "POST", rules, self._rule("Third", 1))
        self.call("maintainer", "GET", f"{rules}?page=1&per_page=50")
        self.call("maintainer", "GET", f"{other}/approval_rules?page=1&per_page=50")
        alone = self.call("maintainer", "POST", f"{self._place('empty_project')}/approval_rules", self._rule("One", 1))
        self.call("maintainer", "DELETE", f"{self._place('empty_project')}/approval_rules/{alone['id']}")
        self.call("maintainer", "GET", f"{self._place('empty_project')}/approval_rules")
        older_settings = {"approvals_before_merge": 2, "merge_requests_author_approval": True}
        self.call("owner", "POST", f"{project}/approvals", older_settings)
        self.call("owner", "GET", f"{project}/approvals")

    def _approvals(self) -> None:
        first = self.world.one("merge_request").extra
        second = self.world.one("second_merge_request").extra
        places = [f"{self._place('project')}/merge_requests/{one['iid']}" for one in (first, second)]
        place, sha = places[0], str(first["sha"])
        rule = self._rule("Two of us", 2, user_ids=self._people("approver", "second_approver"))
        self.call("maintainer", "POST", f"{place}/approval_rules", rule)

        def look() -> None:
            for each in places:
                self.call("developer", "GET", f"{each}/approvals")
                self.call("developer", "GET", f"{each}/approval_state")
            self.call("approver", "GET", f"{place}/approval_state")
            self.call("developer", "GET", f"{place}/approvals")

        look()
        shas = (sha[:8], sha + "0", ("0" if sha[0] != "0" else "1") + sha[1:], str(second["sha"]), "1" * 40)
        for wrong in shas:
            for actor in ("approver", "admin"):
                self.call(actor, "POST", f"{place}/approve", {"sha": wrong})
        look()
        self.call("approver", "POST", f"{place}/approve", {"sha": sha})
        look()
        self.call("second_approver", "POST", f"{place}/approve")
        self.call("approver", "POST", f"{places[1]}/approve")
        self.call("owner", "POST", f"{place}/approve", {"sha": "1" * 40})
        look()
        self.call("second_approver", "POST", f"{place}/unapprove")
        look()
        self.call("approver", "POST", f"{place}/unapprove")
        self.call("approver", "POST", f"{place}/approve", {"sha": "1" * 40})
        look()
        self.call("approver", "POST", f"{place}/approve")
        look()
        for bot in ("project_bot", "group_bot", "project_bot"):
            self.call("second_approver", "POST", f"{place}/approve")
            self.call("owner", "PUT", f"{place}/reset_approvals")
            self.call(bot, "PUT", f"{place}/reset_approvals")
            look()
        last = self.world.one("merge_request").id
        for number in (last, 7, 8, 9, 99):
            self.call("developer", "GET", f"{self._place('project')}/merge_requests/{number}/approvals")
            self.call("developer", "GET", f"{self._place('subgroup_project')}/merge_requests/{number}/approvals")
        self.call("developer", "GET", f"{self._place('subgroup_project')}/merge_requests/1/approvals")

    def _passwords(self) -> None:
        known = self.world.one("password_merge_request").extra
        place = f"{self._place('guarded_project')}/merge_requests/{known['iid']}"
        own, other = self.world.actors["approver"].password, self.world.actors["owner"].password
        for password in ("", other, own[:6], own.upper(), "no"):
            self.call("approver", "POST", f"{place}/approve", {"approval_password": password})
        self.call("owner", "POST", f"{place}/approve")
        self.call("approver", "POST", f"{place}/approve", {"sha": known["sha"]})
        self.call("developer", "GET", f"{place}/approvals")

    def _rules_of_merge_requests(self) -> None:
        project = self._place("project")
        iids = [self.world.one(name).extra["iid"] for name in ("second_merge_request", "reset_merge_request")]
        place, other = (f"{project}/merge_requests/{iid}/approval_rules" for iid in iids)
        names = [self.world.actors[name].username for name in ("approver", "second_approver")]
        source = self.call("maintainer", "POST", f"{project}/approval_rules", self._rule("Source", 1))
        elsewhere = self.call(
            "maintainer", "POST", f"{self._place('sibling_project')}/approval_rules", self._rule("E", 1)
        )
        older = self.call("maintainer", "POST", place, self._rule("Older", 1, usernames=names))
        copy = self.call("maintainer", "POST", place, self._rule("Copy", 2, approval_project_rule_id=source["id"]))
        self.call("maintainer", "POST", place, self._rule("Copy", 2, approval_project_rule_id=elsewhere["id"]))
        self.call("maintainer", "GET", f"{place}?page=1&per_page=50")
        foreign = self.call("maintainer", "POST", other, self._rule("Of another", 1))
        for number in (older["id"], foreign["id"]):
            self.call("maintainer", "GET", f"{place}/{number}")
        for number in (copy["id"], source["id"]):
            self.call("maintainer", "PUT", f"{place}/{number}", {"name": "Renamed", "user_ids": [], "group_ids": []})
        for number in (foreign["id"], source["id"], older["id"], copy["id"]):
            self.call("maintainer", "DELETE", f"{place}/{number}")
            self.call("maintainer", "GET", f"{place}?page=1&per_page=50")
            self.call("maintainer", "GET", f"{other}?page=1&per_page=50")
            self.call("maintainer", "GET", f"{project}/approval_rules?page=1&per_page=50")
        iid = self.world.one("reset_merge_request").extra["iid"]
        self.call("project_bot", "PUT", f"{project}/merge_requests/{iid}/reset_approvals")
        self.call("maintainer", "GET", f"{other}?page=1&per_page=50")

    def _settings(self) -> None:
        setting = "merge_request_approval_setting"
        places = ("project", "sibling_project", "guarded_project", "group", "sibling_group", "fresh_group")
        for place in ("fresh_project", "fresh_group"):
            actor = "owner" if place == "fresh_group" else "maintainer"
            for value in (True, False):
                for name in ("allow_author_approval", "allow_committer_approval", "retain_approvals_on_push"):
                    self.call(actor, "PUT", f"{self._place(place)}/{setting}", {name: value})
                    for other in (place, *places):
                        self.call("owner", "GET", f"{self._place(other)}/{setting}")

    def _integrations(self) -> None:
        place, other = f"{self._place('project')}/integrations", f"{self._place('sibling_project')}/integrations"
        full = {"webhook": "https://hooks.example.com/b", "push_events": False, "username": "bot"}
        full |= {"notify_only_broken_pipelines": True, "channel": "x"}

        def look() -> None:
            for each in (place, other):
                self.call("maintainer", "GET", each)
                for slug in ("slack", "mattermost", "discord"):
                    self.call("maintainer", "GET", f"{each}/{slug}")

        for slug in ("slack", "mattermost", "discord"):
            self.call("maintainer", "PUT", f"{place}/{slug}", full)
        look()
        look()
        for slug in ("slack", "mattermost"):
            self.call("maintainer", "DELETE", f"{place}/{slug}")
            look()
            self.call("maintainer", "PUT", f"{place}/{slug}", {"webhook": "https://hooks.example.com/c"})
            look()
        self.call("maintainer", "GET", f"{place}/slacks")
        self.call("outsider", "DELETE", f"{place}/slack")

    def _exports(self) -> None:
        group = f"{self._place('export_group')}/export_relations"
        for body, batches in (
            ({}, ("",)),
            ({"batched": True}, ("&batched=true&batch_number=1", "&batched=true&batch_number=2")),
        ):
            self.call("owner", "POST", group, body)
            self.until_finished(f"{group}/status")
            self.call("owner", "GET", f"{group}/status")
            for relation in ("labels", "milestones", "boards", "badges", "members"):
                self.call("owner", "GET", f"{group}/status?relation={relation}")
                for batch in batches:
                    self.call("owner", "GET", f"{group}/download?relation={relation}{batch}")

    def until_finished(self, path: str) -> None:
        """Put the clock forward until no export of a group is under way."""
        while any(one["status"] == 0 for one in self.read(path)):
            self.clock.skip(self.service.choices.export_delay_seconds)

    def _completions(self) -> None:
        file = {"file_name": "a.py", "content_above_cursor": "def f():"}
        for intent in ("completion", "Completion", "other"):
            self.call("developer", "POST", "/code_suggestions/completions", {"current_file": file, "intent": intent})
        path = self.world.one("enabled_project").path
        for sent in (path, f"{path}-2", "", "no/such"):
            self.call("developer", "POST", "/code_suggestions/enabled", {"project_path": sent})

    def _tokens(self) -> None:
        token = self.world.actors["maintainer"].token
        for sent in (token.upper(), token[:-1], f"{token}x", token):
            self.call("", "GET", self._place("project"), token=sent)

    def _at_once(self) -> None:
        project, group = self._place("public_project"), self._place("public_group")
        scope = f"{project}/job_token_scope"
        targets = [one.id for one in self.world.many("allowlist_projects")]
        groups = [one.id for one in self.world.many("allowlist_groups")]
        place = f"{self._place('project')}/merge_requests/{self.world.one('second_merge_request').extra['iid']}"
        slack, setting = {"webhook": "https://h.example.com"}, f"{project}/merge_request_approval_setting"
        now = self.read(setting)
        # What the group has locked does not change, whoever comes first.
        one, other = [{name: not now[name]["value"]} for name in now if not now[name]["locked"]][:2]
        pairs: tuple[tuple[str, str, str, Any, Any], ...] = (
            (
                f"{scope}/allowlist",
                "POST",
                f"{scope}/allowlist",
                {"target_project_id": targets[0]},
                {"target_project_id": targets[1]},
            ),
            (f"{place}/approvals", "POST", f"{place}/approve", {}, {}),
            (f"{project}/approval_rules", "POST", f"{project}/approval_rules", self._rule("A", 1), self._rule("B", 1)),
            (f"{group}/approval_rules", "POST", f"{group}/approval_rules", self._rule("A", 1), self._rule("B", 1)),
            (f"{place}/approval_rules", "POST", f"{place}/approval_rules", self._rule("A", 1), self._rule("B", 1)),
            (setting, "PUT", setting, one, other),
        )
        for read, method, path, first, second in pairs:
            self.at_once(("owner", method, path, first), ("admin", method, path, second))
            self.count(read)
        self.at_once(
            ("maintainer", "PUT", f"{project}/integrations/slack", slack),
            ("owner", "PUT", f"{project}/integrations/mattermost", slack),
        )
        self.count(f"{project}/integrations")
        self.at_once(
            ("maintainer", "POST", f"{scope}/allowlist", {"target_project_id": targets[2]}),
            ("owner", "POST", f"{scope}/groups_allowlist", {"target_group_id": groups[2]}),
        )
        self.count(f"{scope}/allowlist")
        self.count(f"{scope}/groups_allowlist")

    def count(self, path: str) -> None:
        found = self.read(path)
        if isinstance(found, dict) and "approved_by" in found:
            found = found["approved_by"]
        values = list(found.values()) if isinstance(found, dict) else len(found)
        self.remember(f"{path}: {values}")
