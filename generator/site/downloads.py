"""Makes the downloads of a site: the dump of all listed markets, and the change feed, with the step that leads to it.

Both are made from what readers found so far, as the heads in place say: a killed run may have replaced one of them. A
takedown keeps no step, as each might show the markets: followers see a new session, and start from the dump.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from generator import program
from generator.api import changes, downloads, keys
from generator.api.changes import ChangesHead
from generator.api.downloads import Definitions, DefinitionsFile, DumpHead, Head, MarketsFile
from generator.api.licensing import Licensing
from generator.config.settings import Config
from generator.downloads import definitions, dump, parquet, segments, side_file
from generator.downloads.dump import Changed, Markets, Previous
from generator.downloads.segments import Written
from generator.downloads.side_file import HistoryState, SideFile
from generator.downloads.steps import StepWriter, WrittenStep
from generator.models import replaced
from generator.site.catalog import Listed
from generator.site.change_feed import ChangeFeed, NewState
from generator.site.download_files import Download, NewFiles, Write
from generator.site.sessions import LastPublish, reader_of_heads
from generator.tree import files, staging
from generator.tree.generation import Workplace
from generator.tree.manifest import Manifest
from generator.tree.staging import StagedFamily


class StagedDownloads(NamedTuple):
    """The downloads as they were staged, the file to save beside `v1/`, and the heads of dump and change feed.

    `step_lines` are those of the step that was made. `lost` is the file of the output folder (by name) without which
    the feed could not go on; empty if there is none. `is_partial`: a takedown left damaged files of tables out.
    """

    families: tuple[StagedFamily, ...]
    side_file: bytes | None
    dump: DumpHead | None = None
    feed: ChangesHead | None = None
    step_lines: int = 0
    lost: str = ""
    is_partial: bool = False


#: Those of a site that has none.
NONE: Final = StagedDownloads((), None)


def stage(folder: Workplace, config: Config, listed: Listed, before: Manifest | None) -> StagedDownloads:
    """Stage what is new of the downloads, whose details are staged or in place; `before` is the state in place."""
    return _Downloads(folder, config, listed, before).staged()


class _Downloads:
    """The downloads of one build; `before` is the state in place."""

    def __init__(self, folder: Workplace, config: Config, listed: Listed, before: Manifest | None) -> None:
        self._folder = folder
        self._config = config
        self._listed = listed
        self._state = before
        self._read_head = reader_of_heads(folder.read, before)
        self._before = listed.details.takedown.dump if listed.details.takedown else DumpHead.found_by(self._read_head)
        self._side_file = side_file.decoded(folder.read(files.DUMP_PARTS))
        self._files = NewFiles(folder)
        self._is_partial = False
        self._licensing = Licensing.of(config)
        #: Whether every file is made again: another program may have made those in place, or they may be damaged.
        self._is_anew = not listed.details.takedown and (
            listed.details.is_full or self._side_file.maker != program.maker()
        )

    def staged(self) -> StagedDownloads:
        """Stage dump and change feed."""
        writer = StepWriter(self._before.ndjson.size if self._before else None)
        made, ndjson = self._dump(writer)
        step = self._files.draft(writer.close)
        head = DumpHead.of(made.written, ndjson, self._listed.as_of, self._before, self._licensing)
        takedown = self._listed.details.takedown
        head, links, histories = self._with_parquet(self._with_definitions(head))
        is_same = head.ndjson.name == self._name_before()
        before = {
            name: parts for name, parts in self._side_file.dumps.items() if is_same or name == self._name_before()
        }
        side = SideFile(
            dumps={**before, head.ndjson.name: made.written.segments},
            links=links,
            maker=self._side_file.maker if takedown else program.maker(),
            is_doubted=takedown is not None and (takedown.is_doubted or self._side_file.is_doubted),
            histories=histories,
        )
        feed, lost = None, ""
        if self._config.has_changes and takedown:
            feed = _begun(head, ChangesHead.found_by(self._folder.read))
        elif self._config.has_changes:
            # A damaged dump that is made again as it was cannot be compared, and need not.
            is_compared = made.is_compared or is_same
            compared = self._name_before() if is_compared else ""
            state = NewState(self._listed.as_of, frozenset(self._listed.ids), head, compared, step, writer.has_gone)
            last = ChangesHead.found_by(self._read_head)
            led_to = None if self._was_unpublished() else last
            feed = ChangeFeed(self._files, state, is_full=self._listed.details.is_full).head(led_to)
            lost = "" if is_compared or last is None else self._lost()
        step_lines = _lines_of_newest(feed, step.content) if feed else 0
        self._files.discard(step)
        # A file that is staged may take the place of a damaged one in a generation that is known.
        is_believed = self._state and not self._listed.details.is_full and not self._files.staged
        known = self._state.generations() if self._state and is_believed else {}
        heads = [head, *([feed] if feed else [])]
        lists = tuple(staging.stage_generation(self._folder, known, download) for download in self._downloads(heads))
        return StagedDownloads(lists, side.encoded(), head, feed, step_lines, lost, self._is_partial)

    def _was_unpublished(self) -> bool:
        """Whether the state in place was to be published from the folder, and was not, which is served itself now."""
        last = LastPublish.found(self._folder.read)
        now = self._state.current.get(keys.CHANGES) if self._state else None
        if last is None or now is None or self._config.publish.target:
            return False
        return last.changes != now.generation

    def _downloads(self, heads: Sequence[Head]) -> Iterator[Download]:
        """The download of each head: a file that several name is moved into place by the first."""
        staged = set(self._files.staged)
        for head in heads:
            yield Download(head, frozenset(staged))
            staged.difference_update(file.key for file in head.files())

    def _with_definitions(self, head: DumpHead) -> DumpHead:
        """The head with the definitions of questions, if there is such a resource."""
        lines = self._listed.definitions
        if lines is None:
            return head
        before = self._before.questions if self._before else None
        draft = self._files.draft(lambda write: definitions.written(write, lines))
        made, url = draft.content, self._config.files_url
        files = [self._files.stage(draft, DefinitionsFile.of(made, url))]
        if self._config.has_parquet:
            links, variant = self._listed.catalog.question_links(self._config.question_url), self._config.variant
            rows = definitions.encoded(definitions.rows(lines, links.of))
            linked, stated = links.url is not None, self._licensing.stated()
            table = self._files.draft(lambda write: parquet.definitions(write, rows, variant, stated, linked=linked))
            files.append(self._files.stage(table, DefinitionsFile.of(table.content, url, "parquet")))
        since = before.as_of if before and before.state == made.state else self._listed.as_of
        return replaced(head, questions=Definitions(as_of=since, count=len(lines), state=made.state, files=files))

    def _with_parquet(self, head: DumpHead) -> tuple[DumpHead, Mapping[str, str], HistoryState | None]:
        """The head with Parquet files, if they are wanted, and what stands for their content."""
        if not self._config.has_parquet:
            return head, {}, None
        from generator.site.parquet_files import ParquetFiles  # noqa: PLC0415 - most sites need no NumPy

        known = {} if self._is_anew else self._side_file.links
        files = ParquetFiles(self._files, self._config, self._listed, self._before, known, self._is_anew)
        histories, state = files.histories(self._side_file.histories)
        self._is_partial = bool(files.damaged)
        found, links = files.with_markets(replaced(head, **histories))
        before = self._before.parquet if self._before else None
        kept = {before.name: known[before.name]} if before and before.name in known else {}
        return found, dict(sorted({**kept, **links}.items())), state

    def _dump(self, changes: StepWriter) -> tuple[dump.Made, MarketsFile]:
        """The dump and its file, which is staged unless it is in place; `changes` receives what changed."""
        if in_place := self._in_place():
            return dump.Made(in_place, is_compared=True), self._file_of(in_place)
        draft = self._files.draft(lambda write: self._write_dump(write, changes))
        return draft.content, self._files.stage(draft, self._file_of(draft.content.written))

    def _file_of(self, written: Written) -> MarketsFile:
        return MarketsFile.of(written, self._config.files_url)

    def _in_place(self) -> Written | None:
        """The dump in place, if this one is equal to it. It need not be read: its ids are known by their digests."""
        before, parts = self._before, self._side_file.dumps.get(self._name_before())
        if before is None or parts is None or self._listed.changed or self._is_anew:
            return None
        if self._side_file.is_doubted or self._listed.details.takedown:
            return None
        if not self._folder.are_placed([before.ndjson.key]):
            return None
        ids = map(segments.ids_digest, segments.groups(self._listed.ids))
        is_equal = [*ids] == [part.ids for part in parts]
        return (
            Written(before.ndjson.sha256, before.ndjson.size, before.state, before.count, parts) if is_equal else None
        )

    def _write_dump(self, write: Write, changes: StepWriter) -> dump.Made:
        """Write the dump, and what changed since the last one."""
        is_doubted = self._is_anew or self._side_file.is_doubted
        changed = frozenset(self._listed.ids) if is_doubted else self._listed.changed
        markets = Markets(self._listed.ids, changed, self._listed.details.line_of, is_anew=self._is_anew)
        add = _ignore if self._listed.details.takedown else changes.add
        with self._previous() as previous:
            return dump.make(write, markets, previous, add)

    def _name_before(self) -> str:
        return self._before.ndjson.name if self._before else ""

    def _lost(self) -> str:
        """The file without which the dump in place cannot be compared."""
        name = self._name_before()
        return keys.chunk(keys.DUMPS, name) if name in self._side_file.dumps else files.DUMP_PARTS

    @contextmanager
    def _previous(self) -> Iterator[Previous | None]:
        """The dump that readers find, if it is as the last build left it."""
        takedown = self._listed.details.takedown
        if takedown and takedown.previous:
            yield takedown.previous
            return
        name = self._name_before()
        path = self._folder.path(keys.chunk(keys.DUMPS, name))
        if name not in self._side_file.dumps or not path.is_file():
            yield None
            return
        with path.open("rb") as file:
            yield Previous(lambda start, size: os.pread(file.fileno(), size, start), self._side_file.dumps[name])


def _ignore(_: Changed) -> None:
    """A takedown makes no step."""


def _begun(dumped: DumpHead, found: ChangesHead | None) -> ChangesHead:
    """The head of a session that begins with this dump, and that followers have not seen in another state.

    An older version, or a copy of the folder, may have put the head of the feed and not yet that of the dump.
    """
    begun = changes.begun(dumped)
    if found is None or found.session != begun.session or found.state == begun.state:
        return begun
    return replaced(begun, session=changes.session_after(found))


def _lines_of_newest(feed: ChangesHead, written: WrittenStep | None) -> int:
    """The lines of the step that was written, if it is in the feed."""
    names = [step.name for step in feed.steps[-1:]]
    return written.count if written and downloads.name(written.sha256, downloads.NDJSON) in names else 0
