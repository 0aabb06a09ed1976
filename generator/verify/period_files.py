"""The files of full histories: only of listed markets, and those of sampled markets lead to what their details show."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

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
            rows, is_whole = defaultdict[str, list[_Row]](list), True
            for file in head.periods(table):
                found = parquet_file.opened(asked, file, table)
                if not isinstance(found, OpenedFile):
                    is_whole = False
                    yield from [found] if found else []
                    continue
                yield from parquet_file.withdrawn(asked, found)
                yield from _of_file(file, found, frozenset(ids), rows)
            for detail in parquet_file.details(asked, ids if is_whole else []):
                yield from _unlike_detail(asked, head, table, detail, rows[detail.market.id])


def _of_file(
    file: PeriodFile, found: OpenedFile, ids: frozenset[str], rows: defaultdict[str, list[_Row]]
) -> Iterator[Mismatch]:
    """Add the rows of these markets; tell of one of another period."""
    try:
        for row in map(from_json, parquet.rows(found.body, found.ids & ids)):
            if not row["timestamp"].startswith(file.period):
                text = f"has a row of {row['timestamp']:.30}, which is not in {file.period}"
                yield Mismatch(Verdict.WRONG, found.target, text)
                return
            rows[row[parquet.OWNER]].append(row)
    except ValueError as error:
        yield parquet_file.unreadable(found.target, error)


def _unlike_detail(
    asked: Inquiry, head: DumpHead, table: str, detail: PublicMarketDetail, rows: Sequence[_Row]
) -> Iterator[Mismatch]:
    """Tell if a market's rows are not those of which its detail shows some: all of a time that the detail covers."""
    shown = [_normal(row) for row in from_json(contract.encode(detail))[_PROPERTIES[table]]]
    stored = sorted((_normal(row) for row in rows), key=_place)
    is_of_build = head.history_as_of == asked.site.build.as_of
    since = head.history_as_of or ""
    known = [row for row in shown if is_of_build or row["timestamp"] <= since]
    missing = [row for row in known if row not in stored]
    flaw = f"{missing[0]['timestamp']} is missing or differs" if missing else ""
    if not flaw and table == "fills":
        oldest = min((row["timestamp"] for row in shown), default="")
        more = [row for row in stored if row["timestamp"] > oldest and row not in shown]
        flaw = f"{more[0]['timestamp']} is not in the detail" if more and is_of_build else ""
        flaw = flaw or ("a trade is there twice" if len({row["id"] for row in stored}) < len(stored) else "")
    elif (
        not flaw
        and is_of_build
        and [row["timestamp"] for row in (*stored[:1], *stored[-1:])]
        != [row["timestamp"] for row in (*shown[:1], *shown[-1:])]
    ):
        flaw = "they begin or end at another time"
    if flaw:
        verdict = Verdict.WRONG if is_of_build else Verdict.STALE
        text = f"its rows of market {detail.market.id} in {table} differ: {flaw}; the files are as of {since}"
        yield Mismatch(verdict, f"/{keys.head(keys.DUMPS)}", text)


def _normal(row: _Row) -> dict[str, Any]:
    """The row without its market, as both sides write it."""
    time = row["timestamp"]
    full = time if "." in time else time.replace("Z", ".000Z")
    found = {name: value for name, value in row.items() if name != parquet.OWNER and value is not None}
    return {**found, "timestamp": full}


def _place(row: _Row) -> tuple[str, str]:
    return row["timestamp"], row.get("id", "")
