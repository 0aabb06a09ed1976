"""A large record: its root is replaced, its state and intent never are; few requests, and nothing is left behind."""

import json
import zlib
from typing import Any, Final

import pytest

from generator.api import keys
from generator.api.forms import instant
from generator.errors import StoreError
from generator.publish import blocklist as holds
from generator.publish import record, states, withdrawal
from generator.publish.lease import Lease
from generator.stores.store import If
from generator.tree.blocklist import KEY, BlockedList
from generator.tree.files import FORMER_STATES, LAST_STATE, STATES
from generator.tree.folder import locked
from tests.publish.faults.scene import LEASE_S, Scene, check_hidden, check_lists, check_whole, record_of, take_down
from tests.support.sites.rows import market_id
from tests.support.stores.records import named_states, split, state_keys
from tests.support.stores.s3.behaviour import DENIED
from tests.support.stores.s3.wire import Request

#: What a killed publisher put before any root named it, on a site whose record has been replaced more often.
ORPHAN: Final = f"{STATES}1-{'a' * 24}"


def bodies(scene: Scene) -> dict[str, bytes]:
    return {key: found.body for key, found in scene.objects().items()}


def root_of(scene: Scene) -> record.Published:
    return record.decoded(scene.objects()[record.KEY].body)


def make_former(scene: Scene) -> dict[str, Any]:
    """Have a former program's root in place of the record, whose parts were shards."""
    root = json.loads(scene.objects()[record.KEY].body)
    built = {name: value for name, value in root["built"].items() if name not in ("state", "retirements")}
    former = {name: value for name, value in root.items() if name not in ("previous", "intent", "stale")}
    former |= {"built": {**built, "shardNames": ["a" * 18]}, "retirements": {}, "staleShards": ["x"]}
    scene.store(scene.config("a")).put(record.KEY, json.dumps(former).encode(), If.ALWAYS)
    return former


def is_put_of(request: Request, part: str) -> bool:
    """Whether it puts an object with that in its key."""
    return request.operation == "PutObject" and part in f"/{request.key}"


def test_the_root_is_small_and_says_what_monitors_and_guards_ask(scene: Scene) -> None:
    with split():
        site = scene.site("a", 0)
        scene.publish(site)
        built = root_of(scene).built
    assert (built.as_of, built.market_count) == (site.manifest.as_of, len(site.manifest.markets))
    assert not built.is_first
    assert built.settings == site.manifest.settings
    assert built.markets == {}
    assert [*built.objects] == ["v1/build.json"]


def test_a_small_record_becomes_large_and_small_again_when_the_size_demands_it(scene: Scene) -> None:
    old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "New?"})
    scene.publish(old)
    assert not state_keys(scene.objects())
    with split():
        scene.publish(new)
        check_whole(scene.objects(), new)
        assert state_keys(scene.objects())
    scene.publish(old)
    check_whole(scene.objects(), old)
    scene.pass_time(3_700)
    scene.publish(new)
    assert not state_keys(scene.objects())


def test_the_two_newest_states_stay_and_older_ones_for_an_hour(scene: Scene) -> None:
    def publish(number: int) -> str:
        scene.publish(scene.site("a", number, m1={"question": f"Edition {number}?"}))
        return states.key(root_of(scene).built.state)

    with split():
        found = [publish(number) for number in range(3)]
        assert state_keys(scene.objects()) >= {*found}
        scene.pass_time(3_700)
        found.append(publish(3))
        assert {*found} & state_keys(scene.objects()) == {*found[1:]}, "the second has not been unnamed for an hour"
        assert state_keys(scene.objects()) == named_states(bodies(scene))


def test_a_withdrawal_leaves_no_trace_in_any_state(scene: Scene) -> None:
    with split():
        scene.publish(scene.site("a", 0))
        scene.publish(scene.site("a", 1, m1={"question": "New?"}))
        store = scene.store(scene.config("a"))
        for key in (ORPHAN, f"{FORMER_STATES}{'a' * 18}"):
            store.put(key, market_id(6).encode(), If.ALWAYS)
        scene.publish(scene.site("b", 2, m6=None))
        root = root_of(scene)
        assert not [key for key in scene.objects() if key.startswith(FORMER_STATES)]
        left = {states.key(root.built.state), *map(states.key, root.stale)}
        assert state_keys(scene.objects()) == left
        digits = bytes.fromhex(market_id(6).replace("-", ""))
        for key in left:
            stream = zlib.decompressobj()
            assert market_id(6).encode() not in stream.decompress(scene.objects()[key].body)
            assert digits not in stream.unused_data
    assert root.previous == ""
    check_hidden(scene.objects(), 6)


def test_a_withdrawal_leaves_no_old_versions_of_states(scene: Scene) -> None:
    scene.server.bucket.versioning = "Enabled"
    with split():
        scene.publish(scene.site("a", 0))
    scene.publish(scene.site("b", 1, m6=None))
    versions, _ = scene.server.bucket.list_versions("", ("", ""), 10_000)
    assert not [version.key for version in versions if f"/{STATES}" in f"/{version.key}"]


def test_what_a_killed_publisher_put_before_its_root_goes_with_the_next_change_or_when_verifying(scene: Scene) -> None:
    with split():
        scene.publish(scene.site("a", 0))
        scene.store(scene.config("a")).put(ORPHAN, b"late", If.ALWAYS)
        new = scene.site("a", 1, m1={"question": "New?"})
        scene.publish(new)
        assert ORPHAN not in scene.objects()
        assert state_keys(scene.objects()) == named_states(bodies(scene))
        scene.store(new.config).put(ORPHAN, b"late", If.ALWAYS)
        scene.publish(new, is_verifying=True)
        assert ORPHAN not in scene.objects(), "verifying deletes it although nothing changed"


def test_a_state_that_goes_while_it_is_read_means_that_the_root_was_replaced(scene: Scene) -> None:
    with split():
        old = scene.site("a", 0)
        scene.publish(old)
        new, is_done = scene.site("b", 1, m6=None), list[bool]()

        def publishes(request: Request) -> None:
            if request.operation == "GetObject" and f"/{STATES}" in request.key and not is_done:
                is_done.append(True)
                scene.publish(new)  # a withdrawal deletes the state before

        scene.server.before = publishes
        found = Lease(scene.store(old.config)).read()
        assert found
        assert found.built.markets == new.manifest.markets


def test_the_markets_of_a_first_publish_that_was_killed_are_known(scene: Scene) -> None:
    with split():
        site = scene.site("a", 0)
        scene.server.before = lambda request: DENIED if is_put_of(request, "v1/build.json") else None
        with pytest.raises(StoreError):
            scene.publish(site)
        published = record_of(scene.objects())
        assert published
        assert not published.built.complete
        assert published.built.markets == site.manifest.markets


def test_a_takedown_without_a_readable_state_deletes_whatever_is_not_provably_without_the_market(scene: Scene) -> None:
    scene.searches, scene.layouts = True, dict.fromkeys(("a", "b", "elsewhere"), "chunks")
    with split():
        scene.publish(scene.site("a", 0))
        scene.publish(scene.site("a", 1, m1={"question": "New?"}))
        before, root, store = bodies(scene), root_of(scene), scene.store(scene.config("a"))
        store.delete([states.key(root.built.state), states.key(root.previous)])
        with pytest.raises(StoreError, match=r"missing; .* writes anew; until then, \d+ objects are "):
            take_down(scene, 6)
        left = bodies(scene)
        check_hidden(scene.objects(), 6)
        assert not [key for key, body in left.items() if key.startswith("v1/") and market_id(6).encode() in body]
        details = {keys.detail(market_id(number)) for number in range(1, 10) if number != 6}
        assert details < left.keys(), "these are provably without it"
        assert before.keys() - left.keys() > {keys.detail(market_id(6))}
        without = scene.site("b", 1, m6=None)
        scene.publish(without, is_verifying=True)
        check_whole(scene.objects(), without)


def test_without_a_readable_state_nothing_is_deleted_that_a_new_record_names(scene: Scene) -> None:
    """Another run makes the record anew while a takedown reads what may show the market."""
    scene.layouts = dict.fromkeys(("a", "b", "elsewhere"), "chunks")
    with split():
        scene.publish(scene.site("a", 0))
        scene.store(scene.config("a")).delete([states.key(root_of(scene).built.state)])
        new, reads = scene.site("b", 1, m1={"question": "New?"}), list[str]()

        def made_anew(request: Request) -> None:
            if request.operation == "GetObject" and "/lists/" in request.key and not reads:
                reads.append(request.key)
                scene.publish(new, is_verifying=True)

        scene.server.before = made_anew
        take_down(scene, 6)
        scene.server.before = None
        assert reads
        check_hidden(scene.objects(), 6)
        check_lists(scene, scene.site("c", 1, m1={"question": "New?"}, m6=None).state)


def test_a_former_program_s_large_record_is_neither_held_nor_emptied_by_a_takedown(scene: Scene) -> None:
    with split():
        scene.publish(scene.site("a", 0))
        root = make_former(scene)
        before = bodies(scene)
        with pytest.raises(StoreError, match="written by an earlier version; it is part of the record"):
            holds.set_hold(scene.store(scene.config("a")), "Wrong?", "me@here", lambda _: None)
        assert bodies(scene) == before
        with pytest.raises(StoreError, match=r"written by an earlier version; .*; the details of blocked market"):
            take_down(scene, 6)
    gone = before.keys() - scene.objects().keys()
    assert gone == {keys.detail(market_id(6))}
    assert json.loads(scene.objects()[record.KEY].body) == root


def test_a_folder_keeps_no_copy_of_what_was_taken_down(scene: Scene) -> None:
    with split():
        site = scene.site("a", 0)
        scene.publish(site)
        assert (site.folder / LAST_STATE).exists()
        with locked(site.folder) as folder:
            withdrawal.from_folder(folder, {market_id(6)}, site.config.cursor.lifetime)
        assert not (site.folder / LAST_STATE).exists()


def test_whoever_takes_over_does_not_put_a_detail_again_that_a_takedown_deleted(scene: Scene) -> None:
    """It finds the detail absent that the record has, and reads the blocked list before it goes on."""
    scene.publish(scene.site("a", 0))
    new, detail = scene.site("a", 1, m1={"question": "New?"}), keys.detail(market_id(1))
    scene.server.before = lambda request: DENIED if is_put_of(request, "v1/build.json") else None
    with pytest.raises(StoreError):
        scene.publish(new)
    scene.pass_time(LEASE_S + 2)
    store, puts = scene.store(scene.config("elsewhere")), list[str]()

    def taken_down(request: Request) -> None:
        if is_put_of(request, detail):
            puts.append(request.key)
        if request.operation == "HeadObject" and request.key.endswith(detail):
            scene.server.before = None
            blocked = BlockedList().decided([market_id(1)], is_blocked=True, now=instant(store.now()))
            store.put(KEY, blocked.encoded(), If.ALWAYS)
            store.delete([detail])
            scene.server.before = taken_down

    scene.server.before = taken_down
    scene.publish(new)
    assert puts == []
    check_hidden(scene.objects(), 1)
