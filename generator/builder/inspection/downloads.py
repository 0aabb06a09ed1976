"""What the inspection page shows of dumps, change feed, feeds and other documents: where they lie. Pure."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from generator.api import feeds, keys
from generator.api.downloads import ChangesHead, DumpHead
from generator.config.settings import Config
from generator.site.families import FAMILIES
from generator.site.family import ROOT


class File(NamedTuple):
    """A file of a download: what it holds, its address relative to the page, and its size in bytes."""

    label: str
    href: str
    size: int


class Downloads(NamedTuple):
    """The heads as they are published; None for what is not. `documents` are the keys of all others that are."""

    dump: DumpHead | None
    changes: ChangesHead | None
    documents: Sequence[str] = ()

    @classmethod
    def read(cls, read: Callable[[str], bytes | None]) -> "Downloads":
        """Read them from an output folder."""
        dump, changes = (read(keys.head(name)) for name in keys.DOWNLOADS)
        return cls(
            dump=DumpHead.model_validate_json(dump) if dump else None,
            changes=ChangesHead.model_validate_json(changes) if changes else None,
            documents=[key for key in _documents() if read(key) is not None],
        )

    def texts(self, config: Config) -> dict[str, Any]:
        """The values of the page's template."""
        return {
            "dump": self.dump,
            "change_feed": self.changes,
            "files_of_markets": [*self._markets()],
            "files_of_tables": [*self._tables()],
            "steps": [*self._steps()][::-1],
            "heads": {name: keys.head(name) for name, head in zip(keys.DOWNLOADS, self[:2], strict=True) if head},
            "documents": [(key.removeprefix(ROOT), key) for key in self.documents],
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

    def _steps(self) -> Iterable[tuple[int, int, str, str, int]]:
        for serial, step in self.changes.numbered() if self.changes else ():
            yield serial, serial + 1, step.as_of, step.key, step.size


def _documents() -> list[str]:
    """The keys of all documents but heads and feeds, of which the page says more."""
    return [key for family in FAMILIES if family.path is not None and not family.immutable for key in family.keys]


def files_since(head: DumpHead, table: str, since: datetime) -> list[str]:
    """The keys of a table's files of those months and years that were not over at this time (UTC)."""
    month = f"{since:%Y-%m}"
    return [file.key for file in head.table(table) if file.period >= month[: len(file.period)]]


def _feeds() -> Iterable[tuple[str, list[tuple[str, str]]]]:
    forms = {"JSON Feed": "json", "Atom": "atom"}
    for name in feeds.FEED_NAMES:
        yield name, [(form, keys.feed(name, extension)) for form, extension in forms.items()]
