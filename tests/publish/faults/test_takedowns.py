"""A takedown and a publish that interrupt each other at any request: blocked markets stay away."""
# ruff: noqa: S311 - nothing here is secret, and every run must interrupt at the same places

import random
import shutil
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from generator.api import keys
from generator.tree import chunks, layouts
from tests.publish.faults.rounds import code_of, run_all
from tests.publish.faults.scene import (
    LEASE_S,
    ON_BOTH,
    PREFIX,
    Scene,
    check_hidden,
    check_known,
    check_lists,
    check_whole,
    publish_site,
    record_of,
    take_down,
)
from tests.publish.faults.sites import SiteContent, without
from tests.publish.faults.strikes import ANY, DiedError, DiesAfter, Strike, Watch, label
from tests.support.campaigns import rounds, sample
from tests.support.sites.rows import market_id
from tests.support.stores.s3.wire import Answer, Request
from tests.support.waiting import PATIENCE_S

#: Two of the lists do not hold the first, so a takedown leaves them alone.
HIDDEN, OTHER = 7, 5
#: After every fifth round, try to publish the blocked market again.
EVERY = 5


@pytest.mark.campaign(short=1)
@ON_BOTH
def test_a_takedown_during_a_publish_wins(tmp_path: Path, *, is_split: bool) -> None:
    tries = 0

    def play(scene: Scene, share: Share) -> None:
        nonlocal tries
        if share.has_all:
            scene.publish_everything()
            scene.layouts = dict.fromkeys(("a", "b", "elsewhere"), chunks.LAYOUT)
        old, new = (
            scene.site("a", 0),
            scene.site("b", 1, m1={"question": "New?"}, m7={"question": "Question 7, edited?"}),
        )
        shutil.copytree(new.folder, scene.folder / "pristine")
        scene.publish(old)
        before = scene.objects()
        for number in share.rounds:
            scene.reset(before)
            shutil.rmtree(new.folder)
            shutil.copytree(scene.folder / "pristine", new.folder)
            step, is_publisher_first = number // 4, number % 2 == 0
            strike = Strike(ANY, 1 + (step if is_publisher_first else step * 2), after=number % 4 < 2)
            (interrupted_publish if is_publisher_first else interrupted_takedown)(scene, new, strike)
            check_quiet_without(scene, HIDDEN)
            check_lists(scene, without(old.state, HIDDEN), without(new.state, HIDDEN))
            if number % EVERY == 0:
                again = scene.site("b", 2, m7={"question": "Question 7, again?"})
                scene.publish(again)
                check_quiet_without(scene, HIDDEN)
                check_lists(scene, without(again.state, HIDDEN))
                tries += 1

    shares = mixed(300, 10, is_split=is_split)
    run_all(tmp_path, shares, play, len(shares))
    assert tries == sum(number % EVERY == 0 for share in shares for number in share.rounds) > 0


@pytest.mark.campaign(short=0)
@ON_BOTH
def test_publishers_killed_with_a_put_in_flight_leave_nothing_for_long(tmp_path: Path, *, is_split: bool) -> None:
    """It arrives when another run has taken over: a publish, or the takedown of a market it would have shown."""

    def play(scene: Scene, share: Share) -> None:
        scene.layouts["b"] = chunks.LAYOUT
        if share.has_all:
            scene.publish_everything()
        old = scene.site("a", 0)
        slow = [scene.site(name, 1, m10={"trader_count": 99}, m1={"question": "Slow?"}, m4=None) for name in "bc"]
        scene.publish(old)
        before = scene.objects()
        for number in share.rounds:
            scene.reset(before)
            site = slow[number % 2]
            writes = 1 + number // 4 * (6 if share.has_all else 3) // 2
            store = DiesAfter(scene.store(site.config), writes)
            with suppress(DiedError):
                publish_site(site, store)
            scene.pass_time(LEASE_S + 2)
            is_taken_down = number % 4 < 2
            for _ in range(2):
                if is_taken_down:
                    take_down(scene, 10)
                else:
                    scene.publish(old)
                check_known(scene.objects())
                store.arrive()
            scene.publish(old)
            check_whole(scene.objects(), old)
            check_lists(scene, old.state)

    shares = mixed(132, 8, is_split=is_split)
    run_all(tmp_path, shares, play, len(shares))


class Share(NamedTuple):
    """Rounds that are played one after the other, with all kinds of objects or with lists only."""

    has_all: bool
    rounds: list[int]


def mixed(rounds: int, short: int, *, is_split: bool) -> list[Share]:
    """The shares of the rounds that are chosen for records with a state, or for whole ones."""
    chosen = sample(filter(is_chosen, range(rounds)), short)
    random.Random(2).shuffle(chosen)  # so that each share has all kinds of rounds
    half = chosen[is_split::2]
    return [Share(has_all, half[start::2]) for start, has_all in enumerate((True, False))]


def is_chosen(number: int) -> bool:
    """Whether a round is played: of eight one, so that there are as many of each kind, which four rounds make up."""
    return number % 8 == (number // 8 * 3 + number // 64) % 8


def check_quiet_without(scene: Scene, number: int) -> None:
    objects = scene.objects()
    published = record_of(objects)
    assert published
    assert published.work is None
    assert not published.due
    check_known(objects)
    check_hidden(objects, number)


def test_a_takedown_that_completes_during_a_build_is_never_undone_not_even_for_a_moment(scene: Scene) -> None:
    """The build has read the blocked list, and reads the record only after the takedown."""
    scene.publish_everything()
    scene.publish(scene.site("a", 0))
    new = scene.site("b", 1, m1={"question": "New?"}, m7={"question": "Question 7, edited?"})
    shown: list[str] = []

    def look(request: Request, _: Answer) -> None:
        if request.operation == "PutObject" and label(request) != "Put blocked":
            hidden = market_id(HIDDEN)
            shown.extend(
                key for key, found in scene.objects().items() if hidden in key or hidden.encode() in found.body
            )

    def act() -> None:
        take_down(scene, HIDDEN)
        scene.server.after = look

    with Watch(Strike("Get record", 1), act).over(scene.server):
        scene.publish(new)
    assert {key for key in shown if key.startswith("v1/")} == set()
    check_quiet_without(scene, HIDDEN)
    check_lists(scene, without(new.state, HIDDEN))


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("writes", [3, 14, 22])
def test_after_a_killed_move_between_layouts_a_takedown_brings_no_withdrawn_market_back(
    scene: Scene, writes: int
) -> None:
    scene.publish_everything()
    scene.publish(scene.site("a", 0))
    scene.layouts["b"] = chunks.LAYOUT
    moved = scene.site("b", 1, m1={"question": "Edited?"}, m6=None)
    with pytest.raises(DiedError):
        publish_site(moved, DiesAfter(scene.store(moved.config), writes))
    assert keys.detail(market_id(6)) not in scene.objects()
    scene.pass_time(LEASE_S + 2)
    take_down(scene, HIDDEN)
    check_quiet_without(scene, HIDDEN)
    check_quiet_without(scene, 6)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("layout", layouts.LAYOUTS)
def test_a_takedown_between_two_states_leaves_lists_and_searches_of_one(scene: Scene, layout: str) -> None:
    """A publisher was killed between first pages: the lists, and the index, are of two states."""
    scene.publish_everything()
    scene.layouts = dict.fromkeys("ab", layout)
    old = scene.site("a", 0)
    scene.publish(old)
    new = scene.site("b", 1, m1={"question": "Question 1, edited?"}, m3={"status": "open", "trader_count": 8}, m10={})
    before = scene.objects()
    writes = writes_of(scene, new)
    moments = range(writes.index("Put first"), writes.index("Put build") + 1)
    some = sample(moments[3 : -1 : 1 + len(moments) // 6], 0)
    for number in (moments[0], moments[len(moments) // 2], *some, moments[-1]):
        scene.reset(before)
        with pytest.raises(DiedError):
            publish_site(new, DiesAfter(scene.store(new.config), number))
        scene.pass_time(LEASE_S + 2)
        check_lists(scene, old.state, new.state)
        take_down(scene, HIDDEN)
        check_quiet_without(scene, HIDDEN)
        assert keys.head(keys.SEARCH) in scene.objects()
        check_lists(scene, without(old.state, HIDDEN), without(new.state, HIDDEN))
    again = scene.site("b", 2, m7=None, m10={})
    scene.publish(again)
    check_whole(scene.objects(), again)
    check_lists(scene, again.state)


@pytest.mark.campaign(short=0)
def test_a_takedown_that_was_killed_and_runs_again_keeps_the_index(scene: Scene) -> None:
    """When it runs again, some lists lack the market already, and the index may belong to these or to the others."""
    scene.publish_everything()
    scene.layouts = dict.fromkeys(("a", "elsewhere"), layouts.COMPACT)
    old = scene.site("a", 0)
    scene.publish(old)
    before = scene.objects()
    store = scene.store(scene.config("elsewhere"))
    for writes in range(rounds(20, 8), rounds(21, 40), 2):  # the next test also has the odd ones up to 19
        scene.reset(before)
        mortal = DiesAfter(store, writes)
        with suppress(DiedError):
            take_down(scene, HIDDEN, store=mortal)
        scene.pass_time(LEASE_S + 2)
        take_down(scene, HIDDEN)
        check_quiet_without(scene, HIDDEN)
        check_lists(scene, without(old.state, HIDDEN))


def writes_of(scene: Scene, site: SiteContent) -> list[str]:
    """What a publisher writes one after the other, as labels."""
    found: list[str] = []

    def note(request: Request, _: Answer) -> None:
        if label(request).startswith(("Put", "Delete")):
            found.append(label(request))

    scene.server.after = note
    publish_site(site, DiesAfter(scene.store(site.config), 10_000))
    scene.server.after = None
    return found


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("broken", ["all/popular", "all/volume"])
def test_a_list_that_cannot_be_read_is_made_again(scene: Scene, broken: str) -> None:
    """So is the search index, which leads into both."""
    scene.searches, scene.layouts = True, dict.fromkeys(("a", "elsewhere"), layouts.COMPACT)
    site = scene.site("a", 0)
    scene.publish(site)
    scene.server.bucket.delete(PREFIX + keys.head(broken))
    take_down(scene, HIDDEN)
    check_quiet_without(scene, HIDDEN)
    check_lists(scene, without(site.state, HIDDEN))


def interrupted_publish(scene: Scene, site: SiteContent, strike: Strike) -> None:
    """Hold a publish at a request until a takedown is done, or waits for it; if it is done, nothing may undo it."""
    is_waiting_or_done, is_done = threading.Event(), threading.Event()
    shown: list[AssertionError] = []

    def look(request: Request, _: Answer) -> None:
        if request.operation == "PutObject":
            try:
                check_hidden(scene.objects(), HIDDEN)
            except AssertionError as error:
                shown.append(error)

    with ThreadPoolExecutor(1) as pool:

        def run() -> None:
            try:
                take_down(scene, HIDDEN, notify=lambda _: is_waiting_or_done.set())
                is_done.set()
            finally:
                is_waiting_or_done.set()

        started: list[Future[None]] = []

        def act() -> None:
            started.append(pool.submit(run))
            assert is_waiting_or_done.wait(timeout=PATIENCE_S)
            if is_done.is_set():
                scene.server.after = look

        with Watch(strike, act).over(scene.server):
            code = code_of(lambda: scene.publish(site))
        for future in started or [pool.submit(run)]:
            future.result()
    assert code in (0, 4)
    assert not shown, f"{strike}: {shown[0]}"


def interrupted_takedown(scene: Scene, site: SiteContent, strike: Strike) -> None:
    """Hold a takedown at a request during a publish."""
    codes: list[int] = []
    with Watch(strike, lambda: codes.append(code_of(lambda: scene.publish(site)))).over(scene.server):
        take_down(scene, HIDDEN)
    assert codes in ([0], [4], [])
    if not codes:
        scene.publish(site)
