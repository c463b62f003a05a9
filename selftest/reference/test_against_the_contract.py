"""Two readings of one text: every response of the reference is compared with the contract, at every version.

Each operation of a version is called in a fresh seeded world, and the responses together must show every place that
the contract describes.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import TABLE, Contract, Kind, Version
from conformance.contract.bundle import resolve
from conformance.reference import Choices, EmbeddedServer, Service
from conformance.suite.arrange import Place, RequestExample, area_of, has_request_example
from conformance.suite.arrange.request_examples import prepare
from conformance.suite.context import Run, testing
from conformance.suite.derived import caller_named, documents_json, served_caller
from conformance.suite.expectations import Answer, Caller, group_path, project_path
from conformance.target.embedded import prepared_service, profile_data
from conformance.target.names import ACTORS
from conformance.target.profile_file import profile_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from conformance.contract import DocumentedResponse, Operation
    from conformance.contract.bundle import Json
    from conformance.http.exchange import Exchange
    from conformance.suite.arrange import Prepared, Values

pytestmark = pytest.mark.usefixtures("inside_this_process")

#: Number of operations of a version. 14.4 is a row of the version table in the text; the others are those of the suite.
OPERATIONS = {
    **dict.fromkeys(("12.3", "14.3"), 38),
    **dict.fromkeys(("14.4", "15.2", "15.3", "15.8", "15.9"), 42),
    **dict.fromkeys(("16.0",), 41),  # the approval configuration can no longer be changed
    **dict.fromkeys(("16.1", "16.4"), 49),
    **dict.fromkeys(("17.0", "17.1", "17.7", "18.0", "19.0"), 52),
}
KEEPER = "owner"
NO_SUCH_ROUTE = {404, 405}


# -- how to call operations that have no request example of the suite --------------------------------------------------


def member_role(_: Place) -> Values:
    return {"name": "Auditor", "base_access_level": 20}


def with_member_role(_: Caller, place: Place) -> Values:
    made = caller_named("admin").post("/member_roles", member_role(place)).given_served()
    return {"member_role_id": made.json["id"]}


def registration(_: Place) -> Values:
    answer = caller_named("admin").post("/runners/reset_registration_token").given_served()
    return {"token": answer.json["token"]}


#: The version table names these operations without describing them.
RECIPES: Mapping[str, RequestExample] = {
    "createMemberRole": RequestExample(body=member_role),
    "deleteMemberRole": RequestExample(before=with_member_role),
    "registerRunner": RequestExample(body=registration),
    **dict.fromkeys(("listUsers", "listMemberRoles", "resetRegistrationToken"), RequestExample()),
    **dict.fromkeys(("resetProjectRegistrationToken", "resetGroupRegistrationToken"), RequestExample()),
}


def look_further(run: Run) -> None:
    """Make responses show what request examples do not need: rules that hold only for some protected branches."""
    place, owner = Place(run.profile), caller_named(KEEPER)
    rules = project_path(place.fixture("project")) / "approval_rules"
    body = {"name": "Branch", "approvals_required": 1, "protected_branch_ids": [place.value("protected_branch")]}
    owner.post(rules, body).given_served()
    owner.get(rules).given_served()
    owner.get(group_path(place.fixture("branch_rule_group")) / "approval_rules").given_served()


#: By operation and code: who gets one of the codes that the text states for a refusal, and why.
STATED: Mapping[tuple[str, str], tuple[str, Callable[[Place], Values]]] = {
    ("approveMergeRequest", "409"): ("approver", lambda _: {"sha": "0" * 40}),
    ("resetMergeRequestApprovals", "401"): ("maintainer", lambda _: {}),
    ("checkCodeSuggestionsEnabled", "403"): (
        KEEPER,
        lambda place: {"project_path": place.value("disabled_project.path")},
    ),
    ("checkCodeSuggestionsEnabled", "404"): (KEEPER, lambda _: {"project_path": ""}),
}


# -- what responses show -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """What the contract allows at one place of a response: a schema with all the schemas that it is composed of."""

    document: Json
    schemas: tuple[Json, ...]

    @classmethod
    def composed(cls, document: Json, schemas: Iterable[Any]) -> Shape:
        found: list[Json] = []
        waiting = list(schemas)
        while waiting:
            schema = resolve(document, waiting.pop())
            found.append(schema)
            waiting += [part for word in ("allOf", "anyOf", "oneOf") for part in schema.get(word, ())]
        return cls(document, tuple(found))

    def entries(self) -> Shape:
        return Shape.composed(self.document, (schema["items"] for schema in self.schemas if "items" in schema))

    def under(self, name: str) -> Shape:
        named = (schema.get("properties", {}) for schema in self.schemas)
        return Shape.composed(self.document, (properties[name] for properties in named if name in properties))


def shape_of(operation: Operation, status: int) -> Shape:
    response = operation.response_to(status)
    assert response is not None
    return Shape.composed(operation.document, [response.schema] if response.schema else [])


def untimely(value: Any, known: Shape, ever: Shape) -> Iterator[str]:
    """Name the properties of a response that some version has, but not this one."""
    if isinstance(value, list):
        for entry in value:
            yield from untimely(entry, known.entries(), ever.entries())
    elif isinstance(value, dict):
        for name, inner in value.items():
            if ever.under(name).schemas and not known.under(name).schemas:
                yield name
            yield from untimely(inner, known.under(name), ever.under(name))


#: The operations of all versions, with everything that any version has.
EVER: Mapping[str, Operation] = {operation.id: operation for operation in Contract.load().operations(None)}


@dataclass
class Ledger:
    """Every response of a run, compared with what the contract documents for its operation."""

    run: Run
    service: Service
    answers: dict[str, set[int]] = field(default_factory=dict)
    """Operation -> the codes that it was answered with when it was called as it should be."""
    shown: set[str] = field(default_factory=set)
    """Requirements of the schemas whose places some answer had."""
    problems: list[str] = field(default_factory=list)

    def see(self, exchange: Exchange) -> None:
        operation = self.run.validator.operation_of(exchange.call.method, exchange.call.path)
        if operation is None or exchange.status is None:
            return
        what = f"{operation.label} answered {exchange.status}"
        response = operation.response_to(exchange.status)
        if response is None:
            self.problems.append(f"{what}, which is not documented: {exchange.body[:200]!r}")
            return
        kind = exchange.headers.get("content-type", "").partition(";")[0]
        if exchange.body and response.media_types and not any(fnmatch(kind, media) for media in response.media_types):
            self.problems.append(f"{what} as {kind}, not {' or '.join(response.media_types)}")
        if exchange.is_success and documents_json(response):
            body = json.loads(exchange.body)
            known, ever = (shape_of(entry, exchange.status) for entry in (operation, EVER[operation.id]))
            self.problems += [f"{what} with {name}, too early or too late" for name in untimely(body, known, ever)]
        for finding in self.run.validator.findings(exchange):
            if finding.holds:
                self.shown.add(finding.requirement)
            else:
                wrong = f"{finding.requirement} at {finding.place}: {finding.expected}; got {finding.actual}"
                self.problems.append(f"{what}: {wrong}")

    def begin_anew(self) -> None:
        """Forget on both sides what was done: otherwise the run would wait for unknown exports."""
        self.service.reset()
        self.run.writes.served.clear()
        self.run.known_reads.forget()

    def answered(self, operation: Operation, answer: Answer) -> None:
        self.answers.setdefault(operation.id, set()).add(answer.status)

    @property
    def served(self) -> set[str]:
        return {name for name, codes in self.answers.items() if any(200 <= code < 300 for code in codes)}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """One server for all versions, one after the other."""
    with EmbeddedServer(prepared_service()) as started:
        yield started


@pytest.fixture(params=OPERATIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def book(server: EmbeddedServer, version: str) -> Iterator[Ledger]:
    """Serve a version and begin a run against it."""
    service = prepared_service(version, Choices(export_delay_seconds=0))
    server.serve(service)
    profile = profile_from(profile_data(service.world, server.base_url, version), "the reference")
    run = Run(Contract.load(), profile, lambda _: None, writes_anywhere=True)
    with closing(run), testing(run, "the reference", frozenset()):
        found = Ledger(run, service)
        run.client.on_exchange(found.see)
        yield found


def ready(run: Run, operation: Operation) -> Prepared:
    """Prepare a valid call of an operation, with the request example of the suite if there is one; undo nothing."""
    area = area_of(operation) if has_request_example(operation) else None
    request_example, keeper = (
        (area.request_examples[operation.id], area.keeper) if area else (RECIPES[operation.id], KEEPER)
    )
    place = Place(run.profile)
    return prepare(operation, request_example, place, request_example.before(caller_named(keeper), place))


def entitled(operation: Operation) -> Caller:
    """Say who is served; for operations that only the version table names, the text does not say it."""
    return served_caller(operation) if operation.served else caller_named("admin")


def of_version(version: str) -> tuple[Operation, ...]:
    return Contract.load().operations(Version.parse(version))


# -- the tests ---------------------------------------------------------------------------------------------------------


def test_every_version_of_the_contract_is_tested() -> None:
    assert OPERATIONS.keys() - set(TABLE) == {"14.3", "14.4"}
    assert set(TABLE) <= OPERATIONS.keys()


def test_every_operation_is_served_as_the_contract_documents_it(version: str, book: Ledger) -> None:
    operations = of_version(version)
    assert len(operations) == OPERATIONS[version]
    for operation in operations:
        book.begin_anew()
        book.answered(operation, ready(book.run, operation).sent_by(entitled(operation)))
    look_further(book.run)
    assert not book.problems, "\n".join(book.problems)
    assert {operation.id for operation in operations} - book.served == set(), book.answers
    assert described(operations) - book.shown == set()


def described(operations: tuple[Operation, ...]) -> set[str]:
    """What the documented responses of a version state about their places."""
    requirements = Contract.load().requirements
    successes = [
        (operation, response)
        for operation in operations
        for response in operation.responses
        if response.is_success and documents_json(response)
    ]
    named = {name for operation, response in successes for name in operation.response_requirements(response)}
    return {name for name in named if requirements[name].kind is Kind.SCHEMA}


def test_every_refusal_is_one_that_the_contract_documents(version: str, book: Ledger) -> None:
    seen = set()
    for operation in of_version(version):
        for response in filter(is_stated, operation.responses):
            actor, body = STATED[operation.id, response.status]
            book.begin_anew()
            call = prepare(operation, RequestExample(body=body), Place(book.run.profile), {})
            seen.add((operation.id, str(call.sent_by(caller_named(actor)).status)))
        assert called_blindly(book.run, operation, caller_named("anonymous")).status == 401, operation.label
    assert not book.problems, "\n".join(book.problems)
    assert seen == set(STATED)


def test_every_caller_gets_a_response_that_the_contract_documents(version: str, book: Ledger) -> None:
    """Each caller sees records differently and is refused differently: hidden groups, roles that are too low."""
    for operation in of_version(version):
        codes: dict[str, int] = {}
        call = None
        for actor in ACTORS:
            if call is None:
                book.begin_anew()
                call = ready(book.run, operation)
            codes[actor] = call.sent_by(caller_named(actor)).status
            if operation.method != "GET" and codes[actor] < 300:
                call = None  # the call used up what was prepared
        served = {actor for actor, code in codes.items() if code < 300}
        assert served >= set(operation.served), (operation.id, codes)
        assert not served & set(operation.refused), (operation.id, codes)
    assert not book.problems, "\n".join(book.problems)


def is_stated(response: DocumentedResponse) -> bool:
    return response.status.startswith("4") and response.status.isdigit()


def test_an_operation_that_a_version_does_not_have_is_not_found(version: str, book: Ledger) -> None:
    """Neither its path nor its method: without a token the answer is not 401 either, as for other unknown paths."""
    here = {operation.id for operation in of_version(version)}
    absent = [operation for name, operation in EVER.items() if name not in here]
    assert len(absent) == len(EVER) - OPERATIONS[version]
    for operation in absent:
        for actor in ("admin", KEEPER, "anonymous"):
            answer = called_blindly(book.run, operation, caller_named(actor))
            assert answer.status in NO_SUCH_ROUTE, f"{operation.label} by {actor}"
    mine = {f"{route.method} {unnamed(route.path)}" for route in book.service.routes}
    assert mine & {f"{operation.method} {unnamed(operation.path)}" for operation in absent} == set()
    assert {f"{operation.method} {unnamed(operation.path)}" for operation in of_version(version)} <= mine


def called_blindly(run: Run, operation: Operation, caller: Caller) -> Answer:
    """Call an operation without preparing anything."""
    named = {parameter.name: 1 for parameter in operation.parameters if parameter.fixture is None}
    return prepare(operation, RequestExample(), Place(run.profile), named).sent_by(caller)


def unnamed(path: str) -> str:
    """Write a path without the names of its parameters."""
    return "/".join(":" if part[:1] in (":", "{") else part for part in path.split("/"))
