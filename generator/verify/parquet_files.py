"""The Parquet files of a dump: their markets are those of the dump, their histories and fills those of details."""

import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias

from pydantic_core import from_json

from generator.api import contract, keys
from generator.api.contract import PublicMarketDetail
from generator.api.downloads import TABLES, DumpFile
from generator.downloads import parquet
from generator.errors import ConfigError
from generator.verify.answers import not_ok, parsed
from generator.verify.expected import is_file
from generator.verify.inquiry import Inquiry, unlike
from generator.verify.mismatches import Mismatch, Verdict
from generator.wording import counted

_Rows: TypeAlias = Sequence[Mapping[str, Any]]

#: How many details are held in memory at a time.
_AT_ONCE: Final = 200


class _Opened(NamedTuple):
    """A file that can be read, and the markets that it has rows of."""

    target: str
    body: BinaryIO
    ids: set[str]


@dataclass(frozen=True)
class ParquetCheck:
    """The files that the head of the dump names; the histories and fills of these markets are those of their details.

    Rows are compared if the extra is installed; without it, digests must do.
    """

    ids: tuple[str, ...]

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare digests and rows."""
        head = asked.site.dump
        if head is None or head.parquet is None:
            return
        yield from _of_markets(asked, head.parquet)
        for table in TABLES:
            seen = set[str]()
            for file in head.table(table):
                found = _opened(asked, file)
                if isinstance(found, _Opened):
                    yield from self._of_table(asked, table, found, seen)
                    seen |= found.ids
                elif found:
                    yield found

    def _of_table(self, asked: Inquiry, table: str, file: _Opened, seen: set[str]) -> Iterator[Mismatch]:
        """Compare the rows of a file; `seen` are the markets of earlier ones of its table."""
        yield from _withdrawn(asked, file)
        again = min(file.ids & seen, default=None)
        if again:
            yield Mismatch(Verdict.WRONG, file.target, f"has rows of market {again}, as another file has")
        chosen = sorted(file.ids.intersection(self.ids))
        for start in range(0, len(chosen), _AT_ONCE):
            yield from _beside_details(asked, table, file, chosen[start : start + _AT_ONCE])


def _opened(asked: Inquiry, file: DumpFile) -> _Opened | Mismatch | None:
    """The file, or what is wrong with it; None if its digest is right, and its rows cannot be read for want of code."""
    answer = asked.reader.file(file.key, file.url, file.size)
    if answer.status != HTTPStatus.OK:
        return not_ok(answer)
    if not is_file(file, answer.body):
        return Mismatch(Verdict.WRONG, answer.target, "is not the file that the head of the dump names")
    body = io.BytesIO(answer.body)
    try:
        return _Opened(answer.target, body, parquet.ids(body))
    except ConfigError:
        return None
    except ValueError as error:
        return Mismatch(Verdict.WRONG, answer.target, str(error))


def _withdrawn(asked: Inquiry, file: _Opened) -> Iterator[Mismatch]:
    withdrawn = min(file.ids - asked.site.markets.keys(), default=None)
    if withdrawn:
        text = f"shows market {withdrawn}, which the dump does not have"
        yield Mismatch(Verdict.WITHDRAWN, file.target, text)


def _of_markets(asked: Inquiry, file: DumpFile) -> Iterator[Mismatch]:
    """Compare all markets with those of the dump, which are in the same order; only their addresses may be added."""
    found = _opened(asked, file)
    if not isinstance(found, _Opened):
        yield from [found] if found else []
        return
    withdrawn = [*_withdrawn(asked, found)]
    if withdrawn or len(found.ids) < len(asked.site.markets):
        text = f"has {counted(len(found.ids), 'market')}; the dump has {len(asked.site.markets)}"
        yield from withdrawn or [Mismatch(Verdict.WRONG, found.target, text)]
        return
    made = io.BytesIO()
    parquet.markets(made.write, map(contract.encode, asked.site.markets.values()), asked.site.build.variant)
    for shown, wanted in zip(_rows(found.body), _rows(made), strict=False):
        row = {name: value for name, value in shown.items() if name != parquet.URL}
        if row != wanted:
            text = f"market {wanted[parquet.MARKET]} {unlike(row, wanted, 'the dump')}"
            yield Mismatch(Verdict.WRONG, found.target, text)
            return


def _beside_details(asked: Inquiry, table: str, file: _Opened, ids: Sequence[str]) -> Iterator[Mismatch]:
    """Compare the rows of some markets with what the maker would write for their details."""
    details = {market_id: detail for market_id in ids if (detail := _detail(asked, market_id))}
    made = io.BytesIO()
    parquet.WRITERS[table](made.write, map(contract.encode, details.values()))
    shown, wanted = _by_market(_rows(file.body, ids)), _by_market(_rows(made))
    head, build = asked.site.dump, asked.site.build
    as_of = (head and head.history_as_of) or build.as_of
    for market_id, detail in details.items():
        flaw = _unlike_rows(shown[market_id], wanted[market_id], is_older=_last_change(detail) > as_of)
        if flaw:
            text = f"its rows of market {market_id} differ: {flaw}; the file is as of {as_of}"
            # An owner may have corrected what is past: then the file follows on the next day.
            yield Mismatch(Verdict.STALE if as_of < build.as_of else Verdict.WRONG, file.target, text)


def _detail(asked: Inquiry, market_id: str) -> PublicMarketDetail | None:
    """The detail of a market as it must be; None if there is none, of which its own check tells."""
    answer = asked.reader.get(f"{keys.MARKETS}/{market_id}")
    detail, _ = parsed(answer, PublicMarketDetail)
    is_right = detail and from_json(answer.body)["market"] == asked.site.markets.get(market_id)
    return detail if is_right else None


def _last_change(detail: PublicMarketDetail) -> str:
    fills, points = (fill.timestamp for fill in detail.recent_fills), (point.timestamp for point in detail.prob_history)
    return max((*fills, *points), default="")


def _unlike_rows(shown: _Rows, wanted: _Rows, *, is_older: bool) -> str:
    """How the rows of a market differ from those that its detail gives; empty if they do not.

    A detail that is newer than its rows has more, and may have lost some: then only fills of one id are compared, as a
    longer history is thinned anew.
    """
    if is_older:
        known = {row["id"]: row for row in wanted if "id" in row}
        pairs = [(row, known[row["id"]]) for row in shown if row.get("id") in known]
    elif len(shown) == len(wanted):
        pairs = [*zip(shown, wanted, strict=True)]
    else:
        return f"{counted(len(shown), 'row')}; its detail has {len(wanted)}"
    row, other = next((pair for pair in pairs if pair[0] != pair[1]), ({}, {}))
    return f"a row {unlike(row, other, 'its detail')}" if row else ""


def _rows(file: BinaryIO, ids: Sequence[str] | None = None) -> Iterator[Mapping[str, Any]]:
    return map(from_json, parquet.rows(file, ids))


def _by_market(rows: Iterable[Mapping[str, Any]]) -> Mapping[str, _Rows]:
    found = defaultdict[str, list[Mapping[str, Any]]](list)
    for row in rows:
        found[row[parquet.OWNER]].append(row)
    return found
