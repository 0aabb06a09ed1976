"""Makes the Parquet files of a dump: markets with each new dump; once a day points, candles and closes, and fills.

Those of tables are divided by the month of the row, then by its year. Once a day, new rows are added: of the running
month in a part of their own, while parts are few, and of the past to the file of their period. Hours are dropped in
whole months. Which rows are new, a build knows by the entries of `HistoryState`; without it, or if files are not those
that it describes or one is damaged, all are made again. A market that is no longer listed leaves the files at once.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

from generator.api import downloads
from generator.api.downloads import FIELDS, DumpHead, MarketsFile, PeriodFile
from generator.api.licensing import Licensing
from generator.api.links import Links
from generator.config.settings import Config
from generator.downloads import dump, parquet, periods, records
from generator.downloads.histories import LaterRow, NewHistories, SpoolSegment
from generator.downloads.records import Records
from generator.downloads.side_file import HistoryState
from generator.errors import DamageError
from generator.models import replaced
from generator.site import download_files
from generator.site.catalog import Catalog, Listed
from generator.site.download_files import NewFiles

#: Parts of a running month; more are put together. So five years take a reader of everything fewer than 150 requests.
MOST_PARTS: Final = 8
#: Bytes of the files that are put together, at most: a file is uploaded in one request, which lasts 70 s.
MOST_BYTES: Final = 64_000_000
_PIECE: Final = 1 << 18
_FIRST_MONTH: Final = "-01"
_LAST_MONTH: Final = "-12"


class _Source(NamedTuple):
    """Rows in order, in pieces, and the months that they begin and end with at most."""

    first: str
    last: str
    rows: Iterable[Records]


@dataclass(frozen=True)
class ParquetFiles:
    """Makes the files for the `listed` markets; `before` is the head in place.

    `known` are the digests of what files of all markets have besides, by the names of these; `is_anew`: no such file
    in place is believed. `damaged` receives the names of files that a withdrawal cannot read: they are left out, and
    all are made again by the next build of new rows, which never begins with damaged files.
    """

    files: NewFiles
    config: Config
    listed: Listed
    before: DumpHead | None
    known: Mapping[str, str]
    is_anew: bool = False
    damaged: set[str] = field(default_factory=set)

    @cached_property
    def _stated(self) -> str:
        return Licensing.of(self.config).stated()

    @property
    def has_fills(self) -> bool:
        """Whether there are trades in the files: those in place stay as they are until all are made again."""
        before = self.before if self.listed.details.histories is None else None
        return before.has_fills if before else self.config.has_fills

    def with_markets(self, head: DumpHead) -> tuple[DumpHead, dict[str, str]]:
        """The head with the file of all markets, and by its name a digest of what that has besides, if anything."""
        links = self.listed.catalog.links(self.config.market_url)
        digest = _digest(links.digest(self.listed.ids), self._stated)
        before = self.before.parquet if self.before and self.before.state == head.state else None
        is_same = before and not self.is_anew and self.known.get(before.name, "") == digest
        if before and is_same and self.files.folder.has(before.key):
            made = before.served_from(self.config.files_url)
        else:
            made = self._markets(head, _urls(self.listed.catalog, links))
        return replaced(head, markets=[head.ndjson, made]), {made.name: digest} if digest else {}

    def _markets(self, head: DumpHead, url_of: Callable[[str], str | None] | None) -> MarketsFile:
        with self.files.opened(head.ndjson) as ndjson:
            lines = dump.lines(iter(lambda: ndjson.read(_PIECE), b""))
            draft = self.files.draft(
                lambda write: parquet.markets(write, lines, self.config.variant, url_of, self._stated)
            )
        return self.files.stage(draft, MarketsFile.of(draft.content, self.config.files_url, "parquet"))

    def histories(self, state: HistoryState | None) -> tuple[dict[str, Any], HistoryState | None]:
        """The properties of the head, and the state of these files; `state` is that of the files in place."""
        known = state if download_files.are_of(state, self.before, self.files.folder) else None
        new, gone = self.listed.details.histories, self._gone(known)
        if new is None and (self.before is None or self.before.history_as_of is None):
            return {}, None  # they are none that this version can go on from
        if new is None:
            tables = {table: [*self._without(self._before(table), gone)] for table in self._tables}
        else:
            leaving = gone.union(new.replaced)
            due = self._due(known, new)
            tables = {table: [*self._with_new(table, new, due, leaving)] for table in self._tables}
        last = self.before.history_as_of if self.before else None
        is_same = all(_names(tables.get(table, ())) == _names(self._before(table)) for table in downloads.TABLES)
        as_of = last if last and (is_same or new is None) else self.listed.as_of
        fields = {FIELDS[table]: files for table, files in tables.items()}
        return {**fields, "history_as_of": as_of}, self._state(known, tables)

    @property
    def _tables(self) -> tuple[str, ...]:
        return downloads.tables(fills=self.has_fills)

    def _gone(self, known: HistoryState | None) -> frozenset[str]:
        """The markets that the files in place may have, and the new ones must not."""
        takedown = self.listed.details.takedown
        taken_down = takedown.gone if takedown else frozenset[str]()
        held = {key for key, entry in known.markets.items() if not entry.is_member} if known else frozenset[str]()
        return taken_down.union(held - frozenset(self.listed.ids))

    def _state(self, known: HistoryState | None, tables: Mapping[str, Sequence[PeriodFile]]) -> HistoryState | None:
        """What the files hold now; None if that is not known, so that all are made again."""
        new = self.listed.details.histories
        if self.damaged or (known is None and (new is None or not new.is_first)):
            return None
        before = known.markets if known and not (new and new.is_first) else {}
        entries = {**before, **(new.entries if new else {})}
        listed, shown = frozenset(self.listed.ids), self.listed.catalog.ids()
        as_of = known.as_of if known and new is None else self.listed.as_of
        return HistoryState(
            as_of=as_of,
            tables=self._tables,
            stated=self._stated,
            files=tuple(name for table in self._tables for name in _names(tables[table])),
            markets={
                key: entry.as_of(as_of)
                for key, entry in sorted(entries.items())
                if key in (shown if entry.is_member else listed)
            },
        )

    def _due(self, known: HistoryState | None, new: NewHistories) -> Mapping[tuple[str, str], Records]:
        """Rows that are over now, of markets that were not read or have the rows of before, by table and month."""
        found = defaultdict[tuple[str, str], list[tuple[str, LaterRow]]](list)
        if known is None or new.is_first:
            return {}
        for market_id in sorted(known.markets.keys() & frozenset(self.listed.ids)):
            held = known.markets[market_id]
            if new.entries.get(market_id, held)._replace(version=held.version) != held:
                continue  # whoever read it has passed them on
            for row in held.over(known.as_of, self.listed.as_of):
                found[row.table, row.time[: periods.MONTH]].append((market_id, row))
        return {(table, month): _rows(table, later) for (table, month), later in found.items()}

    def _before(self, table: str) -> Sequence[PeriodFile]:
        return self.before.table(table) if self.before else ()

    def _with_new(
        self, table: str, new: NewHistories, due: Mapping[tuple[str, str], Records], leaving: AbstractSet[str]
    ) -> Iterator[PeriodFile]:
        """The files of a table with the new rows and those that are due, and without those of markets that leave."""
        before = [] if new.is_first else self._before(table)
        years = {file.period for file in before}
        period_of: Callable[[str], str] = partial(periods.period, as_of=self.listed.as_of, years=years)
        since = ""
        if table == periods.HOURS:
            period_of, since = str, periods.hours_since(self.listed.as_of)
        files, added = defaultdict[str, list[PeriodFile]](list), defaultdict[str, list[_Source]](list)
        for file in before:
            files[period_of(file.period)].append(file)
        for month, source in self._sources(table, new, due):
            added[period_of(month)].append(source)
        for period in sorted({*files, *added}):
            if period >= since:
                yield from self._of_period(f"{table}/period={period}", files[period], added[period], leaving)

    def _sources(
        self, table: str, new: NewHistories, due: Mapping[tuple[str, str], Records]
    ) -> Iterator[tuple[str, _Source]]:
        """The new rows of a table, by month."""
        months = defaultdict[str, list[SpoolSegment]](list)
        for segment in new.segments:
            if segment.table == table:
                months[segment.month].append(segment)
        for month, segments in months.items():
            yield month, _Source(month, month, _spooled(segments))
        for (of_table, month), rows in due.items():
            if of_table == table:
                yield month, _Source(month, month, [rows])

    def _of_period(
        self,
        folder: str,
        files: Sequence[PeriodFile],
        new: Sequence[_Source],
        leaving: AbstractSet[str],
    ) -> Iterator[PeriodFile]:
        period = folder.partition("=")[2]
        has_parts = periods.is_running(period, self.listed.as_of) and len(files) + bool(new) <= MOST_PARTS
        joined = [] if has_parts else smallest(files)
        if not new and [file.period for file in joined] == [period]:
            joined = []
        yield from self._without([file for file in files if file not in joined], leaving)
        old = [_Source(*_months(file.period), self._rows(file, leaving)) for file in joined]
        yield from self._written(folder, [*old, *new])

    def _without(self, files: Iterable[PeriodFile], leaving: AbstractSet[str]) -> Iterator[PeriodFile]:
        """These files without the rows of markets that leave; a file without rows is none."""
        for file in files:
            if not self.files.folder.has(file.key):
                self.damaged.add(file.name)
                continue
            try:
                has_any = bool(leaving) and self._has_any(file, leaving)
                source = _Source(*_months(file.period), self._rows(file, leaving))
                yield from (
                    self._written(file.folder, [source]) if has_any else [file.served_from(self.config.files_url)]
                )
            except (DamageError, ValueError):
                self.damaged.add(file.name)

    def _written(self, folder: str, sources: Sequence[_Source]) -> Iterator[PeriodFile]:
        """A file with the rows of these sources, if they have any."""
        if not sources:
            return
        table = folder.rpartition("/")[0]
        draft = self.files.draft(
            lambda write: records.written(write, _in_order(table, sources), table, self._stated, fills=self.has_fills)
        )
        if draft.content.rows:
            yield self.files.stage(draft, PeriodFile.of(draft.content, self.config.files_url, folder))
        else:
            self.files.discard(draft)

    def _has_any(self, file: PeriodFile, ids: AbstractSet[str]) -> bool:
        with self.files.opened(file) as opened:
            return parquet.has_any(opened, ids)

    def _rows(self, file: PeriodFile, leaving: AbstractSet[str]) -> Iterator[Records]:
        with self.files.folder.open_newest(file.key) as opened:
            yield from records.read(opened, file.folder.rpartition("/")[0], leaving)


def smallest(files: Iterable[PeriodFile]) -> list[PeriodFile]:
    """As many of the smallest files as may be put together."""
    ascending = sorted(files, key=lambda file: file.size)
    sizes = accumulate(file.size for file in ascending)
    return [file for file, size in zip(ascending, sizes, strict=True) if size <= MOST_BYTES]


def _months(period: str) -> tuple[str, str]:
    """The first month of a period, and its last."""
    return (period, period) if len(period) == periods.MONTH else (period + _FIRST_MONTH, period + _LAST_MONTH)


def _rows(table: str, later: Iterable[tuple[str, LaterRow]]) -> Records:
    """The rows of these markets (ids)."""
    values = [(market_id, row.time, *row.values) for market_id, row in later]
    return records.in_order(table, records.of(table, values, (records.OWNER, *records.COLUMNS[table])))


def _spooled(segments: Sequence[SpoolSegment]) -> Iterator[Records]:
    """The rows of segments of one table and month, in order; those that overlap are in memory together."""
    group, last = list[Records](), ""
    for segment in sorted(segments, key=lambda one: (one.first, one.last)):
        if group and last < segment.first:
            yield records.together(segment.table, group)
            group = []
        group.append(_read(segment))
        last = max(last, segment.last)
    yield records.together(segments[0].table, group)


def _read(segment: SpoolSegment) -> Records:
    with Path(segment.path).open("rb") as file:
        return records.of_bytes(segment.table, os.pread(file.fileno(), segment.size, segment.offset))


def _in_order(table: str, sources: Sequence[_Source]) -> Iterator[Records]:
    """The rows of several sources in one order; those of months that no other has pass as they are."""
    group, last = list[_Source](), ""
    for source in sorted(sources, key=lambda one: one[:2]):
        if group and source.first > last:
            yield from records.merged(table, [one.rows for one in group])
            group = []
        group.append(source)
        last = max(last, source.last)
    if group:
        yield from records.merged(table, [one.rows for one in group])


def _digest(links: str, stated: str) -> str:
    """A digest of the links in a file of all markets, and of what it states; that of the links if it states nothing."""
    return hashlib.sha256(f"{links} {stated}".encode()).hexdigest() if stated else links


def _urls(catalog: Catalog, links: Links) -> Callable[[str], str | None] | None:
    """Gives the address of a market's page by its id; None if no market has one."""
    if links.url is None:
        return None
    is_slug = links.url.placeholder == "slug"
    slugs = {market.id: market.slug for market in catalog.listed()} if is_slug else {}
    return lambda market_id: links.of(market_id, slugs.get(market_id))


def _names(files: Iterable[PeriodFile]) -> list[str]:
    return [file.name for file in files]
