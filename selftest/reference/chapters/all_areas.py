"""Which chapters show the faults of which area; all chapters in order are the whole story."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.proof.foreign.dimensions import AT_ONCE
from selftest.reference.chapters import (
    approval_settings,
    approvals,
    code_completion,
    conventions,
    group_approval_rules,
    group_relations_export,
    integrations,
    job_token_scope,
    merge_request_approval_rules,
    project_approval_configuration,
    project_approval_rules,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.proof.foreign import ForeignFault
    from selftest.reference.story import Story

    #: A part of the story.
    Chapter = Callable[[Story], None]

#: For the area of a fault, which is a folder or a file of `conformance/proof/foreign/`: its chapters in order.
CHAPTERS: Mapping[str, tuple[Chapter, ...]] = {
    "job_token_scope": (job_token_scope.tell, job_token_scope.tell_at_once),
    "code_completion": (code_completion.tell, code_completion.tell_at_once),
    "group_approval_rules": (group_approval_rules.tell, group_approval_rules.tell_at_once),
    "project_approval_rules": (
        project_approval_rules.tell,
        project_approval_rules.tell_at_once,
        project_approval_configuration.tell,
    ),
    "merge_request_approval_rules": (merge_request_approval_rules.tell, merge_request_approval_rules.tell_at_once),
    "approvals": (approvals.tell, approvals.tell_at_once, merge_request_approval_rules.tell),
    "approval_settings": (approval_settings.tell, approval_settings.tell_at_once),
    "project_approval_configuration": (
        project_approval_configuration.tell,
        project_approval_configuration.tell_at_once,
    ),
    "group_relations_export": (group_relations_export.tell, group_relations_export.tell_at_once),
    "integrations": (integrations.tell, integrations.tell_at_once),
    "conventions": (conventions.tell, conventions.tell_at_once),
    "approval_rules_at_all_levels": (
        project_approval_rules.tell,
        group_approval_rules.tell,
        merge_request_approval_rules.tell,
    ),
}
WHOLE_STORY: tuple[Chapter, ...] = tuple(dict.fromkeys(chapter for area in CHAPTERS.values() for chapter in area))


def chapters_of(fault: ForeignFault) -> tuple[Chapter, ...]:
    """Return the chapters for the area of a fault.

    A fault that shows in concurrent calls needs these first, because it lets many other calls wait for a moment.
    """
    chapters = CHAPTERS[fault.area]
    if fault.dimension != AT_ONCE:
        return chapters
    return tuple(sorted(chapters, key=lambda chapter: chapter.__name__ != "tell_at_once"))
