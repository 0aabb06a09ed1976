"""Withdraws markets from the downloads: the dump without them, and a change feed that begins again.

No step is kept: each might show the markets, and what it says of others can be found in the dump. Followers see the new
session, and start from the dump.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from pydantic import ValidationError

from generator.api import contract, downloads, keys
from generator.api.downloads import DumpHead
from generator.downloads import dump, side_file
from generator.downloads.segments import Written
from generator.downloads.side_file import SideFile
from generator.publish.withdrawn_parquet import WithdrawnParquet
from generator.tree import files, staging
from generator.tree.download import Download
from generator.tree.folder import Output
from generator.tree.list_reader import Read
from generator.tree.manifest import Manifest
from generator.tree.staging import Staged, StagedList

_DUMP: Final = "dump"


class WithdrawnDownloads:
    """The downloads of a state, without some markets (ids); `read` reads its objects, as readers find them.

    `is_doubted`: a head may be another than the state's.
    """

    def __init__(self, folder: Output, before: Manifest, read: Read, ids: Collection[str], *, is_doubted: bool) -> None:
        self._folder = folder
        self._before = before
        self._read = read
        self._ids = ids
        self._is_doubted = is_doubted
        #: What to save beside the dump, if it is in the output folder.
        self.side_file: bytes | None = None

    def staged(self) -> tuple[StagedList, ...]:
        """Stage what changes; what cannot be read ends until the next build."""
        if keys.DUMPS not in self._before.downloads:
            return ()
        if not self._ids and not self._is_doubted:
            kept = self._before.downloads.items()
            return tuple(StagedList(name, current, new=None, first_pages=Staged()) for name, current in kept)
        head = self._head()
        written = self._write_dump(head) if head else None
        if head is None or written is None:
            return ()
        parquet = WithdrawnParquet(self._folder, self._read, self._ids)
        new = _dump_head(head, written, parquet.parts(head))
        staged = parquet.staged
        if self._folder.stage_file(_DUMP, keys.chunk(keys.DUMPS, new.markets[0].name)):
            staged.add(new.markets[0].name)
        sizes = {file.name: file.size for file in new.files()}
        found = [Download(keys.DUMPS, contract.encode(new), new.count, sizes, staged)]
        if keys.CHANGES in self._before.downloads:
            found.append(Download(keys.CHANGES, contract.encode(downloads.begun(new)), 0, {}, ()))
        known = self._before.generations()
        return tuple(staging.stage_generation(self._folder, known, download) for download in found)

    def _head(self) -> DumpHead | None:
        """The dump's head; None if it cannot be read."""
        try:
            return DumpHead.model_validate_json(self._read(keys.head(keys.DUMPS)) or b"")
        except ValidationError:
            return None

    def _write_dump(self, head: DumpHead) -> Written | None:
        """Write the dump without the markets; None if it cannot be read."""
        name = head.markets[0].name
        body = self._read(keys.chunk(keys.DUMPS, name))
        if body is None or not downloads.is_named_by(name, body):
            return None
        try:
            with self._folder.scratch_file(_DUMP) as file:
                written = dump.without(file.write, dump.lines([body]), self._ids)
        except ValueError:
            return None
        known = side_file.decoded(self._folder.read(files.DUMP_PARTS))
        # A killed build leaves details that are newer than the dump.
        is_doubted = known.is_doubted or not self._before.complete
        segments = {_name(written): written.segments}
        self.side_file = SideFile(dumps=segments, partitions=known.partitions, is_doubted=is_doubted).encoded()
        return written


def _dump_head(before: DumpHead, written: Written, parquet: Mapping[str, Any]) -> DumpHead:
    old, name = before.markets[0], _name(written)
    url = old.url.removesuffix(old.name) + name
    new = old.model_copy(update={"name": name, "url": url, "sha256": written.sha256, "size": written.size})
    head = DumpHead(as_of=before.as_of, count=written.count, state=written.state, markets=[new])
    return head.model_copy(update={**parquet, "markets": [new, *parquet["markets"]]})


def _name(written: Written) -> str:
    return downloads.name(written.sha256, downloads.NDJSON, downloads.MARKETS_FOLDER)
