"""README, CONTRIBUTING and docs/: commands, options, settings, figures, links and paths in them are correct."""

import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Final

import click
import pytest
import yaml

from generator.config.settings import KEYS, OF_CLUSTER, variable
from generator.demo.database import seed
from generator.tree import files
from tests.support.commands import run
from tests.support.edges.serving import served
from tests.support.programs import require
from tests.support.project import ROOT
from tests.support.readers.pages import PAGES, PROGRAM, anchors, prose, rows_of, scripts, shown_commands, spans
from tests.support.sites.builds import AS_OF, all_commands
from tests.support.sites.question_tables import create_questions, member_row, question_row
from tests.support.sites.rows import insert
from tests.support.waiting import PATIENCE_S

COMMANDS: Final = all_commands()
README: Final = PAGES["README.md"]
SETTINGS: Final = ROOT / "docs" / "settings.md"
MAKEFILE: Final = (ROOT / "Makefile").read_text("utf-8")
#: The pages that give reasons: the whole's, and each package's.
REASONS: Final = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in (ROOT / "RATIONALE.md", *sorted((ROOT / "generator").rglob("README.md")))
}
#: Pages whose commands have tests of their own, with what they need.
OPERATED: Final = {"docs/operations.md"}
#: A build in this layout makes few files, and takes a moment.
CHUNKS: Final = {"PUBLIC_MARKETS_LAYOUT": "chunks"}


# ── commands and options ──────────────────────────────────────────────────────────────────────────────────────────


def options() -> list[tuple[str, str]]:
    """Every option that is not hidden, with its command."""
    return [
        (name, parameter.opts[-1])
        for name, command in COMMANDS.items()
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
    ]


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= 170


def test_every_section_for_contributors_fits_on_a_screen() -> None:
    sections = PAGES["CONTRIBUTING.md"].split("\n## ")
    assert len(sections) > 8
    assert max(len(section.splitlines()) for section in sections) <= 30


def test_the_table_of_commands_is_complete() -> None:
    assert {*re.findall(rf"^\| `{PROGRAM} (\w+)", README, re.MULTILINE)} == COMMANDS.keys()
    assert len(COMMANDS) == 14
    assert all(command.help for command in COMMANDS.values())


def test_the_table_of_options_is_complete_and_true() -> None:
    documented = set()
    for first, of, *_ in rows_of(PAGES["docs/commands.md"]):
        for option in re.findall(r"`(-[\w-]+)", first):
            named = re.findall(r"`(\w+)`", of)
            names = COMMANDS.keys() - named if of.startswith("all") else named
            documented |= {(name, option) for name in names if option.startswith("--")}
    assert documented == {*options()}
    assert len(documented) > 60


def test_every_default_of_an_option_is_true() -> None:
    found = re.findall(
        r"^\| `(--[\w-]+)[^|]*\|[^|]*\|[^|\n]*\(default `?([\w.]+)`?\)", PAGES["docs/commands.md"], re.MULTILINE
    )
    assert len(found) == 8
    defaults = {parameter.opts[-1]: parameter.default for command in COMMANDS.values() for parameter in command.params}
    assert found == [(option, str(defaults[option])) for option, _ in found]


def test_every_command_shown_is_understood() -> None:
    assert len(shown_commands()) > 40
    assert {words[0] for _, words in shown_commands()} >= COMMANDS.keys()
    for page, (name, *arguments) in shown_commands():
        if name.startswith("--"):
            assert name in {"--version", "--help"}, page
        elif arguments != ["REF…"]:
            assert COMMANDS[name].make_context(name, [*arguments]).params, page


def test_every_make_target_shown_exists() -> None:
    shown = {
        word
        for text in PAGES.values()
        for line in [*scripts(text), *spans(text)]
        if line.strip().startswith("make ")
        for word in shlex.split(line, comments=True)[1:]
        if "=" not in word
    }
    assert len(shown) >= 8
    known = {*re.findall(r"^([\w./-]+):(?!=)", MAKEFILE, re.MULTILINE)}
    assert shown - known == set()


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def settings_table() -> str:
    """What docs/settings.md must hold: defaults as in config.yaml, meanings as in the schema."""
    spelled = yaml.load((ROOT / "config.yaml").read_text("utf-8"), yaml.BaseLoader)  # noqa: S506 - nothing but text

    def default(key: str) -> str:
        section, _, name = key.rpartition(".")
        return f"`{(spelled[section] if section else spelled)[name]}`"

    return "".join(
        f"| `{key}` | {default(key)} | {field.description} |\n" for key, field in KEYS.items() if key not in OF_CLUSTER
    )


def test_the_table_of_settings_is_that_of_the_code() -> None:
    text = PAGES["docs/settings.md"]
    head, line, _ = text.partition("|---|---|---|\n")
    current = head + line + settings_table()
    if os.environ.get("BLESS") == "1":
        SETTINGS.write_text(current, "utf-8")
        return
    assert text == current, "the settings changed: run `make bless` and commit docs/settings.md"


def test_every_setting_named_exists() -> None:
    sections = {key.partition(".")[0] for key in KEYS if "." in key}
    named = {
        match[0]
        for text in PAGES.values()
        for match in re.findall(r"`(([a-z_]+)\.[a-z_]+)(?:: [^`]*|=[^`]*)?`", text)
        if match[1] in sections
    }
    named -= {files.DUMP_PARTS, files.HISTORY, "history.json"}  # named like settings
    assert len(named) > 15
    assert named - KEYS.keys() == set()


def test_every_variable_named_exists() -> None:
    named = {name for text in PAGES.values() for name in re.findall(r"\bPUBLIC_MARKETS_\w+", text)}
    assert named
    assert named - {variable(key) for key in KEYS} == set()


def spellings(default: object) -> set[str]:
    """The ways in which prose may write a numeric default."""
    if isinstance(default, timedelta):
        seconds = int(default.total_seconds())
        return {f"{seconds} s", f"{seconds // 60} minutes", f"{seconds // 3600} hours"}
    assert isinstance(default, int | float)
    return {f"{default * 100:g} %" if default < 1 else f"{default:g}", f"{default:g} USD"}


def test_every_default_in_prose_is_that_of_the_setting() -> None:
    figures = {key: field.default for key, field in KEYS.items() if isinstance(field.default, timedelta | int | float)}
    names = "|".join(map(re.escape, figures))
    found = {
        match for text in PAGES.values() for match in re.findall(rf"`({names})`\s(?:minutes )?\((\d[^)]*)\)", text)
    }
    assert {key for key, _ in found} >= {
        "cursor.lifetime", "detail.history_points", "detail.recent_fills", "guards.max_invalid",
        "guards.max_monthly_cost", "guards.max_shrink", "rate_limit.requests",
        "rate_limit.searches", "rate_limit.window", "schedule", "snapshot.size",
    }  # fmt: skip
    assert {(key, figure) for key, figure in found if figure not in spellings(figures[key])} == set()


# ── links, paths, terms ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("page", [*PAGES, *REASONS])
def test_every_link_leads_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose((PAGES | REASONS)[page])):
        name, _, anchor = target.partition("#")
        found = (ROOT / page).parent / name if name else ROOT / page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found.read_text("utf-8")), target


def test_readme_links_every_page() -> None:
    assert {name for name in PAGES if f"({name})" not in README} == {"README.md"}


def test_the_rationale_links_the_reasons_of_every_package() -> None:
    packages = {name for name in REASONS if name.startswith("generator/")}
    assert {name for name in packages if f"({name})" not in REASONS["RATIONALE.md"]} == set()


def test_every_path_named_exists() -> None:
    folders = r"(?:\.ci|\.github|docs|generator|requirements|templates|tests)/"
    named = {
        span
        for name in [*PAGES, *REASONS, "CHANGELOG.md"]
        for span in spans((ROOT / name).read_text("utf-8"))
        if re.fullmatch(rf"{folders}[\w./-]*", span)
    }
    assert len(named) > 10
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_every_term_is_defined_once() -> None:
    defined = re.findall(r"^- \*\*(.+?)\*\*:", PAGES["docs/glossary.md"], re.MULTILINE)
    assert len(defined) == len({*defined}) > 40


# ── runnable examples ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The output of a demo that can be searched, and its address."""
    folder = tmp_path_factory.mktemp("demo")
    extended = {**CHUNKS, "PUBLIC_MARKETS_VARIANT": "extended", "PUBLIC_MARKETS_CATEGORIES": "politics"}
    assert run("demo", "--markets", "120", "--config", os.devnull, cwd=folder, **extended).returncode == 0
    with served(folder) as server:
        yield folder / "output", f"http://127.0.0.1:{server.port}"


def test_the_example_of_the_api_guide_walks_a_list(demo: tuple[Path, str]) -> None:
    output, address = demo
    # tests/clients/test_questions.py has the other.
    example, _ = re.findall(r"^```python\n(.*?)^```$", PAGES["docs/api.md"], re.DOTALL | re.MULTILINE)
    script = example.replace("http://127.0.0.1:8000", address).replace("=100", "=7")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    lists = json.loads((output / "v1" / "build.json").read_bytes())["lists"]
    assert int(done.stdout) == lists["all/popular"] > 74


def test_every_request_shown_is_answered_and_every_search_finds_something(demo: tuple[Path, str]) -> None:
    curl = require("curl", reason="the requests shown in the docs are not made")
    shown = [
        shlex.split(line.strip().replace("http://127.0.0.1:8000", "BASE").replace("BASE", demo[1]))[1:]
        for page in ("README.md", "docs/api.md", "docs/extended-variant.md")
        for line in [*scripts(PAGES[page]), *spans(PAGES[page])]
        if line.strip().startswith("curl ")
        if "/questions" not in line  # tests/clients/test_questions.py asks for these
    ]
    for words in shown:
        done = subprocess.run([curl, "-fsS", *words], capture_output=True, check=False, timeout=PATIENCE_S)
        assert done.returncode == 0, (words, done.stderr)
        page = json.loads(done.stdout)
        assert page.get("items", True), words
    assert sum("q=" in " ".join(words) for words in shown) >= 3
    assert len(shown) >= 5


def runnable(site: Path) -> list[list[str]]:
    """Every command shown, once, that needs no PostgreSQL and no file of its own; its target becomes the folder.

    There is no live site to verify; tests/verify has some. A hold with a reason would refuse all that follow; the
    recipe with it is followed in test_operations.
    """
    unfit = {"REF…", "WORDS", "REASON", "Prices of 2 June are wrong", "source.schema=public_api"}
    wanted = {
        tuple(re.sub(r"s3://markets/api|/srv/markets", str(site), word) for word in words): None
        for page, words in shown_commands()
        if page not in OPERATED
        if words[0] in COMMANDS and words[0] not in {"demo", "init", "serve", "verify"}
        if not (unfit | {"/etc/public-markets/config.yaml"}) & {*words}
    }
    return [[*words] for words in wanted]


@pytest.mark.campaign(short=0)
def test_commands_work_as_written(tmp_path: Path) -> None:
    """In an empty folder, in the order of the pages. Commands without a target get one, as the pages say."""
    (tmp_path / "config.yaml").touch()
    site = tmp_path / "site"
    seed(tmp_path / "markets.db", as_of=AS_OF, markets=5)
    with closing(sqlite3.connect(tmp_path / "markets.db")) as database, database:
        create_questions(database)
        insert(database, "questions", **question_row(key="cup-2026"))
        (last,) = database.execute("SELECT max(id) FROM markets WHERE approval = 'approved' AND is_listed").fetchone()
        insert(database, "question_members", **member_row(1, 1, market_id=last))
    given = {"PUBLIC_MARKETS_PUBLISH__TARGET": str(site), "PUBLIC_MARKETS_SOURCE__URL": "sqlite:///markets.db"}
    ran = [run(*words, cwd=tmp_path, **given, **CHUNKS) for words in runnable(site)]
    assert [(done.args, done.stderr) for done in ran if done.returncode != 0] == []
    assert {done.args[0] for done in ran} == COMMANDS.keys() - {"demo", "init", "serve", "verify"}
    assert (site / "v1" / "build.json").is_file()
