"""The lists that are in place, without some markets: of each, only the chunks around them are read and made.

A list that never held one of them is not read at all. Where anything is in doubt, the list is left to the maker of a
site, which makes it whole.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from generator.api import keys
from generator.api.contract import PublicMarketListItem, Sort
from generator.config.settings import Config
from generator.markets.market import Market
from generator.site import documents
from generator.site.catalog import RANKS, Catalog
from generator.site.make import memberships_of
from generator.tree import cuts, generations, membership, staging
from generator.tree.cuts import ChunksInPlace, InDoubtError, ShortenedList
from generator.tree.generation import Workplace
from generator.tree.manifest import Manifest
from generator.tree.staging import Staged, StagedFamily

#: Calls a function for each of many names, and yields the results in order.
Each: TypeAlias = Callable[[Callable[[str], Any], Iterable[str]], Iterable[Any]]
#: So many markets, and one in four chunks, may go: of more, a list is sooner made whole.
_FEW: Final = 8


@dataclass(frozen=True)
class ListsInPlace:
    """The lists of a `state` in a folder, or in a store seen as one. Nothing that changes may be in doubt."""

    folder: Workplace
    state: Manifest
    each: Each

    def without(self, found: Catalog, staying: Catalog, config: Config) -> dict[str, StagedFamily]:
        """The lists without the markets of `found`, which are all that are known, that are not `staying`; staged."""
        if not {market_id for market_id, lists in self.state.markets.items() if lists} <= found.references():
            return {}
        gone = _gone(found, staying.ids(), config)
        parts = documents.list_parts(documents.offered(staying, config))
        lists = {
            name: _List(self.folder, self.state, name, sort, gone.get(name, ()))
            for name, (_, sort, _) in parts.items() if name in self.state.current
        }  # fmt: skip
        staged = {name: one.unchanged() for name, one in lists.items() if not one.gone}
        changed = [name for name in lists if name not in staged]
        for name, made in zip(changed, self.each(lambda name: lists[name].shortened(), changed), strict=True):
            staged[name] = made and staging.stage_generation(self.folder, self.state.generations(), made)
        return {name: made for name, made in staged.items() if made}


def _gone(found: Catalog, staying: Collection[str], config: Config) -> dict[str, list[Market]]:
    """The markets that go from each list, by its name."""
    gone, offered = dict[str, list[Market]](), documents.offered(found, config)
    for market in (market for market in found.listed() if market.id not in staying):
        for name in membership.lists_of(memberships_of(market, offered)):
            gone.setdefault(name, []).append(market)
    return gone


@dataclass(frozen=True)
class _List:
    """A list in place, and the markets that are `gone` from it."""

    folder: Workplace
    state: Manifest
    name: str
    sort: Sort
    gone: Sequence[Market]

    def unchanged(self) -> StagedFamily | None:
        """The list as it is; None if not all of it is in place."""
        current, head = self.state.current[self.name], keys.head(self.name)
        is_whole = head in self.state.objects and self.folder.are_placed(generations.object_keys(self.name, current))
        return StagedFamily(self.name, current, None, Staged({head: self.state.objects[head]})) if is_whole else None

    def shortened(self) -> ShortenedList | None:
        """The list without them; None if it is to be made whole."""
        current = self.state.current[self.name]
        if len(self.gone) > _FEW + len(current.chunks) // 4:
            return None
        try:
            source = ChunksInPlace(self.folder.read, self.name, current)
            made = cuts.shortened(source, sorted(self._place(source, market) for market in self.gone))
        except (InDoubtError, LookupError, TypeError, ValueError):  # another program's chunks, of the same version
            return None
        return made if made and self.folder.are_placed(made.kept()) else None

    def _place(self, source: ChunksInPlace, market: Market) -> int:
        """The market's place in the list; raise InDoubtError if another is there, or it is not the same."""
        rank = RANKS[self.sort]
        own = rank(market)

        def is_there(item: bytes) -> bool:
            other = PublicMarketListItem.model_validate_json(item)
            theirs = rank(other)
            return bool(theirs < own or (theirs == own and other.id >= market.id))

        place = source.first(is_there)
        if place == source.current.count or source.item(place) != market.body:
            raise InDoubtError("the market is not in its place")
        return place
