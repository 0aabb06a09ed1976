"""The golden trees: what a small database becomes, to the byte, in each variant. `make bless` accepts a change.

tests/golden/ holds a selection of the files in a form to be read, and in keys.txt every key with a digest of its bytes.
tests/golden_extended/ holds fewer of them, and in keys.txt one digest for all files of a list.
"""

import gzip
import hashlib
import json
import os
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from generator.api import keys
from generator.api.contract import Variant
from tests.support.project import ROOT
from tests.support.sites.builds import build_now, files, make_config
from tests.support.sites.rows import (
    insert_category,
    insert_fill,
    insert_fx_member,
    insert_market,
    insert_order,
    insert_point,
    market_id,
)

GOLDEN = {"core": ROOT / "tests" / "golden", "extended": ROOT / "tests" / "golden_extended"}
KEYS = "keys.txt"
#: First pages kept in full: one with a next page, and the default.
LIMITS = (2, 20)
#: Of the extended variant these lists are kept in full; its categories are one that is a slug and one that is not.
EXTENDED_LISTS = ("all/new", "open.weather/popular", "all.f-x-rates--38f939acaa/new")


def insert_what_only_the_extended_variant_shows(connection: sqlite3.Connection) -> None:
    for number, slug in (
        (1, "Snow-in_Zurich"),
        (2, "no slug?"),
        (3, "-eur-usd"),
        (5, "same"),
        (6, "SAME"),
        (9, "hidden"),
    ):
        connection.execute("UPDATE markets SET slug = ? WHERE id = ?", [slug, market_id(number)])
    connection.execute("UPDATE markets SET creation_source = 'web', sponsor = 'Café <b>' WHERE id = ?", [market_id(1)])
    connection.execute("UPDATE markets SET creation_source = '' WHERE id = ?", [market_id(2)])
    rows = [(1, "weather", 1), (1, "Züri & Umgebung", 2), (2, "weather", 1), (3, "F/X rates", 1), (6, "weather", 2)]
    for number, category, position in [*rows, (6, "F/X rates", 7), (6, "Züri & Umgebung", 0), (9, "CANARY", 1)]:
        insert_category(connection, category, position, market_id=market_id(number))


def insert_open_markets(connection: sqlite3.Connection) -> None:
    insert_market(
        connection,
        1,
        question="Will it snow in Zürich on Christmas Day? ☃️👩‍🚀",
        description='Resolves YES if "snow" is reported.\n\nC:\\weather is the source; see </script><b>rules</b>.',
        prob=0.37,
        volume=1234.5,
        trader_count=42,
        created_at="2026-01-20 08:15:30.123999",
        last_activity_at="2026-01-31T13:30:00+02:00",
    )
    insert_market(
        connection,
        2,
        question="هل ستمطر غدًا؟ האם ירד גשם?",
        trading_pause_reason="under review",
        created_at="2025-11-01T00:00:00Z",
        close_time="2026-02-01 00:00:00.000000",
    )
    insert_market(connection, 3, question="Will EUR/USD fix at or above 1.08?", volume=0.0, trader_count=0)
    insert_fx_member(connection, market_id=market_id(3))
    insert_market(
        connection, 4, question="Overdue, and in a private family?", close_time="2026-01-31 11:59:59.999999", prob=1
    )
    insert_fx_member(connection, market_id=market_id(4), title="CANARY family", is_public=0)


def insert_markets_that_are_over(connection: sqlite3.Connection) -> None:
    over = {"close_time": "2026-01-10 12:00:00.000000", "created_at": "2025-06-01 00:00:00.000000"}
    insert_market(connection, 5, question="Two\u2028lines,\ttab, {{ braces }}?", status="closed", prob=0.005, **over)
    insert_market(
        connection,
        6,
        question="Resolved as YES?",
        status="resolved",
        resolution="YES",
        resolved_at="2026-01-12T09:00:00.5Z",
        prob=1.000000000000004,
        volume=1e16,
        **over,
    )
    insert_market(
        connection, 7, status="resolved", resolution="CANCEL", resolved_at="2026-01-11 00:00:00", prob=0.5, **over
    )
    upper = "ABCDEF08-0000-4000-8000-000000000000"
    insert_market(connection, 8, id=upper, status="cancelled", question="Cancelled without a time?", **over)


def insert_trades(connection: sqlite3.Connection) -> None:
    for side, price, amount in (("bid", 0.35, 10.0), ("bid", 0.36, 2.5), ("bid", 0.35, 0.25), ("ask", 0.4, 7.0)):
        insert_order(connection, side=side, price=price, amount=amount)
    insert_order(connection, side="ask", price=0.38, amount=1_000.0, is_public=0, user_id="CANARY")
    moments = ("2026-01-25 00:00:00", "2026-01-30 12:00:00", "2026-01-30 12:00:01", "2026-01-31 11:30:00")
    prices = (0.995, None, 0.37, 0.371)
    for number, (moment, paid) in enumerate(zip(moments, prices, strict=True)):
        insert_fill(connection, number, created_at=moment, price=paid, user_id="CANARY", matched_bet_id="CANARY")
    insert_fill(connection, 100, market_id=market_id(6), created_at="2025-12-24 18:00:00.654321")
    for day in range(1, 11):
        insert_point(connection, f"2026-01-{20 + day} 00:00:00.000000", day / 20)
        insert_point(connection, f"2026-01-{day:02} 00:00:00.000000", 0.5 + day / 25, market_id=market_id(6))


@pytest.fixture
def published(tmp_path: Path, database: sqlite3.Connection, variant: Variant) -> dict[str, bytes]:
    """Hand-written markets of every kind visible on the wire."""
    insert_open_markets(database)
    insert_markets_that_are_over(database)
    insert_market(database, 9, question="CANARY hidden", approval="pending", trader_count=9_999)
    insert_trades(database)
    insert_what_only_the_extended_variant_shows(database)
    # As when the trees were made.
    database.execute("UPDATE markets SET close_time = '2026-06-30 23:59:59.000000' WHERE close_time > '2046'")
    categories = {"categories": "weather,F/X rates"} if variant == "extended" else {}
    build_now(make_config(tmp_path, detail__history_points=6, snapshot__size=3, variant=variant, **categories))
    return comparable(files(tmp_path / "output"))


def comparable(published: dict[str, bytes]) -> dict[str, bytes]:
    """Downloads uncompressed, with names of their own: compressed bytes may differ between versions of zlib."""
    of_downloads = tuple(f"{keys.list_prefix(name)}/" for name in keys.DOWNLOADS)
    made = {key: body for key, body in published.items() if not key.startswith(of_downloads)}
    digests: dict[str, str] = {}
    for key in sorted(filter(keys.is_download, published)):
        text = gzip.decompress(published[key])
        name = key.rpartition("/")[2].partition(".")[0]
        digests[hashlib.sha256(published[key]).hexdigest()] = hashlib.sha256(text).hexdigest()
        made[key.removesuffix(".gz").replace(name, hashlib.sha256(text).hexdigest()[: len(name)])] = text
    for key in (*map(keys.head, keys.DOWNLOADS), keys.DATASET, keys.ATTACH):
        shown = published[key].decode()
        for of_file, of_text in digests.items():
            shown = shown.replace(of_file, of_text).replace(of_file[:32], of_text[:32])
        made[key] = re.sub(r'(ize":"?)\d+', r"\g<1>0", shown).encode()
    return made


# ── the tree as it is kept ────────────────────────────────────────────────────────────────────────────────────────


def is_kept_in_full(key: str, variant: Variant) -> bool:
    if variant == "extended" and key.startswith(keys.LISTS):
        return key.startswith(tuple(f"{keys.list_prefix(name)}/{keys.FIRST}/" for name in EXTENDED_LISTS)) and (
            key.endswith(tuple(f"/{limit}.json" for limit in LIMITS))
        )
    return not key.startswith(keys.LISTS) or key.endswith(tuple(f"/{keys.FIRST}/{limit}.json" for limit in LIMITS))


def readable(key: str, body: bytes) -> str:
    if not key.endswith(".json"):
        return body.decode().replace("><", ">\n<" if key.endswith(".atom") else "><")
    return json.dumps(json.loads(body), ensure_ascii=False, indent=1) + "\n"


def listing(published: dict[str, bytes]) -> str:
    """Every key, folder by folder, with the first sixteen digits of its SHA-256."""
    lines, last = [], ""
    for folder, name in sorted((*key.rsplit("/", 1),) for key in published):
        if folder != last:
            lines.append(f"{folder}/\n")
            last = folder
        lines.append(f" {hashlib.sha256(published[f'{folder}/{name}']).hexdigest()[:16]} {name}\n")
    return "".join(lines)


def listing_of_lists(published: dict[str, bytes]) -> str:
    """The same with one digest for all files of a list."""
    joined: dict[str, bytes] = {}
    for key, body in published.items():
        place = "/".join(key.split("/")[:6]) if key.startswith(keys.LISTS) else key
        joined[place] = joined.get(place, b"") + (key.encode() + b"\n" + body if place != key else body)
    return listing(joined)


def tree(published: dict[str, bytes], variant: Variant) -> dict[str, str]:
    """The text of every file below the golden folder, by its path there."""
    named = listing(published) if variant == "core" else listing_of_lists(published)
    return {KEYS: named} | {
        key: readable(key, body) for key, body in published.items() if is_kept_in_full(key, variant)
    }


def kept(variant: Variant) -> dict[str, str]:
    golden = GOLDEN[variant]
    found = (path for path in golden.rglob("*") if path.is_file())
    return {path.relative_to(golden).as_posix(): path.read_bytes().decode() for path in found}


def bless(made: dict[str, str], variant: Variant) -> None:
    shutil.rmtree(GOLDEN[variant], ignore_errors=True)
    for name, text in made.items():
        path = GOLDEN[variant] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


@pytest.mark.parametrize("variant", GOLDEN)
def test_the_tree_is_the_golden_one(published: dict[str, bytes], variant: Variant) -> None:
    made = tree(published, variant)
    if os.environ.get("BLESS") == "1":
        bless(made, variant)
    before = kept(variant)
    differing = sorted(name for name in before.keys() | made.keys() if before.get(name) != made.get(name))
    assert differing == [], "if that is meant: make bless, and read the difference in git"
