"""Variants in how numbers, times and addresses are written, and the alterations that make them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.variants.variant import Variant, transform
from conformance.reference.choices import Choices, TimestampStyle

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

_ANSWERING_LATER = timedelta(days=365 * 24)
_ABOVE_ALL_IDS = 50_000_000


def writes_integers_with_a_point(service: Service) -> None:
    """Write each integer with a decimal point and a zero: JSON has only one type of number."""

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.has_content:
            answer.content = _with_points(answer.content)

    transform(service, change)


def _with_points(value: object) -> object:
    if isinstance(value, dict):
        return {name: _with_points(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_points(inner) for inner in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def counts_ids_down(service: Service) -> None:
    """Give later things smaller ids."""
    next_id, highest = service.store.next_id, 2 * service.choices.first_id + _ABOVE_ALL_IDS
    service.store.next_id = lambda sequence: highest - next_id(sequence)


def numbers_all_kinds_together(service: Service) -> None:
    """Take the ids of everything from one sequence."""
    numbers = itertools.count(service.choices.first_id + _ABOVE_ALL_IDS)
    service.store.next_id = lambda sequence: next(numbers)  # noqa: ARG005 - every kind of thing has its own


def writes_other_iso_dates(service: Service) -> None:
    """Write times in the basic and in the week form of ISO 8601, alternating by second."""
    forms = ("%Y%m%dT%H%M%S", "%G-W%V-%uT%H:%M:%S")

    def written(moment: datetime) -> str:
        milliseconds = moment.microsecond // 1000
        return f"{moment.strftime(forms[moment.second % 2])}.{milliseconds:03d}Z"

    service.present.timestamp = written


def writes_moments_by_machine(service: Service) -> None:
    """Let machines in different time zones answer in turn, each with its own number of fractional digits."""
    hours = itertools.cycle((0, -3, 9))
    digits = itertools.cycle(("milliseconds", "microseconds", "seconds", "microseconds"))

    def written(moment: datetime) -> str:
        return moment.astimezone(timezone(timedelta(hours=next(hours)))).isoformat(timespec=next(digits))

    present = service.present
    present.timestamp = written
    limited = present.limited_project

    def shown_anew(project: Any) -> dict[str, Any]:
        present.timestamp = present.timestamp  # then the entry of a project is written anew, and not remembered
        return dict(limited(project))

    present.limited_project = shown_anew
    present.limited_project_text = lambda project: orjson.dumps(shown_anew(project))


def names_machines_in_addresses(service: Service) -> None:
    """Let several machines answer in turn, each with its own name in all addresses."""
    web = service.choices.web_url
    hosts = itertools.cycle((web, "https://one.example.com", "https://two.example.com:8443"))

    def change(_: Route, __: Request, answer: Response) -> None:
        if answer.has_content:
            answer.content = _at_host(answer.content, web, next(hosts))

    transform(service, change)


def _at_host(value: object, usual: str, host: str) -> object:
    if isinstance(value, dict):
        return {name: _at_host(inner, usual, host) for name, inner in value.items()}
    if isinstance(value, list):
        return [_at_host(inner, usual, host) for inner in value]
    return host + value.removeprefix(usual) if isinstance(value, str) and value.startswith(usual) else value


def writes_dates_with_a_comma(service: Service) -> None:
    """Write times with a comma before the fraction and an offset in hours, and some as days of the year."""
    forms = ("%Y-%m-%dT%H:%M:%S", "%Y-%jT%H:%M:%S")

    def written(moment: datetime) -> str:
        return f"{moment.strftime(forms[moment.second % 2])},{moment.microsecond:06d}+00"

    service.present.timestamp = written


def writes_dates_to_the_minute(service: Service) -> None:
    """Write times without seconds, which ISO 8601 allows."""
    service.present.timestamp = lambda moment: moment.strftime("%Y-%m-%dT%H:%MZ")


def lives_in_another_time(service: Service) -> None:
    """Let the clock be a quarter of a century behind."""
    now = service.clock.now
    service.clock.now = lambda: now() - _ANSWERING_LATER


def shows_relative_pictures(service: Service) -> None:
    """Write the avatar_url of a user without a host."""
    of_user = service.present.user

    def shown(user: Any) -> dict[str, Any]:
        return {**of_user(user), "avatar_url": f"/uploads/user/avatar/{user.id}/avatar.png"}

    service.present.user = shown


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "offsets-and-large-numbers",
        "Times carry offsets and fractions, numbers are large.",
        replace(_PLAIN, timestamps=TimestampStyle.OFFSET, first_id=2_100_000_000),
    ),
    Variant(
        "other-numbers-and-dates",
        "Integers have a point, dates come in the basic and the week form, pictures lie at the same host.",
        alterations=(
            writes_other_iso_dates,
            shows_relative_pictures,
            writes_integers_with_a_point,
        ),
    ),
    Variant(
        "moments-by-machine",
        "A moment is written in another zone, with other digits, each time it is read.",
        alterations=(writes_moments_by_machine,),
    ),
    Variant(
        "numbers-beyond-doubles",
        "Ids are larger than a double holds.",
        replace(_PLAIN, first_id=900_000_000_000_000_000),
        alone="written with a point, as another one does, such a number is another number",
    ),
    Variant(
        "numbers-from-zero",
        "The first project, user and protected branch have the number 0.",
        replace(_PLAIN, first_id=0),
    ),
    Variant(
        "addresses-of-ipv6",
        "Addresses have a number of IPv6 for their host.",
        replace(_PLAIN, web_url="http://[2001:db8::17]:8080/base"),
    ),
    Variant(
        "addresses-by-machine",
        "Several machines answer in turn, each with its own name in all addresses.",
        alterations=(names_machines_in_addresses,),
    ),
    Variant(
        "lives-in-another-time",
        "The clock is decades behind.",
        alterations=(lives_in_another_time,),
    ),
    Variant(
        "ids-count-down",
        "What comes later has a smaller number.",
        alterations=(counts_ids_down,),
    ),
    Variant(
        "dates-with-a-comma",
        "Moments have a comma, offsets of hours, and days of the year.",
        alterations=(writes_dates_with_a_comma,),
    ),
    Variant(
        "dates-to-the-minute",
        "Moments have no seconds.",
        alterations=(writes_dates_to_the_minute,),
    ),
    Variant(
        "addresses-in-capitals",
        "Addresses have scheme and host in capitals, and a path of their own.",
        replace(_PLAIN, web_url="HTTPS://Service.EXAMPLE.com:8443/Base~1"),
    ),
    Variant(
        "one-sequence-of-numbers",
        "The numbers of all kinds of things come from one sequence.",
        alterations=(numbers_all_kinds_together,),
    ),
)
