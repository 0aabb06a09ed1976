"""Which files of histories are in place, and whether they are those that the last build, or publish, left."""

from generator import filesystem
from generator.api import downloads
from generator.api.downloads import DumpHead
from generator.config.settings import Config
from generator.downloads import side_file
from generator.downloads.side_file import HistoryState
from generator.tree import files as names
from generator.tree import last_publish
from generator.tree.download import reader_of_heads
from generator.tree.manifest import Manifest
from generator.tree.workplace import Workplace


def found_in(folder: Workplace, known: Manifest | None = None) -> HistoryState | None:
    """What the files that readers find hold; None if there are none, or not those that the last build left.

    If the head is damaged, it is what the `known` manifest leads to.
    """
    state = side_file.decoded(folder.read(names.DUMP_PARTS)).histories
    return state if are_of(state, _head(folder, known), folder) else None


def maker(folder: Workplace) -> str:
    """The program that made the files in place; '' if nobody knows."""
    return side_file.decoded(folder.read(names.DUMP_PARTS)).maker


def are_of(state: HistoryState | None, head: DumpHead | None, folder: Workplace) -> bool:
    """Whether the state is that of the files that the head names, which are there."""
    if state is None or head is None or state.tables != downloads.tables(fills=head.has_fills):
        return False
    files = head.tables()
    return [file.name for file in files] == [*state.files] and all(folder.has(file.key) for file in files)


def are_unpublished(config: Config, folder: Workplace) -> bool:
    """Whether the files in place are of a build that was to be published, and was not: the next one makes them anew."""
    last, head = last_publish.found(folder.read), DumpHead.found_by(folder.read)
    if config.publish.target is None or last is None or head is None:
        return False
    return last.target != config.publish.target or (head.history_as_of or "") > last.as_of


def are_undamaged(folder: Workplace, known: Manifest | None = None) -> bool:
    """Whether the files in place have the bytes that the head tells of: a build is about to copy their rows."""
    head = _head(folder, known)
    return head is not None and all(filesystem.digest(folder.path(file.key)) == file.sha256 for file in head.tables())


def _head(folder: Workplace, known: Manifest | None) -> DumpHead | None:
    return DumpHead.found_by(reader_of_heads(folder.read, known) if known else folder.read)
