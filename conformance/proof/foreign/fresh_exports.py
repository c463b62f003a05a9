"""Small bugs in the approval rules of groups, and in the export of a group by its relations."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, let_in
from conformance.reference.areas.approval_rule_records import Level, home_of
from conformance.reference.errors import NotFoundError
from conformance.reference.http import Page, ok
from conformance.reference.identity import Role
from conformance.reference.parameters import read_query

if TYPE_CHECKING:
    from conformance.reference import Service

_FORMS = "forms of what is sent"
_CALLER = "caller x form of id x operation"
_LEVEL = "level x id of another level"
_CONTENT = "content of exports"
_AGAIN = "again, by another caller, after an undo"
_STORY = "numbers and texts that follow from the story"
_RULES = "/groups/:id/approval_rules"
_RULE = f"{_RULES}/:approval_rule_id"
_EXPORT = "/groups/:id/export_relations"
_STATUS = f"{_EXPORT}/status"
_DOWNLOAD = f"{_EXPORT}/download"


# -- group approval rules: what is sent --------------------------------------------------------------------------------


# What is sent in the query is encoded once.
@foreign(_FORMS, "Group approval rules: parameters may be sent as query parameters")
def names_in_the_query_are_decoded_twice(service: Service) -> None:
    """A name that was sent in the query is decoded by the router, and by the handler once more."""

    @handling(service, f"POST {_RULES}", f"PUT {_RULE}")
    def _(handler: Any, request: Any) -> Any:
        name = read_query(request.query).get("name")
        if name is not None:
            request.parameters._values = {**request.parameters._values, "name": unquote_plus(str(name))}
        return handler(request)


# Parameters may be sent in the query by an update as well.
@foreign(_FORMS, "Group approval rules: parameters may be sent as query parameters")
def updates_do_not_look_into_the_query(service: Service) -> None:
    """A rule is created from what is in the query, and updated from the body alone."""

    @handling(service, f"PUT {_RULE}")
    def _(handler: Any, request: Any) -> Any:
        request.query = b""
        return handler(request)


# A rule belongs to one group, whatever rules of other groups are called.
@foreign(_LEVEL, "Group approval rules: POST")
def a_rule_of_the_same_name_elsewhere_is_found(service: Service) -> None:
    """A rule is found by its name or else created, and the group is no part of what it is found by."""

    @handling(service, f"POST {_RULES}")
    def _(handler: Any, request: Any) -> Any:
        home, name = home_of(request.group), request.parameters.optional_string("name")
        for rule in service.approval_rules.rules.values():
            if rule.home.level is Level.GROUP and rule.home != home and rule.name == name:
                return ok(service.group_approval_rules.present(rule, request.caller), 201)
        return handler(request)


# A rule is reached by the group that it belongs to.
@foreign(_LEVEL, "Group approval rules: PUT, approval_rule_id")
def a_group_changes_the_rules_of_its_subgroups(service: Service) -> None:
    """An update looks for the rule in a group and in everything inside it."""
    rules, known = service.approval_rules, service.identities

    @instead(rules, "find")
    def _(find: Any, home: Any, number: int) -> Any:
        rule = rules.rules.get(number)
        if rule is not None and home.level is rule.home.level is Level.GROUP:
            around = known.lineage(known.groups[rule.home.id])
            if any(group.id == home.id for group in around):
                return rule
        return find(home, number)


# -- group approval rules: who may change them, and who sees what ------------------------------------------------------


# Rules of a group are for those who administer it.
@foreign(_CALLER, "Group approval rules: Authentication, group administrators")
def approvers_change_the_rule_that_names_them(service: Service) -> None:
    """Who is named by a rule may change it, whatever role that is."""

    def fits(request: Any, caller: Any, _: Role) -> bool:
        number = request.path["approval_rule_id"]
        rule = service.approval_rules.rules.get(int(number)) if number.isdigit() else None
        return rule is not None and rule.home == home_of(found(service, request)) and caller.id in rule.users

    let_in(service, (f"PUT {_RULE}",), fits)


# What one caller writes all of them read.
@foreign(_AGAIN, "Group approval rules: GET")
def rules_are_remembered_for_each_caller(service: Service) -> None:
    """The list of rules is remembered for each caller, and only that of whoever writes is forgotten."""
    remembered: dict[tuple[int, int], dict[bytes, Any]] = {}

    @handling(service, f"GET {_RULES}")
    def _(handler: Any, request: Any) -> Any:
        pages = remembered.setdefault((request.caller.id, request.group.id), {})
        if request.query not in pages:
            pages[request.query] = handler(request)
        return pages[request.query]

    @handling(service, f"POST {_RULES}", f"PUT {_RULE}")
    def _(handler: Any, request: Any) -> Any:
        remembered.pop((request.caller.id, request.group.id), None)
        return handler(request)


# A private group that the caller may not view is hidden from an owner of another group as well.
@foreign(_STORY, "Group approval rules: contains_hidden_groups")
def nothing_is_hidden_from_owners(service: Service) -> None:
    """That a rule has hidden groups is told to everybody but the owners of the group that it belongs to."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        home = service.identities.groups[rule.home.id]
        owner = service.identities.role_in(viewer, home) >= Role.OWNER
        shown = present(rule, viewer)
        return {**shown, "contains_hidden_groups": shown["contains_hidden_groups"] and not owner}


# -- group approval rules: what is shown -------------------------------------------------------------------------------


# A name is shown as it was sent.
@foreign(_STORY, "Group approval rules: GET, name")
def names_in_the_list_are_escaped_for_a_page(service: Service) -> None:
    """The list writes the names of rules as HTML, in which an ampersand and angle brackets look otherwise."""

    @handling(service, f"GET {_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = [{**rule, "name": html.escape(rule["name"], quote=False)} for rule in answer.content]
        return answer


# Every entry is on some page.
@foreign("pages and totals", "Group approval rules: GET, page and per_page")
def a_full_last_page_loses_its_last_rule(service: Service) -> None:
    """From the second page on, one entry more is read than wanted to see whether there is another page."""

    @handling(service, f"GET {_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer, page = handler(request), Page.of(request.parameters, service.choices)
        total = len(service.group_approval_rules.rules(request.group))
        if page.number > 1 and page.number * page.size == total:
            answer.content = answer.content[:-1]
        return answer


# A group inside another one has the paths of both in its full path.
@foreign(_STORY, "Group approval rules: group reference, full_path")
def groups_of_rules_lose_what_is_around_them(service: Service) -> None:
    """The full path of a group that approves is its own path, also where the group lies in another one."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown = present(rule, viewer)
        return {**shown, "groups": [{**group, "full_path": group["path"]} for group in shown["groups"]]}


# Every user reference has all of its fields, wherever the user comes from.
@foreign(_STORY, "Group approval rules: eligible_approvers, user reference")
def members_of_groups_are_shown_without_a_page(service: Service) -> None:
    """Those who may approve because a group was named are shown without web_url."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown = present(rule, viewer)
        for user in shown["eligible_approvers"]:
            if user["id"] not in rule.users:
                del user["web_url"]
        return shown


# -- group relations export: scheduling --------------------------------------------------------------------------------


# Whether to export in batches is said for each export.
@foreign("settings and their resets", "Group relations export: POST, batched")
def batches_stay_once_they_were_wanted(service: Service) -> None:
    """What is sent and what is known of the former export are joined by `or`: false does not count after true."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        schedule(group, batched=batched or any(export.batched for export in exports.all_of(group)))


# A new export holds what there is now.
@foreign(_CONTENT, "Group relations export: POST")
def a_second_export_holds_what_the_first_one_held(service: Service) -> None:
    """Files that lie there are not written anew when a group is exported another time."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        before = {export.relation: export.lines for export in exports.all_of(group)}
        schedule(group, batched=batched)
        for relation, lines in before.items():
            exports.exports[group.id, relation] = replace(exports.exports[group.id, relation], lines=lines)


# What one group exports is none of another one's business.
@foreign("write x everything that must stay", "Group relations export: POST")
def an_export_makes_room_by_those_of_other_groups(service: Service) -> None:
    """Before a group is exported, what was exported before is cleaned up, of whichever group."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        for key in [key for key in exports.exports if key[0] != group.id]:
            del exports.exports[key]
        schedule(group, batched=batched)


# The path of a group inside another one names the inner one.
@foreign(_CALLER, "Group relations export: conventions, :id")
def the_path_of_a_subgroup_names_the_group_around(service: Service) -> None:
    """Of the path of a group inside another one only the first part is looked at."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key in {f"POST {_EXPORT}", f"GET {_STATUS}", f"GET {_DOWNLOAD}"} and by_path(request):
            request.path["id"] = request.path["id"].partition("/")[0]
        admit(request)


# -- group relations export: status and download -----------------------------------------------------------------------


# The filter takes the name of a relation, and nothing that a name begins with.
@foreign("value x neighbour of the right value", "Group relations export: GET status, relation")
def the_beginning_of_a_name_finds_a_relation(service: Service) -> None:
    """The status is shown of all relations whose names begin with what is asked for."""
    exports = service.group_relations_export

    @handling(service, f"GET {_STATUS}")
    def _(handler: Any, request: Any) -> Any:
        wanted = request.parameters.optional_string("relation")
        shown = [one for one in exports.all_of(request.group) if wanted and one.relation.startswith(wanted)]
        return request.collection(shown, exports.present) if shown else handler(request)


# The entry of a relation is the same one whether all are asked for or this one.
@foreign(_STORY, "Group relations export: status entry, batches")
def the_status_of_one_relation_comes_without_batches(service: Service) -> None:
    """Where one relation is asked for, its batches are left out, also where it is exported in batches."""

    @handling(service, f"GET {_STATUS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.parameters.given("relation"):
            answer.content = [{key: entry[key] for key in entry if key != "batches"} for entry in answer.content]
        return answer


# One line of a file is one JSON value.
@foreign(_CONTENT, "Group relations export: GET download, newline-delimited JSON")
def texts_of_several_lines_break_the_file(service: Service) -> None:
    """The end of a line inside a text is written into the file as it is."""
    exports = service.group_relations_export

    @instead(exports, "file")
    def _(file: Any, lines: Any) -> bytes:
        return bytes(file(tuple(line.replace(b"\\n", b"\n") for line in lines)))


# All batches together hold all objects of the relation.
@foreign(_CONTENT, "Group relations export: GET download, batch_number")
def an_object_that_fills_no_batch_is_lost(service: Service) -> None:
    """Batches begin at every second object but the last one, so that the last of an odd number is in none."""
    exports = service.group_relations_export

    @instead(exports, "batches")
    def _(batches: Any, export: Any) -> Any:
        made = batches(export)
        return made[:-1] if made and len(made[-1]) == 1 else made


# What is downloaded belongs to the group that is named.
@foreign(_LEVEL, "Group relations export: GET download")
def who_exported_nothing_downloads_what_others_exported(service: Service) -> None:
    """Where a group has no export of a relation, the newest one that there is of the relation is sent."""
    exports = service.group_relations_export

    @instead(exports, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        try:
            return find(group, relation)
        except NotFoundError:
            others = [export for export in exports.exports.values() if export.relation == relation]
            if not others:
                raise
            return others[-1]
