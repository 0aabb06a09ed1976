"""What a dry build would make of dump and change feed: made a group of markets at a time, measured and discarded."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from generator.api import contract, downloads, keys
from generator.api.downloads import ChangesHead, DownloadFile, DumpHead, MarketsFile, Step
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

    def __post_init__(self) -> None:
        self._step = StepWriter(len, self.last.dump.markets[0].size if self.last.dump else None)

    def add(self, market_id: str, body: bytes, *, is_new: bool, is_changed: bool) -> None:
        """Add a market with this detail; it is not in the last dump if it `is_new`."""
        line = detail.market_object(body)
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
        size = dump.markets[0].size
        weight = _weight(dump, dump.markets)
        new = NO_DOWNLOADS if dump == self.last.dump else weight
        if not self.config.has_changes:
            return Measured(Downloads(weight, size), new, 0)
        changes = self._changes_head(dump, self._step.close(), as_of)
        of_steps = sum(step.size for step in changes.steps)
        downloads = Downloads(weight + _weight(changes, changes.steps), size, len(changes.steps), of_steps)
        before = self.last.changes
        made = [step for step in changes.steps if before is None or step not in before.steps]
        new += NO_DOWNLOADS if changes == before else _weight(changes, made)
        return Measured(downloads, new, sum(step.size for step in made))

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


def _weight(head: BaseModel, files: Collection[DownloadFile]) -> Weight:
    """The weight of a generation with these files: an index says what its head says."""
    size = len(contract.encode(head))
    return Weight(len(files) + 1, sum(file.size for file in files) + size, 1, size)
