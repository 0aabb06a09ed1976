"""The files of full histories: only of listed markets, and those of sampled markets lead to what their details show."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic_core import from_json

from generator.api import contract, keys
from generator.api.contract import PublicMarketDetail
from generator.api.downloads import TABLES, DumpHead, PeriodFile
from generator.downloads import parquet
from generator.verify import parquet_file
from generator.verify.inquiry import Inquiry
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.parquet_file import OpenedFile

_Row: TypeAlias = Mapping[str, Any]

#: How many markets are compared at most: all their rows are in memory, of one table at a time.
MOST_COMPARED: Final = 500
#: Rows in memory; if there are more, the markets that have most of them are not compared.
MOST_ROWS: Final = 500_000
#: What a plain row has beside its values.
_NO_VALUES: Final = (parquet.OWNER, "timestamp", "id")
#: The property of a detail that shows some rows of each table.
_PROPERTIES: Final = {"history": "probHistory", "fills": "recentFills"}


@dataclass(frozen=True)
class PeriodFilesCheck:
    """The files of full histories; the rows of some of these markets are compared with their details."""

    ids: tuple[str, ...]

    def __call__(self, asked: Inquiry, head: DumpHead) -> Iterator[Mismatch]:
        """Compare digests, columns and rows."""
        ids = sorted(self.ids)[:MOST_COMPARED]
        for table in TABLES:
            compared, is_whole = ComparedRows(ids), True
            for file in head.periods(table):
                found = parquet_file.opened(asked, file, table)
                if not isinstance(found, OpenedFile):
                    is_whole = False
                    yield from [found] if found else []
                    continue
                yield from parquet_file.withdrawn(asked, found)
                yield from _of_file(file, found, compared)
            for detail in parquet_file.details(asked, [*compared.rows] if is_whole else []):
                yield from _unlike_detail(asked, head, table, detail, compared.rows[detail.market.id])


class ComparedRows:
    """The rows of the markets (ids) to compare."""

    def __init__(self, ids: Iterable[str]) -> None:
        self.rows: dict[str, list[_Row]] = {market_id: [] for market_id in ids}
        self._count = 0

    def add(self, row: _Row) -> None:
        """Take a row, unless its market is not compared, or has too many."""
        held = self.rows.get(row[parquet.OWNER])
        if held is None:
            return
        held.append(row)
        self._count += 1
        if self._count > MOST_ROWS:
            largest = max(self.rows, key=lambda market_id: len(self.rows[market_id]))
            self._count -= len(self.rows.pop(largest))


def _of_file(file: PeriodFile, found: OpenedFile, compared: ComparedRows) -> Iterator[Mismatch]:
    """Add the rows of these markets; tell of one of another period."""
    try:
        for row in map(from_json, parquet.rows(found.body, found.ids & compared.rows.keys())):
            if not row["timestamp"].startswith(file.period):
                text = f"has a row of {row['timestamp']:.30}, which is not in {file.period}"
                yield Mismatch(Verdict.WRONG, found.target, text)
                return
            compared.add(row)
    except ValueError as error:
        yield parquet_file.unreadable(found.target, error)


def _unlike_detail(
    asked: Inquiry, head: DumpHead, table: str, detail: PublicMarketDetail, rows: Sequence[_Row]
) -> Iterator[Mismatch]:
    """Tell if a market's rows are not those of which its detail shows some: all of a time that the detail covers."""
    shown = [_plain(row) for row in from_json(contract.encode(detail))[_PROPERTIES[table]]]
    stored = sorted(map(_plain, rows), key=lambda row: (row.timestamp, row.id))
    all_shown, all_stored = {*shown}, {*stored}
    is_of_build = head.history_as_of == asked.site.build.as_of
    since = head.history_as_of or ""
    known = [row for row in shown if is_of_build or row.timestamp <= since]
    missing = [row for row in known if row not in all_stored]
    flaw = f"{missing[0].timestamp} is missing or differs" if missing else ""
    if not flaw and table == "fills":
        oldest = min((row.timestamp for row in shown), default="")
        more = [row for row in stored if row.timestamp > oldest and row not in all_shown]
        flaw = f"{more[0].timestamp} is not in the detail" if more and is_of_build else ""
        flaw = flaw or ("a trade is there twice" if len({row.id for row in stored}) < len(stored) else "")
    elif (
        not flaw
        and is_of_build
        and [row.timestamp for row in (*stored[:1], *stored[-1:])]
        != [row.timestamp for row in (*shown[:1], *shown[-1:])]
    ):
        flaw = "they begin or end at another time"
    if flaw:
        verdict = Verdict.WRONG if is_of_build else Verdict.STALE
        text = f"its rows of market {detail.market.id} in {table} differ: {flaw}; the files are as of {since}"
        yield Mismatch(verdict, f"/{keys.head(keys.DUMPS)}", text)


class _PlainRow(NamedTuple):
    """A row without its market, as both sides write it; a point has no id."""

    timestamp: str
    id: str
    values: tuple[tuple[str, Any], ...]


def _plain(row: _Row) -> _PlainRow:
    time = row["timestamp"]
    full = time if "." in time else time.replace("Z", ".000Z")
    values = {name: value for name, value in row.items() if name not in _NO_VALUES and value is not None}
    return _PlainRow(full, row.get("id", ""), tuple(sorted(values.items())))
