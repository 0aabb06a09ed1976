"""Parquet files of full histories: records in, records out, piece by piece. Beside `parquet`, only this uses arro3."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from math import isnan
from typing import Any, BinaryIO, Final

import numpy as np
from arro3 import core

from generator.downloads import parquet, records
from generator.downloads.pipes import FilePipe, WrittenTable
from generator.downloads.records import Records

#: Rows of a row group: a reader of one market or of one week should fetch little.
ROWS_PER_GROUP: Final = 20_000
#: They are many rows: higher levels take up to three times the time, and save a tenth of points at most.
_COMPRESSION: Final = "zstd(1)"
_ID: Final = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def written(write: Callable[[bytes], object], rows: Iterable[Records], table: str) -> WrittenTable:
    """Write a file with these records of a table, in their order.

    Errors as for `parquet.markets`.
    """
    pipe = FilePipe(write)
    found = pipe.watched(batch(table, piece) for piece in rows)
    return parquet.piped(
        pipe,
        lambda: core.RecordBatchReader.from_batches(parquet.columns_of(table), found),
        ROWS_PER_GROUP,
        _COMPRESSION,
    )


def batch(table: str, rows: Records) -> core.RecordBatch:
    """Records as Arrow has them. Raises ValueError for a row that the table cannot have."""
    schema = parquet.columns_of(table)
    with parquet.explained("not rows of this table"):
        return core.RecordBatch.from_arrays([_array(rows, column) for column in schema], schema=schema)


def check(table: str, rows: Records) -> None:
    """Raise ValueError unless these are rows that the table can have, in order."""
    batch(table, rows)
    columns = [rows[name] for name in rows.dtype.names or ()]
    if any(column.dtype.kind == "f" and np.isinf(column).any() for column in columns):
        raise ValueError("a number that is infinite")
    if not all(_ID.fullmatch(value) for column in columns if column.dtype.kind == "S" for value in column.tolist()):
        raise ValueError("an id that is none")
    if records.in_order(table, rows).tobytes() != rows.tobytes():
        raise ValueError("rows that are not in order")


def _array(rows: Records, column: Any) -> core.Array:
    values = rows[column.name]
    if column.name == records.OWNER:
        # Rows of a market lie together, and a text takes longer than its number.
        heads = records.runs(values)
        numbers = np.repeat(np.arange(len(heads)), np.diff(heads, append=len(values)))
        return core.Array.from_numpy(values[heads]).cast(column.type).take(numbers)
    if values.dtype.kind == "f" and np.isnan(values).any():
        return core.Array([None if isnan(value) else value for value in values.tolist()], column.type)
    # The library takes no heed of strides.
    return core.Array.from_numpy(np.ascontiguousarray(values)).cast(column.type)


def rows(file: BinaryIO, table: str, without: Collection[str] = ()) -> Iterator[Records]:
    """The rows of a file, in its order, but for those of the markets that are left out.

    `file` and errors are those of `parquet.without`.
    """
    number, kinds = core.DataType.int64(), records.TYPES[table]
    for found in parquet.batches(file):
        piece = np.empty(found.num_rows, kinds)
        with parquet.explained("not such a table"):
            for name in kinds.names or ():
                column = found.column(name)
                values = column.cast(number) if name == records.TIMES[table] else column
                piece[name] = values.to_pylist() if values.null_count else values.to_numpy()
        if len(remaining := records.without(piece, without)):
            yield remaining
