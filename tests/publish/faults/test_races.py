"""Concurrent publishers, frozen publishers and lost responses: none damages another's work."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any, cast

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.errors import BusyError, OutcomeUnknownError, StoreError
from generator.progress import SILENT
from generator.publish import takedown
from generator.publish.lease import Target
from generator.stores.store import BeforeEach, Wrapper, nothing
from generator.tree import layouts
from generator.tree.blocklist import BlockedList
from generator.tree.generations import object_keys
from tests.publish.faults.scene import (
    LEASE_S,
    LIFETIME_S,
    ON_BOTH,
    Scene,
    check_hidden,
    check_known,
    check_lists,
    check_whole,
    code_of,
    publish_site,
    record_of,
)
from tests.publish.faults.sites import SiteContent
from tests.publish.faults.strikes import DiedError, DiesAfter, Strike, Victims, Watch, label
from tests.support.campaigns import rounds
from tests.support.faults import GoneError, State, Walk, expected_keys
from tests.support.sites.builds import NOW
from tests.support.sites.rows import market_id
from tests.support.stores.s3.behaviour import (
    APPLIED_BUT_DROPPED,
    APPLIED_BUT_FAILED,
    CONFLICT,
    CUT_SHORT,
    DENIED,
    DROPPED,
    SLOW_DOWN,
    Fault,
)
from tests.support.stores.s3.server import prompt
from tests.support.stores.s3.wire import Answer, Request
from tests.support.waiting import PATIENCE_S

# ── concurrent ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@ON_BOTH
@pytest.mark.parametrize("second", [0, 1])
def test_of_two_publishers_one_wins(scene: Scene, second: int) -> None:
    scene.publish_everything()
    scene.layouts = dict.fromkeys("abc", layouts.COMPACT)
    old = scene.site("a", 0)
    new = [scene.site("b", 1, m1={"question": "B?"}, m4={}), scene.site("c", 2, m1={"question": "C?"}, m3=None)]
    scene.publish(old)
    codes = race(scene, new, second, [site.state for site in (old, *new)])
    assert sorted(codes) == [0, 4]
    winner, loser = new[codes.index(0)], new[codes.index(4)]
    check_whole(scene.objects(), winner)
    check_lists(scene, winner.state)
    scene.publish(loser)
    check_whole(scene.objects(), loser)


def race(scene: Scene, sites: list[SiteContent], second: int, seen_by_readers: list[State]) -> list[int]:
    """Publish both; neither puts a record before both have read it and made their plans, and one comes second.

    Readers look after each first page.
    """
    barrier, is_first_done = threading.Barrier(2), threading.Event()
    seen: list[Request] = []

    def before(request: Request) -> Fault | None:
        if label(request) == "Put record" and len(seen) < 2:
            seen.append(request)
            if barrier.wait(timeout=PATIENCE_S) == second:
                assert is_first_done.wait(PATIENCE_S)
        return None

    looks = list[Future[None]]()

    def after(request: Request, _: Answer) -> None:
        if label(request) == "Put record":
            is_first_done.set()
        elif label(request) == "Put first":
            looks.append(readers.submit(scene.reader.check, *seen_by_readers, lists=scene.lists))
            wait(looks)

    scene.server.before, scene.server.after = before, after
    with ThreadPoolExecutor(1) as readers, ThreadPoolExecutor(2) as pool:
        codes = [*pool.map(lambda site: code_of(lambda: scene.publish(site)), sites)]
    scene.server.before = scene.server.after = None
    assert looks
    for look in looks:
        look.result()
    return codes


# ── frozen ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_a_process_that_was_stopped_and_continues_does_no_harm(scene: Scene, victims: Victims) -> None:
    scene.publish_everything()
    scene.publish(scene.site("a", 0))
    scene.site("b", 1, m1={"question": "Slow?"}, m4={"status": "closed"})
    fast = scene.site("c", 2, m1={"question": "Fast?"}, m3={"question": "Fast?"}, m4={"question": "Fast?"})
    before = scene.objects()
    for strike in (Strike("Put page", 3), Strike("Put first", 1), Strike("Put record", 2)):
        scene.reset(before)
        with victims.stopped(scene.arguments("publish", "b"), strike) as ended:
            scene.pass_time(LEASE_S + 2)
            scene.publish(fast)
        assert ended() == 4
        check_whole(scene.objects(), fast)
        check_lists(scene, fast.state)


def test_a_publisher_whose_lease_ends_while_it_deletes_one_by_one_stops(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one may publish again what it was deleting."""
    scene.publish(scene.site("a", 0))
    new = scene.site("b", 1, m1={"question": "New?"})
    scene.publish(new)
    deleted, measured = list[str](), time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: measured(clock) + LEASE_S * len(deleted))

    class OneByOne(Wrapper):
        def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:
            for key in keys:
                before_each()
                deleted.append(key)
                self._store.delete([key])

    with pytest.raises(BusyError):
        publish_site(new, OneByOne(scene.store(new.config)), purges_retired=True)
    assert len(deleted) == 1


def test_a_delete_that_arrives_after_its_chunk_was_published_again_is_undone_by_the_next_run(scene: Scene) -> None:
    """Equal content has an equal key, so what was due is live again."""
    scene.layouts = dict.fromkeys("abc", layouts.COMPACT)
    old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "New?"}, m9={"question": "New?"})
    scene.publish(old)
    scene.publish(new)
    scene.pass_time(LIFETIME_S + 60)

    def act() -> None:
        scene.pass_time(LEASE_S + 2)
        scene.publish(old)

    with Watch(Strike("DeleteObjects bucket", 2), act).over(scene.server):
        assert code_of(lambda: scene.publish(new)) == 4
    missing = expected_keys(old.manifest) - scene.objects().keys()
    assert missing, "this tests nothing if nothing live was deleted"
    scene.publish(old)
    check_whole(scene.objects(), old)
    check_lists(scene, old.state)


# ── long ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_long_publish_does_not_shorten_the_lifetime_of_cursors(scene: Scene) -> None:
    """A generation is retired when first pages lead to another, not when that was planned."""
    old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "New?"})
    scene.publish(old)
    begun = []

    def act() -> None:
        scene.pass_time(LIFETIME_S - 60)
        scene.store(new.config).head("any")  # or the publisher would go by its own clock since the last answer
        begun.append(scene.reader.begin("all/popular", 2))

    with Watch(Strike("Put page", 1), act).over(scene.server):
        scene.publish(new)
    scene.pass_time(120)
    scene.publish(scene.site("c", 2, m1={"question": "Newer?"}))
    scene.reader.finish(begun[0])
    scene.pass_time(LIFETIME_S)
    scene.publish(new)
    with pytest.raises(GoneError):
        scene.reader.finish(begun[0])


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("layout", layouts.LAYOUTS)
def test_runs_that_are_always_killed_keep_what_each_began_until_one_ends(scene: Scene, layout: str) -> None:
    """What each put stays, as first pages may lead there; the same again adds nothing. The next commit dates it."""
    has_everything(scene, layout)
    scene.publish(scene.site("a", 0))
    sizes = [len(published_keys(scene))]
    for number in (1, 1, 1, 2, 2, 2):
        site = scene.site("b", number, m1={"question": f"Edition {number}?"}, m4=None)
        with pytest.raises(DiedError):
            publish_site(site, DiesAfter(scene.store(site.config), 8))
        check_known(scene.objects())
        sizes.append(len(published_keys(scene)))
        scene.pass_time(LIFETIME_S + 60)
    assert all(0 <= size - former <= 8 for former, size in pairwise(sizes)), sizes
    assert sizes[2] == sizes[3] < sizes[5] == sizes[6], sizes
    scene.publish(site)
    check_whole(scene.objects(), site)
    scene.pass_time(LIFETIME_S + 60)
    scene.publish(site)
    left = expected_keys(site.published().manifest.model_copy(update={"retired": ()}))
    assert published_keys(scene) == left, "a lifetime later, nothing but the site is left"


def published_keys(scene: Scene) -> set[str]:
    return {key for key in scene.objects() if key.startswith(f"{API_VERSION}/")}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("layout", layouts.LAYOUTS)
def test_due_generations_of_a_commit_go_even_if_all_later_runs_are_killed(scene: Scene, layout: str) -> None:
    """Nothing leads to them, so they need not wait for the next commit."""
    has_everything(scene, layout)
    scene.publish(scene.site("a", 0))
    scene.publish(scene.site("b", 1, m1={"question": "Two?"}))
    scene.pass_time(LIFETIME_S + 60)
    site = scene.site("a", 2, m1={"question": "Three?"})
    refuse(scene, "DeleteObjects", lambda: scene.publish(site))
    published = record_of(scene.objects())
    assert published
    assert published.built.complete
    kept = expected_keys(published.built)
    due = {key for entry in published.due for key in object_keys(entry.list, entry)} - kept
    assert due & scene.objects().keys()
    scene.pass_time(LEASE_S + 2)
    refuse(scene, "PutObject", lambda: scene.publish(scene.site("b", 3, m1={"question": "Four?"})))
    assert not due & scene.objects().keys()
    check_known(scene.objects())


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("layout", layouts.LAYOUTS)
def test_runs_of_which_some_die_after_first_pages_moved_keep_what_walks_are_in_and_no_more(
    scene: Scene, layout: str
) -> None:
    """What no run leads to any more is deleted in time, whether a run replaced it or was cut short with it."""
    has_everything(scene, layout)
    scene.publish(scene.site("a", 0))
    sizes, walks, turns = [], list[Walk](), rounds(2, 4)
    for number in range(1, rounds(11, 16)):
        site = scene.site("b", number, m1={"question": f"Edition {number}?"}, m4=None)
        (Scene.publish if number % 2 else publish_without_build)(scene, site)
        check_known(scene.objects())
        sizes.append(len(scene.objects()))
        walks.append(scene.reader.begin("all/popular", 2))
        scene.pass_time(LIFETIME_S / turns - 60)  # not to the second a lifetime: chance would decide what is deleted
        if len(walks) >= turns:  # less than the lifetime of a cursor
            scene.reader.finish(walks.pop(0))
    assert max(sizes[2 * turns + 4 :]) <= max(sizes[2 * turns + 2 : 2 * turns + 4]), sizes
    scene.publish(site)
    check_whole(scene.objects(), site)


def has_everything(scene: Scene, layout: str) -> None:
    """Let machines publish in this layout: every kind of object in the one, only lists in the other."""
    scene.layouts = dict.fromkeys("ab", layout)
    if layout == layouts.COMPACT:
        scene.publish_everything()


def publish_without_build(scene: Scene, site: SiteContent) -> None:
    """Publish up to `build.json`: first pages lead to the site already."""
    refuse(scene, "PutObject", lambda: scene.publish(site), keys.BUILD)


def refuse(scene: Scene, operation: str, publish: Callable[[], object], key: str = f"{API_VERSION}/") -> None:
    """Let a publish end at its first such request for a published object: the store refuses it."""
    scene.server.before = lambda request: (
        DENIED if request.operation == operation and key in (request.key or request.body.decode()) else None
    )
    with pytest.raises(StoreError):
        publish()
    scene.server.before = None


# ── lost responses ────────────────────────────────────────────────────────────────────────────────────────────────

LOST = (APPLIED_BUT_FAILED, APPLIED_BUT_DROPPED, CUT_SHORT, DROPPED, SLOW_DOWN, CONFLICT)


@pytest.mark.campaign(short=1)
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("lost", LOST)
def test_commits_with_lost_responses_are_neither_lost_nor_repeated(scene: Scene, lost: Fault) -> None:
    for number in (1, 2, 3):
        scene.reset({})
        old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "New?"}, m3=None)
        scene.publish(old)
        sequence = sequence_of(scene)
        spoilt = {number, number + 1} if number == 2 else {number}

        def fault(puts: int, is_put: bool, spoilt: set[int] = spoilt) -> Fault | None:  # noqa: FBT001 - as asked
            return lost if is_put and puts in spoilt else None

        count_records(scene, fault)
        scene.publish(new)
        scene.server.before = None
        check_whole(scene.objects(), new)
        check_hidden(scene.objects(), 3)
        assert sequence_of(scene) == sequence + 3, "a record was put twice"


def count_records(scene: Scene, fault: Callable[[int, bool], Fault | None]) -> None:
    """Have each request meet a fault by the number of puts of the record so far, and whether it is one."""
    puts = 0

    @prompt
    def before(request: Request) -> Fault | None:
        nonlocal puts
        is_put = label(request) == "Put record"
        puts += is_put
        return fault(puts, is_put)

    scene.server.before = before


def sequence_of(scene: Scene) -> int:
    published = record_of(scene.objects())
    return published.sequence if published else 0


@pytest.mark.campaign(short=1)
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_store_that_falls_silent_at_the_commit_leaves_the_outcome_to_the_next_run(scene: Scene, nth: int) -> None:
    scene.publish_everything()
    old = scene.site("a", 0)
    scene.publish(old)
    new = scene.site("b", 1, **{f"m{number}": {"question": f"Question {number}, edited?"} for number in (1, 3, 7)})

    def fault(puts: int, is_put: bool) -> Fault | None:  # noqa: FBT001 - as asked
        if puts < nth:
            return None
        return APPLIED_BUT_DROPPED if nth == puts == 2 and is_put else DROPPED

    count_records(scene, fault)
    with pytest.raises(OutcomeUnknownError):
        scene.publish(new)
    scene.server.before = None
    check_known(scene.objects())
    check_lists(scene, old.state, new.state)
    scene.pass_time(LEASE_S + 2)
    scene.publish(new)
    check_whole(scene.objects(), new)


@pytest.mark.campaign(short=1)
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", ["slow_down", "dropped", "applied_but_failed", "applied_but_dropped", "cut_short"])
def test_when_three_of_ten_requests_fail_everything_is_published(scene: Scene, fault: str) -> None:
    scene.publish_everything()
    site = scene.site("a", 0)
    scene.server.behaviour.shares = {fault: 0.3}
    scene.publish(site)
    check_whole(scene.objects(), site)
    new = scene.site("b", 1, m1={"question": "New?"}, m3=None)
    scene.publish(new)
    scene.server.behaviour.shares = {}
    check_whole(scene.objects(), new)
    check_hidden(scene.objects(), 3)
    failed = [entry for entry in scene.server.log if entry.status in (None, 500, 503)]
    assert len(failed) > 30


# ── leases ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_takedown_that_prepares_for_longer_than_its_lease_succeeds(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.publish(scene.site("a", 0))  # without a dump, all details are read
    config = scene.config("elsewhere")
    blocked = BlockedList().decided([market_id(7)], is_blocked=True, now=NOW)
    messages: list[str] = []
    passed = 0.0
    prepared: list[float] = []

    def wait(request: Request) -> None:
        nonlocal passed
        if request.operation == "GetObject" and passed < 10 * LEASE_S:
            passed += 0.1 * LEASE_S
            scene.pass_time(0.1 * LEASE_S)
        elif request.operation == "PutObject" and "v1/" in request.key:
            prepared.append(passed)

    # One request at a time: side by side, several reads would take the time of one, and pass that of several here.
    store, measured = DiesAfter(scene.store(config), 10_000), time.clock_gettime
    scene.server.before = wait
    monkeypatch.setattr(time, "clock_gettime", lambda clock: measured(clock) + passed)
    takedown.from_store(Target.of(cast("Any", store), config), blocked, blocked.ids(), SILENT, messages.append)
    assert prepared[0] > LEASE_S
    assert messages == []
    check_hidden(scene.objects(), 7)
