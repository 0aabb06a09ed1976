"""The checker finds nothing at a site that answers as the oracle says, and every answer that is changed."""

import gzip
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.questions import random_sites, sites
from tests.questions.asking import QUESTIONS, Get
from tests.questions.checker import check
from tests.questions.comparing import Checked
from tests.questions.maker import CANARIES, CANARY
from tests.questions.oracle import FILTERS, SORTS, Oracle, Setting
from tests.questions.pretended import Answered, Pretended
from tests.questions.served import EXTENDED, asked, oracle_for, served
from tests.support.edges.in_process import render
from tests.support.sites.builds import NO_LIMITS, make_config

CORE: Final = Setting()
#: With lists for one category: the rest is the same once more.
ONE_CATEGORY: Final = replace(EXTENDED, categories={"a": "a"})
FEW: Final = ((100,), (20, 3, 50, 1))


def checked(get: Get, folder: Path, setting: Setting = EXTENDED, **options: object) -> Checked:
    return check(get, folder / "markets.db", setting, limits=FEW, canaries=CANARIES, **options)  # type: ignore[arg-type]


def test_it_finds_nothing_where_all_is_right(get: Get, oracle: Oracle, troubled: Path) -> None:
    found = checked(Pretended(get, oracle), troubled)
    assert found.differences == []
    assert found.lists == len(FILTERS) * len(SORTS) * 4 * len(FEW)
    assert found.rows > 3000
    assert found.details > 150
    assert found.missing > 250
    assert found.refused > 250
    assert found.definitions == len(oracle.questions) == 77


@pytest.mark.parametrize(("seed", "variant", "layout"), [(1, "core", "pages"), (2, "extended", "chunks")])
def test_it_finds_nothing_at_a_random_site(seed: int, variant: str, layout: str, tmp_path: Path) -> None:
    settings = {"variant": variant, "layout": layout, "categories": "a,weather"}
    fill = partial(random_sites.random_site, seed=seed)
    get, setting = served(tmp_path, fill, **settings), Setting(variant=variant)
    oracle = oracle_for(get, tmp_path, setting)
    assert len(oracle.questions) > 3
    assert oracle.quarantined
    assert checked(Pretended(get, oracle), tmp_path, setting).differences == []


def test_it_finds_nothing_where_every_market_is_a_single(tmp_path: Path) -> None:
    get = served(tmp_path, sites.empty)
    oracle = oracle_for(get, tmp_path, CORE)
    found = check(Pretended(get, oracle), tmp_path / "markets.db", CORE, limits=((1,), (2, 1)))
    assert (found.differences, found.rows, found.definitions) == ([], len(SORTS) * 2 * 2 * 3, 0)


def _body(pattern: bytes, by: bytes, paths: str = re.escape(QUESTIONS)) -> Callable[[str, Answered], Answered]:
    """Replace the first match in the bodies of paths that a pattern finds."""

    def changed(path: str, answered: Answered) -> Answered:
        status, headers, body = answered
        return (status, headers, re.sub(pattern, by, body, count=1)) if re.search(paths, path) else answered

    return changed


def _status(status: int, paths: str) -> Callable[[str, Answered], Answered]:
    return lambda path, answered: (status, *answered[1:]) if re.search(paths, path) else answered


_LIST, _DETAIL = r"questions\?", r"questions/[^?]+$"


def _accept_cursors(_: str, answered: Answered) -> Answered:
    """Take no cursor for one of another list."""
    is_refused = b"is not a cursor of this list" in answered[2]
    return (200, {}, b'{"items":[],"nextCursor":null}') if is_refused else answered


def _no_definitions(path: str, answered: Answered) -> Answered:
    return (*answered[:2], gzip.compress(b"")) if path.endswith(".gz") else answered


def _another_table(path: str, answered: Answered) -> Answered:
    return (*answered[:2], answered[2].replace(b"Positions", b"positions")) if "parquet" in path else answered


def _another_header(_: str, answered: Answered) -> Answered:
    return answered[0], {**answered[1], "x-served-by": "me"}, answered[2]


_LIST, _DETAIL = r"questions\?", r"questions/[^?]+$"
#: What is wrong, how it comes about, and what the checker says of it.
WRONG: Final[Mapping[str, tuple[Callable[[str, Answered], Answered], str]]] = {
    "a title": (_body(rb'"title":"Many"', rb'"title":"Few"', _LIST), 'title is "Few", not "Many"'),
    "a volume": (_body(rb'"volume":1.0000000000000004e\+16', b'"volume":1e+16', _LIST), "volume is 1e+16, not"),
    "a number's form": (_body(rb'"volume":0\.0', b'"volume":0', _LIST), "volume is 0, not 0.0"),
    "an order of properties": (_body(rb'("size":\d+),("markets":\[[^]]*\])', rb"\2,\1", _LIST), "has the properties"),
    "a lost row": (_body(rb'("items":\[)\{.*?"categories":\[[^]]*\]\},', rb"\1", _LIST), "lacks ["),
    "a row twice": (_body(rb'("items":\[)(\{.*?"categories":\[[^]]*\]\},)', rb"\1\2\2", _LIST), "items for a limit"),
    "an end too early": (_body(rb'"nextCursor":"[^"]*"', b'"nextCursor":null', _LIST), "lacks ["),
    "a label": (_body(rb'"label":"Same"', b'"label":"Other"', _DETAIL), 'label is "Other", not "Same"'),
    "a payout told early": (_body(rb'"payout":null', b'"payout":0.80861', _DETAIL), "payout is 0.80861"),
    "a detail that is missing": (_status(404, r"questions/upper-case$"), "questions/upper-case is a 404, not question"),
    "a 404 that tells": (_body(rb'"error":"', b'"error":"Hidden: ', r"questions/0badc0de"), "not the 404 of a market"),
    "a lost member": (_body(rb',\{"label":"B".*', b"]}", _DETAIL), "members, not"),
    "no definitions": (_no_definitions, "has 0 definitions, not"),
    "a table of another question": (_another_table, "'title': 'positions'"),
    "a wrong count": (_body(rb'"count": \d+, "state": "[^"]*", "files"', b'"count": 1, "files"', "head"), "count is 1"),
    "an order of entries": (_body(rb'"id": "urn:uuid:', b'"id": "urn:uuid:x', "new.json"), "not the first 50"),
    "an entry": (_body(rb"Closing time: 2", b"Closing time: 3", "new.json"), "content_text is"),
    "a search that is answered": (_status(200, r"\?q="), "not a 400 of q"),
    "a parameter that is ignored": (_status(200, "limit=05"), "not both a 400"),
    "a foreign cursor": (_accept_cursors, "not a 400 of cursor"),
    "a header": (_another_header, "has x-served-by: me, a market's answer None"),
    "a canary": (_body(rb'"asOf"', f'"{CANARY}": 1, "asOf"'.encode(), "head"), f"shows {CANARY}"),
}  # fmt: skip


@pytest.mark.campaign(short=3)
@pytest.mark.parametrize("wrong", WRONG)
def test_it_finds_what_is_wrong(wrong: str, get: Get, oracle: Oracle, troubled: Path) -> None:
    changed, sentence = WRONG[wrong]
    site = Pretended(get, oracle, changed)
    found = check(site, troubled / "markets.db", ONE_CATEGORY, limits=((100,),), canaries=CANARIES)
    assert any(sentence in one for one in found.differences), found.differences[:5]


def test_without_the_relations_there_are_no_questions(demo_folder: Path) -> None:
    get = asked(demo_folder)
    render(make_config(demo_folder, **NO_LIMITS))
    assert check(get, demo_folder / "markets.db", CORE).differences == []

    def with_lists(path: str) -> Answered:
        if path == QUESTIONS:
            return 200, {}, b'{"items":[],"nextCursor":null}'
        status, headers, body = get(path)
        return status, headers, json.dumps(json.loads(body) | {"questions": {}}).encode() if "head" in path else body

    assert len(check(with_lists, demo_folder / "markets.db", CORE).differences) == 3
