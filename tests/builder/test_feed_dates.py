"""A build dates the edits that it shows in feeds, and a dry run knows these dates."""

import json
import sqlite3
from datetime import timedelta
from pathlib import Path

from generator.api import keys
from generator.config.settings import Config
from tests.support.sites.builds import AS_OF, NOW, build_now, files, make_config
from tests.support.sites.rows import insert_market, market_id


def dates(settings: Config) -> dict[str, str]:
    feed = json.loads((settings.output / keys.feed("new", "json")).read_bytes())
    return {entry["title"]: entry["date_modified"] for entry in feed["items"]}


def test_an_edited_question_moves_the_date_of_its_entry_once(tmp_path: Path, database: sqlite3.Connection) -> None:
    settings = make_config(tmp_path, layout="chunks", dumps__ndjson=False)
    for number in (1, 2):
        insert_market(database, number)
    build_now(settings, AS_OF - timedelta(hours=1))
    (created,) = {*dates(settings).values()}
    database.execute("UPDATE markets SET question = 'Another?' WHERE id = ?", [market_id(1)])
    build_now(settings)
    assert dates(settings) == {"Another?": NOW, "Question 2?": created}
    atom = (settings.output / keys.feed("new", "atom")).read_text()
    assert atom.count(f"<updated>{NOW[:19]}") == 2, "of the entry and of the feed"
    before = files(settings.output, keys.FEEDS)
    database.execute("UPDATE markets SET prob = 0.9")
    build_now(settings, AS_OF + timedelta(hours=1))
    assert files(settings.output, keys.FEEDS) == before
