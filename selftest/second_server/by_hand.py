"""Fixtures that no call of the specification creates: made by this server's own calls, and added to a profile."""

from __future__ import annotations

import json
import urllib.request
from typing import Any


class Maker:
    """Creates things on a server, as its administrator."""

    def __init__(self, base_url: str, administrator: str) -> None:
        self.base_url, self.administrator = base_url, administrator

    def make(self, path: str, body: dict[str, Any], token: str = "") -> Any:
        """Send a body, and return the response; raise an error if it is refused."""
        address = f"{self.base_url}/api/v4{path}"
        headers = {"PRIVATE-TOKEN": token or self.administrator, "Content-Type": "application/json"}
        request = urllib.request.Request(address, json.dumps(body).encode(), headers, method="POST")  # noqa: S310 - ours
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - the same
            return json.load(answer)


def complete(profile: dict[str, Any], administrator: str) -> None:
    """Create what provisioning leaves to be made by hand, and name it in the profile, which contains its tokens."""
    fixtures = profile["fixtures"]
    maker = Maker(profile["base_url"], administrator)
    _policies(maker, fixtures)
    _branch_rules(maker, fixtures, profile["actors"]["owner"]["token"])
    _chat_app(maker, fixtures)
    profile["features"] |= dict.fromkeys(("approval_policies", "chat_app_integration", "group_branch_rules"), True)


def _place(fixture: dict[str, Any]) -> dict[str, Any]:
    return {"id": fixture["id"], "path": fixture["path"]}


def _policies(maker: Maker, fixtures: dict[str, Any]) -> None:
    """Create rules as policies do: of a project, a group and a merge request."""
    place, group = fixtures["subgroup_project"], fixtures["subgroup"]
    maker.make(f"/projects/{place['id']}/x_system_rule", {"name": "Policy one", "rule_type": "report_approver"})
    maker.make(f"/groups/{group['id']}/x_system_rule", {"name": "Policy two"})
    project = f"/projects/{fixtures['project']['id']}"
    maker.make(f"{project}/repository/branches", {"branch": "policy-mr", "ref": "main"})
    file = {"branch": "policy-mr", "content": "x", "commit_message": "x"}
    maker.make(f"{project}/repository/files/policy.md", file)
    asked = {"source_branch": "policy-mr", "target_branch": "main", "title": "Policy", "description": "d"}
    iid = int(maker.make(f"{project}/merge_requests", asked)["iid"])
    maker.make(f"{project}/x_system_rule", {"name": "Policy three", "rule_type": "report_approver", "iid": iid})
    fixtures["policy_project"], fixtures["policy_group"] = _place(place), _place(group)
    fixtures["report_approver_merge_request"] = {"iid": iid}


def _branch_rules(maker: Maker, fixtures: dict[str, Any], owner: str) -> None:
    """Create a rule of a group that has protected branches."""
    group = fixtures["sibling_group"]
    maker.make(f"/groups/{group['id']}/x_protected_branches", {"name": "main"})
    maker.make(f"/groups/{group['id']}/approval_rules", {"name": "With branches", "approvals_required": 0}, owner)
    fixtures["branch_rule_group"] = _place(group)


def _chat_app(maker: Maker, fixtures: dict[str, Any]) -> None:
    """Install the app that can only be installed in a user interface."""
    project = fixtures["subgroup_project"]["id"]
    maker.make(f"/projects/{project}/x_install_chat_app", {})
    fixtures["installed_chat_app_integration"] = {
        "slug": "gitlab-slack-application",
        "settings": {"username": "appy"},
        "events": ["push_events"],
        "project_id": project,
    }
