"""Rows of the tables of full histories as NumPy records: their columns, their order, how sources are merged. Pure.

Times are milliseconds since 1970, in UTC; a number that is null is NaN. Rows are in order by month, market, time and
then by probability or id: so those of a month lie together, and among them those of a market.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isnan
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from generator.api.downloads import CANDLES, CLOSES
from generator.downloads import parquet
from generator.downloads.histories import Extent

#: Records of one table.
Records: TypeAlias = npt.NDArray[np.void]
Numbers: TypeAlias = npt.NDArray[Any]
#: A row's place in the order of its table.
_Place: TypeAlias = tuple[int, bytes, int, float | bytes]

ID: Final = "S36"
_TIME: Final = "<i8"
_NUMBER: Final = "<f8"
_CANDLE: Final = {"start": _TIME, **dict.fromkeys(("open", "high", "low", "close", "volume"), _NUMBER), "trades": _TIME}
#: The columns of each table after the market's, in order.
COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "history": {"timestamp": _TIME, "prob": _NUMBER},
    "fills": {"id": ID, **dict.fromkeys(("amount", "shares", "price"), _NUMBER), "timestamp": _TIME},
    **dict.fromkeys(CANDLES, _CANDLE),
    CLOSES: {"closedAt": _TIME, **dict.fromkeys(("prob", "probDayBefore", "probWeekBefore"), _NUMBER)},
}
#: The column of the market that a row belongs to.
OWNER: Final = parquet.OWNER
#: What a record of each table is.
TYPES: Final[Mapping[str, np.dtype[np.void]]] = {
    table: np.dtype([(OWNER, ID), *columns.items()]) for table, columns in COLUMNS.items()
}
#: The column with the time of a row.
TIMES: Final[Mapping[str, str]] = {
    "history": "timestamp", "fills": "timestamp", **dict.fromkeys(CANDLES, "start"), CLOSES: "closedAt",
}  # fmt: skip
#: The column that decides between rows of a market and a time; candles and closes have no two such rows.
TIES: Final = {"history": "prob", "fills": "id"}
_DIGEST_BYTES: Final = 12


def of(table: str, rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> Records:
    """Records of valid rows in wire values; `columns` names the values of a row in order. Others are empty."""
    found = np.zeros(len(rows), TYPES[table])
    for name, shown in zip(columns, zip(*rows, strict=True), strict=bool(rows)):
        found[name] = milliseconds(shown) if name == TIMES[table] else np.array(shown, found.dtype[name])
    return found


def of_bytes(table: str, content: bytes) -> Records:
    """The records whose bytes these are. Raises ValueError if there is a part of one."""
    return np.frombuffer(content, TYPES[table])


def milliseconds(times: Sequence[str]) -> Numbers:
    """The times, wire timestamps, as numbers."""
    # The type cuts the Z off, of which NumPy would warn.
    return np.array(times, "S23").astype("M8[ms]").astype(np.int64)


def months(table: str, rows: Records) -> Numbers:
    """The month of each row, as a number."""
    return np.asarray(rows[TIMES[table]].astype("M8[ms]").astype("M8[M]").astype(np.int64))


def month(number: int) -> str:
    """A month that is given as a number, as in `2026-10`."""
    return str(np.datetime64(int(number), "M"))


def runs(values: Numbers) -> Numbers:
    """Where each run of equal values begins."""
    if not len(values):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))


def in_order(table: str, rows: Records) -> Records:
    """The rows in order."""
    keys = [rows[TIMES[table]], _ranked(rows[OWNER]), months(table, rows)]
    return rows[np.lexsort([rows[TIES[table]], *keys] if table in TIES else keys)]


def together(table: str, rows: Sequence[Records]) -> Records:
    """The rows of several records in one order; each is in order already."""
    return rows[0] if len(rows) == 1 else in_order(table, np.concatenate(rows))


def _ranked(ids: Numbers) -> Numbers:
    """Numbers that sort as these ids do, most of which lie together."""
    heads = runs(ids)
    _, numbers = np.unique(ids[heads], return_inverse=True)
    return np.repeat(numbers, np.diff(heads, append=len(ids)))


def owner_ids(rows: Records) -> list[str]:
    """The ids of the markets of these rows, each once for every run of its rows."""
    return [owner.decode() for owner in rows[OWNER][runs(rows[OWNER])].tolist()]


def extent(rows: Records) -> Extent:
    """How many rows of a market these are, and their digest."""
    digest = hashlib.blake2b(np.ascontiguousarray(rows).view(np.uint8).data, digest_size=_DIGEST_BYTES)
    return Extent(len(rows), digest.hexdigest() if len(rows) else "")


def without(rows: Records, ids: Collection[str]) -> Records:
    """The rows that are not of these markets."""
    if not ids:
        return rows
    stays = np.array([owner not in ids for owner in owner_ids(rows)], bool)
    remaining: Records = rows[np.repeat(stays, np.diff(runs(rows[OWNER]), append=len(rows)))]
    return remaining


def merged(table: str, sources: Sequence[Iterable[Records]]) -> Iterator[Records]:
    """The rows of several sources in one order; each is in order already. A piece of each is in memory."""
    if len(sources) == 1:
        yield from sources[0]
        return
    remaining = [iter(source) for source in sources]
    heads = [next(source, None) for source in remaining]
    while any(head is not None for head in heads):
        limit = min(_place(table, head, len(head) - 1) for head in heads if head is not None)
        ready = list[Records]()
        for number, head in enumerate(heads):
            if head is not None:
                stop = bisect_right(range(len(head)), limit, key=partial(_place, table, head))
                ready.append(head[:stop])
                heads[number] = head[stop:] if stop < len(head) else next(remaining[number], None)
        ready = [rows for rows in ready if len(rows)]
        yield together(table, ready)


def _place(table: str, rows: Records, number: int) -> _Place:
    row = rows[number]
    time = int(row[TIMES[table]])
    in_month = int(np.datetime64(time, "ms").astype("M8[M]").astype(np.int64))
    return in_month, bytes(row[OWNER]), time, row[TIES[table]] if table in TIES else b""


def values(table: str, rows: Records) -> Iterator[tuple[Any, ...]]:
    """The values of rows of candles or closes, on the wire, without their markets."""
    stamps = np.datetime_as_string(rows[TIMES[table]].astype("M8[ms]")).tolist()
    for stamp, (_, _, *others) in zip(stamps, rows.tolist(), strict=True):
        yield f"{stamp}Z", *(None if isinstance(value, float) and isnan(value) else value for value in others)
