"""A merge request of a served reference, for tests of its approvals and of its approval rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

    from selftest.reference.conftest import Served

#: The fields of an approval rule of a merge request.
RULE = {
    *("id", "name", "rule_type", "eligible_approvers", "approvals_required", "users", "groups"),
    *("contains_hidden_groups", "source_rule", "overridden"),
}
#: A version at which the API can change the approval configuration of a project.
BEFORE_16 = "15.11"


class Review:
    """A merge request as its reviewers see it, and the rules and the configuration of its project."""

    def __init__(self, served: Served, fixture: str = "merge_request") -> None:
        found = served.service.world.one(fixture)
        self.served = served
        self.id = found.id
        self.sha = str(found.extra["sha"])
        self.project = f"/projects/{found.extra['project_id']}"
        self.path = f"{self.project}/merge_requests/{found.extra['iid']}"

    def get(self, what: str, actor: str = "maintainer") -> Any:
        """Return what an actor reads below the merge request."""
        answer = self.served.acting_as(actor).get(f"{self.path}/{what}", params={"per_page": 100})
        return answer.raise_for_status().json()

    def act(self, actor: str, what: str = "approve", **said: object) -> httpx.Response:
        """Approve, unapprove or reset."""
        method = "PUT" if what == "reset_approvals" else "POST"
        return self.served.acting_as(actor).request(method, f"{self.path}/{what}", json=said)

    def try_rule(self, actor: str = "maintainer", **said: object) -> httpx.Response:
        """Send exactly these values to create a rule of the merge request."""
        return self.served.acting_as(actor).post(f"{self.path}/approval_rules", json=said)

    def rule(self, actor: str = "maintainer", **said: object) -> dict[str, Any]:
        """Create a rule of the merge request, and return it."""
        answer = self.try_rule(actor, **{"name": "Own rule", "approvals_required": 1, **said})
        made: dict[str, Any] = answer.raise_for_status().json()
        return made

    def project_rule(self, **said: object) -> dict[str, Any]:
        """Create a rule of the project, and return it."""
        body = {"name": "Project rule", "approvals_required": 1, **said}
        answer = self.served.acting_as("maintainer").post(f"{self.project}/approval_rules", json=body)
        made: dict[str, Any] = answer.raise_for_status().json()
        return made

    def configure(self, **said: object) -> None:
        """Change the approval configuration of the project."""
        self.served.acting_as("maintainer").post(f"{self.project}/approvals", json=said).raise_for_status()

    def approved_by(self) -> list[str]:
        """Return the names of the actors who have approved."""
        names = {record.username: name for name, record in self.served.service.world.actors.items()}
        return [names[entry["user"]["username"]] for entry in self.get("approvals")["approved_by"]]

    def user(self, name: str) -> int:
        """Return the id of an actor."""
        return self.served.service.world.actors[name].id
