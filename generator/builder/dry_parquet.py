"""About how large the Parquet files of a dump will be, by those of a sample of its markets; exactly if they are few."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from generator.api import downloads
from generator.api.contract import Variant
from generator.api.downloads import DumpHead, MarketsFile, PartitionFile
from generator.downloads import parquet, partitions
from generator.downloads.parquet import Written
from generator.markets import detail

#: The markets of the sample: the first by id, so any. Their details, of a dozen kilobytes each, are held in memory.
_SAMPLE: Final = 1_000
_UNKNOWN: Final = "0" * 64
_KINDS: Final = {"history": parquet.history, "fills": parquet.fills}
_OPEN: Final = "state=open/"


@dataclass
class ParquetMeter:
    """Measures the Parquet files of one dry build; `last` is the head that the last one left."""

    variant: Variant
    last: DumpHead | None
    _bodies: list[bytes] = field(default_factory=list)
    #: How many markets each partition has, and the partitions of markets that changed.
    _members: Counter[str] = field(default_factory=Counter)
    _changed: set[str] = field(default_factory=set)

    def add(self, partition: str, body: bytes, *, is_changed: bool) -> None:
        """Add a listed market with this detail, whose history belongs to the partition."""
        self._members[partition] += 1
        if is_changed:
            self._changed.add(partition)
        if len(self._bodies) < _SAMPLE:
            self._bodies.append(body)

    def added_to(self, head: DumpHead, as_of: str) -> DumpHead:
        """The head with Parquet files; the names of those that are new are unknown, and the same for all."""
        last = self.last
        before = (
            [file for file in last.markets if file.format == "parquet"] if last and last.state == head.state else []
        )
        markets = before or [self._markets()]
        of_last = last.history_as_of if last else None
        found = {kind: [*self._files(kind, is_due=partitions.is_due(of_last, as_of))] for kind in _KINDS}
        is_same = all(found[kind] == [*self._before(kind)] for kind in _KINDS)
        update = {"history_as_of": of_last if is_same else as_of, "markets": [*head.markets, *markets]}
        return head.model_copy(update={**found, **update})

    def _markets(self) -> MarketsFile:
        lines = map(detail.market_object, self._bodies)
        size = self._scaled(parquet.markets(len, lines, self.variant))
        return MarketsFile(name=_name("markets"), url=_UNKNOWN, sha256=_UNKNOWN, size=size, format="parquet")

    def _files(self, kind: str, *, is_due: bool) -> Iterator[PartitionFile]:
        before = {file.name.rpartition("/")[0]: file for file in self._before(kind)}
        if not is_due:
            yield from before.values()
            return
        size = self._scaled(_KINDS[kind](len, self._bodies))
        for partition, count in sorted(self._members.items()):
            folder = f"{kind}/{partition}"
            is_same = folder in before and partition not in self._changed and not partition.startswith(_OPEN)
            yield before[folder] if is_same else _file(folder, size * count // self._members.total())

    def _before(self, kind: str) -> Iterable[PartitionFile]:
        return (getattr(self.last, kind) or ()) if self.last else ()

    def _scaled(self, sample: Written) -> int:
        return sample.size * self._members.total() // max(1, len(self._bodies))


def _file(folder: str, size: int) -> PartitionFile:
    _, *parts = folder.split("/")
    given = {"name": _name(folder), "url": _UNKNOWN, "sha256": _UNKNOWN, "size": size}
    return PartitionFile.model_validate({**given, **dict(part.split("=") for part in parts)})


def _name(folder: str) -> str:
    return downloads.name(_UNKNOWN, downloads.PARQUET, f"{folder}/")
