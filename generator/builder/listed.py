"""The markets of all lists, from which downloads are made. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from generator.api import keys
from generator.downloads import partitions
from generator.downloads.partitions import Member
from generator.markets.catalog import Catalog


@dataclass(frozen=True)
class Listed:
    """The listed markets of a catalog: their ids, which ascend, and those whose details `changed`.

    `digests` are those of all details, by key. The ids are taken before the workers are forked: these had better not
    touch the markets themselves.
    """

    catalog: Catalog
    ids: Sequence[str]
    changed: AbstractSet[str]
    digests: Mapping[str, str]

    @property
    def as_of(self) -> str:
        """Of when they are."""
        return self.catalog.as_of

    def members(self) -> Iterator[tuple[str, Member]]:
        """Each with the partition that its history belongs to, ascending by id."""
        for market in self.catalog.listed():
            yield partitions.partition(market), Member(market.id, self.digests[keys.detail(market.id)])
