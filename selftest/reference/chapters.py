"""Which chapters the story of a service has beside its own, and which was written for the faults of which module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selftest.reference.access_and_levels_chapters import access_and_levels
from selftest.reference.beside_options_chapters import slips_beside_options
from selftest.reference.crossing_chapters import crossings
from selftest.reference.evening_slips_chapters import evening_slips
from selftest.reference.fresh_chapters import more_slips
from selftest.reference.fresh_forms_chapters import slips_of_forms
from selftest.reference.fresh_neighbours_chapters import neighbours
from selftest.reference.fresh_places_chapters import slips_of_places
from selftest.reference.fresh_reviews_chapters import slips_of_reviews
from selftest.reference.fresh_settings_chapters import slips_of_settings
from selftest.reference.fresh_tenants_chapters import slips_between_neighbours
from selftest.reference.further_slips_chapters import further_slips
from selftest.reference.last_slips_chapters import last_slips
from selftest.reference.latest_slips_chapters import latest_slips
from selftest.reference.morning_slips_chapters import morning_slips
from selftest.reference.newer_reviews_chapters import slips_of_newer_reviews
from selftest.reference.newer_slips_chapters import newer_slips
from selftest.reference.newer_tenants_chapters import slips_of_tenants
from selftest.reference.stories_and_contents_chapters import stories_and_contents
from selftest.reference.tired_chapters import slips

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from selftest.reference.story import Story

    #: A part of the story.
    Chapter = Callable[[Story], None]

#: Told in this order, before callers are compared.
LATER_CHAPTERS: tuple[Chapter, ...] = (
    crossings,
    slips,
    more_slips,
    slips_of_places,
    slips_of_reviews,
    slips_of_forms,
    slips_beside_options,
    slips_between_neighbours,
    slips_of_settings,
    slips_of_newer_reviews,
    newer_slips,
)
#: Told in this order, after everything else.
LAST_CHAPTERS: tuple[Chapter, ...] = (
    neighbours,
    slips_of_tenants,
    latest_slips,
    further_slips,
    last_slips,
    morning_slips,
    evening_slips,
    stories_and_contents,
    access_and_levels,
)
#: By the beginning of a module's name, the chapter that was written for its faults. They show in the whole story as
#: well, of which that is a small part.
OWN_CHAPTERS: Mapping[str, Chapter] = {
    "access_and_levels": access_and_levels,
    "beside_options": slips_beside_options,
    "crossings": crossings,
    "evening_slips": evening_slips,
    "fresh_forms": slips_of_forms,
    "fresh_hooks": slips_between_neighbours,
    "fresh_neighbours": neighbours,
    "fresh_reviews": slips_of_reviews,
    "fresh_rules": more_slips,
    "fresh_scopes": slips_of_places,
    "fresh_settings": slips_of_settings,
    "fresh_slips": slips_of_forms,
    "fresh_tenants": slips_between_neighbours,
    "fresh_wiring": slips_of_places,
    "further_slips": further_slips,
    "last_slips": last_slips,
    "latest_slips": latest_slips,
    "morning_slips": morning_slips,
    "newer_reviews": slips_of_newer_reviews,
    "newer_slips": newer_slips,
    "newer_tenants": slips_of_tenants,
    "newer_wiring": slips_of_tenants,
    "stories_and_contents": stories_and_contents,
    "tired": slips,
}
