"""`q` in every JavaScript engine, held to a naive search of the same markets."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import contract
from generator.api.contract import Sort, StatusFilter
from generator.tree.layouts import LAYOUTS
from tests.support import search
from tests.support.campaigns import rounds
from tests.support.search import Answer, InQuickjs, Market, Task

with search.small_objects():
    CORES: Final = {layout: search.core(layout) for layout in LAYOUTS}
QUICKJS: Final = {layout: InQuickjs(script) for layout, script in CORES.items()}

#: Characters that fold in ways of their own, or that engines treat in different ways.
ODD: Final = "ÀáßẞﬁǅİıſKÅΣςσѢёԱև℃½²①Ⓐａｶﾞガ々ー選挙報𠮷𝔸𝟗🙂\u0301\u200d\u00ad한하각ᄒاً٣กขก็שׁאꭰᏸﷺ'’-_.$ \t\u3000"
PLAIN: Final = st.sampled_from(
    ["will", "Will", "war", "warner", "a", "to", "2026", "no-one's", "Trump", "Élection", "選挙戦", "2026年選挙"]
)
WORDS: Final = (
    PLAIN | st.text(st.sampled_from(ODD), max_size=6) | st.text(st.sampled_from("abcAB"), min_size=1, max_size=4)
)
TEXTS: Final = st.lists(WORDS, max_size=6).map(" ".join) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=12
)
MARKETS: Final = st.lists(
    st.builds(
        Market,
        st.tuples(TEXTS, TEXTS),
        st.sampled_from(contract.MARKET_STATUSES),
        st.sets(st.sampled_from(["crypto", "cry", "us-politics"])).map(tuple),
        st.integers(0, 7918),
    ),
    max_size=12,
)


@dataclass(frozen=True)
class Case:
    """A search of a site: what a request says."""

    markets: Sequence[Market]
    q: str
    status: StatusFilter
    sort: Sort
    category: str | None
    layout: str
    limit: int

    def query(self) -> str:
        category = f"&category={self.category}" if self.category else ""
        return f"q={quote(self.q)}&status={self.status}&sort={self.sort}&limit={self.limit}{category}"

    def expected(self) -> list[bytes] | None:
        """The items that a walk finds; None if there is nothing to search for."""
        if not search.is_searchable(self.q):
            return None
        return search.scan(self.markets, self.status, self.sort, self.q, self.category)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Texts, and a query that is cut from one of them, or made up."""
    markets = draw(MARKETS)
    text = draw(st.sampled_from([text for market in markets for text in market.texts] or [""]) | TEXTS)
    start = draw(st.integers(0, max(0, len(text) - 1)))
    q = text[start : start + draw(st.integers(1, 101))]
    status, sort = draw(st.sampled_from(contract.STATUS_FILTERS)), draw(st.sampled_from(contract.SORTS))
    category = draw(st.none() | st.sampled_from(["crypto", "cry", "empty"]))
    return Case(
        markets, q, status, sort, category, draw(st.sampled_from(LAYOUTS)), draw(st.sampled_from([1, 2, 3, 100]))
    )


def is_as_expected(answers: Sequence[Answer], expected: Sequence[bytes] | None) -> bool:
    if expected is None:
        return [answer["status"] for answer in answers] == [400] and '"q"' in answers[0]["body"]
    return search.items_of(answers) == expected and {answer["status"] for answer in answers} == {200}


def test_every_engine_finds_what_a_naive_search_finds(tmp_path: Path) -> None:
    tried = list[tuple[Case, Task]]()

    @settings(max_examples=rounds(60, 1_500), deadline=None)
    @given(cases())
    def check(case: Case) -> None:
        with search.small_objects():
            site, query = search.objects(case.markets, case.layout), case.query()
        tried.append((case, (site, [query])))
        assert is_as_expected(QUICKJS[case.layout].walk(site, query), case.expected())

    check()
    for program, layout in product(("node", "njs"), LAYOUTS):
        those = [(case, task) for case, task in tried if case.layout == layout]
        results = search.in_program(program, CORES[layout], [task for _, task in those], tmp_path)
        for (case, _), (answers,) in zip(those, results, strict=True):
            assert is_as_expected(answers, case.expected()), (program, case)
