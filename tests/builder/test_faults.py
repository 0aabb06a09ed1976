"""Killed at any moment: the old state or the new one is served, and the next build repairs the rest.

A reader that sees only the files under `v1/` is compared with an oracle that sees only the database.
"""
# ruff: noqa: S311 - nothing here is secret, and every run must kill at the same points

import os
import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from generator.tree import generations
from tests.support import limits
from tests.support.campaigns import rounds, sample
from tests.support.faults import (
    LIMITS_WALKED,
    LIST_NAMES,
    QUESTION_LISTS,
    Builds,
    Fault,
    GoneError,
    Reader,
    Walk,
    World,
    check_whole,
    children_of,
    expected_keys,
    fast_folder,
    processes_of,
    state_of,
)
from tests.support.sites.builds import files, lasting, manifest_in
from tests.support.waiting import wait_until

#: Walks begun before a build that is killed, finished after it and again after the repair.
HELD = (("all/new", 7), ("open/popular", 20), ("archive/ended", 1), ("closed/volume", 7))
LIFETIME = timedelta(minutes=3)


@pytest.fixture(autouse=True)
def _walked_limits() -> Iterator[None]:
    """Readers walk with these: pages of any other limit would be written only to be deleted."""
    with limits.only(LIMITS_WALKED):
        yield


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with fast_folder(tmp_path) as folder, closing(World(folder)) as world:
        yield world


@pytest.fixture
def builds(world: World) -> Iterator[Builds]:
    with closing(Builds(world, world.folder / "output")) as builds:
        yield builds


@pytest.fixture
def reader(builds: Builds) -> Reader:
    return Reader.of_folder(builds.output)


def hold(reader: Reader, held: tuple[tuple[str, int], ...] = HELD) -> list[Walk]:
    walks = [reader.begin(name, limit) for name, limit in held]
    assert all(walk.at for walk in walks)
    return walks


def finish(reader: Reader, walks: list[Walk], *, may_be_gone: bool = False) -> int:
    """Finish the walks and count the exact ones; with `may_be_gone`, after a withdrawal, the others may be refused."""
    exact = 0
    for walk in walks:
        try:
            reader.finish(walk)
            exact += 1
        except GoneError:
            assert may_be_gone, f"a walk of {walk.list_name} was cut off"
    return exact


def check_like_fresh(builds: Builds) -> None:
    """The folder equals a build into a new folder, plus generations that the manifest has retired."""
    fresh = builds.world.folder / "fresh"
    builds.build(fresh, later=timedelta(0))
    new, repaired = lasting(files(fresh)), lasting(files(builds.output))
    assert [key for key, body in new.items() if repaired.get(key) != body] == []
    retained = {key for old in manifest_in(builds.output).retired for key in generations.object_keys(old.list, old)}
    assert repaired.keys() - new.keys() <= retained
    shutil.rmtree(fresh)


# ── at every call ─────────────────────────────────────────────────────────────────────────────────────────────────


def both(call: str, *numbers: int) -> list[Fault]:
    return [Fault(call, number, after=after) for number in numbers for after in (False, True)]


def in_turn(call: str, *numbers: int) -> list[Fault]:
    """Before the first of these calls, after the second, before the third."""
    return [Fault(call, number, after=at % 2 == 1) for at, number in enumerate(numbers)]


#: Settings of a site with a record of accuracy.
RECORDED = {"dumps.parquet": "true", "history.public": "true"}
FIRST_PAGES = len(LIST_NAMES) * len(LIMITS_WALKED)
#: Calls at which the main process is killed, from first to last.
COMMIT = [
    Fault("sync"), *both("manifest", 1, 2), *both("fsync", 1, 6), *in_turn("fsync", 2, 3, 4, 5),
    *both("generation", 1, 30), *in_turn("generation", 2, 29, *range(3, 29, 10)),
    *both("detail", 1), *in_turn("detail", 2, 4), *both("first", 1, FIRST_PAGES),
    *in_turn("first", 2, FIRST_PAGES - 1, 4, 5, 27, 47, 67, 87, 107),
    *both("document", 1), *both("report", 1),
]  # fmt: skip
#: Only a build that withdraws a market is sure to delete something: its detail, then retired generations.
PRUNING = [*both("discard", 1), *in_turn("discard", 2, 3, 5, 8)]
CLEARING = [Fault("clear", number) for number in (1, 2, 40)]
STAGING = [
    *(Fault("create", number) for number in (1, 3, 5)),
    *(Fault("mkdir", number) for number in (1, 2)),
    *(Fault("create", number, who="worker", victim="main") for number in range(1, 250, 80)),
    *(Fault("mkdir", number, who="worker", victim="main") for number in (1, 2, 20, 40)),
]


@pytest.mark.campaign(short=0)
def test_a_build_killed_at_any_call_leaves_the_old_state_or_the_new(
    world: World, builds: Builds, reader: Reader
) -> None:
    play(world, builds, reader, sample([*COMMIT, *PRUNING, *CLEARING, *STAGING], 8))
    assert builds.kills >= rounds(8, 65)


@pytest.mark.campaign(short=0)
def test_a_build_with_questions_that_is_killed_leaves_their_old_lists_or_the_new(tmp_path: Path) -> None:
    calls = ("manifest", "first", "document", "discard")
    faults = sample([fault for fault in (*COMMIT, *PRUNING) if fault.call in calls], 6)
    with (
        fast_folder(tmp_path) as folder,
        closing(World(folder, has_questions=True)) as world,
        closing(Builds(world, folder / "output", settings=RECORDED)) as builds,
    ):
        play(world, builds, Reader.of_folder(builds.output), faults)
        assert builds.kills >= rounds(6, 25)


def play(world: World, builds: Builds, reader: Reader, faults: list[Fault]) -> None:
    """Kill builds at these calls, and repair what they leave after every sixth."""
    of_questions = QUESTION_LISTS if world.has_questions else ()
    lists, held = (*LIST_NAMES, *of_questions), (*HELD, *((name, 7) for name in of_questions))
    # In random order, so that most killed builds follow one killed at another call.
    random.Random(7).shuffle(faults)
    builds.build()
    states, is_withdrawn = [world.state()], False
    exact = repairs = 0
    for number, fault in enumerate(faults, 1):
        walks = hold(reader, held)
        withdraw = fault in PRUNING
        world.advance(withdraw=withdraw)
        states.append(world.state())
        is_withdrawn = is_withdrawn or withdraw
        builds.die(fault)
        reader.check(*states, lists=lists)
        # A question that goes ends walks, too.
        may_be_gone = is_withdrawn or world.has_questions
        exact += finish(reader, walks, may_be_gone=may_be_gone)
        if number % 6 == 0:  # or the guards would refuse how much has changed
            repairs += 1
            repair(builds, reader, lists, is_fresh_compared=repairs % 5 == 0 or world.has_questions)
            exact += finish(reader, walks, may_be_gone=may_be_gone)
            states, is_withdrawn = [world.state()], False
    assert builds.kills == len(faults)
    assert exact > 3 * builds.kills


def repair(
    builds: Builds, reader: Reader, lists: tuple[str, ...] = LIST_NAMES, *, is_fresh_compared: bool = False
) -> None:
    builds.build()
    reader.check(builds.world.state(), lists=lists)
    check_whole(builds.output)
    if is_fresh_compared:
        check_like_fresh(builds)


# ── workers ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_killed_worker_fails_the_build_and_changes_nothing(world: World, builds: Builds) -> None:
    builds.build()
    before = files(builds.output, "")
    world.advance()
    for number in (1, 10, 100):
        builds.begin(Fault("create", number, who="worker"))
        assert builds.end() == 1
        assert "a worker process was killed" in builds.log()
        assert "Traceback" not in builds.log()
        assert files(builds.output, "") == before
        assert not list(builds.output.glob(".staging-*"))


# ── a power cut ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    "fault",
    [Fault("sync"), Fault("generation", 12), Fault("generation", 30, after=True), Fault("manifest")],
    ids=lambda fault: f"{fault.call}-{fault.number}",
)
def test_files_torn_by_a_power_cut_are_not_trusted(world: World, builds: Builds, reader: Reader, fault: Fault) -> None:
    builds.build()
    old, rng = world.state(), random.Random(3)
    world.advance()
    builds.die(fault)
    known = expected_keys(manifest_in(builds.output))
    torn = [
        path
        for path in builds.output.rglob("*.json")
        if path.relative_to(builds.output).as_posix() not in known and path.parent != builds.output
    ]
    assert torn  # the first flush may come when only details are staged
    for path in rng.sample(torn, min(500, len(torn))):
        os.truncate(path, rng.randrange(path.stat().st_size))
    reader.check(old)
    repair(builds, reader, is_fresh_compared=True)


def test_orphaned_workers_neither_hold_the_lock_nor_leave_files(world: World, builds: Builds, reader: Reader) -> None:
    builds.build()
    world.advance()
    pid = builds.begin(Fault("create", 100, who="worker", signal=signal.SIGSTOP))
    wait_until(lambda: any(state_of(child) == "T" for child in children_of(pid)))
    os.kill(pid, signal.SIGKILL)
    assert builds.end() == -signal.SIGKILL
    assert processes_of(pid), "no worker outlived the build, so this shows nothing"
    repair(builds, reader)
    os.killpg(pid, signal.SIGCONT)
    wait_until(lambda: not processes_of(pid))
    reader.check(world.state())
    check_whole(builds.output)
