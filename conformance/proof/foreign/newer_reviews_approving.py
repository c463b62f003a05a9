"""Small bugs in the rules and approvals of merge requests, in the configuration and in exports, by a stranger."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import by_path, foreign, handling, instead, is_served, meanwhile
from conformance.reference import Choices
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.areas.group_relations_export import Status
from conformance.reference.errors import NoRouteError

if TYPE_CHECKING:
    from conformance.reference import Service

_NAMED = "caller x form of id x operation"
_CALLER = "caller x value"
_LEVELS = "level x id of another level"
_NEIGHBOUR = "value x neighbour of the right value"
_BESIDE = "forms of what is sent"
_CONTENT = "content of exports"
_STORY = "numbers and texts that follow from the story"
_MOMENTS = "moments and addresses that are none"
_OLDER = "the older of two"
_AGAIN = "again, by another caller, after an undo"
_STAYS = "write x everything that must stay"
_REFUSED = "refusal x everything that must stay"
_SETTINGS = "settings and their resets"
_AT_ONCE = "two write at once"
_PAGES = "pages and totals"
_OVER_TIME = "status over time"
_VERSIONS = "version table"

_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
_OWN_RULES = f"{_MERGE_REQUEST}/approval_rules"
_ONE_OWN_RULE = f"{_OWN_RULES}/:approval_rule_id"
_EXPORT = "/groups/:id/export_relations"
_LARGEST_BASIC = 0xFFFF


# -- rules of merge requests -------------------------------------------------------------------------------------------


@foreign(_LEVELS, "Merge request approvals: Rules, 1")
def a_deleted_project_rule_can_still_be_copied(service: Service) -> None:
    """A project rule that was deleted is only marked, and approval_project_rule_id does not look at the mark."""
    deleted: dict[tuple[int, int], Any] = {}

    @instead(service.project_approval_rules, "delete_rule")
    def _(delete_rule: Any, project: Any, number: int) -> None:
        rule = service.project_approval_rules.find(project, number)
        delete_rule(project, number)
        deleted[project.id, number] = rule

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create_rule: Any, merge_request: Any, wanted: Any, source_id: int | None, caller: Any) -> Any:
        source = deleted.get((merge_request.project_id, source_id or 0))
        if source is None:
            return create_rule(merge_request, wanted, source_id, caller)
        rules = service.merge_request_approval_rules
        return service.approval_rules.add_rule(rules.copied_project_rule(merge_request, source, wanted))


@foreign(_LEVELS, "Merge request approvals: approval_project_rule_id")
def a_merge_request_copies_a_rule_of_another_one(service: Service) -> None:
    """approval_project_rule_id finds any rule below the project: also one that a merge request has of its own."""

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create_rule: Any, merge_request: Any, wanted: Any, source_id: int | None, caller: Any) -> Any:
        rules, known = service.merge_request_approval_rules, service.repositories.merge_requests
        source = service.approval_rules.rules.get(source_id or 0)
        inside = {one.id for one in known.values() if one.project_id == merge_request.project_id}
        if source is None or source.home.level is not Level.MERGE_REQUEST or source.home.id not in inside:
            return create_rule(merge_request, wanted, source_id, caller)
        return service.approval_rules.add_rule(rules.copied_project_rule(merge_request, source, wanted))


@foreign(_BESIDE, "Merge request approvals: PUT, user_ids, usernames")
def an_empty_list_of_ids_outweighs_usernames(service: Service) -> None:
    """An update of a merge request's rule with an empty user_ids removes everybody, usernames or not."""

    @instead(service.approval_rules, "users_after")
    def _(users_after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        if rule.home.level is Level.MERGE_REQUEST and wanted.user_ids == ():
            return ()
        return users_after(rule, wanted, subject)


@foreign(_STORY, "Approval rule: name")
def rare_letters_are_lost_in_names_of_merge_request_rules(service: Service) -> None:
    """Letters that take four bytes become question marks in the name of a merge request's rule."""

    @instead(service.approval_rules, "add_rule")
    def _(add_rule: Any, candidate: Any) -> Any:
        if candidate.home.level is Level.MERGE_REQUEST:
            name = "".join("?" if ord(letter) > _LARGEST_BASIC else letter for letter in candidate.name)
            candidate = replace(candidate, name=name)
        return add_rule(candidate)


@foreign(_STAYS, "Merge request approvals: DELETE")
def a_rule_goes_with_its_namesakes_of_other_merge_requests(service: Service) -> None:
    """Deleting the rule of one merge request deletes what the others of the project call the same."""

    @instead(service.merge_request_approval_rules, "delete_rule")
    def _(delete_rule: Any, merge_request: Any, number: int) -> None:
        rules = service.merge_request_approval_rules
        rule = rules.find(merge_request, number)
        delete_rule(merge_request, number)
        for other in list(service.repositories.merge_requests.values()):
            if other.project_id == merge_request.project_id:
                for namesake in [one for one in rules.own_rules(other) if one.name == rule.name]:
                    service.approval_rules.delete_rule(namesake)


@foreign(_PAGES, "Merge request approvals: approval_rules, paginated")
def pages_are_cut_before_rules_of_others_are_left_out(service: Service) -> None:
    """A page is cut from the rules of all merge requests of the project, and then narrowed down to the one."""

    @handling(service, f"GET {_OWN_RULES}")
    def _(handler: Any, request: Any) -> Any:
        size = request.parameters.optional_integer("per_page")
        if size is None or size < 1:
            return handler(request)
        number = max(1, request.parameters.optional_integer("page") or 1)
        rules, known = service.merge_request_approval_rules, service.repositories.merge_requests
        of_project = [one for one in known.values() if one.project_id == request.project.id]
        everything = [rule for one in of_project for rule in rules.rules(one)]
        page = sorted(rule.id for rule in everything)[(number - 1) * size : number * size]
        request.parameters._values = {}
        answer = handler(request)
        answer.content = [shown for shown in answer.content if shown["id"] in page]
        return answer


@foreign(_VERSIONS, "Versioning: 15.8, usernames", version="15.8")
def updates_of_merge_request_rules_learn_usernames_later(service: Service) -> None:
    """At 15.8 usernames are taken when a merge request's rule is made, and passed over when it is updated."""

    @handling(service, f"PUT {_ONE_OWN_RULE}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        request.parameters._values = {name: value for name, value in values.items() if name != "usernames"}
        return handler(request)


@foreign(_STAYS, "Merge request approvals: POST; Project approval configuration")
def a_copied_rule_changes_the_configuration(service: Service) -> None:
    """Copying a project rule to a merge request lets pushes keep approvals in the whole project from then on."""

    @handling(service, f"POST {_OWN_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer) and request.parameters.given("approval_project_rule_id"):
            known = service.project_approval_configurations
            own = known.own_configuration(request.project)
            known.configurations[request.project.id] = replace(own, reset_approvals_on_push=False)
        return answer


@foreign(_STORY, "Merge request approvals: Rules, 1")
def the_answer_to_a_copy_tells_the_number_of_the_project(service: Service) -> None:
    """The number that was sent is stored, and the answer to the creation shows that of the project rule."""

    @handling(service, f"POST {_OWN_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        source = request.parameters.optional_integer("approval_project_rule_id")
        if is_served(answer) and source is not None:
            answer.content["approvals_required"] = service.approval_rules.rules[source].approvals_required
        return answer


# -- approvals ---------------------------------------------------------------------------------------------------------


@foreign(_NEIGHBOUR, "Merge request approvals: approve, sha and approval_password")
def a_right_password_stands_for_the_sha(service: Service) -> None:
    """Where a password is required and right, the sha is not looked at any more."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        if approvals.password_required(merge_request) and approvals.password_matches(caller, password):
            sha = None
        approve(merge_request, caller, sha, password)


@foreign(_AGAIN, "Approval moves: merge request with approvals, POST approve with another sha")
def only_the_first_approval_looks_at_the_sha(service: Service) -> None:
    """Once somebody has approved, the sha of the next one is not compared: the row is about such merge requests."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_current_head")
    def _(require_current_head: Any, merge_request: Any, sha: Any) -> None:
        if not approvals.approvals_of(merge_request):
            require_current_head(merge_request, sha)


@foreign(_OLDER, "Approval moves: POST unapprove")
def later_approvals_go_with_the_one_taken_back(service: Service) -> None:
    """Taking back an approval cuts the list where it stood: whoever approved after it has to do it again."""
    approvals = service.merge_request_approvals

    @instead(approvals, "remove_approval")
    def _(_remove: Any, user: Any, merge_request: Any) -> None:
        given = approvals.approvals_of(merge_request)
        place = next(number for number, one in enumerate(given) if one.user_id == user.id)
        approvals.approvals[merge_request.id] = given[:place]


@foreign(_AGAIN, "Merge request approval state: rules; PUT reset_approvals")
def the_state_forgets_who_approves_once_more_after_a_reset(service: Service) -> None:
    """Who had approved before a reset is missing from the state's approved_by when approving again."""
    approvals = service.merge_request_approvals
    cleared: set[tuple[int, int]] = set()

    @instead(approvals, "clear_approvals")
    def _(clear_approvals: Any, merge_request: Any) -> None:
        cleared.update((merge_request.id, one.user_id) for one in approvals.approvals_of(merge_request))
        clear_approvals(merge_request)

    @instead(approvals, "approvers")
    def _(approvers: Any, rule: Any, merge_request: Any) -> Any:
        found = approvers(rule, merge_request)
        return tuple(number for number in found if (merge_request.id, number) not in cleared)


@foreign(_CALLER, "Merge request approvals: Rules, 4")
def a_reset_of_nothing_is_served_to_everybody(service: Service) -> None:
    """A merge request without approvals has nothing to reset, so nobody asks who called."""
    approvals = service.merge_request_approvals

    @instead(approvals, "reset_approvals")
    def _(reset_approvals: Any, merge_request: Any, caller: Any) -> None:
        if approvals.approvals_of(merge_request):
            reset_approvals(merge_request, caller)


@foreign(_AGAIN, "Merge request approval state: approval_rules_overwritten")
def overwritten_is_what_the_first_look_found(service: Service) -> None:
    """Whether a merge request has rules of its own is kept from the first time that somebody read its state."""
    kept: dict[int, bool] = {}

    @instead(service.merge_request_approval_rules, "overwritten")
    def _(overwritten: Any, merge_request: Any) -> bool:
        return kept.setdefault(merge_request.id, overwritten(merge_request))


@foreign(_AGAIN, "Merge request approvals: unapprove, payload none")
def taking_back_needs_the_password_as_well(service: Service) -> None:
    """Where an approval takes a password, so does taking it back, though that call has no parameter for one."""
    approvals = service.merge_request_approvals

    @handling(service, f"POST {_MERGE_REQUEST}/unapprove")
    def _(handler: Any, request: Any) -> Any:
        number = request.path_id("merge_request_iid")
        merge_request = service.merge_request_approval_rules.merge_request(request.project, number)
        password = request.parameters.optional_string("approval_password")
        approvals.require_password(request.caller, merge_request, password)
        return handler(request)


@foreign(_AT_ONCE, "Approval moves: POST unapprove; POST approve")
def an_approval_is_lost_while_another_is_taken_back(service: Service) -> None:
    """Taking back writes the list of approvals as it was a moment ago: who approved meanwhile did not."""
    table = service.merge_request_approvals.approvals

    def write(seen: Any, request: Any) -> None:
        one = service.repositories.merge_requests.get((request.project.id, request.path_id("merge_request_iid")))
        if one is not None and one.id in seen:
            table[one.id] = seen[one.id]

    meanwhile(service, (f"POST {_MERGE_REQUEST}/unapprove",), lambda: dict(table), write)


# -- configuration -----------------------------------------------------------------------------------------------------


@foreign(_SETTINGS, "Project approval configuration: selective_code_owner_removals", version="15.11")
def the_pair_is_looked_at_from_one_side(service: Service) -> None:
    """That selective removals need reset_approvals_on_push off is asked when they are sent, not when that goes on."""
    known = service.project_approval_configurations

    @handling(service, "POST /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.given("selective_code_owner_removals"):
            return handler(request)
        kept, known.without_conflict = known.without_conflict, lambda wanted: wanted
        try:
            return handler(request)
        finally:
            known.without_conflict = kept


@foreign(_REFUSED, "Versioning: 16.0, /approvals configuration endpoint removed")
def the_removed_endpoint_refuses_and_writes(service: Service) -> None:
    """The endpoint that went with 16.0 answers that it is gone, behind a filter that runs after the change."""
    key = "POST /projects/:id/approvals"

    @handling(service, key)
    def _(handler: Any, request: Any) -> Any:
        handler(request)
        raise NoRouteError

    service.routes.change(key, removed=None)


@foreign(_STAYS, "Project approval configuration: POST", version="15.11")
def projects_nobody_configured_take_what_a_neighbour_set(service: Service) -> None:
    """What is set for a project becomes what the other projects of its group begin with."""
    known = service.project_approval_configurations

    @instead(known, "own_configuration")
    def _(own_configuration: Any, project: Any) -> Any:
        if project.id in known.configurations:
            return own_configuration(project)
        places = service.identities.projects
        near = [n for n in known.configurations if n in places and places[n].namespace_id == project.namespace_id]
        return known.configurations[near[-1]] if near else own_configuration(project)


# -- exports -----------------------------------------------------------------------------------------------------------


@foreign(_CONTENT, "Group relations export: named after the relation")
def the_encoded_name_of_a_file_is_another(service: Service) -> None:
    """The plain name of a downloaded file is right; the encoded one, which clients prefer, ends in another way."""

    @handling(service, f"GET {_EXPORT}/download")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        place = answer.headers["content-disposition"]
        plain, _, encoded = place.partition("filename*=")
        answer.headers["content-disposition"] = f"{plain}filename*={encoded.replace('.ndjson.gz', '.json.gz')}"
        return answer


@foreign(_STAYS, "Group relations export: POST")
def exports_of_groups_inside_are_thrown_away(service: Service) -> None:
    """Scheduling the export of a group removes what was exported for the groups inside it."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        for number, relation in list(exports.exports):
            inner = service.identities.groups.get(number)
            if inner is not None and group in service.identities.lineage(inner)[1:]:
                del exports.exports[number, relation]
        schedule(group, batched=batched)


@foreign(_AGAIN, "Group relations export: POST, batched")
def batches_stay_once_they_were_asked_for(service: Service) -> None:
    """An export without batches that follows one in batches comes in batches as well."""
    exports = service.group_relations_export

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        schedule(group, batched=batched or any(one.batched for one in exports.all_of(group)))


@foreign(_BESIDE, "Group relations export: a gzip-compressed file")
def files_are_packed_twice_for_who_takes_gzip(service: Service) -> None:
    """Who says to accept gzip gets the packed file packed once more, and no header tells of it."""

    @handling(service, f"GET {_EXPORT}/download")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if "gzip" in request.header("accept-encoding"):
            answer.raw = gzip.compress(answer.raw, mtime=0)
        return answer


@foreign(
    _OVER_TIME,
    "Group relations export: status -1; the finished export",
    choices=Choices(failing_export_relations=("labels",)),
)
def failed_exports_are_handed_out(service: Service) -> None:
    """The file of a relation whose export failed is served as if it had finished."""
    exports = service.group_relations_export

    @instead(exports, "download")
    def _(download: Any, export: Any, batch_number: Any) -> Any:
        if exports.status_of(export) is Status.FAILED:
            lines = export.lines if batch_number is None else exports.batch(export, batch_number)
            return exports.file(lines)
        return download(export, batch_number)


@foreign(_NAMED, "Group relations export: status, relation")
def a_group_named_by_path_shows_all_relations(service: Service) -> None:
    """The status of a group that is named by its path does not look at the relation that was asked for."""

    @handling(service, f"GET {_EXPORT}/status")
    def _(handler: Any, request: Any) -> Any:
        if by_path(request):
            request.parameters._values = {}
        return handler(request)
