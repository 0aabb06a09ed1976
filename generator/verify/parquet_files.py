"""The Parquet files of a dump: their markets are those of the dump, their rows lead to what details show."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from random import Random
from typing import Any, BinaryIO

from pydantic_core import from_json

from generator.api import contract
from generator.api.columns import URL
from generator.api.downloads import DumpFile, DumpHead
from generator.api.links import Links
from generator.downloads import parquet
from generator.errors import ConfigError
from generator.verify import parquet_file
from generator.verify.budget import drawn
from generator.verify.inquiry import Inquiry, unlike
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.parquet_file import OpenedFile
from generator.wording import counted


@dataclass(frozen=True)
class ParquetCheck:
    """Files that the head of the dump names; the points and fills of some markets lead to what their details show.

    So many files and details `most`, drawn by the `seed`; without, all. Rows are compared if the extra is installed and
    all files may be read; if not, digests and markets of some files must do.
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
        if can_compare_rows(head, self.most_files):
            from generator.verify.period_files import PeriodFilesCheck  # noqa: PLC0415 - most sites need no NumPy

            yield from PeriodFilesCheck(self.seed, self.most_details)(asked, head)
            return
        by_key = {file.key: file for file in head.tables()}
        rng = Random(self.seed)  # noqa: S311 - which ones is no secret
        for file in (by_key[key] for key in drawn(rng, [by_key], self.most_files)):
            found = parquet_file.opened(asked, file, file.folder.rpartition("/")[0])
            if isinstance(found, OpenedFile):
                yield from parquet_file.withdrawn(asked, found)
            elif found:
                yield found


def can_compare_rows(head: DumpHead, most_files: int | None) -> bool:
    """Whether rows of so many files can be compared with details: there are some, and code to read them.

    Some files tell nothing of the others, so it takes all of them.
    """
    files = head.tables()
    if not files or (most_files is not None and len(files) > most_files):
        return False
    try:
        parquet.require()
    except ConfigError:
        return False
    return True


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
        row = {name: value for name, value in shown.items() if template or name != URL}
        if row != wanted:
            text = f"a row {unlike(row, wanted, 'the dump')}"
            yield Mismatch(Verdict.WRONG, file.target, text)
            return


def _rows(file: BinaryIO) -> Iterator[Mapping[str, Any]]:
    return map(from_json, parquet.rows(file))
