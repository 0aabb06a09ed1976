"""Finds published markets by words, as somebody remembers them. Pure."""

from collections.abc import Collection, Iterator

from generator.api.contract import PublicMarketListItem
from generator.markets import legibility
from generator.search import words
from generator.site.catalog import Catalog


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


def _of_question(question: str) -> set[str]:
    """Its words as they are shown and, as some scripts part words by what shows nothing, as they are written."""
    shown = legibility.shown(question)
    return words.of_text(shown) | (words.of_text(question) if shown != question else set())


def _has(found: Collection[str], wanted: Collection[str]) -> bool:
    return all(any(word.startswith(start) for word in found) for start in wanted)
