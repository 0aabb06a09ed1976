"""Counts the fills of 24 hours: of all markets, or only of those whose earlier count may no longer hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from generator.markets import fills, row_validation
from generator.markets.fills import NO_FILLS, Window
from generator.source.connection import Transaction
from generator.source.queries import Statements, Within, few_or_all

#: The columns of `fills.RawFill` after the market.
COLUMNS: Final = ("id", "amount", "shares", "price", "created_at")


@dataclass(frozen=True)
class EarlierCounts:
    """What an earlier build counted: for each market (id) the digest of its version, and the window.

    `is_audited` chooses those (by id) to count all the same.
    """

    windows: Mapping[str, tuple[str, Window]] = field(default_factory=dict)
    is_audited: Callable[[str], bool] = lambda _: False

    def holding(self, market_id: str, version: str | None, now: str) -> Window | None:
        """The window of a market with the digest of this version, if it is still the same."""
        digest, window = self.windows.get(market_id, ("", NO_FILLS))
        return window if digest and digest == version and window.holds_at(now) else None


class FillWindows:
    """Counts in an open transaction, in windows that move in steps.

    `false_versions` are the audited markets of which a count did not hold.
    """

    def __init__(self, transaction: Transaction, statements: Statements, step: timedelta) -> None:
        self._transaction = transaction
        self._statements = statements
        self._step = step
        self.false_versions: list[str] = []

    def counted(
        self, as_of: datetime, versions: Mapping[Any, str | None], earlier: EarlierCounts, within: Within
    ) -> dict[Any, Window]:
        """The window of every one of these markets that has fills, by its id as the database spells it.

        `versions` are the digests of their versions, by id in the same spelling.
        """
        if not earlier.windows:
            return self._count(as_of, within)
        now = row_validation.timestamp(as_of.isoformat())
        wanted = {key: version for key, version in versions.items() if _may_be_public(key)}
        held = {key: earlier.holding(key.lower(), version, now) for key, version in wanted.items()}
        found = {key: window for key, window in held.items() if window is not None}
        unknown = [key for key in wanted if key not in found or earlier.is_audited(key.lower())]
        fresh, counted = dict[Any, Window](), {*unknown}
        for chosen in few_or_all(unknown, len(wanted), within):
            fresh |= self._count(as_of, chosen)
        self.false_versions += (
            key.lower() for key in unknown if key in found and fresh.get(key, NO_FILLS) != found[key]
        )
        return {key: window for key, window in found.items() if key not in counted} | fresh

    def _count(self, as_of: datetime, within: Within) -> dict[Any, Window]:
        opened = fills.opening(as_of, self._step)
        start, end = (row_validation.timestamp(moment.isoformat()) for moment in (opened, as_of))
        statement = self._statements.of_visible("fills", *COLUMNS, since=("created_at", opened), within=within)
        return fills.windows(self._transaction.rows(statement, "fills"), start, end, self._step)


def _may_be_public(key: object) -> bool:
    """Whether an id may be a UUID. SQLite's may be anything, even a text that cannot be asked for: invalid UTF-8."""
    return isinstance(key, str) and key.isascii()
