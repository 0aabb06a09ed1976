"""The demo, and the examples for existing databases, as whole sites: what they answer is what the oracle says."""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from generator.demo.database import seed
from generator.source.relations import ALL_RELATIONS
from tests.acceptance import test_bigint_views as exchange
from tests.questions.checker import check
from tests.questions.oracle import Setting
from tests.questions.served import asked, served
from tests.support.postgres import Server
from tests.support.sites.builds import AS_OF, build_now, make_config
from tests.support.sites.socialpredict import SCHEMA, MadeSite
from tests.support.sites.views import SQL, ExistingSite, apply

#: Questions with six contracts and a hidden one, with two of which one is hidden, and with a single one.
MORE: Final = """
INSERT INTO exchange.questions (title, state, winner_id, is_approved, opened_at, closes_at)
    SELECT title, 'open', NULL, true, '2026-01-15 12:00', '2046-07-15 12:00'
    FROM (VALUES ('Which of six?'), ('Which of two?'), ('Alone?')) AS made (title);
INSERT INTO exchange.contracts (question_id, label, chance, volume, is_withdrawn)
    SELECT 5, CASE WHEN n < 7 THEN 'Answer ' || n ELSE 'CANARY' END, n / 10.0, n, n = 7 FROM generate_series(1, 7) AS n
    UNION ALL VALUES (6, 'Left', 0.5, 1, false), (6, 'CANARY', 0.5, 1, true), (7, NULL, 0.5, 1, false);
"""
PRIVATE: Final = re.compile("CANARY")
_MARKETS: Final = 100


@pytest.mark.parametrize(("variant", "layout"), [("core", "pages"), ("extended", "chunks")])
def test_the_demo_answers_as_the_oracle(variant: str, layout: str, tmp_path: Path) -> None:
    settings = {"variant": variant, "layout": layout, "categories": "football"}
    get = served(tmp_path, partial(seed, as_of=AS_OF, markets=_MARKETS, questions=True), **settings)
    found = check(get, tmp_path / "markets.db", Setting(variant), canaries=PRIVATE, limits=((100,),))
    assert found.differences == []
    assert found.definitions == 6 * _MARKETS / 100


def copied(site: ExistingSite, database: Path) -> None:
    """What the reader of a site sees, as SQLite has it, for the oracle."""
    with closing(site.as_reader()) as reader, closing(sqlite3.connect(database)) as copy:
        for relation, columns in ALL_RELATIONS.items():
            copy.execute(f"CREATE TABLE {relation} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            rows = reader.execute(f"SELECT {', '.join(columns)} FROM {relation}").fetchall()
            copy.executemany(f"INSERT INTO {relation} VALUES ({marks})", [[*map(_plain, row)] for row in rows])
        copy.commit()


def _plain(value: Any) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return value if value is None or isinstance(value, int | float) else str(value)


def differences(site: ExistingSite, folder: Path, settings: Mapping[str, Any], questions: int) -> list[str]:
    """Where a build of a site is not what the oracle says of its rows; it has so many questions."""
    settings = {"source__url": site.url, "source__schema": "public_api", **settings}
    build_now(make_config(folder, **settings))
    copied(site, folder / "seen.db")
    get, setting = asked(folder, **settings), Setting(settings["variant"])
    found = check(get, folder / "seen.db", setting, canaries=PRIVATE, limits=((100,),))
    assert found.definitions == questions
    return found.differences


def test_groups_of_socialpredict_answer_as_the_oracle(postgres: Server, tmp_path: Path) -> None:
    site = apply(postgres, SCHEMA.read_text(), (SQL / "socialpredict-views.sql").read_text())
    with closing(site.server.connect(site.name)) as owner:
        MadeSite().insert(owner)
    settings = {"variant": "extended", "layout": "chunks", "categories": "Weather"}
    assert differences(site, tmp_path, settings, questions=2) == []


def test_questions_of_an_exchange_answer_as_the_oracle(postgres: Server, tmp_path: Path) -> None:
    site = exchange.applied(postgres)
    with closing(site.server.connect(site.name)) as owner:
        owner.execute(MORE)
    assert differences(site, tmp_path, {"variant": "core", "layout": "chunks"}, questions=4) == []
