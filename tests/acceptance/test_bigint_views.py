"""The second example: numbers for keys, several contracts in a question, local times, nothing but trades."""

import re
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from generator.markets.questions import Member
from tests.source.test_questions import gathered
from tests.support.postgres import Server
from tests.support.project import ROOT
from tests.support.readers.pages import PAGES
from tests.support.sites.builds import build_now, details, make_config
from tests.support.sites.views import SQL, VIEWS, ExistingSite, apply, assert_nothing_private, assert_nothing_to_mend

EXISTING: Final = ROOT / "tests" / "support" / "exchange_schema.sql"
DATA: Final = """
INSERT INTO exchange.questions (title, rules, state, winner_id, is_approved, opened_at, closes_at, resolved_at) VALUES
    ('Who wins?', 'The winner.', 'open', 2, true, '2026-01-15 12:00', '2046-07-15 12:00', '2026-01-16 12:00'),
    ('Rain?', NULL, 'resolved', 4, true, '2025-07-01 12:00', '2025-07-02 12:00', '2025-07-03 12:00'),
    ('Which month?', NULL, 'resolved', 6, true, '2025-07-01 12:00', '2025-07-02 12:00', '2025-07-03 12:00'),
    ('CANARY', 'CANARY', 'open', NULL, false, '2026-01-15 12:00', '2026-07-15 12:00', NULL);
INSERT INTO exchange.contracts (question_id, label, chance, volume, is_withdrawn) VALUES
    (1, 'Ada', 0.625, 12.34, false), (1, 'Ben', 0.375, 5, false), (1, 'CANARY', 0.5, 5, true),
    (2, NULL, 1, 5, false), (3, 'May', 0, 5, false), (3, 'June', 1, 5, false), (4, 'CANARY', 0.5, 5, false);
INSERT INTO exchange.trades (contract_id, user_id, other_trade_id, stake, shares, traded_at) VALUES
    (1, 777000777001, 2, 6, 10, '2026-01-31 12:00'), (1, 777000777002, 1, 1, 0, '2026-01-31 12:30'),
    (1, 777000777001, NULL, 3, 10, '2025-07-31 12:00'), (7, 777000777001, NULL, 6, 10, '2026-01-31 12:00');
"""


def applied(postgres: Server) -> ExistingSite:
    """The site, with its definitions between the rest of the first example."""
    head, _, rest = VIEWS.read_text().partition("-- \u2500\u2500 their definitions")
    roles = rest[rest.index("-- \u2500\u2500 the role") :]
    definitions = (SQL / "bigint-views.sql").read_text()
    return apply(postgres, EXISTING.read_text() + DATA, head + definitions + roles)


@pytest.fixture(scope="module")
def existing_site(postgres: Server) -> ExistingSite:
    return applied(postgres)


@pytest.fixture(scope="module")
def published(existing_site: ExistingSite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bigint")
    assert_nothing_to_mend(existing_site, folder)
    build_now(make_config(folder, source__url=existing_site.url))
    return folder / "output"


def test_each_contract_of_a_question_is_a_market_that_says_which(published: Path) -> None:
    shown = details(published, "question").items()
    assert {question: detail["market"]["resolution"] for question, detail in shown} == {
        "Who wins? Ada": None, "Who wins? Ben": None, "Rain?": "YES", "Which month? May": "NO",
        "Which month? June": "YES",
    }  # fmt: skip


def test_a_blank_label_and_a_winner_that_was_not_entered_say_nothing(existing_site: ExistingSite) -> None:
    with existing_site.server.connect(existing_site.name) as owner, owner.transaction(force_rollback=True):
        owner.execute("UPDATE exchange.questions SET winner_id = NULL; UPDATE exchange.contracts SET label = ' '")
        found = {*owner.execute("SELECT question, resolution FROM public_api.markets").fetchall()}
    assert found == {("Who wins?", None), ("Rain?", None), ("Which month?", None)}


def test_local_times_are_converted_in_summer_and_winter(published: Path) -> None:
    market = details(published, "question")["Who wins? Ada"]["market"]
    assert (market["createdAt"], market["closeTime"]) == ("2026-01-15T11:00:00.000Z", "2046-07-15T10:00:00.000Z")
    assert market["lastActivityAt"] == "2026-01-31T11:30:00.000Z"
    assert market["fills24h"] == 2


def test_a_site_without_pools_orders_and_families_has_none(published: Path) -> None:
    detail = details(published, "question")["Who wins? Ada"]
    assert (detail["market"]["poolYes"], detail["market"]["poolNo"]) == (0, 0)
    assert detail["orderBook"] == {"bids": [], "asks": []}
    assert detail["market"]["fxFamilyMember"] is None
    assert [fill["price"] for fill in detail["recentFills"]] == [None, 0.6, 0.3]
    assert [point["prob"] for point in detail["probHistory"]] == [0.3, 0.6]


def test_a_question_has_its_contracts_in_their_order_and_one_of_a_single_contract_is_none(
    existing_site: ExistingSite, published: Path, tmp_path: Path
) -> None:
    markets = {question: detail["market"]["id"] for question, detail in details(published, "question").items()}
    found, quarantine = gathered(tmp_path, existing_site.url)
    assert (found.remarks, [*quarantine]) == ([], [])
    shown = {question.title: question for question in found.questions}
    assert {title: {*question.members} for title, question in shown.items()} == {
        "Who wins?": {
            Member(markets["Who wins? Ada"], "Ada", 1, None),  # the winner that was entered is not announced
            Member(markets["Who wins? Ben"], "Ben", 2, None),
        },
        "Which month?": {
            Member(markets["Which month? May"], "May", 1, 0.0),
            Member(markets["Which month? June"], "June", 2, 1.0),
        },
    }
    assert shown["Who wins?"][1:7] == (None, None, "Who wins?", "The winner.", "exclusive", "2026-01-15T11:00:00.000Z")


def ids(reader: Any) -> list[UUID]:
    statement = "SELECT id FROM markets UNION ALL SELECT id FROM fills UNION ALL SELECT id FROM questions ORDER BY id"
    return [found for (found,) in reader.execute(statement).fetchall()]


def test_ids_are_uuids_of_which_none_is_like_another(reader: Any, published: Path) -> None:
    made = ids(reader)
    assert len({*made}) == len(made) == 5 + 3 + 2, "market 1, fill 1 and question 1 differ"
    assert {made_id.version for made_id in made} == {8}
    assert details(published).keys() < {str(made_id) for made_id in made}


def test_the_owner_finds_the_id_of_a_market_by_its_key_though_it_is_hidden(
    existing_site: ExistingSite, reader: Any, published: Path
) -> None:
    (statement,) = re.findall(r"--     (SELECT market_id FROM .*;)", (SQL / "bigint-views.sql").read_text())
    visible = {*ids(reader)}
    with existing_site.server.connect(existing_site.name) as owner:
        found = {number: owner.execute(statement.replace("= 7", f"= {number}")).fetchall() for number in range(1, 8)}
    assert [len(rows) for rows in found.values()] == [1] * 7
    assert [number for number, rows in found.items() if rows[0][0] not in visible] == [3, 7], "which are hidden"
    # They were hidden from the first build on; a market that is published has the same id there.
    assert details(published, "question")["Who wins? Ada"]["market"]["id"] == str(found[1][0][0])


def test_the_owner_finds_the_id_of_a_question_by_its_key(existing_site: ExistingSite, reader: Any) -> None:
    (statement,) = re.findall(r"--     (SELECT question_id FROM .*;)", (SQL / "bigint-views.sql").read_text())
    with existing_site.server.connect(existing_site.name) as owner:
        found = [owner.execute(statement.replace("= 7", f"= {number}")).fetchall() for number in range(1, 5)]
    assert [len(rows) for rows in found] == [1, 0, 1, 0]
    assert {*found[0], *found[2]} == {*reader.execute("SELECT id FROM questions").fetchall()}


def test_ids_depend_on_the_secret_alone(existing_site: ExistingSite, reader: Any) -> None:
    before = ids(reader)
    with existing_site.server.connect(existing_site.name) as connection:
        connection.execute("UPDATE public_api.fill_id_key SET key = key || 'x'")
        assert not {*before} & {*ids(reader)}
        connection.execute("UPDATE public_api.fill_id_key SET key = substring(key FOR 32)")
    assert ids(reader) == before


def test_the_recipes_of_the_page_work_as_written(existing_site: ExistingSite, reader: Any) -> None:
    page = PAGES["docs/recipes.md"]
    (make_id,) = re.findall(r"```sql\n(SELECT .*?)```", page, re.DOTALL)
    (clean,) = re.findall(r"`(regexp_replace\(c\.title[^`]*)`", PAGES["docs/your-database.md"])
    (add_column,) = re.findall(r"`(ALTER TABLE contracts [^`]*)`", page)
    with existing_site.server.connect(existing_site.name) as owner, owner.transaction(force_rollback=True):
        made = owner.execute(make_id.replace("'contract ' || 7", "'contract ' || 1")).fetchone()
        shown = owner.execute(f"SELECT {clean} FROM (VALUES (E'\\x1b]0;\\u009bé\\x7f\\x01?')) AS c (title)").fetchone()
        assert shown == ("]0;é?",)
        owner.execute(f"SET LOCAL search_path = exchange; {add_column}")
        assert owner.execute("SELECT count(DISTINCT public_ref) FROM contracts").fetchone() == (7,)
    assert reader.execute("SELECT id FROM markets WHERE question = 'Who wins? Ada'").fetchone() == made


def test_nothing_private_is_published_or_in_any_row(published: Path, reader: Any) -> None:
    assert_nothing_private(reader, published, questions=True)
