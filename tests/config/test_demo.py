"""Which sources are taken for the demo."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from generator.cli.main import main
from generator.config import demo
from tests.config.folder import Folder

DEMO = "sqlite:///demo.db"


def test_the_source_is_the_default_as_long_as_nobody_names_another(folder: Folder) -> None:
    for text in ("", "source: {schema: public_api}", f"source: {{url: '{DEMO}'}}"):
        assert folder.load(text).source.is_default
    assert not folder.load("source: {url: 'sqlite:///mine.db'}").source.is_default
    assert not folder.load("", PUBLIC_MARKETS_SOURCE__URL=DEMO).source.is_default
    assert not folder.load("", f"source.url={DEMO}").source.is_default


def test_the_demo_command_marks_its_database(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.file.parent)
    folder.file.touch()
    assert CliRunner().invoke(main, ["demo", "--markets", "1"]).exit_code == 0
    with closing(sqlite3.connect(Path("demo.db"))) as database:
        assert database.execute("PRAGMA application_id").fetchone() == (demo.APPLICATION_ID,)
