"""The approval settings of projects, whose keeper is another one than that of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.arrange.approval_settings import Settings, of_project, put_back, remembered, with_author_approval
from conformance.arrange.recipes import Area, Recipe

if TYPE_CHECKING:
    from conformance.arrange.places import Place
    from conformance.expectations import Caller


def _settings(caller: Caller, place: Place) -> Settings:
    return of_project(caller, place.fixture("project"))


AREA = Area(
    keeper="maintainer",
    remember=lambda caller, place: remembered(_settings(caller, place)),
    put_back=lambda caller, place, before: put_back(_settings(caller, place), before),
    unknown={
        "getProjectApprovalSettings.id": "approval-settings.project.read.unknown-project",
        "updateProjectApprovalSettings.id": "approval-settings.project.update.unknown-project",
    },
    recipes={
        "getProjectApprovalSettings": Recipe(),
        "updateProjectApprovalSettings": Recipe(
            before=lambda caller, place: with_author_approval(_settings(caller, place)),
            state=lambda caller, place: _settings(caller, place).entries(),
        ),
    },
)
