"""A proxy that injects faults between a client and a site; for the tests of clients in every language.

No fault is a plausible lie: each can be noticed by who reads the answer to its end. Answers that `stall` holds go on
when they are `released`.
"""

import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from tests.support.edges.servers import Answer, QuietHandler, connected, serving

#: What can be injected: an error of the server; a run of 429s; a body that ends early; one in single bytes; one that
#: stops in its midst until it is released or the client goes; a body that is no JSON although it says so; a connection
#: that is reset before or in an answer.
FAULTS: Final = ("5xx", "429", "cut", "slow", "stall", "json", "reset")
#: Headers that are of one connection only.
_HOP_BY_HOP: Final = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "date", "server"}
_AT_ONCE: Final = {"retry-after": "0"}
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


class FaultingProxy:
    """Passes requests on to `target`, an address such as http://127.0.0.1:8000; `fate` says what becomes of them.

    Where answers name `base_url`, the heads of dumps and change feed, readers get the address of the proxy instead.
    """

    def __init__(self, target: str, fate: Fate, *, base_url: str = "") -> None:
        self.port, self.fate, self.base_url = int(target.rpartition(":")[2]), fate, base_url
        self.url = ""
        self.released = threading.Event()


class _Handler(QuietHandler):
    def __init__(self, proxy: FaultingProxy, *arguments: Any) -> None:
        self.proxy = proxy
        super().__init__(*arguments)

    def handle(self) -> None:
        with suppress(OSError):  # clients hang up as they please
            super().handle()

    def do_GET(self) -> None:  # noqa: N802 - the name is the library's
        fault = self.proxy.fate.next()
        getattr(self, f"_{fault}")() if fault else self.reply(self._asked())

    do_OPTIONS = do_GET  # noqa: N815

    def _asked(self) -> Answer:
        """What the target answers."""
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        is_head = bool(self.proxy.base_url) and self.path.endswith("head.json")
        with connected(self.proxy.port) as client:
            answer = client.send(
                self.command, self.path, **headers | ({"accept-encoding": "identity"} if is_head else {})
            )
        named = self.proxy.base_url.encode()
        return replace(answer, body=answer.body.replace(named, self.proxy.url.encode())) if is_head else answer

    def _begin(self, answer: Answer, size: int) -> bytes:
        """Send the head and so much of the body; returns the rest."""
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body[:size])
        return answer.body[size:]

    def _half(self) -> bytes:
        self.close_connection = True
        answer = self._asked()
        return self._begin(answer, len(answer.body) // 2)

    def _5xx(self) -> None:
        status = self.proxy.fate.choose((500, 502, 503, 504))
        body = self.proxy.fate.choose((b'{"error":"temporarily unavailable"}', b"<html>Bad gateway</html>", b""))
        self.reply(Answer(status, self.proxy.fate.choose(({}, _AT_ONCE)), body))

    def _429(self) -> None:
        self.reply(Answer(429, _AT_ONCE, b'{"error":"too many requests"}'))

    def _cut(self) -> None:
        self._half()

    def _stall(self) -> None:
        """Half of the body, and the rest when it is released; never, if the client goes before."""
        rest = self._half()
        self.connection.settimeout(0.05)
        while not self.proxy.released.is_set():
            with suppress(TimeoutError):
                if not self.connection.recv(1):
                    return
        self.wfile.write(rest)

    def _slow(self) -> None:
        """The first bytes of the body one by one."""
        rest = self._begin(self._asked(), 0)
        for position in range(min(_SLOW_BYTES, len(rest))):
            self.wfile.write(rest[position : position + 1])
        self.wfile.write(rest[_SLOW_BYTES:])

    def _json(self) -> None:
        """The status of the answer, with another body."""
        answer = self._asked()
        kept = {name: value for name, value in answer.headers.items() if name not in {"content-encoding", "etag"}}
        self.reply(replace(answer, headers=kept, body=self.proxy.fate.choose(_NO_JSON)))

    def _reset(self) -> None:
        if self.proxy.fate.choose((True, False)):
            self._half()
        self.close_connection = True
        # No time to linger: the kernel sends RST in place of FIN.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


@contextmanager
def running(proxy: FaultingProxy) -> Iterator[FaultingProxy]:
    """Run a proxy for the time of a `with`."""
    with serving(partial(_Handler, proxy)) as port:
        proxy.url = f"http://127.0.0.1:{port}"
        try:
            yield proxy
        finally:
            proxy.released.set()
