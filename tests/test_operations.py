"""docs/operations.md: each section's commands do what it says, typed as written by an operator of a small site."""

import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from generator import __version__
from generator.api import keys
from tests.support.commands import run
from tests.support.readers.pages import PAGES, rows_of, section, shown_files, typed, words_after_program
from tests.support.sites.builds import files, text_of
from tests.support.sites.publishing import hour, populate
from tests.support.sites.rows import create_database, market_id

PAGE: Final = "docs/operations.md"
NIGHT: Final = "docs/takedown.md"
YESTERDAY: Final = "Bring yesterday's output back"
#: The script there; its last line is typed by tests.
SCRIPT: Final = re.compile(r"^```sh\n(.*)^exec public-markets rebuild$", re.DOTALL | re.MULTILINE)
#: Programs that no test can run.
_ELSEWHERE: Final = {"systemctl"}


class Operator:
    """Somebody who types what a section says. The folder stands for the machine: its `srv` is /srv."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = folder / "srv" / "markets"

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        here = [re.sub(r"(?<![\w.])/srv/", f"{self.folder}/srv/", word) for word in words]
        return run(*here, cwd=self.folder, PUBLIC_MARKETS_SOURCE__URL="sqlite:///site.db")

    def done(self, *words: str) -> str:
        """Run a command that must succeed; returns what it printed."""
        result = self.run(*words)
        assert result.returncode == 0, (words, result.stderr)
        return result.stdout

    def refused(self, code: int, *words: str) -> str:
        result = self.run(*words)
        assert result.returncode == code, (words, result.stderr)
        return result.stderr

    def follow(self, heading: str, **before: Callable[[], object]) -> list[str]:
        """Type every line of a section; returns the outputs. What `line_3` names happens before the third line."""
        outputs = []
        for number, line in enumerate(typed(section(PAGE, heading)), 1):
            if happens := before.pop(f"line_{number}", None):
                happens()
            if line.split()[0] not in _ELSEWHERE:
                outputs.append(self.type(line))
        assert not before
        return outputs

    def type(self, line: str) -> str:
        if words := words_after_program(line):
            return self.done(*words)
        script = line.replace("/srv/", f"{self.folder}/srv/")
        ran = subprocess.run(["sh", "-ec", script], cwd=self.folder, capture_output=True, text=True, check=False)
        assert ran.returncode == 0 or (line.startswith("diff ") and ran.returncode == 1), ran
        return ran.stdout

    def question(self, text: str, *, of: int | None = None) -> None:
        """Change the question of every market, or of one."""
        with closing(sqlite3.connect(self.folder / "site.db", isolation_level=None)) as database:
            database.execute(
                "UPDATE markets SET question = ? WHERE ?2 IS NULL OR id = ?2", [text, of and market_id(of)]
            )

    def hides(self, number: int, *, is_listed: bool = False) -> None:
        with closing(sqlite3.connect(self.folder / "site.db", isolation_level=None)) as database:
            database.execute("UPDATE markets SET is_listed = ? WHERE id = ?", [is_listed, market_id(number)])

    def shows(self, text: str) -> bool:
        """Whether anything published contains the text, compressed or not."""
        return any(text.encode() in text_of(key, body) for key, body in files(self.target).items())

    def asks(self, number: int) -> str:
        """The question of a market, as its detail has it."""
        detail = json.loads((self.target / keys.detail(market_id(number))).read_bytes())
        question: str = detail["market"]["question"]
        return question

    def takes_down(self, number: int) -> None:
        self.done("takedown", market_id(number))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an operator who has published a site."""
    folder = tmp_path_factory.mktemp("operator")
    (folder / "srv").mkdir()
    (folder / "backup").mkdir()
    (folder / "config.yaml").write_text("layout: chunks\npublish:\n  target: ./srv/markets\n")
    with closing(create_database(folder / "site.db")) as database:
        populate(database)
    Operator(folder).done("rebuild")
    return folder


@pytest.fixture
def operator(home: Path, tmp_path: Path) -> Operator:
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    return Operator(tmp_path)


@pytest.fixture
def served(operator: Operator) -> Operator:
    """One without a target: nginx serves the output folder."""
    (operator.folder / "config.yaml").write_text("layout: chunks\n")
    operator.target = operator.folder / "output"
    return operator


def test_upgrading_and_going_back(operator: Operator) -> None:
    def the_edge_changes() -> None:
        config = operator.folder / "config.yaml"
        config.write_text(f"{config.read_text('utf-8')}rate_limit:\n  requests: 77\n")

    def a_newer_version_published() -> None:
        record = json.loads((operator.target / "manifest.json").read_bytes())
        (operator.target / "manifest.json").write_text(json.dumps(record | {"shards": 7}))
        assert "written by another version (unknown: shards)" in operator.refused(1, "rebuild")

    operator.done("rebuild")  # the edge's files name the folder
    shutil.copytree(operator.folder / "output" / "edge", operator.folder / "srv" / "edge-deployed")
    version, _, dry_run, _, edge, _, verified = operator.follow(
        "Upgrade", line_3=the_edge_changes, line_7=a_newer_version_published
    )
    assert version.startswith(f"public-markets {__version__}, commit ")
    assert [line for line in dry_run.splitlines() if line.startswith(("upload", "delete"))] == [
        "upload v1/llms.txt: changed",
        "upload v1/openapi.json: changed",
        "upload v1/build.json: changed",
    ]
    assert "limit_req_zone" in edge
    assert " 0 unchanged, " in verified.splitlines()[-1]


def test_bringing_over_a_site_whose_folder_and_record_nobody_reads(operator: Operator) -> None:
    operator.takes_down(1)
    for place in (operator.folder / "output", operator.target):
        content = json.loads((place / "manifest.json").read_bytes())
        (place / "manifest.json").write_text(json.dumps(content | {"doomed": []}))
    assert "manifest.json is written by another version" in operator.refused(1, "takedown", market_id(2))
    assert operator.shows(market_id(2))
    *_, rebuilt = operator.follow("Bring over a site from before 0.1.0")
    assert " 0 unchanged, " in rebuilt.splitlines()[-1]
    assert not operator.shows(market_id(1))
    assert not operator.shows(market_id(2))
    operator.done("check", "--published")
    assert " 0 objects uploaded " in operator.done("publish", "--verify")
    operator.takes_down(3)
    assert not operator.shows(market_id(3))


def test_publishing_good_data_after_bad(operator: Operator) -> None:
    def good() -> None:
        shutil.copy(operator.folder / "site.db", operator.folder / "restored.db")
        assert operator.shows("bad text")  # published, and then corrected in the database
        operator.question("good text")

    def bad_again() -> None:
        assert operator.shows("good text")
        assert not operator.shows("bad text")
        operator.question("bad text")
        operator.done("rebuild")
        assert operator.shows("bad text")

    def restored() -> None:
        with closing(sqlite3.connect(operator.folder / "restored.db", isolation_level=None)) as database:
            database.execute("UPDATE markets SET question = 'restored text'")
        bad_again()

    def taken_down_and_hidden() -> None:
        assert operator.shows("restored text")
        assert not operator.shows("bad text")
        operator.takes_down(1)
        operator.hides(2)
        operator.done("rebuild")
        assert not operator.shows(market_id(2))

    operator.question("bad text")
    operator.done("rebuild")
    operator.follow("Bad data was published", line_1=good, line_5=restored, line_6=taken_down_and_hidden)
    assert operator.shows("good text")
    assert not operator.shows("restored text")
    assert not operator.shows(market_id(1))
    assert operator.shows(market_id(2))  # of which the page warns


def test_bringing_back_the_output_of_before_the_mistake(operator: Operator) -> None:
    def scheduled(code: int) -> None:
        operator.type(*SCRIPT.findall(section(PAGE, YESTERDAY)))
        assert operator.run("rebuild").returncode == code

    def goes_wrong() -> None:
        operator.question("wrong text")
        scheduled(0)
        assert operator.asks(2) == "wrong text"
        (copy,) = copies.iterdir()
        copy.rename(copies / "2026-06-01T00-07-00")

    def is_brought_back() -> None:
        assert operator.asks(2) == "Question 2?"

    def is_corrected() -> None:
        before = files(operator.target)
        scheduled(3)
        assert files(operator.target) == before
        operator.takes_down(1)
        operator.question("right text")
        assert operator.asks(2) == "Question 2?"

    copies = operator.folder / "copies"
    good = json.loads((operator.target / "v1" / "build.json").read_bytes())["asOf"]
    outputs = operator.follow(YESTERDAY, line_1=goes_wrong, line_3=is_brought_back, line_4=is_corrected)
    listed, published, held, released, rebuilt = outputs
    assert listed == "2026-06-01T00-07-00\n"
    assert f" as of {good} to " in published
    assert held.endswith(f": Prices of 2 June are wrong; what is published as of {good} stays\n")
    assert ": released, builds can be published again" in released
    assert rebuilt.splitlines()[-1].startswith("published 10 markets ")
    assert operator.asks(2) == "right text"
    assert not operator.shows(market_id(1))


def test_bringing_it_back_in_a_folder_that_is_served_without_a_target(served: Operator) -> None:
    def scheduled(code: int) -> None:
        served.type(*SCRIPT.findall(section(PAGE, YESTERDAY)))
        assert served.run("build").returncode == code

    def is_refused() -> None:
        before = files(served.target)
        scheduled(3)
        assert files(served.target) == before

    def is_brought_back() -> None:
        assert served.asks(2) == "Question 2?"
        assert served.shows(market_id(1)), "the copy was made before the takedown"

    def is_corrected() -> None:
        assert not served.shows(market_id(1))
        is_refused()
        served.question("right text")

    served.question("wrong text")
    scheduled(0)
    assert served.asks(2) == "wrong text"
    (copy,) = (served.folder / "copies").iterdir()
    copy.rename(copy.with_name("2026-06-01T00-07-00"))
    served.takes_down(1)
    assert not served.shows(market_id(1))
    *_, built = served.follow(
        "Bring it back without a target", line_2=is_refused, line_5=is_brought_back, line_6=is_corrected
    )
    assert built.splitlines()[-1].startswith("built 10 markets ")
    assert served.asks(2) == "right text"
    assert not served.shows(market_id(1))
    assert not served.shows("wrong text")


def test_bad_data_is_gone_without_a_target_after_one_build(operator: Operator) -> None:
    assert "run `public-markets build --purge-retired`" in section(PAGE, "Bad data was published")
    operator.question("bad text")
    operator.done("build", "--as-of", hour(1))
    operator.question("good text")
    operator.done("build", "--as-of", hour(2))
    built = operator.folder / "output"
    assert any(b"bad text" in text_of(key, body) for key, body in files(built).items())
    operator.done("build", "--as-of", hour(2, 3), "--purge-retired")
    assert not any(b"bad text" in text_of(key, body) for key, body in files(built).items())


def test_a_backup_keeps_markets_blocked_that_were_taken_down(operator: Operator) -> None:
    def all_is_lost() -> None:
        shutil.rmtree(operator.folder / "output")
        shutil.rmtree(operator.target)
        operator.target.mkdir()

    operator.takes_down(1)
    *_, blocked = operator.follow("Backup", line_2=all_is_lost)
    assert market_id(1) in blocked
    assert operator.shows(market_id(2))
    assert not operator.shows(market_id(1))


def test_losing_the_record(operator: Operator) -> None:
    (operator.target / "manifest.json").unlink()
    assert "no record of this program" in operator.refused(1, "rebuild")
    before = files(operator.target)
    operator.follow("Something was lost")
    assert {key: body for key, body in files(operator.target).items() if key != "v1/build.json"} == {
        key: body for key, body in before.items() if key != "v1/build.json"
    }
    operator.done("rebuild")


def test_losing_the_blocked_list_or_the_output_folder(operator: Operator) -> None:
    operator.takes_down(1)
    (operator.target / "blocked.json").unlink()
    operator.done("rebuild")
    shutil.rmtree(operator.folder / "output")
    # A new folder begins a new session of the change feed: two heads, two indexes, what names the dump's
    # files, prices.json and build.json.
    assert " 8 objects uploaded" in operator.done("rebuild")
    assert market_id(1) in operator.done("takedown")


def test_moving_to_another_target_and_address(operator: Operator) -> None:
    operator.takes_down(1)
    outputs = operator.follow("Move")
    assert "/srv/new-markets: 10 markets are published" in outputs[1]
    assert " 122 unchanged" in outputs[3]
    assert (operator.folder / "srv" / "new-markets" / "blocked.json").exists()
    shown = {key for key, body in files(operator.target).items() if b"https://markets.example.com" in body}
    assert {"v1/openapi.json", "v1/dumps/head.json", "v1/feeds/new.atom"} < shown
    assert not [key for key in shown if key.startswith(keys.MARKETS)]


def test_staging_never_reaches_production(operator: Operator) -> None:
    for name, text in shown_files(section(PAGE, "Staging and production")).items():
        (operator.folder / name).write_text(text.replace("/srv/", f"{operator.folder}/srv/") + "layout: chunks\n")
    shutil.rmtree(operator.target)
    operator.follow("Staging and production")
    assert {path.name for path in operator.folder.glob("output-*")} == {"output-production", "output-staging"}
    operator.refused(3, "rebuild", "--config", "staging.yaml", "--set", f"publish.target={operator.target}")


def test_the_metrics_of_several_sites_differ_in_a_label(operator: Operator) -> None:
    (operator.folder / "srv" / "node_exporter").mkdir()
    (operator.folder / "production.yaml").write_text(f"layout: chunks\npublish:\n  target: {operator.target}\n")
    operator.follow("Several sites")
    exported = (operator.folder / "srv" / "node_exporter" / "one.prom").read_text("utf-8")
    samples = [sample for family in text_string_to_metric_families(exported) for sample in family.samples]
    own = (operator.folder / "one.prom").read_text("utf-8")
    assert {sample.labels.pop("site") for sample in samples} == {"one"}
    assert samples == [sample for family in text_string_to_metric_families(own) for sample in family.samples]


@pytest.mark.parametrize("has_target", [True, False], ids=["target", "folder"])
def test_the_nine_lines_for_the_night_suffice(request: pytest.FixtureRequest, *, has_target: bool) -> None:
    """Typed as they stand, for a market with the example's words and the id that `find` prints."""
    operator: Operator = request.getfixturevalue("operator" if has_target else "served")
    build = "rebuild" if has_target else "build"
    lines = {to: words_after_program(command.strip("`")) for to, command, _ in rows_of(PAGES[NIGHT])[2:11]}
    assert len(lines) == 9
    (example,) = (lines["remove it"] or [])[1:]
    operator.question("Who hosts the song contest?", of=11)
    operator.done(build)
    operator.hides(11)

    def words(to: str) -> list[str]:
        return [word.replace(example, market_id(11)[: len(example)]) for word in lines[to] or []]

    assert operator.done(*words("find the market")).startswith(
        f"{market_id(11)}  open       Who hosts the song contest?\n1 market in "
    )
    *_, last = operator.done(*words("remove it")).splitlines()
    places = r"\S+ and output" if has_target else "output"
    assert re.fullmatch(rf"gone from {places}: 1 market; .* until \S+Z at most.*", last)
    assert "its address in the API" in rows_of(PAGES[NIGHT])[5][1], "that words are not found proves nothing"
    assert not operator.shows("song contest")
    assert "song contest: no market or question in " in operator.refused(1, *words("look for others like it"))
    assert operator.done(*words("list what is removed")).startswith(f"{market_id(11)} blocked since ")
    operator.done(*words("undo it"))
    operator.hides(11, is_listed=True)
    operator.done(build)
    assert operator.shows("song contest")
    operator.done(*words("stop everything"))
    assert "Prices of 2 June are wrong" in operator.refused(3, build)


def test_a_clock_that_was_ahead(operator: Operator) -> None:
    operator.done("rebuild", "--as-of", "2999-01-01T00:00:00Z")
    assert "days from now" in operator.refused(1, "check", "--published")
    assert "older than what is published" in operator.refused(3, "rebuild")
    operator.follow("Clocks and time zones")
    operator.done("check", "--published")
