"""Which files of histories are in place, and whether they are those that the last build, or publish, left."""

import hashlib

from generator.api.downloads import TABLES, DumpHead, PeriodFile
from generator.config.settings import Config
from generator.downloads import side_file
from generator.downloads.side_file import HistoryState
from generator.tree import files as names
from generator.tree import last_publish
from generator.tree.workplace import Workplace


def found_in(folder: Workplace) -> HistoryState | None:
    """What the files that readers find hold; None if there are none, or not those that the last build left."""
    state = side_file.decoded(folder.read(names.DUMP_PARTS)).histories
    return state if are_of(state, DumpHead.found_by(folder.read), folder) else None


def are_of(state: HistoryState | None, head: DumpHead | None, folder: Workplace) -> bool:
    """Whether the state is that of the files that the head names, which are there."""
    if state is None or head is None or state.tables != TABLES:
        return False
    files = [file for table in TABLES for file in head.periods(table)]
    return [file.name for file in files] == [*state.files] and all(folder.has(file.key) for file in files)


def are_unpublished(config: Config, folder: Workplace) -> bool:
    """Whether the files in place are of a build that was to be published, and was not: the next one makes them anew."""
    last, head = last_publish.found(folder.read), DumpHead.found_by(folder.read)
    if config.publish.target is None or last is None or head is None:
        return False
    return (head.history_as_of or "") > last.as_of


def are_undamaged(folder: Workplace) -> bool:
    """Whether the files in place have the bytes that the head tells of: a build is about to copy their rows."""
    head = DumpHead.found_by(folder.read)
    return head is not None and all(
        _digest(file, folder) == file.sha256 for table in TABLES for file in head.periods(table)
    )


def _digest(file: PeriodFile, folder: Workplace) -> str:
    with folder.path(file.key).open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
