"""Helpers of tests and request examples for approvals: reading a merge request, giving it rules, cleaning up."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from secrets import randbelow, token_hex
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.http.bodies import ABSENT, listed_in, object_in
from conformance.results.record import Reason
from conformance.suite.arrange.approval_settings import given_no_password
from conformance.suite.arrange.request_examples import ReadBack, same_path
from conformance.suite.arrange.rule_lists import is_put_back, let_override, rules_put_back
from conformance.suite.context import NotTested, Unmet, current_run
from conformance.suite.expectations import Answer, Caller, Path, given, must_settle, project_path, whole_number
from conformance.suite.expectations.words import given_done, given_kept, read_until
from conformance.suite.per_run import PerRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.suite.arrange.places import Place
    from conformance.suite.arrange.request_examples import Prepared
    from conformance.target import Fixture

#: How many approvals a rule of a merge request requires if the number does not matter: more than any rule that the
#: suite makes around it, because it may have to require at least as many as its project does.
MANY = 4
#: So many rules may have the numbers of rules elsewhere before that is left open.
_MOST_ALIKE = 6
#: A commit that is the HEAD of no merge request.
OTHER_SHA = "c0ffee11" * 5
#: How long the effect of a reset may take to show.
RESET_SECONDS = 3.0
#: Types of rules that callers are not meant to make.
_NAMED_BY_THE_SERVICE = ("any_approver", "report_approver")

#: The requirement that a created rule is listed, by what its path holds.
_LISTED = {
    "/merge_requests/": "merge-request-approvals.rules.create.listed",
    "/groups/": "group-approval-rules.create.listed",
    "/projects/": "project-approval-rules.create.listed",
}

Rule = dict[str, Any]
T = TypeVar("T")


def given_in_profile(value: T | None, name: str, of: str) -> T:
    """Return a value of the profile, `name` of the fixture or actor `of`.

    Raise NotTested, with what to add, when the profile does not give it.
    """
    if value is None:
        raise NotTested(Reason.PREREQUISITE_MISSING, f"the profile does not give '{name}' of {of}: add it there")
    return value


def merge_request_path(project: Fixture, merge_request: Fixture) -> Path:
    """Return the path of a merge request; raise NotTested when the profile does not give its iid."""
    iid = given_in_profile(merge_request.get("iid"), "iid", merge_request.name)
    return project_path(project) / "merge_requests" / str(iid)


def user_id(caller: Caller) -> int:
    """Return the number of an actor; raise NotTested when the profile does not give it."""
    return int(given_in_profile(caller.actor.id if caller.actor else None, "id", caller.name))


def approving(place: Place) -> list[Caller]:
    """Return the actors of the profile who may approve."""
    actors = place.profile.actors
    return [Caller(current_run(), actors[name]) for name in ("approver", "second_approver") if name in actors]


def password_of(caller: Caller) -> str:
    """Return the password of an actor; raise NotTested when the profile does not give it."""
    return given_in_profile(caller.actor.password if caller.actor else None, "password", caller.name)


def username(caller: Caller) -> str:
    """Return the username of an actor; raise NotTested when the profile does not give it."""
    return str(given_in_profile(caller.actor.username if caller.actor else None, "username", caller.name))


#: The names that this run has given to rules.
_GIVEN: PerRun[set[str]] = PerRun(set)


def fresh_name() -> str:
    """Return a name for a rule that no other run uses."""
    name = f"conformance-{token_hex(4)}"
    _GIVEN().add(name)
    return name


def is_of_this_run(rule: Rule) -> bool:
    """Tell whether a rule has a name that this run gave, in any case and perhaps with more behind it."""
    return str(rule.get("name")).casefold().startswith(tuple(_GIVEN()))


def unusual_name() -> str:
    """Return such a name with characters that careless code escapes, cuts or drops; a service may refuse it."""
    return f'{fresh_name()} R&D\'s "Prüfung", 50%25 + a\\b /c'


def endless_name() -> str:
    """Return an unusual name that is longer than a column of a database often is; a service may refuse it."""
    return f"{unusual_name()} 🚀{' for everybody who approves what is changed in here' * 5}"


def name_of_digits() -> str:
    """Return such a name that careless code reads as a number."""
    return str(10**8 + randbelow(10**8))


def in_other_case(rule: Rule) -> str:
    """Return the name of a rule in upper case: a case-insensitive comparison then finds the former."""
    return str(rule["name"]).swapcase()


def must_become(read: Callable[[], Any], holds: Callable[[Any], bool], expected: str, *, within: float = 0) -> None:
    """Expect a condition on what is read, within the time the target has to settle; `within` as in `must_settle`."""
    must_settle(lambda: holds(read()), expected, lambda: str(read()), within=within)


def settled(read: Callable[[], Any], wanted: Any, *, within: float = 0) -> Any:
    """Return what is read, once it is as wanted or the target has had its time; `within` as in `must_settle`."""
    return read_until(read, lambda found: bool(found == wanted), within)


# -- approvals ---------------------------------------------------------------------------------------------------------


def status_of(reader: Caller, merge_request: Path) -> dict[str, Any]:
    """Return the approval status; inconclusive when there is none or it does not say who approved."""
    return given_with_list(
        reader.read(merge_request / "approvals"), "approved_by", "the status does not say who approved"
    )


def given_with_list(body: Any, name: str, otherwise: str) -> dict[str, Any]:
    """Return an object that has a list of this name, or null for an empty one; inconclusive when it is no such object.

    `otherwise` says so.
    """
    found = listed_in(body.get(name, ABSENT)) if isinstance(body, dict) else None
    given(found is not None, otherwise)
    return {**body, name: found}


def approvers_in(status: Mapping[str, Any]) -> list[int]:
    """Return the numbers of those who have approved, sorted, each as often as it is listed."""
    users = [entry.get("user") if isinstance(entry, dict) else None for entry in status["approved_by"]]
    numbers = [user.get("id") if isinstance(user, dict) else None for user in users]
    given(all(isinstance(number, int) for number in numbers), "approved_by holds entries without a user's id")
    return sorted(number for number in numbers if number is not None)


def approvers_of(reader: Caller, merge_request: Path) -> list[int]:
    """Return the numbers of those who have approved, as a caller reads them."""
    return approvers_in(status_of(reader, merge_request))


def must_be_approved_by(reader: Caller, merge_request: Path, *numbers: int, within: float = 0) -> None:
    """Expect exactly these users, each once, in approved_by of the status; `within` as in `must_settle`."""
    wanted = sorted(numbers)
    must_become(
        lambda: approvers_of(reader, merge_request),
        lambda found: bool(found == wanted),
        f"approved_by of users {wanted}",
        within=within,
    )


def must_not_be_approved_by(reader: Caller, merge_request: Path, number: int, *, within: float = 0) -> None:
    """Expect that approved_by of the status does not have this user; `within` as in `must_settle`."""
    must_become(
        lambda: approvers_of(reader, merge_request),
        lambda found: number not in found,
        f"no user {number} in approved_by, as {reader.name} reads it",
        within=within,
    )


def approvals_required(shown: Mapping[str, Any]) -> int:
    """Return how many approvals a rule or a status says are required; inconclusive where it shows no number."""
    found = whole_number(shown.get("approvals_required"))
    given(found is not None, "approvals_required is no number")
    return found or 0


def approvals_left(status: Mapping[str, Any]) -> int:
    """Return how many approvals are left; inconclusive when the status does not say."""
    left = status.get("approvals_left")
    given(isinstance(left, int), "approvals_left is no number")
    return int(left or 0)


def given_open(reader: Caller, merge_request: Path, *, by_password: bool = False) -> None:
    """Go on only with a merge request that can still be approved, without a password unless it is to require one."""
    state = status_of(reader, merge_request).get("state")
    given(state not in ("merged", "closed"), "the merge request is merged or closed, so nobody approves it any more")
    if not by_password:
        given_no_password(merge_request)


def given_withdrawn(reader: Caller, merge_request: Path, caller: Caller) -> None:
    """Withdraw an approval as a step of a story; if it stays, the requirement about withdrawing fails."""
    caller.post(merge_request / "unapprove").given_served()
    with given_done("merge-request-approvals.unapprove.caller-is-gone"):
        must_not_be_approved_by(reader, merge_request, user_id(caller))


@contextmanager
def approvals_put_back(reader: Caller, merge_request: Path, *callers: Caller) -> Iterator[None]:
    """Begin without the approvals of these callers, and restore them afterwards."""
    with current_run().known_reads.before_changes() as holds_again:
        before = approvers_of(reader, merge_request)
    for caller in callers:
        if user_id(caller) in before:
            given_withdrawn(reader, merge_request, caller)
    try:
        yield
    finally:
        now = approvers_of(reader, merge_request)
        undone = [
            caller.post(merge_request / ("unapprove" if user_id(caller) in now else "approve"))
            for caller in callers
            if (user_id(caller) in now) != (user_id(caller) in before)
        ]
        if all(answer.is_served for answer in undone):
            holds_again()


def given_reset(bot: Caller, reader: Caller, merge_request: Path) -> None:
    """Let a bot reset the approvals, and wait until they are gone: approvals until then may be removed too."""
    bot.put(merge_request / "reset_approvals").given_served()
    settled(lambda: approvers_of(reader, merge_request), [], within=RESET_SECONDS)


@contextmanager
def under_review(maintainer: Caller, merge_request: Path, *approvers: Caller) -> Iterator[Path]:
    """Begin with an open merge request that has one rule for each of these people, and no approval of theirs."""
    with current_run().known_reads.before_changes() as holds_again:
        given_open(maintainer, merge_request)
    rules = merge_request / "approval_rules"
    with rules_put_back(maintainer, rules), approvals_put_back(maintainer, merge_request, *approvers):
        for approver in approvers:
            created(maintainer, rules, approvals_required=1, user_ids=[user_id(approver)])
        yield merge_request
    holds_again()


# -- rules -------------------------------------------------------------------------------------------------------------


def created(writer: Caller, rules: Path, **body: Any) -> Rule:
    """Create a rule as a step of a story and return the answer.

    Name and approvals_required are filled in, and an approver too if nobody is named.
    """
    named = {} if body.keys() & {"user_ids", "usernames", "group_ids"} else naming(writer)
    usual = MANY if "/merge_requests/" in rules else 2
    wanted = {"name": fresh_name(), "approvals_required": usual, **named, **body}
    level = next(requirement for part, requirement in _LISTED.items() if part in rules)
    # A rule may have the number of one that was listed until then: merge requests may count their rules by themselves.
    with given_kept(
        level, lambda: sorted(str((rule.get("id"), rule.get("name"))) for rule in writer.list(rules).having())
    ):
        return _created(writer, rules, wanted, is_number_open="approvals_required" not in body)


def _created(writer: Caller, rules: Path, wanted: dict[str, Any], *, is_number_open: bool) -> Rule:
    answer = writer.post(rules, wanted)
    if answer.exchange.is_refusal and is_put_back(rules) and let_override(writer, rules) is not None:
        answer = writer.post(rules, wanted)
    if answer.exchange.is_refusal and is_number_open:
        # A service may refuse to require more approvals than there are approvers.
        answer = writer.post(rules, {**wanted, "approvals_required": 1})
    return rule_in(answer)


def created_apart(writer: Caller, rules: Path, others: Path, **body: Any) -> Rule:
    """Create a rule whose number no rule of another place has, because each place may number its own; return it.

    Where every number was taken, more are made: a place with more rules than the other has a number of its own.
    """
    theirs = writer.list(others).ids()
    for _ in range(_MOST_ALIKE):
        rule = created(writer, rules, **body)
        if rule["id"] not in theirs:
            return rule
    raise Unmet(Reason.PRECONDITION, f"{others} has a rule of its own with the number {rule['id']}")


def created_before_another(writer: Caller, rules: Path, **body: Any) -> Rule:
    """Create a rule, and then another one, if the target does: a call may reach no other rule than the newest one."""
    rule = created(writer, rules, **body)
    with suppress(Unmet):
        created(writer, rules, **body)
    return rule


def created_named(writer: Caller, rules: Path, name: str, **body: Any) -> Rule:
    """Create a rule with the name of one elsewhere, or with a name of its own if that is refused."""
    with suppress(Unmet):
        return created(writer, rules, name=name, **body)
    return created(writer, rules, **body)


def naming(caller: Caller) -> dict[str, list[int]]:
    """Return the list that names a member as approver: the caller, or for an administrator the owner of the group.

    A rule that names nobody may become the only rule for any approver, and a second one may be refused. Return nothing
    if the profile does not give the number of that member.
    """
    actors = current_run().profile.actors
    member = actors.get("owner") if caller.name == "admin" else caller.actor
    return {"user_ids": [member.id]} if member is not None and member.id is not None else {}


def created_for_two(writer: Caller, rules: Path, place: Place, **otherwise: Any) -> Rule:
    """Create a rule that names both approvers of the profile: a list wrongly joined with its users shows it twice.

    If that is impossible, because they need not be known in a group, the rule is made from the other arguments.
    """
    with suppress(Unmet, NotTested):
        return created(writer, rules, user_ids=[place.value("approver.id"), place.value("second_approver.id")])
    return created(writer, rules, **otherwise)


def naming_only(caller: Caller) -> dict[str, list[int]]:
    """Return both lists of approvers, which name only the caller; raise NotTested when the profile lacks the number.

    Whether an update keeps a list that it leaves out is open.
    """
    return {"user_ids": [user_id(caller)], "group_ids": []}


def must_be_created_unless_it_is_the_second(writer: Caller, rules: Path, answer: Answer) -> Rule:
    """Expect that a rule which names nobody was created, and return it.

    It may become the only rule for any approver: a refusal proves nothing if such a rule exists already and the same
    rule with an approver is served. If there always is one, a regular rule that names nobody is expected instead.
    """
    if answer.exchange.is_refusal and writer.list(rules).having(rule_type="any_approver"):
        sent = object_in(answer.exchange.call.body)
        named = writer.post(rules, {**sent, "name": fresh_name(), **naming(writer)})
        if named.is_served:
            regular = writer.post(rules, {**sent, "name": fresh_name(), "rule_type": "regular"})
            given(regular.is_served, "beside the rule for any approver another one without approvers may be refused")
            return rule_in(regular.must_be_served())
    return rule_in(answer.must_be_served())


def rule_in(answer: Answer) -> Rule:
    """Return the rule of an answer; inconclusive when the call was not served or shows no rule."""
    body = answer.given_served().json_if_any
    given(isinstance(body, dict) and isinstance(body.get("id"), int), "the answer shows no rule with an id")
    return dict(body)


def rule_read_back(requirement: Callable[[Mapping[str, Any]], str], *, is_new: bool = False) -> ReadBack:
    """Return how a written rule shows when it is read: a new one by its number."""

    def new_path(call: Prepared, answer: Answer) -> str:
        return f"{call.path}/{rule_in(answer)['id']}"

    def own_values(rule: Mapping[str, Any]) -> tuple[str, ...]:
        # The rule for any approver, and one about a report, may have its own name, whatever was sent.
        return ("name",) if rule.get("rule_type") in _NAMED_BY_THE_SERVICE else ()

    shows = {"name": "name", "approvals_required": "approvals_required"}
    return ReadBack(requirement, new_path if is_new else same_path, shows=shows, free=own_values)


def approvers_named(rule: Rule) -> tuple[list[int], list[int]]:
    """Return the numbers of the users and of the groups that a rule names, sorted; inconclusive without such lists."""
    return _given_numbers(rule, "users"), _given_numbers(rule, "groups")


def numbers(rule: Rule, name: str) -> list[int] | None:
    """Return the numbers that a rule names in one of its lists, sorted; None when it has no such list."""
    entries = listed_in(rule.get(name, ABSENT))
    if entries is None:
        return None
    return sorted(entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), int))


def _given_numbers(rule: Rule, name: str) -> list[int]:
    found = numbers(rule, name)
    given(found is not None, f"the rule has no list of {name}")
    return found or []


def essence(rule: Rule) -> dict[str, Any]:
    """Return the part of a rule that callers decide about: name, number, users and groups."""
    users, groups = approvers_named(rule)
    return {
        "name": rule.get("name"),
        "approvals_required": rule.get("approvals_required"),
        "users": users,
        "groups": groups,
    }


def essences(reader: Caller, rules: Path) -> dict[Any, dict[str, Any]]:
    """Return the part of every rule of a list that callers decide about, by number."""
    return {rule.get("id"): essence(rule) for rule in reader.list(rules).entries if isinstance(rule, dict)}


def state_of(reader: Caller, merge_request: Path) -> dict[str, Any]:
    """Return the approval state; inconclusive when there is none or it has no list of rules."""
    return given_with_list(
        reader.read(merge_request / "approval_state"), "rules", "the approval state has no list of rules"
    )


def must_leave_the_state(reader: Caller, review: Path, gone: tuple[Any, Any]) -> None:
    """Expect that the approval state shows no rule of this id and name, at once or soon.

    Both together identify the rule, because those of the project may have their own numbers.
    """
    must_become(
        lambda: [
            (rule.get("id"), rule.get("name")) for rule in state_of(reader, review)["rules"] if isinstance(rule, dict)
        ],
        lambda shown: gone not in shown,
        f"no rule {gone} in the approval state",
    )


def must_be_in_the_state_as_listed(reader: Caller, rules: Path) -> None:
    """Expect that the state shows each rule of a merge request once, with name, number and approvers as in the list.

    The state may also show rules of the project, which may have their own numbers, and be what a rule is a copy of.
    """

    def in_both() -> list[tuple[Any, dict[str, Any], list[dict[str, Any]]]]:
        listed, state = essences(reader, rules), state_of(reader, Path(rules.rpartition("/")[0]))
        shown: dict[Any, list[dict[str, Any]]] = {}
        for rule in state["rules"]:
            if isinstance(rule, dict):
                shown.setdefault(rule.get("id"), []).append(essence(rule))
        return [(number, rule, shown[number]) for number, rule in listed.items() if number in shown]

    def is_once(number: Any, rule: dict[str, Any], times: int) -> bool:
        of_project = Path(f"{rules.partition('/merge_requests/')[0]}/approval_rules")
        with suppress(Unmet):  # where these cannot be read, the second one counts as shown twice
            return times == 1 or (times == 2 and essences(reader, of_project).get(number) == rule)  # noqa: PLR2004
        return False

    given(bool(in_both()), "the approval state shows none of the listed rules")
    must_become(
        lambda: [(rule, shown) for number, rule, shown in in_both() if not is_once(number, rule, shown.count(rule))],
        lambda differing: not differing,
        "each rule in the state once, with name, approvals_required, users and groups as in the list",
    )


def open_rules(state: Mapping[str, Any]) -> list[Rule]:
    """Return the rules of a state that still want approvals."""
    return [rule for rule in state["rules"] if isinstance(rule, dict) and _wants_approvals(rule)]


def _wants_approvals(rule: Rule) -> bool:
    by = rule.get("approved_by")
    return (whole_number(rule.get("approvals_required")) or 0) > (len(by) if isinstance(by, list) else 0)


def must_count_only_who_approved(reader: Caller, merge_request: Path, *, within: float = 0) -> None:
    """Expect that every approver of a rule in the state is also in approved_by of the status; see must_become."""

    def strangers() -> list[Any]:
        approved = approvers_in(status_of(reader, merge_request))
        return [number for number in _counted(reader, merge_request) if number not in approved]

    must_become(
        strangers, lambda found: not found, "nobody in approved_by of a rule who has not approved", within=within
    )


def given_counted(reader: Caller, merge_request: Path) -> None:
    """Go on only if a rule in the state counts somebody: where none does, nobody is counted who has not approved."""
    found = read_until(lambda: _counted(reader, merge_request), bool)
    given(bool(found), "no rule of the approval state counts anybody")


def _counted(reader: Caller, merge_request: Path) -> list[Any]:
    """Return the numbers of all who are in approved_by of a rule in the state."""
    rules = [rule for rule in state_of(reader, merge_request)["rules"] if isinstance(rule, dict)]
    return [user.get("id") for rule in rules for user in rule.get("approved_by") or () if isinstance(user, dict)]


def rule_in_state(state: Mapping[str, Any], number: int) -> Rule:
    """Return one rule of the approval state; inconclusive when it is not there."""
    found = [rule for rule in state["rules"] if isinstance(rule, dict) and rule.get("id") == number]
    given(bool(found), "the approval state does not show the rule")
    return dict(found[0])
