"""`q` in every JavaScript engine, held to a naive search of the same markets."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import contract
from generator.tree.layouts import LAYOUTS
from tests.support.campaigns import rounds
from tests.support.readers import search
from tests.support.readers.search import Answer, InQuickjs, Market, Task
from tests.support.readers.search_texts import TEXTS
from tests.support.readers.search_walks import Query

CORES: Final = {layout: search.core(layout) for layout in LAYOUTS}
QUICKJS: Final = {layout: InQuickjs(script) for layout, script in CORES.items()}

MARKETS: Final = st.lists(
    st.builds(
        Market,
        st.tuples(TEXTS, TEXTS),
        st.sampled_from(contract.MARKET_STATUSES),
        st.sets(st.sampled_from(["crypto", "cry", "us-politics"])).map(tuple),
        st.integers(0, 7918),
    ),
    min_size=3,
    max_size=12,
)


class Case(NamedTuple):
    """A search of a site."""

    markets: Sequence[Market]
    layout: str
    query: Query


#: How words of a query may be spelt.
SPELLINGS: Final[st.SearchStrategy[Callable[[str], str]]] = st.sampled_from(
    [str, str, str.upper, str.swapcase, lambda word: word[:3], lambda word: word + "z"]
)


@st.composite
def queries(draw: st.DrawFn, markets: Sequence[Market]) -> str:
    """Some words of a text, in other spellings; a piece of one; or something made up."""
    texts = [text for market in markets for text in market.texts if text.split()] or ["will"]
    text = draw(st.sampled_from(texts))
    way = draw(st.integers(0, 3))
    if way == 0:
        return draw(TEXTS)
    if way == 1:
        start = draw(st.integers(0, len(text) - 1))
        return text[start : start + draw(st.integers(1, 101))]
    found = draw(st.lists(st.sampled_from(text.split()), min_size=1, max_size=3))
    return " ".join(draw(SPELLINGS)(word) for word in found)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A site and a search of it. Most lists have most markets, so that many match; in a haystack words are rare."""
    markets = [*draw(MARKETS), *[Market(("hay", ""), rank=9)] * draw(st.sampled_from([0, 0, 0, 0, 0, 40]))]
    everything: contract.StatusFilter = "all"
    status = draw(st.sampled_from([*[everything] * 4, *contract.STATUS_FILTERS]))
    category = draw(st.sampled_from([*[None] * 6, "crypto", "cry", "empty"]))
    sort, layout = draw(st.sampled_from(contract.SORTS)), draw(st.sampled_from(LAYOUTS))
    limit = draw(st.sampled_from([1, 2, 3, 100]))
    return Case(markets, layout, Query(draw(queries(markets)), status, sort, category, limit))


def is_as_expected(answers: Sequence[Answer], case: Case) -> bool:
    if not search.is_searchable(case.query.q):
        return [answer["status"] for answer in answers] == [400] and '"q"' in answers[0]["body"]
    found = search.items_of(answers)
    return found == case.query.items(case.markets) and {answer["status"] for answer in answers} == {200}


def task(case: Case) -> Task:
    return search.objects(case.markets, case.layout, search.small()), [case.query.target()]


def wrong(program: str, cores: Mapping[str, str], tried: Sequence[Case], folder: Path) -> list[Case]:
    """The cases that the program answers in another way than the naive search."""
    found = list[Case]()
    for layout in LAYOUTS:
        those = [case for case in tried if case.layout == layout]
        results = search.in_program(program, cores[layout], [*map(task, those)], folder)
        found += [case for case, (answers,) in zip(those, results, strict=True) if not is_as_expected(answers, case)]
    return found


@pytest.mark.campaign
def test_every_engine_finds_what_a_naive_search_finds(tmp_path: Path) -> None:
    tried = list[Case]()

    @settings(max_examples=rounds(60, 1_500), deadline=None)
    @given(cases())
    def check(case: Case) -> None:
        tried.append(case)
        site, (query,) = task(case)
        assert is_as_expected(QUICKJS[case.layout].walk(site, query), case)

    check()
    for program in ("node", "njs"):
        assert wrong(program, CORES, tried, tmp_path) == [], program
