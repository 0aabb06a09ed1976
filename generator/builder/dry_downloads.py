"""What a dry build would make of dump and change feed: made a group of markets at a time, measured and discarded."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from generator.api import contract, downloads, keys
from generator.api.downloads import ChangesHead, DownloadFile, DumpHead, MarketsFile, Step
from generator.builder.dry_parquet import ParquetMeter
from generator.config.settings import Config
from generator.cost.sizes import NO_DOWNLOADS, Downloads
from generator.downloads import segments, steps
from generator.downloads.dump import Changed
from generator.downloads.segments import GzipWriter, Written
from generator.downloads.steps import StepWriter, WrittenStep
from generator.markets import detail
from generator.tree.generation import Weight

Read = Callable[[str], bytes | None]
Head = TypeVar("Head", bound=BaseModel)

#: As long as the name of any session.
_SESSION: Final = "0" * 32


def _nothing(_: str) -> bytes | None:
    return None


@dataclass(frozen=True)
class LastDownloads:
    """What the last build left: the heads, if there are any, and how to read an object."""

    read: Read = _nothing
    dump: DumpHead | None = None
    changes: ChangesHead | None = None

    @classmethod
    def found_by(cls, read: Read) -> "LastDownloads":
        """Read the heads."""
        dump, changes = _head(read, keys.DUMPS, DumpHead), _head(read, keys.CHANGES, ChangesHead)
        is_of_dump = dump is not None and changes is not None and changes.dump == dump.markets[0]
        return cls(read, dump, changes if is_of_dump else None)


class Measured(NamedTuple):
    """The downloads after a build, and what is new of them, with the bytes of the new step."""

    site: Downloads
    new: Weight
    step_bytes: int


#: The downloads of a site that has none.
NONE: Final = Measured(Downloads(), NO_DOWNLOADS, 0)


@dataclass
class Meter:
    """Measures the downloads of one dry build. Add all listed markets, in the order of a dump: ascending by id.

    If they come in another, as from a database that spells ids in upper case, the dump counts as changed.
    """

    config: Config
    last: LastDownloads
    _ids: list[str] = field(default_factory=list)
    _lines: list[bytes] = field(default_factory=list)
    _dump: GzipWriter = field(default_factory=partial(GzipWriter, len))
    _step: StepWriter = field(init=False)
    _parquet: ParquetMeter | None = None

    def __post_init__(self) -> None:
        self._step = StepWriter(len, self.last.dump.markets[0].size if self.last.dump else None)
        if self.config.has_parquet:
            self._parquet = ParquetMeter(self.config.variant, self.last.dump)

    def add(self, market_id: str, body: bytes, partition: str, *, is_new: bool, is_changed: bool) -> None:
        """Add a market with this detail, whose history belongs to the partition; it `is_new` in the dump."""
        line = detail.market_object(body)
        if self._parquet:
            self._parquet.add(partition, body, is_changed=is_changed)
        if (is_new or is_changed) and self.last.dump:
            before = None if is_new else self.last.read(keys.detail(market_id))
            change = Changed(market_id, before and detail.market_object(before), line)
            if change.before != line:
                self._step.add(change)
        if segments.begins_group(market_id, len(self._ids)):
            self._flush()
        self._ids.append(market_id)
        self._lines.append(line)

    def measured(self, gone: Iterable[str], as_of: str) -> Measured:
        """The result at `as_of`, if these markets are no longer listed."""
        if self.last.dump:
            for market_id in gone:
                self._step.add(Changed(market_id, b"", None))
        self._flush()
        dump = self._dump_head(self._dump.close(), as_of)
        if self._parquet:
            dump = self._parquet.added_to(dump, as_of)
        size, daily = dump.markets[0].size, _of_files([*(dump.history or ()), *(dump.fills or ())])
        weight = _weight(dump, dump.files())
        new = _new(dump, dump.files(), self.last.dump, self.last.dump.files() if self.last.dump else [])
        if not self.config.has_changes:
            return Measured(Downloads(weight, size, daily=daily), new, 0)
        changes = self._changes_head(dump, self._step.close(), as_of)
        of_steps = sum(step.size for step in changes.steps)
        site = Downloads(weight + _weight(changes, changes.steps), size, len(changes.steps), of_steps, daily)
        before = self.last.changes.steps if self.last.changes else []
        new += _new(changes, changes.steps, self.last.changes, before)
        return Measured(site, new, sum(step.size for step in changes.steps if step not in before))

    def _flush(self) -> None:
        if self._ids:
            self._dump.add(self._ids, b"\n".join([*self._lines, b""]))
        self._ids, self._lines = [], []

    def _dump_head(self, written: Written, as_of: str) -> DumpHead:
        before = self.last.dump
        name = downloads.name(written.sha256, downloads.NDJSON, downloads.MARKETS_FOLDER)
        url = downloads.url(self.config.files_url, keys.DUMPS, name)
        ndjson = MarketsFile(name=name, url=url, sha256=written.sha256, size=written.size, format="ndjson")
        as_of = before.as_of if before and before.state == written.state else as_of
        return DumpHead(as_of=as_of, count=written.count, state=written.state, markets=[ndjson])

    def _changes_head(self, dump: DumpHead, written: WrittenStep | None, as_of: str) -> ChangesHead:
        before = self.last.changes
        is_same = before is not None and before.state == dump.state
        serial = before.serial + (not is_same) if before else 1
        found = before.steps if before else []
        if before and written and not is_same:
            found = [*found, self._new_step(written, before.serial, as_of)]
        return ChangesHead(
            session=before.session if before else _SESSION, serial=serial,
            as_of=before.as_of if before and is_same else as_of, count=dump.count, state=dump.state,
            dump=dump.markets[0], steps=steps.retained(found, dump.markets[0].size, as_of),
        )  # fmt: skip

    def _new_step(self, written: WrittenStep, serial: int, as_of: str) -> Step:
        name = downloads.name(written.sha256, downloads.NDJSON)
        url = downloads.url(self.config.files_url, keys.CHANGES, name)
        return Step(
            name=name, url=url, sha256=written.sha256, size=written.size, from_=serial, to=serial + 1, as_of=as_of
        )


def _head(read: Read, name: str, model: type[Head]) -> Head | None:
    try:
        return model.model_validate_json(read(keys.head(name)) or b"")
    except ValidationError:
        return None


def _new(head: BaseModel, files: Iterable[DownloadFile], last: BaseModel | None, before: Sequence[object]) -> Weight:
    """What is new of a download, if it had this head `last`, and these files."""
    return NO_DOWNLOADS if head == last else _weight(head, [file for file in files if file not in before])


def _weight(head: BaseModel, files: Sequence[DownloadFile]) -> Weight:
    """The weight of a generation with these files: an index says what its head says."""
    size = len(contract.encode(head))
    return _of_files(files) + Weight(1, size, 1, size)


def _of_files(files: Sequence[DownloadFile]) -> Weight:
    return Weight(len(files), sum(file.size for file in files), 0, 0)
