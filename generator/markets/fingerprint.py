"""What a market's detail is made of, as digests: equal fingerprints mean an equal detail. Pure."""

import hashlib
from binascii import b2a_base64
from typing import Final, NamedTuple

#: A multiple of three, so that Base64 needs no padding.
_BYTES: Final = 15


class Fingerprint(NamedTuple):
    """Digests of the database's `detail_version`, and of the market object that begins the detail."""

    version: str
    market: str


def digest(content: bytes) -> str:
    """A short digest."""
    return b2a_base64(hashlib.blake2b(content, digest_size=_BYTES).digest(), newline=False).decode()


def version_digest(value: object) -> str | None:
    """A digest of a version, which differs if the value or its type does; None for NULL, which says nothing."""
    return None if value is None else digest(f"{type(value).__name__} {value!r}".encode())
