"""Where the docs lie, and that what messages and templates name is there."""

import re
import sqlite3
from pathlib import Path

import click
import pytest

from generator.cli import logs
from tests.support.commands import run
from tests.support.project import ROOT
from tests.support.sites.rows import insert_market, market_id


def test_every_page_and_template_that_the_program_or_a_template_names_is_there() -> None:
    paths = [path for folder in ("generator", "templates") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text("utf-8") for path in paths if path.suffix in {".py", ".j2", ".sql", ".yaml", ".yml"}]
    named = {name for text in texts for name in re.findall(r"(?<![\w/.-])(?:docs|templates)/[\w/-]+(?:\.\w+)+", text)}
    assert {"docs/cluster.md", "docs/secrets.md", "templates/sql/postgresql-views.sql"} < named
    assert {name for name in named if not (ROOT / name).is_file()} == set()


def test_docs_prints_the_folder_of_the_docs(tmp_path: Path) -> None:
    assert run("docs", cwd=tmp_path).stdout == f"{ROOT / 'docs'}\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_warnings_and_errors_name_a_page_by_its_path(
    form: logs.LogFormat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with click.Context(click.Command("docs")):
        logs.configure(form, verbose=False)
        for say in (logs.LOG.warning, lambda text: logs.failure(text, 1)):
            say("see docs/secrets.md, not docs/none.md, nor /my/docs/secrets.md")
            told = capsys.readouterr()
            said = f"see {ROOT}/docs/secrets.md, not docs/none.md, nor /my/docs/secrets.md"
            assert said in told.out + told.err


def test_check_names_a_page_by_its_path_and_texts_of_the_site_stay_as_they_are(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    insert_market(database, id=market_id(1).replace("-", ""), question="See docs/install.md please")
    insert_market(database, 2, question="See docs/install.md please")
    database.commit()
    (tmp_path / "config.yaml").touch()
    settings = f"--set=source.url=sqlite:///{tmp_path}/markets.db"
    assert f"as {ROOT}/docs/recipes.md shows" in run("check", settings, cwd=tmp_path).stdout
    assert run("build", settings, "--accept=invalid", cwd=tmp_path).returncode == 0
    assert "See docs/install.md please" in run("find", market_id(2), settings, cwd=tmp_path).stdout
