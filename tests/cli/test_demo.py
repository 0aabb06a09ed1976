"""`demo`: what a stranger sees first, and what works in its folder afterwards."""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.support.commands import run

#: Enough markets for one of each status and a family; in this layout they take few files.
OPTIONS: Final = ("--markets", "60", "--set", "layout=chunks")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stranger")
    assert run("demo", *OPTIONS, cwd=made).returncode == 0
    return made


def test_the_demo_shows_each_status_a_family_a_question_and_a_search_and_ends_with_what_to_do_now(folder: Path) -> None:
    told = run("demo", *OPTIONS, cwd=folder)
    assert told.stderr == "demo.db exists already; delete it to create a new one\n"
    _, *shown, last = told.stdout.splitlines()
    labels = [line.partition(":")[0] for line in shown]
    assert labels == ["open", "closed", "resolved", "cancelled", "FX family", "question", "search"]
    assert last == "now: public-markets serve, or open output/index.html"
    for line in shown[:-1]:
        label, path, question = re.split(r": +|  ", line)
        detail = (folder / path).read_text("utf-8")
        expected = {"FX family": '"fxFamilyMember":{', "question": '"kind":'}
        assert f'"{"title" if label == "question" else "question"}":"{question}"' in detail
        assert expected.get(label, f'"status":"{label}"') in detail
    found = run(*shown[-1].partition("public-markets ")[2].split(), cwd=folder)
    assert (found.returncode, found.stderr) == (0, "")


def test_in_a_checkout_it_names_the_target_of_make_and_knows_its_database_under_any_address(folder: Path) -> None:
    told = run("demo", *OPTIONS, f"--set=output={folder}/output", f"--set=source.url=sqlite:///{folder}/demo.db")
    assert told.stdout.splitlines()[-1] == f"now: make serve, or open {folder}/output/index.html"
    assert "WARNING" not in told.stderr


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


@pytest.mark.parametrize("words", ["", "--config config.yaml", "--env-file environment"])
def test_elsewhere_and_where_files_are_named_they_do(folder: Path, tmp_path: Path, words: str) -> None:
    (folder / "environment").write_text("PUBLIC_MARKETS_SOURCE__URL=sqlite:///markets.db\n")
    told = run("check", "--published", *words.split(), cwd=folder if words else tmp_path)
    assert told.stderr.startswith("error: config.yaml: no such file or directory")


def test_without_a_target_it_is_the_output_folder_that_is_not_on_hold(folder: Path) -> None:
    assert run("hold", cwd=folder).stdout == "output: is not on hold\n"
