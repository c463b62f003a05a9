from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.reference import Choices
from conformance.reference.areas.approval_settings import ApprovalSettings
from conformance.reference.choices import Handing, Repeat, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from selftest.reference.conftest import Served

INDEPENDENT = (
    "allow_author_approval",
    "allow_committer_approval",
    "allow_overrides_to_approver_list_per_merge_request",
    "retain_approvals_on_push",
    "selective_code_owner_removals",
)
PASSWORD, REAUTHENTICATION = "require_password_to_approve", "require_reauthentication_to_approve"
PLACES = {"group": "groups", "subgroup": "groups", "project": "projects", "subgroup_project": "projects"}


class Settings:
    """The approval settings of one group or project, as one client sees them."""

    def __init__(self, served: Served, actor: str | None, place: str) -> None:
        self.client = served.acting_as(actor) if actor else served.anonymous()
        kind = PLACES.get(place, "projects" if place.endswith("project") else "groups")
        self.path = f"/{kind}/{served.id_of(place)}/merge_request_approval_setting"

    def read(self) -> dict[str, dict[str, object]]:
        answer = self.client.get(self.path)
        assert answer.status_code == 200
        settings: dict[str, dict[str, object]] = answer.json()
        return settings

    def values(self) -> dict[str, object]:
        return {name: setting["value"] for name, setting in self.read().items()}

    def put(self, **wanted: object) -> httpx.Response:
        return self.client.put(self.path, json=wanted)


@pytest.mark.parametrize("place", ["group", "project"])
def test_settings_are_changed_one_by_one_and_the_others_stay(served: Served, place: str) -> None:
    settings = Settings(served, "owner" if place == "group" else "maintainer", place)
    assert settings.put(retain_approvals_on_push=False).status_code == 200
    for name in (*INDEPENDENT, REAUTHENTICATION):
        before = settings.values()
        wanted = not before[name]
        answer = settings.put(**{name: wanted})
        expected = {**before, name: wanted}
        if name == REAUTHENTICATION:
            expected[PASSWORD] = wanted
        assert settings.values() == expected
        assert answer.json() == settings.read()
        assert settings.put(**{name: not wanted}).status_code == 200


def test_the_response_has_the_settings_of_the_version(serve: Callable[..., Served]) -> None:
    for version, names in {
        "12.3": {*INDEPENDENT, PASSWORD},
        "17.0": {*INDEPENDENT, PASSWORD},
        "17.1": {*INDEPENDENT, PASSWORD, REAUTHENTICATION},
    }.items():
        served = serve(version)
        settings = Settings(served, "owner", "group")
        read = settings.read()
        assert set(read) == names
        assert all(
            setting == {"value": setting["value"], "locked": False, "inherited_from": None} for setting in read.values()
        )
        assert settings.put(**{REAUTHENTICATION: True}).status_code == 200
        assert settings.values()[PASSWORD] is (version == "17.1")


def test_the_password_setting_is_shown_but_cannot_be_set(served: Served) -> None:
    settings = Settings(served, "maintainer", "project")
    assert settings.put(**{PASSWORD: True}).status_code == 200
    assert settings.values()[PASSWORD] is False
    project = served.service.identities.projects[served.id_of("project")]
    area = served.service.area(ApprovalSettings)
    assert not area.password_required(project)
    settings.put(**{REAUTHENTICATION: True})
    assert area.password_required(project)


def test_selective_removals_and_retained_approvals_are_never_both_on(serve: Callable[..., Served]) -> None:
    for choice, code in ((Unfit.REFUSE, 400), (Unfit.DROP, 200)):
        settings = Settings(serve(choices=Choices(selective_removals_while_retaining=choice)), "maintainer", "project")
        pair = {"retain_approvals_on_push": True, "selective_code_owner_removals": True}
        assert settings.put(**pair).status_code == code
        assert settings.put(retain_approvals_on_push=False).status_code == 200
        assert settings.put(selective_code_owner_removals=True).status_code == 200
        assert settings.values()["selective_code_owner_removals"] is True
        assert settings.put(retain_approvals_on_push=True).status_code == code
        values = settings.values()
        assert [values[name] for name in pair] == ([False, True] if code == 400 else [True, False])


def test_a_stricter_group_locks_the_setting_below_until_it_is_relaxed(served: Served) -> None:
    group = Settings(served, "owner", "group")
    below = [Settings(served, "owner", place) for place in ("subgroup", "project", "subgroup_project", "empty_project")]
    beside = [Settings(served, "owner", place) for place in ("sibling_group", "sibling_project")]
    before = [settings.read() for settings in (*below, *beside)]
    below[1].put(allow_author_approval=True)
    group.put(allow_author_approval=False)
    group.put(**{REAUTHENTICATION: True})
    for settings in below:
        read = settings.read()
        locked = {"locked": True, "inherited_from": "group"}
        assert read["allow_author_approval"] == {"value": False, **locked}
        assert read[REAUTHENTICATION] == read[PASSWORD] == {"value": True, **locked}
        assert settings.put(allow_author_approval=True, allow_committer_approval=True).status_code == 200
        assert settings.read()["allow_author_approval"] == {"value": False, **locked}
        assert settings.values()["allow_committer_approval"] is True
    assert group.read()["allow_author_approval"] == {"value": False, "locked": False, "inherited_from": None}
    assert [settings.read() for settings in beside] == before[len(below) :]
    group.put(allow_author_approval=True)
    unlocked = below[1].read()["allow_author_approval"]
    assert unlocked == {"value": True, "locked": False, "inherited_from": None}


def test_which_settings_a_group_locks_is_a_choice(serve: Callable[..., Served]) -> None:
    seen = {}
    for handing in Handing:
        choices = Choices(group_settings_bind=handing, locked_setting_written=Unfit.REFUSE)
        served = serve(choices=choices)
        Settings(served, "owner", "group").put(allow_author_approval=True, allow_committer_approval=False)
        project = Settings(served, "owner", "project")
        read = project.read()
        locked = {name for name in INDEPENDENT if read[name]["locked"]}
        refused = {name for name in INDEPENDENT[:2] if not project.put(**{name: not read[name]["value"]}).is_success}
        assert refused == locked
        seen[handing] = locked
    assert seen == {
        Handing.NONE: set(),
        Handing.STRICTER: {"allow_committer_approval"},
        Handing.ALL: {"allow_author_approval", "allow_committer_approval"},
    }


def test_selective_removals_are_off_again_when_the_group_no_longer_locks_resets(served: Served) -> None:
    group, project = Settings(served, "owner", "group"), Settings(served, "maintainer", "project")
    project.put(retain_approvals_on_push=True)
    group.put(retain_approvals_on_push=False)
    assert project.put(selective_code_owner_removals=True).status_code == 200
    assert project.values()["selective_code_owner_removals"] is True
    group.put(retain_approvals_on_push=True)
    values = project.values()
    assert (values["retain_approvals_on_push"], values["selective_code_owner_removals"]) == (True, False)


@pytest.mark.parametrize("place", ["group", "project"])
@pytest.mark.parametrize("value", ["maybe", {}, [], 2, 1.5])
def test_a_value_that_is_no_boolean_changes_nothing(served: Served, place: str, value: object) -> None:
    settings = Settings(served, "owner", place)
    before = settings.read()
    for name in (*INDEPENDENT, REAUTHENTICATION):
        other = "allow_committer_approval" if name == "allow_author_approval" else "allow_author_approval"
        assert settings.put(**{other: not before[other]["value"], name: value}).status_code == 400
    assert settings.read() == before


def test_by_choice_an_empty_update_is_accepted_or_refused_and_changes_nothing(
    serve: Callable[..., Served],
) -> None:
    for choice, code in ((Repeat.ACCEPT, 200), (Repeat.REFUSE, 400)):
        served = serve(choices=Choices(empty_settings_update=choice, unshown_bodies=False))
        for place in ("group", "project"):
            settings = Settings(served, "owner", place)
            before = settings.read()
            answer = settings.put()
            assert answer.status_code == code
            assert settings.read() == before
            if place == "project" and code == 200:
                assert answer.content == b""


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("group", {None: 401, "outsider": 404, "guest": 403, "developer": 403, "maintainer": 403, "owner": 200}),
        ("project", {None: 401, "outsider": 404, "guest": 403, "developer": 403, "maintainer": 200, "owner": 200}),
    ],
)
def test_group_settings_need_an_owner_and_project_settings_a_maintainer(
    served: Served, place: str, code: dict[str | None, int]
) -> None:
    before = Settings(served, "owner", place).read()
    for actor, expected in code.items():
        settings = Settings(served, actor, place)
        wanted = not before["allow_author_approval"]["value"]
        assert settings.client.get(settings.path).status_code == expected
        assert settings.put(allow_author_approval=wanted).status_code == expected
        if expected != 200:
            assert Settings(served, "owner", place).read() == before
    for kind in ("groups", "projects"):
        path = f"/{kind}/999999/merge_request_approval_setting"
        assert served.acting_as("owner").get(path).status_code == 404
        assert served.acting_as("owner").put(path, json={"allow_author_approval": True}).status_code == 404
