"""Withdraws markets from the downloads: makes the dump without them, and begins a new session of the change feed.

No step is kept, as each might show the markets. Followers see the new session, and start from the dump.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from generator.api import downloads, keys
from generator.api.downloads import ChangesHead, DumpHead
from generator.downloads import dump, side_file
from generator.downloads.side_file import SideFile
from generator.publish.withdrawn_parquet import WithdrawnParquet
from generator.tree import files, staging
from generator.tree.download import Download, NewFiles
from generator.tree.folder import Output
from generator.tree.list_reader import Read
from generator.tree.manifest import Manifest
from generator.tree.staging import Staged, StagedList


class Withdrawn(NamedTuple):
    """The downloads as they were staged, and what to save beside them, if they are in the output folder."""

    lists: tuple[StagedList, ...]
    side_file: bytes | None


#: Those of a state without downloads.
NONE: Final = Withdrawn((), None)


class WithdrawnDownloads:
    """The downloads of a state, without some markets (ids); `read` reads its objects, as readers find them.

    `is_doubted`: a head may be another than the state's.
    """

    def __init__(self, folder: Output, before: Manifest, read: Read, ids: Collection[str], *, is_doubted: bool) -> None:
        self._folder = folder
        self._files = NewFiles(folder)
        self._before = before
        self._read = read
        self._ids = ids
        self._is_doubted = is_doubted

    def staged(self) -> Withdrawn:
        """Stage what changes; what cannot be read ends until the next build."""
        if keys.DUMPS not in self._before.downloads:
            return NONE
        if not self._ids and not self._is_doubted:
            kept = self._before.downloads.items()
            return Withdrawn(tuple(StagedList(name, current, None, Staged()) for name, current in kept), None)
        head = DumpHead.found_by(self._read)
        made = self._dump_without(head) if head else None
        if made is None:
            return NONE
        new, kept_beside = made
        heads = [new, *([self._begun(new)] if keys.CHANGES in self._before.downloads else [])]
        known = self._before.generations()
        found = (Download(head, self._files.staged) for head in heads)
        lists = tuple(staging.stage_generation(self._folder, known, download) for download in found)
        return Withdrawn(lists, kept_beside.encoded())

    def _begun(self, dumped: DumpHead) -> ChangesHead:
        """The head of a session that begins with this dump, and that followers have not seen in another state.

        A killed run may have put the head of the next state's feed, but not of its dump. Without the markets that are
        new in that state, the dump in place is the one that the session began with.
        """
        begun, found = downloads.begun(dumped), ChangesHead.found_by(self._read)
        if found is None or found.session != begun.session or found.state == begun.state:
            return begun
        return begun.model_copy(update={"session": downloads.session_after(found)})

    def _dump_without(self, head: DumpHead) -> tuple[DumpHead, SideFile] | None:
        """The head of the dump without the markets, and what to keep beside it; None if that cannot be read."""
        body = self._read(head.ndjson.key)
        if body is None or not downloads.is_named_by(head.ndjson.name, body):
            return None
        try:
            draft = self._files.draft(lambda write: dump.without(write, dump.lines([body]), self._ids))
        except ValueError:
            return None
        written = draft.content
        ndjson = self._files.stage(draft, head.ndjson.replaced_by(written))
        known = side_file.decoded(self._folder.read(files.DUMP_PARTS))
        # A killed build leaves details that are newer than the dump.
        is_doubted = known.is_doubted or not self._before.complete
        segments = {ndjson.name: written.segments}
        beside = SideFile(dumps=segments, partitions=known.partitions, is_doubted=is_doubted)
        parquet = WithdrawnParquet(self._files, self._read, self._ids).parts(head)
        new = DumpHead(as_of=head.as_of, count=written.count, state=written.state, markets=[ndjson])
        return new.model_copy(update={**parquet, "markets": [ndjson, *parquet["markets"]]}), beside
