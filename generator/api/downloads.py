"""The heads of the downloads: which files a dump consists of, and which steps lead to it. Pure."""

from datetime import timedelta
from hashlib import sha256
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints
from pydantic_core import from_json

from generator.api import keys
from generator.api.contract import Closed, IfPresent
from generator.api.forms import Count, Timestamp, Url

#: Part of every session: increase it when lines or steps get another form.
FORMAT: Final = 1
SESSION_LENGTH: Final = 32
#: How long steps are kept at most, by their as-of.
STEP_LIFETIME: Final = timedelta(days=7)

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class DownloadFile(Closed):
    """A file to take away, which never changes: `name` within the download, `url` in full, `size` in bytes."""

    name: str
    url: Url
    sha256: Sha256
    size: Count


class MarketsFile(DownloadFile):
    """All listed markets in one file."""

    format: Literal["ndjson", "parquet"]


class PartitionFile(DownloadFile):
    """The histories or recent fills of some markets, in Parquet.

    They are those that ended in a `month`, in the state `archive`, or a `part` of those in the state `open`.
    """

    state: Literal["archive", "open"]
    month: Annotated[str | None, StringConstraints(pattern=r"^\d{4}-\d\d$"), IfPresent] = None
    part: Annotated[str | None, StringConstraints(pattern=r"^\d\d$"), IfPresent] = None


class DumpHead(Closed):
    """What the newest dump consists of, and as of when.

    `state` is the SHA-256 digest of its uncompressed NDJSON, by which the change feed knows it. Histories and fills are
    as of `historyAsOf`.
    """

    as_of: Timestamp
    count: Count
    state: Sha256
    markets: list[MarketsFile]
    history_as_of: Annotated[Timestamp | None, IfPresent] = None
    history: Annotated[list[PartitionFile] | None, IfPresent] = None
    fills: Annotated[list[PartitionFile] | None, IfPresent] = None

    def files(self) -> list[DownloadFile]:
        """All of its files."""
        return [*self.markets, *(self.history or ()), *(self.fills or ())]


class Step(DownloadFile):
    """What changed from one serial to the next."""

    from_: int = Field(alias="from", ge=1)
    to: int = Field(ge=2)
    as_of: Timestamp


class ChangesHead(Closed):
    """Where the change feed is: `serial` in its `session`, the dump of just that state, and the steps that lead there.

    The steps are in order, without gaps, and the last one leads to `serial`.
    """

    session: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    serial: int = Field(ge=1)
    as_of: Timestamp
    count: Count
    state: Sha256
    dump: MarketsFile
    steps: list[Step]


def begun(dumped: DumpHead) -> ChangesHead:
    """The head of a session that begins with this dump: equal dumps as of the same instant begin equal ones."""
    session = sha256(f"{FORMAT} {dumped.as_of} {dumped.state}".encode()).hexdigest()[:SESSION_LENGTH]
    return ChangesHead(
        session=session, serial=1, as_of=dumped.as_of, count=dumped.count, state=dumped.state, dump=dumped.markets[0],
        steps=[],
    )  # fmt: skip


def names(index: bytes) -> list[str]:
    """The names of the files that an index of a download leads to, in order; raise ValueError if it is none."""
    content = from_json(index)
    if isinstance(content, dict) and "steps" in content:
        return [step.name for step in ChangesHead.model_validate(content).steps]
    return [file.name for file in DumpHead.model_validate(content).files()]


def name(content_digest: str, extension: str, folder: str = "") -> str:
    """The name of a file within its download, by the SHA-256 digest of its bytes."""
    return f"{folder}{content_digest[:NAME_LENGTH]}.{extension}"


def is_named_by(key: str, body: bytes) -> bool:
    """Whether the file with this key can have this body."""
    return key.rpartition("/")[2].partition(".")[0] == sha256(body).hexdigest()[:NAME_LENGTH]


#: Hexadecimal digits of the name of a file.
NAME_LENGTH: Final = 32
NDJSON: Final = "ndjson.gz"
PARQUET: Final = "parquet"
MARKETS_FOLDER: Final = "markets/"


def url(base_url: str, download: str, file_name: str) -> str:
    """The address of a file."""
    return f"{base_url}/{keys.chunk(download, file_name)}"
