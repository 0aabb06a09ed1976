"""About how large the Parquet files of a dump will be, by those of a sample of its markets; exactly if they are few."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from generator.api.downloads import TABLES, DumpHead, MarketsFile, PartitionFile
from generator.config.settings import Config
from generator.downloads import parquet, partitions
from generator.downloads.parquet import WrittenTable
from generator.markets import detail

#: The markets of the sample: the first by id, so any. Their details, of a dozen kilobytes each, are held in memory.
_SAMPLE: Final = 1_000
_UNKNOWN: Final = "0" * 64
_OPEN: Final = "state=open/"


class Expected(NamedTuple):
    """A file of this size, of which nobody knows the digest yet."""

    size: int
    sha256: str = _UNKNOWN


@dataclass
class ParquetMeter:
    """Measures the Parquet files of one dry build; `last` is the head that the last one left."""

    config: Config
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
        before = last.parquet if last and last.state == head.state else None
        of_last = last.history_as_of if last else None
        found = {table: [*self._files(table, is_due=partitions.is_due(of_last, as_of))] for table in TABLES}
        is_same = all(found[table] == [*self._before(table)] for table in TABLES)
        markets = [head.ndjson, before or self._markets()]
        update = {"history_as_of": of_last if is_same else as_of, "markets": markets}
        return head.model_copy(update={**found, **update})

    def _markets(self) -> MarketsFile:
        lines = map(detail.market_object, self._bodies)
        size = self._scaled(parquet.markets(len, lines, self.config.variant))
        return MarketsFile.of(Expected(size), self.config.files_url, "parquet")

    def _files(self, table: str, *, is_due: bool) -> Iterator[PartitionFile]:
        before = {file.folder: file for file in self._before(table)}
        if not is_due:
            yield from before.values()
            return
        size = self._scaled(parquet.WRITERS[table](len, self._bodies))
        for partition, count in sorted(self._members.items()):
            folder = f"{table}/{partition}"
            is_same = folder in before and partition not in self._changed and not partition.startswith(_OPEN)
            expected = Expected(size * count // self._members.total())
            yield before[folder] if is_same else PartitionFile.of(expected, self.config.files_url, folder)

    def _before(self, table: str) -> Sequence[PartitionFile]:
        return self.last.table(table) if self.last else ()

    def _scaled(self, sample: WrittenTable) -> int:
        return sample.size * self._members.total() // max(1, len(self._bodies))
