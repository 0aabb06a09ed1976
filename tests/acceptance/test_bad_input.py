"""Whatever is put before the command line: a sentence that names the thing and the remedy, and the old output whole.

Bad rows cost themselves only; each is named, with its reason, on stderr and in the report.
"""

import json
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api.contract import SORTS, STATUS_FILTERS
from generator.source.relations import RELATIONS
from tests.support.builds import files, run
from tests.support.postgres import PASSWORD, Server
from tests.support.rows import (
    create_database,
    fill_id,
    insert_fill,
    insert_fx_member,
    insert_market,
    insert_order,
    insert_point,
    market_id,
)

NOW: Final = "2026-01-31T12:00:00Z"
SOURCE: Final = "PUBLIC_MARKETS_SOURCE__URL"
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
ELSEWHERE: Final = "choose another folder with --set output=…; what is served is unchanged"


@dataclass(frozen=True)
class Site:
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
        """Run; see it fail with one sentence, without a traceback, and the output as it was. Returns stderr."""
        done = run(*arguments, cwd=self.folder, **({SOURCE: source} if source else {}))
        assert (done.returncode, done.stdout) == (code, stdout), done.stderr
        assert "Traceback" not in done.stderr
        assert "bug" not in done.stderr
        assert self.everything() == self.before
        return done.stderr

    def errors(self, url: str, *arguments: str) -> list[str]:
        """What a check finds wrong with a database, and counts at its end."""
        done = run("check", *arguments, cwd=self.folder, **{SOURCE: url})
        found = [line.removeprefix("error: ") for line in done.stdout.splitlines() if line.startswith("error: ")]
        assert done.returncode == 1
        which = "this error" if len(found) == 1 else f"these {len(found)} errors"
        assert done.stderr == f"error: fix {which}, then run `check` again\n"
        assert self.everything() == self.before
        return found

    def says(self, url: str, command: str = "build") -> str:
        """What a command says to a database."""
        return self.refuses(command, source=url)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Three markets, built. Nothing here is ever to replace that."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "config.yaml").write_text("source:\n  url: sqlite:///markets.db\n")
    with closing(create_database(folder / "markets.db")) as connection:
        for number in (1, 2, 3):
            insert_market(connection, number)
    done = Site(folder).build()
    assert (done.returncode, done.stderr) == (0, "")
    before = Site(folder).everything()
    assert len(before) > 3_000
    return Site(folder, before)


# ── the database cannot be reached ────────────────────────────────────────────────────────────────────────────────


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
def test_a_database_that_is_none_is_refused(site: Site, url: str, sentence: str) -> None:
    stderr = site.says(url)
    assert stderr.startswith(f"error: {sentence}")
    assert len(stderr.splitlines()) == 1
    assert "hunter2" not in stderr


def test_a_port_where_nobody_listens_is_refused(site: Site) -> None:
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        stderr = site.says(f"postgresql://u:hunter2@127.0.0.1:{port}/d")
    assert stderr.startswith(f"error: postgresql://u:***@127.0.0.1:{port}/d: connection failed")
    assert "Connection refused" in stderr
    assert stderr.endswith(f"; {CONNECT}\n")
    assert "hunter2" not in stderr


@pytest.mark.parametrize("verbose", [(), ("-v",)])
@pytest.mark.parametrize("place", ["password", "query"])
def test_a_wrong_password_is_refused_and_never_printed(
    site: Site, postgres: Server, verbose: tuple[str, ...], place: str
) -> None:
    url = f"postgresql://admin:wrong%20{PASSWORD[:7]}@127.0.0.1:{postgres.port}/postgres"
    if place == "query":
        url = f"postgresql://admin@127.0.0.1:{postgres.port}/postgres?password=wrong%20{PASSWORD[:7]}"
    done = run("build", *verbose, cwd=site.folder, **{SOURCE: url})
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert "password authentication failed for user" in last
    assert last.endswith(CONNECT)
    assert ("Traceback" in done.stderr) == bool(verbose)
    assert PASSWORD[:7] not in done.stderr
    assert "wrong" not in done.stderr
    assert site.everything() == site.before


@pytest.mark.parametrize("name", ["no_such_database", ""])
def test_a_database_name_that_is_missing_or_wrong_is_refused(site: Site, postgres: Server, name: str) -> None:
    stderr = site.says(postgres.url(name))
    assert f'database "{name or "admin"}" does not exist' in stderr
    assert stderr.endswith(f"; {CONNECT}\n")


# ── the database lacks what we read ───────────────────────────────────────────────────────────────────────────────

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


def test_check_prints_every_finding(site: Site, unfit: str) -> None:
    assert site.errors(unfit) == list(SEVERAL)


def test_build_names_every_finding(site: Site, unfit: str) -> None:
    assert (
        site.says(unfit)
        == "\n  ".join(("error: the database schema does not fit; fix these problems:", *SEVERAL)) + "\n"
    )


def test_a_missing_schema_and_types_that_do_not_fit_are_found_on_postgresql(
    site: Site, new_database: Callable[[], str], postgres: Server
) -> None:
    name = new_database()
    with postgres.connect(name) as connection:
        connection.execute(
            "CREATE TABLE orders (market_id text, side text, price text, amount money, is_public integer)"
        )
    assert [line.split(";")[0] for line in site.errors(postgres.url(name))] == [
        "relation markets is missing",
        "relation market_categories is missing",
        "relation fx_members is missing",
        "column orders.price has type TEXT, which holds no number",
        "column orders.amount has type MONEY, which holds no number",
        "column orders.is_public has type INTEGER, which holds no boolean",
        "relation fills is missing",
        "relation probabilities is missing",
    ]
    assert len(site.errors(postgres.url(name), "--set", "source.schema=nowhere")) == 6


def test_a_view_that_the_user_may_not_read_is_named_by_check_and_build(
    site: Site, new_database: Callable[[], str], postgres: Server
) -> None:
    name = new_database()
    with postgres.connect(name) as connection:
        for relation, columns in RELATIONS.items():
            selected = ", ".join(f"NULL::{NATIVE[kind]} AS {column}" for column, kind in columns.items())
            connection.execute(f"CREATE VIEW {relation} AS SELECT {selected}")
        connection.execute(f"CREATE ROLE barred LOGIN PASSWORD '{PASSWORD}'")
        connection.execute("GRANT SELECT ON markets, market_categories, fx_members, fills TO barred")
    url = postgres.url(name, "barred")
    findings = [
        f"relation {relation} cannot be read: permission denied for view {relation}; "
        "grant this user SELECT, or repair it"
        for relation in ("orders", "probabilities")
    ]
    assert site.errors(url) == findings
    assert (
        site.says(url)
        == "\n  ".join(("error: the database schema does not fit; fix these problems:", *findings)) + "\n"
    )


# ── the configuration and the command line ────────────────────────────────────────────────────────────────────────


def test_every_mistake_in_the_configuration_is_reported_at_once(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("outptu: there\nsnapshot:\n  size: six\nguards: {max_shrink: 2}\n")
    stderr = site.refuses("build", "--config", str(file), "--set", "schedule=often", "--set", "detail.recent_fils=3")
    assert stderr.splitlines() == [
        f"error: {file}:1:1 outptu: unknown setting; did you mean output?",
        f"{file}:3:9 snapshot.size: write a whole number, without quotes",
        f"{file}:4:22 guards.max_shrink: input should be less than or equal to 1",
        "--set schedule: write a whole number, without quotes",
        "--set detail.recent_fils: unknown setting; did you mean detail.recent_fills?",
    ]


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
        (("bild",), 2, "No such command 'bild'"),
    ],
)
def test_rubbish_on_the_command_line_is_refused(
    site: Site, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    assert sentence in site.refuses(*arguments, code=code)


def test_demo_makes_no_database_on_a_server(site: Site) -> None:
    stderr = site.says("postgresql://u:hunter2@127.0.0.1:1/d", "demo")
    assert stderr == (
        "error: demo makes SQLite databases, not postgresql://u:***@127.0.0.1:1/d; --set source.url=sqlite:///demo.db\n"
    )


# ── the output cannot be written ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("config.yaml", "config.yaml: file exists; move that file away, or"),
        ("config.yaml/below", "config.yaml/below: not a directory; move that file away, or"),
        ("/proc/nowhere", "/proc/nowhere: no such file or directory;"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused(site: Site, output: str, sentence: str) -> None:
    assert site.refuses("build", "--set", f"output={output}") == f"error: {sentence} {ELSEWHERE}\n"


def test_a_folder_of_someone_else_is_refused(site: Site, tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "theirs").touch()
    stderr = site.refuses("build", "--set", f"output={tmp_path}")
    assert stderr.startswith(f"error: {tmp_path}/v1 exists but {tmp_path}/manifest.json does not, so it is not this")
    assert (tmp_path / "v1" / "theirs").exists()


def test_a_damaged_manifest_is_refused(site: Site, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": 1}')
    stderr = site.refuses("build", "--set", f"output={tmp_path}")
    assert stderr.startswith(f"error: {tmp_path}/manifest.json: damaged (")
    assert stderr.endswith("move the folder away, build again\n")


def test_a_folder_for_temporary_files_is_not_needed(site: Site) -> None:
    done = site.build(TMPDIR="/proc/nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    assert site.everything() == site.before


# ── bad rows ──────────────────────────────────────────────────────────────────────────────────────────────────────

NO_TIME: Final = "not a time such as 2026-01-31T12:00:00Z"
NO_YEAR: Final = "not a time between the years 0001 and 9999"
LONG: Final = "rules " * 170_000
BAD_TEXT: Final = "not valid Unicode (a lone surrogate, or bytes that are no UTF-8)"
STATUS: Final = "status: input should be 'open', 'closed', 'resolved' or 'cancelled'"
INFINITE: Final = "input should be a finite number"
NEGATIVE: Final = "input should be greater than or equal to 0"

#: Columns of a market that keep it out, and the reason that is given.
BAD_MARKETS: Final[list[tuple[dict[str, Any], str]]] = [
    ({"close_time": None}, "close_time: must not be NULL"),
    ({"created_at": "yesterday"}, f"created_at: {NO_TIME} (yesterday)"),
    ({"created_at": "2026-02-30 12:00:00.000000"}, f"created_at: {NO_YEAR} (2026-02-30 12:00:00.000000)"),
    ({"last_activity_at": ""}, f"last_activity_at: {NO_TIME} ()"),
    ({"resolved_at": "10000-01-01 00:00:00"}, f"resolved_at: {NO_TIME} (10000-01-01 00:00:00)"),
    ({"close_time": "9999-12-31T23:59:59-01:00"}, f"close_time: {NO_YEAR} (9999-12-31T23:59:59-01:00)"),
    ({"prob": 1.2}, "prob: input should be less than or equal to 1 (1.2)"),
    ({"prob": -0.1}, f"prob: {NEGATIVE} (-0.1)"),
    ({"prob": float("nan")}, "prob: must not be NULL"),  # which is what SQLite keeps
    ({"prob": float("inf")}, f"prob: {INFINITE} (inf)"),
    ({"volume": -1}, f"volume: {NEGATIVE} (-1.0)"),
    ({"pool_yes": float("-inf")}, f"pool_yes: {INFINITE} (-inf)"),
    ({"trader_count": -1}, f"trader_count: {NEGATIVE} (-1)"),
    ({"trader_count": 1.5}, "trader_count: not a whole number (1.5)"),
    ({"status": "paused"}, f"{STATUS} (paused)"),
    ({"status": None}, "status: must not be NULL"),
    ({"resolution": "yes"}, "resolution: input should be 'YES', 'NO' or 'CANCEL' (yes)"),
    ({"question": None}, "question: must not be NULL"),
]
BAD_TEXTS: Final[list[tuple[dict[str, Any], str]]] = [
    ({"question": b"bytes"}, "question: not a text (b'bytes')"),
    ({"question": "CAST(x'66fc66' AS TEXT)"}, f"question: {BAD_TEXT}"),
    ({"description": "CAST(x'eda080' AS TEXT)"}, f"description: {BAD_TEXT}"),
    ({"id": "no UUID"}, "id: not a UUID (no UUID)"),
    ({"id": "{00000003-0000-4000-8000-000000000000}"}, "id: not a UUID ({00000003-0000-4000-8000-000000000000})"),
    ({"id": None}, "id: must not be NULL"),
    ({"prob": 7, "volume": -1}, "prob: input should be less than or equal to 1 (7.0); volume: "),
]
#: Columns that must not keep a market out, and what is published then.
GOOD_MARKETS: Final[list[tuple[dict[str, Any], dict[str, Any]]]] = [
    ({"prob": 1.000000000000004}, {"prob": 1.0}),
    ({"prob": -1e-10}, {"prob": 0.0}),
    (
        {"close_time": "9999-12-31 23:59:59.999999", "created_at": "0001-01-01T00:00:00Z"},
        {"closeTime": "9999-12-31T23:59:59.999Z", "createdAt": "0001-01-01T00:00:00.000Z"},
    ),
    ({"close_time": "2026-06-30T12:00:00+05:30"}, {"closeTime": "2026-06-30T06:30:00.000Z"}),
    ({"description": LONG}, {"description": LONG}),
    ({"question": "NUL \0 in it"}, {"question": "NUL \0 in it"}),
    ({"question": "a line\u2028and a paragraph\u2029"}, {"question": "a line\u2028and a paragraph\u2029"}),
    ({"question": ""}, {"question": ""}),
    ({"id": "ABCDEF00-0000-4000-8000-000000000000"}, {"id": "abcdef00-0000-4000-8000-000000000000"}),
    ({"trader_count": 7.0}, {"traderCount": 7}),
    ({"volume": 10**15}, {"volume": 1e15}),
]


@dataclass(frozen=True)
class Built:
    """What a build of bad rows left."""

    output: Path
    stderr: str
    summary: str

    @property
    def report(self) -> Any:
        return json.loads((self.output / "report.json").read_bytes())

    def reasons(self, relation: str) -> dict[str, list[str]]:
        """The reasons in the report, by key; each is on stderr in the same words."""
        found: dict[str, list[str]] = {}
        for row in self.report["quarantined"]:
            if row["relation"] == relation:
                found.setdefault(row["key"], []).append(row["reason"])
                assert f"WARNING: left out of {relation}: {row['key']}: {row['reason']}" in self.stderr
        return found

    def detail(self, key: str) -> Any:
        return json.loads((self.output / f"v1/public/markets/detail/{key[:2]}/{key}.json").read_bytes())

    def listed(self) -> list[str]:
        page = json.loads((self.output / "v1/public/markets/lists/all/new/first/100.json").read_bytes())
        return [item["id"] for item in page["items"]]


def built(folder: Path, fill: Callable[[sqlite3.Connection], object], *arguments: str) -> Built:
    """Build a database that `fill` fills, whatever the share of bad rows."""
    with closing(create_database(folder / "markets.db")) as connection:
        fill(connection)
    (folder / "config.yaml").write_text("source:\n  url: sqlite:///markets.db\n")
    done = Site(folder).build("--allow-invalid", *arguments)
    assert done.returncode == 0, done.stderr
    return Built(folder / "output", done.stderr, done.stdout)


def insert_bad(connection: sqlite3.Connection, number: int, columns: dict[str, Any]) -> None:
    casts = {name: value for name, value in columns.items() if str(value).startswith("CAST(")}
    insert_market(connection, number, **{name: value for name, value in columns.items() if name not in casts})
    for name, expression in casts.items():
        connection.execute(f"UPDATE markets SET {name} = {expression} WHERE id = '{market_id(number)}'")


@pytest.mark.parametrize("bad", [BAD_MARKETS, BAD_TEXTS], ids=["values", "texts and ids"])
def test_every_kind_of_bad_market_costs_itself_only(tmp_path: Path, bad: list[tuple[dict[str, Any], str]]) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        insert_market(connection, 1)
        for number, (columns, _) in enumerate(bad, start=10):
            insert_bad(connection, number, columns)

    result = built(tmp_path, fill)
    reasons = result.reasons("markets")
    expected = {
        str(columns.get("id", market_id(number))): [reason] for number, (columns, reason) in enumerate(bad, start=10)
    }
    assert list(reasons) == sorted(expected)
    for key, (reason,) in reasons.items():
        assert reason.startswith(expected[key][0])
    assert result.report["markets"] == {"published": 1, "hidden": 0, "quarantined": len(bad)}
    assert f" {len(bad)} rows quarantined, " in result.summary
    assert result.listed() == [market_id(1)]


def test_rows_that_look_bad_but_are_not_are_published(tmp_path: Path) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        for number, (columns, _) in enumerate(GOOD_MARKETS, start=10):
            insert_market(connection, number, **columns)

    result = built(tmp_path, fill)
    assert result.stderr == ""
    assert len(result.listed()) == len(GOOD_MARKETS)
    for number, (_, published) in enumerate(GOOD_MARKETS, start=10):
        shown = result.detail(published.get("id", market_id(number)))["market"]
        assert {name: shown[name] for name in published} == published
    detail = (result.output / f"v1/public/markets/detail/00/{market_id(15)}.json").read_bytes()
    assert rb"NUL \u0000 in it" in detail
    lists = [content for key, content in files(result.output).items() if "/lists/" in key]
    assert len(lists) > 3_000
    assert max(map(len, lists)) < 10_000, "a description is in no list"


def test_markets_with_one_id_are_all_left_out(tmp_path: Path) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        insert_market(connection, 1)
        for _ in range(2):
            insert_market(connection, 2)
            insert_fill(connection, market_id=market_id(2))
        for key in ("abcdef00-0000-4000-8000-000000000000", "ABCDEF00-0000-4000-8000-000000000000"):
            insert_market(connection, id=key)
            insert_point(connection, "2026-01-15 00:00:00.000000", market_id=key)
        insert_market(connection, id="ffffffff-0000-4000-8000-000000000000")
        insert_point(connection, "2026-01-15 00:00:00.000000", market_id="ffffffff-0000-4000-8000-000000000000")

    result = built(tmp_path, fill)
    assert result.listed() == [market_id(1), "ffffffff-0000-4000-8000-000000000000"]
    assert len(result.detail("ffffffff-0000-4000-8000-000000000000")["probHistory"]) == 1
    assert result.reasons("markets") == {
        market_id(2): ["id: 2 markets have the same"],
        "abcdef00-0000-4000-8000-000000000000": ["id: 2 markets have the same"],
    }


BAD_FX: Final[list[tuple[dict[str, Any], str]]] = [
    ({"title": None}, "fx_family_member.title: must not be NULL"),
    ({"week_start": "soon"}, "fx_family_member.week_start: not a date such as 2026-01-31 (soon)"),
    ({"week_end": "2026-02-30"}, "fx_family_member.week_end: not a date such as 2026-01-31 (2026-02-30)"),
    ({"threshold_value": float("inf")}, f"fx_family_member.threshold_value: {INFINITE} (inf)"),
    ({"direction": "up"}, "fx_family_member.direction: input should be 'gte' or 'lte' (up)"),
]


def test_a_bad_membership_takes_its_market_along(tmp_path: Path) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        insert_market(connection, 1)
        for number, (columns, _) in enumerate(BAD_FX, start=10):
            insert_market(connection, number)
            insert_fx_member(connection, market_id=market_id(number), **columns)
        insert_market(connection, 20)
        insert_fx_member(connection, market_id=market_id(20), title="One family")
        insert_fx_member(connection, market_id=market_id(20), title="Two families")

    result = built(tmp_path, fill)
    reasons = result.reasons("markets")
    assert reasons == {market_id(number): [reason] for number, (_, reason) in enumerate(BAD_FX, start=10)}
    assert result.listed() == [market_id(1)]
    assert result.detail(market_id(20))["market"]["fxFamilyMember"]["title"] == "One family"
    assert result.reasons("fx_members") == {market_id(20): ["market_id: the market is a member of a family already"]}


def insert_details(connection: sqlite3.Connection) -> None:
    """Good and bad orders, fills and points of one market."""
    insert_market(connection)
    orders: list[dict[str, Any]] = [
        {},
        {"price": 1.0},
        {"price": float("inf")},
        {"amount": -1},
        {"amount": None},
        {"side": "buy"},
    ]
    for columns in orders:
        insert_order(connection, **columns)
    fills: list[dict[str, Any]] = [
        {},
        {"price": 1.5},
        {"price": 0.001},
        {"price": float("inf")},
        {"amount": -1},
        {"shares": None},
        {"created_at": None},
        {"id": "fill 7"},
    ]
    for number, columns in enumerate(fills):
        insert_fill(connection, number, **columns)
    for _ in range(2):
        insert_fill(connection, 20)
    for recorded_at, prob in (
        *(("2026-01-01 00:00:00.000000", 0.5), ("2026-01-02 00:00:00.000000", 1 + 1e-12)),
        *(("2026-01-03 00:00:00.000000", 1.2), ("2026-01-04 00:00:00.000000", None), (None, 0.5), ("never", 0.5)),
    ):
        insert_point(connection, recorded_at, prob)


def test_bad_orders_fills_and_points_cost_only_themselves(tmp_path: Path) -> None:
    result = built(tmp_path, insert_details)
    assert result.report["markets"] == {"published": 1, "hidden": 0, "quarantined": 0}
    detail = result.detail(market_id(1))
    assert detail["orderBook"] == {"bids": [{"price": 0.4, "amount": 5.0}], "asks": []}
    assert [(fill["id"], fill["price"]) for fill in detail["recentFills"]] == [
        (fill_id(0), 0.5),
        (fill_id(1), None),
        (fill_id(2), None),
        (fill_id(20), 0.5),
    ]
    assert detail["probHistory"] == [
        {"timestamp": "2026-01-01T00:00:00.000Z", "prob": 0.5},
        {"timestamp": "2026-01-02T00:00:00.000Z", "prob": 1.0},
    ]
    assert result.reasons("orders") == {
        market_id(1): [
            f"amount: {NEGATIVE} (-1.0)",
            "amount: must not be NULL",
            f"price: {INFINITE} (inf)",
            "price: input should be less than or equal to 0.99 (1.0)",
            "side: neither bid nor ask ('buy')",
        ]
    }
    assert result.reasons("fills") == {
        fill_id(3): [f"price: {INFINITE} (inf)"],
        fill_id(4): [f"amount: {NEGATIVE} (-1.0)"],
        fill_id(5): ["shares: must not be NULL"],
        fill_id(6): ["timestamp: must not be NULL"],
        fill_id(20): ["id: another fill has the same"],
        "fill 7": ["id: not a UUID (fill 7)"],
    }
    assert result.reasons("probabilities") == {
        market_id(1): [
            "prob: input should be less than or equal to 1 (1.2)",
            "prob: must not be NULL",
            "timestamp: must not be NULL",
            f"timestamp: {NO_TIME} (never)",
        ]
    }


def test_hundreds_of_bad_rows_do_not_flood_the_terminal(tmp_path: Path) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        insert_market(connection)
        for number in range(100):
            insert_fill(connection, number, amount=-1)

    result = built(tmp_path, fill)
    lines = result.stderr.splitlines()
    assert len(lines) == 21
    assert lines[-1] == "WARNING: and 80 more, all in report.json"
    assert len(result.report["quarantined"]) == 100


# ── hardly any rows ───────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_database_gives_thirty_empty_lists(tmp_path: Path) -> None:
    result = built(tmp_path, lambda _: None)
    assert result.stderr == ""
    firsts = {key: content for key, content in files(result.output).items() if "/first/" in key}
    assert len(firsts) == len(STATUS_FILTERS) * len(SORTS) * 100 == 3_000
    assert set(firsts.values()) == {b'{"items":[],"nextCursor":null}'}
    assert files(result.output)["v1/public/markets/snapshot.json"] == b'{"freshMarkets":[],"closingSoonMarkets":[]}'
    assert json.loads(files(result.output)["v1/build.json"])["markets"] == 0


def test_one_market_is_enough(tmp_path: Path) -> None:
    result = built(tmp_path, insert_market)
    assert result.listed() == [market_id(1)]
    page = json.loads((result.output / "v1/public/markets/lists/open/popular/first/1.json").read_bytes())
    assert (len(page["items"]), page["nextCursor"]) == (1, None)


# ── guards ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def grown(site: Site, tmp_path: Path) -> Iterator[tuple[Site, sqlite3.Connection]]:
    """A copy of the site whose database can be spoilt."""
    shutil.copytree(site.folder, tmp_path / "grown")
    with closing(sqlite3.connect(tmp_path / "grown" / "markets.db", isolation_level=None)) as connection:
        yield Site(tmp_path / "grown", site.before), connection


def test_too_many_bad_rows_replace_nothing_unless_allowed(grown: tuple[Site, sqlite3.Connection]) -> None:
    site, connection = grown
    insert_market(connection, 4, prob=1.2)
    stderr = site.refuses("build", "--as-of", NOW, code=3)
    assert stderr == (
        "error: 1 of 4 markets break the contract, more than guards.max_invalid (0.01) allows; nothing was replaced. "
        "Fix them, or pass --allow-invalid:\n"
        f"  {market_id(4)}: prob: input should be less than or equal to 1 (1.2)\n"
    )
    assert site.build("--allow-invalid").returncode == 0
    assert site.build("--set", "guards.max_invalid=0.25").returncode == 0
    assert json.loads((site.output / "report.json").read_bytes())["markets"]["quarantined"] == 1


def test_too_great_a_loss_replaces_nothing_unless_allowed(grown: tuple[Site, sqlite3.Connection]) -> None:
    site, connection = grown
    connection.execute("UPDATE markets SET is_listed = 0 WHERE id = ?", [market_id(1)])
    stderr = site.refuses("build", "--as-of", NOW, code=3)
    assert stderr == (
        "error: 1 of 3 markets would disappear, more than guards.max_shrink (0.2) allows; nothing was replaced. "
        "If the database is complete, pass --allow-shrink\n"
    )
    done = site.build("--allow-shrink")
    assert (done.returncode, done.stderr) == (0, f"WARNING: withdrawn: market {market_id(1)} is not public any more\n")
    assert not (site.output / f"v1/public/markets/detail/00/{market_id(1)}.json").exists()
