"""The archive of dumps: which file holds the markets as the last dump of each day had them. Pure."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import ValidationError

from generator.api import downloads, keys
from generator.api.contract import Closed, IfPresent, encode
from generator.api.downloads import DumpHead, Format, Head, MarketsFile, Sha256
from generator.api.forms import Count, Day, Timestamp, Url
from generator.models import replaced


class ArchivedFile(Closed):
    """A file of an archived day: the SHA-256 digest of its bytes, from which its name follows, and their number."""

    sha256: Sha256
    size: Count


class DayEntry(Closed):
    """What the index says of a day: `date` in UTC, and its last dump.

    `state` is the SHA-256 digest of the uncompressed NDJSON.
    """

    date: Day
    as_of: Timestamp
    count: Count
    state: Sha256
    ndjson: ArchivedFile
    parquet: Annotated[ArchivedFile | None, IfPresent] = None

    @classmethod
    def of(cls, date: str, dumped: "DumpHead | ArchivedDay") -> "DayEntry":
        """The entry of a day whose last dump this is, by its head or by the object of the day."""
        files = {file.format: ArchivedFile(sha256=file.sha256, size=file.size) for file in dumped.markets}
        return cls(
            date=date, as_of=dumped.as_of, count=dumped.count, state=dumped.state, ndjson=files["ndjson"],
            parquet=files.get("parquet"),
        )  # fmt: skip

    def files(self, base_url: str) -> list[MarketsFile]:
        """Its files as a dump names them, served from this address."""
        found: list[tuple[Format, ArchivedFile | None]] = [("ndjson", self.ndjson), ("parquet", self.parquet)]
        return [MarketsFile.of(file, base_url, form) for form, file in found if file]

    def served_from(self, base_url: str) -> "ArchivedDay":
        """The object of the day."""
        return ArchivedDay(
            date=self.date, as_of=self.as_of, count=self.count, state=self.state, markets=self.files(base_url)
        )


class ArchivedDay(Closed):
    """The last dump of a day: its as-of, and the files with its markets. `state` is as in the head of the dump."""

    date: Day
    as_of: Timestamp
    count: Count
    state: Sha256
    markets: list[MarketsFile]


class ArchiveHead(Head):
    """The days of the archive, oldest first, and `today`, which later builds may change as long as it is not over.

    Another day changes only when a market is taken out of it, or when old texts are purged: then all days get those as
    of `textsAsOf`.
    """

    DOWNLOAD = keys.ARCHIVE

    files_url: Url
    days: list[DayEntry]
    today: Annotated[DayEntry | None, IfPresent] = None
    texts_as_of: Annotated[Timestamp | None, IfPresent] = None

    def all_days(self) -> list[DayEntry]:
        """All of its days, oldest first; the clock may have gone back since one."""
        return sorted([*self.days, *([self.today] if self.today else [])], key=lambda day: day.date)

    def files(self) -> Sequence[MarketsFile]:
        """The files of the days that are over; those of `today` are the dump's."""
        found = {file.name: file for day in self.days for file in day.files(self.base_url)}
        return list(found.values())

    def items(self) -> int:
        """Its days, without today."""
        return len(self.days)

    def index(self) -> "ArchiveHead":
        """The same without today: so a generation lasts for a day, however many builds there are."""
        return replaced(self, today=None)

    def pages(self) -> Iterator[tuple[str, bytes]]:
        """Key and bytes of each day's object and of the index."""
        for day in self.all_days():
            yield keys.archived_day(day.date), encode(day.served_from(self.base_url))
        yield from super().pages()

    @property
    def base_url(self) -> str:
        """The address that the site has its files at."""
        return self.files_url.removesuffix(f"/{keys.chunk(keys.ARCHIVE, '')}")


def files_url(base_url: str) -> str:
    """What the address of every file begins with; its name follows."""
    return downloads.url(base_url, keys.ARCHIVE, "")


def index(head: bytes) -> bytes:
    """What the index of the generation says whose head this is; nothing if it is no head."""
    try:
        return encode(ArchiveHead.model_validate_json(head).index())
    except ValidationError:
        return b""


def names(head: bytes) -> list[str]:
    """The names of the files of all days that are over; raise ValueError if this is no head or index."""
    return [file.name for file in ArchiveHead.model_validate_json(head).files()]
