"""Details put aside, range by range, by several processes that read one instant, or by one where that cannot be."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from generator.builder import artifacts
from generator.builder.inspection.excerpts import Excerpts
from generator.config.settings import Config
from generator.errors import SourceError
from generator.markets import detail
from generator.markets.catalog import Catalog
from generator.markets.quarantine import Quarantine
from generator.source.queries import Range
from generator.source.reader import Reader, open_reader
from generator.tree.folder import Output
from generator.tree.staging import Staged

#: Ranges to share out. It bounds the connections, too: each process that reads has one of its own.
_RANGES: Final = 8
#: A process of its own, with a connection, must be worth it.
_LEAST: Final = 50


@dataclass
class StagedRange:
    """The details of a range of markets, put aside; what was rejected on the way, and excerpts for the inspection."""

    within: Range
    staged: Staged = field(default_factory=Staged)
    quarantine: Quarantine = field(default_factory=Quarantine)
    excerpts: list[bytes] = field(default_factory=list)


class Details:
    """Stages the details of a catalog. Those in `ranges` are for workers, which are forked from here."""

    def __init__(self, config: Config, folder: Output, catalog: Catalog, excerpts: Excerpts, reader: Reader) -> None:
        self._config = config
        self._folder = folder
        self._catalog = catalog
        self._readings = excerpts
        self._reader = reader
        self._in_order = reader.ranges(min(_RANGES, -(-len(catalog.markets) // _LEAST)))
        self._instant = reader.instant() if len(self._in_order) > 1 else None
        self._own: Reader | None = None
        self._opened = ExitStack()

    def count(self) -> int:
        """How many ranges there are, for workers or not."""
        return len(self._in_order)

    def ranges(self) -> list[Range]:
        """What workers can read, each on a connection of its own; nothing where they would see another instant."""
        return self._in_order if self._instant else []

    def stage_apart(self, within: Range) -> StagedRange | Range:
        """Stage a range in a worker. The range itself comes back if the database lets nobody else in."""
        if self._own is None:
            try:
                reader = open_reader(self._config, Quarantine(), self._instant)
                self._own = self._opened.enter_context(reader)
            except SourceError:
                return within
        return self._stage(self._own, within)

    def close(self) -> None:
        """End what a worker opened."""
        self._opened.close()

    def stage_rest(self, staged: Iterable[StagedRange]) -> Iterator[StagedRange]:
        """Stage here what no worker has staged."""
        known = [one.within for one in staged]
        for within in self._in_order:
            if within not in known:
                yield self._stage(self._reader, within)

    def _stage(self, reader: Reader, within: Range) -> StagedRange:
        made = StagedRange(within)
        for shown in reader.details(self._catalog, within):
            read = detail.from_rows(shown, self._config, made.quarantine)
            for artifact in artifacts.market_detail(read):
                made.staged.put(self._folder, artifact)
            made.excerpts += self._readings.taken(read)
        return made

    def in_order(self, ranges: Iterable[StagedRange]) -> list[StagedRange]:
        """In the order of the database, whoever was first."""
        return sorted(ranges, key=lambda one: self._in_order.index(one.within))
