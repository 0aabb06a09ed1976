"""A proxy that injects faults between a client and a site; for the tests of clients in every language.

No fault is a plausible lie: each can be noticed by who reads the answer to its end. Answers that `stall` holds go on
when they are `released`.
"""

import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

#: What can be injected: an error of the server; a run of 429s; a body that ends early; one in single bytes; one that
#: stops in its midst until it is released or the client goes; a body that is no JSON although it says so; a connection
#: that is reset before or in an answer.
FAULTS: Final = ("5xx", "429", "cut", "slow", "stall", "json", "reset")
#: Headers that are of one connection only.
_HOP_BY_HOP: Final = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
_NO_BODY: Final = {204, 304}
_NO_JSON: Final = (b"", b"<html>Sign in</html>", b'"', b'{"items":[],"nextCursor"')
_LONGEST_STORM: Final = 4
#: How much of a body comes in single bytes: each is a write of its own.
_SLOW_BYTES: Final = 300


class Fate:
    """Draws which fault each request meets, with at most `in_a_row` of them one after the other; thread-safe."""

    def __init__(self, faults: tuple[str, ...], *, seed: int, share: float, in_a_row: int) -> None:
        self.faults, self.injected, self.requests = faults, Counter[str](), 0
        self.draw = random.Random(seed)  # noqa: S311 - the same faults for the same seed
        self._share, self._in_a_row = share, in_a_row
        self._lock, self._row, self._storm = threading.Lock(), 0, 0

    def next(self) -> str | None:
        """The fault of the next request, if any."""
        with self._lock:
            self.requests += 1
            fault = self._drawn()
            self._row = self._row + 1 if fault else 0
            if fault:
                self.injected[fault] += 1
            return fault

    def choose(self, choices: tuple[Any, ...]) -> Any:
        """One of the choices."""
        with self._lock:
            return self.draw.choice(choices)

    def _drawn(self) -> str | None:
        if not self.faults or self._row >= self._in_a_row:
            self._storm = 0
            return None
        if self._storm:
            self._storm -= 1
            return "429"
        if self.draw.random() >= self._share:
            return None
        fault = self.draw.choice(self.faults)
        if fault == "429":
            self._storm = self.draw.randrange(_LONGEST_STORM)
        return fault


class FaultingProxy(ThreadingHTTPServer):
    """Passes requests on to `target`, an address such as http://127.0.0.1:8000; `fate` says what becomes of them.

    Where answers name `base_url`, the heads of dumps and change feed, readers get the address of the proxy instead.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, target: str, fate: Fate, *, port: int = 0, base_url: str = "", retry_after: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.target, self.fate, self.base_url, self.retry_after = target, fate, base_url, retry_after
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.released = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up as they please."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultingProxy

    def do_GET(self) -> None:
        fault = self.server.fate.next()
        _INJECT.get(fault or "", _Handler._pass_on)(self)

    do_HEAD = do_GET  # noqa: N815 - as the library spells it
    do_OPTIONS = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None: ...

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self._begin(status, headers, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _begin(self, status: int, headers: Mapping[str, str], size: int) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status not in _NO_BODY:
            self.send_header("Content-Length", headers.get("X-Proxied-Length", str(size)))
        self.end_headers()

    def _asked(self) -> tuple[int, dict[str, str], bytes]:
        """What the target answers."""
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        is_head = bool(self.server.base_url) and self.path.endswith("head.json")
        if is_head:
            headers["accept-encoding"] = "identity"
        target = urlsplit(self.server.target)
        connection = HTTPConnection(target.hostname or "", target.port)
        try:
            connection.request(self.command, self.path, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, HTTPException):
            return 502, {}, b'{"error":"the target of the proxy does not answer"}'
        finally:
            connection.close()
        if is_head:
            body = body.replace(self.server.base_url.encode(), self.server.url.encode())
        passed = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP}
        if self.command == "HEAD" and (size := answer.getheader("Content-Length")):
            passed["X-Proxied-Length"] = size
        return answer.status, passed, body

    def _pass_on(self) -> None:
        self._send(*self._asked())

    def _fail(self) -> None:
        status = self.server.fate.choose((500, 502, 503, 504))
        body = self.server.fate.choose((b'{"error":"temporarily unavailable"}', b"<html>Bad gateway</html>", b""))
        self._send(status, self.server.fate.choose(({}, self._retry_after())), body)

    def _limit(self) -> None:
        self._send(429, self._retry_after(), b'{"error":"too many requests"}')

    def _retry_after(self) -> dict[str, str]:
        return {"Retry-After": str(self.server.retry_after)}

    def _cut(self) -> None:
        """Half of the body, and the connection ends."""
        self._in_part(lambda _: None)

    def _stall(self) -> None:
        """Half of the body, and the rest when it is released; never, if the client goes before."""
        self._in_part(self._held)

    def _held(self, rest: bytes) -> None:
        self.connection.settimeout(0.05)
        while not self.server.released.is_set():
            with suppress(TimeoutError):
                if not self.connection.recv(1):
                    return
        self.wfile.write(rest)

    def _in_part(self, then: Callable[[bytes], None]) -> None:
        status, headers, body = self._asked()
        self.close_connection = True
        self._begin(status, headers, len(body))
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            then(body[len(body) // 2 :])

    def _trickle(self) -> None:
        """The first bytes of the body one by one."""
        status, headers, body = self._asked()
        self._begin(status, headers, len(body))
        if self.command == "HEAD":
            return
        for position in range(min(_SLOW_BYTES, len(body))):
            self.wfile.write(body[position : position + 1])
        self.wfile.write(body[_SLOW_BYTES:])

    def _spoil(self) -> None:
        """The status of the answer, with another body."""
        status, headers, _ = self._asked()
        named = {"content-encoding", "etag", "x-proxied-length"}
        kept = {name: value for name, value in headers.items() if name.lower() not in named}
        self._send(status, kept, self.server.fate.choose(_NO_JSON))

    def _reset(self) -> None:
        if self.server.fate.choose((True, False)):
            status, headers, body = self._asked()
            self._begin(status, headers, len(body))
            self.wfile.write(body[: len(body) // 2])
        self.close_connection = True
        # No time to linger: the kernel sends RST in place of FIN.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


_INJECT: Final[Mapping[str, Callable[[_Handler], None]]] = {
    "5xx": _Handler._fail,  # noqa: SLF001 - of this module
    "429": _Handler._limit,  # noqa: SLF001
    "cut": _Handler._cut,  # noqa: SLF001
    "slow": _Handler._trickle,  # noqa: SLF001
    "stall": _Handler._stall,  # noqa: SLF001
    "json": _Handler._spoil,  # noqa: SLF001
    "reset": _Handler._reset,  # noqa: SLF001
}


@contextmanager
def running(proxy: FaultingProxy) -> Iterator[FaultingProxy]:
    """Run a proxy for the time of a `with`."""
    thread = threading.Thread(target=proxy.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield proxy
    finally:
        proxy.released.set()
        proxy.shutdown()
        proxy.server_close()
        thread.join()
