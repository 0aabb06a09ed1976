"""Old markets that appear all at once are refused, as if a view had lost a condition; whatever is ordinary passes."""

import sqlite3
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.builder.guards import refuse_growth
from generator.builder.report import Excused
from generator.errors import GuardError
from tests.builder.test_part_staging import QUICK
from tests.support.commands import run
from tests.support.sites.builds import AS_OF, NOW, build_now, files, make_config
from tests.support.sites.rows import catalog_of, insert_market, market_id, public_market

LATER: Final = AS_OF + timedelta(hours=1)
#: Markets that are public from the beginning, and those that are hidden.
PUBLIC: Final = range(1, 41)
HIDDEN: Final = range(100, 153)


def insert(database: sqlite3.Connection, numbers: range, **columns: Any) -> None:
    for number in numbers:
        insert_market(database, number, **columns)


def refused(before: int, appeared: Mapping[int, str], excused: Excused = Excused()) -> str | None:  # noqa: B008
    """What the guard says of so many markets, all public before, and others created when it is told."""
    known = range(10_000, 10_000 + before)
    public = {*map(market_id, known)}
    new = (public_market(number, created_at=time) for number, time in appeared.items())
    try:
        refuse_growth(catalog_of(*map(public_market, known), *new), public, NOW, excused)
    except GuardError as error:
        return str(error)
    return None


def test_what_a_view_hid_for_long_is_refused_with_three_questions_unless_it_is_accepted(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert(database, PUBLIC)
    insert(database, HIDDEN, is_listed=0, created_at="2025-06-01 00:00:00.000000")
    config = make_config(tmp_path, **QUICK)
    build_now(config)
    database.execute("UPDATE markets SET is_listed = 1")
    before = files(tmp_path / "output", "")
    with pytest.raises(GuardError) as caught:
        build_now(config, LATER, shrink=True, invalid=True)
    first, *named = str(caught.value).splitlines()
    assert first == (
        f"53 markets would appear that were created more than 7 days before the last build (as of {NOW}) and were not "
        "public then, more than 20 and more than 2% of 40 markets; nothing was replaced. A view may have lost a "
        "condition, such as `deleted_at IS NULL`; if they may all be public, pass --accept growth. Such as:"
    )
    assert named == [f"  market {market_id(number)} (Question {number}?)" for number in HIDDEN[:3]]
    assert caught.value.visible == frozenset(map(market_id, (*PUBLIC, *HIDDEN)))
    assert files(tmp_path / "output", "") == before
    settings = [f"--set={key.replace('__', '.')}={value}" for key, value in QUICK.items()]
    assert f"error: {first}" in run("check", *settings, cwd=tmp_path, PUBLIC_MARKETS_SOURCE__URL=url(tmp_path)).stdout
    done = run("build", "--accept=growth", *settings, cwd=tmp_path, PUBLIC_MARKETS_SOURCE__URL=url(tmp_path))
    assert (done.returncode, done.stdout.split(" as of")[0]) == (0, "built 93 markets"), done.stderr


def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'markets.db'}"


def test_more_than_twenty_and_more_than_two_percent() -> None:
    old = "2025-06-01 00:00:00"
    assert refused(40, dict.fromkeys(range(20), old)) is None
    assert refused(40, dict.fromkeys(range(21), old)) is not None
    assert refused(1_050, dict.fromkeys(range(21), old)) is None
    assert refused(1_049, dict.fromkeys(range(21), old)) is not None
    assert refused(0, dict.fromkeys(range(21), old)) is None, "there is nothing to compare with"


def test_a_queue_of_moderated_markets_may_open_all_at_once() -> None:
    week, older = "2026-01-24 12:00:00", "2026-01-24 11:59:59"
    queue = dict.fromkeys(range(100, 900), week) | dict.fromkeys(range(20), older)
    assert refused(40, queue) is None
    assert refused(40, queue | {99: older}) is not None


@pytest.mark.parametrize("is_report_damaged", [False, True])
def test_markets_whose_rows_were_bad_may_all_be_corrected_if_the_report_says_so(
    tmp_path: Path, database: sqlite3.Connection, *, is_report_damaged: bool
) -> None:
    insert(database, PUBLIC)
    for number in HIDDEN:
        insert_market(database, number, id=market_id(number).upper(), prob=7)
    config = make_config(tmp_path, **QUICK)
    build_now(config, invalid=True)
    database.execute("UPDATE markets SET prob = 0.7")
    if is_report_damaged:
        (tmp_path / "output" / "report.json").write_text("{}", "utf-8")
        with pytest.raises(GuardError, match="53 markets would appear"):
            build_now(config, LATER)
    assert build_now(config, LATER, growth=is_report_damaged).built == len(PUBLIC) + len(HIDDEN)


def test_bad_rows_that_were_only_counted_count() -> None:
    old = dict.fromkeys(range(30), "2025-06-01 00:00:00")
    assert refused(40, old, Excused(frozenset({market_id(1)}), others=9)) is None
    assert refused(40, old, Excused(frozenset({market_id(1)}), others=8)) is not None


def test_markets_that_were_taken_down_may_all_come_back(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert(database, PUBLIC)
    insert(database, HIDDEN)
    config = make_config(tmp_path, **QUICK)
    build_now(config)
    ids, settings = [*map(market_id, HIDDEN)], ("--set", f"source.url={url(tmp_path)}")
    assert run("takedown", *ids, *settings, cwd=tmp_path).returncode == 0
    assert build_now(config, LATER).built == len(PUBLIC)
    assert run("takedown", "--undo", *ids, *settings, cwd=tmp_path).returncode == 0
    assert build_now(config, LATER + timedelta(hours=1)).built == len(PUBLIC) + len(HIDDEN)
