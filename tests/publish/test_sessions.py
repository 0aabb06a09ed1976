"""When a publish begins a new session of the change feed: steps must go, or would lead on from an older state."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from generator.api import keys
from tests.publish.explorer import downloads
from tests.publish.test_dry_run import FORECAST, SUMMARY, figures
from tests.support.builds import text_of
from tests.support.followed import quick
from tests.support.publishing import FIRST, Site, copy_output, hour
from tests.support.s3.behaviour import SLOW_DOWN, Fault
from tests.support.s3.wire import Request

CHANGES = keys.head(keys.CHANGES)


@pytest.fixture(autouse=True)
def _is_quick(site: Site) -> Iterator[None]:
    with quick(site):
        site.done("rebuild", "--as-of", FIRST)
        yield


def head(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(site.read(CHANGES) or b"")
    return found


def showing(text: bytes, objects: dict[str, bytes]) -> list[str]:
    """The keys of the objects that show a text, compressed or not."""
    return [key for key, body in objects.items() if text in text_of(key, body)]


def regret(site: Site) -> None:
    """Publish a text, and what follows it, so that a step names it."""
    site.edit(1, question="Regretted text?")
    site.done("rebuild", "--as-of", hour(1))
    site.edit(2, volume=77.0)
    site.done("rebuild", "--as-of", hour(2))
    site.edit(1, question="Corrected text?")


# ── purges ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("purge", ["rebuild", "publish"])
def test_a_purge_deletes_the_steps_that_show_an_earlier_text(site: Site, purge: str) -> None:
    regret(site)
    session = head(site)["session"]
    assert any("/changes/" in key for key in showing(b"Regretted", site.objects()))
    if purge == "publish":
        site.done("rebuild", "--as-of", hour(3))
    site.done(purge, *(["--as-of", hour(3)] if purge == "rebuild" else []), "--purge-retired")
    found = head(site)
    assert (found["session"] != session, found["serial"], found["steps"]) == (True, 1, [])
    for objects in (site.objects(), site.built()):
        assert showing(b"Regretted", objects) == []
        assert showing(b"Corrected", objects) != []
        assert len([key for key in objects if key.endswith(".ndjson.gz")]) == 1
    site.check()
    site.edit(2, volume=78.0)
    site.done("rebuild", "--as-of", hour(4))
    assert (head(site)["session"], len(head(site)["steps"])) == (found["session"], 1)


def test_a_second_purge_begins_no_other_session(site: Site) -> None:
    regret(site)
    site.done("rebuild", "--as-of", hour(3), "--purge-retired")
    before = site.objects()
    site.done("publish", "--purge-retired")
    assert site.objects() == before


def test_a_folder_without_target_is_purged_by_its_build(site: Site) -> None:
    regret(site)
    site.done("build", "--as-of", hour(3))
    assert len(showing(b"Regretted", site.built())) > 1
    site.done("build", "--as-of", hour(4), "--purge-retired")
    assert showing(b"Regretted", site.built()) == []
    report = json.loads((site.folder / "output" / "report.json").read_bytes())
    found = json.loads(site.built()[CHANGES])
    assert report["retainedGenerations"] == 0
    counts = report["downloads"]
    assert (counts["session"], counts["serial"], counts["steps"]) == (found["session"], 1, 0)
    page = (site.folder / "output" / "index.html").read_text()
    assert found["session"] in page
    purged = site.built()
    site.done("build", "--as-of", hour(4), "--purge-retired")
    assert site.built() == purged


@pytest.mark.campaign(short=0)
def test_a_site_without_a_change_feed_is_purged(site: Site) -> None:
    site.settings["changes.enabled"] = "false"
    site.edit(1, question="Regretted text?")
    site.done("rebuild", "--as-of", hour(1))
    site.edit(1, question="Corrected text?")
    site.done("rebuild", "--as-of", hour(2), "--purge-retired")
    assert showing(b"Regretted", site.objects()) == []
    assert CHANGES not in site.objects()


# ── older builds ──────────────────────────────────────────────────────────────────────────────────────────────────


class Serials:
    """What every serial named that readers saw."""

    def __init__(self) -> None:
        self._states = dict[tuple[str, int], str]()

    def look(self, site: Site) -> str:
        """Note what the head says, and check that it is true; returns the session."""
        found = head(site)
        text = text_of("x.gz", site.read(keys.chunk(keys.DUMPS, found["dump"]["name"])) or b"")
        assert found["state"] == hashlib.sha256(text).hexdigest()
        assert self._states.setdefault((found["session"], found["serial"]), found["state"]) == found["state"]
        return str(found["session"])


def test_no_serial_names_two_states_after_an_older_build_was_published(site: Site) -> None:
    """Twice from the same copy, as a session that is made from the state alone would be the same."""
    serials = Serials()
    site.edit(1, volume=50.0)
    site.done("rebuild", "--as-of", hour(1))
    serials.look(site)
    copy_output(site.folder / "output", site.folder / "good")
    sessions = set[str]()
    for volume in (60.0, 70.0):
        site.edit(2, volume=volume)
        site.done("rebuild", "--as-of", hour(9))
        serials.look(site)
        copy_output(site.folder / "good", site.folder / f"good-{volume}")
        site.done("publish", "--allow-older", output=f"good-{volume}")
        sessions.add(serials.look(site))
        site.check(f"good-{volume}")
        assert (head(site)["serial"], head(site)["steps"]) == (1, [])
        site.edit(3, volume=volume)
        site.done("rebuild", "--as-of", hour(2), "--allow-older", output=f"good-{volume}")
        serials.look(site)
    assert len(sessions) == 2


def test_no_serial_names_two_states_after_a_folder_was_restored(site: Site) -> None:
    """Twice from the same copy; its builds are newer than what is published."""
    serials = Serials()
    copy_output(site.folder / "output", site.folder / "backup")
    sessions = {serials.look(site)}
    site.edit(1, volume=50.0)
    site.done("rebuild", "--as-of", hour(1))
    serials.look(site)
    for time in (2, 4):
        copy_output(site.folder / "backup", site.folder / f"restored-{time}")
        for later in (time, time + 1):
            site.edit(1, volume=50.0 + later)
            site.done("rebuild", "--as-of", hour(later), output=f"restored-{time}")
            sessions.add(serials.look(site))
        assert (head(site)["serial"], len(head(site)["steps"])) == (2, 1)
    assert len(sessions) == 3


def test_no_step_leads_elsewhere_after_a_copy_of_the_folder_has_come_to_the_same_state(site: Site) -> None:
    """Both copies were built thrice and show the same markets by now, but not by the same steps."""
    copy_output(site.folder / "output", site.folder / "copy")
    site.edit(1, volume=50.0)
    site.done("rebuild", "--as-of", hour(1))
    ((place, had),) = [found for found in downloads.begun(site.objects()) if found[0][0] == keys.CHANGES]
    site.edit(2, volume=60.0)
    site.done("build", "--as-of", hour(2), output="copy")
    site.edit(3, volume=70.0)
    site.done("rebuild", "--as-of", hour(3))
    state = head(site)["state"]
    site.done("rebuild", "--as-of", hour(4), output="copy")
    assert head(site)["state"] == state
    objects, (_, serial, session) = site.objects(), place
    assert not (downloads.is_in_session(objects, session) and downloads.leads_astray(objects, serial, had))
    assert head(site)["session"] != session


def test_a_store_that_is_slow_once_does_not_keep_a_restored_folder_from_being_published(site: Site) -> None:
    copy_output(site.folder / "output", site.folder / "restored")
    site.edit(1, volume=50.0)
    site.done("rebuild", "--as-of", hour(1))
    session, refused = head(site)["session"], list[str]()

    def refuse_first(request: Request) -> Fault | None:
        """Refuse the first look at the index of the published change feed."""
        is_index = request.operation == "GetObject" and "/changes/" in request.key and "index" in request.key
        if refused or not is_index:
            return None
        refused.append(request.key)
        return SLOW_DOWN

    site.server.before = refuse_first
    site.edit(1, volume=60.0)
    site.done("rebuild", "--as-of", hour(2), output="restored")
    assert len(refused) == 1
    assert head(site)["session"] != session


def test_the_newest_build_begins_a_new_session_after_an_older_one(site: Site) -> None:
    serials = Serials()
    copy_output(site.folder / "output", site.folder / "good")
    site.edit(1, volume=50.0)
    site.done("rebuild", "--as-of", hour(1))
    sessions = {serials.look(site)}
    site.done("publish", "--allow-older", output="good")
    sessions.add(serials.look(site))
    site.edit(1, volume=60.0)
    site.done("rebuild", "--as-of", hour(2))
    assert serials.look(site) not in sessions
    assert (head(site)["serial"], head(site)["steps"]) == (1, [])


@pytest.mark.parametrize("gone", [(), (3,)])
def test_a_session_goes_on_over_builds_that_were_not_published(site: Site, gone: tuple[int, ...]) -> None:
    """Even if the folder has forgotten what was published, as cursors expired or a market was withdrawn."""
    site.edit(1, volume=50.0)
    site.done("rebuild", "--as-of", hour(1))
    session = head(site)["session"]
    for time in (2, 3) if gone else (8, 15):
        site.edit(1, volume=50.0 + time)
        site.done("build", "--as-of", hour(time))
    for number in gone:
        site.edit(number, is_listed=False)
    serial = json.loads(site.built()[CHANGES])["serial"]
    site.edit(2, volume=50.0)
    site.done("rebuild", "--as-of", hour(22), "--allow-shrink")
    assert (head(site)["session"], head(site)["serial"]) == (session, serial + 1)


def test_an_older_build_of_the_same_markets_keeps_the_session(site: Site) -> None:
    before = head(site)
    site.done("rebuild", "--as-of", hour(2))
    site.done("rebuild", "--as-of", hour(1), "--allow-older")
    assert head(site) == before


# ── dry runs ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("options", [("--purge-retired", "--allow-older"), ("--purge-retired",), ("--allow-older",)])
def test_a_dry_run_lists_what_a_new_session_takes_and_changes_nothing(site: Site, options: tuple[str, ...]) -> None:
    regret(site)
    copy_output(site.folder / "output", site.folder / "good")
    site.done("rebuild", "--as-of", hour(3))
    output = "good" if "--allow-older" in options else "output"
    before, built = site.stored(), site.built(output)
    *steps, summary = site.done("publish", "--dry-run", *options, output=output).stdout.splitlines()
    assert (site.stored(), site.built(output)) == (before, built)
    assert f"upload {CHANGES}: changed" in steps
    done = site.done("publish", *options, output=output).stdout.strip()
    assert figures(FORECAST, summary) == figures(SUMMARY, done)


def test_a_purge_names_the_head_that_it_cannot_begin_with(site: Site) -> None:
    regret(site)
    (site.folder / "output" / keys.head(keys.DUMPS)).unlink()
    sentence = site.refused(1, "publish", "--purge-retired")
    assert sentence.endswith("/v1/dumps/head.json: missing or damaged; run `public-markets build` again")
