"""Parquet files of dumps: markets, histories and recent fills. Only this module uses arro3, which is an extra.

Text of JSON lines goes in and file bytes come out, both piece by piece. Arrow's JSON reader and Parquet's writer, in
Rust, do the rest, so no row becomes a Python object, and no more than a row group is in memory. Equal rows give equal
bytes: a file has neither a time nor the version of this program in it.
"""

import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from itertools import groupby
from types import ModuleType
from typing import Any, BinaryIO, Final, TypeAlias

from pydantic import BaseModel

from generator.api import contract
from generator.api.contract import Variant
from generator.api.downloads import CANDLES, CLOSES
from generator.downloads import candles, market_lines
from generator.downloads.pipes import FilePipe, TextPipe, WrittenTable
from generator.errors import ConfigError

_Write: TypeAlias = Callable[[bytes], object]

#: The column that a file is sorted by, of markets and of what belongs to them.
MARKET: Final = "id"
OWNER: Final = "marketId"
#: The column with the address of a market's page.
URL: Final = "url"
#: Rows of a row group: the least that a reader can skip by a file's statistics, and the most that is held in memory.
MARKETS_PER_GROUP: Final = 25_000
ROWS_PER_GROUP: Final = 100_000
#: Rows decoded at a time.
_BATCH: Final = 10_000
_COMPRESSION: Final = "zstd(6)"
#: In the form that readers take apart; with another, Java's ignore the statistics of texts. The program's own version
#: would give every file a new name with every release.
_CREATED_BY: Final = "public-markets version 1"
_GREATEST: Final = b"%d" % (2**63 - 1)
_UUID_LENGTH: Final = 36
_DETAIL: Final = b'{"market":{"id":"'


def require(*, is_full: bool) -> None:
    """Raise ConfigError unless the extra is installed; where histories are `is_full`, that of these, too."""
    _libraries()
    if is_full and find_spec("numpy") is None:
        raise ConfigError(
            "dumps.histories is full but NumPy is not installed; pip install 'public-markets[parquet,histories]', or "
            "build the image with it (see docs/install.md)"
        )


def markets(
    write: _Write, lines: Iterable[bytes], variant: Variant, url_of: Callable[[str], str | None] | None = None
) -> WrittenTable:
    """Write a file with a row for each market, of lines of a dump, which ascend by id.

    Columns are named as on the wire; `fxFamilyMember`, always null in a dump, is left out. With `url_of`, which gives
    the address of a market's page by id, the last column is URL. `write` is given the file's bytes in pieces. Raises
    ValueError if a line is no market, ConfigError without the extra, and whatever `lines` and `write` raise; the file
    is worthless then.
    """
    schema = columns_of(None, variant, linked=url_of is not None)
    fitting = map(_fitting, lines)
    rows = map(partial(_linked, url_of), fitting) if url_of else fitting
    return _written(write, (row + b"\n" for row in rows), schema, MARKETS_PER_GROUP)


def history(write: _Write, details: Iterable[bytes]) -> WrittenTable:
    """Write a file with a row for each point of the histories of these details, which ascend by id.

    Columns: marketId, timestamp, prob; sorted by marketId, then as in `probHistory`, by time. Errors as for `markets`.
    """
    return _written(write, map(_points, details), columns_of("history"), ROWS_PER_GROUP)


def fills(write: _Write, details: Iterable[bytes]) -> WrittenTable:
    """Write a file with a row for each recent fill of these details, which ascend by id.

    Columns: marketId, id, amount, shares, price, timestamp; sorted by marketId, then by time: `recentFills` in reverse.
    Errors as for `markets`.
    """
    return _written(write, map(_fills, details), columns_of("fills"), ROWS_PER_GROUP)


#: What a row of each table is, and without a table that of a market.
MODELS: Final[Mapping[str | None, type[BaseModel]]] = {
    None: contract.PublicMarketDetailMarket, "history": contract.ProbabilityPoint, "fills": contract.PublicRecentFill,
    **dict.fromkeys(CANDLES, candles.Candle), CLOSES: candles.Close,
}  # fmt: skip
#: What makes a file of each table of a dump from details.
WRITERS: Final[Mapping[str, Callable[[_Write, Iterable[bytes]], WrittenTable]]] = {"history": history, "fills": fills}


def without(write: _Write, file: BinaryIO, ids: Collection[str]) -> WrittenTable | None:
    """Write the file without the rows of these markets; None, and nothing is written, if it has none of them.

    `file` is one that this module wrote, and can seek. The result is what it would have written without those markets,
    byte for byte. Raises ValueError if `file` is not Parquet, is damaged or cannot be read, ConfigError without the
    extra, and whatever `write` raises.
    """
    if not has_any(file, ids):
        return None
    rest = _opened(file)
    rows_per_group = MARKETS_PER_GROUP if rest.schema.names[0] == MARKET else ROWS_PER_GROUP
    return _written(write, _text_without(_batches(rest), ids), rest.schema, rows_per_group)


def has_any(file: BinaryIO, ids: Collection[str]) -> bool:
    """Whether a file has rows of any of these markets. `file` and errors are those of `without`."""
    return any(_rows_of(ids, batch.column(0)) for batch in batches(file))


def ids(file: BinaryIO) -> set[str]:
    """The ids of the markets that a file has rows of. `file` and errors are those of `without`."""
    return {value for batch in batches(file) for value in batch.column(0).to_pylist()}


def require_columns(file: BinaryIO, table: str | None, variant: Variant) -> None:
    """Raise ValueError unless a file has the columns of a table, or without a `table` those of markets.

    Other errors are those of `without`.
    """
    reading = _opened(file)
    columns = [(column.name, str(column.type), column.nullable) for column in reading.schema]
    is_linked = table is None and any(name == URL for name, _, _ in columns)
    wanted = columns_of(table, variant, linked=is_linked)
    if columns != [(column.name, str(column.type), column.nullable) for column in wanted]:
        raise ValueError(f"columns {', '.join(name for name, _, _ in columns):.100}")


def rows(file: BinaryIO, ids: Collection[str] | None = None) -> Iterator[bytes]:
    """A JSON line for each row of a file, in its order; of these markets, if they are given.

    `file` and errors are those of `without`.
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
    `file` and errors are those of `without`.
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
        raise ConfigError(
            "dumps.parquet is set but arro3 is not installed; pip install 'public-markets[parquet]'"
        ) from error
    return core, files


@cache
def columns_of(table: str | None, variant: Variant = "extended", *, linked: bool = False) -> Any:
    """The columns of a table, or without a `table` those of markets; `linked`: last an address."""
    core, _ = _libraries()
    model = MODELS[table]
    leave_out = contract.EXTENDED_PROPERTIES if table is None and variant == "core" else ()
    url = [core.Field(URL, core.DataType.string(), nullable=True)] if linked else []
    owner = [core.Field(OWNER, core.DataType.string(), nullable=False)] if table else []
    properties: Mapping[str, Mapping[str, Any]] = model.model_json_schema()["properties"]
    columns = {name: _type(spec) for name, spec in properties.items() if name not in leave_out}
    return core.Schema(
        [
            *owner,
            *(core.Field(name, found[0], nullable=found[1]) for name, found in columns.items() if found),
            *url,
        ]
    )


def _type(spec: Mapping[str, Any]) -> tuple[Any, bool] | None:
    """The type of a column and whether it can be null; None for objects."""
    kinds = [kind for kind in spec.get("anyOf", [spec]) if kind.get("type") != "null"]
    is_nullable = len(kinds) < len(spec.get("anyOf", [spec]))
    found = _simple(kinds[0])
    return found and (found, is_nullable)


def _simple(spec: Mapping[str, Any]) -> Any:
    core, _ = _libraries()
    types = core.DataType
    if spec.get("type") == "array":
        return types.list(core.Field("element", _simple(spec["items"]), nullable=False))
    if spec.get("format") == "date-time":
        return types.timestamp("ms", tz="UTC")
    by_name = {"string": types.string, "number": types.float64, "integer": types.int64, "boolean": types.bool}
    return by_name[spec["type"]]() if "type" in spec else None


#: Counts have no upper bound in the contract. In JSON texts a quote has a backslash before it, so only names match.
_COUNT: Final = re.compile(rb'("(?:traderCount|fills24h)":)(\d{19,})')


def _fitting(line: bytes) -> bytes:
    """The line with counts that fit into 64 bits."""
    return _COUNT.sub(lambda found: found[1] + (found[2] if int(found[2]) < 2**63 else _GREATEST), line)


def _linked(url_of: Callable[[str], str | None], line: bytes) -> bytes:
    """The line with the address of the market's page, in which nothing needs an escape."""
    url = url_of(market_lines.id_of(line))
    return line if url is None else b'%b,"%b":"%b"}' % (line[:-1], URL.encode(), url.encode())


def _points(detail: bytes) -> bytes:
    return _owned(detail, _elements(detail, b'"probHistory":['))


def _fills(detail: bytes) -> bytes:
    return _owned(detail, _elements(detail, b'"recentFills":[')[::-1])


def _elements(detail: bytes, name: bytes) -> list[bytes]:
    """The texts between braces of an array of flat objects of numbers, times and ids."""
    start = detail.find(name)
    end = detail.find(b"]", start)
    if min(start, end) < 0:
        raise ValueError(f"not the detail of a market: it has no {name.decode()}")
    text = detail[start + len(name) + 1 : end - 1]
    return text.split(b"},{") if text else []


def _owned(detail: bytes, elements: Sequence[bytes]) -> bytes:
    """A line for each element, with the id of the market first."""
    if not detail.startswith(_DETAIL):
        raise ValueError("not the detail of a market: it does not begin with its id")
    market = detail[len(_DETAIL) : len(_DETAIL) + _UUID_LENGTH]
    start = b'{"%s":"%s",' % (OWNER.encode(), market)
    return start + (b"}\n" + start).join(elements) + b"}\n" if elements else b""


def _written(write: _Write, texts: Iterable[bytes], schema: Any, rows_per_group: int) -> WrittenTable:
    """Write a file of JSON lines, which may come in any pieces."""
    _, files = _libraries()
    pipe = TextPipe(texts, write)
    return piped(pipe, lambda: files.read_json(pipe, schema, batch_size=_BATCH), rows_per_group, _COMPRESSION)


def piped(pipe: FilePipe, open_rows: Callable[[], Any], rows_per_group: int, compression: str) -> WrittenTable:
    """Write the rows that Arrow reads into the pipe. Raises ValueError if they do not fit, and what failed in it."""
    _, files = _libraries()
    try:
        files.write_parquet(
            open_rows(),
            pipe,
            compression=compression,
            created_by=_CREATED_BY,
            max_row_group_size=rows_per_group,
            skip_arrow_metadata=True,
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
    """The rows of a file as Arrow reads them, piece by piece. `file` and errors are those of `without`."""
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


def _text_without(batches: Iterable[Any], ids: Collection[str]) -> Iterator[bytes]:
    """JSON lines of the rows that are not of these markets."""
    _, files = _libraries()
    for batch in batches:
        position = 0
        for start, stop in [*(_rows_of(ids, batch.column(0)) if ids else ()), (batch.num_rows, 0)]:
            text = io.BytesIO()
            files.write_ndjson(batch.slice(position, start - position), text)
            yield text.getvalue()
            position = stop
