"""Bad settings, a bad command line, an unwritable output, and builds that look like an accident are refused."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.bad_input.site import NOW, BuiltSite
from tests.support.sites.rows import insert_market, market_id

ELSEWHERE: Final = "choose another folder with --set output=…; what is served is unchanged"


@pytest.mark.campaign(short=1)
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
    built_site: BuiltSite, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    assert sentence in built_site.refuses(*arguments, code=code)


def test_demo_makes_no_database_on_a_server(built_site: BuiltSite) -> None:
    stderr = built_site.says("postgresql://u:hunter2@127.0.0.1:1/d", "demo")
    assert stderr == (
        "error: demo creates only SQLite databases, not postgresql://u:***@127.0.0.1:1/d; "
        "pass --set source.url=sqlite:///demo.db\n"
    )


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("config.yaml", "config.yaml: file exists; move that file away, or"),
        ("config.yaml/below", "config.yaml/below: not a directory; move that file away, or"),
        ("/proc/nowhere", "/proc/nowhere: no such file or directory;"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused(built_site: BuiltSite, output: str, sentence: str) -> None:
    assert built_site.refuses("build", "--set", f"output={output}") == f"error: {sentence} {ELSEWHERE}\n"


def test_a_folder_of_someone_else_is_refused(built_site: BuiltSite, tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "theirs").touch()
    stderr = built_site.refuses("build", "--set", f"output={tmp_path}")
    assert stderr.startswith(f"error: {tmp_path}/v1 exists but {tmp_path}/manifest.json does not, so this program")
    assert (tmp_path / "v1" / "theirs").exists()


def test_a_damaged_manifest_is_refused(built_site: BuiltSite, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": 1}')
    stderr = built_site.refuses("build", "--set", f"output={tmp_path}")
    assert stderr.startswith(f"error: {tmp_path}/manifest.json: damaged or not this program's (")
    assert stderr.endswith("move the folder away and build again; keep its blocked.json\n")


def test_a_folder_for_temporary_files_is_not_needed(built_site: BuiltSite) -> None:
    done = built_site.build(TMPDIR="/proc/nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    assert built_site.everything() == built_site.before


@pytest.fixture
def grown(built_site: BuiltSite, tmp_path: Path) -> Iterator[tuple[BuiltSite, sqlite3.Connection]]:
    """A copy of the site whose database may be changed."""
    shutil.copytree(built_site.folder, tmp_path / "grown")
    with closing(sqlite3.connect(tmp_path / "grown" / "markets.db", isolation_level=None)) as connection:
        yield BuiltSite(tmp_path / "grown", built_site.before), connection


def test_too_many_bad_rows_replace_nothing_unless_allowed(grown: tuple[BuiltSite, sqlite3.Connection]) -> None:
    site, connection = grown
    insert_market(connection, 4, prob=1.2)
    stderr = site.refuses("build", "--as-of", NOW, code=3)
    assert stderr == (
        "error: 1 of 4 markets break the contract, more than guards.max_invalid (0.01) allows; nothing was replaced. "
        "Fix them, or pass --allow-invalid:\n"
        f"  markets: 1 row quarantined: prob: input should be less than or equal to 1 ({market_id(4)}: 1.2); "
        "correct it, or convert it in a view (0.45 rather than 45)\n"
        "  `public-markets check --all` names each\n"
    )
    assert site.build("--allow-invalid").returncode == 0
    assert site.build("--set", "guards.max_invalid=0.25").returncode == 0
    assert json.loads((site.output / "report.json").read_bytes())["markets"]["quarantined"] == 1


def test_too_great_a_loss_replaces_nothing_unless_allowed(grown: tuple[BuiltSite, sqlite3.Connection]) -> None:
    site, connection = grown
    connection.execute("UPDATE markets SET is_listed = 0 WHERE id = ?", [market_id(1)])
    stderr = site.refuses("build", "--as-of", NOW, code=3)
    assert stderr == (
        "error: 1 of 3 markets would disappear, more than guards.max_shrink (0.2) allows; nothing was replaced. "
        "If the database is complete, pass --allow-shrink\n"
    )
    done = site.build("--allow-shrink")
    assert (done.returncode, done.stderr) == (0, f"WARNING: withdrawn: market {market_id(1)} is no longer public\n")
    assert not (site.output / f"v1/public/markets/detail/00/{market_id(1)}.json").exists()
