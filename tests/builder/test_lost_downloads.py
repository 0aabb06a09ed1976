"""A build that cannot tell what changed since the last dump says why the change feed begins a new session."""

import json
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from generator.api.changes import ChangesHead
from generator.builder.report import Report
from generator.config.settings import Config
from generator.tree import files
from tests.support.sites.builds import AS_OF, build_now, dump_head, make_config
from tests.support.sites.rows import insert_market, market_id


@pytest.fixture
def settings(tmp_path: Path, database: sqlite3.Connection) -> Config:
    for number in range(3):
        insert_market(database, number)
    found = make_config(tmp_path, layout="chunks", feeds__enabled=False)
    build_now(found)
    return found


def dump_of(output: Path) -> Path:
    return output / dump_head(output).ndjson.key


LOSSES: Final[dict[str, Callable[[Path], object]]] = {
    "parts lost": lambda output: (output / files.DUMP_PARTS).unlink(),
    "dump damaged": lambda output: dump_of(output).write_bytes(bytes(dump_of(output).stat().st_size)),
    "parts damaged": lambda output: (output / files.DUMP_PARTS).write_bytes(b"{"),
    "dump lost": lambda output: dump_of(output).unlink(),
}


def session(settings: Config) -> str:
    return ChangesHead.model_validate_json((settings.output / keys.head(keys.CHANGES)).read_bytes()).session


def changed(settings: Config, database: sqlite3.Connection, minutes: int) -> Report:
    database.execute("UPDATE markets SET volume = volume + 1 WHERE id = ?", [market_id(1)])
    return build_now(settings, AS_OF + timedelta(minutes=minutes))


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_new_session_after_a_loss_is_reported_once(settings: Config, database: sqlite3.Connection, loss: str) -> None:
    before = session(settings)
    assert (changed(settings, database, 1).remarks, session(settings)) == ([], before)
    name = files.DUMP_PARTS if "parts" in loss else dump_of(settings.output).relative_to(settings.output)
    LOSSES[loss](settings.output)
    found = changed(settings, database, 2)
    assert session(settings) != before
    problem = "is missing or altered, so nobody knows what changed since the last build"
    effect = "the change feed begins a new session, and followers start again from the dump"
    sentences = [remark.sentence() for remark in found.remarks]
    assert sentences == [f"file {name}: {problem}; {effect}"]
    assert json.loads((settings.output / files.REPORT).read_bytes())["remarks"] == sentences
    (line,) = found.findings()
    assert problem in line
    assert effect in line
    assert changed(settings, database, 3).remarks == []
