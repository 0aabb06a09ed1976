"""What a dry build would make of dump and change feed: made a group of markets at a time, measured and discarded."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from generator.api import contract, downloads, keys
from generator.api.downloads import ChangesHead, DownloadFile, DumpHead, Head, MarketsFile, Step
from generator.builder.dry_parquet import ParquetMeter
from generator.config.settings import Config
from generator.cost.sizes import NO_DOWNLOADS, Downloads
from generator.downloads import segments, steps
from generator.downloads.dump import Changed
from generator.downloads.segments import GzipWriter
from generator.downloads.steps import StepWriter, WrittenStep
from generator.markets import detail
from generator.tree.generation import Weight

Read = Callable[[str], bytes | None]


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
        dump, changes = DumpHead.found_by(read), ChangesHead.found_by(read)
        is_of_dump = dump is not None and changes is not None and changes.dump == dump.ndjson
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

    In another order, as from a database with upper-case ids, the dump counts as changed.
    """

    config: Config
    last: LastDownloads
    _ids: list[str] = field(default_factory=list)
    _lines: list[bytes] = field(default_factory=list)
    _dump: GzipWriter = field(default_factory=partial(GzipWriter, len))
    _step: StepWriter = field(init=False)
    _parquet: ParquetMeter | None = None

    def __post_init__(self) -> None:
        self._step = StepWriter(self.last.dump.ndjson.size if self.last.dump else None)
        if self.config.has_parquet:
            self._parquet = ParquetMeter(self.config, self.last.dump)

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
        written = self._dump.close()
        dump = DumpHead.of(written, MarketsFile.of(written, self.config.files_url), as_of, self.last.dump)
        if self._parquet:
            dump = self._parquet.added_to(dump, as_of)
        size, daily = dump.ndjson.size, _of_files(dump.tables())
        weight, new = _weight(dump, dump.files()), _new(dump, self.last.dump)
        if not self.config.has_changes:
            return Measured(Downloads(weight, size, daily=daily), new, 0)
        changes = self._changes_head(dump, self._step.close(len), as_of)
        of_steps = sum(step.size for step in changes.steps)
        site = Downloads(weight + _weight(changes, changes.steps), size, len(changes.steps), of_steps, daily)
        before = self.last.changes.steps if self.last.changes else []
        new += _new(changes, self.last.changes)
        return Measured(site, new, sum(step.size for step in changes.steps if step not in before))

    def _flush(self) -> None:
        if self._ids:
            self._dump.add(self._ids, b"\n".join([*self._lines, b""]))
        self._ids, self._lines = [], []

    def _changes_head(self, dump: DumpHead, written: WrittenStep | None, as_of: str) -> ChangesHead:
        begun, before = downloads.begun(dump), self.last.changes
        if before is None:
            return begun
        is_same, found = before.state == dump.state, before.steps
        if written and not is_same:
            found = [*found, Step.of(written, as_of)]
        kept = steps.retained(found, dump.ndjson.size, as_of)
        serial = before.serial + (not is_same)
        return begun.model_copy(update={"session": before.session, "serial": serial, "steps": kept})


def _new(head: Head, last: Head | None) -> Weight:
    """What is new of a download, if it had this head `last`."""
    before = last.files() if last else ()
    return NO_DOWNLOADS if head == last else _weight(head, [file for file in head.files() if file not in before])


def _weight(head: Head, files: Sequence[DownloadFile]) -> Weight:
    """The weight of a generation with these files: an index says what its head says."""
    size = len(contract.encode(head))
    return _of_files(files) + Weight(1, size, 1, size)


def _of_files(files: Sequence[DownloadFile]) -> Weight:
    return Weight(len(files), sum(file.size for file in files), 0, 0)
