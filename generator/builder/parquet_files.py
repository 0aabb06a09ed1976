"""Makes the Parquet files of a dump: markets with each new dump, histories and recent fills once a day.

A file of histories stays as it is while the details of its markets do; but a market that is no longer listed leaves it
at once.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from generator.api import downloads, keys
from generator.api.downloads import DumpHead, MarketsFile, PartitionFile
from generator.config.settings import Config
from generator.downloads import dump, parquet, partitions
from generator.downloads.parquet import Write, Written
from generator.downloads.partitions import Member
from generator.tree.folder import Output

#: What is divided into partitions, and what makes a file of it from details.
_KINDS: Final[Mapping[str, Callable[[Write, Iterable[bytes]], Written]]] = {
    "history": parquet.history,
    "fills": parquet.fills,
}
_PIECE: Final = 1 << 18


@dataclass(frozen=True)
class ParquetFiles:
    """Adds Parquet files to the head of a dump as of `as_of`; `before` is the head in place.

    `members` yields each market with its partition, ascending by id. `known` are the digests of partitions by the names
    of their files, and `staged` receives the names of files that are not in place yet.
    """

    folder: Output
    config: Config
    as_of: str
    before: DumpHead | None
    members: Callable[[], Iterator[tuple[str, Member]]]
    known: Mapping[str, str]
    staged: set[str]
    #: The same as `known`, for partitions of the new head.
    digests: dict[str, str] = field(default_factory=dict)
    _scratch: Iterator[int] = field(default_factory=count)

    def added_to(self, head: DumpHead, gone: Collection[str] | None) -> DumpHead:
        """The head with Parquet files; `gone` are the markets that the dump in place has and the new one lacks.

        If nobody knows them, it is None: then every partition is looked at, as once a day.
        """
        is_due = partitions.is_due(self.before.history_as_of if self.before else None, self.as_of)
        kept = None if is_due or gone is None else self._kept(gone)
        return head.model_copy(update={**(kept or self._of_today()), "markets": [*head.markets, self._markets(head)]})

    def _markets(self, head: DumpHead) -> MarketsFile:
        before = [file for file in self.before.markets if file.format == "parquet"] if self.before else []
        if before and self.before and self.before.state == head.state and self._is_in_place(before[0].name):
            return before[0].model_copy(update={"url": self._url(before[0].name)})
        with self.folder.open_newest(keys.chunk(keys.DUMPS, head.markets[0].name)) as ndjson:
            lines = dump.lines(iter(lambda: ndjson.read(_PIECE), b""))
            made = self._file(
                downloads.MARKETS_FOLDER, lambda write: parquet.markets(write, lines, self.config.variant)
            )
        return MarketsFile.model_validate({**(made or {}), "format": "parquet"})

    def _of_today(self) -> dict[str, Any]:
        """The files of all partitions; those whose markets did not change stay as they are."""
        members: dict[str, list[Member]] = {}
        for partition, member in self.members():
            members.setdefault(partition, []).append(member)
        found = {
            kind: [self._of_partition(kind, partition, members[partition]) for partition in sorted(members)]
            for kind in _KINDS
        }
        last = self.before.history_as_of if self.before else None
        is_same = all(_names(found[kind]) == _names(self._before(kind)) for kind in _KINDS)
        return {**found, "history_as_of": last if last and is_same else self.as_of}

    def _of_partition(self, kind: str, partition: str, members: Sequence[Member]) -> PartitionFile:
        digest, folder = partitions.digest(members), f"{kind}/{partition}/"
        for file in self._before(kind):
            if self.known.get(file.name) == digest and file.name.startswith(folder) and self._is_in_place(file.name):
                return self._same(file)
        bodies = (self.folder.newest_body(keys.detail(member.id)) for member in members)
        made = self._file(folder, lambda write: _KINDS[kind](write, bodies)) or {}
        self.digests[made["name"]] = digest
        return PartitionFile.model_validate({**made, **dict(part.split("=") for part in partition.split("/"))})

    def _kept(self, gone: Collection[str]) -> dict[str, Any] | None:
        """The files in place, without markets that are gone; None if one of them is missing or damaged."""
        found: dict[str, Any] = {"history_as_of": self.before and self.before.history_as_of}
        for kind in _KINDS:
            found[kind] = [self._without(file, gone) for file in self._before(kind)]
            if None in found[kind]:
                return None
        return found

    def _without(self, file: PartitionFile, gone: Collection[str]) -> PartitionFile | None:
        if not self._is_in_place(file.name):
            return None
        if not gone:
            return self._same(file)
        folder, _, _ = file.name.rpartition("/")
        try:
            with self.folder.open_newest(keys.chunk(keys.DUMPS, file.name)) as opened:
                made = self._file(f"{folder}/", lambda write: parquet.without(write, opened, gone))
        except ValueError:
            return None
        return file.model_copy(update=made) if made else self._same(file)

    def _same(self, file: PartitionFile) -> PartitionFile:
        if file.name in self.known:
            self.digests[file.name] = self.known[file.name]
        return file.model_copy(update={"url": self._url(file.name)})

    def _before(self, kind: str) -> Sequence[PartitionFile]:
        return (getattr(self.before, kind) or ()) if self.before else ()

    def _is_in_place(self, name: str) -> bool:
        return self.folder.has(keys.chunk(keys.DUMPS, name))

    def _url(self, name: str) -> str:
        return downloads.url(self.config.files_url, keys.DUMPS, name)

    def _file(self, folder: str, make: Callable[[Write], Written | None]) -> dict[str, Any] | None:
        """Stage what is made, and describe it for a head; None if nothing is."""
        scratch = f"{downloads.PARQUET}-{next(self._scratch)}"
        with self.folder.scratch_file(scratch) as file:
            written = make(file.write)
        if written is None:
            return None
        name = downloads.name(written.sha256, downloads.PARQUET, folder)
        if self.folder.stage_file(scratch, keys.chunk(keys.DUMPS, name)):
            self.staged.add(name)
        return {"name": name, "url": self._url(name), "sha256": written.sha256, "size": written.size}


def _names(found: Iterable[PartitionFile]) -> list[str]:
    return [file.name for file in found]
