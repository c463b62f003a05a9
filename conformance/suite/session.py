"""What a test may ask of the session in which it runs, as its argument `suite`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from conformance.contract import Contract, Version


class Asked(Protocol):
    """What of the operator's options concerns tests."""

    @property
    def seed(self) -> int | None:
        """The seed that was given; None when the run drew one."""

    @property
    def max_examples(self) -> int:
        """How many cases are drawn for an operation."""


class SuiteSession(Protocol):
    """The session of a run."""

    @property
    def contract(self) -> Contract:
        """The contract that the target is held against."""

    @property
    def version(self) -> Version | None:
        """The version that it is judged by; None when nobody knows it."""

    @property
    def seed(self) -> int:
        """The seed of all random choices."""

    @property
    def options(self) -> Asked:
        """What the operator asked for."""
