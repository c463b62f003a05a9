"""The chapter of the export of a group's relations: scheduled, polled and downloaded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from selftest.reference.chapters.places import NO_GUESTS, at, at_path, during, ids_of
from selftest.reference.story import unpacked

if TYPE_CHECKING:
    from selftest.reference.story import Story


def tell(story: Story) -> None:
    """Make all calls of this chapter that do not overlap."""
    for chapter in (
        _every_relation,
        _settings_and_names,
        _names_and_groups_without_any,
        _batches_by_number,
        _at_once_and_later,
        _without_batches,
        _labels_made_since,
        _of_a_group_inside,
        _labels_in_the_place_of_others,
        _twice_with_a_label_between,
        _outer_and_inner,
        _members_of_other_levels,
        _second_batches,
        _all_batches,
        _without_a_token,
        _names_in_another_case,
        _by_path_and_by_number,
        _inside_what_was_exported,
        _twice_and_from_behind,
        _every_caller,
        _before_it_has_finished,
    ):
        chapter(story)


def tell_at_once(story: Story) -> None:
    """Make the concurrent calls of this chapter."""
    for chapter in (_two_groups_at_once, _two_downloads_at_once):
        chapter(story)


def _every_relation(story: Story) -> None:
    group = f"{at(story, 'export_group')}/export_relations"
    for body, batches in (
        ({}, ("",)),
        ({"batched": True}, ("&batched=true&batch_number=1", "&batched=true&batch_number=2")),
    ):
        story.call("owner", "POST", group, body)
        story.until_finished(f"{group}/status")
        story.call("owner", "GET", f"{group}/status")
        for relation in ("labels", "milestones", "boards", "badges", "members"):
            story.call("owner", "GET", f"{group}/status?relation={relation}")
            for batch in batches:
                story.call("owner", "GET", f"{group}/download?relation={relation}{batch}")


def _settings_and_names(story: Story) -> None:
    group = at(story, "export_group")
    for _ in range(2):
        story.call("owner", "POST", f"{group}/export_relations", {"batched": False})
        story.call("owner", "GET", f"{group}/merge_request_approval_setting")
    story.until_finished(f"{group}/export_relations/status")
    story.call("owner", "GET", f"{group}/export_relations/download?relation=label")
    for relation in ("labels", "milestones"):
        story.call("owner", "GET", f"{at_path(story, 'export_group')}/export_relations/download?relation={relation}")


def _names_and_groups_without_any(story: Story) -> None:
    export = f"/groups/{story.world.one('export_group').id}/export_relations"
    story.call("owner", "POST", export)
    story.until_finished(f"{export}/status")
    story.call("owner", "GET", f"{export}/status?relation=label")
    never = story.world.one("sibling_group").id
    story.call("owner", "GET", f"/groups/{never}/export_relations/download?relation=labels")


def _batches_by_number(story: Story) -> None:
    export = f"/groups/{story.world.one('export_group').id}/export_relations"
    story.call("owner", "POST", export, {"batched": True})
    story.until_finished(f"{export}/status")
    for number in (0, 1):
        story.call("owner", "GET", f"{export}/download?relation=labels&batched=true&batch_number={number}")


def _at_once_and_later(story: Story) -> None:
    """Read an export at once, and compare only what is true at any progress."""
    export = f"/groups/{story.world.one('export_group').id}/export_relations"
    story.call("owner", "POST", export)
    dated = all(one["updated_at"] for one in story.read(f"{export}/status"))
    story.remember(f"All have a time: {dated}")
    story.until_finished(f"{export}/status")
    known = all(one["status"] in {-1, 0, 1} for one in story.read(f"{export}/status"))
    story.remember(f"All have a known status: {known}")


def _without_batches(story: Story) -> None:
    export = f"/groups/{story.world.one('export_group').id}/export_relations"
    story.call("owner", "POST", export, {"batched": False})
    story.until_finished(f"{export}/status")
    story.call("owner", "GET", f"{export}/status?relation=labels")
    other = f"/groups/{story.world.one('subgroup').id}/export_relations"
    story.call("owner", "POST", other)
    story.until_finished(f"{other}/status")
    story.call("owner", "GET", f"{other}/download?relation=labels")


def _labels_made_since(story: Story) -> None:
    group, other = story.world.one("export_group").id, story.world.one("sibling_group").id
    story.call("owner", "POST", f"/groups/{group}/labels", {"name": "made since", "color": "#123456"})
    for place in (group, other):
        story.call("owner", "POST", f"/groups/{place}/export_relations", {})
        story.until_finished(f"/groups/{place}/export_relations/status")
    story.call("owner", "GET", f"/groups/{group}/export_relations/status")
    story.call("owner", "GET", f"/groups/{group}/export_relations/download?relation=labels")


def _of_a_group_inside(story: Story) -> None:
    inner, outer = (f"/groups/{story.world.one(name).id}/export_relations" for name in ("subgroup", "group"))
    for batched in (True, False):
        story.call("owner", "POST", inner, {"batched": batched})
        story.until_finished(f"{inner}/status")
    story.call("owner", "POST", outer, {"batched": False})
    story.until_finished(f"{outer}/status")
    story.call("owner", "GET", f"{inner}/status")
    story.call("owner", "GET", f"{outer}/download?relation=labels")
    by_path = quote(story.world.one("group").path or "", safe="")
    story.call("owner", "GET", f"/groups/{by_path}/export_relations/status?relation=labels")


def _labels_in_the_place_of_others(story: Story) -> None:
    group = story.world.one("fresh_group")
    place = f"/groups/{group.id}/export_relations"
    labels = story.service.planning.labels
    for name in ("first", "second"):
        for number in [number for number, label in labels.items() if label.group_id == group.id]:
            del labels[number]
        story.call("owner", "POST", f"/groups/{group.id}/labels", {"name": name, "color": "#ff0000"})
        story.call("owner", "POST", place, {"batched": True})
        story.call("owner", "GET", f"{place}/status?relation=labels")
        story.until_finished(f"{place}/status")
        story.call("owner", "GET", f"{place}/download?relation=labels&batched=true&batch_number=1")


def _twice_with_a_label_between(story: Story) -> None:
    group = f"/groups/{story.world.one('export_group').id}"
    for batched in (True, False):
        story.call("owner", "POST", f"{group}/export_relations", {"batched": batched})
        story.until_finished(f"{group}/export_relations/status")
        story.call("owner", "POST", f"{group}/labels", {"name": f"further {batched}", "color": "#112233"})
    for relation in ("labels", "badges"):
        story.call("owner", "GET", f"{group}/export_relations/download?relation={relation}")


def _outer_and_inner(story: Story) -> None:
    outer, inner = (f"/groups/{story.world.one(name).id}/export_relations" for name in ("group", "subgroup"))
    for place in (outer, inner, outer, inner):
        story.call("owner", "POST", place, {"batched": False})
        story.until_finished(f"{place}/status")
        story.call("owner", "GET", f"{outer}/status")
    for asked in ("labels&batched=false", "labels", "label"):
        story.call("owner", "GET", f"{outer}/download?relation={asked}")


def _members_of_other_levels(story: Story) -> None:
    place = f"/groups/{story.world.one('allowlist_namespace').id}"
    (guest,) = ids_of(story, "guest")
    for batched, level in ((False, 10), (False, 20), (True, 20), (False, 20)):
        story.call("owner", "PUT", f"{place}/members/{guest}", {"access_level": level})
        story.call("owner", "POST", f"{place}/export_relations", {"batched": batched})
        story.until_finished(f"{place}/export_relations/status")
        story.call("owner", "GET", f"{place}/export_relations/status?relation=members")
        story.call("owner", "GET", f"{place}/export_relations/download?relation=members")
    story.call("owner", "PUT", f"{place}/members/{guest}", {"access_level": 10})


def _second_batches(story: Story) -> None:
    place = f"/groups/{story.world.one('export_group').id}/export_relations"
    for batched in (True, False):
        story.call("owner", "POST", place, {"batched": batched})
        story.until_finished(f"{place}/status")
        batch = "&batched=true&batch_number=2" if batched else ""
        for relation in ("milestones", "members"):
            story.call("owner", "GET", f"{place}/download?relation={relation}{batch}")


def _all_batches(story: Story) -> None:
    place = f"{at(story, 'export_group')}/export_relations"
    story.call("owner", "POST", place, {"batched": True})
    story.until_finished(f"{place}/status")
    for entry in story.read(f"{place}/status"):
        asked = f"relation={entry['relation']}&batched=true"
        for batch in range(1, entry["batches_count"] + 2):
            story.call("owner", "GET", f"{place}/download?{asked}&batch_number={batch}")


def _without_a_token(story: Story) -> None:
    place = f"{at(story, 'export_group')}/export_relations"
    story.call("owner", "POST", place)
    story.until_finished(f"{place}/status")
    story.call("", "GET", f"{place}/download?relation=labels")


def _before_it_has_finished(story: Story) -> None:
    place, choices = f"{at(story, 'export_group')}/export_relations", story.service.choices
    story.service.choices = replace(choices, export_delay_seconds=60)
    story.call("owner", "POST", place)
    story.call("owner", "GET", f"{place}/download?relation=labels")
    story.until_finished(f"{place}/status")
    story.service.choices = choices


def _two_groups_at_once(story: Story) -> None:
    places = [f"{at(story, name)}/export_relations" for name in ("export_group", "fresh_group")]
    story.at_once(*(("owner", "POST", place, {}) for place in places))
    for place in places:
        story.until_finished(f"{place}/status")
        story.call("owner", "GET", f"{place}/download?relation=labels")


def _two_downloads_at_once(story: Story) -> None:
    place = f"{at(story, 'export_group')}/export_relations"
    story.call("owner", "POST", place, {"batched": False})
    story.until_finished(f"{place}/status")
    first, second = (("GET", f"{place}/download?relation={name}", None) for name in ("labels", "milestones"))
    for answer in during(story, first, second):
        story.remember(f"one of two files: {unpacked(answer.content).decode()}")


def _names_in_another_case(story: Story) -> None:
    place = f"{at(story, 'export_group')}/export_relations"
    story.call("owner", "GET", f"{place}/status?relation=LABELS")


def _by_path_and_by_number(story: Story) -> None:
    by_path = f"{at_path(story, 'hidden_group')}/export_relations"
    story.call("owner", "POST", by_path, {"batched": False})
    story.until_finished(f"{by_path}/status")
    story.call("owner", "GET", f"{at(story, 'hidden_group')}/export_relations/status")


def _twice_and_from_behind(story: Story) -> None:
    place = f"{at(story, 'export_group')}/export_relations"
    for batched in (False, True):
        story.call("owner", "POST", place, {"batched": batched})
        story.until_finished(f"{place}/status")
        story.call("owner", "GET", f"{place}/status?relation=members")
        batch = "&batched=true&batch_number=3" if batched else ""
        for _ in range(2):
            story.call("owner", "GET", f"{place}/download?relation=members{batch}")


def _every_caller(story: Story) -> None:
    for group in ("group", "subgroup"):
        for place in (at(story, group), at_path(story, group)):
            for actor in NO_GUESTS:
                story.call(actor, "GET", f"{place}/export_relations/status")


def _inside_what_was_exported(story: Story) -> None:
    outer, inner = (f"{at(story, name)}/export_relations" for name in ("group", "inner_group"))
    story.call("owner", "POST", outer, {})
    story.until_finished(f"{outer}/status")
    story.call("owner", "GET", f"{inner}/download?relation=labels")
    story.call("owner", "GET", f"{inner}/status")
    around, inside = (f"{at(story, name)}/export_relations" for name in ("export_group", "inner_export_group"))
    for place in (around, inside):
        story.call("owner", "POST", place, {})
        story.until_finished(f"{place}/status")
    story.call("owner", "GET", f"{around}/download?relation=labels")
