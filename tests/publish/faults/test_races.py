"""Concurrent publishers, frozen publishers and lost responses: none damages another's work."""
# ruff: noqa: S311 - nothing here is secret, and every run must race at the same places

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.errors import BusyError, OutcomeUnknownError, StoreError
from generator.progress import SILENT
from generator.publish import takedown
from generator.publish.lease import Lease, Target
from generator.stores.s3 import Bucket, RequestOptions
from generator.tree import layouts
from generator.tree.blocklist import BlockedList
from generator.tree.generations import object_keys
from tests.publish.faults.rounds import AT_ONCE, code_of, run_all
from tests.publish.faults.scene import (
    LEASE_S,
    LIFETIME_S,
    ON_BOTH,
    PREFIX,
    Scene,
    Walkers,
    check_hidden,
    check_known,
    check_lists,
    check_whole,
    publish_site,
    record_of,
    take_down,
)
from tests.publish.faults.sites import SiteContent, secret
from tests.publish.faults.strikes import ANY, DiedError, DiesAfter, Strike, Victims, Watch, label
from tests.support.campaigns import every_pair, rounds, sample
from tests.support.faults import GoneError, Walk, expected_keys
from tests.support.sites.builds import NOW
from tests.support.sites.rows import market_id
from tests.support.stores.s3.behaviour import (
    APPLIED_BUT_DROPPED,
    APPLIED_BUT_FAILED,
    CONFLICT,
    CUT_SHORT,
    DROPPED,
    SLOW_DOWN,
    Fault,
)
from tests.support.stores.s3.server import BUCKET, prompt
from tests.support.stores.s3.wire import Answer, Request
from tests.support.waiting import PATIENCE_S

# ── concurrent ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
@ON_BOTH
def test_of_two_publishers_one_wins_every_time(scene: Scene) -> None:
    scene.publish_everything()
    scene.layouts = dict.fromkeys("abc", layouts.COMPACT)
    old = scene.site("a", 0)
    new = [scene.site("b", 1, m1={"question": "B?"}, m4={}), scene.site("c", 2, m1={"question": "C?"}, m3=None)]
    scene.publish(old)
    before = scene.objects()
    outcomes: list[tuple[int, int]] = []
    with Walkers(scene, old.state, *(site.state for site in new)) as walkers:
        walkers.withdraw(is_withdrawing=True)
        for number in range(rounds(4, 30)):
            if number >= 8 and fewest_wins(outcomes) > 0:
                break
            scene.reset(before)
            codes = race(scene, new, random.Random(number), is_close=number % 2 == 0)
            outcomes.append(codes)
            winner = new[codes.index(0)]
            if codes == (0, 0):
                assert record_of(scene.objects())
                winner = next(site for site in new if site.manifest.lists() == lists_now(scene))
            check_whole(scene.objects(), winner)
            check_lists(scene, winner.state)
            loser = new[1 - new.index(winner)]
            scene.publish(loser)
            check_whole(scene.objects(), loser)
        walkers.await_exact(len(outcomes))
    assert {*outcomes} <= {(0, 4), (4, 0), (0, 0)}
    assert fewest_wins(outcomes) >= rounds(0, 1)
    assert (0, 0) not in outcomes[::2], "both read the same record, and both won"


def fewest_wins(outcomes: list[tuple[int, int]]) -> int:
    """Of the close races, how many were won by the publisher that won fewer."""
    return min(outcomes[::2].count((0, 4)), outcomes[::2].count((4, 0)))


def lists_now(scene: Scene) -> object:
    published = record_of(scene.objects())
    assert published
    return published.built.lists()


def race(scene: Scene, sites: list[SiteContent], rng: random.Random, *, is_close: bool) -> tuple[int, int]:
    """Publish both; in a close race neither puts a record before both have read it and made their plans.

    Both puts have come then, and whose takes effect first is drawn: the quicker thread is nearly always the same.
    """
    barrier, is_first_done = threading.Barrier(2), threading.Event()
    seen: list[Request] = []
    delays = (rng.uniform(0, 0.02), rng.uniform(0, 0.02))
    second = rng.randrange(2)

    def before(request: Request) -> Fault | None:
        if is_close and label(request) == "Put record" and len(seen) < 2:
            seen.append(request)
            if barrier.wait(timeout=PATIENCE_S) == second:
                assert is_first_done.wait(PATIENCE_S)
        return None

    def after(request: Request, _: Answer) -> None:
        if label(request) == "Put record":
            is_first_done.set()

    def publish(number: int) -> int:
        time.sleep(0 if is_close else delays[number])
        return code_of(lambda: scene.publish(sites[number]))

    scene.server.before, scene.server.after = before, after
    with ThreadPoolExecutor(2) as pool:
        codes = [*pool.map(publish, range(2))]
    scene.server.before = scene.server.after = None
    return codes[0], codes[1]


# ── frozen ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
@ON_BOTH
def test_a_publisher_frozen_past_its_lease_does_no_harm(scene: Scene, *, is_split: bool) -> None:
    scene.publish_everything()
    old = scene.site("a", 0)
    slow = scene.site("b", 1, m1={"question": "Slow?"}, m4={"status": "closed"}, m9={"question": "Slow?"})
    fast = scene.site("c", 2, **{f"m{number}": {"question": "Fast?"} for number in (1, 3, 4, 9)})
    scene.publish(old)
    before = scene.objects()
    start, total = span_of_work(scene, slow)
    freezes = rounds(2, 10)
    numbers = range(is_split, freezes, 2)  # half of the moments with each form of the record
    with Walkers(scene, old.state, slow.state, fast.state) as walkers:
        for number in numbers:
            scene.reset(before)
            strike = Strike(ANY, start + 1 + number * (total - start) // freezes, after=number % 3 == 0)
            assert freeze(scene, slow, strike, lambda: scene.publish(fast)) == 4, strike
            check_whole(scene.objects(), fast)
            check_lists(scene, fast.state)
        walkers.await_exact(len(numbers))


def span_of_work(scene: Scene, site: SiteContent) -> tuple[int, int]:
    """The number of the request that takes the lease, and the number of requests altogether."""
    done = len(scene.server.log)
    scene.publish(site)
    entries = scene.server.log[done:]
    start = next(
        number for number, entry in enumerate(entries, 1) if entry.key.endswith("manifest.json") and entry.condition
    )
    return start, len(entries)


def freeze(
    scene: Scene,
    site: SiteContent,
    strike: Strike,
    meanwhile: Callable[[], object],
    publish: Callable[[Scene, SiteContent], object] = Scene.publish,
) -> int:
    """Publish, holding one request until the lease has expired and `meanwhile` is done; returns the exit code."""
    is_frozen, may_go_on = threading.Event(), threading.Event()

    def act() -> None:
        is_frozen.set()
        assert may_go_on.wait(timeout=PATIENCE_S)

    watch = Watch(strike, act)
    with watch.over(scene.server), ThreadPoolExecutor(1) as pool:
        code = pool.submit(code_of, lambda: publish(scene, site))
        try:
            assert is_frozen.wait(timeout=PATIENCE_S), f"{strike} never came"
            scene.pass_time(LEASE_S + 2)
            meanwhile()
        finally:
            may_go_on.set()
        return code.result()


@pytest.mark.campaign(short=0)
def test_a_process_that_was_stopped_and_continues_does_no_harm(scene: Scene) -> None:
    scene.publish_everything()
    old, slow = scene.site("a", 0), scene.site("b", 1, m1={"question": "Slow?"}, m4={"status": "closed"})
    fast = scene.site("c", 2, m1={"question": "Fast?"}, m3={"question": "Fast?"}, m4={"question": "Fast?"})
    scene.publish(old)
    before = scene.objects()
    start, total = span_of_work(scene, slow)
    stops = rounds(2, 3)
    with closing(Victims(scene)) as victims:
        for number in range(stops):
            scene.reset(before)
            strike = Strike(ANY, start + 1 + number * (total - start) // stops)
            with victims.stopped(scene.arguments("publish", "b"), strike) as ended:
                scene.pass_time(LEASE_S + 2)
                scene.publish(fast)
            assert ended() == 4
            check_whole(scene.objects(), fast)
            check_lists(scene, fast.state)


@pytest.mark.campaign(short=1)
@ON_BOTH
def test_a_publisher_whose_lease_ends_while_it_deletes_one_by_one_stops(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one publishes again what it was deleting."""
    old, new = two_states(scene)
    scene.publish(new)
    passed, measured = [0.0], time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: measured(clock) + passed[0])
    store = Bucket(
        BUCKET, PREFIX, endpoint_url=scene.server.url, client="obstore",
        options=RequestOptions(immutable=keys.UNPURGED_IMMUTABLE, deletions=1),
    )  # fmt: skip

    def purge(scene: Scene, site: SiteContent) -> None:
        watch = scene.server.before
        assert watch
        scene.server.before = lambda request: (
            Fault(501, "NotImplemented") if request.operation == "DeleteObjects" else watch(request)
        )
        publish_site(site, store, purges_retired=True)

    def meanwhile() -> None:
        passed[0] += LEASE_S
        scene.publish(old)

    assert freeze(scene, new, Strike("Delete page", 2, after=True), meanwhile, purge) == 4
    check_whole(scene.objects(), old)


def two_states(scene: Scene) -> tuple[SiteContent, SiteContent]:
    """A site with all kinds of objects that is published, and one that differs in every list."""
    scene.publish_everything()
    old = scene.site("a", 0)
    scene.publish(old)
    changes = {f"m{number}": {"question": f"Question {number}, edited?"} for number in (1, 3, 7)}
    return old, scene.site("b", 1, **changes)


@pytest.mark.campaign(short=1)
@ON_BOTH
def test_every_list_shows_one_state_after_each_first_page_that_moves(scene: Scene) -> None:
    old, new = two_states(scene)
    broken: list[Exception] = []

    def look(request: Request, _: Answer) -> None:
        if label(request) == "Put first":
            try:
                check_lists(scene, old.state, new.state)
            except (AssertionError, GoneError) as error:
                broken.append(error)

    scene.server.after = look
    scene.publish(new)
    scene.server.after = None
    assert not broken


def test_one_that_died_while_the_stores_clock_was_years_ahead_keeps_nobody_out(scene: Scene) -> None:
    old, new = two_states(scene)
    scene.pass_time(3 * 365 * 86_400)
    with pytest.raises(DiedError):
        publish_site(new, DiesAfter(scene.store(new.config), 8))
    scene.pass_time(-3 * 365 * 86_400)
    scene.publish(old)
    check_whole(scene.objects(), old)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("request_", ["Put detail", "Put page"])
def test_a_put_that_arrives_after_a_takeover_is_undone_by_the_next_run(scene: Scene, request_: str) -> None:
    """Equal content has an equal digest as its ETag, so the condition of a late put holds."""
    old, slow = scene.site("a", 0), scene.site("b", 1, m1={"question": "Slow?"})
    fast = scene.site("c", 2, m4={"question": "Fast?"}, m6=None)
    scene.publish(old)
    assert freeze(scene, slow, Strike(request_, 1), lambda: scene.publish(fast)) == 4
    assert any(b"Slow?" in found.body for found in scene.objects().values())
    scene.publish(fast)
    check_whole(scene.objects(), fast)
    check_hidden(scene.objects(), 6)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("layout", layouts.LAYOUTS)
@pytest.mark.parametrize("request_", ["Put detail", "Put page", "Put first"])
def test_whatever_of_a_new_market_arrives_after_its_takedown_is_gone_after_the_next_run(
    scene: Scene, layout: str, request_: str
) -> None:
    scene.layouts = dict.fromkeys("abc", layout)
    old, slow = scene.site("a", 0), scene.site("b", 1, m10={"trader_count": 99})
    scene.publish(old)
    freeze(scene, slow, Strike(request_, 1), lambda: take_down(scene, 10))
    report = take_down(scene, 10)
    check_known(scene.objects())
    check_hidden(scene.objects(), 10)
    check_lists(scene, old.state)
    scene.publish(old)
    check_whole(scene.objects(), old)
    assert report.uploaded + report.deleted > 0, "this tests nothing if nothing arrived late"


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("part", ["bucket", "root", "head"])
def test_whatever_of_an_index_arrives_after_a_takedown_is_gone_after_the_next_run(scene: Scene, part: str) -> None:
    """The index has words of a new market that nothing else has."""
    scene.searches, scene.layouts = True, dict.fromkeys(("a", "b", "elsewhere"), layouts.COMPACT)
    old, slow = scene.site("a", 0), scene.site("b", 1, m10={"trader_count": 99})
    scene.publish(old)
    made = slow.manifest.current.get(keys.SEARCH)
    assert made
    parts = [keys.chunk(keys.SEARCH, name) for name in made.chunks]
    buckets = [key for key in parts if secret(10)[3:].encode() in slow.files[key]]
    root, head = keys.index(keys.SEARCH, made.generation), keys.head(keys.SEARCH)
    late = {"bucket": buckets[0], "root": root, "head": head}[part]
    freeze(scene, slow, Strike(late, 1), lambda: take_down(scene, 10))
    assert late in scene.objects(), "this tests nothing if nothing arrived late"
    assert part != "bucket" or scene.objects()[late].body == slow.files[late]
    take_down(scene, 10)
    check_known(scene.objects())
    check_hidden(scene.objects(), 10)
    check_lists(scene, old.state)


def test_a_delete_that_arrives_after_its_chunk_was_published_again_is_undone_by_the_next_run(scene: Scene) -> None:
    """Equal content has an equal key, so what was due is live again."""
    scene.layouts = dict.fromkeys("abc", layouts.COMPACT)
    old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "New?"}, m9={"question": "New?"})
    scene.publish(old)
    scene.publish(new)
    scene.pass_time(LIFETIME_S + 60)

    assert freeze(scene, new, Strike("DeleteObjects bucket", 2), lambda: scene.publish(old)) == 4
    missing = expected_keys(old.manifest) - scene.objects().keys()
    assert missing, "this tests nothing if nothing live was deleted"
    scene.publish(old)
    check_whole(scene.objects(), old)
    check_lists(scene, old.state)


def test_what_publishers_that_were_cut_short_may_still_put_is_forgotten_after_an_hour(scene: Scene) -> None:
    old, slow = scene.site("a", 0), scene.site("b", 1, m1={"question": "Slow?"})
    scene.publish(old)
    freeze(scene, slow, Strike("Put detail", 1), lambda: scene.publish(old))
    for seconds, is_remembered in ((0, True), (3_500, True), (200, True), (1, False)):
        scene.pass_time(seconds)
        published = record_of(scene.objects())
        assert published
        assert bool(published.doubted_until) == is_remembered
        scene.publish(old)
    done = len(scene.server.log)
    scene.publish(old)
    assert len(scene.server.log) - done == 2


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
    check_forgotten(scene, site)


def published_keys(scene: Scene) -> set[str]:
    return {key for key in scene.objects() if key.startswith(f"{API_VERSION}/")}


def check_forgotten(scene: Scene, site: SiteContent) -> None:
    """A lifetime later, nothing but the site is left."""
    scene.pass_time(LIFETIME_S + 60)
    scene.publish(site)
    assert published_keys(scene) == expected_keys(site.published().manifest.model_copy(update={"retired": ()}))


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
def test_heads_of_a_site_whose_runs_are_cut_short_for_longer_than_a_lifetime_lead_somewhere(
    scene: Scene, layout: str
) -> None:
    """What an open intent names is kept, and its age counts from the next commit."""
    has_everything(scene, layout)
    scene.publish(scene.site("a", 0))
    for number in range(1, rounds(3, 5)):
        site = scene.site("b", number, m1={"question": f"Edition {number}?"}, m4=None)
        publish_without_build(scene, site)
        check_known(scene.objects())
        scene.pass_time(LIFETIME_S + 3_700)
        check_lists(scene, site.state)
        other = scene.site("a", number, m1={"question": f"Other {number}?"})
        with pytest.raises(DiedError):
            publish_site(other, DiesAfter(scene.store(other.config), 6))
        check_lists(scene, site.state)
        scene.pass_time(LEASE_S + 2)
    walk = scene.reader.begin("all/popular", 2)
    scene.publish(other)
    scene.pass_time(LIFETIME_S - 120)
    scene.publish(scene.site("a", number + 1, m1={"question": "Last?"}))
    scene.reader.finish(walk)


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
    denied = Fault(403, "AccessDenied")
    scene.server.before = lambda request: (
        denied if request.operation == operation and key in (request.key or request.body.decode()) else None
    )
    with pytest.raises(StoreError):
        publish()
    scene.server.before = None


# ── lost responses ────────────────────────────────────────────────────────────────────────────────────────────────

LOST = (APPLIED_BUT_FAILED, APPLIED_BUT_DROPPED, CUT_SHORT, DROPPED, SLOW_DOWN, CONFLICT)


@pytest.mark.campaign(short=0)
@pytest.mark.usefixtures("impatient")
def test_commits_with_lost_responses_are_neither_lost_nor_repeated(tmp_path: Path) -> None:
    codes: list[int] = []

    def play(scene: Scene, number: int) -> None:
        lost, nth, has_all = cases[number]
        scene.searches = scene.has_downloads = has_all
        old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "New?"}, m3=None)
        scene.publish(old)
        sequence = sequence_of(scene)
        spoil_record(scene, lost, {nth, nth + 1} if number % 5 == 0 else {nth})
        codes.append(code_of(lambda: scene.publish(new)))
        scene.server.before = None
        check_whole(scene.objects(), new)
        check_hidden(scene.objects(), 3)
        assert sequence_of(scene) == sequence + 3, "a record was put twice"
        scene.reset({})

    # Each fault at each put, some with lists only and some with all kinds of objects.
    cases = sample(every_pair(LOST, (1, 2, 3), (True, False)), len(LOST))
    number = len(cases)
    assert run_all(tmp_path, range(number), play) == number >= rounds(1, 3) * len(LOST)
    assert codes == [0] * number


def spoil_record(scene: Scene, lost: Fault, numbers: set[int]) -> None:
    """Lose the responses to these puts of the record, by number."""
    puts: list[Request] = []

    @prompt
    def before(request: Request) -> Fault | None:
        if label(request) != "Put record":
            return None
        puts.append(request)
        return lost if len(puts) in numbers else None

    scene.server.before = before


def sequence_of(scene: Scene) -> int:
    published = record_of(scene.objects())
    return published.sequence if published else 0


@pytest.mark.campaign(short=0)
def test_a_store_that_falls_silent_at_the_commit_leaves_the_outcome_to_the_next_run(tmp_path: Path) -> None:
    codes: list[int] = []

    def play(scene: Scene, number: int) -> None:
        scene.publish_everything()
        old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "New?"})
        scene.publish(old)
        silence(scene, 1 + number // 2, is_applied=number % 2 == 0)
        codes.append(code_of(lambda: scene.publish(new)))
        scene.server.before = None
        check_known(scene.objects())
        check_lists(scene, old.state, new.state)
        scene.pass_time(LEASE_S + 2)
        scene.publish(new)
        check_whole(scene.objects(), new)

    number = rounds(1, AT_ONCE)
    assert run_all(tmp_path, range(number), play) == number
    assert codes == [OutcomeUnknownError.exit_code] * number


def silence(scene: Scene, nth: int, *, is_applied: bool) -> None:
    """From the nth put of the record on, no request is answered; that put may have been applied."""
    puts: list[Request] = []

    @prompt
    def before(request: Request) -> Fault | None:
        if label(request) == "Put record":
            puts.append(request)
        if len(puts) < nth:
            return None
        return APPLIED_BUT_DROPPED if is_applied and len(puts) == nth and request is puts[-1] else DROPPED

    scene.server.before = before


@pytest.mark.campaign(short=1)
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", ["slow_down", "dropped", "applied_but_failed", "applied_but_dropped", "cut_short"])
def test_when_three_of_ten_requests_fail_everything_is_published(scene: Scene, fault: str) -> None:
    scene.publish_everything()
    site = scene.site("a", 0)
    scene.server.behaviour.change({"shares": {fault: 0.3}})
    scene.publish(site)
    check_whole(scene.objects(), site)
    new = scene.site("b", 1, m1={"question": "New?"}, m3=None)
    scene.publish(new)
    scene.server.behaviour.change({"shares": {}})
    check_whole(scene.objects(), new)
    check_hidden(scene.objects(), 3)
    failed = [entry for entry in scene.server.log if entry.status in (None, 500, 503)]
    assert len(failed) > 30


# ── leases ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_reading_the_record_does_not_extend_a_lease(scene: Scene) -> None:
    site = scene.site("a", 0)
    scene.publish(site)
    lease = Lease(scene.store(site.config), timedelta(seconds=1))
    published = lease.read()
    assert published
    lease.take(published, ())
    time.sleep(0.5)
    with suppress(BusyError):  # sleep may take longer than requested
        lease.confirm_held()
    time.sleep(0.4)
    with pytest.raises(BusyError, match="could not renew its lease"):
        lease.require_valid()


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
