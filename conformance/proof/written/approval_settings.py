"""Faults of the approval settings: values that are not kept, and others that change with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import altering, bodies, taken_for
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.errors import RejectedError
from conformance.reference.identity import Group, Project

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response

KINDS = {"group": Group, "project": Project}
PATHS = {kind: f"/{kind}s/:id/merge_request_approval_setting" for kind in KINDS}
STORED = {
    "allow-author-approval": Setting.ALLOW_AUTHOR_APPROVAL,
    "allow-committer-approval": Setting.ALLOW_COMMITTER_APPROVAL,
    "allow-overrides-to-approver-list": Setting.ALLOW_OVERRIDES,
    "retain-approvals-on-push": Setting.RETAIN_APPROVALS,
    "selective-code-owner-removals": Setting.SELECTIVE_REMOVALS,
    "require-reauthentication-to-approve": Setting.REQUIRE_REAUTHENTICATION,
}


def changing(service: Service, kind: type, alter: Any) -> None:
    """Alter the sent settings of groups, or of projects, before they are stored."""
    area = service.approval_settings
    change = area.change

    def altered(subject: Any, wanted: Any) -> None:
        change(subject, alter(subject, wanted) if isinstance(subject, kind) else wanted)

    area.change = altered


for place, kind in KINDS.items():
    for part, setting in STORED.items():
        for stuck in (True, False):

            def not_stored(
                service: Service, setting: Setting = setting, kind: type = kind, stuck: bool = stuck
            ) -> None:
                changing(
                    service, kind, lambda _, wanted: {k: v for k, v in wanted.items() if (k, v) != (setting, stuck)}
                )

            fault(f"approval-settings.{place}.update.{part}")(
                named(
                    f"{place}_{setting.value}_never_becomes_{stuck}",
                    f"An update of a {place} is served, but {setting.value} = {stuck} is not stored.",
                    not_stored,
                )
            )

    def resets_unsent(service: Service, kind: type = kind) -> None:
        changing(
            service,
            kind,
            lambda subject, wanted: {Setting.ALLOW_COMMITTER_APPROVAL: False, **wanted},
        )

    fault(f"approval-settings.{place}.update.leaves-unsent")(
        named(
            f"update_of_a_{place}_resets_what_is_unsent",
            "allow_committer_approval is switched off unless it is sent.",
            resets_unsent,
        )
    )

    def ends_selective_removals(service: Service, kind: type = kind) -> None:
        changing(service, kind, lambda _, wanted: {Setting.SELECTIVE_REMOVALS: False, **wanted})

    fault(f"approval-settings.{place}.update.leaves-unsent")(
        named(
            f"update_of_a_{place}_ends_selective_removals",
            "selective_code_owner_removals is switched off unless it is sent.",
            ends_selective_removals,
        )
    )

    def first_alone(service: Service, kind: type = kind) -> None:
        changing(service, kind, lambda _, wanted: dict(list(wanted.items())[:1]))

    fault(f"approval-settings.{place}.update.several")(
        named(
            f"of_several_settings_of_a_{place}_one_is_stored", "An update stores only its first setting.", first_alone
        )
    )

    def reauthentication_alone(service: Service, kind: type = kind) -> None:
        def stored(_: Any, wanted: Any) -> Any:
            only = Setting.REQUIRE_REAUTHENTICATION
            return {only: wanted[only]} if only in wanted else wanted

        changing(service, kind, stored)

    fault(f"approval-settings.{place}.update.several")(
        named(
            f"beside_reauthentication_a_{place}_stores_nothing",
            "An update that has require_reauthentication_to_approve stores only this setting.",
            reauthentication_alone,
        )
    )

    def author_moves_committer(service: Service, kind: type = kind) -> None:
        def both(_: Any, wanted: Any) -> Any:
            value = wanted.get(Setting.ALLOW_OVERRIDES)
            return wanted if value is None else {**wanted, Setting.ALLOW_AUTHOR_APPROVAL: value}

        changing(service, kind, both)

    fault(f"approval-settings.{place}.update.leaves-unsent")(
        named(
            f"overrides_of_a_{place}_move_author_approval",
            "A change of one setting also changes another.",
            author_moves_committer,
        )
    )

    def empty_resets(service: Service, kind: type = kind) -> None:
        changing(
            service,
            kind,
            lambda _, wanted: wanted or {Setting.ALLOW_AUTHOR_APPROVAL: False, Setting.ALLOW_COMMITTER_APPROVAL: True},
        )

    fault(f"approval-settings.{place}.update.empty")(
        named(f"empty_update_of_a_{place}_changes", "An update without any setting changes two settings.", empty_resets)
    )

    def needs_two(service: Service, kind: type = kind) -> None:
        def refuse(_: Any, wanted: Any) -> Any:
            if len(wanted) == 1 and Setting.ALLOW_OVERRIDES in wanted:
                raise RejectedError("send another setting as well", parameter="allow_author_approval")
            return wanted

        changing(service, kind, refuse)

    fault(f"approval-settings.{place}.update.each-is-optional")(
        named(
            f"update_of_a_{place}_needs_two_settings", "One of the settings is refused if it is sent alone.", needs_two
        )
    )

    def mirrored(service: Service, kind: type = kind) -> None:
        area = service.approval_settings
        change = area.change

        def everywhere(subject: Any, wanted: Any) -> None:
            change(subject, wanted)
            if isinstance(subject, kind):
                table = service.identities.groups if kind is Group else service.identities.projects
                for other in list(table.values()):
                    for setting, value in wanted.items():
                        area.values[area._key(other, setting)] = value

        area.change = everywhere

    plural = "groups" if place == "group" else "projects"
    fault(f"approval-settings.{place}.update.leaves-other-{plural}")(
        named(
            f"update_of_a_{place}_reaches_all_{plural}", f"A change of one {place} is made in all {plural}.", mirrored
        )
    )

    def knows_everything(service: Service, kind: type = kind, place: str = place) -> None:
        find = getattr(service.identities, f"find_{place}")
        known = getattr(service.identities, f"{place}s")[service.world.one(place).id]
        setattr(service.identities, f"find_{place}", lambda path: find(path) or known)

    for doing in ("read", "update"):
        fault(f"approval-settings.{place}.{doing}.unknown-{place}")(
            named(
                f"{doing}_of_an_unknown_{place}_is_served",
                f"An unknown number identifies the main {place}.",
                lambda service, knows=knows_everything: knows(service),
            )
        )

    def locked_own_value(service: Service) -> None:
        area = service.approval_settings
        present = area.present

        def shown(subject: Any, asked: Setting, present: Any = present) -> Any:
            entry = present(subject, asked)
            return {**entry, "value": not entry["value"]} if entry["locked"] else entry

        area.present = shown

    fault(f"approval-settings.{place}.locked-value-is-the-parents")(
        named(
            f"locked_setting_of_a_{place}_has_the_other_value",
            "A locked setting shows the opposite of its value.",
            lambda service, lock=locked_own_value: lock(service),
        )
    )

    def without_reauthentication(service: Service, kind: type = kind) -> None:
        area = service.approval_settings
        accepted = area.accepted

        def fewer() -> Any:
            return tuple(setting for setting in accepted() if setting is not Setting.REQUIRE_REAUTHENTICATION)

        area.accepted = fewer

    fault(f"approval-settings.{place}.reauthentication-is-available")(
        named(
            f"reauthentication_of_a_{place}_cannot_be_set",
            "An update ignores require_reauthentication_to_approve.",
            without_reauthentication,
        )
    )

    for part, setting in STORED.items():

        def takes_anything(service: Service, setting: Setting = setting, place: str = place) -> None:
            bodies(
                service,
                f"PUT {PATHS[place]}",
                taken_for(setting.value, instead=True, unless=lambda value: isinstance(value, bool)),
            )

        fault(f"approval-settings.{place}.update.{part}.is-boolean")(
            named(
                f"{setting.value}_of_a_{place}_takes_any_word",
                "A value that is not boolean counts as true.",
                takes_anything,
            )
        )


@fault("approval-settings.group.update.answer-shows-values")
def answer_shows_the_old_values(service: Service) -> None:
    """The answer to an update of a group has the former values."""
    area = service.approval_settings
    change = area.change
    before: dict[int, Any] = {}

    def remembering(subject: Any, wanted: Any) -> None:
        before[subject.id] = area.settings(subject)
        change(subject, wanted)

    area.change = remembering

    def old(request: Request, response: Response) -> None:
        response.content = before[request.group.id]

    altering(service, f"PUT {PATHS['group']}", old)


@fault("approval-settings.group.update.leaves-other-groups")
def subgroup_writes_the_group_around_it(service: Service) -> None:
    """Settings of a group inside another one are also stored for that one; nothing is passed on inwards."""
    area = service.approval_settings
    change = area.change

    def upwards(subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        around = service.identities.groups.get(subject.parent_id) if isinstance(subject, Group) else None
        for setting, value in wanted.items() if around else ():
            area.values[area._key(around, setting)] = value

    area.change = upwards
    area.inherited = lambda *_: None  # type: ignore[method-assign]


@fault("approval-settings.project.update.leaves-its-group")
def project_writes_its_group(service: Service) -> None:
    """Settings of a project are also stored for its group."""
    area = service.approval_settings
    change = area.change

    def upwards(subject: Any, wanted: Any) -> None:
        change(subject, wanted)
        if isinstance(subject, Project):
            for setting, value in wanted.items():
                area.values[area._key(service.identities.namespace_of(subject), setting)] = value

    area.change = upwards
