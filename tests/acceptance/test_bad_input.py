"""Bad databases, command lines and outputs are refused in a sentence, and a bad row costs only itself."""

import json
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import pytest

from generator.api.contract import SORTS, STATUS_FILTERS
from generator.markets import faults
from generator.source.relations import RELATIONS
from tests.support.commands import run
from tests.support.postgres import PASSWORD, Server
from tests.support.sites.builds import files
from tests.support.sites.rows import (
    create_database,
    insert_fx_member,
    insert_market,
    insert_point,
    market_id,
)

NOW: Final = "2026-01-31T12:00:00Z"
SOURCE: Final = "PUBLIC_MARKETS_SOURCE__URL"

CONNECT: Final = "check source.url, and that this user can connect from this host"
NATIVE: Final = {
    "id": "uuid", "text": "text", "number": "numeric", "integer": "integer", "boolean": "boolean",
    "timestamp": "timestamptz", "date": "date",
}  # fmt: skip


@dataclass(frozen=True)
class BuiltSite:
    """A folder with a configuration, a database and what was built from it."""

    folder: Path
    before: dict[str, bytes] = field(default_factory=dict)

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def everything(self) -> dict[str, bytes]:
        """Every file of the output; the lock names the process that last held it."""
        return {key: content for key, content in files(self.output, "").items() if key != ".lock"}

    def build(self, *arguments: str, **environ: str) -> Any:
        return run("build", "--as-of", NOW, *arguments, cwd=self.folder, **environ)

    def refuses(self, *arguments: str, code: int = 1, stdout: str = "", source: str = "") -> str:
        """Run; expect failure with one sentence, no traceback and unchanged output. Return stderr."""
        done = run(*arguments, cwd=self.folder, **({SOURCE: source} if source else {}))
        assert (done.returncode, done.stdout) == (code, stdout), done.stderr
        assert "Traceback" not in done.stderr
        assert "bug" not in done.stderr
        assert self.everything() == self.before
        return done.stderr

    def errors(self, url: str, *arguments: str) -> list[str]:
        """The errors that `check` finds in a database."""
        done = run("check", *arguments, cwd=self.folder, **{SOURCE: url})
        found = [line.removeprefix("error: ") for line in done.stdout.splitlines() if line.startswith("error: ")]
        assert done.returncode == 1
        which = "this error" if len(found) == 1 else f"these {len(found)} errors"
        assert done.stderr == f"error: fix {which}, then run `check` again\n"
        assert self.everything() == self.before
        return found

    def says(self, url: str, command: str = "build") -> str:
        """The error of a command for a database."""
        return self.refuses(command, source=url)


@pytest.fixture(scope="module")
def built_site(tmp_path_factory: pytest.TempPathFactory) -> BuiltSite:
    """A build of three markets, which no test may replace."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "config.yaml").write_text("source:\n  url: sqlite:///markets.db\n")
    with closing(create_database(folder / "markets.db")) as connection:
        for number in (1, 2, 3):
            insert_market(connection, number)
    done = BuiltSite(folder).build()
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), "it names relations without rows"
    before = BuiltSite(folder).everything()
    assert len(before) > 200
    return BuiltSite(folder, before)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("sqlite:///output", "source.url: output is a directory; name the database file in it"),
        ("sqlite:///config.yaml", f"sqlite:///config.yaml: file is not a database; {CONNECT}"),
        ("postgresql://u:hunter2@h:hunter2/d", "source.url: not a database URL; write sqlite:///path/to/file.db or"),
        ("postgresql://u:hunter2@[::1/d", "source.url: not a database URL; write sqlite:///path/to/file.db or"),
        ("postgresql://u:hunter2@no-such-host.invalid/d", "postgresql://u:***@no-such-host.invalid/d: failed to"),
        ("postgresql://u@127.0.0.1/d?pasword=hunter2", 'postgresql://u@127.0.0.1/d: invalid connection option "pasw'),
    ],
)
def test_a_database_that_is_none_is_refused(built_site: BuiltSite, url: str, sentence: str) -> None:
    stderr = built_site.says(url)
    assert stderr.startswith(f"error: {sentence}")
    assert len(stderr.splitlines()) == 1
    assert "hunter2" not in stderr


def test_a_server_that_refuses_is_quoted_without_the_password(built_site: BuiltSite, postgres: Server) -> None:
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        nobody = f"postgresql://u:wrong@127.0.0.1:{taken.getsockname()[1]}/d"
        wrong = f"postgresql://admin:wrong@127.0.0.1:{postgres.port}/postgres"
        in_query = f"postgresql://admin@127.0.0.1:{postgres.port}/postgres?password=wrong"
        for url, words in {
            nobody: "Connection refused",
            wrong: "password authentication failed for user",
            in_query: "password authentication failed for user",
            postgres.url("no_such_database"): 'database "no_such_database" does not exist',
            postgres.url(""): 'database "admin" does not exist',
        }.items():
            stderr = built_site.says(url)
            assert words in stderr
            assert stderr.endswith(f"; {CONNECT}\n")
            assert not [secret for secret in ("wrong", PASSWORD) if secret in stderr]


def test_every_mistake_in_a_schema_is_named_by_check_and_build(
    built_site: BuiltSite, tmp_path: Path, new_database: Callable[[], str], postgres: Server
) -> None:
    with closing(create_database(tmp_path / "unfit.db")) as connection:
        for column, wrong in (("prob", None), ("question", "BLOB"), ("volume", "TEXT")):
            connection.execute(f"ALTER TABLE markets DROP COLUMN {column}")
            if wrong:
                connection.execute(f"ALTER TABLE markets ADD COLUMN {column} {wrong}")
        connection.execute("DROP TABLE fills")
    found = built_site.errors(f"sqlite:///{tmp_path / 'unfit.db'}")
    assert [line.split(";")[0] for line in found] == [
        "column markets.question has type BLOB, which holds no text", "column markets.prob is missing",
        "column markets.volume has type TEXT, which holds no number", "relation fills is missing",
    ]  # fmt: skip
    told = "\n  ".join(("error: the database schema does not fit; fix these problems:", *found))
    assert built_site.says(f"sqlite:///{tmp_path / 'unfit.db'}") == f"{told}\n"
    name = new_database()
    with postgres.connect(name) as connection:
        connection.execute("CREATE TABLE orders (market_id text, side text, price text, amount money, is_public int)")
    assert [line.split(";")[0] for line in built_site.errors(postgres.url(name)) if "column" in line] == [
        "column orders.price has type TEXT, which holds no number",
        "column orders.amount has type MONEY, which holds no number",
        "column orders.is_public has type INTEGER, which holds no boolean",
    ]
    assert len(built_site.errors(postgres.url(name), "--set", "source.schema=nowhere")) == len(RELATIONS)


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


def test_a_schema_that_the_user_may_not_use_is_named_once_with_the_grant(
    built_site: BuiltSite, barred: tuple[Any, str]
) -> None:
    owner, url = barred
    role = unquote(url.split("/")[2].split(":")[0])
    owner.execute(f'ALTER ROLE "{role}" SET search_path = "$user", public, public_api')
    owner.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA public_api TO "{role}"')
    grant = f'GRANT USAGE ON SCHEMA public_api TO "{role}"'
    for arguments in ((), ("--set", "source.schema=public_api")):
        assert built_site.errors(url, *arguments) == [f"the database user may not use schema public_api; run `{grant}`"]
    owner.execute(f'REVOKE ALL ON fills FROM "{role}"')
    assert [error.split("`")[1] for error in built_site.errors(url)] == [
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


# ── a command line, and builds that look like an accident ─────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("build", "--as-of", "2026-02-30T12:00:00Z"), 2, "'2026-02-30T12:00:00Z' is not a time; write it like"),
        (("build", "--as-of", "0999-01-01T00:00:00Z"), 2, "is not between the years 1000 and 9998"),
        (("build", "--config", "output"), 1, "error: output: is a directory; name a file with --config, or create it"),
        (("bild",), 2, "Error: no such command 'bild'; did you mean build?\n"),
    ],
)
def test_rubbish_on_the_command_line_is_refused(
    built_site: BuiltSite, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    assert sentence in built_site.refuses(*arguments, code=code)


def test_demo_makes_no_database_on_a_server(built_site: BuiltSite) -> None:
    assert built_site.says("postgresql://u:hunter2@127.0.0.1:1/d", "demo") == (
        "error: demo creates only SQLite databases, not postgresql://u:***@127.0.0.1:1/d; "
        "pass --set source.url=sqlite:///demo.db\n"
    )


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


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


NO_TIME: Final = "not a time such as 2026-01-31T12:00:00Z"
NO_YEAR: Final = "not a time between the years 0001 and 9999"
LONG: Final = "rules " * 16_666 + "🙂🙂🙂🙂"
CONTROL: Final = "holds a control character other than tab and line breaks"
BAD_TEXT: Final = "not valid Unicode (a lone surrogate, or bytes that are no letters)"
STATUS: Final = "status: input should be 'open', 'closed', 'resolved' or 'cancelled'"
INFINITE: Final = "input should be a finite number"
NEGATIVE: Final = "input should be greater than or equal to 0"

#: Values for which a market is quarantined, and the reason.
BAD_MARKETS: Final[list[tuple[dict[str, Any], str]]] = [
    ({"close_time": None}, "close_time: must not be NULL"),
    ({"created_at": "yesterday"}, f"created_at: {NO_TIME} (yesterday)"),
    ({"created_at": "2026-02-30 12:00:00.000000"}, f"created_at: {NO_YEAR} (2026-02-30 12:00:00.000000)"),
    ({"close_time": "9999-12-31T23:59:59-01:00"}, f"close_time: {NO_YEAR} (9999-12-31T23:59:59-01:00)"),
    ({"prob": 1.2}, "prob: input should be less than or equal to 1 (1.2)"),
    ({"prob": float("nan")}, "prob: must not be NULL"),  # which is what SQLite keeps
    ({"prob": float("inf")}, f"prob: {INFINITE} (inf)"),
    ({"volume": -1}, f"volume: {NEGATIVE} (-1.0)"),
    ({"trader_count": 1.5}, "trader_count: not a whole number (1.5)"),
    ({"status": "paused"}, f"{STATUS} (paused)"),
    ({"status": None}, "status: must not be NULL"),
    ({"status": "cancelled", "resolution": "yes"}, "resolution: input should be 'YES', 'NO' or 'CANCEL' (yes)"),
]
BAD_TEXTS: Final[list[tuple[dict[str, Any], str]]] = [
    ({"question": b"bytes"}, "question: not a text (b'bytes')"),
    ({"question": "CAST(x'66fc66' AS TEXT)"}, f"question: {BAD_TEXT}"),
    ({"description": "CAST(x'eda080' AS TEXT)"}, f"description: {BAD_TEXT}"),
    ({"question": "?" * 2_001}, f"question: string should have at most 2000 characters ({'?' * 79}…)"),
    ({"description": f"{LONG}!"}, "description: string should have at most 100000 characters (rules "),
    ({"trading_pause_reason": "!" * 1_001}, "trading_pause_reason: string should have at most 1000 characters (!!"),
    ({"question": "a title: \x1b]0;mine\x07"}, f"question: {CONTROL} (a title: \\x1b]0;mine\\x07)"),
    ({"question": "NUL \0 in it"}, f"question: {CONTROL} (NUL \\x00 in it)"),
    ({"description": "one\x9b2J"}, f"description: {CONTROL} (one\\x9b2J)"),
    ({"id": "no UUID"}, "id: not a UUID (no UUID)"),
    ({"id": None}, "id: must not be NULL"),
    ({"prob": 7, "volume": -1}, "prob: input should be less than or equal to 1 (7.0); volume: "),
]


BAD_FX: Final[list[tuple[dict[str, Any], str]]] = [
    ({"title": None}, "fx_members.title: must not be NULL"),
    ({"week_start": "soon"}, "fx_members.week_start: not a date such as 2026-01-31 (soon)"),
    ({"threshold_value": float("inf")}, f"fx_members.threshold_value: {INFINITE} (inf)"),
    ({"instrument": "\x00"}, f"fx_members.instrument: {CONTROL} (\\x00)"),
    ({"direction": "up"}, "fx_members.direction: input should be 'gte' or 'lte' (up)"),
]
#: Of two ids that differ in case.
LOWER, UPPER = "abcdef00-0000-4000-8000-000000000000", "ABCDEF00-0000-4000-8000-000000000000"


def insert_bad(connection: sqlite3.Connection, number: int, columns: dict[str, Any]) -> None:
    casts = {name: value for name, value in columns.items() if str(value).startswith("CAST(")}
    insert_market(connection, number, **{name: value for name, value in columns.items() if name not in casts})
    for name, expression in casts.items():
        connection.execute(f"UPDATE markets SET {name} = {expression} WHERE id = '{market_id(number)}'")


def built(folder: Path, *arguments: str) -> tuple[Path, Any]:
    """The output of a build of the database in the folder, and what it said."""
    (folder / "config.yaml").write_text("source:\n  url: sqlite:///markets.db\n")
    done = BuiltSite(folder).build(*arguments)
    assert done.returncode == 0, done.stderr
    return folder / "output", done


def test_every_kind_of_bad_market_costs_itself_only(tmp_path: Path) -> None:
    expected, bad_fx = dict[str, str](), dict[str, str]()
    with closing(create_database(tmp_path / "markets.db")) as connection:
        for number in (1, 2):
            insert_market(connection, number)
        for title in ("One family", "Two families"):
            insert_fx_member(connection, market_id=market_id(2), title=title)
        for number, (columns, reason) in enumerate(BAD_MARKETS + BAD_TEXTS, start=10):
            insert_bad(connection, number, columns)
            key = columns.get("id", market_id(number))
            expected[f'"Question {number}?"' if key is None else str(key)] = reason
        for number, (columns, reason) in enumerate(BAD_FX, start=100):
            insert_market(connection, number)
            insert_fx_member(connection, market_id=market_id(number), **columns)
            bad_fx[market_id(number)] = reason
        for key in (market_id(200), market_id(200), LOWER, UPPER):
            insert_market(connection, id=key)
            insert_point(connection, "2026-01-15 00:00:00.000000", market_id=key)
            expected[key.lower()] = "id: several markets have the same (2)"
    output, done = built(tmp_path, "--accept=invalid")
    report = json.loads((output / "report.json").read_bytes())
    assert faults.ANY not in done.stderr
    reasons = {row["key"]: row["reason"] for row in report["quarantined"] if row["relation"] == "markets"}
    expected |= bad_fx
    assert reasons.keys() == expected.keys()
    assert {key: reason for key, reason in reasons.items() if not reason.startswith(expected[key])} == {}
    others = [(row["relation"], row["reason"]) for row in report["quarantined"] if row["key"] not in reasons]
    assert others == [("fx_members", "market_id: the market is a member of a family already")]
    assert report["markets"] == {"published": 2, "hidden": 0, "quarantined": len(expected) + 2}
    listed = json.loads((output / "v1/public/markets/lists/all/new/first/100.json").read_bytes())["items"]
    assert [item["id"] for item in listed] == [market_id(1)], "the other is in a family"
    detail = json.loads((output / f"v1/public/markets/detail/00/{market_id(2)}.json").read_bytes())
    assert detail["market"]["fxFamilyMember"]["title"] == "One family"


def test_an_empty_database_gives_thirty_empty_lists(tmp_path: Path) -> None:
    create_database(tmp_path / "markets.db").close()
    output, done = built(tmp_path)
    assert done.stderr == ""
    firsts = {key: content for key, content in files(output).items() if "/first/" in key}
    assert len(firsts) == len(STATUS_FILTERS) * len(SORTS) * 100 == 3_000
    assert set(firsts.values()) == {b'{"items":[],"nextCursor":null}'}
    assert files(output)["v1/public/markets/snapshot.json"] == b'{"freshMarkets":[],"closingSoonMarkets":[]}'
    assert json.loads(files(output)["v1/build.json"])["markets"] == 0
