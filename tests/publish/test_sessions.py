"""Where the steps of a publish lead from, and when it begins a new session of the change feed instead."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from generator.api import keys
from tests.downloads import states
from tests.publish.explorer.downloads import lines_of
from tests.support.campaigns import full_tier
from tests.support.deaths import dying_before
from tests.support.readers.followed import quick
from tests.support.sites.builds import text_of
from tests.support.sites.publishing import FIRST, PREFIX, PublishedSite, copy_output, hour
from tests.support.stores.s3.wire import Request

CHANGES = keys.head(keys.CHANGES)


@pytest.fixture(autouse=True)
def _is_quick(published_site: PublishedSite) -> Iterator[None]:
    with quick(published_site):
        published_site.done("rebuild", "--as-of", FIRST)
        yield


def head(site: PublishedSite) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(site.read(CHANGES) or b"")
    return found


def has_step(site: PublishedSite, text: bytes) -> bool:
    """Whether a step that the head names shows a text."""
    named = [keys.chunk(keys.CHANGES, step["name"]) for step in head(site)["steps"]]
    return bool(showing(text, {key: site.read(key) or b"" for key in named}))


def showing(text: bytes, objects: dict[str, bytes]) -> list[str]:
    """The keys of the objects that show a text, compressed or not."""
    return [key for key, body in objects.items() if text in text_of(key, body)]


def regret(site: PublishedSite) -> None:
    """Publish a text, and what follows it, so that a step names it."""
    site.edit(1, question="Regretted text?")
    site.done("rebuild", "--as-of", hour(1))
    site.edit(2, volume=77.0)
    site.done("rebuild", "--as-of", hour(2))
    site.edit(1, question="Corrected text?")


# ── purges ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("purge", ["rebuild", "publish"])
def test_a_purge_deletes_the_steps_that_show_an_earlier_text(published_site: PublishedSite, purge: str) -> None:
    regret(published_site)
    session = head(published_site)["session"]
    assert any("/changes/" in key for key in showing(b"Regretted", published_site.objects()))
    if purge == "publish":
        published_site.done("rebuild", "--as-of", hour(3))
    published_site.done(purge, *(["--as-of", hour(3)] if purge == "rebuild" else []), "--purge-retired")
    found = head(published_site)
    assert (found["session"] != session, found["serial"], found["steps"]) == (True, 1, [])
    for objects in (published_site.objects(), published_site.built()):
        assert showing(b"Regretted", objects) == []
        assert showing(b"Corrected", objects) != []
        assert len([key for key in objects if key.endswith(".ndjson.gz")]) == 1
    published_site.check()
    published_site.edit(2, volume=78.0)
    published_site.done("rebuild", "--as-of", hour(4))
    assert (head(published_site)["session"], len(head(published_site)["steps"])) == (found["session"], 1)


def test_a_folder_without_target_is_purged_by_its_build(published_site: PublishedSite) -> None:
    regret(published_site)
    published_site.done("build", "--as-of", hour(3))
    assert len(showing(b"Regretted", published_site.built())) > 1
    published_site.done("build", "--as-of", hour(4), "--purge-retired")
    assert showing(b"Regretted", published_site.built()) == []
    report = json.loads((published_site.folder / "output" / "report.json").read_bytes())
    found = json.loads(published_site.built()[CHANGES])
    assert report["retainedGenerations"] == 0
    counts = report["downloads"]
    assert (counts["session"], counts["serial"], counts["steps"]) == (found["session"], 1, 0)
    page = (published_site.folder / "output" / "index.html").read_text()
    assert found["session"] in page
    purged = published_site.built()
    published_site.done("build", "--as-of", hour(4), "--purge-retired")
    assert published_site.built() == purged


# ── older builds ──────────────────────────────────────────────────────────────────────────────────────────────────


class Serials:
    """What every serial named that readers saw."""

    def __init__(self) -> None:
        self._states = dict[tuple[str, int], str]()

    def look(self, site: PublishedSite) -> str:
        """Note what the head says, and check that it is true; returns the session."""
        found = head(site)
        text = text_of("x.gz", site.read(keys.chunk(keys.DUMPS, found["dump"]["name"])) or b"")
        assert found["state"] == hashlib.sha256(text).hexdigest()
        return self.note(found)

    def note(self, found: dict[str, Any]) -> str:
        """Note what a head says; returns the session."""
        assert self._states.setdefault((found["session"], found["serial"]), found["state"]) == found["state"]
        return str(found["session"])


@pytest.mark.campaign(short=0)
def test_no_serial_names_two_states_after_an_older_build_was_published(published_site: PublishedSite) -> None:
    """Twice from the same copy, as a session that is made from the state alone would be the same."""
    serials = Serials()
    published_site.edit(1, volume=50.0)
    published_site.done("rebuild", "--as-of", hour(1))
    serials.look(published_site)
    copy_output(published_site.folder / "output", published_site.folder / "good")
    sessions = set[str]()
    for volume in (60.0, 70.0):
        published_site.edit(2, volume=volume)
        published_site.done("rebuild", "--as-of", hour(9))
        serials.look(published_site)
        copy_output(published_site.folder / "good", published_site.folder / f"good-{volume}")
        published_site.done("publish", "--accept=older", output=f"good-{volume}")
        sessions.add(serials.look(published_site))
        published_site.check(f"good-{volume}")
        assert (head(published_site)["serial"], head(published_site)["steps"]) == (1, [])
        published_site.edit(3, volume=volume)
        published_site.done("rebuild", "--as-of", hour(2), "--accept=older", output=f"good-{volume}")
        serials.look(published_site)
    assert len(sessions) == 2


def is_put(request: Request) -> bool:
    return request.operation == "PutObject"


# ── builds that were not published ────────────────────────────────────────────────────────────────────────────────


@dataclass
class Follower:
    """Has the lines of the dump that it read first, and goes on by steps alone."""

    site: PublishedSite
    lines: dict[str, bytes] = field(default_factory=dict)
    session: str = ""
    serial: int = 0

    @classmethod
    def first_of(cls, site: PublishedSite) -> "Follower":
        """One who comes after a publish with a text that makes the dump so large that steps are kept."""
        site.edit(4, description=hashlib.shake_128().hexdigest(2_000))
        site.done("rebuild", "--as-of", hour(0))
        return cls(site).begin()

    def begin(self) -> "Follower":
        found = head(self.site)
        self.lines = self._dumped(found)
        self.session, self.serial = found["session"], found["serial"]
        return self

    def go_on(self) -> None:
        """Follow the steps to the state of the head."""
        found = head(self.site)
        missing = found["serial"] - self.serial
        assert found["session"] == self.session
        assert 0 <= missing <= len(found["steps"])
        for step in found["steps"][len(found["steps"]) - missing :]:
            self.lines = states.applied(self.lines, self.site.read(keys.chunk(keys.CHANGES, step["name"])) or b"")
        assert self.lines == self._dumped(found)
        self.serial = found["serial"]

    def _dumped(self, found: dict[str, Any]) -> dict[str, bytes]:
        return lines_of(self.site.objects(), keys.chunk(keys.DUMPS, found["dump"]["name"])) or {}


def only_built(site: PublishedSite) -> None:
    site.done("build", "--as-of", hour(2))


def held(site: PublishedSite) -> None:
    site.done("hold", "Wrong prices")
    assert site.run("rebuild", "--as-of", hour(2)).exit_code == 3
    site.done("hold", "--release")


def refused(site: PublishedSite) -> None:
    site.done("build", "--as-of", hour(2))
    site.refused(3, "publish", guards__max_monthly_cost="0")


def unanswered(site: PublishedSite) -> None:
    """The store answers no request, the first ones of the publish."""
    site.done("build", "--as-of", hour(2))
    assert site.run("publish", publish__endpoint_url="http://127.0.0.1:9").exit_code == 1


NOT_PUBLISHED: Final = (only_built, held, refused, unanswered)


@pytest.mark.parametrize("wrong", full_tier(NOT_PUBLISHED, short={held}))
def test_no_step_shows_a_text_that_was_never_public(
    published_site: PublishedSite, wrong: Callable[[PublishedSite], None]
) -> None:
    first = Follower.first_of(published_site)
    published_site.edit(2, volume=70.0)
    published_site.done("rebuild", "--as-of", hour(1))
    second, serial = Follower(published_site).begin(), head(published_site)["serial"]
    published_site.edit(1, question="Regretted text?")
    wrong(published_site)
    published_site.edit(1, question="Corrected text?")
    published_site.done("build", "--as-of", hour(3))
    published_site.edit(3, volume=71.0)
    published_site.done("rebuild", "--as-of", hour(4))
    assert showing(b"Regretted", published_site.objects()) == []
    assert showing(b"Corrected", published_site.objects()) != []
    assert (head(published_site)["serial"], len(head(published_site)["steps"])) == (serial + 1, 2)
    published_site.check()
    published_site.edit(3, volume=72.0)
    published_site.done("rebuild", "--as-of", hour(5))
    for follower in (first, second):
        follower.go_on()


def test_the_first_publish_shows_no_earlier_build(published_site: PublishedSite) -> None:
    for key in published_site.stored():
        published_site.remove(key)
    published_site.edit(4, description=hashlib.shake_128().hexdigest(2_000))
    for time, text in enumerate(("First text?", "Regretted text?", "Corrected text?")):
        published_site.edit(1, question=text)
        published_site.done("build", "--as-of", hour(time))
    assert any(keys.CHANGES in key for key in showing(b"Regretted", published_site.built()))
    published_site.done("publish")
    assert showing(b"Regretted", published_site.objects()) == []
    assert head(published_site)["steps"] == []


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("puts", range(1, 24, 2))
def test_after_a_publish_that_was_killed_steps_show_nothing_but_what_readers_may_have_seen(
    published_site: PublishedSite, puts: int
) -> None:
    """The session goes on unless it was killed among what readers find first."""
    Follower.first_of(published_site)
    serials, made = Serials(), list[Request]()

    def is_last(request: Request) -> bool:
        made.extend([request] if is_put(request) else [])
        return len(made) > puts

    session = serials.look(published_site)
    published_site.edit(1, question="Regretted text?")
    with dying_before(published_site.server, is_last):
        published_site.run("rebuild", "--as-of", hour(1))
    serials.look(published_site)
    was_begun = any(
        "/v1/" in request.key and not keys.is_immutable(request.key.removeprefix(PREFIX)) for request in made
    )
    was_public = has_step(published_site, b"Regretted")
    published_site.server.behaviour.clock_offset_s += 3_600
    for time in (2, 3):
        published_site.edit(1, question="Corrected text?", volume=50.0 + time)
        published_site.done("rebuild", "--as-of", hour(time))
        found = serials.look(published_site)
        assert has_step(published_site, b"Corrected") == (found == session)
        assert was_public or not has_step(published_site, b"Regretted")
    assert found == session or was_begun


# ── dry runs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_serial_names_two_states_after_a_folder_was_restored(published_site: PublishedSite) -> None:
    """Twice from the same copy; its builds are newer than what is published."""
    serials = Serials()
    copy_output(published_site.folder / "output", published_site.folder / "backup")
    sessions = {serials.look(published_site)}
    published_site.edit(1, volume=50.0)
    published_site.done("rebuild", "--as-of", hour(1))
    serials.look(published_site)
    for time in (2, 4):
        copy_output(published_site.folder / "backup", published_site.folder / f"restored-{time}")
        for later in (time, time + 1):
            published_site.edit(1, volume=50.0 + later)
            published_site.done("rebuild", "--as-of", hour(later), output=f"restored-{time}")
            sessions.add(serials.look(published_site))
        assert (head(published_site)["serial"], len(head(published_site)["steps"])) == (2, 1)
    assert len(sessions) == 3


@pytest.mark.campaign(short=0)
def test_no_serial_names_two_states_where_a_folder_has_two_targets(published_site: PublishedSite) -> None:
    """Nor does a step to one of them show what only the other was shown, such as a preview."""
    serials, prefixes = Serials(), (PREFIX, "second/")

    def publish(number: int) -> str:
        target = published_site.target.replace(PREFIX, prefixes[number])
        published_site.done("publish", publish__target=target)
        body = published_site.server.bucket.get(prefixes[number] + CHANGES).body
        return serials.note(json.loads(body))

    publish(1)
    for time in range(1, 8):
        published_site.edit(1, question="Regretted text?" if time == 3 else "Corrected text?", volume=50.0 + time)
        published_site.done("build", "--as-of", hour(time))
        if time in (1, 2, 5):
            session = publish(0)
            assert publish(1) == session
        elif time == 3:
            assert publish(1) == session
        elif time == 7:
            assert publish(0) == session
    assert showing(b"Regretted", published_site.objects()) == []
