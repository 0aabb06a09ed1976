"""Makes the Parquet files of a dump: markets with each new dump, histories and recent fills once a day.

A file of histories stays as it is while the details of its markets do; but a market that is no longer listed leaves it
at once.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from generator.api import keys
from generator.api.downloads import THINNED, DumpFile, DumpHead, MarketsFile, PartitionFile
from generator.api.links import Links
from generator.config.settings import Config
from generator.downloads import dump, parquet, partitions
from generator.downloads.partitions import Member
from generator.errors import DamageError
from generator.models import replaced
from generator.site.catalog import Catalog
from generator.site.history_state import are_unpublished
from generator.site.listed import Listed
from generator.tree import manifest
from generator.tree.download import NewFiles

_PIECE: Final = 1 << 18


@dataclass(frozen=True)
class ParquetFiles:
    """Adds Parquet files to the head of a dump of the `listed` markets; `before` is the head in place.

    `known` are the digests of what is in files besides the lines of the dump, by their names: of partitions, and of the
    links of markets.
    """

    files: NewFiles
    config: Config
    listed: Listed
    before: DumpHead | None
    known: Mapping[str, str]
    #: No file in place is believed.
    is_anew: bool = False
    #: The same as `known`, for files of the new head.
    digests: dict[str, str] = field(default_factory=dict)

    def added_to(self, head: DumpHead, gone: Collection[str] | None) -> DumpHead:
        """The head with Parquet files; `gone` are the markets that the dump in place has and the new one lacks.

        If nobody knows them, it is None: then every partition is looked at, as once a day.
        """
        last = self._last()
        is_due = partitions.is_due(last, self.listed.as_of) or are_unpublished(self.config, self.files.folder)
        # A takedown reads only the partitions of its markets: details did not change, so the others would stay.
        looks_at_all = gone is None or (is_due and self.listed.takedown is None)
        kept = None if looks_at_all or last is None else self._kept(gone or (), last)
        return self.with_markets(replaced(head, **kept or self._of_today()))

    def with_markets(self, head: DumpHead) -> DumpHead:
        """The head with the file of all markets."""
        return replaced(head, markets=[head.ndjson, self._markets(head)])

    def _last(self) -> str | None:
        """As of when the files in place are; None if there are none, or if they are full histories."""
        is_full = self.before is not None and any(map(self.before.periods, THINNED))
        return None if self.before is None or is_full else self.before.history_as_of

    def _markets(self, head: DumpHead) -> MarketsFile:
        links = self.listed.catalog.links(self.config.market_url)
        digest = links.digest(self.listed.ids)
        before = self.before.parquet if self.before and self.before.state == head.state else None
        if before and not self.is_anew and self.known.get(before.name, "") == digest and self._is_in_place(before):
            return self._noted(before, digest).served_from(self.config.files_url)
        with self.files.opened(head.ndjson) as ndjson:
            lines = dump.lines(iter(lambda: ndjson.read(_PIECE), b""))
            draft = self.files.draft(
                lambda write: parquet.markets(write, lines, self.config.variant, _urls(self.listed.catalog, links))
            )
        made = self.files.stage(draft, MarketsFile.of(draft.content, self.config.files_url, "parquet"))
        return self._noted(made, digest)

    def _noted(self, file: MarketsFile, digest: str) -> MarketsFile:
        """The file, of whose links the digest is remembered."""
        if digest:
            self.digests[file.name] = digest
        return file

    def _of_today(self) -> dict[str, Any]:
        """The files of all partitions; those whose markets did not change stay as they are."""
        members: dict[str, list[Member]] = {}
        for partition, member in self.listed.members():
            members.setdefault(partition, []).append(member)
        found = {
            table: [self._of_partition(table, partition, members[partition]) for partition in sorted(members)]
            for table in THINNED
        }
        last = self._last()
        is_same = all(_names(found[table]) == _names(self._before(table)) for table in THINNED)
        return {**found, "history_as_of": last if last and is_same else self.listed.as_of}

    def _of_partition(self, table: str, partition: str, members: Sequence[Member]) -> PartitionFile:
        digest, folder = partitions.digest(members), f"{table}/{partition}"
        for file in self._before(table):
            if self.known.get(file.name) == digest and file.folder == folder and self._is_in_place(file):
                return self._same(file)
        bodies = (self._body(member) for member in members)
        draft = self.files.draft(lambda write: parquet.WRITERS[table](write, bodies))
        made = self.files.stage(draft, PartitionFile.of(draft.content, self.config.files_url, folder))
        self.digests[made.name] = digest
        return made

    def _body(self, member: Member) -> bytes:
        key = keys.detail(member.id)
        body = self.files.folder.newest_body(key)
        # A takedown has no other body to make them of.
        return body if self.listed.takedown else manifest.intact(key, body, member.digest)

    def _kept(self, gone: Collection[str], last: str) -> dict[str, Any] | None:
        """The files of `last`, without markets that are gone; None if one of them is missing or damaged."""
        found = {table: [self._without(file, gone) for file in self._before(table)] for table in THINNED}
        whole = {table: [file for file in files if file] for table, files in found.items()}
        if whole != found:
            return None
        if not partitions.is_due(last, self.listed.as_of):
            return {**whole, "history_as_of": last}
        # As on any other day, a file of no market is left out.
        folders = {f"{table}/{partition}" for table in THINNED for partition, _ in self.listed.members()}
        present = {table: [file for file in files if file.folder in folders] for table, files in whole.items()}
        is_same = all(_names(present[table]) == _names(self._before(table)) for table in THINNED)
        return {**present, "history_as_of": last if is_same else self.listed.as_of}

    def _without(self, file: PartitionFile, gone: Collection[str]) -> PartitionFile | None:
        if not self._is_in_place(file):
            return None
        if not gone:
            return self._same(file)
        try:
            with self.files.opened(file) as opened:
                draft = self.files.draft(lambda write: parquet.without(write, opened, gone))
        except (DamageError, ValueError):
            return None
        if draft.content is None:
            return self._same(file)
        return self.files.stage(draft, file.replaced_by(draft.content).served_from(self.config.files_url))

    def _same(self, file: PartitionFile) -> PartitionFile:
        if file.name in self.known:
            self.digests[file.name] = self.known[file.name]
        return file.served_from(self.config.files_url)

    def _before(self, table: str) -> Sequence[PartitionFile]:
        return self.before.partitions(table) if self.before else ()

    def _is_in_place(self, file: DumpFile) -> bool:
        return self.files.folder.has(file.key)


def _urls(catalog: Catalog, links: Links) -> Callable[[str], str | None] | None:
    """Gives the address of a market's page by its id; None if no market has one."""
    if links.url is None:
        return None
    is_slug = links.url.placeholder == "slug"
    slugs = {market.id: market.slug for market in catalog.listed()} if is_slug else {}
    return lambda market_id: links.of(market_id, slugs.get(market_id))


def _names(found: Iterable[PartitionFile]) -> list[str]:
    return [file.name for file in found]
