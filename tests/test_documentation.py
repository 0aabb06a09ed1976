"""Where the docs lie, and that what messages and templates name is there."""

import re
from pathlib import Path

import click
import pytest

from generator.cli import logs
from tests.support.commands import run
from tests.support.project import ROOT


def test_every_page_and_template_that_the_program_or_a_template_names_is_there() -> None:
    paths = [path for folder in ("generator", "templates") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text("utf-8") for path in paths if path.suffix in {".py", ".j2", ".sql", ".yaml", ".yml"}]
    named = {name for text in texts for name in re.findall(r"(?<![\w/.-])(?:docs|templates)/[\w/-]+(?:\.\w+)+", text)}
    assert {"docs/cluster.md", "docs/secrets.md", "templates/sql/postgresql-views.sql"} < named
    assert {name for name in named if not (ROOT / name).is_file()} == set()


def test_docs_prints_the_folder_of_the_docs(tmp_path: Path) -> None:
    assert run("docs", cwd=tmp_path).stdout == f"{ROOT / 'docs'}\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_results_warnings_and_errors_name_a_page_by_its_path(
    form: logs.LogFormat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with click.Context(click.Command("docs")):
        logs.configure(form, verbose=False)
        for say in (logs.result, logs.LOG.warning, lambda text: logs.failure(text, 1)):
            say("see docs/secrets.md, not docs/none.md, nor /my/docs/secrets.md")
            told = capsys.readouterr()
            said = f"see {ROOT}/docs/secrets.md, not docs/none.md, nor /my/docs/secrets.md"
            assert said in told.out + told.err
