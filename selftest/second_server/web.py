"""HTTP/1.1 without a library: keep-alive, chunked bodies, one send per response."""

from __future__ import annotations

import socketserver
import sys
import traceback
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl, unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from selftest.second_server.app import App


#: Name and value of a header.
Header: TypeAlias = tuple[str, str]

REASONS = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    308: "Permanent Redirect",
    203: "Non-Authoritative Information",
    204: "No Content",
    302: "Found",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    410: "Gone",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    423: "Locked",
    429: "Too Many Requests",
    500: "Internal Server Error",
    501: "Not Implemented",
}


class Request:
    __slots__ = ("body", "headers", "method", "path", "query", "segments")

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        self.method = method
        path, _, query = target.partition("?")
        self.path = path
        self.segments = [unquote(part) for part in path.split("/")[1:]]
        self.query = parse_qsl(query, keep_blank_values=True)
        self.headers = headers
        self.body = body


class Response:
    __slots__ = ("body", "chunked", "headers", "status")

    def __init__(
        self,
        status: int = 200,
        body: bytes = b"",
        headers: list[Header] | None = None,
        chunked: list[bytes] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.headers = headers or []
        self.chunked = chunked


class Handler(socketserver.StreamRequestHandler):
    server: Server
    disable_nagle_algorithm = True
    rbufsize = 65536
    timeout = 300

    def setup(self) -> None:
        super().setup()
        if "idle-close" in self.server.app.choices:
            self.connection.settimeout(0.03)

    def handle(self) -> None:
        try:
            while self.one():
                pass
        except (ConnectionError, TimeoutError):
            pass

    def one(self) -> bool:
        line = self.rfile.readline(65537)
        if not line:
            return False
        if line in (b"\r\n", b"\n"):
            return True
        try:
            method, target, version = line.decode("latin-1").split()
        except ValueError:
            self.send(Response(400, b"bad request line"), "GET", keep=False)
            return False
        headers = self.read_headers()
        keep = version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
        if headers.get("expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            body = self.read_body(headers)
        except ValueError:
            self.send(Response(400, b"bad length"), method, keep=False)
            return False
        if target.startswith("http://"):
            target = "/" + target.split("/", 3)[3]
        try:
            response = self.server.app(Request(method, target, headers, body))
        except Exception:  # noqa: BLE001 - a mistake of this server is an answer with 500, and shown
            traceback.print_exc(file=sys.stderr)
            sys.stderr.flush()
            response = Response(500, b'{"oops":"internal"}', [("content-type", "application/json")])
        self.server.log(method, target, response.status, headers.get("private-token", "-"), body)
        self.send(response, method, keep=keep)
        return keep

    def read_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        while True:
            line = self.rfile.readline(65537)
            if line in (b"\r\n", b"\n", b""):
                return headers
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()

    def read_body(self, headers: dict[str, str]) -> bytes:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            parts: list[bytes] = []
            while True:
                size = int(self.rfile.readline(200).split(b";")[0].strip(), 16)
                if not size:
                    while self.rfile.readline(65537) not in (b"\r\n", b"\n", b""):
                        pass
                    return b"".join(parts)
                parts.append(self.rfile.read(size))
                self.rfile.readline(10)
        length = int(headers.get("content-length") or 0)
        if length < 0:
            raise ValueError
        return self.rfile.read(length) if length else b""

    def send(self, response: Response, method: str, *, keep: bool) -> None:
        status = response.status
        out = [f"HTTP/1.1 {status} {REASONS.get(status, 'Other')}\r\n"]
        out += [f"{name}: {value}\r\n" for name, value in response.headers]
        if not keep:
            out.append("connection: close\r\n")
        body = response.body
        if status in (204, 304):
            body = b""
        elif response.chunked is not None:
            out.append("transfer-encoding: chunked\r\n")
            body = b"".join(b"%X\r\n%s\r\n" % (len(p), p) for p in response.chunked if p) + b"0\r\n\r\n"
        else:
            out.append(f"content-length: {len(body)}\r\n")
        out.append("\r\n")
        head = "".join(out).encode("latin-1")
        self.connection.sendall(head if method == "HEAD" else head + body)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, make: Callable[[str], App], log: Path | None = None) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.base_url = f"http://127.0.0.1:{self.server_address[1]}"
        self.app = make(self.base_url)
        self.log_file = log.open("w") if log else None

    def log(self, method: str, target: str, status: int, secret: str, body: bytes) -> None:
        if self.log_file:
            token = self.app.store.tokens.get(secret)
            who = token.user.username if token else "?"
            self.log_file.write(f"{status} {method} {target} {who} {body[:300]!r}\n")
            self.log_file.flush()
