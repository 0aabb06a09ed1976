"""A download, the dump or the change feed: files named by their content, and the head that names them."""

import secrets
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeAlias, TypeVar

from generator import filesystem
from generator.api import contract, keys
from generator.api.downloads import DownloadFile, DumpFile, Head
from generator.errors import DamageError
from generator.tree import generations
from generator.tree.generation import Stage, StagedGeneration
from generator.tree.manifest import Manifest
from generator.tree.workplace import Workplace

Write: TypeAlias = Callable[[bytes], object]
#: Reads an object by its key; None if there is none.
Read: TypeAlias = Callable[[str], bytes | None]
Content = TypeVar("Content")
File = TypeVar("File", bound=DownloadFile)


def reader_of_heads(read: Read, known: Manifest) -> Read:
    """Reads the head of a download, by its key, if a known generation has it; else what the current one says, if any.

    An index says what the head said, so a head that was damaged is not lost.
    """

    def found(key: str) -> bytes | None:
        name = next(family for family in keys.INDEXED if keys.head(family) == key)
        body = read(key) or b""
        if (name, generations.name_of_index(keys.DOWNLOAD_LETTER, body)) in known.generations():
            return body
        current = known.current.get(name)
        index = read(keys.index(name, current.generation)) if current else None
        return index if current and index and generations.is_index(name, current.generation, index) else None

    return found


@dataclass(frozen=True)
class Draft(Generic[Content]):
    """A written file without a name, and what its writer says of its content: None if nobody needs it."""

    path: Path
    content: Content


class NewFiles:
    """Stages files of downloads, each of which is named by its content."""

    def __init__(self, folder: Workplace) -> None:
        self.folder = folder
        #: The keys of the files that are not in place yet.
        self.staged = set[str]()

    def draft(self, make: Callable[[Write], Content]) -> Draft[Content]:
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

    def stage(self, draft: Draft[Any], file: File) -> File:
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

    def stage(self, stage: Stage) -> StagedGeneration:
        """Stage the index; the files are staged already."""
        index = keys.index(self.list_name, self.name)
        indexes = (index,) if stage.put(index, self._head) else ()
        places = (*(file.key for file in self._staged), *indexes)
        written = sum(file.size for file in self._staged) + len(indexes) * len(self._head)
        size = sum(file.size for file in self._files.values()) + len(self._head)
        return StagedGeneration(places, len(places), written, size)
