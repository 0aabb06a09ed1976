"""The blocked list: markets taken down by the operator, which no build shows until `takedown --undo`.

It is kept in the store, outside what is served, and as a copy in the output folder. The latest decision on each market
counts, so copies that were changed apart can be merged.
"""

import operator
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from pydantic import Field, ValidationError

from generator.api.forms import instant
from generator.errors import OutputError
from generator.models import replaced
from generator.tree import files, stored
from generator.tree.folder import Output
from generator.tree.stored import StoredModel

KEY: Final = files.BLOCKED
FORMAT: Final = 1
_NO_NAMES: Final[Mapping[str, Iterable[str]]] = MappingProxyType({})


class Decision(StoredModel, extra="allow"):
    """The latest decision on a market: whether it is blocked, when that was decided, and last repeated (RFC 3339, UTC).

    A repetition does not change since when a market is blocked, but outranks an undo that another copy knows. `names`
    are digests of the slugs and keys that the market had when it was taken down, sorted: no later name may mean another
    market because this one is gone.
    """

    at: str
    is_blocked: bool
    repeated_at: str = Field(default="", exclude_if=operator.not_)
    names: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)

    @property
    def latest(self) -> str:
        """The instant by which it outranks others."""
        return self.repeated_at or self.at

    def named(self, names: Iterable[str]) -> "Decision":
        """The same with these names, too."""
        return replaced(self, names=tuple(sorted({*self.names, *names})))


class BlockedList(StoredModel, extra="allow"):
    """The latest decision on every market that was ever taken down, by id.

    What other versions add without another format is kept: whoever wrote it, the list is obeyed.
    """

    format: int = FORMAT
    markets: Mapping[str, Decision] = {}

    def ids(self) -> frozenset[str]:
        """The blocked markets."""
        return frozenset(market_id for market_id, decision in self.markets.items() if decision.is_blocked)

    def decided(
        self, ids: Iterable[str], *, is_blocked: bool, now: str, names: Mapping[str, Iterable[str]] = _NO_NAMES
    ) -> "BlockedList":
        """The list after these markets are blocked, or unblocked, at `now`; `names` are by id."""
        latest = max((decision.latest for decision in self.markets.values()), default=now)
        # If the clock was set back, the new decision must still be the later one.
        at = now if now > latest else instant(datetime.fromisoformat(latest) + timedelta(milliseconds=1))
        decisions = {
            market_id: self._decision(market_id, at, is_blocked=is_blocked).named(names.get(market_id, ()))
            for market_id in ids
        }
        return replaced(self, markets={**self.markets, **decisions})

    def _decision(self, market_id: str, at: str, *, is_blocked: bool) -> Decision:
        before = self.markets.get(market_id)
        names = before.names if before else ()
        if before and before.is_blocked and is_blocked:
            return replaced(before, repeated_at=at)
        return Decision(at=at, is_blocked=is_blocked, names=names)

    def merged(self, other: "BlockedList") -> "BlockedList":
        """Both copies merged; of two decisions at the same instant, the one that blocks wins."""
        decisions = dict(self.markets)
        for market_id, theirs in other.markets.items():
            candidates = sorted((decisions.get(market_id, theirs), theirs), key=lambda decision: decision.at)
            latest = max(candidates, key=lambda decision: (decision.latest, decision.is_blocked))
            decisions[market_id] = latest.named(name for decision in candidates for name in decision.names)
        return BlockedList(markets=decisions, **{**(other.model_extra or {}), **(self.model_extra or {})})

    def encoded(self) -> bytes:
        """The file's bytes: the same list gives the same bytes."""
        ordered = replaced(self, markets=dict(sorted(self.markets.items())))
        return ordered.model_dump_json(by_alias=True, indent=1).encode() + b"\n"


def load(folder: Output) -> BlockedList:
    """Read the copy in the output folder; raise OutputError if it is damaged."""
    content = folder.read(KEY)
    try:
        return BlockedList() if content is None else decode(content)
    except ValueError as error:
        raise OutputError(unreadable(str(folder.path(KEY)), error, content or b"")) from error


def decode(content: bytes) -> BlockedList:
    """Parse the list; raise ValueError if it is damaged or of another format."""
    with suppress(ValidationError):  # one without a format is of the first
        stored.require_format(content, FORMAT)
    return BlockedList.model_validate_json(content)


def unreadable(place: str, error: ValueError, content: bytes) -> str:
    """The message for a list that cannot be read, with the remedy."""
    remedy = (
        "restore it, or delete it and take its markets down again; without it, markets that were taken down would come "
        "back"
    )
    return f"{place}: {stored.fault(error, content, remedy)}"
