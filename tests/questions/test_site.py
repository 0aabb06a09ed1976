"""The site itself against the oracle: all kinds of databases, both variants and layouts, through rebuilds."""

import random
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.questions import random_sites, sites, walks
from tests.questions.asking import MARKETS, Site
from tests.questions.checker import check
from tests.questions.maker import CANARIES
from tests.questions.oracle import SORTS, Setting
from tests.questions.served import asked, oracle_for, served
from tests.support.sites.builds import NO_LIMITS, build_now, make_config

#: How often a site is changed and rebuilt.
_REBUILDS: Final = 4


def _settings(variant: str, layout: str) -> Mapping[str, Any]:
    return {"variant": variant, "layout": layout, "categories": "a,weather"}


@pytest.mark.parametrize("layout", ["pages", "chunks"])
@pytest.mark.parametrize("variant", ["core", "extended"])
def test_a_site_answers_as_the_oracle(variant: str, layout: str, tmp_path: Path) -> None:
    settings = _settings(variant, layout)
    get = served(tmp_path, sites.troubled, **settings)
    found = check(get, tmp_path / "markets.db", Setting(variant), canaries=CANARIES)
    assert found.differences == []
    assert found.definitions == 77


@pytest.mark.parametrize("layout", ["pages", "chunks"])
def test_relations_without_rows_make_every_market_a_single(layout: str, tmp_path: Path) -> None:
    get = served(tmp_path, sites.empty, layout=layout)
    found = check(get, tmp_path / "markets.db", Setting(), limits=((1,), (2, 1)))
    assert found.differences == []
    assert found.rows == len(SORTS) * 2 * 2 * 3  # in the lists of `open` and `all`, walked twice


def test_without_lists_there_are_details_and_definitions(tmp_path: Path) -> None:
    get = served(tmp_path, sites.small, questions__lists=False)
    found = check(get, tmp_path / "markets.db", Setting(has_lists=False))
    assert found.differences == []
    assert (found.lists, found.details, found.definitions) == (0, 4, 2)


def test_a_site_with_the_most_members_answers_as_the_oracle(tmp_path: Path) -> None:
    get = served(tmp_path, sites.large, layout="chunks")
    found = check(get, tmp_path / "markets.db", Setting(), limits=((100,),), canaries=CANARIES)
    assert found.differences == []
    assert found.definitions == 2


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("seed", range(20))
def test_a_site_answers_as_the_oracle_through_rebuilds(seed: int, tmp_path: Path) -> None:
    variant, layout = ("core", "extended")[seed % 2], ("pages", "chunks")[seed // 2 % 2]
    settings, setting, draw = _settings(variant, layout), Setting(variant), random.Random(seed)  # noqa: S311 - no secret
    get = served(tmp_path, partial(random_sites.random_site, seed=seed), **settings)
    begun, done, before = list[tuple[walks.Begun, set[str]]](), list[str](), oracle_for(get, tmp_path, setting)
    for _ in range(_REBUILDS):
        begun += [(walk, set()) for walk in walks.begin(Site(get), before)]
        with closing(sqlite3.connect(tmp_path / "markets.db", isolation_level=None)) as database:
            done += [random_sites.edit(database, draw) for _ in range(3)]
        build_now(make_config(tmp_path, **NO_LIMITS, **settings), shrink=True, invalid=True)
        get = asked(tmp_path, **settings)
        found = check(get, tmp_path / "markets.db", setting, limits=((7,),), canaries=CANARIES)
        assert found.differences == [], done
        now = oracle_for(get, tmp_path, setting)
        gone = walks.withdrawn(before, now, lambda name: asked(tmp_path, **settings)(f"{MARKETS}/{name}")[0] == 200)
        for walk, lost in begun:
            lost.update(gone)
            assert [*walks.unlike(Site(get), walk, lost, now)] == [], done
        before = now
