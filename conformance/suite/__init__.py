"""What the tests of the suite share: callers, expectations, request examples and everything else they speak."""

from conformance.contract import Contract, Operation, Parameter, Version
from conformance.results.record import ItemState, Reason
from conformance.suite.session import SuiteSession
from conformance.target import Actor, Fixture

__all__ = [
    "Actor",
    "Contract",
    "Fixture",
    "ItemState",
    "Operation",
    "Parameter",
    "Reason",
    "SuiteSession",
    "Version",
]
