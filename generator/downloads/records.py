"""Rows of the tables of histories as NumPy records: their columns and order, how sources are merged; as Parquet. Pure.

Times are milliseconds since 1970, in UTC; a number that is null is NaN. Rows are in order by month, market, time and
then by probability or id: so those of a month lie together, and among them those of a market.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isnan
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from arro3 import core

from generator.api import columns as table_columns
from generator.api.downloads import CANDLES, CLOSES
from generator.downloads import parquet
from generator.downloads.histories import Extent
from generator.downloads.pipes import FilePipe, WrittenTable

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
OWNER: Final = table_columns.OWNER
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
#: Rows of a row group: a reader of one market or of one week should fetch little.
ROWS_PER_GROUP: Final = 20_000
#: They are many rows: higher levels take up to three times the time, and save a tenth of points at most.
_COMPRESSION: Final = "zstd(1)"
_ID: Final = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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


def written(
    write: Callable[[bytes], object], rows: Iterable[Records], table: str, stated: str = "", *, fills: bool
) -> WrittenTable:
    """Write a file with these records of a table, in their order; without `fills`, without what is made of these.

    `stated` and errors are those of `parquet.markets`.
    """
    pipe, schema = FilePipe(write), parquet.columns_of(table, fills=fills)
    found = pipe.watched(_batch(schema, piece) for piece in rows)
    return parquet.piped(
        pipe, lambda: core.RecordBatchReader.from_batches(schema, found), ROWS_PER_GROUP, _COMPRESSION, stated
    )


def _batch(schema: Any, rows: Records) -> core.RecordBatch:
    """Records as Arrow has them. Raises ValueError for a row that the table cannot have."""
    with parquet.explained("not rows of this table"):
        return core.RecordBatch.from_arrays([_array(rows, column) for column in schema], schema=schema)


def check(table: str, rows: Records) -> None:
    """Raise ValueError unless these are rows that the table can have, in order."""
    _batch(parquet.columns_of(table), rows)
    columns = [rows[name] for name in rows.dtype.names or ()]
    if any(column.dtype.kind == "f" and np.isinf(column).any() for column in columns):
        raise ValueError("a number that is infinite")
    if not all(_ID.fullmatch(value) for column in columns if column.dtype.kind == "S" for value in column.tolist()):
        raise ValueError("an id that is none")
    if in_order(table, rows).tobytes() != rows.tobytes():
        raise ValueError("rows that are not in order")


def _array(rows: Records, column: Any) -> core.Array:
    values = rows[column.name]
    if column.name == OWNER:
        # Rows of a market lie together, and a text takes longer than its number.
        heads = runs(values)
        numbers = np.repeat(np.arange(len(heads)), np.diff(heads, append=len(values)))
        return core.Array.from_numpy(values[heads]).cast(column.type).take(numbers)
    if values.dtype.kind == "f" and np.isnan(values).any():
        return core.Array([None if isnan(value) else value for value in values.tolist()], column.type)
    # The library takes no heed of strides.
    return core.Array.from_numpy(np.ascontiguousarray(values)).cast(column.type)


def read(file: BinaryIO, table: str, without_ids: Collection[str] = ()) -> Iterator[Records]:
    """The rows of a file, in its order, but for those of the markets that are left out; what it lacks is zero.

    `file` and errors are those of `parquet.has_any`.
    """
    number, kinds = core.DataType.int64(), TYPES[table]
    for found in parquet.batches(file):
        piece = np.zeros(found.num_rows, kinds)
        with parquet.explained("not such a table"):
            for name in found.schema.names:
                column = found.column(name)
                values = column.cast(number) if name == TIMES[table] else column
                piece[name] = values.to_pylist() if values.null_count else values.to_numpy()
        if len(remaining := without(piece, without_ids)):
            yield remaining
