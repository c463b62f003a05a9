from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.reference import Choices
from conformance.reference.choices import Unfit
from selftest.reference.reviews import BEFORE_16

if TYPE_CHECKING:
    from collections.abc import Callable

    from selftest.reference.conftest import Served

NO_TRUTH_VALUES: tuple[object, ...] = ("maybe", {})
SETTINGS = {
    "reset_approvals_on_push",
    "selective_code_owner_removals",
    "disable_overriding_approvers_per_merge_request",
    "merge_requests_author_approval",
    "merge_requests_disable_committers_approval",
    "require_password_to_approve",
}


def path(served: Served) -> str:
    return f"/projects/{served.id_of('project')}/approvals"


def test_reading_shows_all_settings_and_never_approvers(served: Served) -> None:
    shown = served.acting_as("reporter").get(path(served)).json()
    assert shown.keys() == {*SETTINGS, "approvers", "approver_groups", "approvals_before_merge"}
    assert (shown["approvers"], shown["approver_groups"], shown["approvals_before_merge"]) == ([], [], 0)
    assert {type(shown[name]) for name in SETTINGS} == {bool}
    assert served.acting_as("guest").get(path(served)).status_code == 403
    assert served.anonymous().get(path(served)).status_code == 401


def test_a_change_stores_what_was_sent_and_keeps_the_rest(serve: Callable[..., Served]) -> None:
    served = serve(BEFORE_16)
    client = served.acting_as("maintainer")
    expected = client.get(path(served)).json()
    changes = [{name: not expected[name]} for name in sorted(SETTINGS)]
    for change in [*changes, {"approvals_before_merge": 3}, {}]:
        answer = client.post(path(served), json=change)
        expected |= change
        without = {name: value for name, value in expected.items() if not name.startswith("approver")}
        assert (answer.status_code, answer.json()) == (201, without)
        assert client.get(path(served)).json() == expected


@pytest.mark.parametrize(
    "change",
    [
        *({name: value} for name in sorted(SETTINGS) for value in NO_TRUTH_VALUES),
        {"approvals_before_merge": "abc"},
        {"approvals_before_merge": -1},
        {"selective_code_owner_removals": True},
        {"reset_approvals_on_push": True, "selective_code_owner_removals": True},
    ],
)
def test_an_invalid_change_is_refused_completely(serve: Callable[..., Served], change: dict[str, object]) -> None:
    served = serve(BEFORE_16)
    client = served.acting_as("maintainer")
    before = client.get(path(served)).json()
    sent = {"merge_requests_author_approval": True, **change}
    assert client.post(path(served), json=sent).status_code == 400
    assert client.get(path(served)).json() == before


def test_removals_are_selective_only_if_pushes_do_not_reset_approvals(serve: Callable[..., Served]) -> None:
    pair = {"reset_approvals_on_push": False, "selective_code_owner_removals": True}
    for choice, code in ((Unfit.REFUSE, 400), (Unfit.DROP, 201)):
        served = serve(BEFORE_16, Choices(conflicting_removals=choice))
        client = served.acting_as("maintainer")
        assert client.post(path(served), json=pair).json()["selective_code_owner_removals"] is True
        assert client.post(path(served), json={"reset_approvals_on_push": True}).status_code == code
        stored = client.get(path(served)).json()
        assert not (stored["reset_approvals_on_push"] and stored["selective_code_owner_removals"])


def test_only_maintainers_change_it_and_other_projects_keep_theirs(serve: Callable[..., Served]) -> None:
    served = serve(BEFORE_16)
    sibling = f"/projects/{served.id_of('sibling_project')}/approvals"
    client = served.acting_as("maintainer")
    before = client.get(sibling).json()
    change = {"merge_requests_author_approval": True}
    codes = {
        actor: served.acting_as(actor).post(path(served), json=change).status_code
        for actor in ("developer", "guest", "outsider", "owner")
    }
    assert codes == {"developer": 403, "guest": 403, "outsider": 404, "owner": 201}
    assert client.get(sibling).json() == before


def test_changing_is_removed_in_16_0_and_by_choice_reading_stays(serve: Callable[..., Served]) -> None:
    codes = {}
    for version, stays in (("12.3", True), (BEFORE_16, False), ("16.0", True), ("16.0", False), ("19.0", True)):
        served = serve(version, Choices(configuration_read_from_16_0=stays))
        client = served.acting_as("maintainer")
        changed = client.post(path(served), json={"merge_requests_author_approval": True})
        codes[version, stays] = changed.status_code, client.get(path(served)).status_code
        if stays:
            assert client.get(path(served)).json()["merge_requests_author_approval"] is changed.is_success
    assert codes == {
        ("12.3", True): (201, 200),
        (BEFORE_16, False): (201, 200),
        ("16.0", True): (404, 200),
        ("16.0", False): (404, 404),
        ("19.0", True): (404, 200),
    }
