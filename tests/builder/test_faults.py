"""Killed at any moment: the old state or the new one is served, and the next build repairs the rest.

A reader that sees only the files under `v1/` is compared with an oracle that sees only the database.
"""
# ruff: noqa: S311 - nothing here is secret, and every run must kill at the same points

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from generator.api import keys
from generator.tree import chunks, generations, layouts, manifest_file
from generator.tree.manifest import Manifest
from generator.tree.membership import lists_of
from tests.support import limits
from tests.support.campaigns import rounds, sample
from tests.support.faults import (
    ENDED,
    LIMITS_WALKED,
    LIST_NAMES,
    Builds,
    Fault,
    GoneError,
    Reader,
    State,
    Walk,
    World,
    check_whole,
    children_of,
    expected_keys,
    fast_folder,
    processes_of,
    state_of,
)
from tests.support.project import ROOT
from tests.support.readers.search import is_match
from tests.support.readers.searching_reader import SearchingReader
from tests.support.sites.builds import files, lasting
from tests.support.sites.rows import market_id
from tests.support.stores import records
from tests.support.waiting import PATIENCE_S, wait_until

#: Walks begun before a build that is killed, finished after it and again after the repair.
HELD = (("all/new", 7), ("open/popular", 20), ("archive/ended", 1), ("closed/volume", 7))
LIFETIME = timedelta(minutes=3)
#: What `SearchingReader` looks for: all markets, and those of some edits.
SEARCHES = ("all/new?quest", "open/popular?edition")


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


def manifest_of(builds: Builds) -> Manifest:
    found = manifest_file.read(builds.output)
    assert found
    return found


def hold(reader: Reader) -> list[Walk]:
    walks = [reader.begin(name, limit) for name, limit in HELD]
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
    retained = {key for old in manifest_of(builds).retired for key in generations.object_keys(old.list, old)}
    assert repaired.keys() - new.keys() <= retained
    shutil.rmtree(fresh)


def changes(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """The keys that differ, except the lock file."""
    return [key for key in {**before, **after} if before.get(key) != after.get(key) and key != ".lock"]


# ── at every call ─────────────────────────────────────────────────────────────────────────────────────────────────


def both(call: str, *numbers: int) -> list[Fault]:
    return [Fault(call, number, after=after) for number in numbers for after in (False, True)]


def in_turn(call: str, *numbers: int) -> list[Fault]:
    """Before the first of these calls, after the second, before the third."""
    return [Fault(call, number, after=at % 2 == 1) for at, number in enumerate(numbers)]


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
    # In random order, so that most killed builds follow one killed at another call.
    faults = sample([*COMMIT, *PRUNING, *CLEARING, *STAGING], 8)
    random.Random(7).shuffle(faults)
    builds.build()
    states, is_withdrawn = [world.state()], False
    exact = repairs = 0
    for number, fault in enumerate(faults, 1):
        walks = hold(reader)
        withdraw = fault in PRUNING
        world.advance(withdraw=withdraw)
        states.append(world.state())
        is_withdrawn = is_withdrawn or withdraw
        builds.die(fault)
        reader.check(*states)
        exact += finish(reader, walks, may_be_gone=is_withdrawn)
        if number % 6 == 0:  # or the guards would refuse how much has changed
            repairs += 1
            repair(builds, reader, is_fresh_compared=repairs % 5 == 0)
            exact += finish(reader, walks, may_be_gone=is_withdrawn)
            states, is_withdrawn = [world.state()], False
    assert builds.kills == len(faults) >= rounds(8, 65)
    assert exact > 3 * builds.kills


@pytest.mark.campaign(short=0)
def test_a_build_of_a_large_site_killed_at_any_write_of_its_manifest_is_finished_by_the_next(world: World) -> None:
    faults = [
        *both("manifest", 1, 2), *both("state", 1), *both("fsync", 1), *in_turn("fsync", 2, 3, 4, 5, 6, 7),
        *both("discard", 1), *in_turn("discard", 2), *both("detail", 1),
    ]  # fmt: skip
    random.Random(7).shuffle(faults)
    with closing(Builds(world, world.folder / "output", layout=chunks.LAYOUT, modules=(records.__name__,))) as builds:
        reader = Reader.of_folder(builds.output)
        builds.build()
        states = [world.state()]
        for number, fault in enumerate(faults, 1):
            world.advance()
            states.append(world.state())
            builds.die(fault)
            reader.check(*states)
            assert manifest_of(builds).markets
            if number % 3 == 0:
                builds.build()
                assert len([*(builds.output / "state").iterdir()]) == 1
                states = [world.state()]
                reader.check(*states)
                check_whole(builds.output)
        assert builds.kills == len(faults)


@pytest.mark.campaign(short=0)
def test_a_build_killed_at_any_call_leaves_whole_searches(world: World, builds: Builds) -> None:
    builds.settings, builds.layout = {"variant": "extended", "search": "title"}, chunks.LAYOUT
    reader, exact = SearchingReader.of_folder(builds.output), 0
    builds.build()
    states = [searched(world)]
    for fault in [*both("manifest", 1, 2), *(Fault("generation", number) for number in range(1, 120, 20))]:
        walks = [reader.begin(name, 7) for name in SEARCHES]
        world.advance()
        states.append(searched(world))
        builds.die(fault)
        reader.check(*states, lists=SEARCHES)
        exact += finish(reader, walks)
        builds.build()
        exact += finish(reader, walks)
        states = [searched(world)]
        reader.check(*states, lists=SEARCHES)
    check_whole(builds.output)
    assert exact == 2 * len(SEARCHES) * builds.kills > 0


def searched(world: World) -> State:
    """What the searches show."""
    lists = world.state()
    parted = {name: name.partition("?") for name in SEARCHES}
    return {
        name: [seen for seen in lists[list_name] if is_match(words, [seen[1]])]
        for name, (list_name, _, words) in parted.items()
    }


def repair(builds: Builds, reader: Reader, *, is_fresh_compared: bool = False) -> None:
    builds.build()
    reader.check(builds.world.state())
    check_whole(builds.output)
    if is_fresh_compared:
        check_like_fresh(builds)


def is_stopped(pid: int) -> bool:
    """Wait until the process stops or ends, and return whether it stopped."""
    wait_until(lambda: state_of(pid) in {"T", *ENDED})
    return state_of(pid) == "T"


@pytest.mark.campaign(short=0)
def test_a_first_build_killed_at_any_call_leaves_whole_lists_or_none(world: World, builds: Builds) -> None:
    faults = [
        *both("manifest", 1, 2),
        Fault("manifest", 3),
        Fault("sync"),
        Fault("mkdir", 2, after=True),
        *(Fault("generation", number) for number in (2, 31)),
        *(Fault("first", number) for number in (1, 15, 67, FIRST_PAGES)),
        Fault("create", 90, who="worker", victim="main"),
    ]
    faults = sample(faults, 3)
    state, found = world.state(), 0
    for number, fault in enumerate(faults):
        builds.output = world.folder / f"output-{number}"
        reader = Reader.of_folder(builds.output)
        builds.die(fault)
        found += check_existing_lists(reader, state)
        repair(builds, reader)
        shutil.rmtree(builds.output)
    assert builds.kills == len(faults)
    assert found > rounds(30, 240)


def check_existing_lists(reader: Reader, state: State) -> int:
    """Check that every list with a first page is exact, and return the number of walks."""
    found = 0
    for name in LIST_NAMES:
        for limit in LIMITS_WALKED:
            with suppress(GoneError):
                reader.page(name, limit)
                found += 1
                try:
                    assert reader.walk(name, limit) == state[name]
                except GoneError as error:
                    pytest.fail(f"{name} by {limit} leads to nothing: {error}")
    return found


# ── at random moments, from outside ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_a_build_killed_from_outside_leaves_the_old_state_or_the_new(
    world: World, builds: Builds, reader: Reader
) -> None:
    rng = random.Random(11)
    builds.build()
    world.advance()
    begun = time.monotonic()
    builds.build()
    duration = time.monotonic() - begun
    died, states = 0, [world.state()]
    # Those that come too late do not count: builds may take less time than one did on a busy machine.
    for number in range(150):
        if number >= 24 and died > 12:
            break
        walks = hold(reader)
        world.advance()
        states.append(world.state())
        builds.as_of += timedelta(seconds=60)
        builds.layout = rng.choice(layouts.LAYOUTS)
        pid = builds.begin()
        time.sleep(rng.uniform(0, 0.9 * duration))
        (os.killpg if number % 3 == 0 else os.kill)(pid, signal.SIGKILL)
        died += builds.end() == -signal.SIGKILL
        builds.await_orphans()
        reader.check(*states)
        assert finish(reader, walks) == len(walks)
        if number % 4 == 0:
            repair(builds, reader)
            assert finish(reader, walks) == len(walks)
            states = [world.state()]
    assert died > 12


def spawn(builds: Builds) -> subprocess.Popen[bytes]:
    builds.as_of += timedelta(seconds=15)
    command = [sys.executable, "-m", "generator", *builds.arguments(builds.output, builds.as_of)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_a_killed_worker_fails_the_build_and_changes_nothing(world: World, builds: Builds) -> None:
    builds.build()
    before = files(builds.output, "")
    world.advance()
    for number in (1, 10, 100):
        builds.begin(Fault("create", number, who="worker"))
        assert builds.end() == 1
        assert "a worker process was killed" in builds.log()
        assert "Traceback" not in builds.log()
        assert changes(before, files(builds.output, "")) == []
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
    known = expected_keys(manifest_of(builds))
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


# ── successive builds ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_walks_end_exact_while_builds_follow_one_another(world: World, builds: Builds, reader: Reader) -> None:
    builds.build()
    walks: list[tuple[Walk, int]] = []
    finished = 0
    for number in range(8):
        walks += [(reader.begin(name, limit), number) for name, limit in HELD]
        world.advance()
        builds.build(later=LIFETIME / 4)
        reader.check(world.state())
        check_whole(builds.output)
        for walk, begun in walks:
            # A generation that the next build replaced is kept for four more builds.
            if number - begun <= 4:
                reader.finish(walk)
                finished += 1
            else:
                with pytest.raises(GoneError):
                    reader.finish(walk)
        walks = [(walk, begun) for walk, begun in walks if number - begun <= 4]
    assert finished == 4 * (5 * 8 - 10)


def test_a_withdrawn_market_is_gone_at_once_and_other_lists_keep_their_walks(
    world: World, builds: Builds, reader: Reader
) -> None:
    world.edit(3, question="Is it withdrawn?")  # a closed market
    builds.build()
    kept = [reader.begin(name, 1) for name in ("open/popular", "resolved/new", "cancelled/ended")]
    lost = [reader.begin(name, 1) for name in ("closed/new", "all/volume", "archive/activity")]
    world.advance()
    builds.build()
    assert finish(reader, kept + lost) == 6
    world.database.execute("DELETE FROM markets WHERE id = ?", [market_id(3)])
    builds.build()
    reader.check(world.state())
    assert finish(reader, kept) == 3
    for walk in lost:
        with pytest.raises(GoneError):
            reader.finish(walk)
    assert not (builds.output / keys.detail(market_id(3))).exists()
    held = {old.list for old in manifest_of(builds).retired}
    assert held
    assert not held & lists_of(["closed"])
    for key, body in files(builds.output).items():
        assert market_id(3) not in key
        assert market_id(3).encode() not in body
        assert b"Is it withdrawn?" not in body


# ── concurrent ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("call", ["create", "first"])
def test_a_second_build_is_refused_until_the_first_is_dead(
    world: World, builds: Builds, reader: Reader, call: str
) -> None:
    builds.build()
    old = world.state()
    world.advance()
    pid = builds.begin(Fault(call, 2, signal=signal.SIGSTOP))
    assert is_stopped(pid)
    with spawn(builds) as second:
        _, message = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 4
    assert message.decode() == f"error: {builds.output}: another run is at work there (process {pid})\n"
    reader.check(old, world.state())
    assert len(list(builds.output.glob(".staging-*"))) == 1
    os.kill(pid, signal.SIGKILL)
    assert builds.end() == -signal.SIGKILL
    repair(builds, reader)
    wait_until(lambda: not processes_of(pid))


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
