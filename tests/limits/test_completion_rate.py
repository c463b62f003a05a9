"""The rate limit of completions: a number per minute for each user, regardless of other users, renewed afterwards."""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.code_completion import CHECK, COMPLETIONS, FILE, UNKNOWN_PATH, completion
from conformance.suite.context import current_run
from conformance.suite.expectations import given, must, verifies
from conformance.suite.load import ROUNDS, at_once, idle, send_load

if TYPE_CHECKING:
    from conformance.suite.expectations import Answer, Caller

MINUTE = 60
SERVED_A_MINUTE = 60
# However a service divides time into minutes, a minute overlaps at most two of its windows.
ADMITTED_AT_MOST = 2 * SERVED_A_MINUTE
MARGIN = 5
#: Enough that some of the first sixty completions would be refused if these counted with them.
CHECKS = 10
#: How often a token is tried alternately in either header.
TURNS = 6
#: The seconds before more are requested in the same minute: after each, a shorter window would be over.
PAUSES = (20, 20)
INTENTS: tuple[dict[str, str], ...] = ({}, {"intent": "completion"}, {"intent": "generation"})
UNAVAILABLE = 503


@pytest.mark.slow
@pytest.mark.calls_area("code-completion")
def test_a_user_gets_sixty_completions_a_minute(
    developer: Caller, maintainer: Caller, owner: Caller, anonymous: Caller
) -> None:
    """Only valid requests, all within one minute: those that fall into a second window are included."""
    given(developer.target_declares("code_completion"), "the target does not declare code_completion")
    projects = of_projects(maintainer, developer)  # no test before this one may use up the rate limit
    idle(MINUTE + 1)
    # Checking whether a project has completions does not count as a completion.
    send_load(developer, CHECK, {"project_path": UNKNOWN_PATH}, *filter(None, projects), count=CHECKS)
    others = at_the_same_moment(maintainer, owner)
    started = time.monotonic()
    # The limit is per user, for any content, any project and any intent.
    files = [{**FILE, "file_name": f"greeting_{number}.py"} for number in range(3)]
    bodies = [completion(current_file=file, **of, **by) for file, of, by in product(files, projects, INTENTS)]
    first = send_load(developer, COMPLETIONS, *bodies, count=SERVED_A_MINUTE)
    more = send_load(developer, COMPLETIONS, *bodies, count=ADMITTED_AT_MOST - SERVED_A_MINUTE + MARGIN)
    apart = tokens_counted_apart(developer, anonymous)
    by_bearer = send_load(anonymous, COMPLETIONS, *bodies, count=ADMITTED_AT_MOST + MARGIN, headers=bearer(developer))
    others.append(completed(maintainer))
    seconds = time.monotonic() - started
    served = sum(answer.is_served for answer in [*first, *more])
    in_all = served + sum(answer.is_served for answer in by_bearer)
    later = served_within_the_minute(developer, bodies, started)
    given(served > 0, "not one completion was served")
    codes = {answer.exchange.status for answer in [*first, *more] if is_refused(answer)}
    with verifies("limits.completions.refused-above-rate"):
        refused = sum(answer.exchange.status in codes for answer in [*first, *more])
        too_many = served > ADMITTED_AT_MOST
        given(bool(codes) or too_many, f"{len(first) + len(more) - served - refused} requests were not answered")
        given(bool(codes) or seconds < MINUTE, f"{served} completions took {seconds:.0f} s, longer than a minute")
        must(
            bool(codes) and not (in_all > ADMITTED_AT_MOST and seconds < MINUTE),
            f"at most {ADMITTED_AT_MOST} completions in {seconds:.0f} s, and the others refused",
            f"{served} served and {refused} refused, and {in_all - served} more served by bearer tokens",
        )
        # Without any later ones, all of them may have taken longer than a minute.
        is_within = not later or in_all + later <= ADMITTED_AT_MOST
        must(is_within, f"at most {ADMITTED_AT_MOST} completions in a minute", f"{in_all} served, and {later} later")
        must(not apart, "one rate for a user, by whichever token", f"refused and at once served: {apart} times")
    with verifies("limits.completions.served-below-rate", go_on=True):
        early = [answer for answer in first if answer.exchange.status in codes]
        shown = [answer.exchange for answer in early[:1]]
        must(not early, f"the first {SERVED_A_MINUTE} served", f"{len(early)} refused", *shown)
    with verifies("limits.completions.per-user", go_on=True):
        for answer in others:
            must_not_be_over_the_rate(answer, codes)
    idle(MINUTE + 1)
    with verifies("limits.completions.window"):
        must_not_be_over_the_rate(completed(developer), codes)


def at_the_same_moment(one: Caller, other: Caller) -> list[Answer]:
    """Let two users request completions at once, a few times; each has a rate of their own."""
    return [answer for _ in range(ROUNDS) for answer in at_once(partial(completed, one), partial(completed, other))]


def tokens_counted_apart(caller: Caller, anonymous: Caller) -> dict[str, int]:
    """Return by which other header or token the user is served although the limit is reached, and how often."""
    ways = {"by bearer": bearer(caller), "by another token": another_token()}
    found = {what: counted_apart(caller, anonymous, headers) for what, headers in ways.items() if headers}
    return {what: times for what, times in found.items() if times}


def completed(caller: Caller) -> Answer:
    """Request one completion; a 429 is an answer like any other."""
    return send_load(caller, COMPLETIONS, completion())[0]


def served_within_the_minute(caller: Caller, bodies: list[dict[str, Any]], started: float) -> int:
    """Return how many completions are served later in the same minute; 0 if that took longer than the minute."""
    served = 0
    for pause in PAUSES:
        idle(pause)
        answers = send_load(caller, COMPLETIONS, *bodies, count=SERVED_A_MINUTE + MARGIN)
        served += sum(answer.is_served for answer in answers)
    return served if time.monotonic() - started < MINUTE else 0


def of_projects(caller: Caller, other: Caller) -> list[dict[str, str]]:
    """Return bodies of completions for projects: no project and, if the caller is served for them too, some paths.

    If a service counted each project separately, a user could reach twice the rate with two of them. The other caller,
    who asks for no completion yet, must get the same check result: an actor who cannot see a project may be refused for
    that.
    """
    fixtures = current_run().profile.fixtures
    found = [
        one.get("path") for name in ("enabled_project", "project", "fuzz_project") for one in fixtures.get(name, ())
    ]
    named = [{"project_path": path} for path in dict.fromkeys(found) if path]
    seen = [one for one in named if caller.post(CHECK, one).status == other.post(CHECK, one).status]
    return [{}, *(one for one in seen if caller.post(COMPLETIONS, completion(**one)).is_served)]


def counted_apart(caller: Caller, anonymous: Caller, headers: dict[str, str]) -> int:
    """
    Return how often a user was served with other headers right after exceeding the limit with its own; 0 if seldom.

    It may happen once if a window ended in between, and once more if a service lets in one more after each second.
    """
    started = time.monotonic()
    times = 0
    for _ in range(TURNS):
        (own,) = send_load(caller, COMPLETIONS, completion(), count=1)
        (other,) = send_load(anonymous, COMPLETIONS, completion(), count=1, headers=headers)
        times += is_refused(own) and other.is_served
    return times if times > TURNS // 2 and time.monotonic() - started < 1 else 0


def bearer(caller: Caller) -> dict[str, str]:
    """Return the header that carries an actor's token as a bearer token."""
    return {"Authorization": f"Bearer {caller.actor.token if caller.actor else ''}"}


def another_token() -> dict[str, str]:
    """Return the header that carries another token of the developer; none where the profile gives none."""
    second = current_run().profile.first("second_token")
    return {"PRIVATE-TOKEN": str(second["token"])} if second is not None else {}


def is_refused(answer: Answer) -> bool:
    """Tell whether a call was refused; a 503 counts as well if only the limit can be the reason."""
    status = answer.exchange.status
    return status is not None and (400 <= status < 500 or status == UNAVAILABLE)


def must_not_be_over_the_rate(answer: Answer, codes: set[int | None]) -> None:
    """Expect that a call is not refused like those above the limit; other reasons for a refusal are open."""
    status = answer.exchange.status
    must(status not in codes, "a completion", f"status {status}, as above the rate", answer.exchange)
    answer.given_served()
