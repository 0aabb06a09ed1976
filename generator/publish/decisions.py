"""The operator's decisions to block or unblock markets, and what to say about each. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from generator.api import keys
from generator.api.links import MarketReference
from generator.config.settings import Config
from generator.errors import PublicMarketsError
from generator.models import replaced
from generator.publish import references
from generator.tree.blocklist import BlockedList
from generator.tree.manifest import Manifest
from generator.wording import counted, escaped

#: The most ids that an error names.
_SHOWN: Final = 5


class Named(NamedTuple):
    """A manifest that names published markets: where they are published, and what it is called."""

    place: str
    source: str
    built: Manifest

    def about(self, ids: Collection[str]) -> "Named":
        """What it says of these markets alone: a whole state is large, and a takedown that follows makes others."""
        markets, slugs, site_keys = (
            {market_id: of_all[market_id] for market_id in ids if market_id in of_all}
            for of_all in (self.built.markets, self.built.slugs, self.built.site_keys)
        )
        update = {"markets": markets, "slugs": slugs, "site_keys": site_keys}
        return self._replace(built=replaced(self.built.emptied(), **update))


class Shown(NamedTuple):
    """A market that a detail shows: where the detail is, and the market's slug in it."""

    place: str
    slug: str | None


@dataclass(frozen=True)
class Known:
    """What names markets: the record first, then the folder's manifest, and the blocked list.

    A takedown changes no name's meaning: those of markets that are `taken_down` count like those of published ones.
    `unrecorded` are markets (ids) that a detail shows, whether a manifest names them or not.
    """

    manifests: tuple[Named, ...]
    taken_down: BlockedList = field(default_factory=BlockedList)
    unrecorded: Mapping[str, Shown] = field(default_factory=dict)

    def about(self, ids: Collection[str]) -> "Known":
        """What is known of these markets alone."""
        return replace(self, manifests=tuple(named.about(ids) for named in self.manifests))

    def names(self, market_id: str) -> bool:
        """Whether the market is published as far as anything tells."""
        return market_id in self.unrecorded or any(market_id in named.built.markets for named in self.manifests)

    def places(self, ids: Collection[str]) -> list[str]:
        """The places where any of these markets is published."""
        recorded = (named.place for named in self.manifests if not named.built.markets.keys().isdisjoint(ids))
        return [
            *dict.fromkeys(
                (*recorded, *(self.unrecorded[market_id].place for market_id in ids & self.unrecorded.keys()))
            )
        ]

    def digests(self, market_id: str) -> frozenset[str]:
        """What the blocked list is to say of the market's slugs and keys."""
        found = {*references.digests(market_id, (named.built for named in self.manifests))}
        if market_id in self.unrecorded and (slug := self.unrecorded[market_id].slug):
            found.add(references.digest(MarketReference("slug", slug)))
        return frozenset(found)

    def meant(self, text: str, config: Config) -> frozenset[str]:
        """The markets that the text may mean, by any of them."""
        built = [named.built for named in self.manifests]
        slugs = {*map(str.lower, references.slugs_in(text, config))}
        return frozenset(references.ids_taken_down(text, config, built, self.taken_down)).union(
            *(references.ids_meant(text, config, manifest) for manifest in built),
            references.beginning(text, self.unrecorded),
            (market_id for market_id, shown in self.unrecorded.items() if (shown.slug or "").lower() in slugs),
        )

    def id_of(self, text: str, config: Config) -> str:
        """The market that the text means; raise PublicMarketsError if that is none or several."""
        meant, name = sorted(self.meant(text, config)), escaped(text)
        if len(meant) == 1:
            return meant[0]
        if meant:
            described = _shown([*map(self._described, meant)])
            raise PublicMarketsError(
                f"{name}: may mean {counted(len(meant), 'market')}: {described}; name the one by its id"
            )
        if not self.manifests:
            raise PublicMarketsError(
                f"{name}: nothing is published here yet, so it names no market; give an id instead"
            )
        if references.is_address(text):
            forms = [f"{config.base_url}/{keys.MARKETS}/ID", *([config.market_url] if config.market_url else [])]
            raise PublicMarketsError(
                f"{name}: is not the address of a published market, which is {' or '.join(forms)}; give its id instead"
            )
        raise PublicMarketsError(
            f"{name}: no published market has this slug or key, or an id that begins so (write at least "
            f"{references.SHORTEST_BEGINNING} characters); `public-markets find` looks for words of its question"
        )

    def blocked_id_of(self, text: str, config: Config) -> str:
        """The blocked market that the text means; raise PublicMarketsError if that is none, or not the only one."""
        if self.meant(text, config).isdisjoint(self.taken_down.ids()):
            raise PublicMarketsError(
                f"{escaped(text)}: is not the name of a blocked market; `public-markets takedown` lists the ids"
            )
        return self.id_of(text, config)

    def _described(self, market_id: str) -> str:
        return f"{market_id} (taken down)" if market_id in self.taken_down.ids() else market_id


class _Left(BaseModel):
    """The markets of the database that a build left out, in its report."""

    taken_down: tuple[str, ...] = Field(alias="takenDown")


def unblocked_since(report: bytes | None, built: Collection[str], blocked: Collection[str]) -> Iterator[str]:
    """A warning if a build leaves out markets that are blocked no more: an undo elsewhere was not known here yet."""
    try:
        left = _Left.model_validate_json(report or b"").taken_down
    except ValidationError:  # none, or another version's
        return
    if ids := [market_id for market_id in left if market_id not in blocked and market_id not in built]:
        yield (
            f"{_shown(ids)}: no longer blocked, but still left out, by a build that did not know it; "
            "`public-markets rebuild` publishes it again, if it is public in the database then"
        )


def _shown(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_SHOWN]) + (f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else "")


@dataclass(frozen=True)
class Change:
    """A blocked list before and after a request."""

    before: BlockedList
    after: BlockedList


@dataclass(frozen=True)
class Request:
    """What the operator asks for: markets, by id, to block or unblock at an instant.

    `names` are what the blocked list is to say of the markets' names, by id.
    """

    ids: tuple[str, ...]
    is_blocked: bool
    at: str
    names: Mapping[str, Collection[str]] = field(default_factory=dict)

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
        if not ids:
            return blocked
        return blocked.decided(ids, is_blocked=self.is_blocked, now=self.at, names=self.names)

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
                yield (
                    f"{market_id}: has been blocked since {since}; this takedown repeats that one, as the market is "
                    "already taken down"
                )
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
    sources = [named.source for named in known.manifests]
    if not sources:
        return "nothing is published here yet"
    who = f"neither {' nor '.join(sources)} names" if len(sources) > 1 else f"{sources[0]} does not name"
    return f"{who} this market: it was never published here, or is gone already"
