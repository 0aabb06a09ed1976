"""What the inspection page shows of dumps, change feed, feeds and prices: their files and where they lie. Pure."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NamedTuple

from generator.api import feeds, keys
from generator.api.archive import ArchiveHead
from generator.api.downloads import ChangesHead, DumpHead
from generator.config.settings import Config


class File(NamedTuple):
    """A file of a download: what it holds, its address relative to the page, and its size in bytes."""

    label: str
    href: str
    size: int


class Downloads(NamedTuple):
    """The heads as they are published; None for what is not. `has_prices`: so is the object with all prices."""

    dump: DumpHead | None
    changes: ChangesHead | None
    archive: ArchiveHead | None
    has_prices: bool

    @classmethod
    def read(cls, read: Callable[[str], bytes | None]) -> "Downloads":
        """Read them from an output folder."""
        dump, changes, archive = (read(keys.head(name)) for name in keys.DOWNLOADS)
        return cls(
            dump=DumpHead.model_validate_json(dump) if dump else None,
            changes=ChangesHead.model_validate_json(changes) if changes else None,
            archive=ArchiveHead.model_validate_json(archive) if archive else None,
            has_prices=read(keys.PRICES) is not None,
        )

    def texts(self, config: Config) -> dict[str, Any]:
        """The values of the page's template."""
        return {
            "dump": self.dump,
            "change_feed": self.changes,
            "days": [*self._days()][::-1],
            "files_of_markets": [*self._markets()],
            "files_of_tables": [*self._tables()],
            "steps": [*self._steps()][::-1],
            "heads": {name: keys.head(name) for name, head in zip(keys.DOWNLOADS, self[:3], strict=True) if head},
            "prices": keys.PRICES if self.has_prices else None,
            "feeds": [*_feeds()] if config.feeds.enabled else [],
        }

    def _markets(self) -> Iterable[File]:
        for file in self.dump.markets if self.dump else ():
            name = "NDJSON, gzip" if file.format == "ndjson" else "Parquet"
            yield File(f"All markets, {name}", file.key, file.size)

    def _tables(self) -> Iterable[File]:
        for table, title in {"history": "Histories", "fills": "Fills"}.items():
            for file in self.dump.table(table) if self.dump else ():
                yield File(f"{title} of {file.period}", file.key, file.size)

    def _days(self) -> Iterable[tuple[str, str, int, str]]:
        for day in self.archive.all_days() if self.archive else ():
            yield day.date, keys.archived_day(day.date), day.count, day.state

    def _steps(self) -> Iterable[tuple[int, int, str, str, int]]:
        for serial, step in self.changes.numbered() if self.changes else ():
            yield serial, serial + 1, step.as_of, step.key, step.size


def files_since(head: DumpHead, table: str, since: datetime) -> list[str]:
    """The keys of a table's files of those months and years that were not over at this time (UTC)."""
    month = f"{since:%Y-%m}"
    return [file.key for file in head.table(table) if file.period >= month[: len(file.period)]]


def _feeds() -> Iterable[tuple[str, list[tuple[str, str]]]]:
    forms = {"JSON Feed": "json", "Atom": "atom"}
    for name in feeds.FEED_NAMES:
        yield name, [(form, keys.feed(name, extension)) for form, extension in forms.items()]
