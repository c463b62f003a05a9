"""Legal personalities that follow the letter of the text in odd ways, and the alterations that make them."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from conformance.contract import Contract, Version
from conformance.proof import area_alterations
from conformance.proof.personality import Variant
from conformance.proof.wire_alterations import transform
from conformance.reference.areas.approval_rule_records import home_of
from conformance.reference.choices import Choices
from conformance.reference.errors import InvalidError, RejectedError
from conformance.reference.http import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.routing import Route

_STATUS = "GET /groups/:id/export_relations/status"
_DOWNLOAD = "GET /groups/:id/export_relations/download"
_COMPLETIONS = "POST /code_suggestions/completions"
_SUCCESS = range(200, 300)
_FIRST_BATCH = 10
_LONGEST_NAME = 60
#: Operations whose answers the text does not show, by the end of their paths.
_UNSHOWN = ("/unapprove", "/reset_approvals", "/integrations/:slug", "/services/:slug")
_ANSWERING_LATER = timedelta(days=365 * 24)


# -- on the wire -------------------------------------------------------------------------------------------------------


def compresses_answers(service: Service) -> None:
    """Compress JSON for whoever takes it compressed."""

    def change(_: Route, request: Request, answer: Response) -> None:
        if answer.has_content and b"gzip" in request.headers.get(b"accept-encoding", b""):
            answer.raw, answer.has_content = gzip.compress(json.dumps(answer.content).encode()), False
            answer.headers["content-encoding"] = "gzip"

    transform(service, change)


def writes_json_at_length(service: Service) -> None:
    """Write JSON on many lines, with everything beyond ASCII escaped, and slashes too."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.has_content:
            text = json.dumps(answer.content, indent=3).replace("/", "\\/")
            answer.raw, answer.has_content = f"\r\n{text}\r\n".encode(), False

    transform(service, change)


def closes_each_connection(service: Service) -> None:
    """Close the connection behind each answer."""
    transform(service, lambda _, __, answer: answer.headers.update(connection="close"))


def says_where_things_are(service: Service) -> None:
    """Name an address in the header Location of whatever was created, where nothing is to be followed."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.status == 201:  # noqa: PLR2004 - HTTP's own number
            answer.headers["location"] = "https://elsewhere.example.org/new"

    transform(service, change)


def talks_where_nothing_is_shown(service: Service) -> None:
    """Answer with a word of plain text where the text shows no answer."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.method != "GET" and route.path.endswith(_UNSHOWN) and answer.status in _SUCCESS:
            answer.status, answer.raw, answer.has_content = 200, b"Done.\n", False
            answer.media_type = "text/plain"

    transform(service, change)


# -- what is sent ------------------------------------------------------------------------------------------------------


def refuses_what_is_not_documented(service: Service) -> None:
    """Refuse parameters that an operation is not described with, in query and body."""
    contract = Contract.load()
    known = {
        (operation.method, operation.path.replace("{", ":").replace("}", "")): operation
        for operation in contract.operations(Version.parse(str(service.version)))
    }
    for route in list(service.routes):
        operation = known.get((route.method, route.path))
        if operation is None or operation.area == "versions":
            continue
        if operation.area == "integrations" and not operation.is_read:
            continue  # what an integration takes depends on which it is
        query = {parameter.name for parameter in operation.parameters if parameter.place == "query"}
        body = {parameter.name for parameter in operation.parameters if parameter.place == "body"}
        allowed = query | body | ({"page", "per_page"} if operation.paginated else set())
        service.routes.change(route.key, handler=_strict(route.handler, allowed))


def reads_numbers_as_far_as_they_go(service: Service) -> None:
    """Read the number of a rule, a merge request or a target up to the first sign that is no digit."""

    def reading(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def handled(request: Request) -> Response:
            for name, text in request.path.items():
                digits = text[: len(text) - len(text.lstrip("0123456789"))]
                if name.endswith(("_id", "_iid")) and digits:
                    request.path[name] = digits
            return handler(request)

        return handled

    for route in list(service.routes):
        if "_id" in route.path or "_iid" in route.path:
            service.routes.change(route.key, handler=reading(route.handler))


def _strict(handler: Callable[[Request], Response], allowed: set[str]) -> Callable[[Request], Response]:
    def handled(request: Request) -> Response:
        names = [name.removesuffix("[]") for name in parse_qs(request.query.decode("latin-1"), keep_blank_values=True)]
        unknown = [name for name in names if name not in allowed]
        try:
            body = json.loads(request.body or b"{}")
        except ValueError:
            body = {}
        unknown += [name for name in body if name not in allowed] if isinstance(body, dict) else []
        if unknown:
            raise InvalidError(f"{unknown[0]} is not a parameter")
        return handler(request)

    return handled


def takes_short_names_only(service: Service) -> None:
    """Refuse names of rules that are long, that begin or end with a blank, or that hold what cannot be printed."""
    rules = service.approval_rules
    require = rules.require_possible

    def require_possible(rule: Any) -> None:
        require(rule)
        if len(rule.name) > _LONGEST_NAME or rule.name != rule.name.strip() or not rule.name.isprintable():
            raise RejectedError("is not a name", parameter="name")

    rules.require_possible = require_possible  # type: ignore[method-assign] # a service is altered so


# -- what is shown -----------------------------------------------------------------------------------------------------


def gives_everybody_one_name(service: Service) -> None:
    """Show the same name for all users, and one of them as blocked."""
    of_user = service.present.user

    def shown(user: Any) -> dict[str, Any]:
        return {**of_user(user), "name": "Ines Ünal", "state": "blocked" if user.id % 2 else "active"}

    service.present.user = shown  # type: ignore[method-assign] # see above


def shows_groups_by_the_letter(service: Service) -> None:
    """Show addresses of groups as the texts that group references have, below the host."""
    of_group = service.present.group

    def shown(group: Any) -> dict[str, Any]:
        return {**of_group(group), "web_url": f"/groups/{group.full_path}", "avatar_url": "", "visibility": "internal"}

    service.present.group = shown  # type: ignore[method-assign] # see above


def shows_projects_by_the_letter(service: Service) -> None:
    """Show a project in an allowlist with topics and no tags, a picture of its namespace, and no address for ssh."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key != "GET /projects/:id/job_token_scope/allowlist" or answer.status not in _SUCCESS:
            return
        entries: Any = answer.content
        answer.content = [
            {
                **entry,
                "tag_list": [],
                "topics": ["a", "ä"],
                "ssh_url_to_repo": "",
                "namespace": {**entry["namespace"], "avatar_url": "picture.png", "kind": "organisation"},
            }
            for entry in entries
        ]

    transform(service, change)


def completes_otherwise(service: Service) -> None:
    """Give all completions one id, a gateway's clock that is days behind, and choices that count down to 7."""
    completion = service.code_completion
    complete = completion.complete

    def completed(wanted: Any) -> dict[str, Any]:
        result: dict[str, Any] = dict(complete(wanted))
        choices = [
            {**choice, "index": 7 + len(result["choices"]) - place, "finish_reason": ""}
            for place, choice in enumerate(result["choices"])
        ]
        created = result["created"] - 3 * 24 * 3600
        model = {"engine": "", "name": ""}
        return {**result, "id": "", "object": "", "created": created, "choices": choices, "model": model}

    completion.complete = completed  # type: ignore[method-assign] # see above


def streams_events(service: Service) -> None:
    """Stream a completion as events of a server."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key == _COMPLETIONS and answer.chunks:
            events = tuple(
                b"event: text\ndata: " + json.dumps(str(chunk)).encode() + b"\n\n" for chunk in answer.chunks
            )
            answer.chunks, answer.media_type = events, "text/event-stream"

    transform(service, change)


def lives_in_another_time(service: Service) -> None:
    """Let the clock be a quarter of a century behind."""
    now = service.clock.now
    service.clock.now = lambda: now() - _ANSWERING_LATER  # type: ignore[method-assign] # see above


# -- exports -----------------------------------------------------------------------------------------------------------


def numbers_batches_from_ten(service: Service) -> None:
    """Begin the numbers of batches with ten, and list the newest batch first."""
    exports = service.group_relations_export
    present, batch = exports.present, exports.batch

    def shown(export: Any) -> dict[str, Any]:
        entry: dict[str, Any] = dict(present(export))
        later = [{**each, "batch_number": each["batch_number"] + _FIRST_BATCH - 1} for each in entry.get("batches", ())]
        return {**entry, "batches": later[::-1]} if "batches" in entry else entry

    def found(export: Any, number: int) -> Any:
        return batch(export, number - _FIRST_BATCH + 1)

    exports.present = shown  # type: ignore[method-assign] # see above
    exports.batch = found  # type: ignore[method-assign] # see above


def lists_relations_before_the_first_export(service: Service) -> None:
    """List the relations that a group has, without a state, before it was ever exported."""
    exports = service.group_relations_export
    status = service.routes.get(_STATUS).handler

    def listed(request: Request) -> Response:
        if exports.all_of(request.group):
            return status(request)
        empty = [{"relation": relation, "status": None} for relation in exports.relations(request.group)]
        return Response(content=empty, has_content=True)

    service.routes.change(_STATUS, handler=listed)


def sends_files_in_pieces(service: Service) -> None:
    """Send a file as several compressed members, its lines ended as on other systems, named in the newer form."""
    exports = service.group_relations_export

    def change(route: Route, request: Request, answer: Response) -> None:
        if route.key == _DOWNLOAD and answer.status == HTTPStatus.OK and answer.raw[:2] == b"\x1f\x8b":
            lines = gzip.decompress(answer.raw).splitlines()
            answer.raw = b"".join(gzip.compress(line + b"\r\n") for line in lines)  # of no line, no byte
            name = exports.file_name(str(request.parameters.string("relation")))
            answer.headers["content-disposition"] = f"inline; filename*=UTF-8''{name.replace('.', '%2E')}"

    transform(service, change)


# -- rules -------------------------------------------------------------------------------------------------------------


_PLAIN = Choices()


def lets_copies_take_places(service: Service) -> None:
    """List the project's rules in each merge request, under numbers that copies of them take over and use up."""
    rules, everywhere = service.merge_request_approval_rules, service.approval_rules
    listed, find_listed, create = rules.listed, rules.find_listed, rules.create_rule
    numbers: dict[tuple[int, int], int] = defaultdict(partial(service.store.next_id, "approval_rules"))

    def inherited(merge_request: Any) -> list[Any]:
        home, copied = home_of(merge_request), {rule.source_id for rule in rules.own_rules(merge_request)}
        left = [rule for rule in rules.project_rules(merge_request) if rule.id not in copied]
        return [replace(rule, id=numbers[merge_request.id, rule.id], home=home, source_id=rule.id) for rule in left]

    def found(merge_request: Any, number: int) -> Any:
        return {rule.id: rule for rule in inherited(merge_request)}.get(number) or find_listed(merge_request, number)

    def created(merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        rule = create(merge_request, wanted, source_id, caller)
        if source_id is None:
            return rule
        number = numbers.pop((merge_request.id, source_id), rule.id)
        return everywhere.rules.setdefault(number, replace(everywhere.rules.pop(rule.id), id=number))

    rules.listed = lambda merge_request: [*listed(merge_request), *inherited(merge_request)]  # type: ignore[method-assign]
    rules.find_listed = found  # type: ignore[method-assign] # see above
    rules.create_rule = created  # type: ignore[method-assign] # see above


VARIANTS = (
    Variant(
        "compressed-on-the-wire",
        "JSON is compressed for whoever takes it so.",
        alterations=(compresses_answers,),
    ),
    Variant(
        "closes-each-connection",
        "Each connection is closed behind its answer.",
        alterations=(closes_each_connection,),
    ),
    Variant(
        "json-at-length",
        "JSON is written on many lines, with escapes.",
        alterations=(writes_json_at_length,),
    ),
    Variant(
        "says-where-things-are",
        "What was created has an address in a header.",
        alterations=(says_where_things_are,),
    ),
    Variant(
        "talks-where-nothing-is-shown",
        "Where no answer is shown there is a word of plain text.",
        alterations=(talks_where_nothing_is_shown,),
    ),
    Variant(
        "documented-parameters-only",
        "Parameters that an operation is not described with are refused, in query and body.",
        alterations=(refuses_what_is_not_documented,),
    ),
    Variant(
        "short-names-only",
        "Names of rules are short and printable.",
        alterations=(takes_short_names_only,),
    ),
    Variant(
        "numbers-as-far-as-they-go",
        "Numbers in a path may have letters behind them.",
        alterations=(reads_numbers_as_far_as_they_go,),
    ),
    Variant(
        "numbers-beyond-doubles",
        "Ids are larger than a double holds.",
        replace(_PLAIN, first_id=900_000_000_000_000_000),
        alone="written with a point, as another one does, such a number is another number",
    ),
    Variant(
        "addresses-of-ipv6",
        "Addresses have a number of IPv6 for their host.",
        replace(_PLAIN, web_url="http://[2001:db8::17]:8080/base"),
    ),
    Variant(
        "everybody-has-one-name",
        "All people have one name, and half of them are blocked.",
        alterations=(gives_everybody_one_name,),
    ),
    Variant(
        "groups-by-the-letter",
        "Groups have texts where no address is asked for.",
        alterations=(shows_groups_by_the_letter,),
    ),
    Variant(
        "projects-by-the-letter",
        "Projects have topics and no tags, and texts where no address is asked for.",
        alterations=(shows_projects_by_the_letter,),
    ),
    Variant(
        "completes-otherwise",
        "Completions share an id, count down and come from another day.",
        alterations=(completes_otherwise,),
    ),
    Variant(
        "streams-events",
        "A completion is streamed as events.",
        alterations=(streams_events,),
    ),
    Variant(
        "lives-in-another-time",
        "The clock is decades behind.",
        alterations=(lives_in_another_time,),
    ),
    Variant(
        "batches-from-ten",
        "Batches are numbered from ten on and listed backwards.",
        alterations=(numbers_batches_from_ten,),
    ),
    Variant(
        "files-in-pieces",
        "Files come in several compressed pieces, in a newer form of name; that of no object has no byte.",
        alterations=(sends_files_in_pieces,),
    ),
    Variant(
        "relations-before-the-first-export",
        "Before the first export the status lists relations without a state.",
        alterations=(lists_relations_before_the_first_export,),
    ),
    Variant(
        "settings-as-texts",
        "Settings of integrations are shown as texts.",
        alterations=(area_alterations.shows_settings_as_texts,),
    ),
    Variant(
        "secrets-as-stars",
        "Secrets of integrations are shown as stars.",
        alterations=(area_alterations.masks_secrets,),
    ),
    Variant(
        "integrations-numbered-anew",
        "An integration has another number each time it is set up.",
        alterations=(area_alterations.numbers_integrations_anew,),
    ),
    Variant(
        "integrations-set-up-anew",
        "A change of an integration sets what it leaves out back to its default.",
        alterations=(area_alterations.sets_integrations_up_anew,),
    ),
    Variant(
        "copies-take-places",
        "Merge requests list the rules of their project, and a copy takes the place of one.",
        alterations=(lets_copies_take_places,),
    ),
)
