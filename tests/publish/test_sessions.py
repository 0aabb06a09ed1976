"""Where the steps of a publish lead from, and when it begins a new session of the change feed instead."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from generator.api import keys
from tests.publish.explorer import downloads
from tests.support.campaigns import full_tier
from tests.support.readers.followed import quick
from tests.support.sites.builds import text_of
from tests.support.sites.publishing import FIRST, PREFIX, PublishedSite, hour

CHANGES = keys.head(keys.CHANGES)


@pytest.fixture(autouse=True)
def _is_quick(published_site: PublishedSite) -> Iterator[None]:
    with quick(published_site):
        published_site.done("rebuild", "--as-of", FIRST)
        yield


def head(site: PublishedSite) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(site.read(CHANGES) or b"")
    return found


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


# ── builds that were not published ────────────────────────────────────────────────────────────────────────────────


def followers(site: PublishedSite) -> list[tuple[int, tuple[object, ...]]]:
    """Whoever reads the change feed now: the serial, and the lines of the dump."""
    return [(serial, had) for (name, serial, _), had in downloads.begun(site.objects()) if name == keys.CHANGES]


def held(site: PublishedSite) -> None:
    site.done("hold", "Wrong prices")
    assert site.run("rebuild", "--as-of", hour(2)).exit_code == 3
    site.done("hold", "--release")


def unanswered(site: PublishedSite) -> None:
    """The store answers no request, the first ones of the publish."""
    site.done("build", "--as-of", hour(2))
    assert site.run("publish", publish__endpoint_url="http://127.0.0.1:9").exit_code == 1


NOT_PUBLISHED: Final = (held, unanswered)


@pytest.mark.parametrize("wrong", full_tier(NOT_PUBLISHED, short={held}))
def test_no_step_shows_a_text_that_was_never_public(
    published_site: PublishedSite, wrong: Callable[[PublishedSite], None]
) -> None:
    # Makes the dump so large that steps are kept.
    published_site.edit(4, description=hashlib.shake_128().hexdigest(2_000))
    published_site.done("rebuild", "--as-of", hour(0))
    have_read = followers(published_site)
    published_site.edit(2, volume=70.0)
    published_site.done("rebuild", "--as-of", hour(1))
    have_read += followers(published_site)
    serial, session = head(published_site)["serial"], head(published_site)["session"]
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
    now = head(published_site)
    assert now["session"] == session
    assert len(have_read) == 2
    for begun, had in have_read:
        assert now["serial"] - begun <= len(now["steps"]), "the steps lead from there"
        assert not downloads.leads_astray(published_site.objects(), begun, had)


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


@pytest.mark.campaign(short=0)
def test_no_serial_names_two_states_where_a_folder_has_two_targets(published_site: PublishedSite) -> None:
    """Nor does a step to one of them show what only the other was shown, such as a preview."""
    named, prefixes = dict[tuple[str, int], str](), (PREFIX, "second/")

    def publish(number: int) -> str:
        target = published_site.target.replace(PREFIX, prefixes[number])
        published_site.done("publish", publish__target=target)
        found = json.loads(published_site.server.bucket.get(prefixes[number] + CHANGES).body)
        assert named.setdefault((found["session"], found["serial"]), found["state"]) == found["state"]
        return str(found["session"])

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
