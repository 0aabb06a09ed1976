"""The markets of all lists, from which downloads are made. Pure."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from generator.api.downloads import DumpHead
from generator.downloads.histories import NewHistories
from generator.site.catalog import Catalog


@dataclass(frozen=True)
class Takedown:
    """What a takedown does to downloads: the markets (ids) that are `gone` from the `dump` that it begins with.

    `is_doubted`: details in place may be newer than that dump.
    """

    dump: DumpHead | None
    gone: frozenset[str]
    is_doubted: bool


@dataclass(frozen=True)
class Listed:
    """The listed markets of a catalog: their ids, which ascend, and those whose details `changed`.

    `line_of` returns the line of a market, for ids that ascend. The ids are taken before the workers are forked: these
    had better not touch the markets themselves. `histories` are the new ones, if it is their turn. `is_full`: no file
    in place is believed to be what its name says.
    """

    catalog: Catalog
    ids: Sequence[str]
    changed: AbstractSet[str]
    line_of: Callable[[str], bytes]
    takedown: Takedown | None = None
    histories: NewHistories | None = None
    is_full: bool = False

    @property
    def as_of(self) -> str:
        """Of when they are."""
        return self.catalog.as_of
