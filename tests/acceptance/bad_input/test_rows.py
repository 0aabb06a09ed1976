"""A bad row costs only itself and is named with its reason; a database may be nearly empty."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api.contract import SORTS, STATUS_FILTERS
from generator.markets import faults
from tests.acceptance.bad_input.site import BuiltSite
from tests.support.sites.builds import files
from tests.support.sites.rows import (
    create_database,
    insert_fill,
    insert_fx_member,
    insert_market,
    insert_point,
    market_id,
)

NO_TIME: Final = "not a time such as 2026-01-31T12:00:00Z"
NO_YEAR: Final = "not a time between the years 0001 and 9999"
LONG: Final = "rules " * 16_666 + "🙂🙂🙂🙂"
CONTROL: Final = "holds a control character other than tab and line breaks"
BAD_TEXT: Final = "not valid Unicode (a lone surrogate, or bytes that are no letters)"
STATUS: Final = "status: input should be 'open', 'closed', 'resolved' or 'cancelled'"
INFINITE: Final = "input should be a finite number"
NEGATIVE: Final = "input should be greater than or equal to 0"

#: Values for which a market is quarantined, and the reason.
BAD_MARKETS: Final[list[tuple[dict[str, Any], str]]] = [
    ({"close_time": None}, "close_time: must not be NULL"),
    ({"created_at": "yesterday"}, f"created_at: {NO_TIME} (yesterday)"),
    ({"created_at": "2026-02-30 12:00:00.000000"}, f"created_at: {NO_YEAR} (2026-02-30 12:00:00.000000)"),
    ({"last_activity_at": ""}, f"last_activity_at: {NO_TIME} ()"),
    ({"status": "resolved", "resolved_at": "10000-01-01 00:00:00"}, f"resolved_at: {NO_TIME} (10000-01-01 00:00:00)"),
    ({"close_time": "9999-12-31T23:59:59-01:00"}, f"close_time: {NO_YEAR} (9999-12-31T23:59:59-01:00)"),
    ({"prob": 1.2}, "prob: input should be less than or equal to 1 (1.2)"),
    ({"prob": -0.1}, f"prob: {NEGATIVE} (-0.1)"),
    ({"prob": float("nan")}, "prob: must not be NULL"),  # which is what SQLite keeps
    ({"prob": float("inf")}, f"prob: {INFINITE} (inf)"),
    ({"volume": -1}, f"volume: {NEGATIVE} (-1.0)"),
    ({"pool_yes": float("-inf")}, f"pool_yes: {INFINITE} (-inf)"),
    ({"trader_count": -1}, f"trader_count: {NEGATIVE} (-1)"),
    ({"trader_count": 1.5}, "trader_count: not a whole number (1.5)"),
    ({"status": "paused"}, f"{STATUS} (paused)"),
    ({"status": "OPEN"}, f"{STATUS} (OPEN)"),
    ({"status": None}, "status: must not be NULL"),
    ({"status": "cancelled", "resolution": "yes"}, "resolution: input should be 'YES', 'NO' or 'CANCEL' (yes)"),
    ({"question": None}, "question: must not be NULL"),
]
BAD_TEXTS: Final[list[tuple[dict[str, Any], str]]] = [
    ({"question": b"bytes"}, "question: not a text (b'bytes')"),
    ({"question": "CAST(x'66fc66' AS TEXT)"}, f"question: {BAD_TEXT}"),
    ({"description": "CAST(x'eda080' AS TEXT)"}, f"description: {BAD_TEXT}"),
    ({"trading_pause_reason": "CAST(x'ff' AS TEXT)"}, f"trading_pause_reason: {BAD_TEXT}"),
    ({"question": "?" * 2_001}, f"question: string should have at most 2000 characters ({'?' * 79}…)"),
    ({"description": f"{LONG}!"}, "description: string should have at most 100000 characters (rules "),
    ({"trading_pause_reason": "!" * 1_001}, "trading_pause_reason: string should have at most 1000 characters (!!"),
    ({"question": "a title: \x1b]0;mine\x07"}, f"question: {CONTROL} (a title: \\x1b]0;mine\\x07)"),
    ({"question": "NUL \0 in it"}, f"question: {CONTROL} (NUL \\x00 in it)"),
    ({"description": "one\x9b2J"}, f"description: {CONTROL} (one\\x9b2J)"),
    ({"trading_pause_reason": "\x7f"}, f"trading_pause_reason: {CONTROL} (\\x7f)"),
    ({"id": "no UUID"}, "id: not a UUID (no UUID)"),
    ({"id": "{00000003-0000-4000-8000-000000000000}"}, "id: not a UUID ({00000003-0000-4000-8000-000000000000})"),
    ({"id": None}, "id: must not be NULL"),
    ({"prob": 7, "volume": -1}, "prob: input should be less than or equal to 1 (7.0); volume: "),
]
#: Unusual but valid values, and what is published for them.
GOOD_MARKETS: Final[list[tuple[dict[str, Any], dict[str, Any]]]] = [
    ({"prob": 1.000000000000004}, {"prob": 1.0}),
    ({"prob": -1e-10}, {"prob": 0.0}),
    (
        {"close_time": "9999-12-31 23:59:59.999999", "created_at": "0001-01-01T00:00:00Z"},
        {"closeTime": "9999-12-31T23:59:59.999Z", "createdAt": "0001-01-01T00:00:00.000Z"},
    ),
    ({"close_time": "2026-06-30T12:00:00+05:30"}, {"closeTime": "2026-06-30T06:30:00.000Z"}),
    ({"description": LONG}, {"description": LONG}),
    ({"question": "🙂" * 2_000}, {"question": "🙂" * 2_000}),
    ({"question": "a tab\tand a line\r\n"}, {"question": "a tab\tand a line\r\n"}),
    ({"question": "\u202ethgir"}, {"question": "\u202ethgir"}),
    ({"question": "a line\u2028and a paragraph\u2029"}, {"question": "a line\u2028and a paragraph\u2029"}),
    ({"question": ""}, {"question": ""}),
    ({"id": "ABCDEF00-0000-4000-8000-000000000000"}, {"id": "abcdef00-0000-4000-8000-000000000000"}),
    ({"trader_count": 7.0}, {"traderCount": 7}),
    ({"volume": 10**15}, {"volume": 1e15}),
]


@dataclass(frozen=True)
class Built:
    """The result of a build of bad rows."""

    output: Path
    stderr: str
    summary: str

    @property
    def report(self) -> Any:
        return json.loads((self.output / "report.json").read_bytes())

    def reasons(self, relation: str) -> dict[str, list[str]]:
        """The reasons in the report by key; stderr must have a line about them, and each must have a remedy."""
        found: dict[str, list[str]] = {}
        assert faults.ANY not in self.stderr
        for row in self.report["quarantined"]:
            if row["relation"] == relation:
                found.setdefault(row["key"], []).append(row["reason"])
                assert f"WARNING: {relation}: " in self.stderr
        return found

    def detail(self, key: str) -> Any:
        return json.loads((self.output / f"v1/public/markets/detail/{key[:2]}/{key}.json").read_bytes())

    def listed(self) -> list[str]:
        page = json.loads((self.output / "v1/public/markets/lists/all/new/first/100.json").read_bytes())
        return [item["id"] for item in page["items"]]


def built(folder: Path, fill: Callable[[sqlite3.Connection], object], *arguments: str) -> Built:
    """Build a database filled by `fill`, whatever the share of bad rows."""
    with closing(create_database(folder / "markets.db")) as connection:
        fill(connection)
    (folder / "config.yaml").write_text("source:\n  url: sqlite:///markets.db\n")
    done = BuiltSite(folder).build("--accept=invalid", *arguments)
    assert done.returncode == 0, done.stderr
    return Built(folder / "output", done.stderr, done.stdout)


def insert_bad(connection: sqlite3.Connection, number: int, columns: dict[str, Any]) -> None:
    casts = {name: value for name, value in columns.items() if str(value).startswith("CAST(")}
    insert_market(connection, number, **{name: value for name, value in columns.items() if name not in casts})
    for name, expression in casts.items():
        connection.execute(f"UPDATE markets SET {name} = {expression} WHERE id = '{market_id(number)}'")


def bad_market_key(number: int, columns: dict[str, Any]) -> str:
    """By what the report names a market: its id or, without one, its question."""
    key = columns.get("id", market_id(number))
    return f'"Question {number}?"' if key is None else str(key)


@pytest.mark.parametrize("bad", [BAD_MARKETS, BAD_TEXTS], ids=["values", "texts and ids"])
def test_every_kind_of_bad_market_costs_itself_only(tmp_path: Path, bad: list[tuple[dict[str, Any], str]]) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        insert_market(connection, 1)
        for number, (columns, _) in enumerate(bad, start=10):
            insert_bad(connection, number, columns)

    result = built(tmp_path, fill)
    reasons = result.reasons("markets")
    expected = {bad_market_key(number, columns): [reason] for number, (columns, reason) in enumerate(bad, start=10)}
    assert list(reasons) == sorted(expected)
    for key, (reason,) in reasons.items():
        assert reason.startswith(expected[key][0])
    assert result.report["markets"] == {"published": 1, "hidden": 0, "quarantined": len(bad)}
    assert f" {len(bad)} rows quarantined, " in result.summary
    assert result.listed() == [market_id(1)]


def test_rows_that_look_bad_but_are_not_are_published(tmp_path: Path) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        for number, (columns, _) in enumerate(GOOD_MARKETS, start=10):
            insert_market(connection, number, **columns)

    result = built(tmp_path, fill)
    remarks = sorted(line.partition(" (")[0] for line in result.stderr.splitlines() if line.startswith("WARNING"))
    assert remarks == [
        "WARNING: markets: 1 remark: a text has a bidirectional override",
        "WARNING: markets: 1 remark: question is empty",
    ]
    assert len(result.listed()) == len(GOOD_MARKETS)
    for number, (_, published) in enumerate(GOOD_MARKETS, start=10):
        shown = result.detail(published.get("id", market_id(number)))["market"]
        assert {name: shown[name] for name in published} == published
    lists = [content for key, content in files(result.output).items() if "/lists/" in key]
    assert len(lists) > 300
    assert max(map(len, lists)) < 20_000, "a description is in no list"


def test_markets_with_one_id_are_all_left_out(tmp_path: Path) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        insert_market(connection, 1)
        for _ in range(2):
            insert_market(connection, 2)
            insert_fill(connection, market_id=market_id(2))
        for key in ("abcdef00-0000-4000-8000-000000000000", "ABCDEF00-0000-4000-8000-000000000000"):
            insert_market(connection, id=key)
            insert_point(connection, "2026-01-15 00:00:00.000000", market_id=key)
        insert_market(connection, id="ffffffff-0000-4000-8000-000000000000")
        insert_point(connection, "2026-01-15 00:00:00.000000", market_id="ffffffff-0000-4000-8000-000000000000")

    result = built(tmp_path, fill)
    assert result.listed() == [market_id(1), "ffffffff-0000-4000-8000-000000000000"]
    assert len(result.detail("ffffffff-0000-4000-8000-000000000000")["probHistory"]) == 1
    assert result.reasons("markets") == {
        market_id(2): ["id: several markets have the same (2)"],
        "abcdef00-0000-4000-8000-000000000000": ["id: several markets have the same (2)"],
    }


BAD_FX: Final[list[tuple[dict[str, Any], str]]] = [
    ({"title": None}, "fx_members.title: must not be NULL"),
    ({"week_start": "soon"}, "fx_members.week_start: not a date such as 2026-01-31 (soon)"),
    ({"week_end": "2026-02-30"}, "fx_members.week_end: not a date such as 2026-01-31 (2026-02-30)"),
    ({"threshold_value": float("inf")}, f"fx_members.threshold_value: {INFINITE} (inf)"),
    ({"instrument": "\x00"}, f"fx_members.instrument: {CONTROL} (\\x00)"),
    ({"source": "!" * 1_001}, f"fx_members.source: string should have at most 1000 characters ({'!' * 79}…)"),
    ({"direction": "up"}, "fx_members.direction: input should be 'gte' or 'lte' (up)"),
]


def test_a_bad_membership_takes_its_market_along(tmp_path: Path) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        insert_market(connection, 1)
        for number, (columns, _) in enumerate(BAD_FX, start=10):
            insert_market(connection, number)
            insert_fx_member(connection, market_id=market_id(number), **columns)
        insert_market(connection, 20)
        insert_fx_member(connection, market_id=market_id(20), title="One family")
        insert_fx_member(connection, market_id=market_id(20), title="Two families")

    result = built(tmp_path, fill)
    reasons = result.reasons("markets")
    assert reasons == {market_id(number): [reason] for number, (_, reason) in enumerate(BAD_FX, start=10)}
    assert result.listed() == [market_id(1)]
    assert result.detail(market_id(20))["market"]["fxFamilyMember"]["title"] == "One family"
    assert result.reasons("fx_members") == {market_id(20): ["market_id: the market is a member of a family already"]}


def test_an_empty_database_gives_thirty_empty_lists(tmp_path: Path) -> None:
    result = built(tmp_path, lambda _: None)
    assert result.stderr == ""
    firsts = {key: content for key, content in files(result.output).items() if "/first/" in key}
    assert len(firsts) == len(STATUS_FILTERS) * len(SORTS) * 100 == 3_000
    assert set(firsts.values()) == {b'{"items":[],"nextCursor":null}'}
    assert files(result.output)["v1/public/markets/snapshot.json"] == b'{"freshMarkets":[],"closingSoonMarkets":[]}'
    assert json.loads(files(result.output)["v1/build.json"])["markets"] == 0


def test_one_market_is_enough(tmp_path: Path) -> None:
    result = built(tmp_path, insert_market)
    assert result.listed() == [market_id(1)]
    page = json.loads((result.output / "v1/public/markets/lists/open/popular/first/1.json").read_bytes())
    assert (len(page["items"]), page["nextCursor"]) == (1, None)
