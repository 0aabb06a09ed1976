"""A build reads the rows of those markets alone whose `market_version` changed, and leaves the bytes of one of all."""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from generator.builder.last_details import DetailCounts
from generator.models import replaced
from generator.publish import withdrawal
from generator.tree import files, fingerprints
from generator.tree.folder import locked
from tests.builder.test_part_staging import VersionedSite, assert_as_fresh
from tests.support.sites.builds import block
from tests.support.sites.rows import insert_category, insert_market, market_id, tell_row_versions

MARKETS: Final = 20
#: The relation that a statement reads, and how statements begin that read no rows.
_FROM: Final = re.compile(r"FROM (\w+)")
_NO_ROWS: Final = re.compile(r"PRAGMA|SELECT (count|1\b)")
GUARDS: Final[dict[str, Any]] = {"guards__max_invalid": 1, "guards__max_shrink": 1}
EXTENDED: Final[dict[str, Any]] = {"variant": "extended", "search": "title", **GUARDS}


@pytest.fixture
def site(database: sqlite3.Connection, tmp_path: Path) -> VersionedSite:
    site = VersionedSite(database, tmp_path)
    for number in range(7, MARKETS):
        site.add(number)
    for number in range(MARKETS):
        insert_category(database, "Politics" if number % 2 else "Sports", market_id=market_id(number))
    tell_row_versions(database)
    return site


@contextmanager
def rows_read() -> Iterator[Counter[str]]:
    """Counts the rows that the block reads, by relation; one that is wider than a survey's counts as of `rows`."""
    found = Counter[str]()

    def counted(_: Any, cursor: Any, statement: str, parameters: Any, *__: Any) -> None:
        relation = _FROM.search(statement)
        if cursor.description and relation and not _NO_ROWS.match(statement):
            rows = cursor.connection.execute(f"SELECT count(*) FROM ({statement})", parameters)
            found["rows" if len(cursor.description) > 10 else relation[1]] += rows.fetchone()[0]

    event.listen(Engine, "after_cursor_execute", counted)
    try:
        yield found
    finally:
        event.remove(Engine, "after_cursor_execute", counted)


def read(site: VersionedSite, **settings: Any) -> Mapping[str, int]:
    with rows_read() as found:
        site.build(**settings)
    assert_as_fresh(site, **{key: value for key, value in settings.items() if key != "later"})
    return {name: found[name] for name in found if found[name]}


def test_where_nothing_changed_nothing_is_read_but_ids_with_versions(site: VersionedSite) -> None:
    assert read(site, **EXTENDED)["rows"] == MARKETS
    assert read(site, **EXTENDED) == {"markets": MARKETS}
    assert read(site, **EXTENDED) == {"markets": MARKETS}
    assert site.build(**EXTENDED).details == DetailCounts(kept=MARKETS)


def test_a_market_that_changed_is_read_alone_with_what_belongs_to_it(site: VersionedSite) -> None:
    site.build(**EXTENDED)
    site.edit(3, question="Will it snow?", prob=0.25)
    site.trade(4)
    assert read(site, **EXTENDED) == {
        "markets": 2 * MARKETS, "rows": 2, "market_categories": 4, "orders": 1, "fills": 2, "probabilities": 1,
    }  # fmt: skip
    assert site.detail(3)["market"]["question"] == "Will it snow?"
    assert read(site, **EXTENDED) == {"markets": MARKETS}


def test_a_spelling_that_wins_has_the_markets_read_that_showed_the_other(site: VersionedSite) -> None:
    for number in (17, 18, 19):
        insert_category(site.database, "Weather", 1, market_id=market_id(number))
    site.build(**EXTENDED)
    for number in (1, 2, 3, 4):
        insert_category(site.database, "WEATHER", 1, market_id=market_id(number))
    assert read(site, **EXTENDED)["rows"] == MARKETS, "four and three of twenty are too many to name"
    assert read(site, **EXTENDED)["rows"] == 3, "they show another spelling than their rows"


def test_a_market_that_closes_by_the_clock_is_read_then(site: VersionedSite) -> None:
    site.edit(3, close_time="2026-01-31 12:12:00.000000")
    site.build()
    assert read(site) == {"markets": MARKETS}
    assert read(site)["rows"] == 1
    assert not site.detail(3)["market"]["acceptingBets"]
    assert read(site) == {"markets": MARKETS}
    assert read(site, later=-30)["rows"] == MARKETS, "nothing is known of what an earlier clock shows"


def test_while_an_id_is_not_unique_everything_is_read_and_each_row_reported_once(site: VersionedSite) -> None:
    site.build(**GUARDS)
    insert_market(site.database, 3, detail_version=1)
    for _ in range(2):
        with rows_read() as found:
            assert site.build(**GUARDS).quarantine.total("markets") == 2
        assert found["rows"] == MARKETS + 1


def test_an_id_that_no_statement_can_name_has_everything_read(site: VersionedSite) -> None:
    insert_market(site.database, id=None, detail_version=1)
    site.build(**GUARDS)
    assert read(site, **GUARDS)["rows"] == MARKETS + 1


# ── false versions ────────────────────────────────────────────────────────────────────────────────────────────────


LIES: Final[dict[str, str]] = {
    "a number": "UPDATE markets SET volume = volume + 1 WHERE id = ?",
    "a description": "UPDATE markets SET description = 'Other' WHERE id = ?",
    "a category": "DELETE FROM market_categories WHERE market_id = ?",
    "a bad row": "UPDATE markets SET prob = 7 WHERE id = ?",
    "a bad category": "INSERT INTO market_categories VALUES (?, '', 9)",
}


def test_an_audit_finds_rows_that_changed_without_a_word_and_then_reads_all(site: VersionedSite) -> None:
    site.build(**EXTENDED)
    wrong = [market_id(number) for number in range(3, 3 + len(LIES))]
    for lie, market in zip(LIES.values(), wrong, strict=True):
        site.database.execute(lie, [market])
    site.database.execute("UPDATE markets SET market_version = 1")
    assert site.build(**EXTENDED).details.kept == MARKETS, "nobody looked"
    found = site.build(source__audit=1, **EXTENDED)
    assert [remark.key for remark in found.remarks if remark.topic == "false_version"] == wrong
    assert found.details.read == MARKETS - 1, "one is not published any more"
    assert_as_fresh(site, **EXTENDED)
    assert read(site, **EXTENDED).get("rows", 0) <= 2, "with what is wrong with them"


# ── what is kept ──────────────────────────────────────────────────────────────────────────────────────────────────


def kept_of(site: VersionedSite) -> bytes:
    return b"".join(path.read_bytes() for path in [site.output / files.FINGERPRINTS, *site.output.glob("details/*")])


def test_nothing_of_a_market_that_was_taken_down_or_withdrawn_is_kept(site: VersionedSite) -> None:
    for number in (3, 4):
        site.edit(number, question="It is what?")
        insert_category(site.database, f"Secret {number}", 1, market_id=market_id(number))
    site.build(**EXTENDED)
    assert [kept_of(site).count(b"Secret %d" % number) > 0 for number in (3, 4)] == [True, True]
    block(site.output, market_id(3))
    with locked(site.output) as folder:
        withdrawal.from_folder(folder, [market_id(3)], site.config().cursor.lifetime)
    assert [kept_of(site).count(b"Secret %d" % number) > 0 for number in (3, 4)] == [False, True]
    assert read(site, **EXTENDED)["rows"] == 1, "it is in the database, and blocked"
    assert [kept_of(site).count(b"Secret %d" % number) > 0 for number in (3, 4)] == [False, True]
    site.edit(4, approval="pending")
    site.build(**EXTENDED)
    assert b"Secret" not in kept_of(site)


def test_without_what_was_kept_everything_is_read(site: VersionedSite) -> None:
    site.build(**EXTENDED)
    place = site.output / files.FINGERPRINTS
    body = place.read_bytes()
    assert body.count(b"Question 3?") == 1
    place.write_bytes(body.replace(b"Question 3?", b"Quastion 3?"))
    assert read(site, **EXTENDED)["rows"] == MARKETS
    with locked(site.output) as folder:
        made = fingerprints.load(folder)
        assert made is not None
        details = {key: one._replace(item=(5, *one.item[1:])) for key, one in made.details.items()}
        fingerprints.save(folder, replaced(made, details=details))
    assert read(site, **EXTENDED)["rows"] == MARKETS, "of another shape"
    place.unlink()
    assert read(site, **EXTENDED)["rows"] == MARKETS
    assert read(site, **EXTENDED) == {"markets": MARKETS}
