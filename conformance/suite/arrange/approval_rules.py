"""Helpers of tests and request examples for approval rules of groups and projects: reading and comparing them."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.http.bodies import is_same
from conformance.http.redaction import beginning
from conformance.results.record import Reason
from conformance.results.text import as_json, each_as_json
from conformance.suite.arrange.reviews import (
    Rule,
    created,
    essence,
    essences,
    fresh_name,
    is_of_this_run,
    naming,
    numbers,
    rule_in,
)
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import (
    Caller,
    Path,
    first_page,
    given,
    group_path,
    must,
    must_be_as_before,
    must_settle,
    project_path,
)
from conformance.suite.expectations.words import read_until
from conformance.suite.per_run import PerRun
from conformance.target.names import CHECKED, LEAVING, in_place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from conformance.suite.arrange.places import Place
    from conformance.suite.expectations import Answer
    from conformance.target import Fixture

FLAG = "applies_to_all_protected_branches"
KNOWN_TYPES = ("any_approver", "regular", "report_approver", "code_owner")
#: Types that only the system gives to rules.
SYSTEM_TYPES = frozenset({"report_approver", "code_owner"})
#: A text that no service accepts as a value.
UNHEARD_OF = "unheard-of"
#: Statuses that refuse a known caller whose role is too low.
_OF_ROLES = frozenset({401, 403})

_OURS = "conformance-"
_MOST_PAGES = 100
_SHOWN = 300

#: Which actor was seen to read which list of rules.
_LISTED: PerRun[set[tuple[str, Path]]] = PerRun(set)


def project_rules_path(project: Fixture) -> Path:
    """Return the path of a project's approval rules."""
    return project_path(project) / "approval_rules"


def group_rules_path(group: Fixture) -> Path:
    """Return the path of a group's approval rules."""
    return group_path(group) / "approval_rules"


def own_group(group: Fixture) -> Fixture:
    """Return the group that the run made in place of a group of the profile; the group itself if the run made none."""
    profile = current_run().profile
    name = in_place_of(group.name, LEAVING, profile.fixtures)
    return group if name == group.name else profile.fixtures[name][0]


def administrator_of(owner: Caller, group: Fixture) -> Caller:
    """Return who administrates a group: its owner or, if the owner is refused, an administrator of the installation.

    If the owner may change the rules but not list them, or the other way round, the service treats the owner as an
    administrator of the group and must serve the rest. If the profile names no administrator, raise Unmet.
    Specification: Authentication (group approval rules are for group administrators).
    """
    run = current_run()
    # If this leaves a rule and the run has its own group, try it there: the roles are the same in both.
    rules = group_rules_path(run.profile.first("rules_group") or group)
    seen = _LISTED()
    if (owner.name, rules) in seen:
        return owner
    if is_listed(owner, rules):
        seen.add((owner.name, rules))
        return owner
    if "admin" not in run.profile.actors:
        if owner.get(rules).status not in _OF_ROLES:
            return owner
        detail = "the owner of the group is refused, and who else may be an administrator of it is not in the profile"
        raise Unmet(Reason.PREREQUISITE_MISSING, f"{detail}: name an administrator of the installation as admin")
    admin = Caller(run, run.profile.actors["admin"])
    if not is_listed(admin, rules):
        return owner
    rule = own_rule(admin, rules)
    same = {"approvals_required": rule.get("approvals_required")}
    return admin if owner.put(rules / rule["id"], same).exchange.is_refusal else owner


def own_rule(caller: Caller, rules: Path, *, but: int | None = None) -> Rule:
    """Return a regular rule of a group that the suite made, in this run or before; another one than `but`.

    No operation deletes a rule of a group, so a rule is made only if there is none. Where it is refused, the rule by
    which the run checked a group of its own takes its place.
    """
    listed = [rule for rule in caller.list(rules).having(rule_type="regular") if rule.get("id") != but]
    ours = [rule for rule in listed if _OURS in str(rule.get("name"))]
    if ours:
        return dict(ours[0])
    try:
        return created(caller, rules, rule_type="regular")
    except Unmet:
        checked = [rule for rule in listed if str(rule.get("name")).startswith(CHECKED)]
        if not checked:
            raise
        return dict(checked[0])


def has_own_rule(caller: Caller, rules: Path) -> bool:
    """Tell whether a group has a regular rule that the suite made, in this run or before."""
    return any(_OURS in str(rule.get("name")) for rule in caller.list(rules).having(rule_type="regular"))


def created_last(caller: Caller, rules: Path, **body: Any) -> Rule:
    """Create a rule and delete those that this run made before and left, so that none of its own is beside it."""
    rule = created(caller, rules, **body)
    for other in caller.list(rules).having(rule_type="regular"):
        if other["id"] != rule["id"] and is_of_this_run(other):
            caller.delete(rules / other["id"])
    return rule


def other_administrators(administrator: Caller, rules: Path) -> list[Caller]:
    """Return who else reads a group's rules and has just done so: at most an administrator of the installation."""
    actor = current_run().profile.actors.get("admin")
    if actor is None or actor == administrator.actor:
        return []
    other = Caller(current_run(), actor)
    with suppress(Unmet):
        return [other] if other.list(rules).entries else []
    return []


def is_listed(caller: Caller, rules: Path) -> bool:
    """Tell whether a caller may read a list of rules; an old one has no pages, and may refuse to be asked for one."""
    return not first_page(caller, rules).exchange.is_refusal or not caller.get(rules).exchange.is_refusal


@contextmanager
def own_rule_put_back(caller: Caller, rules: Path) -> Iterator[Rule]:
    """Lend such a rule, and restore its content afterwards."""
    found = own_rule(caller, rules)
    before = standing(found)
    try:
        yield found
    finally:
        _put_back(caller, rules / found["id"], before)


def _put_back(writer: Caller, rule: Path, before: dict[str, Any]) -> None:
    """Give a rule the content again that `essence` or `standing` returned."""
    values = {name: before[name] for name in ("name", "approvals_required")}
    writer.put(rule, {**values, "user_ids": before["users"], "group_ids": before["groups"]})


def attempt(caller: Caller, rules: Path, **more: object) -> tuple[Answer, list[Rule]]:
    """Try to create a rule; return the answer, and the rule if one was created.

    It names only those who are sent, so a service may refuse it when there is a rule for any approver.
    """
    name = fresh_name()
    answer = caller.post(rules, {"name": name, "approvals_required": 1, **more})
    made = caller.list(rules).having(name=name)
    return answer, [rule_in(answer), *made] if answer.is_served else made


def must_be_dropped_or_refused(answer: Answer, made: list[Rule]) -> None:
    """Expect a refusal that creates nothing, or a call that is served as if the unsuitable part had not been sent."""
    if answer.exchange.is_refusal:
        must(not made, "nothing after a refusal", f"{len(made)} rules", answer.exchange)
    else:
        answer.must_be_served()


def asked_by_default(reader: Caller, rules: Path, owner: Caller | None, place: Fixture) -> list[Any]:
    """Return how many approvals the any_approver rules of a list require, without those of the groups around the place.

    A list may show the rules of the groups around, which somebody may have changed. Inconclusive when one of the rules
    requires something and the groups around cannot be read.
    """
    found = reader.list(rules).having(rule_type="any_approver")
    if all(rule.get("approvals_required") == 0 for rule in found) or not reader.target_declares("group_approval_rules"):
        return [rule.get("approvals_required") for rule in found]
    path = place.get("path")
    given(owner is not None and bool(path), "a rule for any approver may be one of the groups around")
    above = str(path).split("/")[:-1]
    around = ["/".join(above[: depth + 1]) for depth in range(len(above))]
    lists = [Path(f"/groups/{quote(one, safe='')}/approval_rules") for one in around]
    inherited = {rule.get("id") for one in lists if owner is not None for rule in owner.list(one).having()}
    return [rule.get("approvals_required") for rule in found if rule.get("id") not in inherited]


def given_declared(caller: Caller, feature: str) -> None:
    """Go on only if the target declares a feature: otherwise nothing is owed, and some of what is made stays."""
    given(caller.target_declares(feature), f"the target does not declare {feature}")


def given_owed(caller: Caller, shown: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Go on, except when the version is unknown and the target may be too old to have what it does not show."""
    if not shown and caller.target_version is None:
        raise Unmet(Reason.VERSION, f"the version is unknown, and the target may be older than {what}")


# -- reading rules -----------------------------------------------------------------------------------------------------


def standing(rule: Rule) -> dict[str, Any]:
    """Return the content of a rule of a group or project; inconclusive when one of its lists is missing."""
    branches = numbers(rule, "protected_branches")
    given(branches is not None, "the rule has no list of protected_branches")
    return {**essence(rule), "rule_type": rule.get("rule_type"), "branches": branches, FLAG: rule.get(FLAG)}


def standings(reader: Caller, rules: Path) -> dict[Any, dict[str, Any]]:
    """Return the content of every rule of a list, by number."""
    return {rule.get("id"): standing(rule) for rule in reader.list(rules).entries if isinstance(rule, dict)}


def standings_when(
    reader: Caller, rules: Path, holds: Callable[[dict[Any, dict[str, Any]]], bool]
) -> dict[Any, dict[str, Any]]:
    """Return the content of every rule of a list once a condition holds, or once the target has had time to settle."""
    return read_until(lambda: standings(reader, rules), holds)


def others_of(reader: Caller, rules: Path, *but: int) -> dict[Any, dict[str, Any]]:
    """Return the content of every rule of a list except some; inconclusive when there is no other."""
    found = {number: rule for number, rule in standings(reader, rules).items() if number not in but}
    given(bool(found), "there is no other rule that could be changed")
    return found


def must_stay(reader: Caller, rules: Path, before: Mapping[Any, dict[str, Any]]) -> None:
    """Expect that these rules of a list have the same content as before."""
    now = standings(reader, rules)
    after = {number: now.get(number) for number in before}
    must_be_as_before("these rules", before, after)


def must_name_the_same(reader: Caller, rules: Path, one: int, other: int, part: str) -> None:
    """Expect that two rules of a list, which were created alike, have the same in this part, such as `users`."""

    def parts() -> dict[int, Any]:
        listed = standings(reader, rules)
        return {number: listed[number][part] for number in (one, other) if number in listed}

    found = read_until(parts, lambda shown: {*shown} == {one, other} and bool(shown[one] == shown[other]))
    given({*found} == {one, other}, f"the list does not show both rules, {one} and {other}")
    must(found[one] == found[other], f"{part} = {as_json(found[one])}, as in rule {one}", as_json(found[other]))


def named_by_profile(place: Place, keeper: str, *, branches: bool = False) -> dict[str, Any]:
    """Return the lists that a rule may be sent with: approvers and protected branches, as far as the profile has them.

    The approvers may be unknown in the project or group set aside: there the keeper of the rules is named instead.
    """
    wanted = {"user_ids": "approver.id", "group_ids": "approver_group"}
    if branches:
        wanted["protected_branch_ids"] = "protected_branch"
    missing = place.profile.missing
    actor = place.profile.actors.get(keeper)
    somebody = {"user_ids": [actor.id]} if actor is not None and actor.id is not None else {}
    return somebody | {
        name: [place.value(reference)]
        for name, reference in wanted.items()
        if not place.is_aside and not missing(reference.partition(".")[0])
    }


def approvers_by_turns() -> list[dict[str, list[int]]]:
    """Return lists of approvers for two changes: one user and one group each, and others the second time."""
    profile, both = current_run().profile, ("approver", "second_approver")
    people = [actor.id for actor in profile.known_actors(*both) if actor.id is not None]
    groups = [one.id for name in both for one in profile.fixtures.get(f"{name}_group", ())[:1]]
    named = {"user_ids": people, "group_ids": groups}
    return [{name: [ids[turn]] for name, ids in named.items() if len(ids) == len(both)} for turn in (0, 1)]


@contextmanager
def a_rule_that_names_approvers(writer: Caller, project: Fixture) -> Iterator[None]:
    """Let a project have a rule with users and groups meanwhile, if its rules are claimed and one can be made."""
    if not current_run().profile.claims("project-approval-rules"):
        yield
        return
    rules = project_rules_path(project)
    with rules_put_back(writer, rules):
        with suppress(Unmet):
            created(writer, rules, **approvers_by_turns()[0])
        yield


@dataclass(frozen=True)
class RuleShown:
    """A rule as somebody reads it; it is read again while the target may need time to settle."""

    where: str
    read: Callable[[], Rule | None]
    """Returns None when the rule cannot be read."""

    @property
    def rule(self) -> Rule:
        """The rule as it is; inconclusive when it cannot be read."""
        found = self.read()
        given(found is not None, f"{self.where} cannot be read")
        return found or {}

    def must_hold(self, **values: Any) -> None:
        """Expect these values."""
        self._expect(
            each_as_json(values),
            lambda rule: all(is_same(rule.get(name), value) for name, value in values.items()),
            tuple(values),
        )

    def must_name(self, **ids: Collection[int]) -> None:
        """Expect these numbers, and maybe others, in lists of the rule."""
        self._expect(f"named {_brief(ids)}", lambda rule: _compare(rule, ids, set.issubset), tuple(ids))

    def must_name_only(self, **ids: Collection[int]) -> None:
        """Expect exactly these numbers, each once, and no others, in lists of the rule."""
        self._expect(f"named only {_brief(ids)}", lambda rule: _compare(rule, ids, _each_once), tuple(ids))

    def must_not_name(self, **ids: Collection[int]) -> None:
        """Expect none of these numbers in lists of the rule, which must be there; see `given_naming`."""
        self._expect(f"not named {_brief(ids)}", lambda rule: _compare(rule, ids, set.isdisjoint), tuple(ids))

    def given_naming(self, **ids: Collection[int]) -> None:
        """Go on only if the rule names these numbers: their removal can only be seen if they were there."""
        found = read_until(self.read, lambda rule: rule is not None and _compare(rule, ids, set.issubset))
        names_them = found is not None and _compare(found, ids, set.issubset)
        given(names_them, f"{self.where} does not name {_brief(ids)} to begin with")

    def _expect(self, expected: str, holds: Callable[[Rule], bool], names: tuple[str, ...]) -> None:
        seen: list[Rule | None] = []

        def looks_right() -> bool:
            seen.append(self.read())
            return seen[-1] is not None and holds(seen[-1])

        must_settle(looks_right, f"{self.where}: {expected}", lambda: _shown(seen[-1], names))


def by_id(reader: Caller, rules: Path, number: int) -> RuleShown:
    """Read a rule by its number; inconclusive where that answers neither with something nor that there is nothing."""

    def read() -> Rule | None:
        answer = reader.get(rules / number)
        if answer.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return _object(answer.given_served())
        reader.list(rules)  # where rules cannot be read at all, it says nothing about this one
        return None

    return RuleShown(f"the rule read by {reader.name}", read)


def in_list(reader: Caller, rules: Path, number: int) -> RuleShown:
    """Read a rule from the list of its group or project."""

    def read() -> Rule | None:
        found = reader.list(rules).having(id=number)
        return dict(found[0]) if len(found) == 1 else None

    return RuleShown(f"the rule in the list read by {reader.name}", read)


def in_answer(answer: Answer) -> RuleShown:
    """Read the rule that a call was answered with; the call must have been served."""
    answer.given_served()
    return RuleShown("the rule in the answer", lambda: _object(answer))


def page_length(entries: int) -> int:
    """Return a page length that gives a list of three or more entries several pages, and a growing list a few dozen.

    Pages of one entry could not overlap: the same entry again would be the same page, where the walk ends.
    """
    return max(2, min(20, entries // 3), -(-entries // (_MOST_PAGES // 2)))


def pages_of(reader: Caller, rules: Path, per_page: int) -> list[list[Any]]:
    """Return the pages of a list up to the first that is empty or refused; inconclusive when they never end."""
    pages: list[list[Any]] = []
    for page in range(1, _MOST_PAGES + 1):
        answer = reader.get(rules, page=page, per_page=per_page)
        if page > 1 and answer.exchange.is_refusal:
            return pages
        body = answer.given_served().json
        given(isinstance(body, list), "a page is no list")
        if not body or body in pages:
            return pages
        pages.append(body)
    given(len(pages) < _MOST_PAGES, f"there are more than {_MOST_PAGES} pages")
    return pages


def _object(answer: Answer) -> Rule | None:
    body = answer.json_if_any
    return body if isinstance(body, dict) else None


def _compare(rule: Rule, ids: Mapping[str, Collection[int]], relation: Callable[[set[int], list[int]], bool]) -> bool:
    found = {name: numbers(rule, name) for name in ids}
    return all(shown is not None and relation(set(ids[name]), shown) for name, shown in found.items())


def _each_once(wanted: set[int], shown: list[int]) -> bool:
    return sorted(wanted) == shown


def _shown(rule: Rule | None, names: tuple[str, ...]) -> str:
    if rule is None:
        return "no such rule"
    told = {name: shown if (shown := numbers(rule, name)) is not None else rule.get(name, "nothing") for name in names}
    return each_as_json(told)


def _brief(value: Any) -> str:
    return beginning(as_json(value), _SHOWN)


# -- updates that leave nobody in a rule -------------------------------------------------------------------------------


_FOR_ANYBODY = "any_approver"


@dataclass(frozen=True)
class ScalarUpdate:
    """An update of a rule's name or number alone, and what shows whether these are stored."""

    alone: Answer
    """The answer to the update that sent nothing else."""
    telling: Answer
    """The same answer, or that to the same update with an approver, if the first left nobody in the rule."""

    @property
    def left_nobody(self) -> bool:
        """Whether the update left, or would have left, a rule that names nobody."""
        return self.telling is not self.alone

    def given_owed(self) -> None:
        """Go on only if the update alone is owed: not if it was refused because the rule would name nobody."""
        reason = "an update without approvers is refused like one that removes them all"
        given(self.alone.is_served or not self.left_nobody, reason)


def update_alone(writer: Caller, rule: Path, change: Mapping[str, Any], done: Answer | None = None) -> ScalarUpdate:
    """Update a rule's name or number alone; if that leaves nobody in it, do it again and name a member.

    `done` is the answer to the update if it was made already. Inconclusive if it was served, and the rule for any
    approver that it left takes no approver back.
    """
    alone, named = done if done is not None else writer.put(rule, change), naming(writer)
    if not named or not leaves_nobody(writer, rule, change, alone):
        return ScalarUpdate(alone, alone)
    again = writer.put(rule, {**change, **named})
    given(again.is_served or not alone.is_served, "a rule that an update left without approvers takes none back")
    return ScalarUpdate(alone, again if again.is_served else alone)


def leaves_nobody(writer: Caller, rule: Path, change: Mapping[str, Any], answer: Answer) -> bool:
    """Tell whether an update without lists left nobody in a rule, or was refused as one that removes everybody is."""
    if not answer.exchange.is_refusal:
        return is_for_anybody(answer.json if answer.is_served else None)
    rules, _, number = rule.rpartition("/")
    known = essences(writer, Path(rules)).items()
    emptied = writer.put(rule, {**change, "user_ids": [], "group_ids": []})
    for before in (content for one, content in known if emptied.is_served and str(one) == number):
        # It was refused for another reason, such as a number that its approvers do not reach: they have to stay.
        _put_back(writer, rule, before)
    return emptied.exchange.is_refusal


def is_for_anybody(rule: Any) -> bool:
    """Tell whether a rule is the one for any approver, whose name the service may choose."""
    return isinstance(rule, dict) and rule.get("rule_type") == _FOR_ANYBODY
