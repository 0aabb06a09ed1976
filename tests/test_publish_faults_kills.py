"""Publishers killed at any request and any file call: readers see whole lists, and the next run finishes the work."""
# ruff: noqa: S311 - nothing here is secret, and every run must kill at the same places

import hashlib
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from generator import keys, takedown
from generator.blocked import Blocked
from tests.faults import Fault, Reader, State, fast_folder
from tests.publish_faults import (
    ANY,
    LIFETIME_S,
    Found,
    Scene,
    Strike,
    Victims,
    Walkers,
    check_hidden,
    check_known,
    check_lists,
    check_whole,
    places,
)
from tests.publish_sites import LISTS, Site, without
from tests.s3_server import S3Server
from tests.stores import use_credentials
from tests.support import NOW, Silent, files, market_id


@pytest.fixture
def scene(tmp_path: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    use_credentials(monkeypatch)
    with fast_folder(tmp_path) as folder:
        yield Scene(folder, s3)


@pytest.fixture
def victims(scene: Scene) -> Iterator[Victims]:
    with closing(Victims(scene)) as victims:
        yield victims


@dataclass(frozen=True)
class Case:
    """What is killed: a command, after what was published before it; `seen` are the states that readers may meet."""

    published: list[Site]
    arguments: list[str]
    seen: list[State]
    #: Of which site the store must have the objects when the work is finished; None for a takedown.
    site: Site | None
    hidden: tuple[int, ...] = ()
    is_verifying: bool = False
    #: What happens between what was published and the command.
    between: Callable[[], object] = field(default=lambda: None)


def first(scene: Scene) -> Case:
    site = scene.site("a", 0)
    return Case([], scene.arguments("publish", "a"), [site.state], site)


def change(scene: Scene) -> Case:
    old = scene.site("a", 0)
    new = scene.site("b", 1, m1={"question": "Edited?"}, m3={}, m4={"status": "closed"}, m10={})
    return Case([old], scene.arguments("publish", "b"), [old.state, new.state], new)


def withdrawal(scene: Scene) -> Case:
    old = scene.site("a", 0, m1={"question": "Other?"})
    later = scene.site("b", 1)
    new = scene.site("c", 2, m6=None, m3=None)
    states = [later.state, new.state]
    return Case([old, later], scene.arguments("publish", "c", "--allow-shrink"), states, new, hidden=(3, 6))


def expiry(scene: Scene) -> Case:
    old, later = scene.site("a", 0), scene.site("b", 1, m1={"question": "Edited?"})
    new = scene.site("c", 2, m1={"question": "Edited again?"})
    return Case(
        [old, later], scene.arguments("publish", "c"), [later.state, new.state], new,
        between=lambda: scene.pass_time(LIFETIME_S + 5),
    )  # fmt: skip


def purge(scene: Scene) -> Case:
    old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "Edited?"})
    return Case([old], scene.arguments("publish", "b", "--purge-retired"), [old.state, new.state], new)


def withdrawn_by_command(scene: Scene) -> Case:
    old, later = scene.site("a", 0, m1={"question": "Other?"}), scene.site("b", 1)
    scene.config("elsewhere")
    arguments = scene.arguments("takedown", "elsewhere", market_id(6), market_id(3))
    return Case([old, later], arguments, [later.state, without(later.state, 3, 6)], None, hidden=(3, 6))


def repair(scene: Scene) -> Case:
    site = scene.site("a", 0)

    def damage() -> None:
        objects = dict(scene.objects())
        for number, key in enumerate(sorted(key for key in objects if "/detail/" in key or "openapi" in key)):
            if number % 2:
                del objects[key]
            else:
                objects[f"{key}.bak"] = objects[key]
        scene.reset(objects)

    return Case(
        [site], scene.arguments("publish", "a", "--verify"), [site.state], site, is_verifying=True, between=damage
    )


CASES = (first, change, withdrawal, expiry, purge, withdrawn_by_command, repair)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_run_killed_at_any_request_loses_nothing(
    scene: Scene, victims: Victims, case: Callable[[Scene], Case]
) -> None:
    told = case(scene)
    for site in told.published:
        scene.publish(site)
    told.between()
    before = scene.objects()
    strikes = places(victims.run(told.arguments))
    finish(scene, told, None)
    later = scene.site("later", 9, m2={"question": "Later?"}, **{f"m{number}": None for number in told.hidden})
    for number, strike in enumerate(strikes):
        scene.reset(before)
        assert victims.kill(told.arguments, strike), strike
        if case is not repair:
            check_known(scene.objects())
        if told.published:
            check_lists(scene, *told.seen)
        finish(scene, told, later if number % 3 == 2 else None)
    assert victims.kills == len(strikes) >= 40


def finish(scene: Scene, case: Case, later: Site | None) -> None:
    """Run again what was killed, or publish another site from another folder: nothing is left of the fault."""
    site = later or case.site
    if site:
        scene.publish(site, is_verifying=case.is_verifying)
        check_whole(scene.objects(), site)
        check_lists(scene, site.state)
    else:
        words = Blocked().told(map(market_id, case.hidden), is_blocked=True, now=NOW)
        config = scene.config("elsewhere")
        takedown.from_store(scene.store(config), config, words, Silent(), lambda _: None)
        check_known(scene.objects())
        check_lists(scene, *case.seen[-1:])
    check_hidden(scene.objects(), *case.hidden)


# ── at random, one after the other ────────────────────────────────────────────────────────────────────────────────


def test_two_hundred_random_kills_leave_nothing_behind(scene: Scene, victims: Victims) -> None:
    rng = random.Random(5)
    site = scene.site("m0", 0)
    with Walkers(scene, site.state) as walkers:
        scene.publish(site)
        states, hidden, minute = [site.state], 0, 0
        while victims.kills < 200:
            minute += 1
            hidden = rng.choice((0, 0, 0, hidden, 3, 6))
            site = edited(scene, rng, minute, hidden)
            if hidden:
                walkers.withdraw(is_withdrawing=True)
            walkers.expect(site.state)
            states.append(site.state)
            arguments = scene.arguments("publish", site.folder.parent.name, "--allow-shrink")
            victims.kill(arguments, Strike(ANY, rng.randint(1, 55), after=rng.random() < 0.5))
            check_known(scene.objects())
            check_lists(scene, *states)
            if minute % 3 == 0:
                scene.publish(site)
                check_whole(scene.objects(), site)
                check_lists(scene, site.state)
                check_hidden(scene.objects(), *([hidden] if hidden else []))
                states = [site.state]
                walkers.withdraw(is_withdrawing=False)
    assert walkers.exact > 500
    assert victims.kills == 200


def edited(scene: Scene, rng: random.Random, minute: int, hidden: int) -> Site:
    """Another site, in one of three folders; one market may be withdrawn."""
    changes: dict[str, Mapping[str, Any] | None] = {
        f"m{number}": {"question": f"Question {number}, edition {minute}?"} for number in rng.sample(range(1, 10), 2)
    }
    changes |= {f"m{rng.randint(1, 9)}": {"status": rng.choice(("open", "closed"))}}
    return scene.site(f"m{rng.randrange(3)}", minute, **changes | ({f"m{hidden}": None} if hidden else {}))


# ── at every file call ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_publish_into_a_directory_killed_at_any_file_call_loses_nothing(scene: Scene, victims: Victims) -> None:
    target = scene.folder / "site"
    reader = Reader.of_folder(target)

    def publish(name: str) -> list[str]:
        return [*scene.arguments("publish", name, "--allow-shrink"), "--set", f"publish.target={target}"]

    old = scene.site("a", 0)
    new = scene.site("b", 1, m1={"question": "Edited?"}, m3=None, m4={"status": "closed"})
    victims.finish(publish("a"))
    pristine = scene.folder / "pristine"
    shutil.copytree(target, pristine)
    faults = calls_of(victims.finish(publish("b")))
    for number, fault in enumerate(faults):
        shutil.rmtree(target)
        shutil.copytree(pristine, target)
        victims.fail(publish("b"), fault)
        check_known(objects_in(target))
        reader.check(old.state, new.state, lists=LISTS)
        later = scene.site("c", number + 2, m3=None, m2={"question": "Later?"}) if number % 3 == 0 else new
        victims.finish(publish(later.folder.parent.name))
        check_whole(objects_in(target), later)
        check_hidden(objects_in(target), 3)
        reader.check(later.state, lists=LISTS)
    assert victims.kills > 0.9 * len(faults) > 40


def calls_of(counts: Mapping[str, int]) -> list[Fault]:
    """The first, the middle and the last calls of every kind, before and after each."""
    return [
        Fault(call, number, after=after)
        for call, count in counts.items()
        for number in sorted({1, 2, count // 2, count - 1, count} & {*range(1, count + 1)})
        for after in (False, True)
    ]


def objects_in(target: Path) -> dict[str, Found]:
    """What a directory has for objects; their headers are the web server's."""
    return {
        key: Found(body, hashlib.sha256(body).hexdigest(), keys.headers(key))
        for key, body in files(target, "").items()
        if not key.startswith(".")
    }
