"""Everything that is asked of a site, or as much of it as a budget of requests allows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from generator.api import contract, keys
from generator.api.contract import LIMIT_DEFAULT
from generator.api.feeds import FEED_NAMES
from generator.verify import documents, objects
from generator.verify.archived_days import ArchiveCheck
from generator.verify.budget import Wish, drawn, shared_out
from generator.verify.expected import ExpectedSite
from generator.verify.feeds import FeedCheck
from generator.verify.inquiry import Check
from generator.verify.objects import DetailCheck
from generator.verify.parquet_files import ParquetCheck
from generator.verify.walks import LARGEST, LIMITS, RandomPages, Walk, pages_of

#: What there is one of, and about how many requests that and feeds are.
_ONCE: Final[tuple[Check, ...]] = (
    objects.check_build, documents.check_documents, documents.check_index, objects.check_snapshot,
    objects.check_prices, objects.check_changes,
)  # fmt: skip
_REQUESTS: Final = 27
#: The most archived days, and the most files of tables, of a budget of so many requests each.
_PER_DAY: Final = 100
_PER_FILE: Final = 4
#: How much each kind matters beside the others: first pages, pages of lists, details, lists of categories, searches.
_WEIGHTS: Final = (4, 24, 6, 2, 1)
#: The most pages of a walk through a list of a category, and of a search: sites allow a tenth as many of those.
_WALKED: Final = 5
_SEARCHED: Final = 2
#: The most searches, and the lengths of the words that they are made of.
_SEARCHES: Final = 1_000
_WORD: Final = range(3, 40)


@dataclass(frozen=True)
class Coverage:
    """How many lists without category are walked whole, how many looked at on random pages, and how many not at all."""

    whole: int
    sampled: int
    left_out: int


@dataclass(frozen=True)
class Selection:
    """What is asked, and of how many lists that is all."""

    checks: list[Check]
    lists: Coverage


def selected(site: ExpectedSite, budget: int | None, seed: int) -> Selection:
    """What to ask for with so many requests, and by this seed; all for None.

    First come the lists without category, as these are what readers read, then details, categories and searches.
    """
    rng = Random(seed)  # noqa: S311 - which ones is no secret
    lists = rng.sample(sorted(site.lists), len(site.lists))
    of_all = [name for name in lists if keys.CATEGORY_SEPARATOR not in name]
    of_categories = [name for name in lists if keys.CATEGORY_SEPARATOR in name]
    if budget is None:
        return _whole(site, of_all, of_categories, rng)
    files = min(len(site.dump.tables()) if site.dump else 0, budget // _PER_FILE)
    days = max(1, budget // _PER_DAY)
    pages = [pages_of(len(site.lists[name])) for name in of_all]
    wishes = (len(of_all), sum(pages), 2 * len(site.markets), _WALKED * len(of_categories), _SEARCHED * _SEARCHES)
    left = budget - _REQUESTS - files - (days if site.dump else 0)
    firsts, later, details, categories, searches = shared_out(left, [*map(Wish, wishes, _WEIGHTS)])
    shares = shared_out(later, [*map(Wish, pages)])
    beside_files = details * 3 // 4 if files else 0
    asked: list[Check] = [*_ONCE, *map(FeedCheck, FEED_NAMES), ArchiveCheck(days, seed)]
    asked += [_first_page(name, rng) for name in of_all[::-1][:firsts]]
    asked += _of_lists(of_all, pages, shares, seed)
    asked += [ParquetCheck(seed, files, beside_files), *_details(site, details - beside_files, rng)]
    asked += _of_categories(site, of_categories, categories, rng)
    asked += [*_searches(site, searches // _SEARCHED, _SEARCHED, rng)]
    whole, left_out = sum(share == most for share, most in zip(shares, pages, strict=True)), shares.count(0)
    return Selection(asked, Coverage(whole, len(of_all) - whole - left_out, left_out))


def _whole(site: ExpectedSite, of_all: list[str], of_categories: list[str], rng: Random) -> Selection:
    asked: list[Check] = [*_ONCE, *map(FeedCheck, FEED_NAMES), ArchiveCheck(None, 0)]
    asked += [_first_page(name, rng) for name in (*of_all, *of_categories)]
    asked += [Walk(name, _turned(rng), None) for name in (*of_all, *of_categories)]
    asked += [*(DetailCheck(market.id) for market in site.catalog.listed()), ParquetCheck(0)]
    return Selection([*asked, *_searches(site, _SEARCHES, None, rng)], Coverage(len(of_all), 0, 0))


def _first_page(name: str, rng: Random) -> Check:
    """The first page of a list, as most readers ask for it, or with another limit."""
    return Walk(name, (rng.choice((LIMIT_DEFAULT, rng.choice(LIMITS))),), 1)


def _of_lists(names: Sequence[str], pages: Sequence[int], shares: Sequence[int], seed: int) -> Iterator[Check]:
    """Walks through whole lists; of lists of more pages than their share, as many at random positions."""
    for name, most, share in zip(names, pages, shares, strict=True):
        if share == most:
            yield Walk(name, LARGEST, None)
        elif share:
            yield RandomPages(name, share, seed)


def _details(site: ExpectedSite, budget: int, rng: Random) -> Iterator[Check]:
    """Details of any markets, of those that take bets, and of those that were traded today, in turn."""
    listed = site.catalog.listed()
    groups = [
        [market.id for market in listed],
        [market.id for market in listed if market.accepting_bets],
        [market.id for market in listed if site.markets[market.id]["fills24h"]],
    ]
    for market_id in drawn(rng, groups, budget):
        yield DetailCheck(market_id, rng.choice(("id", "slug")))


def _of_categories(site: ExpectedSite, names: Sequence[str], budget: int, rng: Random) -> Iterator[Check]:
    """Walks through lists of categories, whose limit changes from page to page."""
    for name in names:
        limits = _turned(rng)
        starts = [sum(limits[:number]) for number in range(_WALKED)]
        longest = min(budget, sum(start < max(1, len(site.lists[name])) for start in starts))
        if longest < 1:
            return
        budget -= longest
        yield Walk(name, limits, longest)


def _turned(rng: Random) -> tuple[int, ...]:
    """The limits of pages, from any of them on."""
    turn = rng.randrange(len(LIMITS))
    return LIMITS[turn:] + LIMITS[:turn]


def _searches(site: ExpectedSite, most: int, longest: int | None, rng: Random) -> Iterator[Check]:
    """Searches for the beginnings of one or two words of a market, in a list that has it; none without an index."""
    listed = [market for market in site.catalog.listed() if market.words]
    for market in rng.sample(listed, min(len(listed), most)):
        known = sorted(word for word in market.words if len(word) in _WORD)
        chosen = rng.sample(known, min(len(known), rng.choice((1, 2))))
        if chosen:
            name = keys.list_name(rng.choice(("all", market.status)), rng.choice(contract.SORTS))
            q = " ".join(word[: rng.randint(_WORD[0], len(word))] for word in chosen)
            yield Walk(name, LIMITS, longest, q)
