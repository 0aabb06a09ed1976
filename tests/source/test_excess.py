"""`check` names the rights of the database user that no build needs, and where row level security binds it."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from generator.markets.quarantine import Quarantine
from generator.source.reader import open_reader
from generator.source.relations import ALL_RELATIONS
from tests.source.native import Postgres
from tests.support.postgres import ADMIN, PASSWORD, Server
from tests.support.sites.builds import make_config

Excess = Callable[[str], list[str]]
REMEDY = "let a role of its own read the views and nothing else, as templates/sql/postgresql-views.sql does"


@pytest.fixture
def rows(postgres: Server) -> Iterator[Postgres]:
    """Our relations, a table of somebody else, and the role "a reader", which may read the former."""
    rows = Postgres(postgres)
    rows.create_questions()
    with closing(rows.connection) as connection:
        connection.execute(
            f"""
            CREATE TABLE users AS SELECT 1 AS id, 'secret' AS password;
            CREATE TABLE wallets AS SELECT 1 AS id;
            CREATE ROLE "a reader" LOGIN PASSWORD '{PASSWORD}';
            GRANT SELECT ON {", ".join(ALL_RELATIONS)} TO "a reader"
            """
        )
        yield rows
        connection.execute('DROP OWNED BY "a reader"; DROP ROLE "a reader"')


@pytest.fixture
def excess(rows: Postgres, postgres: Server, tmp_path: Path) -> Callable[..., list[str]]:
    """What a user may do that no build needs, in a schema."""

    def found(user: str, **settings: Any) -> list[str]:
        config = make_config(tmp_path, source__url=postgres.url(rows.name, user.replace(" ", "%20")), **settings)
        with open_reader(config, Quarantine()) as reader:
            told = reader.excess()
            assert reader.schema_problems() == [], "the transaction goes on"
        return told

    return found


def test_a_superuser_is_named_as_one(excess: Excess) -> None:
    (sentence,) = excess(ADMIN)
    assert sentence == (
        f"the database user {ADMIN} is a superuser, who may read and change everything on the server; {REMEDY}"
    )


def test_what_a_user_may_read_besides_and_write_is_named(excess: Excess, rows: Postgres) -> None:
    assert excess("a reader") == [], "it reads our relations and nothing else"
    rows.connection.execute('GRANT SELECT (id) ON users TO "a reader"')
    (reads,) = excess("a reader")
    assert reads == f'the database user "a reader" may read public.users, which no build needs; {REMEDY}'
    rows.connection.execute('GRANT SELECT ON wallets TO "a reader"; GRANT UPDATE (question) ON markets TO PUBLIC')
    reads, writes = excess("a reader")
    assert reads.startswith('the database user "a reader" may read public.users and 1 other relation, which')
    assert writes == f'the database user "a reader" may write to public.markets, which no build needs; {REMEDY}'


def test_relations_of_the_same_name_in_another_schema_are_not_ours(
    excess: Callable[..., list[str]], rows: Postgres
) -> None:
    rows.connection.execute(
        """
        CREATE SCHEMA other;
        CREATE TABLE other.markets AS SELECT 1 AS id;
        GRANT USAGE ON SCHEMA other TO "a reader";
        GRANT SELECT ON other.markets TO "a reader"
        """
    )
    for settings in ({}, {"source__schema": "public"}):
        (sentence,) = excess("a reader", **settings)
        assert "may read other.markets, which" in sentence


def test_what_nobody_can_use_and_what_belongs_to_an_extension_does_not_count(excess: Excess, rows: Postgres) -> None:
    rows.connection.execute(
        """
        CREATE SCHEMA closed;
        CREATE TABLE closed.users AS SELECT 1 AS id;
        GRANT SELECT ON closed.users TO PUBLIC;
        GRANT SELECT ON users TO PUBLIC;
        INSERT INTO pg_depend VALUES
            ('pg_class'::regclass, 'users'::regclass, 0, 'pg_extension'::regclass,
             (SELECT oid FROM pg_extension LIMIT 1), 0, 'e')
        """
    )
    assert excess("a reader") == []


def test_row_level_security_that_binds_the_user_is_told_with_what_it_lets_through(
    rows: Postgres, postgres: Server, tmp_path: Path
) -> None:
    def told(user: str) -> list[str]:
        config = make_config(tmp_path, source__url=postgres.url(rows.name, user.replace(" ", "%20")))
        with open_reader(config, Quarantine()) as reader:
            return reader.row_security()

    assert told("a reader") == []
    rows.connection.execute(
        """
        ALTER TABLE fills ENABLE ROW LEVEL SECURITY; CREATE POLICY all_of_them ON fills FOR SELECT USING (true);
        ALTER TABLE fx_members ENABLE ROW LEVEL SECURITY; CREATE POLICY new ON fx_members FOR INSERT WITH CHECK (true);
        ALTER TABLE orders RENAME TO all_orders; ALTER TABLE all_orders ENABLE ROW LEVEL SECURITY;
        CREATE VIEW some_orders WITH (security_invoker = true) AS SELECT * FROM all_orders;
        CREATE VIEW orders WITH (security_invoker = on) AS SELECT * FROM some_orders;
        ALTER TABLE markets RENAME TO all_markets; ALTER TABLE all_markets ENABLE ROW LEVEL SECURITY;
        CREATE VIEW markets AS SELECT * FROM all_markets
        """
    )
    remedy = "read a view without security_invoker, whose owner owns the table, or add a policy"
    bound = "row level security binds this user"
    invoker = "is a view with security_invoker, so row level security of all_orders binds this user"
    nothing = "no policy lets it see a row"
    assert told("a reader") == [
        f"fills: {bound}, and its policies decide what is seen; {remedy}",
        f"fx_members: {bound}, and {nothing}; {remedy}",
        f"orders: {invoker}, and {nothing}; {remedy}",
    ]
    assert told(ADMIN) == [], "a superuser passes it"
