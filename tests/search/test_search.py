"""`q` in every JavaScript engine, held to a naive search of the same markets."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import contract
from generator.search import generation as index
from generator.tree.layouts import LAYOUTS
from tests.support import search
from tests.support.search import Answer, InQuickjs, Market, Task

CORES: Final = {layout: search.core(layout) for layout in LAYOUTS}
QUICKJS: Final = {layout: InQuickjs(script) for layout, script in CORES.items()}

#: Characters that fold in ways of their own, or that engines treat in different ways.
ODD: Final = "ÀáßẞﬁǅİıſKÅΣςσѢёԱև℃½²①Ⓐａｶﾞガ々ー選挙報𠮷𝔸𝟗🙂\u0301\u200d\u00ad한하각ᄒاً٣กขก็שׁאꭰᏸﷺ'’-_.$ \t\u3000"
PLAIN: Final = st.sampled_from(["will", "Will", "war", "warner", "a", "to", "2026", "no-one's", "Trump", "Élection", "選挙戦", "2026年選挙"])
WORDS: Final = PLAIN | st.text(st.sampled_from(ODD), max_size=6) | st.text(st.sampled_from("abcAB"), min_size=1, max_size=4)
TEXTS: Final = st.lists(WORDS, max_size=6).map(" ".join) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
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


@st.composite
def questions(draw: st.DrawFn, markets: Sequence[Market]) -> str:
    """A query that is cut from a text, or made up."""
    texts = [text for market in markets for text in market.texts if text]
    if not texts or draw(st.integers(0, 3)) == 0:
        return draw(TEXTS)
    text = draw(st.sampled_from(texts))
    start = draw(st.integers(0, len(text) - 1))
    return text[start : start + draw(st.integers(1, 100))]


def found_by(answers: Sequence[Answer]) -> list[bytes]:
    """The items of a walk, as they were sent."""
    items = list[bytes]()
    for answer in answers:
        assert answer["status"] == 200, answer
        head, _, _ = answer["body"].rpartition('],"nextCursor":')
        items += [part.encode() for part in head.removeprefix('{"items":[').replace('},{"id"', '}\n{"id"').split("\n") if part]
    return items


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def check(tasks: dict[str, list[Task]], wanted: dict[str, list[list[bytes] | None]], data: st.DataObject) -> None:
    markets = data.draw(MARKETS)
    q = data.draw(questions(markets))
    status, sort = data.draw(st.sampled_from(contract.STATUS_FILTERS)), data.draw(st.sampled_from(contract.SORTS))
    category = data.draw(st.none() | st.sampled_from(["crypto", "cry", "other"]))
    layout, limit = data.draw(st.sampled_from(LAYOUTS)), data.draw(st.sampled_from([1, 2, 3, 100]))
    query = f"q={quote(q)}&status={status}&sort={sort}&limit={limit}" + (f"&category={category}" if category else "")
    site = search.objects(markets, layout)
    expected = search.scan(markets, status, sort, q, category) if search.is_searchable(q) else None
    answers = QUICKJS[layout].walk(site, query)
    if expected is None:
        assert answers[0]["status"] == 400
    else:
        assert found_by(answers) == expected
    tasks[layout].append((site, [query]))
    wanted[layout].append(expected)


def test_every_engine_finds_what_a_naive_search_finds(tmp_path: Path) -> None:
    tasks: dict[str, list[Task]] = {layout: [] for layout in LAYOUTS}
    wanted: dict[str, list[list[bytes] | None]] = {layout: [] for layout in LAYOUTS}
    check(tasks, wanted)
    for layout in LAYOUTS:
        for program in ("node", "njs"):
            results = search.in_program(program, CORES[layout], tasks[layout], tmp_path)
            for (_, queries), expected, (answers,) in zip(tasks[layout], wanted[layout], results, strict=True):
                if expected is None:
                    assert answers[0]["status"] == 400, (program, queries)
                else:
                    assert found_by(answers) == expected, (program, queries)
