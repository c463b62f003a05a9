"""Approval rules of groups, projects and merge requests alike: names, users, groups, and references in them."""

from __future__ import annotations

import html
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import LAST_OF_THREE_BYTES
from conformance.proof.foreign.dimensions import AGAIN, CALLER_AND_VALUE, COUNT, NEIGHBOUR, STORY, VERSIONS
from conformance.proof.foreign.paths import MERGE_REQUEST_RULES, PROJECT_RULES
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.identity import Kind
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service


def _renaming(service: Service, change: Any) -> None:
    for name, at in (("create_rule", 2), ("update_rule", 2)):

        @instead(service.approval_rules, name)
        def _(write: Any, *arguments: Any, at: int = at) -> Any:
            wanted = arguments[at]
            if wanted.name is not None:
                wanted = replace(wanted, name=change(wanted.name))
            return write(*arguments[:at], wanted, *arguments[at + 1 :])


# -- names -------------------------------------------------------------------------------------------------------------


@foreign(NEIGHBOUR, "Approval rules: name")
def names_of_rules_are_escaped(service: Service) -> None:
    """Names of rules are stored HTML-escaped: `&` becomes `&amp;`."""
    _renaming(service, html.escape)


@foreign(NEIGHBOUR, "Approval rules: name")
def names_of_rules_are_kept_in_latin_1(service: Service) -> None:
    """Characters that an older character set lacks become question marks in the names of rules."""
    _renaming(service, lambda name: name.encode("latin-1", "replace").decode("latin-1"))


@foreign(NEIGHBOUR, "Approval rules: name")
def names_of_rules_are_cut_after_thirty_characters(service: Service) -> None:
    """Names of rules are cut after thirty characters, and the answer does not say so."""
    _renaming(service, lambda name: name[:30])


# A name is a string.
@foreign(NEIGHBOUR, "Approval rules: name")
def names_end_before_a_picture(service: Service) -> None:
    """The name of a new rule is cut before the first character of four bytes, as in an old encoding."""

    @instead(service.approval_rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        place = next((n for n, letter in enumerate(candidate.name) if ord(letter) > LAST_OF_THREE_BYTES), None)
        return add(replace(candidate, name=candidate.name[:place]))


@foreign(STORY, "Approval rule: name")
def names_are_escaped_by_an_update(service: Service) -> None:
    """An update stores the name of a rule HTML-escaped: an ampersand becomes an entity."""

    @instead(service.approval_rules, "update_rule")
    def _(update_rule: Any, subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        if wanted.name is not None:
            wanted = replace(wanted, name=escape(wanted.name))
        return update_rule(subject, rule, wanted, caller)


# A name is the text that was sent.
@foreign(NEIGHBOUR, "Approval rules: name")
def a_name_ends_where_a_letter_takes_four_bytes(service: Service) -> None:
    """The table allows characters of three bytes: a name is cut before the first one of four."""

    @instead(service.approval_rules, "require_possible")
    def _(require: Any, rule: Any) -> None:
        require(rule)
        cut = next((n for n, letter in enumerate(rule.name) if ord(letter) > 0xFFFF), len(rule.name))
        object.__setattr__(rule, "name", rule.name[:cut])


# -- users and groups --------------------------------------------------------------------------------------------------


@foreign(STORY, "User reference")
def eligible_approvers_have_their_neighbours_username(service: Service) -> None:
    """Each eligible approver has the username of the previous one in the list."""

    @instead(service.approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any, barred: Any = ()) -> Any:
        shown = present(rule, viewer, barred)
        people = shown["eligible_approvers"]
        names = [one["username"] for one in people]
        shown["eligible_approvers"] = [
            {**one, "username": name} for one, name in zip(people, names[-1:] + names[:-1], strict=True)
        ]
        return shown


@foreign(STORY, "Group reference")
def groups_of_rules_have_another_path(service: Service) -> None:
    """The groups of a rule have the right id and the path of another group."""
    other = service.world.one("sibling_group").path

    @instead(service.present, "group")
    def _(present: Any, group: Any) -> Any:
        return {**present(group), "full_path": other}


@foreign(STORY, "Protected branch reference")
def branches_of_rules_have_the_name_of_the_default(service: Service) -> None:
    """The protected branches of a rule are all named like the default branch."""

    @instead(service.present, "project_protected_branch")
    def _(present: Any, branch: Any) -> Any:
        return {**present(branch), "name": "main"}


@foreign(AGAIN, "Approval rules: users")
def readers_do_not_see_themselves(service: Service) -> None:
    """A caller who is a user of a rule is missing in it when reading it."""

    @instead(service.approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any, barred: Any = ()) -> Any:
        shown = present(rule, viewer, barred)
        return {**shown, "users": [user for user in shown["users"] if user["id"] != viewer.id]}


# One hidden group is enough.
@foreign(COUNT, "Approval rules: contains_hidden_groups")
def groups_are_hidden_if_all_are(service: Service) -> None:
    """A rule with a hidden group and a visible one says that it contains no hidden group."""
    rules = service.approval_rules

    @instead(rules, "present")
    def _(present: Any, rule: Any, viewer: Any, barred: Any = ()) -> Any:
        shown = present(rule, viewer, barred)
        shown["contains_hidden_groups"] = bool(rule.groups) and not rules.visible_groups(rule, viewer)
        return shown


# The parameter exists from 15.8 on, and not only in later versions.
@foreign(VERSIONS, "Versioning: 15.8, usernames", version="15.8")
def usernames_come_one_version_later(service: Service) -> None:
    """The version is compared with `>` instead of `>=`: at 15.8 the parameter is ignored."""
    item = "/:approval_rule_id"

    @handling(
        service,
        f"POST {PROJECT_RULES}",
        f"PUT {PROJECT_RULES}{item}",
        f"POST {MERGE_REQUEST_RULES}",
        f"PUT {MERGE_REQUEST_RULES}{item}",
    )
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if service.version == Version(15, 8):
            request.parameters._values = {name: value for name, value in values.items() if name != "usernames"}
        return handler(request)


@foreign(CALLER_AND_VALUE, "Approval rule: contains_hidden_groups")
def hidden_groups_are_told_as_the_first_reader_saw_it(service: Service) -> None:
    """Whether a rule has hidden groups is computed for its first reader, and shown to everybody."""
    kept: dict[tuple[int, Any], bool] = {}

    @instead(service.approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any, barred: Any = ()) -> Any:
        shown = present(rule, viewer, barred)
        shown["contains_hidden_groups"] = kept.setdefault((rule.id, rule.groups), shown["contains_hidden_groups"])
        return shown


@foreign(COUNT, "Approval rule: groups; group_ids")
def groups_inside_each_other_become_one(service: Service) -> None:
    """If a group and a subgroup of it are sent, only the outer one is stored, as it has the members of both."""
    rules = service.approval_rules

    @instead(rules, "groups_named")
    def _(groups_named: Any, wanted: Any, caller: Any) -> Any:
        named = groups_named(wanted, caller)
        if not named:
            return named
        known = service.identities

        def lies_in_another(number: int) -> bool:
            return any(group.id in named for group in known.lineage(known.groups[number])[1:])

        return tuple(number for number in named if not lies_in_another(number))


@foreign(COUNT, "Approval rule: users; user_ids, group_ids")
def users_of_a_named_group_are_left_out(service: Service) -> None:
    """A user who is a member of a group in the same call is not stored as a user, because that would be redundant."""
    rules = service.approval_rules

    @instead(rules, "users_named")
    def _(users_named: Any, wanted: Any, subject: Any) -> Any:
        named = users_named(wanted, subject)
        if not named or not wanted.group_ids:
            return named
        known = service.identities
        groups = [known.groups[number] for number in wanted.group_ids if number in known.groups]
        return tuple(n for n in named if not any((Kind.GROUP, group.id, n) in known.roles for group in groups))


@foreign(STORY, "User reference")
def eligible_users_have_their_name_for_username(service: Service) -> None:
    """In eligible_approvers, username has the value of name."""

    @instead(service.approval_rules, "present")
    def _(present: Any, *rule: Any) -> Any:
        shown = present(*rule)
        users = [{**user, "username": user["name"]} for user in shown["eligible_approvers"]]
        return {**shown, "eligible_approvers": users}


@foreign(STORY, "Group reference")
def groups_forget_what_is_around_them(service: Service) -> None:
    """The reference of a subgroup looks as if it were a top-level group."""

    @instead(service.present, "group")
    def _(shown: Any, group: Any) -> Any:
        return {**shown(group), "parent_id": None, "full_path": group.path}
