"""The operator's decisions to block or unblock markets and questions, and what to say about each. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from generator.api import keys
from generator.api.links import MarketReference
from generator.config.settings import Config
from generator.errors import PublicMarketsError
from generator.models import replaced
from generator.publish import references
from generator.publish.references import MARKET, QUESTION, NameKind
from generator.tree import blocked_names, files
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

    def about(self, references: Collection[str]) -> "Named":
        """What it says of these markets and questions alone: a whole state is large, and a takedown makes others."""
        names = ("markets", "slugs", "site_keys", "members")
        update = {name: _chosen(getattr(self.built, name), references) for name in names}
        return self._replace(built=replaced(self.built.emptied(), **update))


def _chosen(of_all: Mapping[str, Any], references: Collection[str]) -> dict[str, Any]:
    return {reference: of_all[reference] for reference in references if reference in of_all}


class Shown(NamedTuple):
    """A market or question that a detail shows: where the detail is, its slug there, and a question's markets (ids)."""

    place: str
    slug: str | None
    members: frozenset[str] = frozenset()


class Name(NamedTuple):
    """A text by which the operator names a market, or a question."""

    text: str
    kind: NameKind = MARKET


@dataclass(frozen=True)
class Known:
    """What names markets and questions: the record first, then the folder's manifest, and the blocked list.

    A takedown changes no name's meaning: those of markets that are `taken_down` count like those of published ones.
    `unrecorded` are markets and questions that a detail shows, whether a manifest names them or not. All are named by
    their references.
    """

    manifests: tuple[Named, ...]
    taken_down: BlockedList = field(default_factory=BlockedList)
    unrecorded: Mapping[str, Shown] = field(default_factory=dict)

    def about(self, ids: Collection[str]) -> "Known":
        """What is known of these alone."""
        return replace(self, manifests=tuple(named.about(ids) for named in self.manifests))

    def members(self, reference: str) -> frozenset[str]:
        """The markets (ids) of a published question, as far as anything tells; none of a market."""
        shown = self.unrecorded.get(reference)
        return frozenset(shown.members if shown else ()).union(
            *(named.built.members.get(reference, ()) for named in self.manifests)
        )

    def names(self, market_id: str) -> bool:
        """Whether the market or question is published as far as anything tells."""
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
        found = {*blocked_names.digests(market_id, (named.built for named in self.manifests))}
        if market_id in self.unrecorded and (slug := self.unrecorded[market_id].slug):
            found.add(blocked_names.digest(MarketReference("slug", slug)))
        return frozenset(found)

    def meant(self, name: Name, config: Config) -> frozenset[str]:
        """What the name may mean, by any of them."""
        built, (text, kind) = [named.built for named in self.manifests], name
        slugs = {*map(str.lower, references.slugs_in(text, config, kind))}
        of_slugs = {one for one, shown in self.unrecorded.items() if (shown.slug or "").lower() in slugs}
        return frozenset(references.taken_down(text, config, built, self.taken_down, kind)).union(
            *(references.meant(text, config, manifest, kind) for manifest in built),
            references.beginning(text, self.unrecorded, kind),
            filter(kind.is_of, of_slugs),
        )

    def reference_of(self, name: Name, config: Config) -> str:
        """What the name means; raise PublicMarketsError if that is nothing, or several, or something else, too."""
        (text, kind), meant = name, sorted(self.meant(name, config))
        if kind is MARKET and (others := self.meant(Name(text, QUESTION), config)):
            raise PublicMarketsError(self._unclear(text, meant, sorted(others)))
        if len(meant) == 1:
            return meant[0]
        if meant:
            described = _shown([*map(self._described, meant)])
            raise PublicMarketsError(
                f"{escaped(text)}: may mean {counted(len(meant), kind.noun)}: {described}; name the one by its id"
            )
        raise PublicMarketsError(f"{escaped(text)}: {self._unknown(text, kind, config)}")

    def _unclear(self, text: str, markets: list[str], questions: list[str]) -> str:
        """Why a name of a question is none of a market."""
        described, remedy = _shown([*map(self._described, questions)]), "`public-markets takedown --question ID`"
        nouns = counted(len(questions), "question")
        if not markets:
            return f"{escaped(text)}: names no market, but {nouns}: {described}; {remedy} takes a question down"
        return (
            f"{escaped(text)}: may mean {counted(len(markets), 'market')}, {_shown([*map(self._described, markets)])}, "
            f"or {nouns}, {described}; name the one by its id, a question with {remedy}"
        )

    def _unknown(self, text: str, kind: NameKind, config: Config) -> str:
        """Why the text means nothing."""
        if not self.manifests:
            return f"nothing is published here yet, so it names no {kind.noun}; give an id instead"
        if references.is_address(text):
            url = kind.url(config)
            forms = [f"{config.base_url}/{kind.folder}/ID", *([url] if url else [])]
            return f"is not the address of a published {kind.noun}, which is {' or '.join(forms)}; give its id instead"
        words = "question" if kind is MARKET else "title"
        return (
            f"no published {kind.noun} has this slug or key, or an id that begins so (write at least "
            f"{references.SHORTEST_BEGINNING} characters), and a key that several have finds none: "
            f"{config.output / files.REPORT} names them; `public-markets find` looks for words of its {words}"
        )

    def blocked_reference_of(self, name: Name, config: Config) -> str:
        """The blocked one that the name means; raise PublicMarketsError if that is none, or not the only one."""
        if self.meant(name, config).isdisjoint(self.taken_down.ids()):
            raise PublicMarketsError(
                f"{escaped(name.text)}: is not the name of a blocked {name.kind.noun}; `public-markets takedown` lists "
                "the ids"
            )
        return self.reference_of(name, config)

    def require_kind(self, reference: str) -> None:
        """Raise PublicMarketsError if the id is known as that of a question, and not as that of a market; or so."""
        identity, is_question = keys.bare_id(reference), QUESTION.is_of(reference)
        other = identity if is_question else QUESTION.reference(identity)
        if self._knows(other) and not self._knows(reference):
            noun, option, what = (
                ("market", "", "it") if is_question else ("question", "--question ", "it with its markets")
            )
            raise PublicMarketsError(
                f"{identity}: is the id of a {noun}; `public-markets takedown {option}{identity}` takes {what} down"
            )

    def _knows(self, reference: str) -> bool:
        return self.names(reference) or reference in self.taken_down.markets

    def _described(self, reference: str) -> str:
        shown = keys.bare_id(reference)
        return f"{shown} (taken down)" if reference in self.taken_down.ids() else shown


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
    """What the operator asks for: markets (ids) and questions (references) to block or unblock at an instant.

    `names` are what the blocked list is to say of their names; `members` are the markets of each question, which are
    blocked through it.
    """

    ids: tuple[str, ...]
    is_blocked: bool
    at: str
    names: Mapping[str, Collection[str]] = field(default_factory=dict)
    members: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def removed(self) -> tuple[str, ...]:
        """What is removed: all that is named, and the markets of questions."""
        return tuple(dict.fromkeys(chain(self.ids, *(sorted(found) for found in self.members.values()))))

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
        if ids:
            blocked = blocked.decided(ids, is_blocked=self.is_blocked, now=self.at, names=self.names)
        if not self.is_blocked:
            return blocked
        through: dict[str, list[str]] = {}
        for reference, found in self.members.items():
            for market_id in found:
                through.setdefault(market_id, []).append(keys.bare_id(reference))
        return blocked.joined(through, now=self.at, names=self.names)

    def doubts(self, change: Change, known: Known) -> Iterator[str]:
        """Warnings about markets that the operator may not have meant."""
        for reference in self._strange(change, known):
            named = keys.bare_id(reference)
            option, noun = ("--question ", "question") if QUESTION.is_of(reference) else ("", "market")
            if self.is_blocked:
                yield (
                    f"{named}: {_unnamed(known, noun)}, so nothing was removed; check the id. It is blocked now; "
                    f"`public-markets takedown --undo {option}{named}` ends that"
                )
            else:
                yield (
                    f"{named}: was not blocked, so nothing changes; check the id, and list the blocked markets "
                    "with `public-markets takedown`"
                )

    def consequences(self, change: Change, *, has_target: bool) -> Iterator[str]:
        """What the request means for what was blocked before."""
        returns = "rebuild` publishes" if has_target else "build` shows"
        blocked, left = change.before.ids(), change.after.ids()
        for reference in self.ids:
            if reference not in blocked:
                continue
            named, noun = keys.bare_id(reference), (QUESTION if QUESTION.is_of(reference) else MARKET).noun
            if self.is_blocked:
                since = change.before.markets[reference].at
                yield (
                    f"{named}: has been blocked since {since}; this takedown repeats that one, as the {noun} is "
                    "already taken down"
                )
            elif found := change.after.through(reference):
                yield (
                    f"{named}: stays blocked through its question {_shown(found)}; "
                    f"`public-markets takedown --undo --question {found[0]}` ends that"
                )
            else:
                yield (
                    f"{named}: no longer blocked; the next `public-markets {returns} it "
                    "again, if it is public in the database then"
                )
        undone = frozenset[str]() if self.is_blocked else keys.question_ids(self.ids)
        held = [
            key for key in sorted(blocked.difference(self.ids)) if not undone.isdisjoint(change.before.through(key))
        ]
        if freed := [key for key in held if key not in left]:
            yield f"{_shown(freed)}: no longer blocked either: only through a question that is blocked no more"
        if kept := [key for key in held if key in left]:
            yield f"{_shown(kept)}: still blocked: by a takedown of its own, or through another question"

    def _strange(self, change: Change, known: Known) -> Iterator[str]:
        blocked = change.before.ids()
        for market_id in self.ids:
            if market_id not in blocked and not (self.is_blocked and known.names(market_id)):
                yield market_id


def _unnamed(known: Known, noun: str) -> str:
    sources = [named.source for named in known.manifests]
    if not sources:
        return "nothing is published here yet"
    who = f"neither {' nor '.join(sources)} names" if len(sources) > 1 else f"{sources[0]} does not name"
    return f"{who} this {noun}: it was never published here, or is gone already"
