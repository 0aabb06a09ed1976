"""What `status` says of folder and target, and when; and the page that commands leave at their end."""

import json
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from generator.tree import files
from tests.support.project import ROOT
from tests.support.sites.publishing import OPEN, PublishedSite, hour
from tests.support.sites.rows import market_id
from tests.support.stores.s3.behaviour import Fault
from tests.support.stores.s3.wire import Request

AS_OF = "2024-01-31T12:00:00.000Z"
FIRST = datetime(2024, 1, 31, 12, tzinfo=UTC)
WELL = "needs a person: nothing"


@pytest.fixture
def published_site(published_site: PublishedSite) -> PublishedSite:
    """The published site, ten minutes after the build by the store's clock."""
    at(published_site, minutes=10)
    return published_site


def at(site: PublishedSite, minutes: float) -> None:
    moment = (FIRST + timedelta(minutes=minutes)).timestamp()
    site.server.clock = lambda: moment


def answering(fault: Fault) -> Callable[[Request], Fault]:
    return lambda _: fault


def told(site: PublishedSite, code: int, **settings: str) -> list[str]:
    """The lines of `status`, which must end with this code and change nothing."""
    before = contents(site.folder / "output"), site.stored()
    result = site.run("status", **settings)
    assert (result.exit_code, result.stderr) == (code, ""), result.output
    assert (contents(site.folder / "output"), site.stored()) == before
    return result.stdout.splitlines()


def values(site: PublishedSite, **settings: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(site.run("status", "--json", **settings).stdout)
    return found


def contents(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(root.rglob("*")) if path.is_file()
    }


def overwrite(path: Path, content: bytes) -> None:
    """Replace a file, which other copies of the site share."""
    path.unlink()
    path.write_bytes(content)


def needs(lines: list[str]) -> list[str]:
    return [line.removeprefix("needs a person: ") for line in lines if line.startswith("needs a person: ")]


def page(site: PublishedSite) -> str:
    return (site.folder / "output" / files.STATUS).read_text("utf-8")


# ── what it says ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_status_reads_exactly_so_with_three_requests_at_most(published_site: PublishedSite) -> None:
    published_site.server.log.clear()
    lines = told(published_site, 0)
    assert len(published_site.server.log) <= 3
    (run,) = [line for line in lines if line.startswith("last run here: rebuild ended well 20")]
    lines.remove(run)
    assert lines == [
        f"published: 11 markets as of {AS_OF}, 10 minutes ago, at s3://markets/api",
        "next run: due 2024-01-31T13:00:00.000Z, 50 minutes from now",
        "hold: none",
        "quarantined: 0 rows",
        "remarks: 0 remarks",
        f"output folder: output/, 11 markets as of {AS_OF}",
        f"target: s3://markets/api, 11 markets as of {AS_OF}",
        WELL,
    ]
    found = values(published_site)
    assert found["published"] == {
        "place": "s3://markets/api", "asOf": AS_OF, "ageMinutes": 10.0, "markets": 11,
    }  # fmt: skip
    assert (found["exitCode"], found["needs"], found["hold"], found["unread"]) == (0, [], None, "")
    assert found["next"] == {"due": "2024-01-31T13:00:00.000Z", "schedule": 60}
    assert found["lastRun"]["command"] == "rebuild"


def test_what_is_older_than_three_schedules_needs_a_person(published_site: PublishedSite) -> None:
    at(published_site, minutes=179)
    assert needs(told(published_site, 0)) == ["nothing"]
    at(published_site, minutes=181)
    (need,) = needs(told(published_site, 1))
    assert need == (
        f"s3://markets/api: what is published as of {AS_OF}, 3 hours ago, is older than 3 schedules of 60 minutes; "
        "check that cron runs, and how `rebuild` ended"
    )
    assert needs(told(published_site, 0, schedule="100")) == ["nothing"]


def test_a_build_of_the_future_needs_a_person(published_site: PublishedSite) -> None:
    at(published_site, minutes=-5)
    (need,) = needs(told(published_site, 1))
    assert need.startswith("s3://markets/api: the clock of a machine that built was ahead; set it, then run ")
    assert ", 5 minutes from now, at" in told(published_site, 1)[0]


def test_a_hold_needs_a_person_until_its_release(published_site: PublishedSite) -> None:
    published_site.done("hold", "Wrong prices")
    published_site.run("rebuild", "--as-of", hour(1))
    at(published_site, minutes=600)
    lines = told(published_site, 1)
    (need,) = needs(lines)
    assert re.fullmatch(
        r"on hold since \S+Z, by \S+: Wrong prices; no build is published until `public-markets hold --release`", need
    )
    assert f"hold: {need.partition(';')[0].removeprefix('on hold ')}" in lines
    assert "next run: none is published during the hold" in lines
    assert values(published_site)["next"] == {"due": None, "schedule": 60}
    assert values(published_site)["hold"]["reason"] == "Wrong prices"
    published_site.done("hold", "--release")
    at(published_site, minutes=20)
    assert needs(told(published_site, 0)) == ["nothing"]


def test_a_folder_without_target_is_what_readers_see(published_site: PublishedSite) -> None:
    published_site.target = ""
    published_site.settings["publish.endpoint_url"] = ""
    published_site.done("hold", "Not now")
    lines = told(published_site, 1, schedule="10000000")
    assert lines[0].startswith(f"published: 11 markets as of {AS_OF}, ")
    assert "target: none, readers are served from the folder" in lines
    (need,) = needs(lines)
    assert need.startswith(f"on hold {lines[2].removeprefix('hold: ')}; no build is made until")
    assert lines[1] == "next run: none is made during the hold"
    published_site.done("hold", "--release")
    assert "output/: what is published as of" in needs(told(published_site, 1))[0]


def test_nothing_yet_is_told_with_what_to_run(empty: PublishedSite) -> None:
    lines = told(empty, 1)
    assert lines[0] == "published: nothing, at s3://markets/api"
    lost = f"nothing is published there any more, though this folder published as of {AS_OF}"
    assert needs(lines) == [f"s3://markets/api: {lost}; run `public-markets rebuild --verify`"]
    (empty.folder / "output" / files.LAST_PUBLISH).unlink()
    lines = told(empty, 1)
    assert needs(lines) == ["s3://markets/api: nothing is published there; run `public-markets publish`"]
    empty.forget_output()
    lines = told(empty, 1)
    assert needs(lines) == ["s3://markets/api: nothing is published there; run `public-markets rebuild`"]
    assert "output folder: output/, which holds nothing whole" in lines
    assert "next run: none was yet" in lines
    empty.target = ""
    empty.settings["publish.endpoint_url"] = ""
    assert needs(told(empty, 1)) == ["output/: nothing is built there yet; run `public-markets build`"]
    assert not (empty.folder / "output").exists()


def test_a_target_that_cannot_be_read_leaves_what_the_folder_knows(published_site: PublishedSite) -> None:
    published_site.done("hold", "Wrong prices")
    for code, name, said in ((503, "SlowDown", "does not answer"), (403, "AccessDenied", "s3:GetObject")):
        published_site.server.before = answering(Fault(code, name))
        result = published_site.run("status")
        assert result.exit_code == 5
        lines = result.stdout.splitlines()
        assert lines[0].startswith(f"published: as of {AS_OF}, ")
        assert lines[0].endswith(", by the last publish from this folder to s3://markets/api")
        assert "Wrong prices" in lines[2]
        assert lines[-1].startswith("cannot be told: s3://markets/api")
        assert said in lines[-1]
        assert said in values(published_site)["unread"]


def test_what_is_published_where_nothing_was_from_here_and_nobody_answers_is_not_known(empty: PublishedSite) -> None:
    (empty.folder / "output" / files.LAST_PUBLISH).unlink()
    unknown = "not known, as no publish from this folder to s3://markets/api is on record"
    empty.server.before = answering(Fault(403, "AccessDenied"))
    assert empty.run("status").stdout.splitlines()[0] == f"published: {unknown}"
    empty.server.before = None
    empty.done("build", "--as-of", hour(1))
    assert "published: not known, as no publish from this folder to s3://markets/api/ is on record" in page(empty)
    empty.server.before = answering(Fault(403, "AccessDenied"))
    empty.forget_output()
    assert empty.run("status").stdout.splitlines()[1] == "next run: not known"


def test_damage_is_told_and_stops_nothing(published_site: PublishedSite) -> None:
    output = published_site.folder / "output"
    overwrite(output / files.REPORT, b'{"asOf": 3}')
    damage = "report.json is damaged or not this program's, and the next build makes it anew"
    assert f"quarantined: not known; {damage}" in told(published_site, 0)
    assert [values(published_site)[name] for name in ("quarantined", "remarks")] == [None, None]
    published_site.done("build", "--as-of", hour(1))
    assert "quarantined: 0 rows" in told(published_site, 0)
    published_site.done("publish")
    at(published_site, minutes=13 * 60)
    assert needs(told(published_site, 0)) == ["nothing"]
    overwrite(output / files.STATUS, b"\xff<script")
    overwrite(output / files.MANIFEST, b"{")
    (need,) = needs(told(published_site, 1))
    assert need.startswith("output/manifest.json: damaged")
    published_site.put("manifest.json", b"{")
    assert [need.partition(": damaged")[0] for need in needs(told(published_site, 1))] == [
        "output/manifest.json", "s3://markets/api: manifest.json",
    ]  # fmt: skip


def test_what_another_machine_published_is_what_readers_see(published_site: PublishedSite) -> None:
    shutil.copytree(published_site.folder / "output", published_site.folder / "other")
    published_site.done("rebuild", "--as-of", hour(1), output="other")
    at(published_site, minutes=1000)
    lines = told(published_site, 1)
    assert lines[0].startswith("published: 11 markets as of 2024-02-01T01:00:00.000Z, ")
    assert f"output folder: output/, 11 markets as of {AS_OF}" in lines
    assert "next run: due 2024-02-01T02:00:00.000Z" in lines[1]


def test_a_run_that_failed_needs_a_person_until_one_ends_well(published_site: PublishedSite) -> None:
    published_site.database.execute("ALTER TABLE fills RENAME TO lost")
    published_site.run("rebuild", "--as-of", hour(1))
    (need,) = needs(told(published_site, 1))
    assert re.fullmatch(r"a `rebuild` here ended with exit code 1 at \S+Z; see what it said, or run it again", need)
    published_site.run("takedown", "no-such-market")
    assert values(published_site)["lastRun"]["command"] == "rebuild", "whoever takes down sees how it ends"
    published_site.database.execute("ALTER TABLE lost RENAME TO fills")
    published_site.done("rebuild", "--as-of", hour(1))
    at(published_site, minutes=13 * 60)
    assert needs(told(published_site, 0)) == ["nothing"]


def test_only_the_same_work_makes_up_for_a_run_that_failed(published_site: PublishedSite) -> None:
    def failed() -> list[str]:
        lines = told(published_site, published_site.run("status").exit_code)
        return [need.partition(" at ")[0] for need in needs(lines) if "ended with exit code" in need]

    def lose(table: str, as_: str) -> None:
        published_site.database.execute(f"ALTER TABLE {table} RENAME TO {as_}")

    lose("fills", "lost")
    assert published_site.run("build", "--as-of", hour(1)).exit_code == 1
    published_site.done("publish")
    assert failed() == ["a `build` here ended with exit code 1"]
    assert published_site.run("rebuild", "--as-of", hour(1)).exit_code == 1
    record = json.loads(published_site.stored()["manifest.json"])
    deadline = (FIRST + timedelta(minutes=20)).isoformat().replace("+00:00", ".000Z")
    work = {"owner": "x", "process": "y", "who": "here", "since": AS_OF, "touched": [], "deadline": deadline}
    published_site.put("manifest.json", json.dumps({**record, "work": work}).encode())
    lose("lost", "fills")
    assert published_site.run("rebuild", "--as-of", hour(1)).exit_code == 4
    assert values(published_site)["lastRun"]["exitCode"] == 4
    assert failed() == ["a `rebuild` here ended with exit code 1"]
    published_site.put("manifest.json", json.dumps(record).encode())
    published_site.done("build", "--as-of", hour(1))
    assert failed() == ["a `rebuild` here ended with exit code 1"]
    published_site.done("rebuild", "--as-of", hour(1))
    assert failed() == []


def test_a_takedown_and_a_publish_that_were_cut_short_need_a_person(published_site: PublishedSite) -> None:
    blocked = {"format": 1, "markets": {market_id(OPEN[0]): {"isBlocked": True, "at": AS_OF}}}
    published_site.put("blocked.json", json.dumps(blocked).encode())
    (need,) = needs(told(published_site, 1))
    assert need == ("s3://markets/api: shows what is blocked (1 market); run `public-markets takedown` again")
    record = json.loads(published_site.stored()["manifest.json"])
    work = {"owner": "x", "process": "y", "who": "process\u001b 1 on here", "since": AS_OF, "touched": []}
    for minute, said in ((20, "at work: process\\x1b 1 on here, since "), (5, "a run was cut short there; ")):
        deadline = (FIRST + timedelta(minutes=minute)).isoformat().replace("+00:00", ".000Z")
        record["work"] = {**work, "deadline": deadline}
        published_site.put("manifest.json", json.dumps(record).encode())
        lines = published_site.run("status").stdout.splitlines()
        assert any(said in line for line in lines), (minute, lines)


def test_a_build_that_replaces_files_is_not_one_that_was_cut_short(published_site: PublishedSite) -> None:
    output = published_site.folder / "output"
    manifest = json.loads((output / files.MANIFEST).read_bytes())
    overwrite(output / files.MANIFEST, json.dumps({**manifest, "complete": False}).encode())
    cut_short = ["output: a run was cut short there; `public-markets rebuild` finishes its work"]
    assert needs(told(published_site, 1)) == cut_short
    hold = "import sys, pathlib; from generator.tree.run_lock import staging_folder as f\n"
    hold += f"with f(pathlib.Path({str(output)!r})): print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", hold]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        holder.stdout.readline()
        assert needs(published_site.run("status").stdout.splitlines()) == ["nothing"]
        holder.communicate()
    assert needs(told(published_site, 1)) == cut_short


def test_rows_are_new_for_a_day(published_site: PublishedSite) -> None:
    path = published_site.folder / "output" / files.REPORT
    report = json.loads(path.read_bytes())
    row = {"relation": "markets", "key": "a", "title": "", "reason": "b", "rows": 2}
    sinces = ("2024-01-30T11:59:00.000Z", "2024-01-30T12:01:00.000Z")
    report["quarantined"] = [{**row, "since": since} for since in sinces]
    report["remarks"], report["remarksSince"] = ["one", "two"], [*sinces]
    overwrite(path, json.dumps(report).encode())
    lines = told(published_site, 1)
    assert "quarantined: 4 rows, 2 of them new within a day" in lines
    assert "remarks: 2 remarks, 1 of them new within a day" in lines
    assert needs(lines) == ["2 rows newly quarantined within a day; report.json names each, and what is wrong with it"]
    report["quarantined"], report["remarksSince"] = [{**row, "since": None}], [None, None]
    overwrite(path, json.dumps(report).encode())
    lines = told(published_site, 0)
    assert {"quarantined: 2 rows, 0 of them new within a day", "remarks: 2 remarks, 0 of them new within a day"} < {
        *lines
    }
    del report["remarksSince"]
    report["quarantined"] = [row]
    overwrite(path, json.dumps(report).encode())
    lines = told(published_site, 0)
    assert {"quarantined: 2 rows", "remarks: 2 remarks"} < {*lines}, "an earlier version did not tell"


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_command_leaves_the_page_and_none_edits_the_inspection_page(published_site: PublishedSite) -> None:
    path = published_site.folder / "output" / files.STATUS
    inspection = published_site.folder / "output" / files.INSPECTION
    for words in (("build", "--as-of", hour(1)), ("publish",), ("hold", "Why"), ("hold", "--release"), ("takedown",)):
        path.unlink()
        shown = inspection.read_bytes()
        published_site.done(*words)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, words
        assert (inspection.read_bytes() == shown) == (words[0] != "build"), words
    before = path.read_bytes()
    published_site.done("rebuild", "--dry-run")
    assert path.read_bytes() == before
    published_site.done("takedown", market_id(OPEN[0]))
    assert market_id(OPEN[0]) not in page(published_site)
    assert not [key for key in published_site.stored() if files.STATUS in key]


def test_the_page_blames_no_schedule_during_a_hold(published_site: PublishedSite) -> None:
    blames = "; check that cron runs"
    published_site.done("publish")
    assert blames in page(published_site)
    published_site.done("hold", "Wrong prices")
    assert "Wrong prices" in page(published_site)
    assert blames not in page(published_site)
    published_site.done("hold", "--release")
    assert blames in page(published_site)


def test_what_cannot_be_written_fails_no_command(published_site: PublishedSite) -> None:
    path = published_site.folder / "output" / files.STATUS
    path.unlink()
    path.mkdir()
    published_site.done("rebuild", "--as-of", hour(1))
    assert path.is_dir()
