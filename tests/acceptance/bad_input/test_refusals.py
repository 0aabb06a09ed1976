"""Bad databases, settings, command lines and outputs, and builds that look like an accident, are refused."""

import json
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import pytest

from generator.source.relations import RELATIONS
from tests.acceptance.bad_input.site import NOW, SOURCE, BuiltSite
from tests.support.commands import run
from tests.support.postgres import PASSWORD, Server
from tests.support.sites.rows import create_database, insert_market, market_id

CONNECT: Final = "check source.url, and that this user can connect from this host"
NATIVE: Final = {
    "id": "uuid", "text": "text", "number": "numeric", "integer": "integer", "boolean": "boolean",
    "timestamp": "timestamptz", "date": "date",
}  # fmt: skip


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


@pytest.mark.campaign(short=1)
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
        "relation markets is missing", "relation market_categories is missing", "relation fx_members is missing",
        "column orders.price has type TEXT, which holds no number",
        "column orders.amount has type MONEY, which holds no number",
        "column orders.is_public has type INTEGER, which holds no boolean", "relation fills is missing",
        "relation probabilities is missing",
    ]  # fmt: skip
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


@pytest.mark.campaign(short=1)
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
    assert remedy == "leave security_invoker off the view, and give its owner the rights it lacks"


# ── settings, a command line, an output, and builds that look like an accident ────────────────────────────────────────


ELSEWHERE: Final = "choose another folder with --set output=…; what is served is unchanged"


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("build", "--as-of", "soon"), 2, "'soon' is not a time; write it like 2026-01-31T12:00:00Z"),
        (("build", "--as-of", "2026-02-30T12:00:00Z"), 2, "'2026-02-30T12:00:00Z' is not a time; write it like"),
        (("build", "--as-of", "0999-01-01T00:00:00Z"), 2, "is not between the years 1000 and 9998"),
        (("build", "--set", "schedule"), 1, "error: --set schedule: write it as dotted.key=value, such as"),
        (("build", "--set", "shedule=1"), 1, "error: --set shedule: unknown setting; did you mean schedule?"),
        (("build", "--config", "nowhere.yaml"), 1, "error: nowhere.yaml: no such file or directory; name a file with"),
        (("build", "--config", "output"), 1, "error: output: is a directory; name a file with --config, or create it"),
        (("build", "--set", "variant=extra"), 1, "error: --set variant: input should be 'core' or 'extended'"),
        (("build", "--allow-all"), 2, "Error: No such option"),
        (("build", "now"), 2, "Error: Got unexpected extra argument (now)"),
        (("demo", "--markets", "many"), 2, "Invalid value for '--markets': 'many' is not a valid integer"),
        (("bild",), 2, "Error: no such command 'bild'; did you mean build?\n"),
    ],
)
def test_rubbish_on_the_command_line_is_refused(
    built_site: BuiltSite, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    assert sentence in built_site.refuses(*arguments, code=code)


def test_demo_makes_no_database_on_a_server(built_site: BuiltSite) -> None:
    stderr = built_site.says("postgresql://u:hunter2@127.0.0.1:1/d", "demo")
    assert stderr == (
        "error: demo creates only SQLite databases, not postgresql://u:***@127.0.0.1:1/d; "
        "pass --set source.url=sqlite:///demo.db\n"
    )


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("config.yaml", "config.yaml: file exists; move that file away, or"),
        ("config.yaml/below", "config.yaml/below: not a directory; move that file away, or"),
        ("/proc/nowhere", "/proc/nowhere: no such file or directory;"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused(built_site: BuiltSite, output: str, sentence: str) -> None:
    assert built_site.refuses("build", "--set", f"output={output}") == f"error: {sentence} {ELSEWHERE}\n"


def test_a_folder_of_someone_else_is_refused(built_site: BuiltSite, tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "theirs").touch()
    stderr = built_site.refuses("build", "--set", f"output={tmp_path}")
    assert stderr.startswith(f"error: {tmp_path}/v1 exists but {tmp_path}/manifest.json does not, so this program")
    assert (tmp_path / "v1" / "theirs").exists()


def test_a_damaged_manifest_is_refused(built_site: BuiltSite, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": 1}')
    stderr = built_site.refuses("build", "--set", f"output={tmp_path}")
    assert stderr.startswith(f"error: {tmp_path}/manifest.json: damaged or not this program's (")
    assert stderr.endswith("move the folder away and build again; keep its blocked.json\n")


def test_a_folder_for_temporary_files_is_not_needed(built_site: BuiltSite) -> None:
    done = built_site.build(TMPDIR="/proc/nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    assert built_site.everything() == built_site.before


@pytest.fixture
def grown(built_site: BuiltSite, tmp_path: Path) -> Iterator[tuple[BuiltSite, sqlite3.Connection]]:
    """A copy of the site whose database may be changed."""
    shutil.copytree(built_site.folder, tmp_path / "grown")
    with closing(sqlite3.connect(tmp_path / "grown" / "markets.db", isolation_level=None)) as connection:
        yield BuiltSite(tmp_path / "grown", built_site.before), connection


def test_too_many_bad_rows_replace_nothing_unless_allowed(grown: tuple[BuiltSite, sqlite3.Connection]) -> None:
    site, connection = grown
    insert_market(connection, 4, prob=1.2)
    stderr = site.refuses("build", "--as-of", NOW, code=3)
    assert stderr == (
        "error: 1 of 4 markets break the contract, more than guards.max_invalid (0.01) allows; nothing was replaced. "
        "Fix them, or pass --accept invalid:\n"
        f"  markets: 1 row quarantined: prob: input should be less than or equal to 1 ({market_id(4)}: 1.2); "
        "correct it, or convert it in a view (0.45 rather than 45)\n"
        "  `public-markets check --all` names each\n"
    )
    assert site.build("--accept=invalid").returncode == 0
    assert site.build("--set", "guards.max_invalid=0.25").returncode == 0
    assert json.loads((site.output / "report.json").read_bytes())["markets"]["quarantined"] == 1


def test_too_great_a_loss_replaces_nothing_unless_allowed(grown: tuple[BuiltSite, sqlite3.Connection]) -> None:
    site, connection = grown
    connection.execute("UPDATE markets SET is_listed = 0 WHERE id = ?", [market_id(1)])
    stderr = site.refuses("build", "--as-of", NOW, code=3)
    assert stderr == (
        "error: 1 of 3 markets would disappear, more than guards.max_shrink (0.2) allows; nothing was replaced. "
        "If the database is complete, pass --accept shrink\n"
    )
    done = site.build("--accept=shrink")
    assert (done.returncode, done.stderr) == (0, f"WARNING: withdrawn: market {market_id(1)} is no longer public\n")
    assert not (site.output / f"v1/public/markets/detail/00/{market_id(1)}.json").exists()
