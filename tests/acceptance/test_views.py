"""The example views over an existing schema: what they publish, what its role is refused, what they leave alone."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from generator.builder import executors
from generator.markets.row_validation import pause_reason
from generator.source.relations import RELATIONS
from tests.support.commands import run
from tests.support.postgres import PASSWORD, Server
from tests.support.project import ROOT
from tests.support.sites.builds import details
from tests.support.sites.views import (
    HARDENING,
    READER,
    VIEWS,
    ExistingSite,
    apply,
    assert_nothing_private,
    assert_nothing_to_mend,
)

EXISTING: Final = ROOT / "tests" / "support" / "existing_schema.sql"
#: In everything that must not be published.
CANARY: Final = "CANARY"

TRADING, HALTED, SETTLED, VOIDED, CURRENCY, ENDLESS = (f"0000000{n}-0000-4000-8000-000000000000" for n in range(1, 7))
#: Their outcome is entered but not announced: one still open, one closed.
EARLY: Final = ("0000000a-0000-4000-8000-000000000000", "0000000b-0000-4000-8000-000000000000")
BETS: Final = [f"0000000{n}-0000-4000-9000-000000000000" for n in range(1, 5)]
HIDDEN: Final = {
    "draft": "'draft', true, NULL", "deleted": "'trading', true, '2026-01-01Z'",
    "unlisted": "'trading', false, NULL", "queued": "'trading', true, NULL", "refused": "'trading', true, NULL",
}  # fmt: skip
DATA: Final = f"""
INSERT INTO app.users (email, password_hash)
VALUES ('{CANARY}@one.test', '{CANARY}'), ('{CANARY}@two.test', '{CANARY}');
INSERT INTO app.contracts (public_ref, url_name, title, rules, state, outcome, chance_bp, turnover_cents,
    reserve_yes_cents, reserve_no_cents, opened_at, trading_ends_at, settled_at, last_trade_at, halt_notice, owner_id)
VALUES
    ('{TRADING}', 'rain', 'Rain?', 'If it rains.', 'trading', NULL, 6250, 123456, 1050, 999,
     '2026-01-01 10:00+02', '2026-06-30 23:59:59Z', NULL, '2026-01-31 11:00Z', '{CANARY}', 1),
    ('{HALTED}', NULL, 'Halted?', NULL, 'halted', NULL, 1, 0, 1, 2,
     '2026-01-02Z', '2026-06-30Z', NULL, NULL, 'Under review', 1),
    ('{SETTLED}', NULL, 'Settled?', NULL, 'settled', 'yes', 10000, 5, 1, 2,
     '2025-01-02Z', '2025-06-30Z', '2025-07-01Z', '2025-06-01Z', NULL, 1),
    ('{VOIDED}', NULL, 'Voided?', NULL, 'voided', 'refund', 0, 5, 1, 2,
     '2025-01-02Z', '2025-06-30Z', '2025-07-01Z', '2025-06-01Z', NULL, 1),
    ('{CURRENCY}', NULL, 'EUR/USD at 1.08?', NULL, 'trading', NULL, 5000, 5, 1, 2,
     '2026-01-03Z', '2026-02-06Z', NULL, NULL, NULL, 1),
    ('{ENDLESS}', NULL, 'Ever?', NULL, 'expired', NULL, 5000, 5, 1, 2, '2026-01-03Z', 'infinity', NULL, NULL, NULL, 1);
INSERT INTO app.contracts (title, state, is_searchable, deleted_at, chance_bp, reserve_yes_cents, reserve_no_cents,
    owner_id)
VALUES {", ".join(f"('{CANARY} {name}', {values}, 5000, 1, 1, 1)" for name, values in HIDDEN.items())};
INSERT INTO app.contracts (public_ref, title, state, outcome, chance_bp, turnover_cents, reserve_yes_cents,
    reserve_no_cents, opened_at, trading_ends_at, settled_at, last_trade_at, owner_id)
VALUES
    ('{EARLY[0]}', 'Early?', 'trading', 'yes', 5000, 5, 1, 2, '2026-01-04Z', '2026-06-30Z',
     '2026-01-30 01:02:03Z', NULL, 1),
    ('{EARLY[1]}', 'Early, too?', 'expired', 'refund', 5000, 5, 1, 2, '2026-01-04Z', '2026-01-20Z',
     '2026-01-30 01:02:03Z', '2026-01-19Z', 1);
INSERT INTO app.moderation (contract_id, verdict, moderator_id, note)
SELECT contract_id,
    (CASE WHEN title LIKE '%queued' THEN 'queued' WHEN title LIKE '%refused' THEN 'refused' ELSE 'passed'
     END)::app.verdict,
    1, '{CANARY}'
FROM app.contracts;
INSERT INTO app.topics (label) VALUES ('weather');
INSERT INTO app.contract_topics (contract_id, topic_id, rank) SELECT contract_id, 1, 1 FROM app.contracts;
INSERT INTO app.currency_series (name, pair, rate_source, is_published)
VALUES ('EUR/USD weekly', 'EURUSD', 'ECB', true), ('{CANARY}', 'XXXYYY', '{CANARY}', false);
INSERT INTO app.currency_legs
VALUES (5, 1, '[2026-02-02,2026-02-06]', 1.08, true), (1, 2, '[2026-02-02,2026-02-06]', 2, true);
INSERT INTO app.order_book_entries
    (contract_id, user_id, direction, price_cents, remaining_cents, is_hidden, cancelled_at)
VALUES (1, 1, 'buy', 60, 1050, false, NULL), (1, 2, 'buy', 60, 50, false, NULL), (1, 2, 'buy', 55, 1, false, NULL),
    (1, 1, 'sell', 65, 700, false, NULL), (1, 1, 'sell', 1, 77700, true, NULL), (1, 1, 'sell', 2, 77700, false, now()),
    (7, 1, 'sell', 3, 77700, false, NULL);
INSERT INTO app.bets (bet_id, contract_id, user_id, stake_cents, shares, price_cents, placed_at, undone_at)
VALUES ('{BETS[0]}', 1, 1, 1234, 20.5, 62, '2026-01-31 11:00:00.123456Z', NULL),
    ('{BETS[1]}', 1, 2, 100, 2, NULL, '2026-01-29 11:00Z', NULL),
    ('{BETS[2]}', 1, 2, 777, 2, NULL, '2026-01-31 11:00Z', now()),
    ('{BETS[3]}', 3, 2, 100, 2, NULL, '2025-05-29 11:00Z', NULL);
UPDATE app.bets SET matched_bet_id = other FROM (VALUES ('{BETS[0]}'::uuid, '{BETS[1]}'::uuid),
    ('{BETS[1]}', '{BETS[0]}'), ('{BETS[3]}', '{BETS[3]}')) AS pairs (bet, other) WHERE bet_id = bet;
INSERT INTO app.price_history SELECT contract_id, '2026-01-01Z', 5000 FROM app.contracts;
INSERT INTO app.price_history VALUES (1, '2026-01-31 11:00Z', 6250);
CREATE FUNCTION app.secrets() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT min(email) FROM app.users';
CREATE FUNCTION public.secrets() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT app.secrets()';
CREATE TABLE public.notes AS SELECT '{CANARY}' AS note;
"""


@pytest.fixture(scope="module")
def existing_site(postgres: Server) -> ExistingSite:
    return apply(postgres, EXISTING.read_text() + DATA, VIEWS.read_text())


@pytest.fixture(scope="module")
def published(existing_site: ExistingSite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of a build as the reader."""
    folder = tmp_path_factory.mktemp("views")
    assert_nothing_to_mend(existing_site, folder, warnings=1)  # open past its close_time
    given = {"PUBLIC_MARKETS_SOURCE__URL": existing_site.url}
    built = run("build", "--as-of", "2026-01-31T12:00:00Z", cwd=folder, **given)
    assert (built.returncode, built.stderr) == (0, "")
    assert built.stdout.startswith("built 8 markets as of 2026-01-31T12:00:00.000Z: ")
    return folder / "output"


def test_cents_basis_points_and_enums_reach_the_reader_in_our_units_and_words(published: Path) -> None:
    detail = details(published)[TRADING]
    assert detail["market"] == {
        "id": TRADING, "question": "Rain?", "status": "open", "prob": 0.625, "volume": 1234.56,
        "closeTime": "2026-06-30T23:59:59.000Z", "resolution": None, "createdAt": "2026-01-01T08:00:00.000Z",
        "resolvedAt": None, "lastActivityAt": "2026-01-31T11:00:00.000Z", "traderCount": 2, "fills24h": 1,
        "acceptingBets": True, "description": "If it rains.", "poolYes": 10.5, "poolNo": 9.99,
        "tradingPauseReason": None, "fxFamilyMember": None,
    }  # fmt: skip
    assert detail["orderBook"] == {
        "bids": [{"price": 0.6, "amount": 11.0}, {"price": 0.55, "amount": 0.01}],
        "asks": [{"price": 0.65, "amount": 7.0}],
    }
    surrogates = {fill.pop("id") for fill in detail["recentFills"]}
    assert len(surrogates - {*BETS}) == 2
    assert detail["recentFills"] == [
        {"amount": 12.34, "shares": 20.5, "price": 0.62, "timestamp": "2026-01-31T11:00:00.123Z"},
        {"amount": 1.0, "shares": 2.0, "price": None, "timestamp": "2026-01-29T11:00:00.000Z"},
    ]
    assert detail["probHistory"] == [
        {"timestamp": "2026-01-01T00:00:00.000Z", "prob": 0.5},
        {"timestamp": "2026-01-31T11:00:00.000Z", "prob": 0.625},
    ]


@pytest.mark.parametrize(
    ("market_id", "status", "resolution", "accepts", "pause"),
    [
        (HALTED, "open", None, False, "Trading is halted: Under review"),
        (SETTLED, "resolved", "YES", False, None),
        (VOIDED, "cancelled", "CANCEL", False, None),
        (ENDLESS, "closed", None, False, None),
    ],
)
def test_every_state_has_its_word(
    published: Path, market_id: str, status: str, resolution: str | None, *, accepts: bool, pause: str | None
) -> None:
    market = details(published)[market_id]["market"]
    assert (market["status"], market["resolution"]) == (status, resolution)
    assert (market["acceptingBets"], market["tradingPauseReason"]) == (accepts, pause)
    assert (market["closeTime"] == "9999-12-31T23:59:59.000Z") is (market_id == ENDLESS)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("notice", ["", " ", "\t\r\n", "\u00a0", "\u3000"])
def test_a_market_that_is_halted_with_a_blank_notice_accepts_no_bets(existing_site: ExistingSite, notice: str) -> None:
    with closing(existing_site.server.connect(existing_site.name)) as owner, owner.transaction(force_rollback=True):
        owner.execute("UPDATE app.contracts SET halt_notice = %s WHERE public_ref = %s", [notice, HALTED])
        owner.execute("UPDATE app.contracts SET sponsored_by = ' ', origin = '' WHERE public_ref = %s", [HALTED])
        found = owner.execute(
            "SELECT trading_pause_reason, sponsor, creation_source FROM public_api.markets WHERE id = %s", [HALTED]
        ).fetchone()
    assert found[1:] == (None, None)
    assert (pause_reason(found[0]) or "").startswith("Trading is halted")


def test_an_outcome_that_was_entered_but_not_announced_is_in_no_view(reader: Any) -> None:
    found = reader.execute(
        "SELECT resolution, resolved_at, last_activity_at::text FROM markets WHERE id = ANY(%s::uuid[]) ORDER BY id",
        [[*EARLY]],
    ).fetchall()
    assert found == [(None, None, "2026-01-04 00:00:00+00"), (None, None, "2026-01-19 00:00:00+00")]


def test_no_id_of_a_bet_is_in_any_byte_of_the_output(published: Path) -> None:
    bets = [bet.encode() for bet in BETS]
    assert not [path for path in published.rglob("*") if path.is_file() and any(map(path.read_bytes().count, bets))]


def test_a_fill_has_the_same_surrogate_at_every_run_of_the_example(existing_site: ExistingSite, reader: Any) -> None:
    before = reader.execute("SELECT id::text FROM fills ORDER BY id").fetchall()
    assert len({*before}) == len(before) == 3
    assert all(fill_id[14] == "8" and fill_id[19] == "a" for (fill_id,) in before), "UUIDs, version 8"
    with existing_site.server.connect(existing_site.name) as connection:
        connection.execute(VIEWS.read_text())
    assert reader.execute("SELECT id::text FROM fills ORDER BY id").fetchall() == before


def granted(site: ExistingSite) -> Any:
    with site.server.connect(site.name) as connection:
        return connection.execute(
            """
            SELECT c.relname, c.relacl::text,
                array_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum)
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
            WHERE c.relnamespace = 'public_api'::regnamespace GROUP BY 1, 2 ORDER BY 1
            """
        ).fetchall()


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ("c.chance_bp * 0.0001   ", "(c.chance_bp / 1e4)::real"),
        ("    b.shares,\n", "    b.shares::double precision,\n"),
        ("nullif(btrim(c.sponsored_by), '')                            AS sponsor", "NULL::varchar AS funder"),
        (",\n    nullif(btrim(c.sponsored_by), '')                            AS sponsor", ""),
    ],
    ids=["a cast", "another cast", "a name", "fewer columns"],
)
def test_the_example_can_be_run_again_whatever_changed_in_it(
    existing_site: ExistingSite, reader: Any, now: str, then: str
) -> None:
    before, views = granted(existing_site), VIEWS.read_text()
    assert now in views
    with existing_site.server.connect(existing_site.name) as connection:
        for script in (views.replace(now, then), views):
            connection.execute(script)
            assert len(reader.execute("SELECT id FROM markets").fetchall()) == 8
    assert granted(existing_site) == before


def test_the_example_gives_up_before_a_build_that_waits_for_it(reader: Any) -> None:
    (waits,) = re.findall(r"SET LOCAL lock_timeout = '(\d+)s'", VIEWS.read_text())
    (allowed,) = reader.execute("SHOW lock_timeout").fetchone()
    assert int(waits) < int(allowed.removesuffix("s"))


def test_without_the_key_a_fill_does_not_lead_to_its_bet(existing_site: ExistingSite, reader: Any) -> None:
    (known,) = reader.execute("SELECT array_agg(id::text) FROM fills").fetchone()
    with existing_site.server.connect(existing_site.name) as connection:
        keys = connection.execute("SELECT length(key) FROM public_api.fill_id_key").fetchall()
        connection.execute("UPDATE public_api.fill_id_key SET key = key || 'x'")
        (others,) = reader.execute("SELECT array_agg(id::text) FROM fills").fetchone()
        connection.execute("UPDATE public_api.fill_id_key SET key = substring(key FOR 32)")
    assert keys == [(32,)]
    assert not {*known} & {*others}


def test_a_published_series_is_a_family_whose_week_ends_on_its_last_day(published: Path) -> None:
    assert details(published)[CURRENCY]["market"]["fxFamilyMember"] == {
        "title": "EUR/USD weekly", "instrument": "EURUSD", "source": "ECB", "weekStart": "2026-02-02",
        "weekEnd": "2026-02-06", "thresholdValue": 1.08, "direction": "gte",
    }  # fmt: skip
    assert details(published)[TRADING]["market"]["fxFamilyMember"] is None, "that series is not published"


def test_nothing_private_is_published_or_in_any_row(published: Path, reader: Any) -> None:
    assert_nothing_private(reader, published)
    assert all(reader.execute(f"SELECT count(*) > 0 FROM {view}").fetchone()[0] for view in RELATIONS)


def test_the_reader_holds_select_on_the_six_views_and_nothing_else(existing_site: ExistingSite) -> None:
    with existing_site.server.connect(existing_site.name) as connection:
        held = connection.execute(
            """
            SELECT n.nspname, c.relname, array_agg(p ORDER BY p)
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
                unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS p
            WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
                AND has_table_privilege(%(reader)s, c.oid, p)
            GROUP BY 1, 2 ORDER BY 1, 2
            """,
            {"reader": READER},
        ).fetchall()
        schemas = connection.execute(
            """
            SELECT nspname FROM pg_namespace
            WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND has_schema_privilege(%s, oid, 'USAGE')
            """,
            [READER],
        ).fetchall()
    assert held == [("public_api", view, ["SELECT"]) for view in sorted(RELATIONS)]
    assert schemas == [("public_api",)]


def test_the_reader_is_refused_all_else(reader: Any) -> None:
    # Read-only is a default that the role can change: the privileges must refuse.
    reader.execute("SET default_transaction_read_only = off")
    for statement in (
        "SELECT email FROM app.users", "SELECT app.secrets()", "SELECT public.secrets()", "SELECT * FROM public.notes",
        "SELECT * FROM public_api.visible_contracts", "SELECT * FROM public_api.fill_id_key",
        "TABLE pg_catalog.pg_authid", "TABLE pg_catalog.pg_largeobject", "SELECT pg_read_file('/etc/hostname')",
        "SELECT lo_import('/etc/hostname')", "COPY (SELECT 1) TO PROGRAM 'true'", "SET ROLE admin",
        f"GRANT SELECT ON app.users TO {READER}", "DELETE FROM app.bets", "DROP VIEW public_api.markets",
        "CREATE TABLE public_api.mine (id int)", "CREATE TABLE public.mine (id int)",
        "CREATE TEMPORARY TABLE mine (id int)", "CREATE SCHEMA mine", "CREATE ROLE mine", "CREATE EXTENSION dblink",
    ):  # fmt: skip
        with pytest.raises(InsufficientPrivilege):
            reader.execute(statement)


def test_the_reader_is_read_only_and_bounded_unless_it_says_otherwise(reader: Any) -> None:
    names = "default_transaction_read_only", "statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout"
    values = [reader.execute(f"SHOW {name}").fetchone()[0] for name in names]
    assert values == ["on", "10min", "5min", "10s"]


def test_a_condition_that_fails_on_purpose_sees_no_hidden_row(reader: Any, existing_site: ExistingSite) -> None:
    trap = "CASE WHEN {} LIKE 'CANARY%' THEN {}::integer ELSE 1 END = 1"
    with (
        existing_site.server.connect(existing_site.name) as owner,
        pytest.raises(psycopg.errors.InvalidTextRepresentation, match=CANARY),
    ):
        owner.execute(f"SELECT count(*) FROM app.contracts WHERE {trap.format('title', 'title')}")
    seen = reader.execute(f"SELECT count(*) FROM markets WHERE {trap.format('question', 'question')}").fetchone()
    assert seen == (8,)


def test_the_number_of_connections_is_the_one_that_is_stated(existing_site: ExistingSite) -> None:
    names = {9: "nine"}
    assert f"up to {names[executors.WORKERS + 1]} connections" in VIEWS.read_text()
    assert f"up to {names[executors.WORKERS + 1]} connections" in (ROOT / "docs" / "your-database.md").read_text()
    with existing_site.server.connect(existing_site.name) as connection:
        limit = connection.execute("SELECT rolconnlimit FROM pg_roles WHERE rolname = %s", [READER]).fetchone()
    assert limit == (executors.WORKERS + 1 + 1,), "one more, for `check`"


# ── what changes for a site that was there before: nothing, until its owner asks for more ─────────────────────────────


#: Roles are the whole server's, so this site has its own: who owns it, its application, somebody else, and our reader.
OWNER, APPLICATION, STRANGER, OUR_READER = "rights_owner", "rights_application", "rights_stranger", "rights_reader"
BEFORE: Final = f"""
CREATE ROLE {OWNER} LOGIN CREATEROLE PASSWORD '{PASSWORD}';
CREATE ROLE {APPLICATION} LOGIN PASSWORD '{PASSWORD}';
CREATE ROLE {STRANGER} LOGIN PASSWORD '{PASSWORD}';
CREATE FUNCTION public.shout(word text) RETURNS text LANGUAGE sql AS 'SELECT upper(word)';
GRANT CREATE ON SCHEMA public TO PUBLIC;  -- as before PostgreSQL 15
CREATE TABLE public.notes (note text);
ALTER TABLE public.notes OWNER TO {STRANGER};
GRANT SELECT ON public.notes TO PUBLIC;
CREATE SCHEMA strange AUTHORIZATION {STRANGER};
GRANT USAGE ON SCHEMA strange TO PUBLIC;
"""
EVERYTHING_GRANTED: Final = """
SELECT 'database', datname, datacl::text FROM pg_database WHERE datname = current_database()
UNION ALL SELECT 'schema', nspname, nspacl::text FROM pg_namespace WHERE nspname <> 'public_api'
UNION ALL SELECT 'relation', oid::regclass::text, relacl::text FROM pg_class WHERE relkind IN ('r', 'v', 'S')
    AND relnamespace NOT IN ('pg_toast'::regnamespace, coalesce(to_regnamespace('public_api'), 0))
UNION ALL SELECT 'function', oid::regprocedure::text, proacl::text FROM pg_proc WHERE proacl IS NOT NULL
ORDER BY 1, 2
"""
#: What an application does that has no rights but those of PUBLIC.
DAILY_WORK: Final = (
    "CREATE TEMPORARY TABLE mine (id int)",
    "SELECT public.shout('x')",
    "CREATE TABLE public.work (id int); DROP TABLE public.work",
    "SELECT * FROM public.notes",
)


@pytest.fixture(scope="module")
def existing_database(postgres: Server) -> Iterator[str]:
    """A database whose owner is no superuser, with somebody else's table in `public`."""
    name = postgres.create_database()
    with closing(postgres.connect(name)) as admin:
        admin.execute(BEFORE)
        admin.execute(f"ALTER DATABASE {name} OWNER TO {OWNER}")
    with closing(postgres.connect(name, OWNER)) as owner:
        owner.execute(EXISTING.read_text())
    yield name
    with closing(postgres.connect()) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        admin.execute(f"DROP ROLE IF EXISTS {OWNER}, {APPLICATION}, {STRANGER}, {OUR_READER}")


def everything_granted(server: Server, site: str) -> Any:
    with closing(server.connect(site)) as admin:
        return admin.execute(EVERYTHING_GRANTED).fetchall()


def run_as(server: Server, site: str, role: str, *scripts: str) -> None:
    with closing(server.connect(site, role)) as connection:
        for script in scripts:
            connection.execute(script.replace(READER, OUR_READER))


def test_the_views_change_no_right_outside_their_schema(postgres: Server, existing_database: str) -> None:
    before = everything_granted(postgres, existing_database)
    assert len(before) > 100
    run_as(postgres, existing_database, OWNER, VIEWS.read_text(), VIEWS.read_text())
    assert everything_granted(postgres, existing_database) == before
    run_as(postgres, existing_database, APPLICATION, *DAILY_WORK)


def test_hardening_takes_from_the_reader_alone(postgres: Server, existing_database: str) -> None:
    run_as(postgres, existing_database, OWNER, VIEWS.read_text(), HARDENING.read_text(), HARDENING.read_text())
    run_as(postgres, existing_database, APPLICATION, *DAILY_WORK)
    with closing(postgres.connect(existing_database)) as admin:
        admin.execute(f"ALTER ROLE {OUR_READER} PASSWORD '{PASSWORD}'")
    for statement in DAILY_WORK:
        with pytest.raises(InsufficientPrivilege):
            run_as(postgres, existing_database, OUR_READER, "SET default_transaction_read_only = off", statement)
    run_as(postgres, existing_database, OUR_READER, "SELECT * FROM markets")


def test_hardening_fails_whole_where_a_schema_is_another_role_s(postgres: Server, existing_database: str) -> None:
    before = everything_granted(postgres, existing_database)
    with pytest.raises(psycopg.errors.RaiseException, match="SCHEMA strange is another role's"):
        run_as(postgres, existing_database, OWNER, HARDENING.read_text().replace("'app'", "'strange'"))
    assert everything_granted(postgres, existing_database) == before
