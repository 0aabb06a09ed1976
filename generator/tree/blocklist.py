"""The blocked list: markets that were taken down, which no build shows until somebody lifts it.

It lies in the store, outside what is served, and as a copy in the output folder. Each market's last word counts, so
copies that were changed apart can be merged.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from pydantic import ValidationError

from generator.api.times import instant
from generator.errors import OutputError
from generator.tree.folder import Output
from generator.tree.manifest import Record

KEY: Final = "blocked.json"
FORMAT: Final = 1


class Word(Record):
    """What was decided last about a market, and when (RFC 3339, UTC)."""

    at: str
    is_blocked: bool


class Blocked(Record):
    """The last word on every market that was ever taken down, by id."""

    format: int = FORMAT
    markets: Mapping[str, Word] = {}

    def ids(self) -> frozenset[str]:
        """The markets that must not be public."""
        return frozenset(market_id for market_id, word in self.markets.items() if word.is_blocked)

    def told(self, ids: Iterable[str], *, is_blocked: bool, now: str) -> "Blocked":
        """The list after a takedown, or after its end."""
        latest = max((word.at for word in self.markets.values()), default=now)
        # With a clock that was set back, the older word would win.
        at = now if now > latest else instant(datetime.fromisoformat(latest) + timedelta(milliseconds=1))
        return Blocked(markets={**self.markets, **dict.fromkeys(ids, Word(at=at, is_blocked=is_blocked))})

    def merged(self, other: "Blocked") -> "Blocked":
        """What two copies say together; of two words at one instant the one that blocks counts."""
        words = dict(self.markets)
        for market_id, word in other.markets.items():
            known = words.get(market_id, word)
            words[market_id] = max(known, word, key=lambda one: (one.at, one.is_blocked))
        return Blocked(markets=words)

    def encoded(self) -> bytes:
        """The file's bytes: the same list gives the same bytes."""
        ordered = Blocked(markets=dict(sorted(self.markets.items())))
        return ordered.model_dump_json(by_alias=True, indent=1).encode() + b"\n"


def held(folder: Output) -> Blocked:
    """The copy in the output folder."""
    content = folder.read(KEY)
    try:
        return Blocked() if content is None else decoded(content)
    except ValueError as error:
        raise OutputError(unreadable(str(folder.path(KEY)), error)) from error


def decoded(content: bytes) -> Blocked:
    """Read the list; raise ValueError for what is damaged or of another format."""
    blocked = Blocked.model_validate_json(content)
    if blocked.format != FORMAT:
        raise ValueError(f"format {blocked.format}, this program knows {FORMAT}")
    return blocked


def unreadable(place: str, error: ValueError) -> str:
    """What is wrong with a list that cannot be read, and what helps."""
    problem = f"damaged ({error.error_count()} mistakes)" if isinstance(error, ValidationError) else str(error)
    return (
        f"{place}: {problem}; without it taken-down markets would come back. "
        "restore it, or delete it and take them down again"
    )
