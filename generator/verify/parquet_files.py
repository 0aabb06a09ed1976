"""The Parquet files of a dump: their markets are those of the dump, their histories and fills those of details."""

import io
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from random import Random
from typing import Any, BinaryIO, Final, TypeAlias

from pydantic_core import from_json

from generator.api import contract, keys
from generator.api.contract import PublicMarketDetail
from generator.api.downloads import THINNED, DumpFile, DumpHead, PartitionFile
from generator.api.links import Links
from generator.downloads import parquet, partitions
from generator.errors import ConfigError
from generator.verify import parquet_file
from generator.verify.budget import drawn
from generator.verify.inquiry import Inquiry, unlike
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.parquet_file import OpenedFile
from generator.wording import counted

_Rows: TypeAlias = Sequence[Mapping[str, Any]]

#: How many details are held in memory at a time.
_AT_ONCE: Final = 200
#: The property of a detail that each table is made of.
_PROPERTIES: Final = {"history": "prob_history", "fills": "recent_fills"}


@dataclass(frozen=True)
class ParquetCheck:
    """Files that the head of the dump names; the histories and fills of some markets are those of their details.

    So many files and details `most`, drawn by the `seed`; without, all. Rows are compared if the extra is installed;
    without it, digests must do.
    """

    seed: int
    most_files: int | None = None
    most_details: int | None = None

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare digests and rows."""
        head = asked.site.dump
        if head is None or head.parquet is None:
            return
        yield from _of_markets(asked, head.parquet)
        if any(map(head.periods, THINNED)):
            yield from self._of_periods(asked, head)
            return
        folders, rng = _partitions(head), Random(self.seed)  # noqa: S311 - which ones is no secret
        most = None if self.most_files is None else max(1, self.most_files // len(THINNED))
        chosen = drawn(rng, [folders], most)
        seen: dict[str, set[str]] = {table: set() for table in THINNED}
        unread = set[str]()
        for folder in chosen:
            opened = dict[str, OpenedFile]()
            for table, file in folders[folder].items():
                found = parquet_file.opened(asked, file, table)
                if isinstance(found, OpenedFile):
                    opened[table] = found
                    yield from _of_file(asked, found, seen[table])
                else:
                    unread.add(table)
                    yield from [found] if found else []
            # Only markets with rows can tell whether these are right, and fewest have fills.
            groups = [file.ids & asked.site.markets.keys() for file in opened.values()]
            ids = drawn(rng, sorted(groups, key=len), self._each(len(chosen)))
            yield from _beside_details(asked, head, opened, ids)
        whole = {table: ids for table, ids in seen.items() if table not in unread}
        unseen = [one for one in _of_folders(asked, folders, chosen) if any(one not in ids for ids in whole.values())]
        yield from _missing(asked, head, whole, drawn(rng, [unseen], self.most_details and 1 + self.most_details // 4))

    def _each(self, partitions: int) -> int | None:
        """How many details of each of so many partitions are compared; None for all."""
        return None if self.most_details is None else max(1, self.most_details * 3 // 4 // max(1, partitions))

    def _of_periods(self, asked: Inquiry, head: DumpHead) -> Iterator[Mismatch]:
        """Compare full histories: their digests, markets and rows.

        Without their rows, digests and markets of some files.
        """
        if not can_compare_rows(head, self.most_files):
            by_key = {file.key: file for file in head.tables()}
            rng = Random(self.seed)  # noqa: S311 - which ones is no secret
            for file in (by_key[key] for key in drawn(rng, [by_key], self.most_files)):
                found = parquet_file.opened(asked, file, file.folder.rpartition("/")[0])
                if isinstance(found, OpenedFile):
                    yield from parquet_file.withdrawn(asked, found)
                elif found:
                    yield found
            return
        from generator.verify.period_files import PeriodFilesCheck  # noqa: PLC0415 - most sites need no NumPy

        yield from PeriodFilesCheck(self.seed, self.most_details)(asked, head)


def can_compare_rows(head: DumpHead, most_files: int | None) -> bool:
    """Whether rows of so many files can be compared with details: there are some, and code to read them.

    Some files of full histories tell nothing of the others, so it takes all of them.
    """
    files, is_full = head.tables(), any(map(head.periods, THINNED))
    if not files or (is_full and most_files is not None and len(files) > most_files):
        return False
    try:
        parquet.require(is_full=is_full)
    except ConfigError:
        return False
    return True


def _partitions(head: DumpHead) -> dict[str, dict[str, PartitionFile]]:
    """The files of each partition of markets by table, by the partition's folder."""
    found = defaultdict[str, dict[str, PartitionFile]](dict)
    for table in THINNED:
        for file in head.partitions(table):
            found[file.folder.partition("/")[2]][table] = file
    return found


def _of_folders(asked: Inquiry, there: Container[str], chosen: Collection[str]) -> Iterator[str]:
    """The ids of markets whose partition is one of those that are chosen, or is not there, as it should be."""
    for market in asked.site.catalog.listed():
        folder = partitions.partition(market)
        if folder in chosen or folder not in there:
            yield market.id


def _beside_details(
    asked: Inquiry, head: DumpHead, opened: Mapping[str, OpenedFile], ids: Sequence[str]
) -> Iterator[Mismatch]:
    """Compare the rows of a partition's files with what the maker would write for the details of these markets."""
    for start in range(0, len(ids), _AT_ONCE):
        details = list[PublicMarketDetail]()
        for detail in parquet_file.details(asked, sorted(ids[start : start + _AT_ONCE])):
            if isinstance(detail, Mismatch):
                yield detail
            else:
                details.append(detail)
        for table, file in opened.items():
            yield from _unlike_details(asked, head, table, file, sorted(details, key=lambda one: one.market.id))


def _missing(asked: Inquiry, head: DumpHead, seen: Mapping[str, set[str]], ids: Sequence[str]) -> Iterator[Mismatch]:
    """Tell of details of these markets whose points or fills are in no file, if the files are of this build."""
    if head.history_as_of != asked.site.build.as_of:
        return
    for detail in parquet_file.details(asked, ids):
        if isinstance(detail, Mismatch):
            yield detail
            continue
        for table, seen_ids in seen.items():
            if detail.market.id not in seen_ids and getattr(detail, _PROPERTIES[table]):
                text = f"names no file of {table} that has market {detail.market.id}, though its detail has some"
                yield Mismatch(Verdict.WRONG, f"/{keys.head(keys.DUMPS)}", text)


def _of_file(asked: Inquiry, file: OpenedFile, seen: set[str]) -> Iterator[Mismatch]:
    """Tell of markets that the file must not have: withdrawn ones, and those `seen` in other files of its table."""
    yield from parquet_file.withdrawn(asked, file)
    for market_id in sorted(file.ids & seen)[:1]:
        yield Mismatch(Verdict.WRONG, file.target, f"has rows of market {market_id}, as another file has")
    seen |= file.ids


def _of_markets(asked: Inquiry, file: DumpFile) -> Iterator[Mismatch]:
    """Compare all markets with those of the dump, which are in the same order."""
    found = parquet_file.opened(asked, file)
    if not isinstance(found, OpenedFile):
        yield from [found] if found else []
        return
    withdrawn = [*parquet_file.withdrawn(asked, found)]
    if withdrawn or len(found.ids) < len(asked.site.markets):
        text = f"has {counted(len(found.ids), 'market')}; the dump has {len(asked.site.markets)}"
        yield from withdrawn or [Mismatch(Verdict.WRONG, found.target, text)]
        return
    try:
        yield from _unlike_dump(asked, found)
    except ValueError as error:
        yield parquet_file.unreadable(found.target, error)


def _unlike_dump(asked: Inquiry, file: OpenedFile) -> Iterator[Mismatch]:
    template, slugs = asked.site.offers.market_url, {one["id"]: one.get("slug") for one in asked.site.markets.values()}
    links, made = Links.to(template), io.BytesIO()
    lines = map(contract.encode, asked.site.markets.values())
    parquet.markets(
        made.write, lines, asked.site.build.variant,
        (lambda market_id: links.of(market_id, slugs[market_id])) if template else None,
    )  # fmt: skip
    for shown, wanted in zip_longest(_rows(file.body), _rows(made), fillvalue=dict[str, Any]()):
        # Addresses by a key of the operator's own are nowhere else.
        row = {name: value for name, value in shown.items() if template or name != parquet.URL}
        if row != wanted:
            text = f"a row {unlike(row, wanted, 'the dump')}"
            yield Mismatch(Verdict.WRONG, file.target, text)
            return


def _unlike_details(
    asked: Inquiry, head: DumpHead, table: str, file: OpenedFile, details: Sequence[PublicMarketDetail]
) -> Iterator[Mismatch]:
    """Compare the rows that a file has of these markets with what the maker would write for their details."""
    made = io.BytesIO()
    parquet.WRITERS[table](made.write, map(contract.encode, details))
    build, as_of = asked.site.build, head.history_as_of
    try:
        shown = _by_market(_rows(file.body, sorted(detail.market.id for detail in details)))
    except ValueError as error:
        yield parquet_file.unreadable(file.target, error)
        return
    wanted = _by_market(_rows(made))
    for market_id, rows in shown.items():
        flaw = _unlike_rows(rows, wanted[market_id], are_of_one_build=as_of == build.as_of)
        if flaw:
            text = f"its rows of market {market_id} differ: {flaw}; the file is as of {as_of}"
            # An owner may have corrected what is past: then the file follows on the next day.
            yield Mismatch(Verdict.WRONG if as_of == build.as_of else Verdict.STALE, file.target, text)


def _unlike_rows(shown: _Rows, wanted: _Rows, *, are_of_one_build: bool) -> str:
    """How the rows of a market differ from those that its detail gives; empty if they do not.

    A later detail may have more fills, have lost the oldest, and have a history that is thinned anew: then only fills
    that both have are compared.
    """
    if not are_of_one_build:
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


def _by_market(rows: Iterable[Mapping[str, Any]]) -> defaultdict[str, list[Mapping[str, Any]]]:
    found = defaultdict[str, list[Mapping[str, Any]]](list)
    for row in rows:
        found[row[parquet.OWNER]].append(row)
    return found
