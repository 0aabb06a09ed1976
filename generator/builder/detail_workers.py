"""Stages details range by range, in workers that read the same instant, or in one process where that is impossible."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from generator.builder import artifacts, notices
from generator.builder.inspection.excerpts import Excerpts
from generator.builder.notices import Remark
from generator.config.settings import Config
from generator.errors import SourceError
from generator.markets import detail
from generator.markets.catalog import Catalog
from generator.markets.quarantine import Quarantine
from generator.source.queries import Range
from generator.source.reader import Reader, open_reader
from generator.tree.folder import Output
from generator.tree.staging import Staged

#: The most ranges, and so the most workers that read. Each has a connection of its own, besides the build's.
RANGES: Final = 8
#: Markets that make a range worth a worker and a connection.
LEAST: Final = 50


@dataclass
class StagedRange:
    """The staged details of a range of markets, findings about rows, and excerpts for the inspection page."""

    within: Range
    staged: Staged = field(default_factory=Staged)
    quarantine: Quarantine = field(default_factory=Quarantine)
    remarks: list[Remark] = field(default_factory=list)
    excerpts: list[bytes] = field(default_factory=list)


class Details:
    """Stages the details of a catalog; workers forked from this process may stage those in `ranges`."""

    def __init__(self, config: Config, folder: Output, catalog: Catalog, excerpts: Excerpts, reader: Reader) -> None:
        self._config = config
        self._folder = folder
        self._catalog = catalog
        self._excerpts = excerpts
        self._reader = reader
        self._in_order = reader.ranges(min(RANGES, -(-len(catalog.markets) // LEAST)))
        self._instant = reader.instant() if len(self._in_order) > 1 else None
        self._own: Reader | None = None
        self._opened = ExitStack()

    def count(self) -> int:
        """The number of ranges, whether workers can read them or not."""
        return len(self._in_order)

    def ranges(self) -> list[Range]:
        """The ranges that workers can read; none where their connections would see another instant."""
        return self._in_order if self._instant else []

    def stage_in_worker(self, within: Range) -> StagedRange | Range:
        """Stage a range in a worker; return the range itself if the database accepts no more connections."""
        if self._own is None:
            try:
                reader = open_reader(self._config, Quarantine(), self._instant)
                self._own = self._opened.enter_context(reader)
            except SourceError:
                return within
        return self._stage(self._own, within)

    def close(self) -> None:
        """Close the worker's connection."""
        self._opened.close()

    def stage_rest(self, staged: Iterable[StagedRange]) -> Iterator[StagedRange]:
        """Stage in this process what no worker has staged."""
        known = [part.within for part in staged]
        for within in self._in_order:
            if within not in known:
                yield self._stage(self._reader, within)

    def _stage(self, reader: Reader, within: Range) -> StagedRange:
        made, latest = StagedRange(within), notices.latest_time(self._catalog.as_of)
        for shown in reader.details(self._catalog, within):
            read = detail.from_rows(shown, self._config, made.quarantine)
            for artifact in artifacts.market_detail(read):
                made.staged.put(self._folder, artifact)
            made.remarks += notices.of_detail(read, latest)
            made.excerpts += self._excerpts.taken(read)
        return made

    def in_order(self, ranges: Iterable[StagedRange]) -> list[StagedRange]:
        """Sort by the order of the database."""
        return sorted(ranges, key=lambda part: self._in_order.index(part.within))
