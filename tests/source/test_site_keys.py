"""The optional column `markets.key`, in both databases: read of public markets, checked, and missing without harm."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from generator.config.settings import Config
from generator.markets.quarantine import Quarantine
from generator.markets.slugs import NO_KEYS, SiteKeys
from generator.source.reader import open_reader
from tests.source.native import Postgres
from tests.support.sites.builds import EXTENDED, make_config
from tests.support.sites.rows import insert_market, market_id


def keys_in(settings: Config) -> SiteKeys:
    with open_reader(settings, Quarantine()) as reader:
        assert reader.schema_problems() == []
        return reader.survey().site_keys


def fill(database: sqlite3.Connection) -> None:
    for number in range(1, 6):
        insert_market(database, number, key={4: None, 5: "x" * 1_000}.get(number, f"key {number}"))
    insert_market(database, 6, key="hidden", is_listed=0)
    insert_market(database, 7, key="key 3", approval="pending")


def expect(found: SiteKeys) -> None:
    assert found.usable == {market_id(number): f"key {number}" for number in (1, 2, 3)}
    assert found.refused.keys() == {market_id(5)}
    assert len(found.refused[market_id(5)].value or "") < 1_000


def test_sqlite_tells_the_keys_of_public_markets(tmp_path: Path, database: sqlite3.Connection) -> None:
    assert keys_in(make_config(tmp_path)) == NO_KEYS
    database.execute("ALTER TABLE markets ADD COLUMN key")
    fill(database)
    expect(keys_in(make_config(tmp_path)))
    expect(keys_in(make_config(tmp_path, **EXTENDED)))


def test_postgresql_tells_the_keys_of_public_markets(
    tmp_path: Path, make_postgres: Callable[..., Postgres], database: sqlite3.Connection
) -> None:
    served = make_postgres()
    database.execute("ALTER TABLE markets ADD COLUMN key")
    fill(database)
    served.copy(tmp_path / "markets.db")
    served.connection.execute("ALTER TABLE markets ADD COLUMN key text")
    for market, key in database.execute("SELECT id, key FROM markets"):
        served.connection.execute("UPDATE markets SET key = %s WHERE id = %s", [key, market])
    expect(keys_in(make_config(tmp_path, source__url=served.url)))
    served.connection.execute("ALTER TABLE markets ALTER key TYPE bigint USING (right(id::text, 4) || '7')::bigint")
    assert keys_in(make_config(tmp_path, source__url=served.url)).refused.keys() >= {market_id(1)}, "all have 7"
