"""What `check` says about a build, besides bad rows: about search, versions of details, and keys that links need."""

import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from generator.builder import notices
from generator.builder.preflight import BuildCheck, of_detail_versions
from generator.config.settings import Config
from generator.markets.questions import Member, Question
from generator.markets.slugs import SiteKeys
from generator.progress import SILENT
from generator.site.catalog import Catalog, Naming
from tests.support.sites.builds import AS_OF, NOW, build_now, make_config
from tests.support.sites.rows import insert_market, market_id, public_market

EXTENDED = {"variant": "extended", "search": "title+description"}

SECRET = "S3cret"  # noqa: S105 - of no server


def findings(tmp_path: Path, topic: str = "search", **settings: str) -> list[str]:
    check = BuildCheck(make_config(tmp_path, **settings), AS_OF, SILENT)
    return [str(finding) for finding in (*check.settings(), *check.database()) if f": {topic}: " in str(finding)]


def test_check_says_what_the_search_index_will_take(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert_market(database, 1, question="Will the war end?", description="No war.")
    (finding,) = findings(tmp_path, **EXTENDED)
    index = build_now(make_config(tmp_path, **EXTENDED)).search
    assert index is not None
    assert finding == f"fine: search: 5 words can be found, in {index.objects} objects of {index.bytes:,} bytes"
    assert findings(tmp_path, **{**EXTENDED, "search": "off"}) == []
    assert findings(tmp_path, search="title") == [], "the core variant has no search"


def test_check_says_what_one_changed_market_costs(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert_market(database, 1)
    insert_market(database, 2, status="resolved", resolution="YES", resolved_at="2026-01-15 00:00:00.000000")
    (finding,) = findings(tmp_path, "layout pages")
    assert finding.startswith("fine: layout pages: one changed market costs at most 1,017 objects of some ")
    assert "costs up to about 42 objects of" in findings(tmp_path, "layout chunks", layout="chunks")[0]


def test_check_warns_where_no_search_can_find_anything(tmp_path: Path, database: sqlite3.Connection) -> None:
    assert findings(tmp_path, **EXTENDED) == [], "another finding says that there is no market"
    insert_market(database, 1, question="???", description="Over, or not.")
    assert findings(tmp_path, variant="extended", search="title") == [
        "warning: search: no public market has a word in its title, so `q` finds nothing; set `search: off`"
    ]
    assert findings(tmp_path, **EXTENDED)[0].startswith("fine: search: 3 words ")


def test_check_warns_of_an_index_that_cloudfront_cannot_read(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert_market(database, 1)
    warning = (
        "warning: search: the CloudFront stack refuses `q` with `layout: pages`; if readers come through it, set "
        "`layout: chunks`, or `search: off` to publish no index"
    )
    distribution = {"publish.cloudfront_distribution": "E2EXAMPLE"}
    assert findings(tmp_path, **EXTENDED, **distribution)[0] == warning
    for settings in ({"layout": "chunks"}, {"search": "off"}, {"variant": "core"}):
        assert warning not in findings(tmp_path, **{**EXTENDED, **distribution, **settings})


#: What is said of a column of versions after each of these statements.
OF_DETAILS: Final = {
    "SELECT 1": "",  # few markets are read in no time
    "ALTER TABLE markets ADD COLUMN detail_version": (
        "warning: detail_version: is NULL in every market, so each build reads all details; set it, or leave the "
        "column out"
    ),
    f"UPDATE markets SET detail_version = 1 WHERE id < '{market_id(2)}'": (
        "fine: detail_version: 2 of 3 markets have one; builds read their details only when it changes, and the "
        "others every time"
    ),
    "DELETE FROM markets": "",
}
OF_ROWS: Final = {
    "ALTER TABLE markets ADD COLUMN market_version DEFAULT 1": (
        "warning: market_version: has no effect, as markets has no detail_version; add that column, or leave this "
        "one out"
    ),
    "ALTER TABLE markets ADD COLUMN detail_version": (
        "warning: market_version: no market has both this and detail_version, so each build reads all rows; set "
        "them, or leave the column out"
    ),
    "UPDATE markets SET detail_version = 1": (
        "fine: market_version: builds read the rows of 3 of 3 markets only when it changes"
    ),
    f"UPDATE markets SET market_version = NULL WHERE id = '{market_id(2)}'": (
        "fine: market_version: builds read the rows of 2 of 3 markets only when it changes, and those of the "
        "others every time"
    ),
    "DELETE FROM markets": "",
}


@pytest.mark.parametrize(("column", "said"), [("detail_version", OF_DETAILS), ("market_version", OF_ROWS)])
def test_check_says_which_markets_have_a_version(
    tmp_path: Path, database: sqlite3.Connection, column: str, said: Mapping[str, str]
) -> None:
    for number in range(3):
        insert_market(database, number)
    for statement, finding in said.items():
        database.execute(statement)
        assert findings(tmp_path, column) == [finding] * bool(finding)


def test_check_says_what_versions_would_save(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert_market(database)
    check = BuildCheck(make_config(tmp_path), AS_OF, SILENT)
    assert not [finding for finding in check.database() if "detail_version" in finding.text]
    assert check.measured
    (finding,) = map(str, of_detail_versions(check.measured, has_versions=False, worth=1))
    assert re.fullmatch(
        r"fine: detail_version: markets has no such column, so each build reads the orders, fills and points of all 1 "
        r"market \(\d+\.\d of the \d+\.\d s that reading took here\); with it, only those of markets that changed",
        finding,
    )


def test_check_warns_of_copies_of_files_that_nothing_purges(tmp_path: Path) -> None:
    elsewhere = {"dumps__base_url": "https://files.example.org"}
    for settings, is_warned in (
        ({}, False),
        (elsewhere, True),
        ({**elsewhere, "publish__purge_command": "purge"}, False),
    ):
        found = BuildCheck(make_config(tmp_path, **settings), AS_OF, SILENT).settings()
        assert any(finding.text.startswith("dumps.base_url: ") for finding in found) == is_warned


@pytest.mark.parametrize(
    ("address", "is_warned"),
    [
        ("tcp://scheduler:8786", True),
        ("tcp://[2001:db8::7]:8786", True),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("tls://scheduler:8786", False),
    ],
)
def test_check_warns_of_a_cluster_elsewhere_without_tls(tmp_path: Path, address: str, *, is_warned: bool) -> None:
    found = [str(finding) for finding in BuildCheck(make_config(tmp_path, cluster=address), AS_OF, SILENT).settings()]
    assert [f"warning: cluster: {address} is without TLS" in finding for finding in found] == [True] * is_warned


#: Ends of addresses, by the mode of TLS that is warned of.
ADDRESSES: Final[Mapping[str | None, tuple[str, ...]]] = {
    "prefer": (
        *("db.example.com/site", "/site?host=db.example.com", "localhost/site?hostaddr=10.0.0.7", "notlocalhost/site"),
        *("/site?host=localhost:5432&host=db.example.com:5432", "[::ffff:10.0.0.7]/site"),
    ),
    "allow": ("db.example.com/site?sslmode=allow",),
    None: (
        *("db.example.com/site?sslmode=verify-full", "db.example.com/site?hostaddr=127.0.0.1", "localhost./site"),
        *("127.0.0.7:5432/site?sslmode=disable", "/site?host=/run/postgresql", "[::ffff:127.0.0.1]/site"),
        *("db.example.com/site?sslrootcert=system", "/site?host=localhost:5432&host=127.0.0.1:5433"),
    ),
}


@pytest.mark.parametrize(("url", "mode"), [(url, mode) for mode, urls in ADDRESSES.items() for url in urls])
def test_check_says_what_a_connection_to_another_machine_allows_without_tls(
    tmp_path: Path, url: str, mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGSSLMODE", "PGSSLROOTCERT"):
        monkeypatch.delenv(name, raising=False)
    config = make_config(tmp_path, source__url=f"postgresql://reader:{SECRET}@{url}")
    found = [str(finding) for finding in BuildCheck(config, AS_OF, SILENT).settings()]
    assert [f"sslmode is {mode}, so " in line for line in found if line.startswith("warning: source.url: ")] == (
        [True] if mode else []
    )
    assert SECRET not in "".join(found)
    monkeypatch.setenv("PGSSLMODE", "require")
    written = "sslmode=" in url and mode is not None
    assert len([*BuildCheck(config, AS_OF, SILENT).settings()]) == len(found) - (mode is not None and not written)


# ── keys that links need ────────────────────────────────────────────────────────────────────────────────────────────


KEYED = "https://example.org/{key}"


def said(market_url: str | None, *numbers: int, has_keys: bool = True, count: int = 2) -> list[str]:
    """What is said if the markets of these numbers have keys."""
    naming = Naming(site_keys=SiteKeys({market_id(number): str(number) for number in numbers}, {}))
    catalog = Catalog(map(public_market, range(1, count + 1)), as_of=NOW, hidden=0, naming=naming)
    return [str(one) for one in notices.of_links(Config(market_url=market_url), catalog, has_keys=has_keys)]


def test_nothing_is_said_where_links_have_all_that_they_need() -> None:
    assert said(KEYED, 1, 2) == said(KEYED, count=0) == []
    for needs_none in (None, "https://example.org/{id}"):
        assert said(needs_none, has_keys=False) == said(needs_none, 1) == []


def test_what_links_of_and_to_questions_lack_is_named() -> None:
    catalog = Catalog(map(public_market, range(1, 4)), as_of=NOW, hidden=0)
    config = Config(market_url="https://example.org/{question}/{id}", question_url=KEYED)
    (unasked,) = notices.of_links(config, catalog, has_keys=False)
    assert str(unasked) == (
        "warning: market_url: has {question}, but no market is in a question, so none gets a link; leave it out"
    )
    asked = catalog.of_questions([question("1", market_id(1), key="1"), question("2", market_id(2), key=None)])
    (some,) = notices.of_links(config, asked, has_keys=False)
    assert str(some) == (
        "warning: question_url: has {key}, and 1 of 2 questions have no usable key, so they get no link; give each a "
        "key of its own"
    )


def question(name: str, *markets: str, key: str | None) -> Question:
    members = tuple(Member(market, None, None, None) for market in markets)
    return Question(name, None, key, name, None, "exclusive", NOW, members)


def test_a_missing_column_and_missing_keys_are_named() -> None:
    (column,), (some,) = said(KEYED, has_keys=False), said(KEYED, 2, 9)
    assert column == (
        "warning: market_url: has {key}, but markets has no column `key`, so no market gets a link; add the column, or "
        "write {id}"
    )
    assert some == (
        "warning: market_url: has {key}, and 1 of 2 markets have no usable key, so they get no link; give each a key "
        "of its own"
    )
