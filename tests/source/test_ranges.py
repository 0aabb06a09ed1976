"""A range of markets is looked up in an index where there is one; where there is none, there are few ranges."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.builder import executors
from generator.markets.quarantine import Quarantine
from generator.source import connection
from generator.source.queries import Chosen, Range, Statements, Within
from generator.source.reader import open_reader
from tests.source.native import Postgres
from tests.support.sites.builds import build_now, make_config
from tests.support.sites.rows import fill_id, insert_market, market_id
from tests.support.waiting import wait_until

SOME = Range(market_id(1), market_id(3))
#: Enough for several parts.
MARKETS = 1_500


@pytest.mark.parametrize(("is_indexed", "count"), [(True, 20), (False, 9)])
def test_there_are_few_parts_where_each_reads_whole_tables(
    database: sqlite3.Connection, tmp_path: Path, *, is_indexed: bool, count: int
) -> None:
    for number in range(40):
        insert_market(database, number)
    if not is_indexed:
        columns = [name for _, name, *_ in database.execute("PRAGMA table_info(markets)")]
        shown = ", ".join("lower(id) AS id" if name == "id" else name for name in columns)
        database.executescript(f"ALTER TABLE markets RENAME TO held; CREATE VIEW markets AS SELECT {shown} FROM held")
    database.commit()
    with open_reader(make_config(tmp_path), Quarantine()) as reader:
        assert len(executors.parts_of(reader.survey(), reader, 2)) in {count - 1, count}


def test_postgresql_looks_up_what_has_an_index_however_small_the_table(
    make_postgres: Callable[..., Postgres], tmp_path: Path
) -> None:
    served = make_postgres()
    config = make_config(tmp_path, source__url=served.url)
    with open_reader(config, Quarantine()) as reader:
        assert not reader.looks_up(SOME)
    served.connection.execute("CREATE INDEX ON markets (id); CREATE INDEX ON fills (market_id)")
    with open_reader(config, Quarantine()) as reader:
        assert reader.looks_up(SOME)
        assert reader.survey().keys == [], "the transaction goes on"


@pytest.mark.campaign(short=0)
def test_postgresql_compares_no_part_s_rows_with_all_of_its_markets(
    make_postgres: Callable[..., Postgres], tmp_path: Path
) -> None:
    served = make_postgres()
    with served.connection.transaction():
        for number in range(MARKETS):
            served.insert_market(number)
    for relation in ("fills", "orders", "probabilities"):
        served.connection.execute(f"CREATE INDEX ON {relation} (market_id)")
    served.connection.execute(
        "INSERT INTO fills (id, market_id, amount, shares, created_at) "
        "SELECT gen_random_uuid(), id, 1, 1, '2026-01-31 11:00Z' FROM markets, generate_series(1, 3);"
        "INSERT INTO probabilities (market_id, recorded_at, prob) "
        "SELECT id, '2026-01-31 11:00Z', 0.5 FROM markets, generate_series(1, 3);"
        # As of a table that is a hundred times as large: then a part is shorter than what the statistics tell apart.
        "CREATE INDEX ON markets (id); ALTER TABLE markets ALTER id SET STATISTICS 1; "
        "ALTER TABLE fills ALTER market_id SET STATISTICS 1; "
        "ALTER TABLE probabilities ALTER market_id SET STATISTICS 1; ANALYZE"
    )
    assert build_now(make_config(tmp_path, source__url=served.url)).built == MARKETS
    others = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'public-markets'"
    wait_until(lambda: served.connection.execute(others).fetchone() == (0,))  # then all of them have told what they did
    fetched = "SELECT sum(coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables WHERE schemaname = 'public'"
    ((rows,),) = served.connection.execute(fetched).fetchall()
    assert rows < 30 * MARKETS


@pytest.mark.parametrize("within", [SOME, Chosen((market_id(1), market_id(2)))], ids=["a range", "a few"])
def test_a_view_that_is_a_security_barrier_computes_no_row_of_other_markets(
    make_postgres: Callable[..., Postgres], tmp_path: Path, within: Within
) -> None:
    served = make_postgres()
    for number in (1, 2, 3):
        served.insert_market(number)
        served.insert("fills", id=fill_id(number), market_id=market_id(number), amount=1, shares=1,
                      created_at="2026-01-31 11:00Z")  # fmt: skip
    served.connection.execute(
        "ALTER TABLE fills RENAME TO bets; CREATE VIEW fills WITH (security_barrier) AS SELECT id, market_id, "
        f"1 / CASE WHEN market_id = '{market_id(3)}' THEN 0 ELSE 1 END AS amount, shares, price, created_at FROM bets"
    )
    statement = Statements("postgresql", None).count_values("fills", "amount", within=within)
    with connection.transaction(make_config(tmp_path, source__url=served.url)) as transaction:
        assert transaction.number(statement, "fills") == 2
