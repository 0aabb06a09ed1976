"""The demo database: the columns that are read, the same rows every time, and a canary on everything hidden."""

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from generator.demo import texts
from generator.demo.database import METADATA, QUESTIONS, seed
from generator.demo.rows import Author
from generator.errors import SourceError
from generator.source.relations import ALL_RELATIONS, RELATIONS
from tests.support.project import ROOT

AS_OF = datetime(2026, 1, 31, 12, tzinfo=UTC)
#: Free-text columns of a hidden row; all others are ids, enums, numbers and times.
FREE_TEXT = {
    *("slug", "question", "description", "trading_pause_reason", "creation_source", "sponsor"),
    *("category", "title", "instrument", "source", "label", "key"),
}
VISIBLE = "approval = 'approved' AND is_listed"


def rows(path: Path, query: str) -> list[dict[str, Any]]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(query)]
    finally:
        connection.close()


def everything(path: Path, relations: Iterable[str] = RELATIONS) -> dict[str, list[dict[str, Any]]]:
    return {table: rows(path, f"SELECT * FROM {table}") for table in relations}


def table_of(name: str) -> sa.Table:
    return (METADATA if name in METADATA.tables else QUESTIONS).tables[name]


def private_columns(name: str) -> list[str]:
    return [column.name for column in table_of(name).columns if column.info.get("private")]


@pytest.mark.parametrize(("questions", "relations"), [(False, RELATIONS), (True, ALL_RELATIONS)])
def test_the_relations_hold_the_columns_we_read_and_then_private_ones(
    relations: dict[str, dict[str, str]], tmp_path: Path, *, questions: bool
) -> None:
    path = tmp_path / "empty.db"
    seed(path, as_of=AS_OF, markets=0, questions=questions)
    assert {row["name"] for row in rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'")} == {*relations}
    for name, columns in relations.items():
        created = [row["name"] for row in rows(path, f"PRAGMA table_info({name})")]
        assert created == [*columns, *private_columns(name)]
    assert not any(everything(path, relations).values())


def test_equal_arguments_give_equal_rows_wherever_as_of_is_said_and_another_one_others(tmp_path: Path) -> None:
    seed(tmp_path / "forty.db", as_of=AS_OF, markets=40)
    forty = everything(tmp_path / "forty.db")
    elsewhere = AS_OF.astimezone(timezone(timedelta(hours=5, minutes=30)))
    seed(tmp_path / "again.db", as_of=elsewhere, markets=40)
    seed(tmp_path / "naive.db", as_of=AS_OF.replace(tzinfo=None), markets=40)
    assert everything(tmp_path / "again.db") == everything(tmp_path / "naive.db") == forty
    seed(tmp_path / "other.db", as_of=AS_OF - timedelta(days=1), markets=40)
    assert everything(tmp_path / "other.db")["markets"] != forty["markets"]


def test_quiet_markets_have_few_rows_and_questions_and_slugs_of_their_own() -> None:
    author = Author(random.Random(1), AS_OF.replace(tzinfo=None))  # noqa: S311 - no secret
    written = [author.write(texts.QUIET_FROM + number) for number in range(1_000)]
    for name in ("fills", "probabilities"):
        assert 0 < sum(len(market[name]) for market in written) <= 2_000
    _, slugs, questions = zip(*(market["markets"][0][:3] for market in written), strict=True)
    assert len({*questions}) == 1_000
    found = [slug for slug in slugs if slug]
    assert len({*found}) == len(found) > 900


def test_every_private_column_and_nothing_visible_carries_a_canary(tmp_path: Path) -> None:
    path = tmp_path / "many.db"
    seed(path, as_of=AS_OF, markets=400, questions=True)
    hidden = {
        row["id"]
        for name in ("markets", "questions")
        for row in rows(path, f"SELECT id FROM {name} WHERE NOT ({VISIBLE})")
    }
    assert len(hidden) > 30
    for name, table in everything(path, ALL_RELATIONS).items():
        private = {*private_columns(name)}
        for row in table:
            owners = {row.get("id"), row.get("market_id"), row.get("question_id")}
            is_hidden = not hidden.isdisjoint(owners) or row.get("is_public") == 0
            for column, value in row.items():
                if column in private or (is_hidden and column in FREE_TEXT and value is not None):
                    assert value.startswith("CANARY-"), (name, column)
                else:
                    assert "CANARY" not in str(value), (name, column)


def test_questions_change_only_texts_and_categories_of_their_members(tmp_path: Path) -> None:
    for name, questions in (("plain", False), ("asked", True)):
        seed(tmp_path / f"{name}.db", as_of=AS_OF, markets=400, questions=questions)
    plain, asked = (everything(tmp_path / f"{name}.db") for name in ("plain", "asked"))
    members = {row["market_id"] for row in rows(tmp_path / "asked.db", "SELECT market_id FROM question_members")}
    for name in RELATIONS:
        if name not in {"markets", "market_categories"}:
            assert asked[name] == plain[name]
    for before, after in zip(plain["markets"], asked["markets"], strict=True):
        changed = {column for column in before if before[column] != after[column]}
        assert changed <= ({"question", "slug"} if after["id"] in members else set())
    first = [{row["market_id"]: row for row in reversed(found["market_categories"])} for found in (plain, asked)]
    assert {key for key in first[0] if first[0][key] != first[1][key]} <= members
    assert len(members) > 100


def test_questions_are_of_both_kinds_and_of_all_sizes_with_settled_members_and_hidden_ones(tmp_path: Path) -> None:
    path = tmp_path / "asked.db"
    seed(path, as_of=AS_OF, markets=400, questions=True)
    visible = f"q.{VISIBLE.replace('AND ', 'AND q.')}"
    found = rows(
        path,
        "SELECT q.kind, q.slug, count(*) AS size, sum(m.status = 'open') AS open, sum(m.resolution = 'YES') AS won, "
        f"sum(payout) AS paid, sum(position IS NULL) AS unplaced, sum(m.approval = 'approved') AS shown, {visible} AS "
        "is_visible FROM questions AS q JOIN question_members AS e ON e.question_id = q.id "
        "JOIN markets AS m ON m.id = e.market_id GROUP BY q.id",
    )
    assert len(found) == 4 * len(texts.ASKED)
    public = [row for row in found if row["is_visible"]]
    assert {row["kind"] for row in public} == {"exclusive", "independent"}
    assert min(row["size"] for row in public) == 1
    assert min(row["shown"] for row in public if row["size"] > 10) > 10
    assert {bool(row[name]) for name in ("slug", "open", "won", "paid", "unplaced") for row in public} == {True, False}
    assert any(row["open"] and row["won"] is not None for row in public), "settled in part"
    assert [row for row in public if row["kind"] == "exclusive" and (row["won"] or 0) > 1] == []
    assert any(row["shown"] < row["size"] for row in public), "hidden members"
    assert len(public) < len(found), "hidden questions"


def test_a_file_that_exists_is_left_alone_and_a_missing_folder_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    path.write_bytes(b"precious")
    with pytest.raises(SourceError, match=r"mine\.db exists already: delete it, or name another file"):
        seed(path, as_of=AS_OF, markets=1)
    assert path.read_bytes() == b"precious"
    told = r"cannot create .*demo\.db: No such file or directory; name a file in an existing, writable folder"
    with pytest.raises(SourceError, match=told):
        seed(tmp_path / "nowhere" / "demo.db", as_of=AS_OF, markets=1)
    assert list(tmp_path.iterdir()) == [path]


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
