"""Asks with HEAD on a connection of its own, and reads all that comes: libraries hide a body that must not be there."""

import http.client
from collections.abc import Mapping
from io import BytesIO
from typing import Final
from urllib.parse import urlsplit

#: Seconds to wait for a connection, and for an answer; and for a body, which would come with the head.
_TIMEOUT_S: Final = 10
_BODY_S: Final = 0.5
#: The most bytes that are read.
_LONGEST: Final = 1 << 20
_HEAD_END: Final = b"\r\n\r\n"
#: Statuses from here on end the answer; those below announce it.
_FINAL: Final = 200


def ask(address: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
    """Status, headers by name in lower case, and the bytes behind them.

    Raises OSError if the server is not reached or silent, and HTTPException for what is no answer.
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
    parts = urlsplit(address)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
    try:
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        connection.request("HEAD", target, headers={**headers, "Connection": "close"})
        received = b""
        while len(received) < _LONGEST:
            try:
                more = connection.sock.recv(_LONGEST)
            except TimeoutError:
                if _HEAD_END not in received:
                    raise
                break  # it keeps the connection, whatever was asked
            if not more:
                break
            received += more
            connection.sock.settimeout(_BODY_S if _HEAD_END in received else _TIMEOUT_S)
        return received
    finally:
        connection.close()
