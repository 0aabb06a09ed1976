"""Takedowns of questions and of their markets, against the oracle of a database in which these are hidden."""

import random
import shutil
import sqlite3
from collections.abc import Collection
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from generator.publish import takedown
from generator.publish.decisions import Request
from tests.questions import random_sites, walks
from tests.questions.asking import MARKETS, Site
from tests.questions.checker import check
from tests.questions.maker import CANARIES
from tests.questions.oracle import Setting
from tests.questions.served import asked, oracle_for, served
from tests.support.sites.builds import NO_LIMITS, NOW, build_now, make_config, manifest_in

#: How often something is taken down.
_TAKEDOWNS: Final = 4


def fill(path: Path, seed: int) -> None:
    """A random site in which no slug is free again once one of two questions is gone: only a build finds that out."""
    random_sites.random_site(path, seed=seed)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(
            "UPDATE questions SET slug = NULL WHERE lower(slug) IN "
            "(SELECT lower(slug) FROM questions GROUP BY 1 HAVING count(*) > 1)"
        )


def hide(database: Path, references: Collection[str]) -> None:
    """What a moderator does who rejects these markets and questions."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for reference in references:
            table = "questions" if keys.is_question_reference(reference) else "markets"
            connection.execute(
                f"UPDATE {table} SET approval = 'rejected' WHERE lower(id) = ?",
                [keys.bare_id(reference)],
            )


def joined(database: Path, questions: Collection[str]) -> list[str]:
    """The markets with a row of these questions (references)."""
    with closing(sqlite3.connect(database)) as connection:
        rows = [*connection.execute("SELECT lower(question_id), lower(market_id) FROM question_members")]
    return [str(market) for question, market in rows if keys.question_reference(str(question)) in questions]


@pytest.mark.campaign(short=3)
@pytest.mark.parametrize("seed", range(24))
def test_a_site_answers_as_the_oracle_through_takedowns(seed: int, tmp_path: Path) -> None:
    variant, layout = ("core", "extended")[seed % 2], ("pages", "chunks")[seed // 2 % 2]
    settings = {"variant": variant, "layout": layout, "categories": "a,weather"}
    setting, draw = Setting(variant), random.Random(seed)  # noqa: S311 - no secret
    get = served(tmp_path, partial(fill, seed=seed), **settings)
    shown = tmp_path / "shown"
    shown.mkdir()
    shutil.copy(tmp_path / "markets.db", shown)
    config, before = make_config(tmp_path, **NO_LIMITS, **settings), oracle_for(get, shown, setting)
    begun, done = list[tuple[walks.Begun, set[str]]](), list[str]()
    for number in range(_TAKEDOWNS):
        begun += [(walk, set()) for walk in walks.begin(Site(get), before)]
        built = manifest_in(config.output)
        some = [*sorted(built.questions()), *sorted(built.ids())]
        chosen = [draw.choice(some), draw.choice(sorted(built.questions()) or some)]
        members = {one: built.members[one] for one in chosen if keys.is_question_reference(one)}
        request = Request(tuple(dict.fromkeys(chosen)), is_blocked=True, at=NOW, members=members)
        takedown.from_folder(config, request, done.append)
        # What the question had to share with others is theirs alone with the next build, which blocks it, too.
        hide(shown / "markets.db", [one for one in request.removed if not keys.is_question_reference(one)])
        done += request.removed
        if number % 2:
            questions = [one for one in done if keys.is_question_reference(one)]
            hide(shown / "markets.db", [*questions, *joined(tmp_path / "markets.db", questions)])
            build_now(config, shrink=True, invalid=True)
        get = asked(tmp_path, **settings)
        found = check(get, shown / "markets.db", setting, limits=((7,),), canaries=CANARIES)
        assert found.differences == [], done
        now = oracle_for(get, shown, setting)
        gone = walks.withdrawn(before, now, lambda name: asked(tmp_path, **settings)(f"{MARKETS}/{name}")[0] == 200)
        for walk, lost in begun:
            lost.update(gone)
            assert [*walks.unlike(Site(get), walk, lost, now)] == [], done
        before = now
