"""Makes the archive of dumps: the last dump of each day, without the markets that are public no more.

A build replaces the day of its as-of, and leaves all others as they are. Only days that show a market which has to go
are made again, one at a time; so is the text of edited markets before old texts are purged. A day whose file is missing
or damaged ends: nobody could tell whom it shows.
"""

import hashlib
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final, NamedTuple, TypeAlias

from generator.api import archive, contract
from generator.api.archive import ArchivedFile, ArchiveHead, DayEntry
from generator.api.downloads import DumpHead, MarketsFile
from generator.config.settings import Config
from generator.downloads import dump, market_lines, parquet
from generator.errors import OutputError
from generator.models import replaced
from generator.site import archive_index
from generator.site.archive_index import Read
from generator.site.catalog import Catalog
from generator.site.listed import Listed
from generator.tree.download import NewFiles
from generator.wording import counted

_DATE: Final = len("2026-10-31")
_PIECE: Final = 1 << 18
#: The properties of a market that are texts of people, as they are written in a line.
_TEXTS: Final = frozenset(
    f'"{name}"'.encode()
    for name in ("question", "description", "tradingPauseReason", *sorted(contract.EXTENDED_PROPERTIES))
)

#: Makes the lines of a day, ascending by id, into those that it is to have.
LineChange: TypeAlias = Callable[[Iterator[bytes]], Iterator[bytes]]


class StagedArchive(NamedTuple):
    """The head as it was staged, of an archive of so many days; the dates of days that were made again, or ended."""

    head: ArchiveHead
    length: int
    changed: tuple[str, ...]
    ended: tuple[str, ...]

    def told(self) -> Iterator[str]:
        """What a takedown or a purge says of it."""
        if self.changed:
            yield f"made {counted(len(self.changed), 'archived day')} again without what is not to be shown any more"
        for day in self.ended:
            yield f"ended {day} in the archive: its file is missing or damaged, so nobody can tell whom it shows"


@dataclass(frozen=True)
class ArchiveMaker:
    """Makes the head of the archive; `catalog` is that of the site, and has the addresses of markets' pages.

    A file that the folder lacks is read with `fetch`, by its key.
    """

    files: NewFiles
    config: Config
    catalog: Catalog
    fetch: Read = lambda _: None
    #: The addresses of markets' pages are made anew, too.
    renews_links: bool = False
    _changed: list[str] = field(default_factory=list)
    _ended: list[str] = field(default_factory=list)
    #: What became of a day's files, by their digests: days without a change between them share them.
    _made: dict[str, DayEntry | None] = field(default_factory=dict)

    def of(self, listed: Listed, before: ArchiveHead | None, dumped: DumpHead) -> StagedArchive:
        """The archive of a site whose dump this is; `before` is the one in place."""
        days, today = {day.date: day for day in before.days} if before else {}, before.today if before else None
        if listed.takedown:
            new = self._taken_down(listed, today, dumped)
        else:
            new = _new(days, today, DayEntry.of(listed.as_of[:_DATE], dumped))
        if today and not (new and new.date == today.date):
            days[today.date] = today
        if new:
            days.pop(new.date, None)
        kept = days if listed.takedown else _within(days, listed.as_of[:_DATE], self.config.archive.days)
        # All but these: an older head may have shown markets that were withdrawn earlier.
        change = _of(listed.catalog.ids()) if listed.withdrawn else None
        return self._staged(kept, new, change, before.texts_as_of if before else None)

    def with_texts(
        self, before: ArchiveHead, dumped: DumpHead, current: Callable[[], Iterator[bytes]]
    ) -> StagedArchive:
        """The same days with the texts of the `current` lines; markets that have none leave all days.

        The lines ascend by id. The dump is the current one: a day that it is of stays as it is.
        """
        today = before.today if before.today and before.today.state == dumped.state else None
        days = {day.date: day for day in before.all_days() if day != today}
        return self._staged(days, today, lambda lines: _with_texts(lines, current()), self.catalog.as_of)

    def with_days(self, before: ArchiveHead, others: ArchiveHead, ids: AbstractSet[str]) -> StagedArchive:
        """The same with the days of the other one that are over, which lose all markets but these, and its newer ones.

        What this one has of the other days stays.
        """
        today = before.today.date if before.today else ""
        days = {day.date: day for day in before.all_days()} | archive_index.news(before, others)
        kept = _within(days, today or max(days), self.config.archive.days)
        rest = {day: kept[day] for day in kept if day != today}
        return self._staged(rest, before.today, _of(ids), before.texts_as_of)

    def _taken_down(self, listed: Listed, today: DayEntry | None, dumped: DumpHead) -> DayEntry | None:
        """The day that is not over, with the dump that takes the place of its own; None if that was another one."""
        former = listed.takedown.dump if listed.takedown else None
        # Not by its state: a takedown that was killed may have put it already, without other markets than this one.
        is_its_own = today is not None and (former is None or today.as_of in (former.as_of, dumped.as_of))
        return DayEntry.of(today.date, dumped) if today and is_its_own else None

    def _staged(
        self, days: dict[str, DayEntry], today: DayEntry | None, change: LineChange | None, texts_as_of: str | None
    ) -> StagedArchive:
        entries = [found for day in sorted(days) if (found := self._kept(days[day], change))]
        url = archive.files_url(self.config.files_url)
        head = ArchiveHead(files_url=url, days=entries, today=today, texts_as_of=texts_as_of)
        return StagedArchive(head, self.config.archive.days, tuple(self._changed), tuple(self._ended))

    def _kept(self, day: DayEntry, change: LineChange | None) -> DayEntry | None:
        """The day as it is to be; None if it has to end."""
        name = f"{day.ndjson.sha256} {day.parquet and day.parquet.sha256}"
        if name not in self._made:
            self._made[name] = self._made_again(day, change)
        made = self._made[name]
        if made is None:
            self._ended.append(day.date)
            return None
        if made.state != day.state:
            self._changed.append(day.date)
        return replaced(made, date=day.date, as_of=day.as_of)

    def _made_again(self, day: DayEntry, change: LineChange | None) -> DayEntry | None:
        ndjson, *others = day.files(self.config.files_url)
        if not self._is_in_place(ndjson):
            return None
        if change is not None:
            try:
                state = hashlib.sha256()
                for line in change(self._lines(ndjson)):
                    state.update(line + b"\n")
                if state.hexdigest() != day.state:
                    return self._rewritten(day, change(self._lines(ndjson)))
            except (ValueError, OutputError):
                return None
        is_stale = self.renews_links and self.config.market_url is not None
        if all(map(self._is_in_place, others)) and not (others and is_stale):
            return day
        return replaced(day, parquet=self._parquet(ndjson))

    def _rewritten(self, day: DayEntry, lines: Iterator[bytes]) -> DayEntry:
        """The day with these lines instead."""
        draft = self.files.draft(lambda write: dump.of_lines(write, lines))
        written = draft.content
        ndjson = self.files.stage(draft, MarketsFile.of(written, self.config.files_url))
        made = ArchivedFile(sha256=written.sha256, size=written.size)
        parquet_file = self._parquet(ndjson) if day.parquet else None
        return replaced(day, count=written.count, state=written.state, ndjson=made, parquet=parquet_file)

    def _parquet(self, ndjson: MarketsFile) -> ArchivedFile | None:
        """The same as Parquet; None if no dump has that any more."""
        if not self.config.has_parquet:
            return None
        links = self.catalog.links(self.config.market_url)
        from generator.site.parquet_files import urls  # noqa: PLC0415 - most sites need no NumPy

        lines, url_of = self._lines(ndjson), urls(self.catalog, links)
        draft = self.files.draft(lambda write: parquet.markets(write, lines, self.config.variant, url_of))
        self.files.stage(draft, MarketsFile.of(draft.content, self.config.files_url, "parquet"))
        return ArchivedFile(sha256=draft.content.sha256, size=draft.content.size)

    def _is_in_place(self, file: MarketsFile) -> bool:
        """Whether the file is in place; one that lies there unknown to the record is staged again."""
        folder = self.files.folder
        if folder.has(file.key):
            return True
        body = folder.newest(file.key) or self.fetch(file.key)
        if body is None or hashlib.sha256(body).hexdigest() != file.sha256:
            return False
        draft = self.files.draft(lambda write: write(body))
        self.files.stage(draft, file)
        return True

    def _lines(self, file: MarketsFile) -> Iterator[bytes]:
        """The lines of a file; raise ValueError if it is not the one that is named so."""
        digest = hashlib.sha256()
        with self.files.folder.open_newest(file.key) as opened:

            def pieces() -> Iterator[bytes]:
                while piece := opened.read(_PIECE):
                    digest.update(piece)
                    yield piece

            yield from dump.lines(pieces())
        if digest.hexdigest() != file.sha256:
            raise ValueError(f"{file.name} has other bytes than its name says")


def _new(days: dict[str, DayEntry], today: DayEntry | None, new: DayEntry) -> DayEntry | None:
    """The entry of the day of a build, unless that day is over: its clock, or the one of an earlier build, is wrong."""
    last = max([*days, *([today.date] if today else [])], default="")
    is_over = new.date in days and new.date < last
    return None if is_over else new


def _within(days: dict[str, DayEntry], today: str, length: int) -> dict[str, DayEntry]:
    """The days that stay: so many up to the last one before today.

    They do not count from today, or one build by a clock that is ahead would end all of them.
    """
    last = max((day for day in days if day < today), default=today)
    first = (date.fromisoformat(last) - timedelta(days=length - 1)).isoformat()
    return {day: entry for day, entry in days.items() if day >= first}


def _of(ids: AbstractSet[str]) -> LineChange:
    return lambda lines: (line for line in lines if market_lines.id_of(line) in ids)


def _with_texts(lines: Iterator[bytes], current: Iterator[bytes]) -> Iterator[bytes]:
    """The lines with the texts of the current ones; both ascend by id, and a market that has no current line is out."""
    newest = next(current, None)
    for line in lines:
        market_id = market_lines.id_of(line)
        while newest is not None and market_lines.id_of(newest) < market_id:
            newest = next(current, None)
        if newest is not None and market_lines.id_of(newest) == market_id:
            yield _with_texts_of(line, newest)


def _with_texts_of(line: bytes, newest: bytes) -> bytes:
    now = market_lines.properties(newest)
    return market_lines.of(
        (name, now[name] if name in _TEXTS else value)
        for name, value in market_lines.properties(line).items()
        if name not in _TEXTS or name in now
    )
