"""The heads of the downloads: which files a dump consists of, and which steps lead to it. Pure."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, Self

from pydantic import StringConstraints, ValidationError, model_validator

from generator.api import keys
from generator.api.contract import Closed, IfPresent
from generator.api.forms import Count, Timestamp, Url
from generator.api.licensing import Licensing, Publisher
from generator.config.licensing import License
from generator.models import replaced

#: Part of every session: increase it when lines or steps get another form.
FORMAT: Final = 1
SESSION_LENGTH: Final = 32
#: How long steps are kept at most, by their as-of.
STEP_LIFETIME: Final = timedelta(days=7)
#: About the bytes of a step's entry in the head.
ENTRY_SIZE: Final = 100
#: Hexadecimal digits of the name of a file.
NAME_LENGTH: Final = 32
NDJSON: Final = "ndjson.gz"
PARQUET: Final = "parquet"
MARKETS_FOLDER: Final = "markets/"
#: The same for definitions of questions, which are no table with periods.
QUESTIONS_FOLDER: Final = "questions/"
#: The tables of a dump with Parquet, named like their folders: points and fills, then what is made of them.
HISTORY: Final = "history"
FILLS: Final = "fills"
RAW: Final = (HISTORY, FILLS)
CANDLES: Final = ("candles/day", "candles/hour")
CLOSES: Final = "closes"
TABLES: Final = (*RAW, *CANDLES, CLOSES)
#: The fields of the dump's head that have their files.
FIELDS: Final = {table: table.replace("/", "_") for table in TABLES}

Format = Literal["ndjson", "parquet"]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

_UNLICENSED: Final = Licensing()
_EXTENSIONS: Final[dict[Format, str]] = {"ndjson": NDJSON, "parquet": PARQUET}


class Content(Protocol):
    """What a finished file has in it: the SHA-256 digest of its bytes, and their number."""

    @property
    def sha256(self) -> str: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102


class State(Protocol):
    """What a dump has in it: its markets, and the SHA-256 digest of its uncompressed NDJSON."""

    @property
    def count(self) -> int: ...  # noqa: D102
    @property
    def state(self) -> str: ...  # noqa: D102


class DownloadFile(Protocol):
    """A file of a download, which never changes: `name` within the download, `size` in bytes, `key` of its object."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def key(self) -> str: ...  # noqa: D102


class DumpFile(Closed):
    """A file of a dump: its `url` is given in full."""

    name: str
    url: Url
    sha256: Sha256
    size: Count

    @property
    def key(self) -> str:
        """The key of its object."""
        return keys.chunk(keys.DUMPS, self.name)

    @property
    def folder(self) -> str:
        """The folder that it is in, such as `history/period=2026-10`."""
        return self.name.rpartition("/")[0]

    def served_from(self, base_url: str) -> Self:
        """The same file at another address."""
        return replaced(self, url=url(base_url, keys.DUMPS, self.name))


class MarketsFile(DumpFile):
    """All listed markets in one file."""

    format: Format

    @classmethod
    def of(cls, content: Content, base_url: str, form: Format = "ndjson") -> Self:
        """The file with this content."""
        file_name = name(content.sha256, _EXTENSIONS[form], MARKETS_FOLDER)
        return cls.model_validate({**_described(file_name, content, base_url), "format": form})


class PeriodFile(DumpFile):
    """The rows of one table and period in Parquet: of a month or year, or a part of those of a month."""

    period: Annotated[str, StringConstraints(pattern=r"^\d{4}(-\d\d)?$")]

    @classmethod
    def of(cls, content: Content, base_url: str, folder: str) -> Self:
        """The file with this content, in a folder such as `candles/day/period=2026-10`."""
        described = _described(name(content.sha256, PARQUET, f"{folder}/"), content, base_url)
        return cls.model_validate({**described, "period": folder.partition("=")[2]})


class DefinitionsFile(Closed):
    """All definitions of questions in one file."""

    format: Format
    url: Url
    sha256: Sha256
    size: Count

    @classmethod
    def of(cls, content: Content, base_url: str, form: Format = "ndjson") -> Self:
        """The file with this content."""
        found = {"format": form, "sha256": content.sha256, "size": content.size}
        file_name = name(content.sha256, _EXTENSIONS[form], QUESTIONS_FOLDER)
        return cls.model_validate({**found, "url": url(base_url, keys.DUMPS, file_name)})

    @property
    def name(self) -> str:
        """Its name within the dump."""
        return name(self.sha256, _EXTENSIONS[self.format], QUESTIONS_FOLDER)

    @property
    def key(self) -> str:
        """The key of its object."""
        return keys.chunk(keys.DUMPS, self.name)

    def served_from(self, base_url: str) -> Self:
        """The same file at another address."""
        return replaced(self, url=url(base_url, keys.DUMPS, self.name))


class Definitions(Closed):
    """The files of all definitions of questions, how many these are, and since when they are as they are.

    `state` is the SHA-256 digest of the uncompressed NDJSON, which is the first file.
    """

    as_of: Timestamp
    count: Count
    state: Sha256
    files: list[DefinitionsFile]

    @property
    def ndjson(self) -> DefinitionsFile:
        """The definitions in the form that every dump has."""
        return self.files[0]


class Head(Closed):
    """What the head of a download says, and the index of each of its generations."""

    DOWNLOAD: ClassVar[str]

    @classmethod
    def found_by(cls, read: Callable[[str], bytes | None]) -> Self | None:
        """The head that readers find, by what reads an object; None if there is none that this program can read."""
        try:
            return cls.model_validate_json(read(keys.head(cls.DOWNLOAD)) or b"")
        except ValidationError:
            return None

    def files(self) -> Sequence[DownloadFile]:
        """All files that it names, in order."""
        raise NotImplementedError

    def items(self) -> int:
        """How many markets or steps the files have."""
        raise NotImplementedError


class DumpHead(Head):
    """The files of the newest dump, and its as-of.

    `state` is the SHA-256 digest of its uncompressed NDJSON; tables are as of `historyAsOf`.
    """

    # Not above: the schemas of sites without questions are what they were.
    DOWNLOAD = keys.DUMPS

    as_of: Timestamp
    count: Count
    state: Sha256
    markets: list[MarketsFile]
    history_as_of: Annotated[Timestamp | None, IfPresent] = None
    history: Annotated[list[PeriodFile] | None, IfPresent] = None
    fills: Annotated[list[PeriodFile] | None, IfPresent] = None
    candles_day: Annotated[list[PeriodFile] | None, IfPresent] = None
    candles_hour: Annotated[list[PeriodFile] | None, IfPresent] = None
    closes: Annotated[list[PeriodFile] | None, IfPresent] = None
    questions: Annotated[Definitions | None, IfPresent] = None
    license: Annotated[License | None, IfPresent] = None
    publisher: Annotated[Publisher | None, IfPresent] = None

    @model_validator(mode="before")
    @classmethod
    def _without_partitions(cls, content: Any) -> Any:
        """Leave out tables that an earlier version divided by market: no build goes on from them."""
        if not (isinstance(content, dict) and isinstance(found := content.get(HISTORY), list) and found):
            return content
        if not (isinstance(found[0], dict) and "state" in found[0]):
            return content
        return {name: value for name, value in content.items() if name not in {"historyAsOf", *RAW}}

    @classmethod
    def of(
        cls,
        content: State,
        ndjson: MarketsFile,
        as_of: str,
        before: "DumpHead | None",
        licensing: Licensing = _UNLICENSED,
    ) -> Self:
        """The head of a dump made `as_of` then; a state that is the one `before` keeps its as-of."""
        since = before.as_of if before and before.state == content.state else as_of
        told = dict(licensing)
        return cls(as_of=since, count=content.count, state=content.state, markets=[ndjson], **told)

    @property
    def ndjson(self) -> MarketsFile:
        """All markets in the form that every dump has."""
        return self.markets[0]

    @property
    def parquet(self) -> MarketsFile | None:
        """The same as Parquet, if it has that."""
        return next((file for file in self.markets if file.format == "parquet"), None)

    @property
    def has_fills(self) -> bool:
        """Whether it has a table of fills, and candles of them."""
        return self.fills is not None

    def table(self, table: str) -> Sequence[PeriodFile]:
        """The files of one of `TABLES`; none without Parquet."""
        found: Sequence[PeriodFile] | None = getattr(self, FIELDS[table])
        return found or []

    def files_since(self, table: str, since: datetime) -> list[str]:
        """The keys of a table's files of those months and years that were not over at this time (UTC)."""
        month = f"{since:%Y-%m}"
        return [file.key for file in self.table(table) if file.period >= month[: len(file.period)]]

    def tables(self) -> list[PeriodFile]:
        """The files of all tables."""
        return [file for table in TABLES for file in self.table(table)]

    def files(self) -> Sequence[DumpFile | DefinitionsFile]:
        """All of its files."""
        return [*self.markets, *self.tables(), *(self.questions.files if self.questions else ())]

    def items(self) -> int:
        """Its markets."""
        return self.count


def tables(*, fills: bool) -> tuple[str, ...]:
    """The tables of a dump with Parquet, with or without trades."""
    return tuple(table for table in TABLES if fills or table != FILLS)


def name(content_digest: str, extension: str, folder: str = "") -> str:
    """The name of a file within its download, by the SHA-256 digest of its bytes."""
    return f"{folder}{content_digest[:NAME_LENGTH]}.{extension}"


def is_named_by(key: str, body: bytes) -> bool:
    """Whether the file with this key can have this body."""
    return key.rpartition("/")[2].partition(".")[0] == sha256(body).hexdigest()[:NAME_LENGTH]


def url(base_url: str, download: str, file_name: str) -> str:
    """The address of a file."""
    return f"{base_url}/{keys.chunk(download, file_name)}"


def _described(file_name: str, content: Content, base_url: str) -> dict[str, Any]:
    """What every description of a file of a dump says."""
    address = url(base_url, keys.DUMPS, file_name)
    return {"name": file_name, "url": address, "sha256": content.sha256, "size": content.size}
