"""The oracle against what was computed by hand."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.questions import sites
from tests.questions.maker import CANARIES, TABLES, making, question_id
from tests.questions.oracle import Oracle, Setting, total
from tests.questions.raw_json import elements, properties, write
from tests.questions.relations import instant
from tests.questions.served import EXTENDED, oracle_for, served
from tests.support.sites.rows import market_id

_TIMES: Final = '"closeTime":"2046-06-30T23:59:59.000Z"'
_ACTIVE: Final = '"lastActivityAt":"2026-01-15T00:00:00.000Z"'
_FIRST: Final = (
    '"id":"00000001-0000-4000-a000-000000000000","title":"Which?","kind":"exclusive","status":"open","volume":0.6,'
    f'"traderCount":16,"fills24h":0,"acceptingBets":true,{_TIMES},"createdAt":"2026-01-02T03:04:05.678Z",'
    f'"resolvedAt":null,{_ACTIVE},"size":3'
)
_OF_FIRST: Final = '"slug":"First","category":"a","categories":["a","b"]'
_MARKETS: Final = (
    '{"id":"00000101-0000-4000-8000-000000000000","label":"Open","prob":0.25,"status":"open","resolution":null},'
    '{"id":"00000102-0000-4000-8000-000000000000","label":"Question 258?","prob":0.25,"status":"open",'
    '"resolution":null},'
    '{"id":"00000103-0000-4000-8000-000000000000","label":"Yes","prob":1.0,"status":"resolved","resolution":"YES"}'
)
_OVER: Final = (
    '{"id":"ffff0002-0000-4000-a000-000000000000","title":"Over?","kind":"independent","status":"cancelled","volume":0.0,'
    f'"traderCount":10,"fills24h":0,"acceptingBets":false,{_TIMES},"createdAt":"2026-01-03T00:00:00.000Z",'
    f'"resolvedAt":"2026-01-25T00:00:00.000Z",{_ACTIVE},"size":1,"markets":[{{"id":"00000104-0000-4000-8000-000000000000",'
    '"label":"Off","prob":0.5,"status":"cancelled","resolution":null}],"categories":[]}'
)
_SINGLE: Final = (
    '{"id":"00000105-0000-4000-8000-000000000000","title":"Alone?","kind":"single","status":"open","volume":7.5,'
    f'"traderCount":10,"fills24h":0,"acceptingBets":true,{_TIMES},"createdAt":"2026-01-01T00:00:00.000Z",'
    f'"resolvedAt":null,{_ACTIVE},"size":1,"markets":[{{"id":"00000105-0000-4000-8000-000000000000",'
    '"label":null,"prob":0.5,"status":"open","resolution":null}],"slug":"single","category":"b","categories":["b"]}'
)
_DEFINITIONS: Final = (
    '{"id":"00000001-0000-4000-a000-000000000000","kind":"exclusive","slug":"First","title":"Which?","description":" ",'
    '"createdAt":"2026-01-02T03:04:05.678Z","members":['
    '{"id":"00000103-0000-4000-8000-000000000000","label":"Yes","position":-1,"payout":1.0},'
    '{"id":"00000101-0000-4000-8000-000000000000","label":"Open","position":2,"payout":null},'
    '{"id":"00000102-0000-4000-8000-000000000000","label":"Question 258?","position":null,"payout":null}]}\n'
    '{"id":"ffff0002-0000-4000-a000-000000000000","kind":"independent","title":"Over?","description":null,'
    '"createdAt":"2026-01-03T00:00:00.000Z","members":['
    '{"id":"00000104-0000-4000-8000-000000000000","label":"Off","position":null,"payout":0.5}]}\n'
)
FIRST, OVER, SINGLE = "00000001", "ffff0002", "00000105"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    folder = tmp_path_factory.mktemp("small")
    return oracle_for(served(folder, sites.small, variant="extended", categories="a,b"), folder, EXTENDED)


def ids(small: Oracle, *of: str) -> list[str]:
    return [row.id[:8] for row in small.listed(*of)]


def test_rows_are_as_written_by_hand(small: Oracle) -> None:
    first = f'{{{_FIRST},"markets":[{_MARKETS}],{_OF_FIRST}}}'
    assert [row.raw for row in small.rows] == [first, _SINGLE, _OVER]


def test_lists_have_their_orders(small: Oracle) -> None:
    assert ids(small, "all", "popular") == [FIRST, SINGLE, OVER]
    assert ids(small, "all", "volume") == [SINGLE, FIRST, OVER]
    assert ids(small, "all", "new") == [OVER, FIRST, SINGLE]
    assert ids(small, "all", "ended") == [FIRST, SINGLE, OVER]  # a tie, by id
    assert ids(small, "all", "activity") == [FIRST, SINGLE, OVER]
    assert ids(small, "open", "new", "b") == [FIRST, SINGLE]
    assert ids(small, "all", "new", "a") == [FIRST]
    assert ids(small, "archive", "ended") == ids(small, "cancelled", "new") == [OVER]
    assert ids(small, "closed", "ended") == ids(small, "resolved", "new") == []


def test_details_have_every_member_by_position(small: Oracle) -> None:
    detail = properties(next(iter(small.questions.values())).detail)
    assert detail["question"] == f'{{{_FIRST},"description":" ",{_OF_FIRST}}}'
    members = [properties(member) for member in elements(detail["markets"])]
    assert [[member[name] for name in ("label", "position", "payout")] for member in members] == [
        ['"Yes"', "-1", "1.0"],
        ['"Open"', "2", "null"],
        ['"Question 258?"', "null", "null"],
    ]
    assert [member["market"] for member in members] == [
        small.markets[market_id(at)].raw for at in (0x103, 0x101, 0x102)
    ]


def test_definitions_are_as_written_by_hand(small: Oracle) -> None:
    assert small.definitions.decode() == _DEFINITIONS
    assert [row["marketId"][:8] for row in small.table] == ["00000103", "00000101", "00000102", "00000104"]
    assert small.table[0] == {
        "questionId": "00000001-0000-4000-a000-000000000000", "kind": "exclusive", "slug": "First", "title": "Which?",
        "description": " ", "createdAt": "2026-01-02T03:04:05.678Z",
        "marketId": "00000103-0000-4000-8000-000000000000", "label": "Yes", "position": -1, "payout": 1.0,
    }  # fmt: skip


def test_of_the_troubled_site_only_the_good_is_public(oracle: Oracle) -> None:
    assert len(oracle.questions) == 77
    columns = [reason.partition(":")[0] for reason in oracle.quarantined.values()]
    assert {column: columns.count(column) for column in {*columns}} == {
        "title": 4, "is_listed": 2, "description": 3, "kind": 6, "created_at": 4, "id": 7, "label": 4, "position": 5,
        "payout": 7, "stands twice": 1, "volume": 1, "traderCount": 1,
    }  # fmt: skip
    assert CANARIES.findall(oracle.public_text) == []


def found(oracle: Oracle, title: str) -> Mapping[str, Any]:
    """The detail of the question with this title."""
    return next(json.loads(one.detail) for one in oracle.questions.values() if one.question.title == title)


def test_members_of_the_troubled_site_are_as_the_rules_say(oracle: Oracle) -> None:
    def told(title: str, name: str) -> list[Any]:
        return [member[name] for member in found(oracle, title)["markets"]]

    assert told("Positions", "position") == [1 - 2**53, -5, 0, 1, 1, 3, 2**53 - 1, None, None]
    assert told("Payouts", "payout") == [None, 0.0, 1.0, 0.25, 1 / 3, 0.0, 1.0, 5e-324, 0.5, None, None]
    blank = [f"Question for the label {label!r}" for label in (None, "", " ", "\t\n", "\u3000", "\xa0")]
    labels = [*blank, "Same", "Same", " kept ", "a\tb", "x" * 2000, "\N{PARTY POPPER}" * 100]
    assert sorted(told("Labels", "label")) == sorted(labels)
    assert told("A pair stands twice", "label") == told("The other question of that pair", "label") == ["A"]
    assert told("A pair of which one is bad", "label") == ["A"]


def test_sums_and_states_of_the_troubled_site_are_as_the_rules_say(oracle: Oracle) -> None:
    def told(title: str, *names: str) -> list[Any]:
        return [found(oracle, title)["question"][name] for name in names]

    assert told("A naive sum loses the small ones", "volume") == [10000000000000004.0]
    assert told("A naive sum of tenths is another", "volume") == [1.0]
    assert told("Ties go to even", "volume") == [2.0**53]
    assert told("Just above a tie", "volume") == [2.0**53 + 2]
    assert told("The largest count", "traderCount") == [2**53 - 1]
    assert told("With trades", "fills24h", "acceptingBets") == [3, True]
    assert told("Takes no bets", "acceptingBets") == [False]
    states = [told(f"States {number}", "status", "resolvedAt", "closeTime") for number in range(9)]
    assert [state[0] for state in states] == [
        "open",
        "closed",
        *["resolved"] * 3,
        "cancelled",
        "resolved",
        "open",
        "open",
    ]
    days = [state[1] and state[1][8:10] for state in states]
    assert days == [None, None, "25", "10", None, "05", "07", None, None]
    assert [state[2][:10] for state in states[:2]] == ["2026-01-01", "2026-03-02"]  # of the open member, of all


def test_the_ten_are_by_rank_and_then_by_probability(oracle: Oracle) -> None:
    def ten(title: str) -> tuple[list[str], int]:
        item = next(row.value for row in oracle.rows if row.value["title"] == title)
        return [market["label"].split()[1] for market in item["markets"]], item["size"]

    # Of 24, those at 0, 4, … are open, and at 1, 9, 17 resolved YES; the position is -place, null at 0, 5, 10, …
    assert ten("Many") == (["8", "20", "16", "4", "12", "0", "17", "1", "9", "23"], 24)
    assert ten("Many open ones") == (["4", "9", "8", "3", "2", "7", "6", "1", "11", "0"], 13)


def test_slugs_and_categories_are_as_the_rules_say(oracle: Oracle) -> None:
    slugs = {one.slug for one in oracle.questions.values()}
    assert slugs == {None, "plain", "Upper-Case", "of-a-market", "of-a-hidden-one", "A_b-9", "x" * 255}
    named = {title: found(oracle, title)["question"]["categories"] for title in ("Most frequent first", "Ties by name")}
    assert named == {"Most frequent first": ["b", "a", "weather"], "Ties by name": ["b", "weather", "a"]}
    assert found(oracle, "By code point")["question"]["categories"] == ["Z", "Zürich", "a", "é"]
    assert len(found(oracle, "No cap")["question"]["categories"]) == 40
    assert found(oracle, "Other spellings")["question"]["categories"] == ["weather"]


def item(number: int) -> str:
    """A market's item, as written."""
    names = (
        "question",
        "status",
        "prob",
        "volume",
        "closeTime",
        "resolution",
        "createdAt",
        "resolvedAt",
        "lastActivityAt",
    )
    values: Sequence[Any] = (f"Q{number}", "open", 0.5, 1.0, "2026-02-01", None, "2026-01-01", None, "2026-01-01")
    about = {"id": market_id(number)} | dict(zip(names, values, strict=True))
    about |= {"traderCount": 1, "fills24h": 0, "acceptingBets": True}
    return "{" + ",".join(f'"{name}":{write(value)}' for name, value in about.items()) + "}"


def oracle_with(path: Path, markets: int, setting: Setting = Setting()) -> Oracle:  # noqa: B008 - frozen
    with closing(sqlite3.connect(path)) as database:
        return Oracle(database, [item(number) for number in range(1, markets + 1)], setting)


def test_a_thousand_members_count_and_one_more_does_not(tmp_path: Path) -> None:
    with making(tmp_path / "markets.db", first_market=0) as make:
        make.question(*make.markets(1000))
        make.hidden(*make.markets(1001))
    oracle = oracle_with(tmp_path / "markets.db", 2001)
    assert [len(one.members) for one in oracle.questions.values()] == [1000]
    assert [*oracle.quarantined.values()] == ["has more than 1,000 members"]
    assert len(oracle.rows) == 1 + 1001


def test_a_blocked_question_blocks_every_market_with_a_row_of_it(tmp_path: Path) -> None:
    with making(tmp_path / "markets.db", first_market=0) as make:
        shared, own, other = make.markets(3)
        gone = make.question(shared, own, kind="bad")
        make.question(shared, other)
    setting = Setting(blocked_questions=frozenset({gone}), blocked_markets=frozenset({"x"}))
    oracle = oracle_with(tmp_path / "markets.db", 3, setting)
    assert oracle.blocked == {shared, own, "x"}
    assert oracle.quarantined == {}  # it counts for nothing else
    assert [[member.market_id for member in one.members] for one in oracle.questions.values()] == [[other]]
    assert len(oracle.rows) == 1
    unblocked = oracle_with(tmp_path / "markets.db", 3)
    assert [len(one.members) for one in unblocked.questions.values()] == [2]


def test_links_home_are_made_of_id_slug_or_key(tmp_path: Path) -> None:
    with making(tmp_path / "markets.db", first_market=0) as make:
        for key, slug in (("a/b ü", "one"), ("same", None), ("same", "two"), (".", "a b")):
            make.question(*make.markets(1), key=key, slug=slug)

    def urls(of: str, variant: str = "extended") -> list[str | None]:
        setting = Setting(variant, question_url=f"https://example.org/q/{{{of}}}")
        oracle = oracle_with(tmp_path / "markets.db", 4, setting)
        return [oracle.questions[question_id(number)].url for number in range(1, 5)]

    assert urls("key") == ["https://example.org/q/a%2Fb%20%C3%BC", None, None, None]
    assert urls("slug") == ["https://example.org/q/one", None, "https://example.org/q/two", None]
    assert urls("slug", "core") == [None] * 4
    assert urls("id")[0] == "https://example.org/q/00000001-0000-4000-a000-000000000000"


def test_one_relation_alone_is_none(tmp_path: Path) -> None:
    with making(tmp_path / "markets.db", first_market=0, has_relations=False) as make:
        make.markets(1)
        make.database.execute(TABLES.partition(";")[0])
    assert not oracle_with(tmp_path / "markets.db", 1).exists
    with closing(sqlite3.connect(tmp_path / "markets.db")) as database:
        database.execute("DROP TABLE questions")
        database.executescript(TABLES)
    assert [row.value["kind"] for row in oracle_with(tmp_path / "markets.db", 1).rows] == ["single"]


def test_sums_are_exact_and_rounded_once() -> None:
    assert total([0.1] * 10) == 1.0 != sum([0.1] * 10) - 1e-16
    assert total([1e308, 7.9e307]) == 1.79e308
    assert total([1.7976931348623157e308, 9.9e291]) == 1.7976931348623157e308  # below half a unit
    with pytest.raises(OverflowError):
        total([1.7976931348623157e308, 9.98e291])
    assert write(total([])) == "0.0"


def test_times_are_cut_and_converted() -> None:
    assert instant(b"2026-01-05T11:59:59.9999+02:00") == "2026-01-05T09:59:59.999Z"
    assert instant(b"0001-01-01 00:00:00") == "0001-01-01T00:00:00.000Z"
