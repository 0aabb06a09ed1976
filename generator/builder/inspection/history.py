"""What the history page shows: accuracy, volume per day and movers, from the Parquet files of histories. Pure.

Volume and movers cost a pass over all candles of three months, which change once a day: a page seals them, so that the
next one takes them over while the files are the same. Accuracy is what `v1/history.json` says, be that published or
not; it is made every time, as markets resolve at any time.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic_core import from_json

from generator.api import contract
from generator.api.columns import OF_FILLS
from generator.api.downloads import DumpHead
from generator.api.history import History
from generator.downloads.periods import DAYS, HOURS
from generator.site import history
from generator.site.catalog import Catalog

#: How many days of volume are shown, and how many movers.
SHOWN_DAYS: Final = 90
MOVERS: Final = 10
#: What is shown as a move, at least: a tenth of a percentage point.
LEAST_MOVE: Final = 0.001
#: Reads the rows of files, by their keys: for each row a tuple of these columns, times in milliseconds since 1970; of
#: candles, those that start at a time or later.
ReadSince: TypeAlias = Callable[[Sequence[str], Sequence[str], int | None], Iterable[tuple[Any, ...]]]

_DAY: Final = timedelta(days=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: How the page holds the figures of candles, which have no text of strangers in them.
_CANDLES: Final = re.compile(rb'<script type="application/json" id="candles" data-seal="([^"]*)">([^<]*)</script>')


class DayVolume(NamedTuple):
    """What was traded on a day, `2026-10-31`, in UTC."""

    day: str
    volume: float
    trades: int


class Move(NamedTuple):
    """A market's probability at the beginning of the 24 hours, and at their end."""

    id: str
    before: float
    after: float


@dataclass(frozen=True)
class CandleFigures:
    """What is made of candles: the days from the first with a trade, and the greatest moves first."""

    volume: Sequence[DayVolume] = ()
    moves: Sequence[Move] = ()

    def encoded(self) -> bytes:
        """The figures as JSON."""
        return contract.encode({"volume": self.volume, "moves": self.moves})


@dataclass(frozen=True)
class HistoryFigures:
    """Everything that the page shows; `as_of` is that of the histories.

    `accuracy` is None only if there is a fault. `has_trades`: fills are published, so candles have volumes. `questions`
    are those of the movers, by id. `seal` tells of which files `candles` are, and that nobody altered them. `fault` is
    why the files cannot be read, if so.
    """

    as_of: str
    accuracy: History | None = None
    candles: CandleFigures = CandleFigures()
    has_trades: bool = True
    questions: Mapping[str, str] = field(default_factory=dict)
    seal: str = ""
    fault: str = ""

    @property
    def hour(self) -> str:
        """The end of the 24 hours of the movers: of the last hour that was over."""
        return f"{_hour(self.as_of):%Y-%m-%d %H:%M}"


def figures(head: DumpHead, catalog: Catalog, read: ReadSince, page: bytes | None, program: str) -> HistoryFigures:
    """The figures of a dump and the markets in it.

    `page` is the one in place; another `program` may have made other figures of the same files. Raises whatever `read`
    raises.
    """
    as_of = head.history_as_of or head.as_of
    first_day, first_hour = _day(as_of) - SHOWN_DAYS * _DAY, _hour(as_of) - _DAY
    days, hours = head.files_since(DAYS, first_day), head.files_since(HOURS, first_hour)
    of = contract.encode([program, as_of, days, hours])
    found = _sealed_on(page, of) or CandleFigures(
        volume_per_day(read(days, ("start", *OF_FILLS), _milliseconds(first_day)), as_of) if head.has_fills else (),
        movers(read(hours, ("marketId", "start", "open", "close"), _milliseconds(first_hour)), as_of),
    )
    markets = {market.id: market for market in catalog.markets}
    return HistoryFigures(
        as_of=as_of,
        accuracy=history.figures(
            head, catalog, lambda found, columns: read([file.key for file in found], columns, None)
        ),
        candles=found,
        has_trades=head.has_fills,
        questions={move.id: markets[move.id].item.question for move in found.moves if move.id in markets},
        seal=_seal(of, found.encoded()),
    )


def volume_per_day(candles: Iterable[tuple[int, float, int]], as_of: str) -> list[DayVolume]:
    """The last days that were over, from the first with a trade; of each candle start, volume and trades."""
    end = _day(as_of)
    sums = {_milliseconds(end - number * _DAY): (0.0, 0) for number in range(SHOWN_DAYS, 0, -1)}
    for start, volume, trades in candles:
        if start in sums:
            total, count = sums[start]
            sums[start] = total + volume, count + trades
    days = [
        DayVolume(f"{_EPOCH + start * _MILLISECOND:%Y-%m-%d}", total, count) for start, (total, count) in sums.items()
    ]
    first = next((place for place, day in enumerate(days) if day.trades), len(days))
    return days[first:]


def movers(candles: Iterable[tuple[str, int, float | None, float | None]], as_of: str) -> list[Move]:
    """The markets that moved most in 24 hours that were over; of each candle market, start, open and close.

    A new market moved from its first price.
    """
    end = _milliseconds(_hour(as_of))
    begin = end - _DAY // _MILLISECOND
    first, last = dict[str, tuple[int, float]](), dict[str, tuple[int, float]]()
    for market_id, start, opened, closed in candles:
        if begin <= start < end and opened is not None and closed is not None:
            # The parts of a month come one after the other, so a market's candles need not be in order.
            if start < first.get(market_id, (end,))[0]:
                first[market_id] = start, opened
            if start >= last.get(market_id, (begin,))[0]:
                last[market_id] = start, closed
    moves = (Move(market_id, before, last[market_id][1]) for market_id, (_, before) in first.items())
    found = [move for move in moves if abs(move.after - move.before) >= LEAST_MOVE]
    return sorted(found, key=lambda move: (-abs(move.after - move.before), move.id))[:MOVERS]


def _day(as_of: str) -> datetime:
    return _hour(as_of).replace(hour=0)


def _hour(as_of: str) -> datetime:
    return datetime.fromisoformat(as_of).replace(minute=0, second=0, microsecond=0)


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND


def _sealed_on(page: bytes | None, of: bytes) -> CandleFigures | None:
    """The figures of candles that a page shows, if they are of this."""
    found = _CANDLES.search(page or b"")
    if found is None or found[1].decode() != _seal(of, found[2]):
        return None
    content = from_json(found[2])
    return CandleFigures([DayVolume(*day) for day in content["volume"]], [Move(*move) for move in content["moves"]])


def _seal(of: bytes, figures: bytes) -> str:
    return hashlib.sha256(of + figures).hexdigest()
