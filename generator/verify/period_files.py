"""The files of tables: only of listed markets, and those of sampled markets lead to what their details show.

Candles and closes of these are made again, of the points and fills in the files; where there are no fills, candles are
those of points alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic_core import from_json

from generator.api import contract, downloads, keys
from generator.api.columns import OWNER
from generator.api.contract import PublicMarketDetail
from generator.api.downloads import CLOSES, FILLS, HISTORY, RAW, DumpHead, PeriodFile
from generator.downloads import derivation, parquet, periods, records
from generator.downloads.derivation import Grouped
from generator.verify import parquet_file
from generator.verify.budget import drawn
from generator.verify.inquiry import Inquiry
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.parquet_file import OpenedFile

_Row: TypeAlias = Mapping[str, Any]
#: The time of a point or fill, then the columns of it that candles and closes are made of.
_Source: TypeAlias = tuple[Any, ...]

#: How many markets are compared at most: all their rows of one table are in memory, and short ones of two more.
MOST_COMPARED: Final = 10_000
#: Rows in memory of one table; if there are more, the markets that were drawn last are not compared.
MOST_ROWS: Final = 500_000
#: What a plain row has beside its values.
_NO_VALUES: Final = (OWNER, "id", *records.TIMES.values())
_SECONDS: Final = len("2026-10-31T12:00:00Z")
_NEVER: Final = "9999-12-31T23:59:59.999Z"
#: The property of a detail that shows some rows of each table.
_PROPERTIES: Final = {"history": "probHistory", "fills": "recentFills"}
#: The columns besides the time that candles and closes are made of.
_MADE_OF: Final = {"history": ("prob",), "fills": ("id", "amount")}


@dataclass(frozen=True)
class PeriodFilesCheck:
    """The files of tables; the rows of markets are compared with details, so many `most`; without, with all.

    Which ones, the `seed` tells.
    """

    seed: int
    most_details: int | None

    def __call__(self, asked: Inquiry, head: DumpHead) -> Iterator[Mismatch]:
        """Compare digests, columns and rows: of all tables with each other, and some with details."""
        rng, sources = Random(self.seed), dict[str, dict[str, list[_Source]]]()  # noqa: S311 - which ones is no secret
        ids = drawn(rng, [[market.id for market in asked.site.catalog.listed()]], MOST_COMPARED)
        held: Iterable[PublicMarketDetail | Mismatch] = ()
        for table in downloads.tables(fills=head.has_fills):
            compared, is_whole = ComparedRows(ids), True
            for file in head.table(table):
                found = parquet_file.opened(asked, file, table)
                if not isinstance(found, OpenedFile):
                    is_whole = False
                    yield from [found] if found else []
                    continue
                yield from parquet_file.withdrawn(asked, found)
                flaws = [*_of_file(file, found, compared, records.TIMES[table])]
                is_whole = is_whole and not flaws
                yield from flaws
            if not is_whole:
                continue
            if table in RAW:
                if self.most_details is None or not held:
                    held = parquet_file.details(asked, self._chosen(rng, asked, compared.rows))
                # All details may be too many for memory; some are asked for once for both tables.
                held = held if self.most_details is None else [*held]
                yield from _unlike_details(asked, head, table, held, compared.rows)
                sources[table] = {key: _sources(table, rows) for key, rows in compared.rows.items()}
            elif HISTORY in sources and (FILLS in sources or not head.has_fills):
                for market_id in sorted(set(compared.rows).intersection(*sources.values())):
                    made_of = {name: sources.get(name, {}).get(market_id, ()) for name in RAW}
                    rows = _MarketRows(market_id, compared.rows[market_id], made_of)
                    yield from _unlike_made(asked, head, table, rows)

    def _chosen(self, rng: Random, asked: Inquiry, rows: Mapping[str, Sequence[_Row]]) -> list[str]:
        """The markets whose details are asked for: in turn one traded today, and one with rows; or all."""
        if self.most_details is None:
            return [*rows]
        traded = [one for one in rows if asked.site.markets[one]["fills24h"]]
        return drawn(rng, [traded, [one for one in rows if rows[one]]], self.most_details)


class _MarketRows(NamedTuple):
    """The rows of a market in a table of candles or closes, as they are stored, and what they are made of."""

    market_id: str
    stored: Sequence[_Row]
    made_of: Mapping[str, Sequence[_Source]]


class ComparedRows:
    """The rows of the markets (ids) to compare: `most` of them, those of the first markets.

    One that has more than half as many gives way, too, or there might be no other.
    """

    def __init__(self, ids: Iterable[str], most: int = MOST_ROWS) -> None:
        self._most = most
        self.rows: dict[str, list[_Row]] = {market_id: [] for market_id in ids}
        self._count = 0

    def add(self, row: _Row) -> None:
        """Take a row, unless its market is not compared, or has too many."""
        held = self.rows.get(row[OWNER])
        if held is None:
            return
        held.append(row)
        self._count += 1
        while self._count > self._most:
            left_out = row[OWNER] if len(held) > self._most // 2 else next(reversed(self.rows))
            self._count -= len(self.rows.pop(left_out))


def _of_file(file: PeriodFile, found: OpenedFile, compared: ComparedRows, time: str) -> Iterator[Mismatch]:
    """Add the rows of these markets; tell of one of another period. `time` is the column with the time of a row."""
    try:
        for row in map(from_json, parquet.rows(found.body, found.ids & compared.rows.keys())):
            if not row[time].startswith(file.period):
                text = f"has a row of {row[time]:.30}, which is not in {file.period}"
                yield Mismatch(Verdict.WRONG, found.target, text)
                return
            compared.add(row)
    except ValueError as error:
        yield parquet_file.unreadable(found.target, error)


def _unlike_details(
    asked: Inquiry,
    head: DumpHead,
    table: str,
    details: Iterable[PublicMarketDetail | Mismatch],
    rows: Mapping[str, Sequence[_Row]],
) -> Iterator[Mismatch]:
    for detail in details:
        if isinstance(detail, Mismatch):
            yield detail
        elif detail.market.id in rows:
            yield from _unlike_detail(asked, head, table, detail, rows[detail.market.id])


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


def _sources(table: str, rows: Iterable[_Row]) -> list[_Source]:
    """What candles and closes are made of: the time of each point or fill and these of its values, in order."""
    return sorted((_in_full(row["timestamp"]), *(row[name] for name in _MADE_OF[table])) for row in rows)


def _unlike_made(asked: Inquiry, head: DumpHead, table: str, rows: _MarketRows) -> Iterator[Mismatch]:
    """Tell if a market's candles or its close are not those of its points and fills."""
    as_of, market_id = head.history_as_of or "", rows.market_id
    stored = sorted(map(_plain, rows.stored))
    market, closing = asked.site.markets.get(market_id), _NEVER
    if market and as_of == asked.site.build.as_of:
        closing = periods.closed_at(market["closeTime"], market["resolvedAt"])
    elif table == CLOSES and stored:  # the market may close at another instant by now
        closing = stored[0].timestamp
    raw = {
        name: Grouped.of_one(name, records.of(name, made_of, ("timestamp", *_MADE_OF[name])))
        for name, made_of in rows.made_of.items()
    }
    derived = derivation.derived(raw, [closing], as_of)[table]
    final = records.values(table, derived.rows[derivation.are_over(derived, as_of)])
    columns = parquet.columns_of(table, fills=head.has_fills).names
    found = (dict(zip(records.COLUMNS[table], row, strict=True)) for row in final)
    made = [_plain({name: value for name, value in row.items() if name in columns}) for row in found]
    if made != stored:
        times = {row.timestamp for row in {*made} ^ {*stored}}
        flaw = f"that of {min(times)} is not what its points and trades make" if times else "one is there twice"
        text = f"its rows of market {market_id} in {table} differ: {flaw}"
        yield Mismatch(Verdict.WRONG, f"/{keys.head(keys.DUMPS)}", text)


class _PlainRow(NamedTuple):
    """A row without its market, as both sides write it; only a fill has an id."""

    timestamp: str
    id: str
    values: tuple[tuple[str, Any], ...]


def _plain(row: _Row) -> _PlainRow:
    time = next(row[name] for name in records.TIMES.values() if name in row)
    values = {name: value for name, value in row.items() if name not in _NO_VALUES and value is not None}
    return _PlainRow(_in_full(time), row.get("id", ""), tuple(sorted(values.items())))


def _in_full(time: str) -> str:
    """A time with its milliseconds, which Arrow leaves out if there are none."""
    return time if len(time) > _SECONDS else time.replace("Z", ".000Z")
