"""A database that cannot be reached or has the wrong schema is refused in a sentence."""

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import pytest

from generator.source.relations import RELATIONS
from tests.acceptance.bad_input.site import SOURCE, BuiltSite
from tests.support.commands import run
from tests.support.postgres import PASSWORD, Server
from tests.support.sites.rows import create_database

CONNECT: Final = "check source.url, and that this user can connect from this host"
NATIVE: Final = {
    "id": "uuid",
    "text": "text",
    "number": "numeric",
    "integer": "integer",
    "boolean": "boolean",
    "timestamp": "timestamptz",
    "date": "date",
}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (
            "sqlite:///absent.db",
            "source.url: absent.db: no such database file; set source.url to your database, or run",
        ),
        ("sqlite:///output", "source.url: output is a directory; name the database file in it"),
        ("sqlite:///config.yaml", f"sqlite:///config.yaml: file is not a database; {CONNECT}"),
        (
            "sqlite:///config.yaml/x.db",
            "source.url: config.yaml/x.db: no such database file; set source.url to your database, or",
        ),
        ("sqlite://", "source.url: . is a directory; name the database file in it"),
        ("markets.db", "PUBLIC_MARKETS_SOURCE__URL: write a database URL, beginning with sqlite://, postgresql://,"),
        ("mysql://u@h/d", "PUBLIC_MARKETS_SOURCE__URL: write a database URL, beginning with sqlite://, postgresql://,"),
        ("postgresql://u:hunter2@h:hunter2/d", "source.url: not a database URL; write sqlite:///path/to/file.db or"),
        ("postgresql://u:hunter2@[::1/d", "source.url: not a database URL; write sqlite:///path/to/file.db or"),
        (
            "postgresql://u:hunter2@no-such-host.invalid/d",
            "postgresql://u:***@no-such-host.invalid/d: failed to resolve",
        ),
        (
            "postgresql://u@127.0.0.1/d?pasword=hunter2",
            'postgresql://u@127.0.0.1/d: invalid connection option "pasword"',
        ),
    ],
)
def test_a_database_that_is_none_is_refused(built_site: BuiltSite, url: str, sentence: str) -> None:
    stderr = built_site.says(url)
    assert stderr.startswith(f"error: {sentence}")
    assert len(stderr.splitlines()) == 1
    assert "hunter2" not in stderr


def test_a_port_where_nobody_listens_is_refused(built_site: BuiltSite) -> None:
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        stderr = built_site.says(f"postgresql://u:hunter2@127.0.0.1:{port}/d")
    assert stderr.startswith(f"error: postgresql://u:***@127.0.0.1:{port}/d: connection failed")
    assert "Connection refused" in stderr
    assert stderr.endswith(f"; {CONNECT}\n")
    assert "hunter2" not in stderr


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("verbose", [(), ("-v",)])
@pytest.mark.parametrize("place", ["password", "query"])
def test_a_wrong_password_is_refused_and_never_printed(
    built_site: BuiltSite, postgres: Server, verbose: tuple[str, ...], place: str
) -> None:
    url = f"postgresql://admin:wrong%20{PASSWORD[:7]}@127.0.0.1:{postgres.port}/postgres"
    if place == "query":
        url = f"postgresql://admin@127.0.0.1:{postgres.port}/postgres?password=wrong%20{PASSWORD[:7]}"
    done = run("build", *verbose, cwd=built_site.folder, **{SOURCE: url})
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert "password authentication failed for user" in last
    assert last.endswith(CONNECT)
    assert ("Traceback" in done.stderr) == bool(verbose)
    assert PASSWORD[:7] not in done.stderr
    assert "wrong" not in done.stderr
    assert built_site.everything() == built_site.before


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("name", ["no_such_database", ""])
def test_a_database_name_that_is_missing_or_wrong_is_refused(
    built_site: BuiltSite, postgres: Server, name: str
) -> None:
    stderr = built_site.says(postgres.url(name))
    assert f'database "{name or "admin"}" does not exist' in stderr
    assert stderr.endswith(f"; {CONNECT}\n")


SEVERAL: Final = (
    "column markets.question has type BLOB, which holds no text; cast it in a view",
    "column markets.prob is missing; add it, or make markets a view that has it (NULL where optional)",
    "column markets.volume has type TEXT, which holds no number; cast it in a view",
    "relation fills is missing; create a table or a view of that name, or set source.schema to where it is",
)


@pytest.fixture
def unfit(tmp_path: Path) -> str:
    """The URL of a database with several mistakes in its schema."""
    with closing(create_database(tmp_path / "unfit.db")) as connection:
        connection.execute("ALTER TABLE markets DROP COLUMN prob")
        for column, wrong in (("question", "BLOB"), ("volume", "TEXT")):
            connection.execute(f"ALTER TABLE markets DROP COLUMN {column}")
            connection.execute(f"ALTER TABLE markets ADD COLUMN {column} {wrong}")
        connection.execute("DROP TABLE fills")
    return f"sqlite:///{tmp_path / 'unfit.db'}"


def test_check_prints_every_finding(built_site: BuiltSite, unfit: str) -> None:
    assert built_site.errors(unfit) == list(SEVERAL)


def test_build_names_every_finding(built_site: BuiltSite, unfit: str) -> None:
    assert (
        built_site.says(unfit)
        == "\n  ".join(("error: the database schema does not fit; fix these problems:", *SEVERAL)) + "\n"
    )


def test_a_missing_schema_and_types_that_do_not_fit_are_found_on_postgresql(
    built_site: BuiltSite, new_database: Callable[[], str], postgres: Server
) -> None:
    name = new_database()
    with postgres.connect(name) as connection:
        connection.execute(
            "CREATE TABLE orders (market_id text, side text, price text, amount money, is_public integer)"
        )
    assert [line.split(";")[0] for line in built_site.errors(postgres.url(name))] == [
        "relation markets is missing",
        "relation market_categories is missing",
        "relation fx_members is missing",
        "column orders.price has type TEXT, which holds no number",
        "column orders.amount has type MONEY, which holds no number",
        "column orders.is_public has type INTEGER, which holds no boolean",
        "relation fills is missing",
        "relation probabilities is missing",
    ]
    assert len(built_site.errors(postgres.url(name), "--set", "source.schema=nowhere")) == 6


@pytest.fixture
def barred(new_database: Callable[[], str], postgres: Server) -> Iterator[tuple[Any, str]]:
    """A connection to a database with six views in the schema `public_api`; its URL for a role without rights."""
    name = new_database()
    role = f"barred of {name}"
    with postgres.connect(name) as connection:
        connection.execute("CREATE SCHEMA public_api; SET search_path = public_api")
        for relation, columns in RELATIONS.items():
            selected = ", ".join(f"NULL::{NATIVE[kind]} AS {column}" for column, kind in columns.items())
            connection.execute(f"CREATE VIEW {relation} AS SELECT {selected} WHERE false")
        connection.execute(f"CREATE ROLE \"{role}\" LOGIN PASSWORD '{PASSWORD}'")
        yield connection, postgres.url(name, quote(role))


@pytest.mark.campaign(short=0)
def test_views_that_the_user_may_not_read_are_named_once_with_the_grant(
    built_site: BuiltSite, barred: tuple[Any, str]
) -> None:
    owner, url = barred
    role = unquote(url.split("/")[2].split(":")[0])
    owner.execute(f'GRANT USAGE ON SCHEMA public_api TO "{role}"')
    owner.execute(f'GRANT SELECT ON markets, market_categories, fx_members, fills TO "{role}"')
    grant = f'GRANT SELECT ON public_api.orders, public_api.probabilities TO "{role}"'
    finding = f"the database user may not read orders, probabilities; run `{grant}`"
    assert built_site.errors(url, "--set", "source.schema=public_api") == [finding]
    owner.execute(f'ALTER ROLE "{role}" SET search_path = public_api')
    assert built_site.says(url) == f"error: the database schema does not fit; fix these problems:\n  {finding}\n"
    owner.execute(grant)
    assert [error.partition(", ")[0] for error in built_site.errors(url)] == ["3 of 3 markets would disappear"]


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("place", ["source.schema", "search_path"])
def test_a_schema_that_the_user_may_not_use_is_named_once_with_the_grant(
    built_site: BuiltSite, barred: tuple[Any, str], place: str
) -> None:
    owner, url = barred
    role = unquote(url.split("/")[2].split(":")[0])
    arguments = ["--set", "source.schema=public_api"]
    if place == "search_path":
        owner.execute(f'ALTER ROLE "{role}" SET search_path = "$user", public, public_api')
        arguments = []
    owner.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA public_api TO "{role}"')
    grant = f'GRANT USAGE ON SCHEMA public_api TO "{role}"'
    assert built_site.errors(url, *arguments) == [f"the database user may not use schema public_api; run `{grant}`"]
    owner.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public_api FROM PUBLIC; REVOKE ALL ON fills FROM " + f'"{role}"')
    assert [error.split("`")[1] for error in built_site.errors(url, *arguments)] == [
        grant,
        f'GRANT SELECT ON public_api.fills TO "{role}"',
    ]


def test_a_right_that_the_owner_of_a_view_lacks_is_not_granted_to_the_reader(
    built_site: BuiltSite, barred: tuple[Any, str]
) -> None:
    owner, url = barred
    role = unquote(url.split("/")[2].split(":")[0])
    owner.execute(
        f"""
        CREATE TABLE secrets AS SELECT 'bid' AS side;
        CREATE ROLE "another {role}";
        CREATE OR REPLACE VIEW orders AS SELECT NULL::uuid AS market_id, side, NULL::numeric AS price,
            NULL::numeric AS amount, true AS is_public FROM secrets;
        ALTER VIEW orders OWNER TO "another {role}";
        GRANT USAGE ON SCHEMA public_api TO "{role}", "another {role}";
        GRANT SELECT ON {", ".join(RELATIONS)} TO "{role}"
        """
    )
    [error] = built_site.errors(url, "--set", "source.schema=public_api")
    problem, _, remedy = error.partition("; ")
    assert problem == "relation orders cannot be read: permission denied for table secrets"
    assert remedy == "correct the view, or give its owner the rights it lacks"
