"""The recipes of the docs, as they are printed, on both databases: what a build makes of them."""

import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from generator.builder.report import Report
from generator.markets.questions import Member
from generator.source.relations import RELATIONS
from tests.acceptance.test_views import DATA, EXISTING
from tests.source.test_questions import gathered
from tests.support.postgres import Server
from tests.support.readers.pages import PAGES
from tests.support.sites.builds import EXTENDED, build_now, details, make_config
from tests.support.sites.question_tables import question_id
from tests.support.sites.rows import fill_id, market_id
from tests.support.sites.views import VIEWS, apply

RECIPES: Final = PAGES["docs/recipes.md"] + PAGES["docs/reading-only-what-changed.md"]
#: The blocks of each recipe, without the comment that says where they belong.
BLOCKS: Final[dict[str, list[str]]] = {
    title: re.findall(r"^```sql\n-- [^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^##? |\Z)", RECIPES, re.DOTALL | re.MULTILINE)
}

TABLES: Final = """
CREATE TABLE events (id integer PRIMARY KEY, title text, public_id {uuid}, slug text, rules text, winner_id integer,
    opened_at {time});
CREATE TABLE contracts (id integer PRIMARY KEY, public_id text, question_id integer, label text, rank integer,
    state {word}, phase {word}, closes_at {time}, yes_shares integer, no_shares integer, deleted_at {time});
CREATE TABLE outcomes (id integer PRIMARY KEY, contract_id integer, label text, price numeric, has_won boolean);
CREATE TABLE offers (contract_id integer, outcome_id integer, action text, price numeric, expires_at {time});
CREATE TABLE trades (contract_id integer, public_id text, amount integer, shares integer, deleted_at {time});
CREATE TABLE detail_versions (contract_id integer PRIMARY KEY, version {uuid});
INSERT INTO events (id, title) VALUES (1, 'Who wins?'), (2, 'Rain?');
"""
TYPES: Final[dict[str, dict[str, str]]] = {
    "sqlite": {"time": "text", "uuid": "text", "word": "text"},
    "postgresql": {"time": "timestamptz", "uuid": "uuid", "word": "word"},
}
WORDS: Final = "CREATE TYPE word AS ENUM ('open', 'live', 'frozen', 'ended', 'settled', 'void', 'draft', 'resolved');"
#: Contracts that are read by their state, by their phase, and by the rows of their outcomes.
BY_STATE, BY_PHASE, BY_OUTCOME = range(1, 6), range(11, 19), (21, 22)
PHASES: Final = ("live", "frozen", "ended", "settled", "void", "draft", "live", "frozen")
#: What the views show where no recipe says it.
PLAIN: Final[Mapping[str, str]] = {
    "slug": "CAST(NULL AS text)", "question": "'Plain?'", "description": "CAST(NULL AS text)", "status": "'resolved'",
    "approval": "'approved'", "is_listed": "true", "prob": "0.5", "volume": "0", "pool_yes": "0", "pool_no": "0",
    "close_time": "CAST('2046-01-01 00:00:00' AS {time})", "resolution": "CAST(NULL AS text)",
    "created_at": "CAST('2026-01-01 00:00:00' AS {time})", "resolved_at": "CAST(NULL AS {time})",
    "last_activity_at": "CAST('2026-01-01 00:00:00' AS {time})", "trader_count": "1",
    "trading_pause_reason": "CAST(NULL AS text)", "creation_source": "CAST(NULL AS text)",
    "sponsor": "CAST(NULL AS text)",
}  # fmt: skip


def markets(*recipes: str, source: str = "contracts AS c", condition: str) -> str:
    """A query for rows of `markets`: columns by the recipes, and plain ones."""
    named = {name for recipe in recipes for name in re.findall(r" AS (\w+)(?=,|\s*$)", recipe, re.MULTILINE)}
    recipe = ", ".join(("c.public_id AS id", *recipes))
    columns = ", ".join(name if name in {"id", *named} else f"{PLAIN[name]} AS {name}" for name in RELATIONS["markets"])
    return f"SELECT {columns} FROM (SELECT {recipe} FROM {source} WHERE {condition}) AS r"


def views() -> str:
    """The six relations, each by the recipes that make it."""
    (state, phase), (pool, _), (fill, volume) = map(
        BLOCKS.__getitem__, ("No status closed", "Prices from a pool", "Sales as negative amounts")
    )
    ((outcome, order), (question, *_)) = map(
        BLOCKS.__getitem__, ("One row per outcome", "Several markets of one question")
    )
    (soft,) = re.findall(r"`WHERE (c\.deleted_at IS NULL)`", RECIPES)
    asked = "contracts AS c JOIN events AS q ON q.id = c.question_id"
    of_outcome = f"contracts AS c JOIN ({outcome}) AS o ON o.id = c.id"
    volume = volume.replace("= c.id)", "= c.id AND t.deleted_at IS NULL)")
    rows = [
        markets(state, pool, volume, question, source=asked, condition=f"{soft} AND c.id < 11"),
        markets(phase, condition="c.id BETWEEN 11 AND 20"),
        markets("o.prob AS prob", "o.resolution AS resolution", source=of_outcome, condition="c.id > 20"),
    ]
    owned = "JOIN contracts AS c ON c.id ="
    return f"""
        CREATE VIEW markets AS {" UNION ALL ".join(rows)};
        CREATE VIEW fills AS SELECT t.public_id AS id, c.public_id AS market_id, {fill},
            CAST('2026-01-15 00:00:00' AS {{time}}) AS created_at
        FROM trades AS t {owned} t.contract_id WHERE t.deleted_at IS NULL;
        CREATE VIEW orders AS SELECT c.public_id AS market_id, {order}, 5 AS amount, true AS is_public
        FROM offers AS o JOIN outcomes AS x ON x.id = o.outcome_id {owned} o.contract_id;
        CREATE VIEW probabilities AS SELECT c.public_id AS market_id,
            CAST('2026-01-15 00:00:00' AS {{time}}) AS recorded_at, 0.5 AS prob FROM contracts AS c WHERE false;
        CREATE VIEW market_categories AS
            SELECT c.public_id AS market_id, c.label AS category, c.id AS position FROM contracts AS c WHERE false;
        CREATE VIEW fx_members AS SELECT c.public_id AS market_id, c.label AS title, c.label AS instrument,
            c.label AS source, CAST(NULL AS date) AS week_start, CAST(NULL AS date) AS week_end, 1 AS threshold_value,
            c.label AS direction, true AS is_public FROM contracts AS c WHERE false;
    """


def rows() -> Iterator[str]:
    """The rows of a site that has all the habits."""
    for number in (*BY_STATE, *BY_PHASE, *BY_OUTCOME):
        yield f"INSERT INTO contracts (id, public_id, question_id) VALUES ({number}, '{market_id(number)}', 1)"
    yield "UPDATE contracts SET state = 'open', closes_at = '2046-01-01 00:00:00', yes_shares = 380, no_shares = 620"
    for number, phase in zip(BY_PHASE, PHASES, strict=True):
        yield f"UPDATE contracts SET phase = '{phase}' WHERE id = {number}"
    yield "UPDATE contracts SET closes_at = '2020-01-01 00:00:00' WHERE id IN (2, 3, 17, 18)"
    yield "UPDATE contracts SET yes_shares = 0, no_shares = 0 WHERE id IN (2, 3)"
    yield "UPDATE contracts SET state = 'resolved' WHERE id = 3"
    yield "UPDATE contracts SET deleted_at = '2026-01-01 00:00:00' WHERE id = 4"
    yield "UPDATE contracts SET label = 'Ada' WHERE id = 1"
    yield "UPDATE contracts SET label = ' ', question_id = 2 WHERE id = 2"
    trades = [(1, 10, 20), (1, -4, -8), (1, 3, 0), (4, 7, 7)]
    for number, (contract, amount, shares) in enumerate(trades):
        yield f"INSERT INTO trades VALUES ({contract}, '{fill_id(number)}', {amount}, {shares}, NULL)"
    yield f"INSERT INTO trades VALUES (5, '{fill_id(9)}', 1, 2, '2026-01-01 00:00:00')"
    for number, won in ((21, "Yes"), (22, "No"), (1, "")):
        for label, price in (("Yes", 0.75), ("No", 0.25)):
            has_won = "true" if won == label else "false"
            values = f"{2 * number + (label == 'No')}, {number}, '{label}', {price}, {has_won}"
            yield f"INSERT INTO outcomes VALUES ({values})"
    for outcome, action, price in ((2, "buy", 0.4), (2, "sell", 0.9), (3, "buy", 0.3), (3, "sell", 0.5)):
        yield f"INSERT INTO offers VALUES (1, {outcome}, '{action}', {price}, NULL)"


@pytest.fixture
def executed(postgres: Server, tmp_path: Path) -> Callable[[str, str], str]:
    """Runs statements in a new database of a dialect, and returns its URL."""

    def executed(dialect: str, statements: str) -> str:
        statements = statements.format(**TYPES[dialect])
        if dialect == "sqlite":
            with closing(sqlite3.connect(tmp_path / "site.db")) as connection:
                connection.executescript(statements)
            return f"sqlite:///{tmp_path / 'site.db'}"
        name = postgres.create_database()
        with postgres.connect(name) as connection:
            connection.execute(WORDS + statements)
        return postgres.url(name)

    return executed


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("dialect", TYPES)
def test_sites_with_other_habits_are_mapped_by_the_recipes(
    dialect: str, executed: Callable[[str, str], str], tmp_path: Path
) -> None:
    url = executed(dialect, TABLES + ";\n".join(rows()) + ";" + views())
    report = build_now(make_config(tmp_path, source__url=url), invalid=True)
    shown = details(tmp_path / "output")

    def of(numbers: Iterator[int] | range | tuple[int, ...], field: str) -> list[Any]:
        return [shown[market_id(number)]["market"][field] if market_id(number) in shown else None for number in numbers]

    assert of(BY_STATE, "status") == ["open", "closed", "resolved", None, "open"], "4 is deleted"
    assert of(BY_STATE, "prob") == [0.62, 0.5, 0.5, None, 0.62]
    assert of(BY_STATE, "poolYes") == [380, 0, 0, None, 380]
    assert of(BY_STATE, "question") == ["Who wins? Ada", "Rain?", "Who wins?", None, "Who wins?"]
    assert of(BY_STATE, "volume") == [17, 0, 0, None, 0]
    fills = [(fill["amount"], fill["shares"], fill["price"]) for fill in shown[market_id(1)]["recentFills"]]
    assert fills == [(10, 20, 0.5), (4, 8, 0.5), (3, 0, None)]
    assert shown[market_id(5)]["recentFills"] == [], "deleted"
    book = {side: [level["price"] for level in levels] for side, levels in shown[market_id(1)]["orderBook"].items()}
    assert book == {"bids": [0.5, 0.4], "asks": [0.7, 0.9]}

    assert of(BY_PHASE, "status") == ["open", "open", "closed", "resolved", "cancelled", None, "closed", "closed"]
    assert [(row.key, row.reason) for row in report.quarantine] == [(market_id(16), "status: must not be NULL")]
    assert of(BY_OUTCOME, "prob") == [0.75, 0.75]
    assert of(BY_OUTCOME, "resolution") == ["YES", "NO"]
    assert {remark.topic for remark in report.remarks} == {"no_resolution"}


@pytest.mark.parametrize("dialect", TYPES)
def test_markets_of_one_question_are_told_to_belong_together(
    dialect: str, executed: Callable[[str, str], str], tmp_path: Path
) -> None:
    _, asked, members = BLOCKS["Several markets of one question"]
    changes = (
        f"UPDATE events SET public_id = '{question_id(1)}', slug = 'wins', rules = 'The first.' WHERE id = 1",
        "UPDATE events SET winner_id = 3, opened_at = '2026-01-01 00:00:00' WHERE id = 1",
        "DELETE FROM events WHERE id = 2",
        "UPDATE contracts SET rank = 10 - id",
        f"CREATE VIEW questions AS {asked}",
        f"CREATE VIEW question_members AS {members}",
    )
    url = executed(dialect, ";\n".join((TABLES + ";\n".join(rows()), *changes, views())))
    found, quarantine = gathered(tmp_path, url, **EXTENDED)
    assert [row.relation for row in quarantine] == ["markets"]
    (made,) = found.questions
    key, opened = "1", "2026-01-01T00:00:00.000Z"
    assert made[:7] == (question_id(1), "wins", key, "Who wins?", "The first.", "exclusive", opened)
    assert made.members[:2] == (Member(market_id(1), "Ada", 9, 0.0), Member(market_id(3), None, 7, 1.0))
    assert len(made.members) == 12


@pytest.mark.parametrize("dialect", TYPES)
def test_the_price_of_a_scoring_rule_is_that_of_its_definition_up_to_any_extreme(
    dialect: str, postgres: Server
) -> None:
    _, price = BLOCKS["Prices from a pool"]
    if dialect == "sqlite":
        price = price.replace("greatest(", "max(").replace("least(", "min(")
    kind = {"sqlite": "", "postgresql": "::double precision"}[dialect]
    sold = ("30, 10, 50", "60, 95, 100", f"0{kind}, 90000{kind}, 1{kind}", f"90000{kind}, 0{kind}, 1{kind}")
    with opened(dialect, postgres) as connection:
        made = [query(connection, f"WITH c (yes_sold, no_sold, liquidity) AS (VALUES ({row})) SELECT {price} FROM c")
                for row in sold]  # fmt: skip
        rows = "(30, NULL, 50), (NULL, 10, 50), (30, 10, NULL), (30, 10, 0)"
        unknown = query(connection, f"WITH c (yes_sold, no_sold, liquidity) AS (VALUES {rows}) SELECT {price} FROM c")
    assert unknown == [(None,)] * 4
    shares = [math.exp(30 / 50) / (math.exp(30 / 50) + math.exp(10 / 50)), 1 / (1 + math.exp(0.35)), 0, 1]
    assert [float(value) for ((value,),) in made] == pytest.approx(shares)


def test_a_market_that_never_closes_does_so_in_every_zone(postgres: Server) -> None:
    (recipe,) = BLOCKS["No closing time"]
    with closing(postgres.connect()) as connection:
        connection.execute("SET TIME ZONE 'America/New_York'")
        row = "(SELECT CAST(NULL AS timestamptz) AS closes_at, CAST(NULL AS timestamptz) AS ended_at, 'open' AS state)"
        time = f"SELECT close_time AT TIME ZONE 'UTC' FROM (SELECT {recipe} FROM {row} AS c) AS r"
        assert query(connection, time) == [(datetime(9999, 12, 31, 23, 59, 59),)]  # noqa: DTZ001 - as UTC


@pytest.mark.parametrize("dialect", TYPES)
def test_an_order_book_has_a_price_before_the_first_trade_and_counts_both_sides(dialect: str, postgres: Server) -> None:
    market, orders, points = BLOCKS["An order book"]
    trades = (
        "trades (id, contract_id, taker_id, maker_id, traded_at, price) AS (VALUES "
        "(1, 1, 7, 8, '2026-01-01 00:00:00.000100', 0.4), (2, 1, 8, 9, '2026-01-01 00:00:00.000200', 0.3), "
        "(3, 1, 7, NULL, '2026-01-01 00:00:00.001', 0.5), (4, 2, 7, 7, '2026-01-01 00:00:00.0001', 0.9))"
    )
    rows = "(VALUES (1, 0.35, 0.3, 0.4), (2, NULL, 0.5, 0.75), (3, NULL, NULL, 0.8), (4, NULL, NULL, NULL))"
    book = f"c (id, last_price, best_bid, best_ask) AS {rows}"
    with opened(dialect, postgres) as connection:
        found = query(connection, f"WITH {trades}, {book} SELECT {market} FROM c JOIN c AS b ON b.id = c.id ORDER BY 1")
        assert [(float(prob), count) for prob, count in found] == [(0.35, 3), (0.5, 0), (0.625, 1), (0.8, 0)]
        expires = {"sqlite": "'2046-01-01 00:00:00'", "postgresql": "timestamptz '2046-01-01'"}[dialect]
        past = expires.replace("2046", "2020")
        orders_of = (f"0.4, 1, {expires}", "0.5, 1, NULL", f"0.4, 1, {past}", "0.004, 1, NULL", "0.4, 0, NULL")
        values = ", ".join(f"({order})" for order in orders_of)
        offers = f"o (price, remaining, expires_at) AS (VALUES {values})"
        shown = query(connection, f"WITH {offers} SELECT price FROM o {orders} ORDER BY price")
        assert [float(price) for (price,) in shown] == [0.4, 0.5]
        if dialect == "postgresql":
            timed = trades.replace("', 0.", "'::timestamptz, 0.")
            found = query(
                connection, f"WITH {timed} SELECT market_id, prob FROM ({points}) AS p ORDER BY market_id, recorded_at"
            )
            assert [(key, float(prob)) for key, prob in found] == [(1, 0.3), (1, 0.5), (2, 0.9)]


@pytest.mark.parametrize("dialect", TYPES)
def test_a_job_shows_the_markets_whose_day_has_come(dialect: str, postgres: Server) -> None:
    (recipe,) = BLOCKS["Published later"]
    with opened(dialect, postgres) as connection:
        connection.execute("CREATE TEMPORARY TABLE contracts (id integer, visible_from timestamp, is_visible boolean)")
        connection.execute(
            "INSERT INTO contracts VALUES (1, '2020-01-01 00:00:00', false), (2, '2046-01-01 00:00:00', false), "
            "(3, '2046-01-01 00:00:00', true), (4, NULL, false)"
        )
        connection.execute(recipe)
        assert query(connection, "SELECT id FROM contracts WHERE is_visible ORDER BY id") == [(1,), (3,)]


def opened(dialect: str, postgres: Server) -> closing[Any]:
    """A connection to a database of the dialect, which is closed at the end of the block."""
    return closing(postgres.connect() if dialect == "postgresql" else sqlite3.connect(":memory:"))


def query(connection: Any, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    return [*connection.execute(statement).fetchall()]


@pytest.mark.parametrize(("dialect", "block"), [("sqlite", 0), ("postgresql", 1), ("postgresql", 2)])
def test_tags_in_one_column_become_categories(dialect: str, block: int, postgres: Server) -> None:
    recipe = BLOCKS["Tags in one column"][block]
    tags = {"a": "Sport, Rain ,,sport", "b": 'the "Cup", it\'s [1]', "c": "", "d": None}
    values = {key: sql(text) for key, text in tags.items()}
    if block == 2:
        lists = {key: None if text is None else json.dumps(text.split(",")) for key, text in tags.items()}
        values = {key: f"CAST({sql(text)} AS jsonb)" for key, text in ({"e": '{"f": "g"}'} | lists).items()}
    rows = ", ".join(f"('{key}', {value})" for key, value in values.items())
    statement = f"WITH contracts (public_id, tags) AS (VALUES {rows}) {recipe}"
    with opened(dialect, postgres) as connection:
        found = {(key, name, place) for key, name, place in query(connection, statement)}
    first = 1 if dialect == "postgresql" else 0
    assert {(key, name, place - first) for key, name, place in found} == {
        ("a", "Sport", 0), ("a", "Rain", 1), ("b", 'the "Cup"', 0), ("b", "it's [1]", 1)
    }  # fmt: skip


@pytest.mark.parametrize("dialect", TYPES)
def test_the_price_of_stakes_in_a_common_pool_is_their_part_on_yes(dialect: str, postgres: Server) -> None:
    market, points = BLOCKS["Stakes in a common pool"]
    trades = (
        "trades (id, contract_id, traded_at, side, amount) AS (VALUES (1, 7, '2026-01-01', 'no', 100), "
        "(3, 7, '2026-01-02', 'yes', 60), (2, 7, '2026-01-02', 'yes', 240), (4, 8, '2026-01-01', 'yes', 0))"
    )
    with opened(dialect, postgres) as connection:
        pools = "c (id, yes_stakes, no_stakes) AS (VALUES (1, 300, 100), (2, 0, 0))"
        now = query(connection, f"WITH {pools} SELECT {market} FROM c ORDER BY id")
        history = query(connection, f"WITH {trades} SELECT prob FROM ({points}) AS p ORDER BY recorded_at, prob")
    assert [float(prob) for (prob,) in now] == [0.75, 0.5]
    assert [float(prob) for (prob,) in history] == pytest.approx([0, 240 / 340, 0.75])


def sql(text: str | None) -> str:
    """A text as SQL writes it."""
    return "NULL" if text is None else "'{}'".format(text.replace("'", "''"))


NEVER: Final = "9999-12-31 23:59:59"
(UNDONE,) = re.findall(r"`(t\.reversed_by IS NULL [^`]*)`", RECIPES)
#: Small recipes: with these rows, what they select, and what that is.
SMALL: Final[dict[str, tuple[str, str, list[Any]]]] = {
    "No closing time": (
        """c (id, state, closes_at, ended_at) AS (VALUES (1, 'open', CAST('2026-03-01 00:00:00' AS {time}),
            CAST(NULL AS {time})), (2, 'open', NULL, NULL), (3, 'settled', NULL, '2026-02-01 00:00:00'),
            (4, 'settled', NULL, NULL))""",
        f"{BLOCKS['No closing time'][0]} FROM c",
        ["2026-03-01 00:00:00", NEVER, "2026-02-01 00:00:00", NEVER],
    ),
    "Paused and halted": (
        "c (id, is_paused, pause_note) AS (VALUES (1, true, 'Late'), (2, true, ' '), (3, true, NULL), (4, false, 'X'))",
        f"{BLOCKS['Paused and halted'][0]} FROM c",
        ["Paused: Late", "Paused", "Paused", None],
    ),
    "A trade that was undone by another row": (
        "trades (id, reversed_by) AS (VALUES (1, NULL), (2, 3), (3, CAST(NULL AS integer)), (4, NULL))",
        f"t.id FROM trades AS t WHERE {UNDONE}",
        ["1", "4"],
    ),
}


@pytest.mark.parametrize("title", SMALL)
@pytest.mark.parametrize("dialect", TYPES)
def test_a_small_recipe_gives_what_it_says(title: str, dialect: str, postgres: Server) -> None:
    rows, selected, expected = SMALL[title]
    time = {"sqlite": "text", "postgresql": "timestamp"}[dialect]
    with opened(dialect, postgres) as connection:
        found = query(connection, f"WITH {rows.format(time=time)} SELECT {selected} ORDER BY id")
    assert [value and str(value).removesuffix("Z") for (value,) in found] == expected


# ── versions, and what depends on time ────────────────────────────────────────────────────────────────────────────


def timed(version: str) -> str:
    """Views of one market with orders that expire."""
    plain = ", ".join(f"{value} AS {name}" for name, value in PLAIN.items() if name != "status")
    return (
        views()[views().index("CREATE VIEW fills") :].replace(
            "FROM offers AS o", "FROM (SELECT * FROM offers AS o WHERE o.expires_at > CURRENT_TIMESTAMP) AS o"
        )
        + f"""CREATE VIEW markets AS
        SELECT c.public_id AS id, 'open' AS status, {plain}, {version} FROM contracts AS c WHERE c.id = 1;
        INSERT INTO contracts (id, public_id) VALUES (1, '{market_id(1)}');
        INSERT INTO detail_versions VALUES (1, '{market_id(7)}');
        INSERT INTO outcomes VALUES (1, 1, 'Yes', 0.5, NULL);
        INSERT INTO offers VALUES (1, 1, 'buy', 0.4, '2046-01-01 00:00:00');
    """
    )


PASSED: Final = "UPDATE offers SET expires_at = '2020-01-01 00:00:00'"


@pytest.mark.parametrize("is_told", [True, False])
def test_a_version_that_says_what_the_clock_decides_keeps_its_promise(
    executed: Callable[[str, str], str], tmp_path: Path, *, is_told: bool
) -> None:
    (version,) = BLOCKS["Views that depend on time"]
    url = executed("sqlite", TABLES + timed(version if is_told else "'same' AS detail_version"))

    def build() -> Report:
        return build_now(make_config(tmp_path, source__url=url, source__audit=0), shrink=True)

    assert [build().details.read, build().details.read] == [1, 0]
    with closing(sqlite3.connect(tmp_path / "site.db", isolation_level=None)) as connection:
        connection.execute(PASSED)  # as the clock does it: no trigger fires
    assert build().details.read == is_told
    assert details(tmp_path / "output")[market_id(1)]["orderBook"]["bids"] == (
        [] if is_told else [{"price": 0.4, "amount": 5}]
    )


def test_a_digest_of_what_the_view_shows_changes_with_it_and_with_nothing_else(postgres: Server) -> None:
    (recipe,) = BLOCKS["A version of rows without triggers"]
    place = "-- ── the role"
    assert VIEWS.read_text().count(place) == 1
    dropped = VIEWS.read_text().replace("    public_api.markets,", "    public_api.markets, public_api.market_rows,", 1)
    site = apply(postgres, EXISTING.read_text() + DATA, dropped.replace(place, recipe + place))
    with closing(site.as_reader()) as reader, closing(site.server.connect(site.name)) as owner:

        def versions() -> dict[str, str]:
            return dict(reader.execute("SELECT question, market_version FROM markets").fetchall())

        before = versions()
        for change, told in {
            "UPDATE app.contracts SET rules = 'Ours' WHERE contract_id = 1": {"Rain?"},
            "UPDATE app.contract_topics SET rank = rank + 1 WHERE contract_id = 1": {"Rain?"},
            "UPDATE app.price_history SET chance_bp = 1": set(),
            "UPDATE app.users SET email = email || 'x'": set(),
        }.items():
            owner.execute(change)
            after = versions()
            assert {question for question in after if after[question] != before.get(question)} == told, change
            before = after


# ── of one database ───────────────────────────────────────────────────────────────────────────────────────────────

SUMMER_AND_WINTER: Final = {
    "2026-01-15 12:00:00": "2026-01-15 11:00:00", "2026-03-29 01:59:59": "2026-03-29 00:59:59",
    "2026-03-29 03:00:00": "2026-03-29 01:00:00", "2026-07-15 12:00:00": "2026-07-15 10:00:00",
    "2026-10-25 01:59:59": "2026-10-24 23:59:59", "2026-10-25 03:00:00": "2026-10-25 02:00:00",
    "2029-03-25 03:00:00": "2029-03-25 01:00:00", "2032-10-31 02:00:00": "2032-10-31 00:00:00",
}  # fmt: skip


def test_local_and_unix_times_become_utc(postgres: Server) -> None:
    of_postgresql, of_sqlite = BLOCKS["Local times and Unix times"]
    with closing(sqlite3.connect(":memory:")) as ours, postgres.connect() as theirs:
        theirs.execute("SET TIME ZONE 'America/New_York'")
        for local, utc in SUMMER_AND_WINTER.items():
            row = f"(SELECT '{local}' AS opened_at, 1767225600999 AS closes_ms) AS c"
            assert ours.execute(f"SELECT {of_sqlite} FROM {row}").fetchone() == (utc, "2026-01-01 00:00:00")
            if local != "2032-10-31 02:00:00":  # which comes twice
                typed = row.replace(f"'{local}'", f"timestamp '{local}'")
                found = f"SELECT created_at AT TIME ZONE 'UTC' FROM (SELECT {of_postgresql} FROM {typed}) AS r"
                assert str(theirs.execute(found).fetchone()[0]) == utc


def test_a_file_of_its_own_is_filled_from_one_whose_tables_have_the_same_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (recipe,), (empty,) = BLOCKS["Tables named like the relations"], BLOCKS["What your site does not have"]
    with closing(sqlite3.connect("site.db", isolation_level=None)) as site:
        site.executescript("CREATE TABLE markets (public_id, title); INSERT INTO markets VALUES ('a', 'A?')")
        for title in ("A?", "B?"):
            site.execute("UPDATE markets SET title = ?", [title])
            with closing(sqlite3.connect("file:public.db", isolation_level=None, uri=True)) as public:
                public.executescript(recipe)
                assert public.execute("SELECT id, question FROM markets").fetchall() == [("a", title)]
        site.executescript(empty)
        assert site.execute("SELECT * FROM market_categories").fetchall() == []


def test_a_migration_meets_the_views_in_one_transaction(postgres: Server) -> None:
    (recipe,) = BLOCKS["Migrations that meet the views"]
    site = apply(postgres, EXISTING.read_text() + DATA, VIEWS.read_text())
    (change,) = re.findall(r"^ALTER TABLE .*?;$", recipe, re.MULTILINE)
    with site.server.connect(site.name) as owner:
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="used by a view"):
            owner.execute(change)
        owner.execute(recipe.replace("\\i postgresql-views.sql", ""))
        owner.execute(VIEWS.read_text())
        owner.execute("ALTER TABLE app.contracts RENAME turnover_cents TO turnover")
    with closing(site.as_reader()) as reader:
        assert reader.execute("SELECT count(volume) FROM markets").fetchone() == (8,)
