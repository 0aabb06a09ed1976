"""`q` in every JavaScript engine, held to a naive search of the same markets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from generator.api import contract
from generator.api.contract import Sort, StatusFilter
from generator.tree.layouts import LAYOUTS
from tests.support.campaigns import rounds
from tests.support.edges.cases import CHANGED_SEARCH_RULES
from tests.support.readers import search
from tests.support.readers.search import Answer, InQuickjs, Market, Task
from tests.support.readers.search_texts import TEXTS

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
    everything: StatusFilter = "all"
    status = draw(st.sampled_from([*[everything] * 4, *contract.STATUS_FILTERS]))
    category = draw(st.sampled_from([*[None] * 6, "crypto", "cry", "empty"]))
    sort, layout = draw(st.sampled_from(contract.SORTS)), draw(st.sampled_from(LAYOUTS))
    return Case(markets, draw(queries(markets)), status, sort, category, layout, draw(st.sampled_from([1, 2, 3, 100])))


def is_as_expected(answers: Sequence[Answer], expected: Sequence[bytes] | None) -> bool:
    if expected is None:
        return [answer["status"] for answer in answers] == [400] and '"q"' in answers[0]["body"]
    return search.items_of(answers) == expected and {answer["status"] for answer in answers} == {200}


def task(case: Case) -> Task:
    return search.objects(case.markets, case.layout, search.small()), [case.query()]


def wrong(program: str, cores: Mapping[str, str], tried: Sequence[Case], folder: Path) -> list[Case]:
    """The cases that the program answers in another way than the naive search."""
    found = list[Case]()
    for layout in LAYOUTS:
        those = [case for case in tried if case.layout == layout]
        results = search.in_program(program, cores[layout], [*map(task, those)], folder)
        found += [
            case
            for case, (answers,) in zip(those, results, strict=True)
            if not is_as_expected(answers, case.expected())
        ]
    return found


@pytest.mark.campaign
def test_every_engine_finds_what_a_naive_search_finds(tmp_path: Path) -> None:
    tried = list[Case]()

    @settings(max_examples=rounds(60, 1_500), deadline=None)
    @given(cases())
    def check(case: Case) -> None:
        tried.append(case)
        site, (query,) = task(case)
        assert is_as_expected(QUICKJS[case.layout].walk(site, query), case.expected())

    check()
    for program in ("node", "njs"):
        assert wrong(program, CORES, tried, tmp_path) == [], program


@cache
def many_cases() -> list[Case]:
    """Many, as which ones come first depends on the modules that are loaded."""
    found = list[Case]()

    @settings(max_examples=400, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
    @given(cases())
    def generate(case: Case) -> None:
        found.append(case)

    generate()
    return found


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("program", "rule"), [*zip(cycle(["quickjs", "node", "njs"]), CHANGED_SEARCH_RULES)])
def test_a_changed_rule_turns_every_engine_red(program: str, rule: tuple[str, str], tmp_path: Path) -> None:
    cores, tried = {layout: core.replace(*rule) for layout, core in CORES.items()}, many_cases()
    assert all(core.count(rule[0]) == 1 for core in CORES.values()), "the rule has another text"

    if program == "quickjs":
        edges = {layout: InQuickjs(core) for layout, core in cores.items()}
        assert not all(
            is_as_expected(edges[case.layout].walk(site, query), case.expected())
            for case in tried
            for site, (query,) in [task(case)]
        )
    else:
        assert wrong(program, cores, tried, tmp_path)
