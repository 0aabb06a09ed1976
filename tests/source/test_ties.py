"""Rows that differ only in what no order mentions: the same bytes, in whatever order the database returns them."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.source.native import Postgres, assert_same_files, detail
from tests.support.sites.builds import EXTENDED, build_now, make_config
from tests.support.sites.rows import FX_MEMBER, create_database, fill_id, insert, market_id, market_row

AT: Final = "2026-01-15 00:00:00.000000"
FILL: Final = {"id": fill_id(1), "market_id": market_id(1), "amount": 5, "shares": 20, "price": 0.5, "created_at": AT}
MEMBER: Final = {"market_id": market_id(2), **FX_MEMBER, "is_public": True}
POINT: Final = {"market_id": market_id(1), "recorded_at": AT, "prob": 0.5}
ORDER: Final = {"market_id": market_id(1), "side": "bid", "price": 0.4, "amount": 5, "is_public": True}
CATEGORY: Final = {"market_id": market_id(1), "category": "a", "position": 0}
#: Rows of each relation that share the key by which they are chosen or sorted. The first one is shown.
TIES: Final[Mapping[str, list[dict[str, Any]]]] = {
    "fills": [
        {**FILL, **other}
        for other in ({"amount": 4}, {"shares": 19}, {"price": 0.4}, {}, {"price": None}, {"shares": 21})
    ],
    "fx_members": [
        {**MEMBER, **other}
        for other in (
            *({"title": "EUR", "week_end": "2026-02-03"}, {"title": "EUr"}, {"instrument": "EURCHF"}, {"source": "A"}),
            *({"week_end": "2026-01-29"}, {"threshold_value": 1.07}, {}, {"direction": "lte"}),
            {"title": "a, which some collations sort before EUR"},
        )
    ],
    "probabilities": [{**POINT, "prob": prob} for prob in (0.1, 0.3, 0.7)],
    # Their sum depends on the order in which they are added.
    "orders": [{**ORDER, "amount": amount} for amount in (0.1, 0.2, 0.3, 1e15, 0.7)],
    "market_categories": [{**CATEGORY, "category": name} for name in ("a", "A", "ab", "b", "B")],
}


def into_sqlite(folder: Path, ties: Mapping[str, list[dict[str, Any]]]) -> str:
    with closing(create_database(folder / "markets.db")) as connection:
        fill(lambda relation, row: insert(connection, relation, **row), ties)
    return f"sqlite:///{folder / 'markets.db'}"


def fill(insert_row: Callable[[str, dict[str, Any]], Any], ties: Mapping[str, list[dict[str, Any]]]) -> None:
    for number in (1, 2):
        insert_row("markets", market_row(number, is_listed=True))
    for relation, rows in ties.items():
        for row in rows:
            insert_row(relation, row)


@pytest.fixture(scope="module")
def in_order(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a build from SQLite with the rows in the order of `TIES`."""
    folder = tmp_path_factory.mktemp("ties")
    build_now(make_config(folder, source__url=into_sqlite(folder, TIES), **EXTENDED))
    return folder / "output"


def test_the_first_of_rows_that_tie_is_the_same_for_every_reader(in_order: Path) -> None:
    (shown,) = detail(in_order, 1)["recentFills"]
    assert (shown["amount"], shown["shares"], shown["price"]) == (4, 20, 0.5)
    family = detail(in_order, 2)["market"]["fxFamilyMember"]
    assert (family["title"], family["weekEnd"]) == ("EUR", "2026-02-03")


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_no_order_of_rows_shows(
    in_order: Path, tmp_path: Path, make_postgres: Callable[..., Postgres], database: str
) -> None:
    backwards = {relation: rows[::-1] for relation, rows in TIES.items()}
    if database == "sqlite":
        url = into_sqlite(tmp_path, backwards)
    else:
        made = make_postgres(number="double precision")
        # Sorted as in a dictionary, not by code points.
        made.connection.execute('ALTER TABLE fx_members ALTER title TYPE text COLLATE "en-x-icu"')
        made.connection.execute('ALTER TABLE market_categories ALTER category TYPE text COLLATE "en-x-icu"')
        fill(lambda relation, row: made.insert(relation, **row), backwards)
        url = made.url
    build_now(make_config(tmp_path, source__url=url, **EXTENDED))
    assert_same_files(tmp_path / "output", in_order)
