"""Publishers killed at random requests while readers walk, and at every kind of file call."""
# ruff: noqa: S311 - nothing here is secret, and every run must kill at the same places

import hashlib
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from generator.tree import layouts
from tests.publish.faults.scene import (
    Found,
    Scene,
    Walkers,
    check_hidden,
    check_known,
    check_lists,
    check_whole,
    stored_headers,
)
from tests.publish.faults.sites import LISTS, SiteContent
from tests.publish.faults.strikes import ANY, Strike, Victims
from tests.support.campaigns import rounds, sample
from tests.support.faults import Fault, Reader
from tests.support.sites.builds import files
from tests.support.sites.rows import market_id

# ── at random requests ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize(
    ("kills", "has_all", "is_split"),
    [(20, False, True), (6, True, True), (6, True, False)],
    indirect=["is_split"],
    ids=["lists", "all kinds", "all kinds, record whole"],
)
def test_random_kills_leave_nothing_behind(scene: Scene, victims: Victims, *, kills: int, has_all: bool) -> None:
    """Of a site with lists only, and of one with all kinds of objects."""
    rng, most = random.Random(5), rounds(3, kills)
    scene.searches = scene.has_downloads = has_all
    site = scene.site("m0", 0)
    with Walkers(scene, site.state) as walkers:
        scene.publish(site)
        states, hidden, minute = [site.state], 0, 0
        while victims.kills < most:
            minute += 1
            hidden = rng.choice((0, 0, 0, hidden, 3, 6))
            site = edited(scene, rng, minute, hidden)
            if hidden:
                walkers.withdraw(is_withdrawing=True)
            walkers.expect(site.state)
            states.append(site.state)
            arguments = scene.arguments("publish", site.folder.parent.name, "--accept=shrink")
            victims.kill(arguments, Strike(ANY, rng.randint(1, 85 if has_all else 55), after=rng.random() < 0.5))
            check_known(scene.objects())
            check_lists(scene, *states)
            if minute % 3 == 0:
                scene.publish(site)
                check_whole(scene.objects(), site)
                check_lists(scene, site.state)
                check_hidden(scene.objects(), *([hidden] if hidden else []))
                states = [site.state]
                walkers.withdraw(is_withdrawing=False)
        walkers.await_exact(5 * most)
    assert victims.kills == most


def edited(scene: Scene, rng: random.Random, minute: int, hidden: int) -> SiteContent:
    """Another site, in one of three folders and either layout; one market may be withdrawn."""
    changes: dict[str, Mapping[str, Any] | None] = {
        f"m{number}": {"question": f"Question {number}, edition {minute}?"} for number in rng.sample(range(1, 10), 2)
    }
    changes |= {f"m{rng.randint(1, 9)}": {"status": rng.choice(("open", "closed"))}}
    name = f"m{rng.randrange(3)}"
    scene.layouts[name] = rng.choice(layouts.LAYOUTS)
    return scene.site(name, minute, **changes | ({f"m{hidden}": None} if hidden else {}))


@pytest.mark.campaign(short=0)
def test_a_store_that_denies_listing_versions_never_keeps_the_cdn_from_being_invalidated(
    scene: Scene, victims: Victims
) -> None:
    rng, notes = random.Random(3), scene.folder / "notes"
    old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "Edited?"}, m3=None)
    scene.publish(old)
    before = scene.objects()
    settings = (f"publish.purge_command=sh -c 'echo done >> {notes}'", "publish.cache_fill=0")
    overrides = [part for setting in settings for part in ("--set", setting)]
    arguments = scene.arguments("publish", "b", "--accept=shrink", *overrides)
    for _ in range(rounds(1, 4)):
        scene.reset(before)
        scene.server.bucket.versioning = "Enabled"
        scene.server.behaviour.refuses_versions = True
        notes.unlink(missing_ok=True)
        victims.kill(arguments, Strike(ANY, rng.randint(3, 40), after=rng.random() < 0.5))
        code, output = victims.end(arguments)
        assert code == 1
        assert "cannot delete old versions; allow these credentials" in output
        assert notes.read_text("utf-8").count("done") >= 2
        check_known(scene.objects())
        check_lists(scene, new.state)
        check_hidden(scene.objects(), 3)
        scene.server.behaviour.refuses_versions = False
        victims.finish(arguments)
        versions, _ = scene.server.bucket.list_versions("", ("", ""), 100_000)
        assert not [found.key for found in versions if "/v1/" in found.key and market_id(3).encode() in found.body]


# ── at file calls ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_a_publish_into_a_directory_killed_at_any_file_call_loses_nothing(scene: Scene, victims: Victims) -> None:
    old = scene.site("a", 0)
    new = scene.site("b", 1, m1={"question": "Edited?"}, m3=None, m4={"status": "closed"})
    target, reader, publish = into_directory(scene, victims)
    faults = sample(calls_of(victims.finish(publish("b"))), 5)
    for number, fault in enumerate(faults):
        begin_again(target)
        victims.fail(publish("b"), fault)
        check_known(objects_in(target))
        reader.check(old.state, new.state, lists=LISTS)
        later = scene.site("c", number + 2, m3=None, m2={"question": "Later?"}) if number % 3 == 0 else new
        victims.finish(publish(later.folder.parent.name))
        check_whole(objects_in(target), later)
        check_hidden(objects_in(target), 3)
        reader.check(later.state, lists=LISTS)
    assert victims.kills > rounds(2, 20)


@pytest.mark.campaign
def test_a_directory_that_is_rewritten_after_two_kills_never_loses_a_live_page(scene: Scene, victims: Victims) -> None:
    rng, most = random.Random(1), rounds(2, 6)
    old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "Edited?"}, m4={"status": "closed"})
    target, reader, publish = into_directory(scene, victims)
    counts = victims.finish(publish("b"))
    late = [Fault("first", number) for number in range(counts["first"] // 2, counts["first"] + 1)]
    for _ in range(most):
        begin_again(target)
        # Some first pages are new already, so the pages that the second run uploads again may be live.
        victims.fail(publish("b"), rng.choice(late))
        reader.check(old.state, new.state, lists=LISTS)
        victims.fail(publish("b"), Fault("create", rng.randint(1, counts["create"] // 2), after=rng.random() < 0.9))
        check_known(objects_in(target))
        reader.check(old.state, new.state, lists=LISTS)
        victims.finish(publish("b"))
        check_whole(objects_in(target), new)
        assert not [path.name for path in target.iterdir() if path.name.startswith(".aside")]
    assert victims.kills > most


def into_directory(scene: Scene, victims: Victims) -> tuple[Path, Reader, Callable[[str], list[str]]]:
    """A directory to which the machine `a` has published, its readers, and the arguments with which others do."""
    target = scene.folder / "site"

    def publish(name: str) -> list[str]:
        return [*scene.arguments("publish", name, "--accept=shrink"), "--set", f"publish.target={target}"]

    victims.finish(publish("a"))
    shutil.copytree(target, target.with_name("pristine"))
    return target, Reader.of_folder(target), publish


def begin_again(target: Path) -> None:
    shutil.rmtree(target)
    shutil.copytree(target.with_name("pristine"), target)


def calls_of(counts: Mapping[str, int]) -> list[Fault]:
    """The first, middle and last calls of every kind: the first before and after it, the others in turn."""
    return [
        Fault(call, number, after=after)
        for call, count in counts.items()
        for number in sorted({1, 2, count // 2, count - 1, count} & {*range(1, count + 1)})
        for after in ((False, True) if number == 1 else (number % 2 == 0,))
    ]


def objects_in(target: Path) -> dict[str, Found]:
    """The objects of a directory, with the headers that a web server adds."""
    return {
        key: Found(body, hashlib.sha256(body).hexdigest(), stored_headers(key))
        for key, body in files(target, "").items()
        if not key.startswith(".")
    }
