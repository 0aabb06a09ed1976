"""How the S3 server of the tests misbehaves: quirks of real stores, and random faults. Independent of HTTP."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to a request instead of its answer."""

    #: The status of the error that is answered; None cuts the connection.
    status: int | None = None
    code: str = ""
    #: The body and the headers of the answer, if it is not an S3 store's.
    page: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    #: The request still takes effect.
    applied: bool = False
    #: The connection is cut in the middle of the answer.
    truncated: bool = False


SLOW_DOWN: Final = Fault(503, "SlowDown")
#: Not tried again, unlike other failures.
DENIED: Final = Fault(403, "AccessDenied")
CONFLICT: Final = Fault(409, "ConditionalRequestConflict")
APPLIED_BUT_FAILED: Final = Fault(500, "InternalError", applied=True)
DROPPED: Final = Fault()
APPLIED_BUT_DROPPED: Final = Fault(applied=True)
CUT_SHORT: Final = Fault(applied=True, truncated=True)

#: The faults that can be drawn at random, by their names in `Behaviour.shares`.
FAULTS: Final[Mapping[str, Fault]] = MappingProxyType(
    {
        "slow_down": SLOW_DOWN,
        "conflict": CONFLICT,  # of conditional puts only
        "applied_but_failed": APPLIED_BUT_FAILED,
        "dropped": DROPPED,
        "applied_but_dropped": APPLIED_BUT_DROPPED,
        "cut_short": CUT_SHORT,
    }
)


@dataclass
class Behaviour:
    """Everything that can be changed while the server runs. The default is a well-behaved store."""

    #: The delay before a request takes effect.
    latency_s: float = 0.0
    #: Which share of the requests meets which fault, by the names of FAULTS.
    shares: dict[str, float] = field(default_factory=dict)
    #: The share of keys that DeleteObjects reports as not deleted, in an answer that is a 200.
    delete_errors: float = 0.0
    #: And the code that it reports for them.
    delete_code: str = "InternalError"
    #: The number of requests after which a key id gets ExpiredToken.
    expire_after: int | None = None
    #: How far the server's clock is ahead of the real one.
    clock_offset_s: float = 0.0
    #: ETags are random and not the MD5 of the content.
    opaque_etags: bool = False
    #: If-Match with the ETag in quotes never holds, as in Ceph's radosgw.
    bare_etags: bool = False
    #: Conditions of puts are ignored, as by several stores.
    ignores_conditions: bool = False
    #: DeleteObjects without Content-MD5 is refused, as some stores do.
    wants_content_md5: bool = False
    #: Listing is not permitted.
    refuses_lists: bool = False
    #: The most entries on one page of a listing.
    page_size: int = 1000
    #: Requests without a signature are served.
    open_to_everyone: bool = False


class Lots:
    """Draws that depend on the seed, on what is drawn for, and on how often that was; never on the order of threads."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._draws: Counter[tuple[str, str]] = Counter()

    def draw(self, purpose: str, key: str) -> float:
        """A number from 0 up to 1."""
        self._draws[purpose, key] += 1
        text = f"{self._seed} {purpose} {key} {self._draws[purpose, key]}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest()) / 2**48

    def fault(self, shares: Mapping[str, float], operation: str, key: str) -> Fault | None:
        """The fault that a request meets; None for most."""
        drawn = self.draw(operation, key)
        for name, share in shares.items():
            drawn -= share
            if drawn < 0:
                return FAULTS[name]
        return None
