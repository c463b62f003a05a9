"""What a test can get from the session in which it runs, through its argument `suite`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from conformance.contract import Contract, Version


class SuiteOptions(Protocol):
    """The operator's options that concern tests."""

    @property
    def seed(self) -> int | None:
        """The given seed; None when the run drew one."""

    @property
    def max_examples(self) -> int:
        """Number of cases that are drawn for an operation."""


class SuiteSession(Protocol):
    """The session of a run."""

    @property
    def contract(self) -> Contract:
        """The contract that the target is tested against."""

    @property
    def version(self) -> Version | None:
        """The version that the target is judged by; None when it is unknown."""

    @property
    def seed(self) -> int:
        """The seed of all random choices."""

    @property
    def options(self) -> SuiteOptions:
        """The operator's options."""
