"""Job token scope, explored: both allowlists and the limit follow a model, whatever the order of moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from conformance.contract import Version
from conformance.suite.expectations import Caller, Path, given, must, project_path, verifies
from conformance.suite.models import Model, explore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.runner.session import Session
    from conformance.target import Fixture

LISTS = {"allowlist": "target_project_id", "groups_allowlist": "target_group_id"}
REQUIREMENTS = {"allowlist": "job-token-scope.allowlist", "groups_allowlist": "job-token-scope.groups-allowlist"}

State = dict[str, object]


@pytest.fixture
def put_back(maintainer: Caller, project: Fixture) -> Iterator[None]:
    """Leave lists and limit as they were found."""
    path = project_path(project) / "job_token_scope"
    before = observed(maintainer, path)
    yield
    move_to(maintainer, path, before)


def observed(caller: Caller, path: Path) -> State:
    """Return the limit and the numbers on both lists, as a caller sees them."""
    settings = caller.read(path)
    given(isinstance(settings, dict) and "inbound_enabled" in settings, "the settings cannot be read")
    return {"limit": settings["inbound_enabled"], **{name: set(caller.list(path / name).ids()) for name in LISTS}}


def move_to(caller: Caller, path: Path, wanted: State) -> None:
    """Bring limit and lists to a state by single moves."""
    now = observed(caller, path)
    for name, parameter in LISTS.items():
        for target in now[name] - wanted[name]:  # type: ignore[operator]
            caller.delete(path / name / target)
        for target in wanted[name] - now[name]:  # type: ignore[operator]
            caller.post(path / name, {parameter: target})
    if now["limit"] != wanted["limit"]:
        caller.patch(path, {"enabled": wanted["limit"]})


@pytest.mark.requirements(
    "job-token-scope.switch.on",
    "job-token-scope.switch.off",
    "job-token-scope.allowlists.are-separate",
    *(
        f"{name}.{move}"
        for name in REQUIREMENTS.values()
        for move in ("add.present", "remove.gone", "change.leaves-others")
    ),
)
@pytest.mark.usefixtures("put_back")
def test_lists_and_limit_follow_the_model_in_any_order_of_moves(
    suite: Session,
    maintainer: Caller,
    owner: Caller,
    project: Fixture,
    allowlist_projects: tuple[Fixture, ...],
    allowlist_groups: tuple[Fixture, ...],
) -> None:
    targets = {
        "allowlist": [target.id for target in allowlist_projects[:3]],
        "groups_allowlist": [target.id for target in allowlist_groups[:3]],
    }
    explore(suite, machine(project_path(project) / "job_token_scope", targets, (maintainer, owner)))


def machine(  # noqa: C901 - a machine is its rules, and they share what they are drawn from
    path: Path,
    targets: dict[str, list[int]],
    callers: tuple[Caller, ...],
) -> type[Model]:
    """Make a state machine for one project, whose moves several callers take in turns."""
    names = st.sampled_from(sorted(LISTS))
    places = st.integers(0, 2)
    people = st.sampled_from(callers)

    class JobTokenScope(Model):
        @initialize()
        def start(self) -> None:
            self.model: dict[str, set[int]] = {}
            start = observed(callers[0], path)
            cleared: State = {name: start[name] - set(targets[name]) for name in LISTS}  # type: ignore[operator]
            move_to(callers[0], path, {**cleared, "limit": start["limit"]})
            self.model = {name: set(cleared[name]) for name in LISTS}  # type: ignore[call-overload]
            self.limit = observed(callers[0], path)["limit"]

        @rule(name=names, place=places, caller=people)
        def add(self, name: str, place: int, caller: Caller) -> None:
            target = targets[name][place]
            answer = caller.post(path / name, {LISTS[name]: target})
            if target not in self.model[name]:
                answer.given_served()
            self.model[name].add(target)
            self.compare(name, f"{REQUIREMENTS[name]}.add.present", target)

        @rule(name=names, place=places, caller=people)
        def remove(self, name: str, place: int, caller: Caller) -> None:
            target = targets[name][place]
            answer = caller.delete(path / name / target)
            if target in self.model[name]:
                answer.given_served()
            self.model[name].discard(target)
            self.compare(name, f"{REQUIREMENTS[name]}.remove.gone", target)

        @rule(enabled=st.booleans(), caller=people)
        def switch(self, enabled: bool, caller: Caller) -> None:  # noqa: FBT001 - drawn
            answer = caller.patch(path, {"enabled": enabled})
            version = caller.target_version
            enforced = version is None or version >= Version.parse("18.0")
            if not (enforced and not enabled and answer.exchange.is_refusal):
                answer.given_served()
                self.limit = enabled
            self.compare(None, f"job-token-scope.switch.{'on' if self.limit else 'off'}", None)

        def compare(self, changed: str | None, requirement: str, target: int | None) -> None:
            """Hold the whole state against the model, each difference against the requirement that it breaks."""
            now = observed(callers[0], path)
            limit = requirement if changed is None else f"job-token-scope.switch.{'on' if self.limit else 'off'}"
            with verifies(limit):
                must(now["limit"] == self.limit, f"inbound_enabled = {self.limit}", f"inbound_enabled = {now['limit']}")
            if changed is not None:
                shown: set[int] = now[changed]  # type: ignore[assignment]
                with verifies(requirement):
                    wanted = target in self.model[changed]
                    expected = f"{target} {'in' if wanted else 'not in'} {changed}"
                    must((target in shown) == wanted, expected, f"{changed} = {sorted(shown)}")
            for name in LISTS:
                self.compare_list(name, now[name], is_changed=name == changed)  # type: ignore[arg-type]

        def compare_list(self, name: str, shown: set[int], *, is_changed: bool) -> None:
            others = f"{REQUIREMENTS[name]}.change.leaves-others"
            with verifies(others if is_changed else "job-token-scope.allowlists.are-separate"):
                must(shown == self.model[name], f"{name} = {sorted(self.model[name])}", f"{name} = {sorted(shown)}")

    return JobTokenScope
