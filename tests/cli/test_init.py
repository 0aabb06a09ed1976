"""`init` makes a folder from which the job runs, and overwrites nothing."""

import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from generator.cli.init import Starter
from generator.cli.main import main
from generator.config import loader
from generator.config.downloads import Dumps
from generator.config.settings import Config
from generator.config.shape import shaping
from generator.demo.database import seed
from generator.wording import escaped
from tests.acceptance.test_sqlite_views import ROWS, TABLES
from tests.support import commands
from tests.support.programs import require
from tests.support.project import ROOT
from tests.support.sites.builds import AS_OF

DATABASES: Final = ("postgresql", "sqlite", "socialpredict")
EDGES: Final = ("nginx", "cloudflare", "cloudfront")
SCHEDULERS: Final = ("systemd", "cron")
SCHEDULING: Final = (ROOT / "docs/scheduling.md").read_text("utf-8")
PLACE: Final = "/var/lib/public-markets"


def init(folder: Path, database: str, edge: str, scheduler: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    options = ("--database", database, "--edge", edge, "--scheduler", scheduler)
    return commands.run("init", folder.name, *options, cwd=folder.parent, **environ)


def contents(folder: Path) -> Mapping[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("database", "edge", "scheduler"), [*product(DATABASES, EDGES, SCHEDULERS)])
def test_a_folder_has_settings_sql_a_schedule_and_what_to_do_next(
    tmp_path: Path, database: str, edge: str, scheduler: str
) -> None:
    made = init(tmp_path / "site", database, edge, scheduler)
    assert made.returncode == 0, made.stderr
    found = contents(tmp_path / "site")
    assert made.stdout == f"wrote {len(found)} files into site/: begin with site/README.md\n"
    config = loader.load(tmp_path / "site/config.yaml", environ={})
    assert (config.publish.target is None) == (config.publish.cdn == "none") == (edge == "nginx")
    assert config.source.schema_ == (None if database == "sqlite" else "public_api")
    written = shaping(config).keys() & re.findall(r"(?m)^(\w+): ", found["config.yaml"])
    assert {key for key in written if shaping(config)[key] == shaping(Config())[key]} == set(), "they are defaults"
    assert written >= {"base_url", "layout"}
    assert ("crontab" in found) == (scheduler == "cron")
    for name, text in found.items():
        assert name not in {"sql", "crontab"} or text
        if name.startswith("sql/"):
            assert text == (ROOT / "templates" / name).read_text("utf-8"), name
    steps = [line for line in found["README.md"].splitlines() if re.match(r"\d\. ", line)]
    assert len(steps) == 7
    assert len(found["README.md"].splitlines()) <= 12
    assert all(
        (tmp_path / "site" / name).exists()
        for name in re.findall(r"`(sql/\S+|config.yaml|environment)`", found["README.md"])
    )
    assert f"output/edge/{edge}/" in found["README.md"]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("edge", EDGES)
def test_the_layout_is_the_one_that_plan_recommends(tmp_path: Path, edge: str) -> None:
    init(tmp_path / "site", "sqlite", edge, "cron")
    seed(tmp_path / "site/site.db", as_of=AS_OF, markets=60)
    planned = commands.run("plan", "--env-file", "environment", cwd=tmp_path / "site")
    assert planned.returncode == 0, planned.stderr
    config = loader.load(tmp_path / "site/config.yaml", environ={})
    # No store is paid where nginx serves the folder, so nothing is recommended by its price.
    told = f"layout {config.layout}: " if edge == "nginx" else f"recommended: layout {config.layout},"
    assert told in planned.stdout
    assert config.layout == "chunks"


def test_only_the_owner_can_read_the_secrets_and_everybody_the_rest(tmp_path: Path) -> None:
    init(tmp_path / "site", "postgresql", "cloudflare", "systemd")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "site").iterdir()}
    assert modes.pop("environment") == 0o600
    assert {*modes.values()} == {0o644, 0o755}


@pytest.mark.parametrize("name", ["config.yaml", "environment", "sql/postgresql-views.sql", "README.md"])
def test_nothing_is_overwritten_and_nothing_written_beside_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "site/sql").mkdir(parents=True)
    (tmp_path / "site" / name).symlink_to("nowhere")
    made = init(tmp_path / "site", "postgresql", "nginx", "systemd")
    assert made.returncode == 1
    assert made.stderr == (
        f"error: site/{name} is there already, and init overwrites nothing; name another folder, or move it away\n"
    )
    assert [path for path in (tmp_path / "site").rglob("*") if path.name != "sql"] == [tmp_path / "site" / name]


@pytest.mark.parametrize("name", ["R&D", "50%", "a b", "$HOME", "é"])
def test_a_path_that_units_and_crontabs_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    made = init(tmp_path / name, "sqlite", "nginx", "cron")
    assert made.returncode == 1
    assert "has letters that units and crontabs do not take as they are" in made.stderr
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["x\nExecStartPre=/bin/false", "a b", "%n", "$(id)", "a/b", "-x", "é", "x;y", "x\n"])
def test_a_user_whose_name_units_and_shells_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    made = init(tmp_path / "site", "sqlite", "nginx", "systemd", LOGNAME=name)
    assert made.returncode == 1
    assert made.stderr.startswith(f"error: {escaped(name)}: has letters that units and shells do not take")
    assert not (tmp_path / "site").exists()


def test_what_stands_where_the_folder_would_is_named(tmp_path: Path) -> None:
    (tmp_path / "site").touch()
    made = init(tmp_path / "site", "sqlite", "nginx", "cron")
    assert made.returncode == 1
    assert made.stderr.startswith("error: site is there already, and init overwrites nothing")


def test_a_user_without_a_name_is_written_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    words = ("init", str(tmp_path / "site"), "--database", "sqlite", "--edge", "nginx", "--scheduler", "systemd")
    made = CliRunner().invoke(main, words)
    assert made.exit_code == 0, made.output
    assert f"User={os.getuid()}\n" in (tmp_path / "site/public-markets.service").read_text()


def test_where_nobody_can_be_asked_the_missing_option_is_named(tmp_path: Path) -> None:
    made = commands.run("init", "site", "--database", "sqlite", cwd=tmp_path)
    assert made.returncode == 2
    assert (
        "--edge is missing, and there is no terminal to ask on; give one of nginx, cloudflare, cloudfront"
        in made.stderr
    )
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(("answer", "dumps"), [("", Dumps()), ("y", Dumps(parquet=True, fills=True))])
def test_on_a_terminal_what_was_not_given_is_asked_and_trades_are_published_by_who_says_so(
    tmp_path: Path, answer: str, dumps: Dumps
) -> None:
    words = ("init", "site", "--scheduler", "cron")
    code, printed, screen = commands.on_terminal(*words, cwd=tmp_path, answer=f"mysql\nsqlite\nnginx\n{answer}\n\n\n\n")
    shown = screen.decode()
    assert code == 0, shown
    assert "Where the markets are (postgresql, sqlite, socialpredict): " in shown
    assert "What will serve readers (nginx, cloudflare, cloudfront): " in shown
    assert "Publish every trade for download, from which it can be told who traded [y/N]: " in shown
    assert printed.startswith("wrote 6 files into site/")
    config = loader.load(tmp_path / "site/config.yaml", environ={})
    assert config.dumps == dumps
    assert (config.license, config.publisher.shown_name) == (None, None)


def test_on_a_terminal_licence_and_publisher_are_asked_until_the_answer_is_one(tmp_path: Path) -> None:
    words = ("init", "site", "--scheduler", "cron", "--edge", "nginx")
    told = 'CC BY\ncc-by-4.0\nZoë: "A" & Co.\nexample.org\nhttps://example.org/\n'
    code, _, screen = commands.on_terminal(*words, cwd=tmp_path, answer=f"sqlite\n\n{told}")
    shown = screen.decode()
    assert code == 0, shown
    assert shown.count("Licence of the data, such as CC-BY-4.0, or its address (empty: none): ") == 2
    assert "Error: write an identifier of https://spdx.org/licenses" in shown
    assert shown.count("Address of who publishes the data (empty: none): ") == 2
    config = loader.load(tmp_path / "site/config.yaml", environ={})
    assert config.license == "CC-BY-4.0"
    assert config.publisher.model_dump() == {"name": 'Zoë: "A" & Co.', "url": "https://example.org"}


def test_the_units_of_the_docs_are_what_init_writes() -> None:
    made = dict(
        Starter(
            PLACE, "/opt/public-markets/bin/public-markets", "public-markets", "postgresql", "cloudflare", "systemd"
        ).files()
    )
    units = {name: text for name, text in made.items() if name.endswith((".service", ".timer"))}
    assert {*re.findall(r"```ini\n(.*?)```", SCHEDULING, re.DOTALL)} == {*units.values()}
    assert f"init {PLACE} --scheduler systemd" in SCHEDULING
    assert f"useradd --system --home-dir {PLACE} " in SCHEDULING


def test_the_lines_of_the_install_page_work_with_and_without_a_terminal(tmp_path: Path) -> None:
    install = (ROOT / "docs/install.md").read_text("utf-8")
    asking, whole = re.findall(r"^    public-markets init /srv/public-markets(.*)$", install, re.MULTILINE)
    assert asking == ""  # as on the terminal above
    made = commands.run("init", "site", *whole.split(), cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "site/crontab").exists()


@pytest.mark.campaign(short=0)
def test_the_steps_lead_from_a_database_to_a_site_that_cron_rebuilds(tmp_path: Path) -> None:
    """A SQLite site of another schema, and nginx: all but the deployment itself."""
    site = tmp_path / "site"
    assert init(site, "sqlite", "nginx", "cron").returncode == 0
    with closing(sqlite3.connect(site / "site.db")) as connection:
        connection.executescript(
            TABLES
            + ROWS
            + "DELETE FROM contracts WHERE state = 'postponed';"
            + (site / "sql/sqlite-views.sql").read_text()
        )
    readme = (site / "README.md").read_text()
    for line in re.findall(r"`public-markets ((?:check|plan|build) [^`]+)`", readme):
        ended = commands.run(*shlex.split(line), cwd=site)
        assert ended.returncode == 0, [line, *ended.stdout.splitlines()]
    assert json.loads((site / "output/v1/build.json").read_bytes())["markets"] == 6
    before = (site / "output/v1/build.json").stat().st_mtime_ns
    (line,) = (site / "crontab").read_text().splitlines()
    beside = Path(sys.executable).parent
    assert f" {beside / 'public-markets'} build " in line
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    subprocess.run(["/bin/sh", "-c", line.split(maxsplit=5)[5]], cwd="/", env=environ, check=True, capture_output=True)
    assert (site / "output/v1/build.json").stat().st_mtime_ns > before


@pytest.mark.parametrize("edge", ["nginx", "cloudflare"])
def test_the_units_are_valid(tmp_path: Path, edge: str) -> None:
    analyze = require("systemd-analyze", reason="the units that init writes are not verified")
    init(tmp_path / "site", "postgresql", edge, "systemd")
    for unit in ("public-markets.service", "public-markets.timer", "public-markets-failed.service"):
        verified = subprocess.run(
            [analyze, "verify", f"./{unit}"], cwd=tmp_path / "site", capture_output=True, text=True, check=False
        )
        assert (verified.returncode, verified.stderr) == (0, ""), unit
