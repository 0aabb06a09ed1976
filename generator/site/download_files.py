"""The files of downloads, which are named by their content: new ones, the heads that name them, and those in place."""

import secrets
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeAlias, TypeVar

from generator import filesystem
from generator.api import contract, downloads, keys
from generator.api.downloads import DownloadFile, DumpFile, DumpHead, Head
from generator.downloads import side_file
from generator.downloads.side_file import HistoryState
from generator.errors import DamageError
from generator.tree import files as names
from generator.tree import generations
from generator.tree.generation import Read, StagedGeneration, Workplace

Write: TypeAlias = Callable[[bytes], object]
_Content = TypeVar("_Content")
_File = TypeVar("_File", bound=DownloadFile)


@dataclass(frozen=True)
class Draft(Generic[_Content]):
    """A written file without a name, and what its writer says of its content: None if nobody needs it."""

    path: Path
    content: _Content


class NewFiles:
    """Stages files of downloads, each of which is named by its content."""

    def __init__(self, folder: Workplace) -> None:
        self.folder = folder
        #: The keys of the files that are not in place yet.
        self.staged = set[str]()

    def draft(self, make: Callable[[Write], _Content]) -> Draft[_Content]:
        """Have a file written piece by piece."""
        # The folder may be locked for several of these, one of them in a worker.
        path, content = self.folder.scratch(f"download-{secrets.token_hex(8)}"), None
        try:
            with path.open("xb") as file:
                content = make(file.write)
        finally:
            if content is None:
                path.unlink(missing_ok=True)
        return Draft(path, content)

    def opened(self, file: DumpFile) -> BinaryIO:
        """Open a file as it is staged, or in place; raise DamageError if it is not the one that is named so."""
        opened = self.folder.open_newest(file.key)
        if filesystem.digest_of(opened) != file.sha256:
            opened.close()
            raise DamageError(file.key)
        opened.seek(0)
        return opened

    def stage(self, draft: Draft[Any], file: _File) -> _File:
        """Stage a draft as this file, which describes its content, unless it is in place."""
        if self.folder.stage_file(draft.path, file.key):
            self.staged.add(file.key)
        self.discard(draft)
        return file

    def discard(self, draft: Draft[Any]) -> None:
        """Delete a draft, unless it was staged."""
        draft.path.unlink(missing_ok=True)


class Download:
    """One content of a download, by its head; `staged` are the keys of files that are not in place yet."""

    def __init__(self, head: Head, staged: Collection[str]) -> None:
        self.list_name = head.DOWNLOAD
        self.count = head.items()
        self._head = contract.encode(head)
        self.name = generations.name_of_index(keys.DOWNLOAD_LETTER, self._head)
        # Two steps may have the same bytes.
        self._files = {file.name: file for file in head.files()}
        self.chunks = tuple(self._files)
        self._staged = [file for file in self._files.values() if file.key in staged]

    def first_pages(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of the head."""
        yield keys.head(self.list_name), self._head

    def places(self) -> Iterator[str]:
        """The keys of its files, and of its index, which says what the head said."""
        yield from (file.key for file in self._files.values())
        yield keys.index(self.list_name, self.name)

    def stage(self, folder: Workplace) -> StagedGeneration:
        """Stage the index; the files are staged already."""
        index = keys.index(self.list_name, self.name)
        indexes = (index,) if folder.put(index, self._head) else ()
        places = (*(file.key for file in self._staged), *indexes)
        written = sum(file.size for file in self._staged) + len(indexes) * len(self._head)
        size = sum(file.size for file in self._files.values()) + len(self._head)
        return StagedGeneration(places, len(places), written, size)


def found_in(folder: Workplace, read_head: Read) -> HistoryState | None:
    """What the files that readers find hold; None if there are none, or not those that the last build left."""
    state = side_file.decoded(folder.read(names.DUMP_PARTS)).histories
    return state if are_of(state, DumpHead.found_by(read_head), folder) else None


def maker(folder: Workplace) -> str:
    """The program that made the files in place; '' if nobody knows."""
    return side_file.decoded(folder.read(names.DUMP_PARTS)).maker


def are_of(state: HistoryState | None, head: DumpHead | None, folder: Workplace) -> bool:
    """Whether the state is that of the files that the head names, which are there."""
    if state is None or head is None or state.tables != downloads.tables(fills=head.has_fills):
        return False
    files = head.tables()
    return [file.name for file in files] == [*state.files] and all(folder.has(file.key) for file in files)


def are_undamaged(folder: Workplace, read_head: Read) -> bool:
    """Whether the files in place have the bytes that the head tells of: a build is about to copy their rows."""
    head = DumpHead.found_by(read_head)
    return head is not None and all(filesystem.digest(folder.path(file.key)) == file.sha256 for file in head.tables())
