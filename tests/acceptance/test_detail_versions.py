"""The example of versions on PostgreSQL: builds read what changed, whichever transaction commits last."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from generator.builder.report import Report
from tests.acceptance.test_views import CANARY, DATA, EXISTING
from tests.support.postgres import Server
from tests.support.sites.builds import build_now, files, make_config
from tests.support.sites.views import SQL, VIEWS, ExistingSite, apply

VERSIONS: Final = SQL / "detail-versions.sql"
DETAILS: Final = "v1/public/markets/detail"
BET: Final = (
    "INSERT INTO app.bets (contract_id, user_id, stake_cents, shares, price_cents, placed_at) "
    "VALUES (%s, 1, 100, 1, 50, %s)"
)


def views() -> str:
    """The example with both versions switched on."""
    found = re.fullmatch(
        r"(.*\n)    -- (, coalesce.*)\n    -- ( .*AS detail_version\n)(.*)", VIEWS.read_text(), re.DOTALL
    )
    assert found
    begin, first, second, end = found.groups()
    end = re.sub(r"^    -- (, .* AS market_version)$", r"\1", end, count=1, flags=re.MULTILINE)
    return f"{begin}{first} {second}\n{end}"


@pytest.fixture(scope="module")
def existing_site(postgres: Server) -> ExistingSite:
    return apply(postgres, EXISTING.read_text() + DATA, VERSIONS.read_text() + views())


@pytest.fixture
def connect(existing_site: ExistingSite) -> Iterator[Callable[[], Any]]:
    opened = []

    def connect() -> Any:
        opened.append(existing_site.server.connect(existing_site.name))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


def build(site: ExistingSite, folder: Path, **settings: object) -> Report:
    settings = {"source__audit": 0, "source__schema": "public_api", "source__url": site.url, **settings}
    return build_now(make_config(folder, **settings))


class Versions:
    """The versions of markets, as the reader sees them: `changed` are those that changed since it was asked last."""

    def __init__(self, site: ExistingSite, column: str = "detail_version") -> None:
        self._reader = site.as_reader()
        self._column = column
        self._last = self._found()

    def _found(self) -> dict[str, str]:
        return dict(self._reader.execute(f"SELECT question, {self._column} FROM markets").fetchall())

    def changed(self) -> set[str]:
        before, self._last = self._last, self._found()
        return {question for question, version in self._last.items() if version != before[question]}

    def of(self, question: str) -> str:
        return self._last[question]

    def close(self) -> None:
        self._reader.close()


@pytest.fixture
def versions(existing_site: ExistingSite) -> Iterator[Versions]:
    with closing(Versions(existing_site)) as found:
        yield found


RAIN, HALTED, SETTLED, VOIDED = "Rain?", "Halted?", "Settled?", "Voided?"


def test_every_change_of_a_row_changes_the_versions_of_its_markets_and_of_no_other(
    connect: Callable[[], Any], versions: Versions
) -> None:
    owner = connect()
    for change, told in {
        "UPDATE app.bets SET stake_cents = stake_cents + 1 WHERE contract_id IN (1, 3)": {RAIN, SETTLED},
        "UPDATE app.bets SET undone_at = now() WHERE contract_id = 1": {RAIN},
        "UPDATE app.order_book_entries SET remaining_cents = 5 WHERE contract_id = 1": {RAIN},
        "INSERT INTO app.price_history VALUES (1, '2026-01-31 11:30Z', 6000), (2, '2026-01-31 11:30Z', 5)": {
            RAIN, HALTED
        },
        "UPDATE app.price_history SET contract_id = 4 WHERE contract_id = 2 AND chance_bp = 5": {HALTED, VOIDED},
        "DELETE FROM app.price_history WHERE contract_id = 4": {VOIDED},
        "UPDATE app.contracts SET rules = 'Others' WHERE contract_id = 1": set(),
        "UPDATE app.users SET email = email || 'x'": set(),
    }.items():  # fmt: skip
        owner.execute(change)
        assert versions.changed() == told, change
    owner.execute("TRUNCATE app.order_book_entries")
    assert len(versions.changed()) == 8


def test_every_change_of_anything_else_changes_the_versions_of_rows(
    existing_site: ExistingSite, connect: Callable[[], Any]
) -> None:
    owner = connect()
    with closing(Versions(existing_site, "market_version")) as versions:
        for change, told in {
            "UPDATE app.contracts SET rules = 'Ours' WHERE contract_id = 1": {RAIN},
            "UPDATE app.bets SET user_id = 2 WHERE contract_id = 1": {RAIN},
            "INSERT INTO app.topics OVERRIDING SYSTEM VALUE VALUES (99, 'Nobody has it')": set(),
            "INSERT INTO app.contract_topics VALUES (2, 99, 5)": {HALTED},
            "UPDATE app.order_book_entries SET remaining_cents = 5": set(),
            "DELETE FROM app.contract_topics WHERE topic_id = 99": {HALTED},
            "UPDATE app.topics SET label = 'No topic' WHERE topic_id = -1": set(),
            "UPDATE app.topics SET label = label": set(),
            "DELETE FROM app.topics WHERE topic_id = -1": set(),
        }.items():
            owner.execute(change)
            assert versions.changed() == told, change
        for change in (
            "UPDATE app.topics SET label = 'Nobody' WHERE topic_id = 99",
            "DELETE FROM app.topics WHERE topic_id = 99",
            "UPDATE app.currency_series SET name = name || '!'",
        ):
            owner.execute(change)
            assert len(versions.changed()) == 8, change


def test_a_market_that_is_added_while_a_table_of_many_changes_has_a_version_of_its_own_then(
    existing_site: ExistingSite, connect: Callable[[], Any]
) -> None:
    first, second = connect(), connect()
    first.execute("INSERT INTO app.topics OVERRIDING SYSTEM VALUE VALUES (98, 'Many')")
    with closing(Versions(existing_site, "market_version")) as versions, ThreadPoolExecutor() as threads:
        with first.transaction():
            first.execute("UPDATE app.topics SET label = 'Many more' WHERE topic_id = 98")
            waiting = threads.submit(second.execute, "INSERT INTO app.contract_topics VALUES (2, 98, 9)")
            while not first.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall():
                assert not waiting.done()
            assert versions.changed() == set()
        waiting.result(10)
        assert len(versions.changed()) == 8
    first.execute("DELETE FROM app.contract_topics WHERE topic_id = 98")


@pytest.mark.usefixtures("few_limits", "one_processor")
def test_a_transaction_that_writes_first_and_commits_last_is_read(
    existing_site: ExistingSite, connect: Callable[[], Any], tmp_path: Path
) -> None:
    first, second = connect(), connect()
    assert build(existing_site, tmp_path).details.read == 8
    with first.transaction():
        first.execute(BET, [2, "2026-01-31 10:00Z"])
        second.execute(BET, [3, "2026-01-31 11:00Z"])
        assert build(existing_site, tmp_path).details.read == 1
    assert build(existing_site, tmp_path).details.read == 1
    build(existing_site, tmp_path, output=tmp_path / "fresh")
    assert files(tmp_path / "output", DETAILS) == files(tmp_path / "fresh", DETAILS) != {}
    assert [name for name, body in files(tmp_path / "output", "").items() if CANARY.encode() in body] == []


def test_transactions_that_change_one_market_wait_for_each_other_and_each_is_told(
    connect: Callable[[], Any], versions: Versions
) -> None:
    first, second = connect(), connect()
    with ThreadPoolExecutor() as threads:
        with first.transaction():
            first.execute(BET, [2, "2026-01-31 10:30Z"])
            waiting = threads.submit(second.execute, BET, [2, "2026-01-31 10:40Z"])
            while not first.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall():
                assert not waiting.done()
            assert versions.changed() == set()
        waiting.result(10)
    assert versions.changed() == {HALTED}


def test_a_market_that_nobody_has_traded_has_a_version_until_somebody_does(
    connect: Callable[[], Any], versions: Versions
) -> None:
    owner = connect()
    owner.execute("DELETE FROM public_api.detail_versions WHERE contract_id = 4")
    assert versions.changed() == {VOIDED}
    assert versions.of(VOIDED) == "untraded"
    owner.execute(BET, [4, "2026-01-31 10:57Z"])
    assert versions.changed() == {VOIDED}


def test_the_reader_sees_versions_only_through_the_view(existing_site: ExistingSite) -> None:
    with closing(existing_site.as_reader()) as reader:
        assert len(reader.execute("SELECT detail_version FROM markets").fetchall()) == 8
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("SELECT * FROM public_api.detail_versions")
