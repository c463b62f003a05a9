"""Variants together in one service: what is legal alone is legal together, if no two decide the same thing."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from conformance.proof.variants.alterations import ALTERATIONS
from conformance.proof.variants.combinations import EXCLUSIVE
from conformance.proof.variants.variant import Variant
from conformance.reference.choices import Choices

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MOST = 8
_BETWEEN = " + "
_PLACES = {alteration: place for place, alteration in enumerate(ALTERATIONS.values())}


def bundles(variants: Sequence[Variant], seed: int | str) -> tuple[Variant, ...]:
    """Return services with several variants each, combined by a seed; some have only one."""
    mixed = list(variants)
    random.Random(seed).shuffle(mixed)  # noqa: S311 - an order is no secret
    found: list[list[Variant]] = []
    for variant in mixed:
        home = next((bundle for bundle in found if _fits(variant, bundle)), None)
        if home is None:
            found.append([variant])
        else:
            home.append(variant)
    return tuple(together(bundle) for bundle in found)


def members(name: str) -> tuple[str, ...]:
    """Return the names of the variants in a service, from its own name."""
    return tuple(name.split(_BETWEEN))


def together(bundle: Sequence[Variant]) -> Variant:
    """Return one service with all differences of these variants."""
    if len(bundle) == 1:
        return bundle[0]
    changed = {name: value for variant in bundle for name, value in _changed(variant).items()}
    altered = dict.fromkeys(alteration for variant in bundle for alteration in variant.alterations)
    return Variant(
        _BETWEEN.join(variant.name for variant in bundle),
        " ".join(variant.says for variant in bundle),
        replace(Choices(), **changed),
        # In the order of the table for combinations, because some must come after others; the rest first.
        alterations=tuple(sorted(altered, key=lambda one: _PLACES.get(one, -1))),
    )


def _fits(variant: Variant, bundle: Sequence[Variant]) -> bool:
    several = [*bundle, variant]
    if len(several) > _MOST or any(_is_alone(each) for each in several):
        return False
    decided = [(name, value) for each in several for name, value in _changed(each).items()]
    once = len({name for name, _ in decided}) == len(set(decided))
    return once and not _are_rivals(alteration for each in several for alteration in each.alterations)


def _is_alone(variant: Variant) -> bool:
    """Tell whether a variant must be alone on a service, because what it lacks would hide what others do."""
    return bool(variant.alone or variant.features)


def _changed(variant: Variant) -> Mapping[str, Any]:
    own = Choices()
    return {
        field.name: getattr(variant.choices, field.name)
        for field in fields(Choices)
        if getattr(variant.choices, field.name) != getattr(own, field.name)
    }


def _are_rivals(alterations: Iterable[Any]) -> bool:
    names = {alteration.__name__.replace("_", "-") for alteration in alterations}
    return any(len(names.intersection(rivals)) > 1 for rivals in EXCLUSIVE)
