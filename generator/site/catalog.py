"""All public markets of one instant, and what is derived from them: lists in total order, snapshot groups. Pure.

Everything here is public: the queries exclude hidden rows, so a bug in this module cannot leak them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import compress
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from generator.api import contract, keys
from generator.api.contract import (
    MarketStatus,
    PublicMarketListItem,
    PublicMarketSignal,
    PublicMarketSnapshot,
    Sort,
    StatusFilter,
)
from generator.api.downloads import DumpHead
from generator.api.links import Links
from generator.downloads.dump import Previous
from generator.downloads.histories import NewHistories
from generator.findings import Finding
from generator.markets import legibility, questions
from generator.markets.categories import AS_GIVEN, Spellings
from generator.markets.market import Market, SearchWords
from generator.markets.questions import Question
from generator.markets.slugs import NO_KEYS, SiteKeys
from generator.search import words
from generator.search.generation import NUMBERED_BY
from generator.tree.fingerprints import Fingerprints
from generator.tree.staging import Staged

#: The sort keys of a row or of an item of lists, descending; ties are broken by `id`, ascending.
RANKS: Final[dict[Sort, Callable[[Any], Any]]] = {
    "popular": attrgetter("trader_count", "volume"),
    "activity": attrgetter("last_activity_at"),
    "volume": attrgetter("volume"),
    "new": attrgetter("created_at"),
    "ended": lambda market: market.resolved_at or market.close_time,
}

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True)
class Naming:
    """What was decided over the names of all visible markets together, blocked ones included.

    `refused_slugs` maps market ids to the fault for which the market's slug cannot be used in a path; `spellings` tells
    what is shown in place of some names of categories; `site_keys` are the markets' keys on the operator's site.
    """

    refused_slugs: Mapping[str, Finding] = field(default_factory=dict)
    spellings: Spellings = AS_GIVEN
    site_keys: SiteKeys = NO_KEYS


_AS_NAMED: Final = Naming()


_Row = TypeVar("_Row", bound="Ranked")


class Ranked(Protocol):
    """A row of lists: its encoded item, by what it is chosen, and what `RANKS` read."""

    @property
    def body(self) -> bytes: ...  # noqa: D102
    @property
    def status(self) -> MarketStatus: ...  # noqa: D102
    @property
    def categories(self) -> tuple[str, ...]: ...  # noqa: D102


class Ordered(Generic[_Row]):
    """What lists are made of, in all orders: the markets of a catalog, or other rows."""

    def listed(self) -> Sequence[_Row]:
        """The rows, ascending by id: sorts are stable, so ties stay in this order."""
        raise NotImplementedError

    def lists(self, offered: Iterable[str] = ()) -> Iterator[tuple[str | None, StatusFilter, Sort, list[bytes]]]:
        """Yield category, status, sort and the encoded items: for all categories (None), then each one `offered`."""
        for sort, ranked in self.ranked():
            for category, chosen in [(None, ranked), *_by_category(ranked, offered).items()]:
                # Rows are scattered in memory, so look at each only once.
                bodies, held = [row.body for row in chosen], [row.status for row in chosen]
                for status in contract.STATUS_FILTERS:
                    is_in = frozenset(contract.STATES_OF_FILTER[status]).__contains__
                    yield category, status, sort, [*compress(bodies, map(is_in, held))]

    def items(self, status: StatusFilter, sort: Sort, category: str | None = None) -> list[bytes]:
        """The encoded items of one list."""
        states = contract.STATES_OF_FILTER[status]
        listed = [row for row in self.listed() if row.status in states]
        chosen = listed if category is None else [row for row in listed if category in row.categories]
        return [row.body for row in sorted(chosen, key=RANKS[sort], reverse=True)]

    def ranked(self) -> Iterator[tuple[Sort, list[_Row]]]:
        """All rows in the order of each sort."""
        listed = self.listed()
        for sort in contract.SORTS:
            yield sort, sorted(listed, key=RANKS[sort], reverse=True)


def _by_category(ranked: Iterable[_Row], offered: Iterable[str]) -> dict[str, list[_Row]]:
    chosen: dict[str, list[_Row]] = {category: [] for category in offered}
    for row in ranked:
        for category in row.categories:
            if category in chosen:
                chosen[category].append(row)
    return chosen


class Catalog(Ordered[Market]):
    """All public markets at one instant. `as_of` is an RFC 3339 UTC time, `hidden` the number of hidden markets.

    `categories` are the names of theirs by slug, if not all markets tell them. `questions` are None where there is no
    such resource.
    """

    def __init__(
        self,
        markets: Iterable[Market],
        *,
        as_of: str,
        hidden: int,
        naming: Naming = _AS_NAMED,
        categories: Mapping[str, str] | None = None,
    ) -> None:
        # Sorted by id once: later sorts are stable, so ties stay in this order.
        self.markets = sorted(markets, key=lambda market: market.id)
        self.as_of = as_of
        self.hidden = hidden
        self.naming = naming
        self.questions: Sequence[Question] | None = None
        self._categories = categories

    @classmethod
    def published(
        cls, lines: Iterable[bytes], texts: Iterable[str], as_of: str, site_keys: Mapping[str, str] = _NONE
    ) -> "Catalog":
        """The catalog of a dump's lines, without line feeds; searches find markets by the `texts` of these names.

        `site_keys` are by id: no line has them. Whatever else was decided over all rows, such as the spelling of
        categories, the lines say as it was decided. Raises ValueError for a line that keeps no contract.
        """
        words = SearchWords(texts)
        detailed = map(contract.PublicMarketDetailMarket.model_validate_json, lines)
        markets = [Market.of(market, words=words.of(market.question, market.description)) for market in detailed]
        return cls(markets, as_of=as_of, hidden=0, naming=Naming(site_keys=SiteKeys(site_keys, {})))

    def ids(self) -> set[str]:
        """The ids of all markets."""
        return {market.id for market in self.markets}

    def references(self) -> set[str]:
        """The ids of all markets, and the references of all questions."""
        return self.ids().union(keys.question_reference(question.id) for question in self.questions or ())

    def without(self, references: Collection[str]) -> "Catalog":
        """A copy without the given markets (ids) and questions; a question without other markets goes, too."""
        kept = (market for market in self.markets if market.id not in references)
        return self._with(kept, None if self.questions is None else questions.without(self.questions, references))

    def of_questions(self, found: Sequence[Question] | None) -> "Catalog":
        """A copy with these questions, whose members are among its listed markets."""
        return self._with(self.markets, found)

    def _with(self, markets: Iterable[Market], found: Sequence[Question] | None) -> "Catalog":
        made = Catalog(
            markets,
            as_of=self.as_of,
            hidden=self.hidden,
            naming=self.naming,
            categories=self._categories,
        )
        made.questions = found
        return made

    def links(self, market_url: str | None) -> Links:
        """The addresses of markets' pages by the setting `market_url`."""
        held = self.questions or ()
        questions = {member.market_id: question.id for question in held for member in question.members}
        return Links.to(market_url, self.naming.site_keys.usable, questions)

    def question_links(self, question_url: str | None) -> Links:
        """The addresses of questions' pages by the setting `question_url`."""
        site_keys = {question.id: question.key for question in self.questions or () if question.key is not None}
        return Links.to(question_url, site_keys)

    def site_keys(self) -> dict[str, str]:
        """The keys of its markets on the operator's site, by id in order."""
        usable = self.naming.site_keys.usable
        return {market.id: usable[market.id] for market in self.markets if market.id in usable} if usable else {}

    def question_keys(self) -> dict[str, str]:
        """The keys of its questions on the operator's site, by their references in order."""
        found = ((keys.question_reference(question.id), question.key) for question in self.questions or ())
        return {reference: key for reference, key in found if key is not None}

    def listed(self) -> list[Market]:
        """The markets shown in lists and snapshot, by id: all except members of public FX families."""
        return [market for market in self.markets if market.fx is None]

    def categories(self) -> dict[str, str]:
        """The names of all categories of public markets by slug, sorted."""
        return _named_categories(self.markets) if self._categories is None else dict(self._categories)

    def listed_categories(self) -> dict[str, str]:
        """The names of all categories of listed markets by slug, sorted; of these, every market tells them."""
        return _named_categories(self.listed())

    def oldest_first(self) -> list[Market]:
        """All listed markets as the search index numbers them."""
        return sorted(self.listed(), key=RANKS[NUMBERED_BY], reverse=True)[::-1]

    def snapshot(self, size: int) -> PublicMarketSnapshot:
        """The landing page's groups of at most `size` open markets.

        Fresh are those that accept bets, newest first; closing soon those that close after as-of, soonest first.
        """
        opened = [market for market in self.listed() if market.status == "open"]
        accepting = (market for market in opened if market.accepting_bets)
        fresh = sorted(accepting, key=attrgetter("created_at"), reverse=True)
        closing = sorted((market for market in opened if market.close_time > self.as_of), key=attrgetter("close_time"))
        return PublicMarketSnapshot(
            fresh_markets=[PublicMarketSignal.model_validate(market.item) for market in fresh[:size]],
            closing_soon_markets=[PublicMarketSignal.model_validate(market.item) for market in closing[:size]],
        )


def _named_categories(markets: Iterable[Market]) -> dict[str, str]:
    holders = {slug: market for market in markets for slug in market.categories}
    return dict(sorted((slug, holder.category_names()[slug]) for slug, holder in holders.items()))


def matching(catalog: Catalog, text: str, named: Collection[str]) -> Iterator[PublicMarketListItem]:
    """The markets with one of the `named` ids, then those whose question has all words of the text; each once.

    A word is found by its beginning, whatever its case and accents, and whatever in it shows nothing. Each part is in
    the order of ids.
    """
    yield from (market.item for market in catalog.markets if market.id in named)
    wanted = words.of_text(legibility.shown(text))
    if wanted:
        items = (market.item for market in catalog.markets if market.id not in named)
        yield from (item for item in items if _has(_of_question(item.question), wanted))


class FoundQuestion(NamedTuple):
    """A question that a text may mean; `size` counts its markets."""

    id: str
    slug: str | None
    kind: str
    title: str
    size: int


def matching_questions(catalog: Catalog, text: str, named: Collection[str]) -> Iterator[FoundQuestion]:
    """The questions with one of the `named` ids, then those whose title has all words of the text, like markets."""
    found = [FoundQuestion(one.id, one.slug, one.kind, one.title, len(one.members)) for one in catalog.questions or ()]
    yield from (question for question in found if question.id in named)
    if wanted := words.of_text(legibility.shown(text)):
        others = (question for question in found if question.id not in named)
        yield from (question for question in others if _has(_of_question(question.title), wanted))


def _of_question(question: str) -> set[str]:
    """Its words as they are shown and, as some scripts part words by what shows nothing, as they are written."""
    shown = legibility.shown(question)
    return words.of_text(shown) | (words.of_text(question) if shown != question else set())


def _has(found: Collection[str], wanted: Collection[str]) -> bool:
    return all(any(word.startswith(start) for word in found) for start in wanted)


@dataclass(frozen=True)
class Takedown:
    """What a takedown does to downloads: the markets (ids) that are `gone` from the `dump` that it begins with.

    `is_doubted`: details in place may be newer than that dump. `previous` is the dump itself, if it was read in parts.
    """

    dump: DumpHead | None
    gone: frozenset[str]
    is_doubted: bool
    previous: Previous | None = None


@dataclass(frozen=True)
class Details:
    """The details of a catalog's markets, which exist before the rest is made.

    `staged` has the digests of all, and of other objects that stay; `changed` are the markets (ids) whose details may
    differ from the dump in place. `line_of` returns the line of a market in a dump, for ids that ascend.
    `takedown` is what a takedown does to downloads; a build has `fingerprints`, and `histories` if it is their turn.
    `is_full`: every file in place is compared with the one that belongs there.
    """

    staged: Staged
    changed: Collection[str]
    line_of: Callable[[str], bytes]
    fingerprints: Fingerprints | None = None
    takedown: Takedown | None = None
    histories: NewHistories | None = None
    is_full: bool = False


@dataclass(frozen=True)
class Listed:
    """What downloads are made from: the listed markets of a catalog, their ids, which ascend, and their details.

    The ids, those whose details `changed`, and the `definitions` of questions, lines that are None where there is no
    such resource, are taken before the workers are forked, so that workers do not copy the markets' memory pages.
    """

    catalog: Catalog
    ids: Sequence[str]
    changed: AbstractSet[str]
    details: Details
    definitions: Sequence[bytes] | None = None

    @property
    def as_of(self) -> str:
        """When the data was read."""
        return self.catalog.as_of
