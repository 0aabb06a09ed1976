"""`public-markets serve` while builds replace what it serves."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from itertools import cycle, repeat
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract
from tests.support.edges.servers import connected
from tests.support.edges.serving import MARKETS, UNLIMITED, ids, in_order, page, served, target, walk
from tests.support.sites.builds import AS_OF, build_now, make_config


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "markets.db")) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount


REORDER: Final = (
    "UPDATE markets SET trader_count = (trader_count * 7919) % 1009, volume = (volume * 31.0) % 1000.0",
    "UPDATE markets SET question = question || '!' WHERE rowid % 3 = 0",
)


@pytest.mark.campaign(short=0)
def test_a_walk_survives_rebuilds_and_a_new_one_sees_them(folder: Path) -> None:
    database = folder / "markets.db"
    before = in_order(database, "all", "popular")
    with served(folder, *UNLIMITED) as server, connected(server.port) as client:
        first = page(client, status="all", limit=5)
        old = client.send("GET", target(status="all", limit=5))
        for minutes in (1, 2, 3):
            change(folder, *REORDER)
            build_now(make_config(folder), AS_OF + timedelta(minutes=minutes))
        after = in_order(database, "all", "popular")
        assert after != before
        rest = walk(client, cycle([5, 5, 10]), first["nextCursor"], status="all")
        assert [*ids(first), *rest] == before
        assert walk(client, repeat(5), status="all") == after
        new = client.send("GET", target(status="all", limit=5), If_None_Match=old.headers["etag"])
        assert (new.status, new.headers["etag"] != old.headers["etag"]) == (200, True)


@pytest.mark.campaign(short=0)
def test_a_walk_whose_generation_was_purged_has_to_start_again(folder: Path) -> None:
    with served(folder, *UNLIMITED) as server, connected(server.port) as client:
        cursor = page(client, limit=5)["nextCursor"]
        for hours in (1, 8, 9):
            change(folder, *REORDER)
            build_now(make_config(folder), AS_OF + timedelta(hours=hours))
        gone = client.send("GET", target(limit=5, cursor=cursor))
        assert (gone.status, gone.body) == (400, contract.encode(contract.invalid("cursor.gone")))
        assert walk(client, repeat(5)) == in_order(folder / "markets.db", "open", "popular")


@pytest.mark.campaign(short=0)
def test_a_router_that_was_built_anew_is_used_at_once(folder: Path) -> None:
    with served(folder) as server, connected(server.port) as client:
        assert client.send("GET", MARKETS).status == 200
        build_now(make_config(folder, base_url="https://example.org/api"))
        assert client.send("GET", MARKETS).status == 404
        assert client.send("GET", f"/api{MARKETS}").status == 200
