"""Which file holds the history and the fills of a market, so that most files stay as they are. Pure."""

import hashlib
import zlib
from collections.abc import Container, Iterable
from typing import Final, NamedTuple, Protocol

from generator.api.contract import MarketStatus

#: Files for open markets, whose histories grow. The README says why so many; another number gives all new names.
PARTS: Final = 16
_YEAR: Final = len("2026")
#: The characters of a time that tell the month.
MONTH: Final = len("2026-10")
_DAY: Final = len("2026-10-31")
_DIGEST_LENGTH: Final = 32


class _Market(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def status(self) -> MarketStatus: ...
    @property
    def close_time(self) -> str: ...
    @property
    def resolved_at(self) -> str | None: ...


class Member(NamedTuple):
    """A market of a partition: its id and anything that stands for its detail's bytes."""

    id: str
    digest: str


def partition(market: _Market) -> str:
    """The folder of a market's history: `state=open/part=07` while it is open, then `state=archive/month=2026-10`.

    The month is that of `resolvedAt`, or of `closeTime` where that is null.
    """
    if market.status == "open":
        return f"state=open/part={zlib.crc32(market.id.encode()) % PARTS:02}"
    return f"state=archive/month={(market.resolved_at or market.close_time)[:MONTH]}"


def digest(members: Iterable[Member]) -> str:
    """A digest of all rows of a partition, whatever the order of its members."""
    text = "\n".join(f"{member.id} {member.digest}" for member in sorted(members))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def period(month: str, as_of: str, years: Container[str]) -> str:
    """The period of full histories that a month belongs to: its year, if that is over or among these `years`.

    Once the months of a year were put together, they stay so, even if a clock was ahead then.
    """
    year = month[:_YEAR]
    return year if year < as_of[:_YEAR] or year in years else month


def is_running(period: str, as_of: str) -> bool:
    """Whether rows may still come into a period as time goes on, so that its file has parts."""
    return len(period) > _YEAR and period >= as_of[:MONTH]


def is_due(last: str | None, as_of: str) -> bool:
    """Whether a build is of another day, in UTC, than the last files, by the instants of both."""
    # Not only of a later day: after one build by a clock that was ahead, the files would stay until its date.
    return last is None or as_of[:_DAY] != last[:_DAY]
