"""Everything that is asked of a site, or as much of it as a budget of requests allows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from generator.api import contract, keys
from generator.api.contract import LIMIT_DEFAULT
from generator.api.feeds import FEED_NAMES
from generator.api.questions import SHOWN_MARKETS
from generator.verify import documents, history, objects
from generator.verify.budget import Wish, drawn, shared_out
from generator.verify.expected import ExpectedSite
from generator.verify.feeds import FeedCheck
from generator.verify.inquiry import Check
from generator.verify.objects import DetailCheck
from generator.verify.parquet_files import ParquetCheck, can_compare_rows
from generator.verify.questions import QuestionCheck, SingleCheck, check_definitions
from generator.verify.walks import LARGEST, LIMITS, RandomPages, Walk, pages_of

#: What there is one of, and how many requests that is at most; the index is last, as the others ask for most of it.
_ONCE: Final[tuple[Check, ...]] = (
    objects.check_build, documents.check_documents, objects.check_snapshot, documents.check_made,
    objects.check_changes, check_definitions, *map(FeedCheck, FEED_NAMES), documents.check_index,
)  # fmt: skip
_REQUESTS: Final = 15
#: The same where there are questions: their table, and markets that stand alone.
_SINGLES: Final = 2
_OF_QUESTIONS: Final = 1 + _SINGLES
#: The most files of tables, of a budget of so many requests each.
_PER_FILE: Final = 4
#: How much each kind matters beside the others: first pages, pages of lists, details, those of questions, lists of
#: categories, searches.
_WEIGHTS: Final = (4, 24, 6, 3, 2, 1)
#: The most pages of a walk through a list of a category, and of a search: sites allow a tenth as many of those.
_WALKED: Final = 5
_SEARCHED: Final = 2
#: The most searches, and the lengths of the words that they are made of.
_SEARCHES: Final = 1_000
_WORD: Final = range(3, 40)


@dataclass(frozen=True)
class Coverage:
    """How many lists without category are walked whole, how many looked at on random pages; of others, first pages."""

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
    lists = _rng(seed, "lists").sample(sorted(site.lists), len(site.lists))
    of_all = [name for name in lists if keys.CATEGORY_SEPARATOR not in name]
    of_categories = [name for name in lists if keys.CATEGORY_SEPARATOR in name]
    if budget is None:
        return _whole(site, of_all, of_categories, seed)
    files = min(len(site.dump.tables()) if site.dump else 0, budget // _PER_FILE)
    pages = [pages_of(len(site.lists[name])) for name in of_all]
    questions = len(site.questions.details) if site.questions else 0
    wishes = (
        len(of_all), sum(pages), 2 * len(site.markets), 2 * questions, _WALKED * len(of_categories),
        _SEARCHED * _SEARCHES,
    )  # fmt: skip
    of_history = history.requests(site) if history.requests(site) <= budget // _PER_FILE else 0
    left = budget - _REQUESTS - files - of_history - (_OF_QUESTIONS if site.questions else 0)
    firsts, later, details, grouped, categories, searches = shared_out(left, [*map(Wish, wishes, _WEIGHTS)])
    shares = _of_several(shared_out(later, [*map(Wish, pages)]), pages)
    beside_files = details * 3 // 4 if site.dump and can_compare_rows(site.dump, files) else 0
    asked: list[Check] = [*_ONCE, *([history.check_history] if of_history else [])]
    asked += _first_pages(of_all[::-1][:firsts], seed)
    asked += _of_lists(of_all, pages, shares, seed)
    asked += [ParquetCheck(seed, files, beside_files), *_details(site, details - beside_files, seed)]
    asked += _of_questions(site, grouped, seed)
    asked += _of_categories(site, of_categories, categories, seed)
    asked += [*_searches(site, searches // _SEARCHED, _SEARCHED, seed)]
    whole, left_out = sum(share == most for share, most in zip(shares, pages, strict=True)), shares.count(0)
    return Selection(asked, Coverage(whole, len(of_all) - whole - left_out, left_out))


def _rng(seed: int, kind: str) -> Random:
    """Draws for a kind of checks, whatever was drawn for others."""
    return Random(f"{seed} {kind}")  # noqa: S311 - which ones is no secret


def _whole(site: ExpectedSite, of_all: list[str], of_categories: list[str], seed: int) -> Selection:
    names, rng = (*of_all, *of_categories), _rng(seed, "walks")
    asked: list[Check] = [*_ONCE, history.check_history, *_first_pages(names, seed)]
    asked += [Walk(name, _turned(rng), None) for name in names]
    asked += [*(DetailCheck(market.id) for market in site.catalog.listed()), ParquetCheck(0)]
    asked += [*map(QuestionCheck, site.questions.details if site.questions else ())]
    asked += _singles(site, seed)
    return Selection([*asked, *_searches(site, _SEARCHES, None, seed)], Coverage(len(of_all), 0, 0))


def _of_several(shares: Sequence[int], pages: Sequence[int]) -> list[int]:
    """The shares, in which no list of several pages has one only: of two such, one gets both.

    That page would be the first, which is asked for anyway.
    """
    alone = [number for number, share in enumerate(shares) if share == 1 < pages[number]]
    half = len(alone) // 2
    changed = dict.fromkeys(alone[:half], 2) | dict.fromkeys(alone[half:], 0)
    return [changed.get(number, share) for number, share in enumerate(shares)]


def _first_pages(names: Iterable[str], seed: int) -> Iterator[Check]:
    """The first page of each list, as most readers ask for it, or with another limit."""
    rng = _rng(seed, "first pages")
    for name in names:
        yield Walk(name, (rng.choice((LIMIT_DEFAULT, rng.choice(LIMITS))),), 1)


def _of_lists(names: Sequence[str], pages: Sequence[int], shares: Sequence[int], seed: int) -> Iterator[Check]:
    """Walks through whole lists; of lists of more pages than their share, as many at random positions."""
    for name, most, share in zip(names, pages, shares, strict=True):
        if share == most:
            yield Walk(name, LARGEST, None)
        elif share:
            yield RandomPages(name, share, seed)


def _details(site: ExpectedSite, budget: int, seed: int) -> Iterator[Check]:
    """Details of any markets, of those that take bets, and of those that were traded today, in turn."""
    listed, rng = site.catalog.listed(), _rng(seed, "details")
    groups = [
        [market.id for market in listed],
        [market.id for market in listed if market.accepting_bets],
        [market.id for market in listed if site.markets[market.id]["fills24h"]],
    ]
    for market_id in drawn(rng, groups, budget):
        yield DetailCheck(market_id, rng.choice(("id", "slug")))


def _of_questions(site: ExpectedSite, budget: int, seed: int) -> Iterator[Check]:
    """Details of questions, first of those that show in lists some of their markets only."""
    present, rng = site.questions.present if site.questions else {}, _rng(seed, "questions")
    large = [one for one, question in present.items() if len(question.labels) > SHOWN_MARKETS]
    for question_id in [*dict.fromkeys([*drawn(rng, [large], None), *drawn(rng, [present], None)])][:budget]:
        yield QuestionCheck(question_id, rng.choice(("id", "slug")))
    yield from _singles(site, seed)


def _singles(site: ExpectedSite, seed: int) -> Iterator[Check]:
    """Some markets that are rows by themselves."""
    alone = site.questions.ids & site.markets.keys() if site.questions else set[str]()
    yield from map(SingleCheck, drawn(_rng(seed, "singles"), [alone], _SINGLES))


def _of_categories(site: ExpectedSite, names: Sequence[str], budget: int, seed: int) -> Iterator[Check]:
    """Walks through lists of categories, whose limit changes from page to page."""
    rng = _rng(seed, "categories")
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


def _searches(site: ExpectedSite, most: int, longest: int | None, seed: int) -> Iterator[Check]:
    """Searches for the beginnings of one or two words of a market, in a list that has it; none without an index."""
    listed, rng = [market for market in site.catalog.listed() if market.words], _rng(seed, "searches")
    for market in rng.sample(listed, min(len(listed), most)):
        known = sorted(word for word in market.words if len(word) in _WORD)
        chosen = rng.sample(known, min(len(known), rng.choice((1, 2))))
        if chosen:
            name = keys.list_name(rng.choice(("all", market.status)), rng.choice(contract.SORTS))
            q = " ".join(word[: rng.randint(_WORD[0], len(word))] for word in chosen)
            yield Walk(name, LIMITS, longest, q)
