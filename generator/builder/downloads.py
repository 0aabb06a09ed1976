"""Makes the downloads of a build: the dump of all listed markets, and the step of the change feed that leads to it.

Both are made from what readers found so far, as the heads in place say: a killed build may have replaced one of them.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from generator.api import contract, downloads, keys
from generator.api.downloads import ChangesHead, DownloadFile, DumpHead, MarketsFile
from generator.builder.change_feed import ChangeFeed, NewState
from generator.builder.parquet_files import ParquetFiles
from generator.builder.report_file import DownloadCounts
from generator.config.settings import Config
from generator.downloads import dump, side_file
from generator.downloads.dump import Changed, Markets, Previous
from generator.downloads.partitions import Member
from generator.downloads.segments import Written
from generator.downloads.side_file import SideFile
from generator.downloads.steps import StepWriter, WrittenStep
from generator.markets import detail
from generator.tree import files, staging
from generator.tree.download import Download
from generator.tree.folder import Output
from generator.tree.layouts import Known
from generator.tree.staging import StagedList

Head = TypeVar("Head", bound=BaseModel)

_DUMP: Final = "dump"
_STEP: Final = "step"


@dataclass(frozen=True)
class Listed:
    """The markets of all lists at `as_of`: their ids, which ascend, and those whose details `changed`.

    `members` yields each with the partition that its history belongs to.
    """

    ids: Sequence[str]
    changed: AbstractSet[str]
    as_of: str
    members: Callable[[], Iterator[tuple[str, Member]]]


class StagedDownloads(NamedTuple):
    """The downloads as they were staged, the file to save beside `v1/`, and what there is to report.

    `step_lines` are those of the step that was made.
    """

    lists: tuple[StagedList, ...]
    side_file: bytes | None
    counts: DownloadCounts | None = None
    step_lines: int = 0


#: Those of a site that has none.
NONE: Final = StagedDownloads((), None)


def stage(folder: Output, config: Config, listed: Listed, known: Known) -> StagedDownloads:
    """Stage what is new of the downloads, whose details are staged or in place; `known` are generations in place."""
    made = _Downloads(folder, config, listed).made()
    lists = tuple(staging.stage_generation(folder, known, download) for download in made.downloads)
    return StagedDownloads(lists, made.side_file.encoded(), made.counts, made.step_lines)


class _Made(NamedTuple):
    downloads: list[Download]
    side_file: SideFile
    counts: DownloadCounts
    step_lines: int


class _Changes:
    """Receives what changed."""

    def __init__(self, step: StepWriter) -> None:
        self.step = step
        self.gone = set[str]()

    def add(self, change: Changed) -> None:
        """Note a change."""
        if change.after is None:
            self.gone.add(change.id)
        self.step.add(change)


class _Downloads:
    """The downloads of one build."""

    def __init__(self, folder: Output, config: Config, listed: Listed) -> None:
        self._folder = folder
        self._config = config
        self._listed = listed
        self._before = _read_head(folder, keys.DUMPS, DumpHead)
        self._side_file = side_file.decoded(folder.read(files.DUMP_PARTS))
        #: The names of files that are not in place yet.
        self._staged = set[str]()

    def made(self) -> _Made:
        """Stage the files, and say what the downloads consist of."""
        with self._folder.scratch_file(_DUMP) as file, self._folder.scratch_file(_STEP) as step_file:
            changes = _Changes(StepWriter(step_file.write, self._size_before()))
            made = self._write_dump(file, changes)
            step = changes.step.close()
        head, partitions = self._with_parquet(self._dump_head(made.written), changes.gone if made.is_compared else None)
        found = [self._download(keys.DUMPS, head, head.count, head.files())]
        kept = {name: parts for name, parts in self._side_file.dumps.items() if name == self._name_before()}
        side = SideFile(dumps={**kept, head.markets[0].name: made.written.segments}, partitions=partitions)
        counts = DownloadCounts.of(head)
        if not self._config.has_changes:
            return _Made(found, side, counts, 0)
        before = self._name_before() if made.is_compared else ""
        feed = self._changes_head(head, before, step, has_gone=bool(changes.gone))
        found.append(self._download(keys.CHANGES, feed, len(feed.steps), feed.steps))
        is_kept = step is not None and step.sha256 in [newest.sha256 for newest in feed.steps[-1:]]
        return _Made(found, side, counts.with_changes(feed), step.count if step and is_kept else 0)

    def _with_parquet(self, head: DumpHead, gone: Collection[str] | None) -> tuple[DumpHead, Mapping[str, str]]:
        """The head with Parquet files, if they are wanted, and what stands for their content."""
        if not self._config.has_parquet:
            return head, {}
        known, listed = self._side_file.partitions, self._listed
        made = ParquetFiles(self._folder, self._config, listed.as_of, self._before, listed.members, known, self._staged)
        found = made.added_to(head, gone)
        before = {file.name for file in self._before.files()} if self._before else set()
        return found, {**{name: known[name] for name in known.keys() & before}, **made.digests}

    def _changes_head(self, head: DumpHead, before: str, step: WrittenStep | None, *, has_gone: bool) -> ChangesHead:
        """The head of the change feed, whose step was written."""
        if step:
            self._stage_file(_STEP, keys.CHANGES, downloads.name(step.sha256, downloads.NDJSON))
        state = NewState(self._listed.as_of, frozenset(self._listed.ids), head, before, step, has_gone)
        in_place = _read_head(self._folder, keys.CHANGES, ChangesHead)
        return ChangeFeed(self._folder, self._config, state, self._staged).head(in_place)

    def _download(self, name: str, head: BaseModel, count: int, found: Iterable[DownloadFile]) -> Download:
        return Download(name, contract.encode(head), count, {file.name: file.size for file in found}, self._staged)

    def _write_dump(self, file: BinaryIO, changes: "_Changes") -> dump.Made:
        """Write the dump, and what changed since the last one."""
        listed = self._listed
        changed = frozenset(listed.ids) if self._side_file.is_doubted else listed.changed
        with self._previous() as previous:
            return dump.make(file.write, Markets(listed.ids, changed, self._line_of), previous, changes.add)

    def _size_before(self) -> int | None:
        return self._before.markets[0].size if self._before else None

    def _name_before(self) -> str:
        return self._before.markets[0].name if self._before else ""

    @contextmanager
    def _previous(self) -> Iterator[Previous | None]:
        """The dump that readers find, if it is as the last build left it."""
        name = self._name_before()
        path = self._folder.path(keys.chunk(keys.DUMPS, name))
        if name not in self._side_file.dumps or not path.is_file():
            yield None
            return
        with path.open("rb") as file:
            yield Previous(lambda start, size: os.pread(file.fileno(), size, start), self._side_file.dumps[name])

    def _line_of(self, market_id: str) -> bytes:
        return detail.market_object(self._folder.newest_body(keys.detail(market_id)))

    def _dump_head(self, written: Written) -> DumpHead:
        before = self._before
        is_same = before is not None and before.state == written.state
        name = downloads.name(written.sha256, downloads.NDJSON, downloads.MARKETS_FOLDER)
        self._stage_file(_DUMP, keys.DUMPS, name)
        ndjson = MarketsFile(
            name=name, url=self._url(keys.DUMPS, name), sha256=written.sha256, size=written.size, format="ndjson"
        )
        as_of = before.as_of if before and is_same else self._listed.as_of
        return DumpHead(as_of=as_of, count=written.count, state=written.state, markets=[ndjson])

    def _stage_file(self, scratch: str, list_name: str, name: str) -> None:
        if self._folder.stage_file(scratch, keys.chunk(list_name, name)):
            self._staged.add(name)

    def _url(self, list_name: str, name: str) -> str:
        return downloads.url(self._config.files_url, list_name, name)


def _read_head(folder: Output, list_name: str, model: type[Head]) -> Head | None:
    """The head in place; None if there is none that this program can read."""
    try:
        return model.model_validate_json(folder.read(keys.head(list_name)) or b"")
    except ValidationError:
        return None
