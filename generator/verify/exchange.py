"""One request over HTTP and its answer, within bounds of time and size, whatever the server sends."""

import http.client
import io
import select
import time
import weakref
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection, IncompleteRead
from io import BytesIO
from socket import socket
from typing import Any, Final
from urllib.parse import quote, urlsplit

from generator.wording import counted

#: Seconds to wait for a connection, and for the next bytes.
_CONNECT_S: Final = 10
_SILENCE_S: Final = 30
#: Seconds that an answer may take, and bytes of its body that buy another one.
ANSWER_S: Final = 60
_SLOWEST: Final = 16 << 10
#: Bytes of a head that are read, of a target that is asked for, and of a body at a time.
_LONGEST_HEAD: Final = 64 << 10
_LONGEST_TARGET: Final = 64 << 10
_PIECE: Final = 64 << 10
_GZIP: Final = 16 + zlib.MAX_WBITS
#: What a target may be made of.
_PRINTABLE: Final = "".join(map(chr, range(0x21, 0x7F)))


class SlowError(Exception):
    """An answer did not stop coming, and took too long."""


class UnfitError(Exception):
    """An answer, or a request that an answer leads to, is of a kind or size that no site needs."""


class Deadline:
    """The instant by which something must be over; it can be extended."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def extend(self, seconds: float) -> None:
        """Move it by so many seconds."""
        self._at += seconds

    def left(self, most: float) -> float:
        """Seconds to go, and no more than this. Raises SlowError if it has passed."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise SlowError("comes so slowly that nobody waits for its end")
        return min(left, most)


class _TimedStream(io.RawIOBase):
    """What a connection receives, up to a deadline."""

    def __init__(self, raw: io.RawIOBase, connection: socket, deadline: Deadline) -> None:
        super().__init__()
        self._raw, self._connection, self._deadline = raw, connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._connection.settimeout(self._deadline.left(_SILENCE_S))
        try:
            return self._raw.readinto(buffer)
        except TimeoutError:
            self._deadline.left(_SILENCE_S)  # it may be this one that has passed
            raise

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(HTTPResponse):
    def __init__(self, connection: socket, *more: Any, deadline: Deadline, **others: Any) -> None:
        super().__init__(connection, *more, **others)
        raw = self.fp.detach()  # of a BufferedReader
        self.fp = io.BufferedReader(_TimedStream(raw, connection, deadline))


class Exchange:
    """An answer whose head has come: `status`, `headers` by name in lower case, and the body to be read."""

    def __init__(self, response: HTTPResponse, deadline: Deadline) -> None:
        self.status = response.status
        self.headers = {name.lower(): response.getheader(name, "") for name in response.headers}
        self._response, self._deadline = response, deadline
        if sum(map(len, (*self.headers, *self.headers.values()))) > _LONGEST_HEAD:
            raise UnfitError("has a head of more than 64 KB")

    def body(self, longest: int) -> Iterator[bytes]:
        """The body as it was meant, piece by piece.

        Raises UnfitError if it is longer than so many bytes, damaged, or in an encoding that nobody asked for, and
        SlowError.
        """
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip"):
            raise UnfitError(f"has the Content-Encoding {encoding!a:.80}, which was not asked for")
        length = 0
        for piece in self._inflated() if encoding == "gzip" else self._received():
            length += len(piece)
            if length > longest:
                raise UnfitError(f"sends more than {counted(longest, 'byte', ',')}")
            yield piece

    def _received(self) -> Iterator[bytes]:
        while piece := self._response.read(_PIECE):
            self._deadline.extend(len(piece) / _SLOWEST)
            yield piece
        if self._response.length:
            raise IncompleteRead(b"", self._response.length)

    def _inflated(self) -> Iterator[bytes]:
        inflating, is_empty = zlib.decompressobj(_GZIP), True
        try:
            for given in self._received():
                is_empty, rest = False, given
                while text := inflating.decompress(rest, _PIECE):
                    yield text
                    rest = inflating.unconsumed_tail
                if inflating.unused_data:
                    break
        except zlib.error as error:
            raise UnfitError(f"is no gzip, which its Content-Encoding says ({error})") from error
        if not is_empty and (not inflating.eof or inflating.unused_data):
            raise UnfitError("is no gzip, which its Content-Encoding says, but something shorter or longer")


class Connections:
    """Keeps a connection to each server that it is asked to send something to.

    An answer may take `answer_s` seconds, and one more for so many bytes of its body.
    """

    def __init__(self, answer_s: float = ANSWER_S) -> None:
        self._answer_s = answer_s
        self._kept: dict[str, HTTPConnection] = {}
        weakref.finalize(self, _close, self._kept)

    @contextmanager
    def sent(self, method: str, address: str, headers: Mapping[str, str]) -> Iterator[Exchange]:
        """Send a request and wait for the head of its answer. It may lead elsewhere; nobody follows it there.

        Raises SlowError, UnfitError, OSError if the server is not reached or is silent, and HTTPException.
        """
        if len(address) > _LONGEST_TARGET:
            raise UnfitError("has too long an address to be asked for")
        origin = "/".join(address.split("/", 3)[:3])
        connection = self._unused(origin) or connected(address)
        deadline = Deadline(self._answer_s)
        connection.response_class = partial(_TimedResponse, deadline=deadline)  # type: ignore[assignment]
        response = None
        try:
            connection.request(method, target(address), headers=dict(headers))
            response = connection.getresponse()
            yield Exchange(response, deadline)
        finally:
            if response is not None and response.isclosed():
                self._kept[origin] = connection
            else:
                connection.close()

    def _unused(self, origin: str) -> HTTPConnection | None:
        """The connection that is kept, unless the server has closed it, or says more than it was asked."""
        kept = self._kept.pop(origin, None)
        if kept is None or kept.sock is None:
            return None
        if select.select([kept.sock], [], [], 0)[0]:
            kept.close()
            return None
        kept.sock.settimeout(_CONNECT_S)
        return kept


def _close(connections: Mapping[str, HTTPConnection]) -> None:
    for connection in connections.values():
        connection.close()


def connected(address: str) -> HTTPConnection:
    """A connection that opens when something is sent."""
    parts = urlsplit(address)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=_CONNECT_S)


def target(address: str) -> str:
    """What is asked of the server at an address: nothing in it can end the line, or be a header."""
    _, _, rest = address.partition("://")
    return quote("/" + rest.partition("/")[2], safe=_PRINTABLE)


#: Seconds to wait for an answer; and for a body, which would come with the head.
_HEAD_S: Final = 10
_BODY_S: Final = 0.5
#: The most bytes that are read.
_LONGEST: Final = 1 << 20
_HEAD_END: Final = b"\r\n\r\n"
#: Statuses from here on end the answer; those below announce it.
_FINAL: Final = 200


def ask_bare_head(address: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
    """Ask with HEAD on a connection of its own: libraries hide a body that must not be there.

    Returns status, headers by name in lower case, and the bytes behind them.

    Raises OSError if the server is not reached or silent, SlowError, and HTTPException for what is no answer.
    """
    raw = BytesIO(_exchanged(address, headers))
    status = 0
    while status < _FINAL:
        version, _, rest = raw.readline().decode("latin-1").partition(" ")
        if not version.startswith("HTTP/") or not rest[:3].isdecimal():
            raise http.client.BadStatusLine(rest)
        status, found = int(rest[:3]), http.client.parse_headers(raw)
    return status, {name.lower(): value for name, value in found.items()}, raw.read()


def _exchanged(address: str, headers: Mapping[str, str]) -> bytes:
    """All bytes that the server sends until it ends the connection, or says nothing more."""
    connection, deadline = connected(address), Deadline(ANSWER_S)
    try:
        connection.request("HEAD", target(address), headers={**headers, "Connection": "close"})
        received, has_head = bytearray(), False
        while len(received) < _LONGEST:
            try:
                connection.sock.settimeout(deadline.left(_BODY_S if has_head else _HEAD_S))
                more = connection.sock.recv(_LONGEST)
            except TimeoutError:
                if not has_head:
                    raise
                break  # it keeps the connection, whatever was asked
            if not more:
                break
            has_head = has_head or _HEAD_END in received[-len(_HEAD_END) :] + more
            received += more
        return bytes(received)
    finally:
        connection.close()
