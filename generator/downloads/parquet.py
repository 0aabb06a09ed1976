"""Parquet files of dumps: markets, and how tables are read. Beside `records`, only this uses arro3, which is an extra.

Text of JSON lines goes in and file bytes come out, both piece by piece. Arrow's JSON reader and Parquet's writer, in
Rust, do the rest, so no row becomes a Python object, and no more than a row group is in memory. Equal rows give equal
bytes: a file has neither a time nor the version of this program in it.
"""

import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from itertools import groupby
from types import ModuleType
from typing import Any, BinaryIO, Final, TypeAlias

from pydantic import BaseModel

from generator.api import columns
from generator.api.columns import URL
from generator.api.contract import Variant
from generator.downloads import market_lines
from generator.downloads.pipes import FilePipe, TextPipe, WrittenTable
from generator.errors import ConfigError

_Write: TypeAlias = Callable[[bytes], object]

#: Markets of a row group: the least that a reader can skip by a file's statistics, and the most in memory.
MARKETS_PER_GROUP: Final = 25_000
#: Rows decoded at a time.
_BATCH: Final = 10_000
#: In the form that readers take apart; with another, Java's ignore the statistics of texts. The program's own version
#: would give every file a new name with every release.
_CREATED_BY: Final = "public-markets version 1"
#: The key of what a file states.
_STATED: Final = "dataset"
_GREATEST: Final = b"%d" % (2**63 - 1)


def require() -> None:
    """Raise ConfigError unless the extra is installed."""
    _libraries()
    if find_spec("numpy") is None:
        raise _missing("NumPy")


def markets(
    write: _Write,
    lines: Iterable[bytes],
    variant: Variant,
    url_of: Callable[[str], str | None] | None = None,
    stated: str = "",
) -> WrittenTable:
    """Write a file with a row for each market, of lines of a dump, which ascend by id.

    Columns are named as on the wire; `fxFamilyMember`, always null in a dump, is left out. With `url_of`, which gives
    the address of a market's page by id, the last column is URL. `write` is given the file's bytes in pieces. The file
    says what is `stated`, JSON. Raises ValueError if a line is no market, ConfigError without the extra, and whatever
    `lines` and `write` raise; the file is worthless then.
    """
    schema = columns_of(None, variant, linked=url_of is not None)
    fitting = map(_fitting, lines)
    rows = map(partial(_linked, url_of), fitting) if url_of else fitting
    pipe = TextPipe((row + b"\n" for row in rows), write)
    _, files = _libraries()
    return piped(pipe, lambda: files.read_json(pipe, schema, batch_size=_BATCH), MARKETS_PER_GROUP, "zstd(6)", stated)


def definitions(
    write: _Write, lines: Iterable[bytes], variant: Variant, stated: str = "", *, linked: bool
) -> WrittenTable:
    """Write a file with a row for each of these JSON lines: see `downloads.definitions`. `linked`: last an address.

    `write`, `stated` and errors are those of `markets`.
    """
    schema = columns_of(DEFINITIONS, variant, linked=linked)
    pipe = TextPipe((line + b"\n" for line in lines), write)
    _, files = _libraries()
    return piped(pipe, lambda: files.read_json(pipe, schema, batch_size=_BATCH), MARKETS_PER_GROUP, "zstd(6)", stated)


#: The table of definitions of questions, which has no periods.
DEFINITIONS: Final = columns.QUESTIONS
#: Those whose rows are made of lines that say all.
OF_LINES: Final = (None, DEFINITIONS)


def has_any(file: BinaryIO, ids: Collection[str]) -> bool:
    """Whether a file has rows of any of these markets.

    `file` can seek. Raises ValueError if it is not Parquet, is damaged or cannot be read, and
    ConfigError without the extra.
    """
    return any(_rows_of(ids, batch.column(0)) for batch in batches(file))


def ids(file: BinaryIO) -> set[str]:
    """The ids of the markets that a file has rows of. `file` and errors are those of `has_any`."""
    return {value for batch in batches(file) for value in batch.column(0).to_pylist()}


def require_columns(file: BinaryIO, table: str | None, variant: Variant, *, fills: bool) -> None:
    """Raise ValueError unless a file has the columns of a table, or without a `table` those of markets.

    Other errors are those of `has_any`.
    """
    reading = _opened(file)
    shown = [(column.name, str(column.type), column.nullable) for column in reading.schema]
    is_linked = table in OF_LINES and any(name == URL for name, _, _ in shown)
    wanted = columns_of(table, variant, linked=is_linked, fills=fills)
    if shown != [(column.name, str(column.type), column.nullable) for column in wanted]:
        raise ValueError(f"columns {', '.join(name for name, _, _ in shown):.100}")


def rows(file: BinaryIO, ids: Collection[str] | None = None) -> Iterator[bytes]:
    """A JSON line for each row of a file, in its order; of these markets, if they are given.

    `file` and errors are those of `has_any`.
    """
    _, files = _libraries()
    for batch in batches(file):
        whole = [(0, batch.num_rows)]
        for start, stop in whole if ids is None else _rows_of(ids, batch.column(0)):
            text = io.BytesIO()
            with explained("damaged Parquet file"):
                files.write_ndjson(batch.slice(start, stop - start), text)
            yield from text.getvalue().splitlines()


def values(file: BinaryIO, columns: Sequence[str], since: int | None = None) -> Iterator[tuple[Any, ...]]:
    """The values of these columns, a tuple for each row of a file, in its order; times in milliseconds since 1970.

    With `since`, candles that start earlier are left out. It takes two fifths of the time of `rows` with their JSON.
    `file` and errors are those of `has_any`.
    """
    core, _ = _libraries()
    number = core.DataType.int64()
    for batch in batches(file):
        with explained("not such a table"):
            found = [batch.column(name) for name in columns]
            if since is not None:
                (late,) = (batch.column("start").cast(number).to_numpy() >= since).nonzero()
                found = [column.take(late) for column in found]
        yield from zip(
            *((one.cast(number) if core.DataType.is_timestamp(one.type) else one).to_pylist() for one in found),
            strict=True,
        )


def _libraries() -> tuple[ModuleType, ModuleType]:
    try:
        from arro3 import core  # noqa: PLC0415 - most sites need no Parquet
        from arro3 import io as files  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise _missing("arro3") from error
    return core, files


def _missing(library: str) -> ConfigError:
    return ConfigError(f"dumps.parquet is set but {library} is not installed; pip install 'public-markets[parquet]'")


@cache
def columns_of(table: str | None, variant: Variant = "extended", *, linked: bool = False, fills: bool = True) -> Any:
    """The columns of a table, or without a `table` those of markets; `linked`: last an address.

    Without `fills`, candles lack what is made of these.
    """
    core, _ = _libraries()
    found = columns.columns(name_of(table), variant, linked=linked, fills=fills)
    return core.Schema([_field(one) for one in found])


def name_of(table: str | None) -> str:
    """The name of a table in the dump's head; without a `table` that of markets."""
    return columns.MARKETS if table is None else table if table == DEFINITIONS else columns.name(table)


def model_of(table: str) -> type[BaseModel]:
    """The model of a row of a table, without its market. Raises KeyError if there is no such table."""
    return columns.model(name_of(table))


def _field(column: columns.TableColumn) -> Any:
    """The column for Arrow, whose schema, with what columns mean, stands in the file, too."""
    core, _ = _libraries()
    told = {"description": column.meaning, **({"unit": column.unit} if column.unit else {})}
    return core.Field(column.name, _type(column.type), nullable=column.is_nullable, metadata=told)


def _type(name: columns.ColumnType) -> Any:
    core, _ = _libraries()
    types = core.DataType
    if name == "timestamp":
        return types.timestamp("ms", tz="UTC")
    if name == "list<string>":
        return types.list(core.Field("element", types.string(), nullable=False))
    by_name = {"string": types.string, "double": types.float64, "int64": types.int64, "boolean": types.bool}
    return by_name[name]()


#: Counts have no upper bound in the contract. In JSON texts a quote has a backslash before it, so only names match.
_COUNT: Final = re.compile(rb'("(?:traderCount|fills24h)":)(\d{19,})')


def _fitting(line: bytes) -> bytes:
    """The line with counts that fit into 64 bits."""
    return _COUNT.sub(lambda found: found[1] + (found[2] if int(found[2]) < 2**63 else _GREATEST), line)


def _linked(url_of: Callable[[str], str | None], line: bytes) -> bytes:
    """The line with the address of the market's page, in which nothing needs an escape."""
    url = url_of(market_lines.id_of(line))
    return line if url is None else b'%b,"%b":"%b"}' % (line[:-1], URL.encode(), url.encode())


def piped(
    pipe: FilePipe, open_rows: Callable[[], Any], rows_per_group: int, compression: str, stated: str
) -> WrittenTable:
    """Write the rows that Arrow reads into the pipe, with what is `stated` of the file as a whole.

    Raises ValueError if they do not fit, and what failed in it.
    """
    _, files = _libraries()
    try:
        files.write_parquet(
            open_rows(),
            pipe,
            compression=compression,
            created_by=_CREATED_BY,
            max_row_group_size=rows_per_group,
            # With several, their order would be another each time.
            key_value_metadata={_STATED: stated} if stated else None,
        )
    except Exception as error:
        if not pipe.failure:
            raise ValueError(f"not what the columns of the file can hold: {error}") from error
    if pipe.failure:
        raise pipe.failure
    return pipe.written()


def _opened(file: BinaryIO) -> Any:
    _, files = _libraries()
    file.seek(0)
    with explained("not a Parquet file"):
        return files.read_parquet(file, batch_size=_BATCH)


def batches(file: BinaryIO) -> Iterator[Any]:
    """The rows of a file as Arrow reads them, piece by piece. `file` and errors are those of `has_any`."""
    return _batches(_opened(file))


def _batches(reading: Any) -> Iterator[Any]:
    while True:
        with explained("damaged Parquet file"):
            batch = next(reading, None)
        if batch is None:
            return
        yield batch


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn errors of Rust into ValueError, also its panics, which are no Exception in Python."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"{what}: {error}") from error


def _rows_of(ids: Collection[str], column: Any) -> list[tuple[int, int]]:
    """Where the rows of these markets begin and end in a column of one batch."""
    # Rows of a market lie together, but in a file of several months they do not ascend by market.
    found, start = [], 0
    for owner, same in groupby(column.to_pylist()):
        stop = start + len([*same])
        if owner in ids:
            found.append((start, stop))
        start = stop
    return found
