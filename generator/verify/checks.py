"""Everything that is asked of a site, or a sample of it."""

import random
from collections.abc import Iterator
from typing import Final

from generator.api import contract, keys
from generator.api.feeds import FEED_NAMES
from generator.verify import objects
from generator.verify.archived_days import ArchiveCheck
from generator.verify.expected import ExpectedSite
from generator.verify.inquiry import Check
from generator.verify.objects import DetailCheck, FeedCheck
from generator.verify.parquet_files import ParquetCheck
from generator.verify.walks import LIMITS, Walk

#: What there is one of.
_ONCE: Final[tuple[Check, ...]] = (
    objects.check_build, objects.check_documents, objects.check_snapshot, objects.check_prices, objects.check_changes,
)  # fmt: skip
#: The most pages of a walk in a sample, and of a search there: sites allow a tenth as many of those.
_WALKED: Final = 5
_SEARCHED: Final = 2
#: The most searches, the lengths of the words that they are made of, and how many take one.
_SEARCHES: Final = 1_000
_WORD: Final = range(3, 40)
_PER_SEARCH: Final = 5


def all_of(site: ExpectedSite, sample: int | None, seed: str) -> list[Check]:
    """Everything to ask: all of what there is little of, and so many of each of the rest; None for all of that, too."""
    rng = random.Random(seed)  # noqa: S311 - which ones is no secret

    def some(names: list[str]) -> list[str]:
        return names if sample is None or len(names) <= sample else rng.sample(names, sample)

    names = sorted(site.lists)
    of_all = [name for name in names if keys.CATEGORY_SEPARATOR not in name]
    of_categories = [name for name in names if keys.CATEGORY_SEPARATOR in name]
    asked: list[Check] = [*_ONCE, ArchiveCheck(sample, seed), *map(FeedCheck, FEED_NAMES)]
    asked += [Walk(name, rng.randrange(len(LIMITS)), 1) for name in (*of_all, *some(of_categories))]
    longest, searched = (None, None) if sample is None else (_WALKED, _SEARCHED)
    asked += [Walk(name, rng.randrange(len(LIMITS)), longest) for name in some(names)]
    ids = some([market.id for market in site.catalog.listed()])
    asked += [*map(DetailCheck, ids), ParquetCheck(tuple(ids))]
    return asked + [Walk(name, 0, searched, q) for name, q in _searches(site, sample, rng)]


def _searches(site: ExpectedSite, sample: int | None, rng: random.Random) -> Iterator[tuple[str, str]]:
    """The beginnings of one or two words of a market, and a list that has it; none where there is no search."""
    listed = [market for market in site.catalog.listed() if market.words]
    number = _SEARCHES if sample is None else sample // _PER_SEARCH + 1
    for market in rng.sample(listed, min(len(listed), number)):
        known = sorted(word for word in market.words if len(word) in _WORD)
        chosen = rng.sample(known, min(len(known), rng.choice((1, 2))))
        if chosen:
            name = keys.list_name(rng.choice(("all", market.status)), rng.choice(contract.SORTS))
            yield name, " ".join(word[: rng.randint(_WORD[0], len(word))] for word in chosen)
