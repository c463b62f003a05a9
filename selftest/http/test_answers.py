"""Where a response ends, how its body is decoded, and what is left out of reports."""

from __future__ import annotations

import base64
import gzip
import time
import zlib
from urllib.parse import quote

import httpcore
import pytest

from conformance.http.bodies import json_in, written
from conformance.http.exchange import pages_in
from conformance.http.network import WITHOUT_END, Deadline, Stream
from conformance.http.redaction import Redaction
from conformance.http.unpacking import BodyError, unpacked
from selftest.runner.leaky import ways

LATER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlater"
HEAD = b"HTTP/1.1 200 OK\r\n"
BODY = b'{\r\n\r\n"a": 1,\n\n"b": 2}\n\n'
CHUNKS = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (BODY[:4], BODY[4:11], BODY[11:]))

#: By the way its length is given: a complete response with BODY, and the length that its head states.
ANSWERS = {
    "a length": (HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY), len(BODY)),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS + b"0\r\n\r\n", None),
    "chunks with a trailer": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS + b"0\r\nX-End: 1\r\n\r\n", None),
    "bare line feeds": (b"HTTP/1.1 200 OK\nContent-Length: %d\n\n%s" % (len(BODY), BODY), len(BODY)),
    "interim answers before it": (
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2 + HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY),
        len(BODY),
    ),
}


def read(sent: list[bytes], length: int | None) -> tuple[bytes, bytes]:
    """Read one response from a connection that delivers these pieces; return its body and what followed it."""
    deadline = Deadline()
    deadline.at = time.monotonic() + 10
    stream = Stream(httpcore.MockStream(sent), deadline)
    origin = httpcore.Origin(b"http", b"127.0.0.1", 80)
    with httpcore.HTTP11Connection(origin, stream) as connection:
        response = connection.handle_request(httpcore.Request("GET", "http://127.0.0.1:80/", headers=[("Host", "x")]))
        stream.expect(length)
        body = b"".join(response.iter_stream())
        response.close()
    return body, stream.excess


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 1000])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_response_ends_where_it_says_in_whatever_pieces_it_arrives(name: str, size: int) -> None:
    whole, length = ANSWERS[name]
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    assert read([*pieces[:-1], pieces[-1] + LATER], length) == (BODY, LATER)


@pytest.mark.parametrize("name", ANSWERS)
def test_nothing_is_left_over_after_a_complete_response(name: str) -> None:
    whole, length = ANSWERS[name]
    assert read([whole], length) == (BODY, b"")


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    assert read([b"HTTP/1.0 200 OK\r\n\r\n", BODY, BODY, b""], WITHOUT_END) == (BODY + BODY, b"")


def test_a_connection_that_sent_too_much_counts_as_closed() -> None:
    deadline = Deadline()
    deadline.at = time.monotonic() + 10
    stream = Stream(httpcore.MockStream([HEAD + b"Content-Length: 0\r\n\r\n" + LATER]), deadline)
    with httpcore.HTTP11Connection(httpcore.Origin(b"http", b"127.0.0.1", 80), stream) as connection:
        connection.request("GET", "http://127.0.0.1:80/", headers=[("Host", "x")])
        assert connection.is_idle()
        assert connection.has_expired()


def test_a_body_of_only_empty_lines_is_read_in_time() -> None:
    """Each line may be the end of the response, so each is checked separately."""
    body = b"\n" * 50_000
    started = time.monotonic()
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    pieces = [chunked[at : at + 65536] for at in range(0, len(chunked), 65536)]
    assert read(pieces, None) == (body, b"")
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("encodings", ["gzip", "GZIP", "X-Gzip", " Gzip ", "identity, gZip"])
def test_the_name_of_a_content_encoding_may_have_any_case(encodings: str) -> None:
    assert unpacked(gzip.compress(BODY), encodings, 1000) == BODY


def test_several_content_encodings_are_undone_in_reverse_order() -> None:
    assert unpacked(zlib.compress(gzip.compress(BODY)), "gzip, Deflate", 1000) == BODY


def test_an_encoding_that_was_not_requested_is_not_decoded() -> None:
    assert unpacked(BODY, "br", 1000) == BODY


def test_a_body_is_decoded_up_to_its_limit_and_no_further() -> None:
    assert len(unpacked(gzip.compress(b" " * 1000), "gzip", 1000)) == 1000
    with pytest.raises(BodyError, match="longer than 999 bytes when unpacked"):
        unpacked(gzip.compress(b" " * 1000), "gzip", 999)


@pytest.mark.parametrize(
    "form",
    [
        'hunter 2/"x"',
        quote('hunter 2/"x"'),
        quote('hunter 2/"x"', safe=""),
        "hunter+2%2F%22x%22",
        r"hunter 2/\"x\"",
        base64.b64encode(b'hunter 2/"x"').decode(),
    ],
)
def test_a_secret_is_left_out_in_whatever_encoding(form: str) -> None:
    assert Redaction(['hunter 2/"x"', ""]).text(f"said {form}!") == "said [redacted]!"


@pytest.mark.parametrize("way", [*ways('glpat-x/1 "2"-9f3c')])
def test_a_secret_is_left_out_however_a_server_writes_it(way: str) -> None:
    shown = Redaction(['glpat-x/1 "2"-9f3c']).text(f"It said {way} and more.")
    assert "[redacted" in shown
    assert not any(each in shown for each in ways('glpat-x/1 "2"-9f3c'))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("['hunter-2...', 1]", False),
        ("'hunt...r-22-end", False),
        ("'hunt...r\\n-\\n2\\n2\\n-\\ne\\nn\\nd", False),
        ("'hunt...', 'end'", True),
        ("hunter-2 is not cut", True),
    ],
)
def test_what_remains_of_a_secret_before_an_ellipsis_is_left_out(text: str, shown: bool) -> None:  # noqa: FBT001
    assert (text in Redaction(["hunter-22-end"]).pieces(text)) is shown


def test_if_one_secret_begins_with_another_the_longer_one_is_left_out_completely() -> None:
    assert Redaction(["abc", "abcdef"]).text("abcdef abc") == "[redacted] [redacted]"


@pytest.mark.parametrize("secret", ["100%41-sure", "a+b=c&amp;d", "token\\nine", "%41%42%43%44"])
@pytest.mark.parametrize("form", ["{}", "\\{}", '{{"a": "\\{}"}}'])
def test_a_secret_that_looks_like_an_escape_is_left_out_too(secret: str, form: str) -> None:
    assert secret not in Redaction([secret]).text(form.format(secret))


def test_a_short_secret_is_left_out_only_where_it_occurs_literally() -> None:
    assert Redaction(["pw1"]).text("p w1 cHcx pw1 up spw1") == "p w1 [redacted] [redacted] up spw1"


def test_the_end_of_a_token_behind_a_backslash_hides_no_other_word() -> None:
    redaction = Redaction(["t-owner"])
    assert redaction.text("a code-owner, `\\code-owner`") == "a code-owner, `\\code-owner`"
    assert redaction.text("C:\\t-owner") == "C:\\[redacted]"


@pytest.mark.parametrize(
    ("link", "pages"),
    [
        ('<http://a/api/v4/x?page=2>; rel="next", <http://a/api/v4/x?page=9>; rel=last', {"next": "2", "last": "9"}),
        ('<http://a/api/v4/x?order=a,b&page=2>; rel="Next prefetch"', {"next": "2", "prefetch": "2"}),
        ('<http://a/api/v4/x?name=é&page=3>; rel="prev"', {"prev": "3"}),
        ("http://a/api/v4/x?page=2", {}),
        ('<>; title="rel=next"', {}),
        ("", {}),
    ],
)
def test_links_to_other_pages_are_those_of_the_link_header(link: str, pages: dict[str, str]) -> None:
    found = pages_in({"link": link})
    assert {relation: address.rpartition("page=")[2] for relation, address in found.items()} == pages


# -- bodies that are sent ----------------------------------------------------------------------------------------------


def test_a_body_is_written_in_utf_8() -> None:
    assert written({"name": "Prüfung 検査"}) == '{"name": "Prüfung 検査"}'.encode()


def test_a_body_is_escaped_on_request() -> None:
    assert written({"name": "Prüfung"}, escaped=True) == rb'{"name": "Pr\u00fcfung"}'


def test_a_text_that_utf_8_cannot_encode_is_escaped() -> None:
    assert written({"name": "\ud83d"}) == rb'{"name": "\ud83d"}'


@pytest.mark.parametrize("open_and_close", [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
def test_json_nested_deeper_than_anybody_can_walk_is_no_json(open_and_close: tuple[str, str]) -> None:
    """Python parses it, and whatever looks for something in it would break."""
    first, last = open_and_close
    assert json_in(first * 500 + "1" + last * 500) is None
    assert json_in(first * 150 + "1" + last * 150) is not None
    many = json_in(f"[{','.join(['{}'] * 300)}]")
    assert len(many) == 300
    assert json_in('"[[[["') == "[[[["


@pytest.mark.parametrize(
    ("told", "number"),
    [("17", 17), ("017", "017"), ("9" * 5000, "9" * 5000), ("1.0", "1.0"), ("²", "²"), ("", ""), (True, True), (7, 7)],
)
def test_the_number_of_a_thing_is_a_number_though_it_is_written_as_text(told: object, number: object) -> None:
    shown = json_in(written([{"id": told, "name": "12", "users": [{"id": "7"}], "parent_id": None}]))
    assert shown == [{"id": number, "name": "12", "users": [{"id": 7}], "parent_id": None}]
