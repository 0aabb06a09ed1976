"""The demo database: every kind of market, no invalid public row, and a canary on everything hidden."""

import sqlite3
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from generator.demo.database import METADATA, seed
from generator.errors import SourceError
from tests.support.project import ROOT

AS_OF = datetime(2026, 1, 31, 12, tzinfo=UTC)
RELATIONS = {
    "markets": (
        "id slug question description status approval is_listed prob volume pool_yes pool_no close_time resolution "
        "created_at resolved_at last_activity_at trader_count trading_pause_reason creation_source sponsor"
    ),
    "market_categories": "market_id category position",
    "fx_members": "market_id title instrument source week_start week_end threshold_value direction is_public",
    "orders": "market_id side price amount is_public",
    "fills": "id market_id amount shares price created_at",
    "probabilities": "market_id recorded_at prob",
}
#: Free-text columns of a hidden row; all others are ids, enums, numbers and times.
FREE_TEXT = {
    *("slug", "question", "description", "trading_pause_reason", "creation_source", "sponsor"),
    *("category", "title", "instrument", "source"),
}
VISIBLE = "approval = 'approved' AND is_listed"
LISTED = f"{VISIBLE} AND id NOT IN (SELECT market_id FROM fx_members WHERE is_public)"

#: Conditions by kind; the first forty markets have one in lists for each.
IN_LISTS = {
    "open": "status = 'open'", "closed": "status = 'closed'",
    "resolved YES": "status = 'resolved' AND resolution = 'YES'",
    "resolved NO": "status = 'resolved' AND resolution = 'NO'",
    "resolved CANCEL": "status = 'resolved' AND resolution = 'CANCEL'",
    "cancelled": "status = 'cancelled' AND resolved_at IS NOT NULL",
    "cancelled without a time": "status = 'cancelled' AND resolved_at IS NULL",
    "open past its closing time": "status = 'open' AND close_time < '2026-01-31 12'",
    "paused": "status = 'open' AND trading_pause_reason IS NOT NULL",
    "empty order book": "status = 'open' AND id NOT IN (SELECT market_id FROM orders)",
    "no fills": "id NOT IN (SELECT market_id FROM fills)",
    "no history": "id NOT IN (SELECT market_id FROM probabilities)", "no slug": "slug IS NULL",
    "no description": "description IS NULL", "paragraphs": "description LIKE '%' || char(10, 10) || '%'",
    "a time in RFC 3339": "created_at LIKE '%T%Z'", "a long question": "length(question) >= 300",
    "markup in a question": "question LIKE '%<b>%'", "a script's end in a question": "question LIKE '%</script>%'",
    **{
        f"{text!a} in a question": f"instr(question, char({ord(text[0])}))"
        for text in ("☃", "قبل", "ה", "最", "국", "\u0301", "\u200d", '"', "\\", "\u2028", "{")
    },
}  # fmt: skip
#: A query per kind; each must find something among the first forty markets.
KINDS = {
    **{kind: f"SELECT 1 FROM markets WHERE {condition} AND {LISTED}" for kind, condition in IN_LISTS.items()},
    "pending": "SELECT 1 FROM markets WHERE approval = 'pending'",
    "rejected": "SELECT 1 FROM markets WHERE approval = 'rejected'",
    "unlisted": "SELECT 1 FROM markets WHERE approval = 'approved' AND NOT is_listed",
    "public FX family": f"SELECT 1 FROM markets JOIN fx_members ON id = market_id WHERE is_public AND {VISIBLE}",
    "private FX family": f"SELECT 1 FROM markets JOIN fx_members ON id = market_id WHERE NOT is_public AND {VISIBLE}",
    "forty levels a side": "SELECT 1 FROM orders GROUP BY market_id, side HAVING count(DISTINCT price) = 40",
    "several orders at a price": "SELECT 1 FROM orders WHERE is_public GROUP BY market_id, price HAVING count(*) > 1",
    "private order": "SELECT 1 FROM orders WHERE NOT is_public",
    "thousands of fills": "SELECT 1 FROM fills GROUP BY market_id HAVING count(*) >= 2000",
    "a fill today": "SELECT 1 FROM fills WHERE created_at > '2026-01-30 12'",
    "a fill without a price": "SELECT 1 FROM fills WHERE price IS NULL",
    "a long history": "SELECT 1 FROM probabilities GROUP BY market_id HAVING count(*) >= 3000",
    "a slug twice": f"SELECT 1 FROM markets WHERE {LISTED} AND slug IS NOT NULL GROUP BY slug HAVING count(*) > 1",
    "an id in upper case": (
        f"SELECT 1 FROM markets m JOIN fills ON market_id = m.id WHERE m.id GLOB '*[A-F]*' AND {VISIBLE}"
    ),
    "a tie": f"SELECT 1 FROM markets WHERE volume > 0 AND {LISTED} GROUP BY trader_count, volume HAVING count(*) > 1",
    "a tie of times": (
        f"SELECT 1 FROM markets WHERE {LISTED} GROUP BY created_at, last_activity_at, close_time HAVING count(*) > 1"
    ),
    "four categories": "SELECT 1 FROM market_categories GROUP BY market_id HAVING count(*) = 4",
    "one category": "SELECT 1 FROM market_categories GROUP BY market_id HAVING count(*) = 1",
}


def rows(path: Path, query: str) -> list[dict[str, Any]]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(query)]
    finally:
        connection.close()


def everything(path: Path) -> dict[str, list[dict[str, Any]]]:
    return {table: rows(path, f"SELECT * FROM {table}") for table in RELATIONS}


def instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "forty.db"
    assert seed(path, as_of=AS_OF, markets=40) == 40
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "many.db"
    assert seed(path, as_of=AS_OF, markets=1_000, random_seed=7) == 1_000
    return path


@pytest.fixture(scope="module", params=["traded", "quiet"])
def any_thousand(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thousand markets, of the first or of those that follow when there are very many."""
    if request.param == "traded":
        found: Path = request.getfixturevalue("many")
        return found
    path = tmp_path_factory.mktemp("demo") / "quiet.db"
    seed(path, as_of=AS_OF, markets=1_000, quiet_from=0, models=400)
    return path


def test_the_relations_hold_the_columns_we_read_and_then_private_ones(tmp_path: Path) -> None:
    seed(tmp_path / "empty.db", as_of=AS_OF, markets=0)
    for name, columns in RELATIONS.items():
        created = [row["name"] for row in rows(tmp_path / "empty.db", f"PRAGMA table_info({name})")]
        assert created[: len(columns.split())] == columns.split()
        private = [column.name for column in METADATA.tables[name].columns if column.info.get("private")]
        assert created[len(columns.split()) :] == private
    assert not any(everything(tmp_path / "empty.db").values())


def test_equal_arguments_give_equal_rows_wherever_as_of_is_said_and_another_seed_others(
    forty: Path, tmp_path: Path
) -> None:
    elsewhere = AS_OF.astimezone(timezone(timedelta(hours=5, minutes=30)))
    seed(tmp_path / "again.db", as_of=elsewhere, markets=40, random_seed=1)
    seed(tmp_path / "naive.db", as_of=AS_OF.replace(tzinfo=None), markets=40)
    assert everything(tmp_path / "again.db") == everything(tmp_path / "naive.db") == everything(forty)
    seed(tmp_path / "other.db", as_of=AS_OF, markets=40, random_seed=2)
    assert all(table != everything(forty)[name] for name, table in everything(tmp_path / "other.db").items())


@pytest.mark.parametrize("kind", KINDS)
def test_forty_markets_show_every_kind(forty: Path, kind: str) -> None:
    assert rows(forty, KINDS[kind])


def test_quiet_markets_follow_the_traded_ones_with_few_rows(tmp_path: Path) -> None:
    for name in ("some.db", "again.db"):
        seed(tmp_path / name, as_of=AS_OF, markets=230, quiet_from=30, models=60)
    seed(tmp_path / "thirty.db", as_of=AS_OF, markets=30)
    some, thirty = everything(tmp_path / "some.db"), everything(tmp_path / "thirty.db")
    assert some == everything(tmp_path / "again.db")
    assert {name: table[: len(thirty[name])] for name, table in some.items()} == thirty
    few = {name: len(table) - len(thirty[name]) for name, table in some.items()}
    assert few["markets"] == 200
    assert 0 < few["fills"] <= 400
    assert 0 < few["probabilities"] <= 400
    created = Counter(row["created_at"] for row in some["markets"][30:])
    assert len(created) > 190, "each has times of its own"


def test_every_status_has_its_share(any_thousand: Path) -> None:
    shares = Counter(row["status"] for row in rows(any_thousand, "SELECT status FROM markets"))
    assert shares == {"open": 550, "closed": 150, "resolved": 250, "cancelled": 50}
    assert 80 <= len(rows(any_thousand, f"SELECT 1 FROM markets WHERE NOT ({VISIBLE})")) <= 120


def test_a_thousand_markets_ask_a_thousand_questions_in_twenty_categories(any_thousand: Path) -> None:
    assert len({row["question"] for row in rows(any_thousand, "SELECT question FROM markets")}) == 1_000
    categories = {row["category"] for row in rows(any_thousand, "SELECT category FROM market_categories")}
    assert 18 <= len({name for name in categories if not name.startswith("CANARY-")}) <= 24
    assert "u.s. 2024 elections" in categories


@pytest.mark.parametrize("markets", [1, 2, 51])
def test_any_number_of_markets_will_do(tmp_path: Path, markets: int) -> None:
    assert seed(tmp_path / "few.db", as_of=AS_OF, markets=markets) == markets
    assert len(rows(tmp_path / "few.db", "SELECT 1 FROM markets")) == markets


def test_every_private_column_and_nothing_visible_carries_a_canary(any_thousand: Path) -> None:
    hidden = {row["id"] for row in rows(any_thousand, f"SELECT id FROM markets WHERE NOT ({VISIBLE})")}
    assert hidden
    for name, table in everything(any_thousand).items():
        private = {column.name for column in METADATA.tables[name].columns if column.info.get("private")}
        for row in table:
            key = row["id"] if name == "markets" else row["market_id"]
            is_hidden = key in hidden or row.get("is_public") == 0
            for column, value in row.items():
                if column in private or (is_hidden and column in FREE_TEXT and value is not None):
                    assert value.startswith("CANARY-"), (name, column)
                else:
                    assert "CANARY" not in str(value), (name, column)


def test_times_fit_together(any_thousand: Path) -> None:
    markets = rows(any_thousand, "SELECT * FROM markets")
    closes = [instant(market["close_time"]) > AS_OF for market in markets if market["status"] == "open"]
    assert 0.85 < sum(closes) / len(closes) < 1, "most open ones"
    for market in markets:
        assert instant(market["created_at"]) < instant(market["last_activity_at"]) <= AS_OF
        assert instant(market["created_at"]) < instant(market["close_time"])
        if market["resolved_at"]:
            assert market["status"] in ("resolved", "cancelled")
            assert instant(market["created_at"]) < instant(market["resolved_at"]) <= AS_OF
        assert (market["resolution"] is not None) == (market["status"] == "resolved")
    life = "SELECT f.created_at, m.created_at AS born, last_activity_at AS last"
    for fill in rows(any_thousand, f"{life} FROM fills f JOIN markets m ON m.id = market_id"):
        # A market's times may have been cut to seconds.
        late = instant(fill["last"]) + timedelta(seconds=1)
        assert instant(fill["born"]) <= instant(fill["created_at"]) <= late


def test_a_walk_of_probabilities_ends_at_the_market_s(many: Path) -> None:
    last = (
        "SELECT p.prob, m.prob AS final, max(recorded_at) FROM probabilities p JOIN markets m ON m.id = market_id "
        "GROUP BY market_id"
    )
    assert len(rows(many, last)) > 900
    assert all(row["prob"] == row["final"] for row in rows(many, last))


def test_order_books_do_not_cross(any_thousand: Path) -> None:
    best = (
        "SELECT max(price) FILTER (WHERE side = 'bid') AS bid, min(price) FILTER (WHERE side = 'ask') AS ask "
        "FROM orders GROUP BY market_id"
    )
    assert all(row["bid"] is None or row["ask"] is None or row["bid"] < row["ask"] for row in rows(any_thousand, best))


def test_ids_are_unique_version_4_uuids_that_children_spell_alike(any_thousand: Path) -> None:
    ids = [row["id"] for table in ("markets", "fills") for row in rows(any_thousand, f"SELECT id FROM {table}")]
    assert len(set(ids)) == len(ids)
    assert all(UUID(key).version == 4 and str(UUID(key)) == key.lower() for key in ids)
    for table in RELATIONS.keys() - {"markets"}:
        assert not rows(any_thousand, f"SELECT 1 FROM {table} WHERE market_id NOT IN (SELECT id FROM markets)")


def test_a_database_that_exists_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    path.write_bytes(b"precious")
    with pytest.raises(SourceError, match=r"mine\.db exists already: delete it, or name another file"):
        seed(path, as_of=AS_OF, markets=1)
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        SourceError,
        match=r"cannot create .*demo\.db: No such file or directory; name a file in an existing, writable folder",
    ):
        seed(tmp_path / "nowhere" / "demo.db", as_of=AS_OF, markets=1)
    assert list(tmp_path.iterdir()) == []


def test_a_seeding_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OverflowError):  # no market can close after the last day there is
        seed(tmp_path / "demo.db", as_of=datetime(9999, 12, 31, tzinfo=UTC), markets=400)
    assert list(tmp_path.iterdir()) == []


def started(path: Path, *lines: str) -> subprocess.Popen[str]:
    program = "\n".join(
        (
            "import resource",
            "from datetime import UTC, datetime",
            "from pathlib import Path",
            "from generator.demo.database import seed",
            *lines,
            f"seed(Path({str(path)!r}), as_of=datetime(2026, 1, 31, tzinfo=UTC), markets=100_000)",
        )
    )
    return subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE, text=True)


def test_a_full_disk_is_one_sentence_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with started(tmp_path / "demo.db", "resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))") as process:
        message = process.communicate(timeout=60)[1].splitlines()[-1]
    assert message.startswith(f"generator.errors.SourceError: cannot create {tmp_path / 'demo.db'}: ")
    assert message.endswith("with free space")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_seeding_leaves_no_half_database_in_the_way_of_the_next(tmp_path: Path) -> None:
    path = tmp_path / "demo.db"
    with started(path) as process:
        deadline = time.monotonic() + 60
        while sum(file.stat().st_size for file in tmp_path.iterdir()) < 1_000_000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
    assert not path.exists()
    assert seed(path, as_of=AS_OF, markets=2) == 2
    assert len(rows(path, "SELECT 1 FROM markets")) == 2
