"""`demo`: what a stranger sees first, and what works in its folder afterwards."""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.project import ROOT

#: Enough markets for one of each status and a family; in this layout they take few files.
OPTIONS = ("--markets", "60", "--set", "layout=chunks")
LABELS = ["open", "closed", "resolved", "cancelled", "FX family", "search"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a demo and nothing else."""
    made = tmp_path_factory.mktemp("stranger")
    assert run("demo", *OPTIONS, cwd=made).returncode == 0
    return made


def test_the_demo_shows_each_status_a_family_and_a_search_and_ends_with_what_to_do_now(folder: Path) -> None:
    told = run("demo", *OPTIONS, cwd=folder)
    assert told.stderr == "demo.db exists already; delete it to create a new one\n"
    _, *shown, last = told.stdout.splitlines()
    assert [line.partition(":")[0] for line in shown] == LABELS
    assert last == "now: public-markets serve, or open output/index.html"
    for line in shown[:-1]:
        label, path, question = re.split(r": +|  ", line)
        detail = (folder / path).read_text("utf-8")
        assert f'"question":"{question}"' in detail
        assert f'"status":"{label}"' in detail or (label == "FX family" and '"fxFamilyMember":{' in detail)
    found = run(*shown[-1].partition("public-markets ")[2].split(), cwd=folder)
    assert (found.returncode, found.stderr) == (0, "")


def test_in_a_checkout_it_names_the_target_of_make(folder: Path) -> None:
    options = (f"--set=output={folder / 'output'}", f"--set=source.url=sqlite:///{folder / 'demo.db'}")
    told = run("demo", *OPTIONS, *options, cwd=ROOT)
    assert told.stdout.splitlines()[-1] == f"now: make serve, or open {folder}/output/index.html"


def test_what_is_odd_in_a_database_of_ones_own_is_told(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "demo.db", tmp_path)
    with closing(sqlite3.connect(tmp_path / "demo.db")) as database:
        database.execute("PRAGMA application_id = 0")
    told = run("demo", "--set=source.url=sqlite:///demo.db", "--set=layout=chunks", cwd=tmp_path)
    assert "is open past its close_time" in told.stderr


@pytest.mark.parametrize("words", ["find will", "hold", "check", "check --published", "plan", "build"])
def test_the_commands_beside_a_demo_need_no_settings(folder: Path, words: str) -> None:
    told = run(*words.split(), "--set=layout=chunks", cwd=folder)
    assert (told.returncode, "error" in told.stderr) == (0, False)


def test_elsewhere_and_for_another_database_and_where_a_file_is_named_they_do(folder: Path, tmp_path: Path) -> None:
    other = {"PUBLIC_MARKETS_SOURCE__URL": "sqlite:///markets.db"}
    named = ("--config", "config.yaml")
    for told in (
        run("check", "--published", cwd=tmp_path),
        run("check", "--published", *named, cwd=folder),
        run("check", "--published", cwd=folder, **other),
    ):
        assert told.stderr.startswith("error: config.yaml: no such file or directory")


def test_a_hold_without_a_target_says_that_nothing_is_published(folder: Path) -> None:
    assert run("hold", cwd=folder).stdout == (
        "publish.target is not set, so nothing is published, and nothing is on hold\n"
    )
    for words in (("hold", "Wrong prices"), ("hold", "--release")):
        assert run(*words, cwd=folder).stderr.startswith("error: publish.target: is not set; set it to s3://")
