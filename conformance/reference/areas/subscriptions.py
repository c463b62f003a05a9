"""What a hosted installation is paid for: card validation, minutes, add-on purchases and subscriptions.

Specification: Versioning, row 19.0, which names these endpoints without their paths.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import InvalidError, RejectedError, RepeatedError, not_found
from conformance.reference.http import Route, created, ok
from conformance.reference.store import Table
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group
    from conformance.reference.presenters import Json

REMOVED = Version(19, 0)
PLANS = ("free", "bronze", "silver", "premium", "gold", "ultimate")
_LONGEST = 255


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a namespace pays for: its plan, extra minutes by number of the pack, and add-ons with their seats."""

    plan: str = "free"
    seats: int = 0
    minutes: tuple[int, ...] = ()
    add_ons: Mapping[str, int] = field(default_factory=dict)


class Subscriptions(Behaviour):
    """The subscriptions of all namespaces."""

    name = "subscriptions"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.subscriptions: Table[int, Subscription] = Table(service.store)
        self.validated_cards: Table[int, str] = Table(service.store)  # by user id: the name on the card

    def of(self, namespace: Group) -> Subscription:
        """Return the subscription of a namespace; the free one when there is no other."""
        return self.subscriptions.get(namespace.id, Subscription())

    def namespace(self, reference: str) -> Group:
        """Find a group or personal namespace by id or path. Raise NotFoundError."""
        identities = self.service.identities
        group = identities.find_group(reference)
        if group is None:
            known = (g for g in identities.groups.values() if g.personal)
            group = next((g for g in known if reference in {str(g.id), g.path}), None)
        if group is None:
            raise not_found("Namespace")
        return group

    def validate_card(self, user_id: int, holder: str) -> None:
        """Note that a user's card was validated. Raise NotFoundError for an unknown user."""
        if user_id not in self.service.identities.users:
            raise not_found("User")
        self.validated_cards[user_id] = holder

    def add_minutes(self, namespace: Group, minutes: int) -> None:
        """Give a namespace a pack of extra minutes."""
        known = self.of(namespace)
        self.subscriptions[namespace.id] = replace(known, minutes=(*known.minutes, minutes))

    def purchase(self, namespace: Group, add_on: str, seats: int, *, anew: bool) -> None:
        """Buy an add-on, or with `anew` false change its seats. Raise RepeatedError or NotFoundError."""
        known = self.of(namespace)
        if anew and add_on in known.add_ons:
            raise RepeatedError("Add-on purchase already exists")
        if not anew and add_on not in known.add_ons:
            raise not_found("Add-on Purchase")
        self.subscriptions[namespace.id] = replace(known, add_ons={**known.add_ons, add_on: seats})

    def change_plan(self, namespace: Group, plan: str, seats: int) -> None:
        """Give a namespace another plan."""
        self.subscriptions[namespace.id] = replace(self.of(namespace), plan=plan, seats=seats)

    def present(self, namespace: Group) -> Json:
        """Present a subscription."""
        known = self.of(namespace)
        return {
            "plan": {"code": known.plan, "name": known.plan.title()},
            "usage": {"seats_in_subscription": known.seats},
        }


def _number(request: Request, name: str) -> int:
    number = request.parameters.integer(name)
    if number < 1:
        raise RejectedError("must be greater than 0", parameter=name)
    return number


def _validate_card(request: Request) -> Response:
    holder = request.parameters.string("credit_card_holder_name")
    if len(holder) > _LONGEST:
        raise InvalidError("credit_card_holder_name is too long", parameter="credit_card_holder_name")
    request.area(Subscriptions).validate_card(request.path_id("user_id"), holder)
    return ok({"message": "Credit card validated"})


def _namespace(request: Request) -> Group:
    return request.area(Subscriptions).namespace(request.path["namespace"])


def _add_minutes(request: Request) -> Response:
    namespace, minutes = _namespace(request), _number(request, "number_of_minutes")
    request.area(Subscriptions).add_minutes(namespace, minutes)
    return created({"namespace_id": namespace.id, "number_of_minutes": minutes})


def _purchase(request: Request, *, anew: bool) -> Response:
    namespace, seats = _namespace(request), _number(request, "quantity")
    add_on = request.path["add_on_name"][:_LONGEST]
    request.area(Subscriptions).purchase(namespace, add_on, seats, anew=anew)
    shown: Json = {"namespace_id": namespace.id, "add_on": add_on, "quantity": seats}
    return created(shown) if anew else ok(shown)


def _get(request: Request) -> Response:
    return ok(request.area(Subscriptions).present(_namespace(request)))


def _change(request: Request) -> Response:
    subscriptions, namespace = request.area(Subscriptions), _namespace(request)
    known = subscriptions.of(namespace)
    plan = request.parameters.optional_choice("plan_code", PLANS) or known.plan
    seats = _number(request, "seats") if request.parameters.given("seats") else known.seats
    subscriptions.change_plan(namespace, plan, seats)
    return ok(subscriptions.present(namespace))


_admin = partial(Route, admin_only=True, removed=REMOVED)
_NAMESPACE = "/namespaces/:namespace"
_PURCHASE = f"{_NAMESPACE}/subscription_add_on_purchase/:add_on_name"

AREA = Area(
    Subscriptions,
    (
        _admin("PUT", "/user/:user_id/credit_card_validation", _validate_card),
        _admin("POST", f"{_NAMESPACE}/minutes", _add_minutes),
        _admin("POST", _PURCHASE, partial(_purchase, anew=True)),
        _admin("PUT", _PURCHASE, partial(_purchase, anew=False)),
        Route("GET", f"{_NAMESPACE}/gitlab_subscription", _get, admin_only=True),
        _admin("PUT", f"{_NAMESPACE}/gitlab_subscription", _change),
    ),
)
