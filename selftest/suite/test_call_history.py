"""Which calls are the evidence of a failure."""

from __future__ import annotations

from types import MappingProxyType

from conformance.http.exchange import Call, Exchange
from conformance.suite.history import CallHistory


def _call(text: str) -> Exchange:
    method, path = text.split()
    return Exchange(Call(None, method, path), 200, MappingProxyType({}), b"", 0.1)


def _history(*texts: str) -> tuple[CallHistory, dict[str, Exchange]]:
    history, calls = CallHistory(), {}
    for text in texts:
        calls[text] = _call(text)
        history.add(calls[text], keep=True)
    return history, calls


def _told(exchanges: tuple[Exchange, ...]) -> list[str]:
    return [f"{entry.call.method} {entry.call.path}" for entry in exchanges]


def test_the_failing_call_is_last_and_later_calls_are_left_out() -> None:
    history, calls = _history("GET /a", "GET /b", "GET /c", "PUT /thing", "GET /clean", "DELETE /clean")
    assert _told(history.evidence_for([calls["PUT /thing"]])) == ["GET /b", "GET /c", "PUT /thing"]


def test_without_a_named_call_the_evidence_is_the_last_write_and_the_last_read() -> None:
    history, _ = _history("GET /a", "PUT /thing", "GET /x", "GET /thing")
    assert _told(history.suspects) == ["PUT /thing", "GET /thing"]
    assert _told(history.evidence_for(())) == ["GET /a", "PUT /thing", "GET /thing"]


def test_a_write_is_found_however_many_pages_were_read_after_it() -> None:
    history, _ = _history("POST /things", *(f"GET /things?page={number}" for number in range(30)))
    assert _told(history.evidence_for(())) == ["POST /things", "GET /things?page=29"]


def test_a_write_that_comes_last_is_listed_once() -> None:
    history, _ = _history("GET /a", "PUT /thing")
    assert _told(history.suspects) == ["PUT /thing"]


def test_forgotten_calls_are_no_evidence() -> None:
    history, _ = _history("PUT /thing", "GET /thing")
    history.forget()
    assert history.evidence_for(()) == ()


def test_earlier_changes_of_the_same_thing_are_listed_before_the_failure() -> None:
    path = "/projects/1/integrations/chat"
    history, calls = _history(
        f"POST {path}",
        "PUT /projects/1/integrations/mail",
        "GET /projects/1",
        f"DELETE {path}",
        "GET /projects/1/integrations",
        f"GET {path}",
        f"PUT {path}",
        f"GET {path}?again",
    )
    told = [f"POST {path}", f"DELETE {path}", f"GET {path}", f"PUT {path}", f"GET {path}?again"]
    assert _told(history.evidence_for([calls[f"GET {path}?again"]])) == told
