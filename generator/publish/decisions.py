"""The operator's decisions to block or unblock markets, and what to say about each. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from generator.errors import PublicMarketsError
from generator.tree.blocklist import BlockedList
from generator.tree.manifest import Manifest

_ID: Final = "name the market by its id, a UUID: 32 hexadecimal digits in groups of 8-4-4-4-12"


@dataclass(frozen=True)
class Known:
    """The manifests that name published markets, each with its name: first that of the record, then the folder's."""

    manifests: tuple[tuple[str, Manifest], ...]

    def names(self, market_id: str) -> bool:
        """Whether any of them names the market."""
        return any(market_id in built.markets for _, built in self.manifests)

    def lack_slugs(self) -> bool:
        """Whether markets are published, but no slugs: in the core variant, or where the database has none."""
        found = [built for _, built in self.manifests if built.markets]
        return bool(found) and not any(built.slugs for built in found)

    def own_all(self, slugs: Iterable[str]) -> bool:
        """Whether each of these slugs is known."""
        return None not in map(self.owner, slugs)

    def owner(self, slug: str) -> str | None:
        """The id of the market with this slug."""
        for _, built in self.manifests:
            for market_id, slugs in built.slugs.items():
                if slug.lower() in map(str.lower, slugs):
                    return market_id
        return None


@dataclass(frozen=True)
class Change:
    """A blocked list before and after a request."""

    before: BlockedList
    after: BlockedList


@dataclass(frozen=True)
class Request:
    """What the operator asks for: markets, by id or slug, to block or unblock at an instant."""

    ids: tuple[str, ...]
    slugs: tuple[str, ...]
    is_blocked: bool
    at: str

    def resolved(self, known: Known) -> "Request":
        """The same request by ids alone; raise PublicMarketsError for a slug that no market has."""
        return replace(self, ids=(*self.ids, *(self._owner(slug, known) for slug in self.slugs)), slugs=())

    def _owner(self, slug: str, known: Known) -> str:
        if (owner := known.owner(slug)) is not None:
            return owner
        where = "" if self.is_blocked else "; `public-markets takedown` lists the ids"
        problem = "no published market has this slug"
        if known.lack_slugs():
            problem = "is not the id of a market, and no slugs are published"
        raise PublicMarketsError(f"{slug}: {problem}; {_ID}{where}")

    def applied_to(self, blocked: BlockedList) -> Change:
        """The change to a list. An undo leaves alone what is not blocked."""
        ids = self.ids if self.is_blocked else self._unmet(blocked)
        return Change(blocked, self._decided(blocked, ids))

    def enforced_on(self, copy: BlockedList, change: Change) -> Change:
        """The change to another copy of the list that `change` was made to: no decision in the copy may outlast it."""
        merged = copy.merged(change.after)
        return Change(copy.merged(change.before), self._decided(merged, self._unmet(merged)))

    def _unmet(self, blocked: BlockedList) -> tuple[str, ...]:
        return tuple(market_id for market_id in self.ids if (market_id in blocked.ids()) != self.is_blocked)

    def _decided(self, blocked: BlockedList, ids: tuple[str, ...]) -> BlockedList:
        return blocked.decided(ids, is_blocked=self.is_blocked, now=self.at) if ids else blocked

    def doubts(self, change: Change, known: Known) -> Iterator[str]:
        """Warnings about markets that the operator may not have meant."""
        for market_id in self._strange(change, known):
            if self.is_blocked:
                yield (
                    f"{market_id}: {_unnamed(known)}, so nothing was removed; check the id. It is blocked now; "
                    f"`public-markets takedown --undo {market_id}` ends that"
                )
            else:
                yield (
                    f"{market_id}: was not blocked, so nothing changes; check the id, and list the blocked markets "
                    "with `public-markets takedown`"
                )

    def consequences(self, change: Change, *, has_target: bool) -> Iterator[str]:
        """What the request means for markets that were blocked before."""
        returns = "rebuild` publishes" if has_target else "build` shows"
        for market_id in self.ids:
            if market_id not in change.before.ids():
                continue
            if self.is_blocked:
                since = change.before.markets[market_id].at
                yield f"{market_id}: has been blocked since {since}; this takedown repeats that one"
            else:
                yield (
                    f"{market_id}: no longer blocked; the next `public-markets {returns} it again, if it is public in "
                    "the database then"
                )

    def _strange(self, change: Change, known: Known) -> Iterator[str]:
        blocked = change.before.ids()
        for market_id in self.ids:
            if market_id not in blocked and not (self.is_blocked and known.names(market_id)):
                yield market_id


def _unnamed(known: Known) -> str:
    places = [name for name, _ in known.manifests]
    if not places:
        return "nothing is published here yet"
    who = f"neither {' nor '.join(places)} names" if len(places) > 1 else f"{places[0]} does not name"
    return f"{who} this market: it was never published here, or is gone already"
