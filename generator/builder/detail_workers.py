"""Stages details range by range, in workers that read the same instant, or in one process where that is impossible."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Final

from generator.builder.detail_staging import StagedRange, Stager
from generator.config.settings import Config
from generator.errors import SourceError
from generator.markets.catalog import Catalog
from generator.markets.quarantine import Quarantine
from generator.source.queries import Range
from generator.source.reader import Reader, open_reader

#: The most ranges, and so the most workers that read. Each has a connection of its own, besides the build's.
RANGES: Final = 8
#: Markets that make a range worth a worker and a connection.
LEAST: Final = 50


class _NoConnectionError(Exception):
    """The database accepts no more connections."""


class Details:
    """Stages the details of a catalog; workers forked from this process may stage those in `ranges`."""

    def __init__(self, config: Config, catalog: Catalog, reader: Reader, stager: Stager) -> None:
        self._config = config
        self._reader = reader
        self._stager = stager
        public = catalog.by_id()
        self._markets = {
            within: {spelled: public[spelled.lower()] for spelled in ids if spelled.lower() in public}
            for within, ids in reader.ranges(min(RANGES, -(-len(catalog.markets) // LEAST))).items()
        }
        self._in_order = [*self._markets]
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
        try:
            return self._stager.stage(within, self._markets[within], self._own_reader)
        except _NoConnectionError:
            return within

    def _own_reader(self) -> Reader:
        """The worker's reader; connects when it is first asked for."""
        if self._own is None:
            try:
                reader = open_reader(self._config, Quarantine(), self._instant)
                self._own = self._opened.enter_context(reader)
            except SourceError as error:
                raise _NoConnectionError from error
        return self._own

    def close(self) -> None:
        """Close the worker's connection."""
        self._opened.close()

    def stage_rest(self, staged: Iterable[StagedRange]) -> Iterator[StagedRange]:
        """Stage in this process what no worker has staged."""
        known = [part.within for part in staged]
        for within in self._in_order:
            if within not in known:
                yield self._stager.stage(within, self._markets[within], lambda: self._reader)

    def in_order(self, ranges: Iterable[StagedRange]) -> list[StagedRange]:
        """Sort by the order of the database."""
        return sorted(ranges, key=lambda part: self._in_order.index(part.within))
