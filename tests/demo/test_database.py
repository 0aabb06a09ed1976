"""The demo database: the columns that are read, the same rows every time, and a canary on everything hidden."""

import random
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from generator.demo import texts
from generator.demo.database import METADATA, seed
from generator.demo.rows import Author
from generator.errors import SourceError
from generator.source.relations import RELATIONS
from tests.support.project import ROOT

AS_OF = datetime(2026, 1, 31, 12, tzinfo=UTC)
#: Free-text columns of a hidden row; all others are ids, enums, numbers and times.
FREE_TEXT = {
    *("slug", "question", "description", "trading_pause_reason", "creation_source", "sponsor"),
    *("category", "title", "instrument", "source"),
}
VISIBLE = "approval = 'approved' AND is_listed"


def rows(path: Path, query: str) -> list[dict[str, Any]]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(query)]
    finally:
        connection.close()


def everything(path: Path) -> dict[str, list[dict[str, Any]]]:
    return {table: rows(path, f"SELECT * FROM {table}") for table in RELATIONS}


def test_the_relations_hold_the_columns_we_read_and_then_private_ones(tmp_path: Path) -> None:
    seed(tmp_path / "empty.db", as_of=AS_OF, markets=0)
    for name, columns in RELATIONS.items():
        created = [row["name"] for row in rows(tmp_path / "empty.db", f"PRAGMA table_info({name})")]
        assert created[: len(columns)] == [*columns]
        private = [column.name for column in METADATA.tables[name].columns if column.info.get("private")]
        assert created[len(columns) :] == private
    assert not any(everything(tmp_path / "empty.db").values())


def test_equal_arguments_give_equal_rows_wherever_as_of_is_said_and_another_seed_others(tmp_path: Path) -> None:
    seed(tmp_path / "forty.db", as_of=AS_OF, markets=40)
    forty = everything(tmp_path / "forty.db")
    elsewhere = AS_OF.astimezone(timezone(timedelta(hours=5, minutes=30)))
    seed(tmp_path / "again.db", as_of=elsewhere, markets=40, random_seed=1)
    seed(tmp_path / "naive.db", as_of=AS_OF.replace(tzinfo=None), markets=40)
    assert everything(tmp_path / "again.db") == everything(tmp_path / "naive.db") == forty
    seed(tmp_path / "other.db", as_of=AS_OF, markets=40, random_seed=2)
    assert all(table != forty[name] for name, table in everything(tmp_path / "other.db").items())


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
    seed(path, as_of=AS_OF, markets=400)
    hidden = {row["id"] for row in rows(path, f"SELECT id FROM markets WHERE NOT ({VISIBLE})")}
    assert hidden
    for name, table in everything(path).items():
        private = {column.name for column in METADATA.tables[name].columns if column.info.get("private")}
        for row in table:
            key = row["id"] if name == "markets" else row["market_id"]
            is_hidden = key in hidden or row.get("is_public") == 0
            for column, value in row.items():
                if column in private or (is_hidden and column in FREE_TEXT and value is not None):
                    assert value.startswith("CANARY-"), (name, column)
                else:
                    assert "CANARY" not in str(value), (name, column)


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
