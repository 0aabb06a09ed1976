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


@pytest.mark.parametrize("text", ["", "source: {schema: public_api}", f"source: {{url: '{DEMO}'}}"])
def test_the_source_is_the_default_as_long_as_nobody_names_another(text: str, folder: Folder) -> None:
    assert folder.load(text).source.is_default


@pytest.mark.parametrize("layer", ["file", "environment", "--set"])
def test_a_source_that_somebody_names_is_not_the_default(layer: str, folder: Folder) -> None:
    loaded = {
        "file": lambda: folder.load("source: {url: 'sqlite:///mine.db'}"),
        "environment": lambda: folder.load("", PUBLIC_MARKETS_SOURCE__URL=DEMO),
        "--set": lambda: folder.load("", f"source.url={DEMO}"),
    }[layer]()
    assert not loaded.source.is_default


def test_the_demo_command_marks_its_database(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.file.parent)
    folder.file.touch()
    assert CliRunner().invoke(main, ["demo", "--markets", "1"]).exit_code == 0
    with closing(sqlite3.connect(Path("demo.db"))) as database:
        assert database.execute("PRAGMA application_id").fetchone() == (demo.APPLICATION_ID,)
