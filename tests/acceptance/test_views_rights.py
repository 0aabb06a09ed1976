"""What the example SQL changes for a site that was there before: nothing, until its owner asks for more."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from tests.support.postgres import PASSWORD, Server
from tests.support.project import ROOT
from tests.support.sites.views import HARDENING, READER, VIEWS

EXISTING: Final = ROOT / "tests" / "support" / "existing_schema.sql"
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
        admin.execute(f"DROP ROLE {OWNER}, {APPLICATION}, {STRANGER}, {OUR_READER}")


def granted(server: Server, site: str) -> Any:
    with closing(server.connect(site)) as admin:
        return admin.execute(EVERYTHING_GRANTED).fetchall()


def run_as(server: Server, site: str, role: str, *scripts: str) -> None:
    with closing(server.connect(site, role)) as connection:
        for script in scripts:
            connection.execute(script.replace(READER, OUR_READER))


def test_the_views_change_no_right_outside_their_schema(postgres: Server, existing_database: str) -> None:
    before = granted(postgres, existing_database)
    assert len(before) > 100
    run_as(postgres, existing_database, OWNER, VIEWS.read_text(), VIEWS.read_text())
    assert granted(postgres, existing_database) == before
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
    before = granted(postgres, existing_database)
    with pytest.raises(psycopg.errors.RaiseException, match="SCHEMA strange is another role's"):
        run_as(postgres, existing_database, OWNER, HARDENING.read_text().replace("'app'", "'strange'"))
    assert granted(postgres, existing_database) == before
