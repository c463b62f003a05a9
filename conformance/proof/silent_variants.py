"""Legal personalities for what the specification is silent about."""

from __future__ import annotations

from conformance.proof import alterations, approval_alterations, area_alterations, rule_alterations, wire_alterations
from conformance.proof.personality import Variant
from conformance.reference.choices import Choices, Handing, Unfit

VARIANTS = (
    Variant(
        "unnamed-rules-are-default",
        "A rule that names nobody becomes the one that anybody satisfies, and a second such rule is refused.",
        alterations=(rule_alterations.makes_rules_that_name_nobody_default,),
    ),
    Variant(
        "unnamed-rules-meet-the-default",
        "A rule that names nobody is the one that anybody satisfies, which is there from the start and stays.",
        alterations=(
            rule_alterations.makes_rules_that_name_nobody_default,
            rule_alterations.keeps_the_default_rule_that_is_there,
        ),
    ),
    Variant(
        "regular-rules-name-somebody",
        "A rule that names nobody is the one that anybody satisfies, whatever type is sent; a second one is refused.",
        alterations=(rule_alterations.makes_unnamed_rules_default_whatever_their_type,),
    ),
    Variant(
        "five-approvals-at-most",
        "A rule asks for five approvals at most.",
        alterations=(rule_alterations.takes_no_more_approvals_than_five,),
    ),
    Variant(
        "no-more-approvals-than-approvers",
        "A rule asks for no more approvals than there are users whose approval it counts.",
        alterations=(rule_alterations.takes_no_more_approvals_than_approvers,),
    ),
    Variant(
        "places-have-one-name",
        "All projects have one name, and all groups another one: paths alone tell them apart.",
        alterations=(area_alterations.gives_places_one_name,),
    ),
    Variant(
        "default-rules-are-fixed",
        "The rule that anybody satisfies is there from the start, cannot be made anew, and others require somebody.",
        alterations=(rule_alterations.makes_no_default_rules, rule_alterations.asks_regular_rules_for_approvals),
    ),
    Variant(
        "default-rules-keep-their-name",
        "The rule that anybody satisfies has its own name whatever is sent, and carries the deprecated number.",
        alterations=(
            rule_alterations.fixes_the_name_of_default_rules,
            rule_alterations.maps_approvals_before_merge,
            alterations.still_changes_configurations,
        ),
    ),
    Variant(
        "group-rules-are-replaced",
        "An update of a rule of a group replaces it; empty lists elsewhere are as if not sent.",
        alterations=(rule_alterations.replaces_rules_of_groups, rule_alterations.ignores_empty_lists),
    ),
    Variant(
        "rules-counted-in-each-place",
        "Rules are numbered from 1 on in each place, eight stand there at most, and a name is used once for ever.",
        alterations=(
            approval_alterations.takes_few_rules,
            approval_alterations.counts_rules_in_each_place,
            approval_alterations.never_gives_a_name_twice,
        ),
    ),
    Variant(
        "neighbours-have-rules",
        "Rules are numbered from 1 on in each place, and places beside those that are tried have rules of others.",
        alterations=(approval_alterations.counts_the_rules_there_are, approval_alterations.has_rules_of_others),
    ),
    Variant(
        "rules-of-both-levels-count",
        "A merge request has to satisfy its project's rules beside its own; each level counts its rules by itself.",
        alterations=(
            approval_alterations.asks_for_rules_of_both_levels,
            approval_alterations.counts_the_rules_there_are,
        ),
    ),
    Variant(
        "rules-found-by-name",
        "A rule is found by its name as well.",
        alterations=(approval_alterations.finds_rules_by_name,),
    ),
    Variant(
        "nothing-to-describe",
        "The merge request that is tried has no description.",
        alterations=(approval_alterations.leaves_the_merge_request_undescribed,),
    ),
    Variant(
        "numbers-come-back",
        "The next rule gets the smallest number that is free, such as that of a deleted one.",
        alterations=(approval_alterations.gives_numbers_again,),
    ),
    Variant(
        "absent-rules-are-gone",
        "Deleting a rule that never was there succeeds, and updates that say nothing are refused.",
        alterations=(
            rule_alterations.deletes_absent_rules,
            rule_alterations.refuses_empty_updates,
            area_alterations.refuses_empty_settings,
        ),
    ),
    Variant(
        "all-levels-look-alike",
        "Rules of all levels show all fields, inert branches among them, and every member is eligible.",
        alterations=(
            rule_alterations.shows_fields_of_other_levels,
            rule_alterations.keeps_branches_of_rules_for_all,
            rule_alterations.finds_every_member_eligible,
        ),
    ),
    Variant(
        "merge-requests-ask-for-more",
        "A rule of a merge request requires no less than its project, and says that it is approved only when merged.",
        alterations=(
            rule_alterations.asks_for_no_less_than_the_project,
            rule_alterations.calls_no_rule_approved,
            rule_alterations.stays_overwritten,
        ),
    ),
    Variant(
        "approvals-take-their-time",
        "A reset takes effect a moment later, a change of settings takes approvals back, a sha is read in any case.",
        alterations=(
            rule_alterations.resets_in_the_background,
            rule_alterations.drops_approvals_when_settings_change,
            rule_alterations.reads_shas_in_any_case,
            rule_alterations.ignores_a_sha_it_cannot_read,
        ),
    ),
    Variant(
        "locks-reach-everywhere",
        "What a group ever set binds the configurations and settings below it, and is refused there.",
        Choices(group_settings_bind=Handing.ALL, locked_setting_written=Unfit.REFUSE),
        alterations=(rule_alterations.binds_configurations_by_settings,),
    ),
    Variant(
        "one-setting-is-locked",
        "The installation decides one setting for all; subgroups have none; selective removals go the other way round.",
        alterations=(
            rule_alterations.locks_one_setting_everywhere,
            rule_alterations.has_no_settings_of_subgroups,
            rule_alterations.removes_selectively_while_retaining,
        ),
    ),
    Variant(
        "entries-belong-to-the-limit",
        "Allowlists are managed while the limit is on, which is off at first, and hold the project's own group.",
        Choices(inbound_enabled_initially=False),
        alterations=(
            area_alterations.manages_entries_only_while_limited,
            area_alterations.lists_the_own_group,
        ),
    ),
    Variant(
        "exports-one-by-one",
        "Relations are exported one after the other, batches show as they come, and files hold nothing but ASCII.",
        Choices(export_delay_seconds=0.06),
        alterations=(
            area_alterations.escapes_letters_in_files,
            area_alterations.finishes_relations_one_by_one,
            area_alterations.lists_batches_as_they_come,
        ),
    ),
    Variant(
        "exports-once-at-a-time",
        "Relations end one after the other, and until the last of them a group is not exported anew.",
        Choices(export_delay_seconds=0.03),
        alterations=(area_alterations.exports_once_at_a_time,),
    ),
    Variant(
        "exports-begin-later",
        "An export begins a moment after it was accepted; before the first one there is no status.",
        alterations=(
            area_alterations.has_no_status_before_the_first_export,
            # Last, so that an export begins before anything else looks at it.
            area_alterations.begins_exports_later,
        ),
    ),
    Variant(
        "settings-in-pairs",
        "Settings of integrations are shown as names and values, and an update replaces them.",
        alterations=(area_alterations.shows_settings_as_pairs, area_alterations.replaces_settings),
    ),
    Variant(
        "values-move",
        "Merge status, stars and times of last changes move between two reads; each record says when it was shown.",
        alterations=(wire_alterations.moves_values_by_itself,),
    ),
    Variant(
        "no-order",
        "Arrays are in another order in each answer.",
        alterations=(wire_alterations.shuffles_arrays,),
    ),
    Variant(
        "pages-with-gaps",
        "Pages are shorter than asked for, before the last one too.",
        Choices(max_per_page=1_000_000, pagination_headers=False),
        alterations=(wire_alterations.filters_pages_afterwards,),
    ),
    Variant(
        "pages-of-two",
        "No page holds more than two entries, whatever is asked for.",
        Choices(max_per_page=2, default_per_page=2),
    ),
    Variant(
        "other-numbers-and-dates",
        "Integers have a point, dates come in the basic and the week form, pictures lie at the same host.",
        alterations=(
            wire_alterations.writes_other_iso_dates,
            wire_alterations.shows_relative_pictures,
            wire_alterations.writes_integers_with_a_point,
        ),
    ),
    Variant(
        "moments-by-machine",
        "A moment is written in another zone, with other digits, each time it is read.",
        alterations=(wire_alterations.writes_moments_by_machine,),
    ),
    Variant(
        "exports-tried-again",
        "An export fails at first, begins once more by itself, and then finishes.",
        alterations=(area_alterations.tries_exports_again,),
    ),
    Variant(
        "capitals-on-the-wire",
        "Header names, media types and content codings are in capitals; nothing is said to be long.",
        alterations=(wire_alterations.writes_headers_in_capitals, wire_alterations.says_how_long_nothing_is),
    ),
    Variant(
        "vendor-on-the-wire",
        "JSON is of a vendor's media type and comes in chunks, with cookies; that of requests has no parameters.",
        alterations=(wire_alterations.sends_a_vendors_media_type, wire_alterations.takes_no_charset),
    ),
    Variant(
        "nameless-on-the-wire",
        "Nothing is said about the type of JSON; other statuses of success are used where none is stated.",
        Choices(
            unapproved_code=203,
            approvals_reset_code=208,
            rule_deleted_code=205,
            integration_deleted_code=205,
            unshown_bodies=False,
        ),
        alterations=(wire_alterations.names_no_media_type,),
    ),
    # A run against this one ends incomplete, and has to: a write that was lost is not sent again, for nobody knows
    # whether it was done, and what it would have shown stays open. Reads are sent again.
    Variant(
        "bad-gateway",
        "A gateway loses some calls and answers with a page of its own.",
        alterations=(wire_alterations.stands_behind_a_bad_gateway,),
        alone="what a lost call would have shown is open",
    ),
)
