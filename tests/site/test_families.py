"""The table of families is complete and true: every published object is in one row, which says how it is served."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from generator.api import keys
from generator.demo.database import seed
from generator.site.families import FAMILIES, rank
from generator.site.family import Family, Rank
from tests.support.sites.builds import AS_OF, build_now, files, make_config
from tests.support.sites.question_tables import create_questions, member_row, question_row
from tests.support.sites.rows import insert


def rows_of(key: str) -> list[Family]:
    """The rows of an object; one of the search index is in one of lists, too, as its keys are those of a list."""
    found = [one for one in FAMILIES if one.pattern.fullmatch(key) or one.immutable_pattern.fullmatch(key)]
    return [one for one in found if one.name != "lists" or len(found) == 1]


@pytest.mark.parametrize(("layout", "variant"), [("pages", "core"), ("chunks", "extended")])
def test_every_published_object_is_in_one_row_which_tells_how_it_is_served(
    layout: str, variant: str, tmp_path: Path
) -> None:
    settings = {
        "variant": variant,
        "layout": layout,
        "dumps__parquet": True,
        "dumps__fills": True,
        "history__public": True,
    }
    seed(tmp_path / "markets.db", as_of=AS_OF, markets=30)
    with closing(sqlite3.connect(tmp_path / "markets.db")) as database, database:
        (market,) = database.execute(
            "SELECT id FROM markets WHERE approval = 'approved' AND is_listed LIMIT 1"
        ).fetchone()
        create_questions(database)
        insert(database, "questions", **question_row(slug="which"))
        insert(database, "question_members", **member_row(1, 1, market_id=market))
    build_now(make_config(tmp_path, **settings))
    found = files(tmp_path / "output")
    used = set[str]()
    for key in found:
        (row,) = rows_of(key)
        used.add(row.name)
        is_immutable = row.immutable_pattern.fullmatch(key) is not None
        assert is_immutable == keys.is_immutable(key), key
        if not is_immutable:
            assert keys.headers(key)["Cache-Control"] == row.cache, key
            assert row.name == "feeds" or keys.content_type(key) == row.media_type, key
            assert rank(key) is row.rank
    assert used == {one.name for one in FAMILIES if one.name != "search" or variant == "extended"}


def test_rows_are_in_publication_order_and_have_names_and_keys_of_their_own() -> None:
    assert [one.rank for one in FAMILIES] == sorted(one.rank for one in FAMILIES)
    assert len({one.name for one in FAMILIES}) == len(FAMILIES)
    of_all = [key for one in FAMILIES for key in (*one.keys, *one.immutable)]
    assert len({*of_all}) == len(of_all)
    assert FAMILIES[-1].keys == (keys.BUILD,)


def test_an_object_that_another_version_knows_is_published_like_a_document() -> None:
    assert rank("v1/hello.json") is Rank.DOCUMENT
