"""Asks with HEAD on a connection of its own, and reads all that comes: libraries hide a body that must not be there."""

import http.client
from collections.abc import Mapping
from io import BytesIO
from typing import Final

from generator.verify.exchange import ANSWER_S, Deadline, connected, target

#: Seconds to wait for an answer; and for a body, which would come with the head.
_HEAD_S: Final = 10
_BODY_S: Final = 0.5
#: The most bytes that are read.
_LONGEST: Final = 1 << 20
_HEAD_END: Final = b"\r\n\r\n"
#: Statuses from here on end the answer; those below announce it.
_FINAL: Final = 200


def ask(address: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
    """Status, headers by name in lower case, and the bytes behind them.

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
