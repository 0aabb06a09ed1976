"""A row of a table of full histories as a JSON line: how it is encoded, and where it belongs among others. Pure.

    {"marketId":"…","timestamp":"…","prob":0.5}
    {"marketId":"…","id":"…","amount":1.0,"shares":2.0,"price":0.5,"timestamp":"…"}
    {"marketId":"…","start":"…","open":0.4,"high":0.6,"low":0.4,"close":0.5,"volume":1.0,"trades":1}
    {"marketId":"…","closedAt":"…","prob":0.5,"probDayBefore":0.4,"probWeekBefore":null}

Rows are in order by month, market, time and then by probability or id: so those of a month lie together, and among them
those of a market.
"""

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias

from generator.api.downloads import CANDLES, CLOSES
from generator.api.tables import Table

#: A line's place in the order of its table.
LinePlace: TypeAlias = tuple[str, str, str, float | str]

#: The column of the market that a row belongs to.
OWNER: Final = "marketId"
MONTH: Final = len("2026-10")
_CANDLE: Final = {"start": str, **dict.fromkeys(("open", "high", "low", "close", "volume", "trades"), float)}
#: The columns of each table after the market's, in order.
COLUMNS: Final[Mapping[str, Mapping[str, type[str] | type[float]]]] = {
    "history": {"timestamp": str, "prob": float},
    "fills": {"id": str, "amount": float, "shares": float, "price": float, "timestamp": str},
    **dict.fromkeys(CANDLES, _CANDLE),
    CLOSES: {"closedAt": str, "prob": float, "probDayBefore": float, "probWeekBefore": float},
}
_TABLES: Final = {table: Table(**columns) for table, columns in COLUMNS.items()}
#: The columns with the time of a row; in all tables but that of fills it is the first one.
TIMES: Final[Mapping[str, str]] = {
    "history": "timestamp", "fills": "timestamp", **dict.fromkeys(CANDLES, "start"), CLOSES: "closedAt",
}  # fmt: skip
_BETWEEN: Final = b"},{"
_OWNER: Final = rb'\{"marketId":"([^"]*)",'
_WHEN: Final = rb'"([-0-9T:.]*Z)"'
_NUMBERS: Final = rb'(?:"[a-zA-Z]+":[-+.0-9a-z]*,)*'
_POINT: Final = re.compile(_OWNER + rb'"timestamp":' + _WHEN + rb',"prob":([^"}]*)\}')
_DERIVED: Final = re.compile(_OWNER + rb'"[a-zA-Z]+":' + _WHEN + rb"," + _NUMBERS + rb'"[a-zA-Z]+":[-+.0-9a-z]*\}')
_FILL: Final = re.compile(_OWNER + rb'"id":"([^"]*)",' + _NUMBERS + rb'"timestamp":' + _WHEN + rb"\}")
_TIME: Final = b'"timestamp":"'
_START: Final = len('{"marketId":"')
_ID: Final = slice(_START, _START + len("00000000-0000-4000-8000-000000000000"))
_SECONDS: Final = len("2026-10-31T12:00:00Z")


def encoded(table: str, columns: Sequence[Sequence[Any]]) -> list[bytes]:
    """The texts of rows between their braces, without the market; their values are given column by column."""
    return _TABLES[table].encode_columns(columns)[2:-2].split(_BETWEEN) if columns[0] else []


def lines(market_id: str, texts: Sequence[bytes]) -> bytes:
    """A line for each of these texts, with the id of the market first."""
    start = b'{"%s":"%s",' % (OWNER.encode(), market_id.encode())
    return start + (b"}\n" + start).join(texts) + b"}\n" if texts else b""


def first_text(encoded: str) -> str:
    """The first value of an encoded row, a text: its time, where that is the first column."""
    return encoded.split('"', 4)[3]


def owner_at(text: bytes, place: int) -> bytes:
    """The market of the line that has the byte at this place."""
    start = text.rfind(b"\n", 0, place) + 1
    return text[start + _ID.start : start + _ID.stop]


def split(texts: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a text that comes in pieces of whole lines."""
    for text in texts:
        yield from text.splitlines(keepends=True)


def merged(table: str, sources: Sequence[Iterable[bytes]]) -> Iterator[bytes]:
    """The rows of several sources in one order; each is in order already, in pieces of whole lines.

    The rows of one market and month are in memory.
    """
    if len(sources) == 1:
        yield from sources[0]
        return
    month_of, key = _MONTHS[table], itemgetter(0)
    blocks = heapq.merge(*(_blocks(source, month_of) for source in sources), key=key)
    for _, same in groupby(blocks, key=key):
        found = [lines for _, lines in same]
        lines = found[0] if len(found) == 1 else sorted(chain.from_iterable(found), key=PLACES[table])
        yield b"".join(lines)


def _blocks(
    texts: Iterable[bytes], month_of: Callable[[bytes], bytes]
) -> Iterator[tuple[tuple[bytes, bytes], list[bytes]]]:
    """The lines of each market and month, after these."""
    for place, lines in groupby(split(texts), key=lambda line: (month_of(line), line[_ID])):
        yield place, [*lines]


def _month_of_fill(line: bytes) -> bytes:
    start = line.rfind(_TIME) + len(_TIME)
    return line[start : start + MONTH]


def _month_after(column: str) -> Callable[[bytes], bytes]:
    """Tells the month of a line whose time is in the first column after the market's."""
    start = _ID.stop + len(f'","{column}":"')
    return itemgetter(slice(start, start + MONTH))


_MONTHS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    table: _month_of_fill if table == "fills" else _month_after(column) for table, column in TIMES.items()
}


def _place_of_point(line: bytes) -> LinePlace:
    owner, time, prob = _matched(_POINT, line)
    return time[:MONTH], owner, in_full(time), float(prob)


def _place_of_fill(line: bytes) -> LinePlace:
    owner, fill_id, time = _matched(_FILL, line)
    return time[:MONTH], owner, in_full(time), fill_id


def _place_of_derived(line: bytes) -> LinePlace:
    owner, time = _matched(_DERIVED, line)
    return time[:MONTH], owner, in_full(time), ""


#: Tells the place of a line, by table; raises ValueError for one of another form.
PLACES: Final[Mapping[str, Callable[[bytes], LinePlace]]] = {
    "history": _place_of_point, "fills": _place_of_fill, **dict.fromkeys((*CANDLES, CLOSES), _place_of_derived),
}  # fmt: skip


def _matched(form: re.Pattern[bytes], line: bytes) -> tuple[str, ...]:
    found = form.match(line)
    if found is None:
        raise ValueError(f"not a row of this table: {line[:100]!r}")
    return tuple(group.decode() for group in found.groups())


def in_full(time: str) -> str:
    """A time with its milliseconds, which Arrow leaves out if there are none."""
    return time if len(time) > _SECONDS else time.replace("Z", ".000Z")
