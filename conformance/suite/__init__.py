"""What the tests of the suite share: callers, expectations, request examples and everything else they speak."""

from conformance.contract import Change, ChangeKind, Operation, Parameter, Version
from conformance.contract.changes import ReplacedBy
from conformance.http.exchange import Exchange
from conformance.results.record import ItemState, Outcome, Reason
from conformance.suite.session import SuiteSession
from conformance.target import Actor, Fixture

__all__ = [
    "Actor",
    "Change",
    "ChangeKind",
    "Exchange",
    "Fixture",
    "ItemState",
    "Operation",
    "Outcome",
    "Parameter",
    "Reason",
    "ReplacedBy",
    "SuiteSession",
    "Version",
]
