"""Searches that every edge is asked for, and the made-up markets in which it looks."""

from typing import Final

from generator.api import contract
from tests.support.readers.search import Market
from tests.support.readers.search_walks import Query

#: Texts of many markets, in which every word is in several and some are in most.
TEXTS: Final = (
    "Will the election be in 2026?", "will THE Élections be won by Trump’s war room", "WAR and peace", "warner at war",
    "選挙戦", "2026年の選挙", "戦", "ＦＵＬＬ ｗｉｄｔｈ ﬁnal", "한국 선거", "a be ab", "Straße", "x" * 120, "café", "",
    "𝔸𠮷野家",
)  # fmt: skip
MARKETS: Final = [
    Market(
        (
            TEXTS[number % len(TEXTS)] if number != 97 else "needle " + "ﬁ" * 60,
            ("the description of it" if number % 3 else "Will it?") + (" mostly" if number % 10 else ""),
        ),
        contract.MARKET_STATUSES[number * number % 4],
        ("crypto",) if number % 10 == 1 else ("cry", "us-politics") if number % 8 == 0 else ("us-politics",),
        number * 37 % 101,
    )
    for number in range(130)
]
#: A word that two markets of one chunk never have.
SCATTERED: Final = [Market(("needle" if number % 200 == 7 else "hay",), rank=number) for number in range(6_000)]
QUERIES: Final = (
    "will", "WILL The", "war", "warn", "elections", "élec", "be", "ab", "a", "é", "選挙", "選", "戦", "挙", "full",
    "fi", "fin", "한국", "strasse", "ß", "x" * 100, "x" * 90, "caf", "2026", "20", "野", "nothing", "the it", "needle",
    "ﬁ" * 60, "選挙家", "挙選", "the 選挙", "will will", "of-it", "2026 election", "mostly",
    "mostly will",
)  # fmt: skip


CASES: Final = (
    *(Query(q) for q in QUERIES),
    *(Query("the", status, sort) for status in contract.STATUS_FILTERS for sort in contract.SORTS[:2]),
    *(Query("will", "open", sort, category, 100) for sort in contract.SORTS for category in ("crypto", "cry", "empty")),
    *(Query("will", category=category) for category in ("cry", "us-politics")),
    Query("the", limit=1),
    Query("will", limit=7),
)
