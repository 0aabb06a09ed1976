"""The shards of a large record: only what changed is read and written, and what is replaced is deleted."""

import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from generator.api import keys
from generator.errors import StoreError
from generator.publish import record
from generator.publish.etags import updated
from generator.publish.lease import Lease
from generator.publish.record import Published
from generator.stores.store import If
from generator.tree import shards
from generator.tree.files import SHARDS
from generator.tree.manifest import Retired
from tests.publish.faults.scene import (
    LEASE_S,
    PREFIX,
    Scene,
    check_hidden,
    check_whole,
    publish_site,
    record_of,
    take_down,
)
from tests.publish.faults.sites import SiteContent
from tests.publish.faults.strikes import DiesAfter
from tests.support.sites.builds import manifest_of
from tests.support.sites.rows import market_id
from tests.support.stores.places import MemoryStore
from tests.support.stores.records import named_shards, shard_keys, sharded
from tests.support.stores.s3.behaviour import Fault
from tests.support.stores.s3.wire import Request

if TYPE_CHECKING:
    from generator.tree.shards import Rows

DENIED: Final = Fault(403, "AccessDenied")


def requests_of_shards(scene: Scene, done: int) -> list[str]:
    """The requests for shards since so many requests."""
    return [entry.operation for entry in scene.server.log[done:] if f"/{SHARDS}" in f"/{entry.key}"]


def bodies(scene: Scene) -> dict[str, bytes]:
    return {key: found.body for key, found in scene.objects().items()}


def test_a_publish_reads_and_writes_only_the_shards_of_what_changed(scene: Scene) -> None:
    scene.layouts["a"] = "chunks"
    with sharded():
        scene.publish(scene.site("a", 0))
        new = scene.site("a", 1, m4={"question": "New?"})
        before, done = shard_keys(scene.objects()), len(scene.server.log)
        scene.publish(new)
        after = shard_keys(scene.objects())
        assert len(before) == 4, "one of four has no market; one more is of everything else"
        assert len(before - after) == 2
        assert len(after - before) == 2 + 1, "one more is of what was retired"
        assert sorted(requests_of_shards(scene, done)) == ["GetObject"] * 2 + ["PutObject"] * 3
        assert after == named_shards(bodies(scene))
        check_whole(scene.objects(), new)


def test_an_unchanged_publish_asks_for_no_shard(scene: Scene) -> None:
    with sharded():
        site = scene.site("a", 0)
        scene.publish(site)
        done = len(scene.server.log)
        scene.publish(site)
        assert len(scene.server.log) - done == 2


def test_a_folder_that_knows_nothing_reads_every_shard(scene: Scene) -> None:
    with sharded():
        old = scene.site("a", 0)
        scene.publish(old)
        lease = Lease(scene.store(old.config), old.config.publish.lease)
        assert lease.read() == record_of(scene.objects())


def test_a_whole_record_is_split_and_a_split_one_made_whole_when_the_size_demands_it(scene: Scene) -> None:
    old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "New?"})
    scene.publish(old)
    assert not shard_keys(scene.objects())
    with sharded():
        scene.publish(new)
        check_whole(scene.objects(), new)
        root = json.loads(scene.objects()[record.KEY].body)
        assert len(root["built"]["shardNames"]) == 5
        assert root["built"]["objects"] == root["built"]["markets"] == root["etags"] == {}
    scene.publish(old)
    check_whole(scene.objects(), old)
    assert not shard_keys(scene.objects())


def test_a_takedown_leaves_no_trace_in_any_shard(scene: Scene) -> None:
    with sharded():
        scene.publish(scene.site("a", 0))
        orphan = f"{SHARDS}{'a' * 18}"
        store = scene.store(scene.config("a"))
        store.put(orphan, market_id(6).encode(), If.ALWAYS)
        without = scene.site("b", 1, m6=None)
        scene.publish(without)
        assert not [key for key, body in bodies(scene).items() if market_id(6).encode() in body]
        assert orphan not in scene.objects()


def test_a_shard_that_is_missing_is_named_and_verification_writes_the_record_anew(scene: Scene) -> None:
    with sharded():
        old = scene.site("a", 0)
        scene.publish(old)
        named = sorted(named_shards(bodies(scene)))
        scene.store(old.config).delete(named)
        new = scene.site("b", 1, **{f"m{number}": {"question": "New?"} for number in range(1, 10)})
        with pytest.raises(StoreError, match="missing; it is part of the record, which `public-markets rebuild --ver"):
            scene.publish(new)
        scene.publish(new, is_verifying=True)
        check_whole(scene.objects(), new)


def test_a_shard_of_other_bytes_is_no_shard(scene: Scene) -> None:
    with sharded():
        old = scene.site("a", 0)
        scene.publish(old)
        for key in named_shards(bodies(scene)):
            scene.store(old.config).put(key, b'{"x":["d",null,null]}\n["e"]\n', If.ALWAYS)
        with pytest.raises(StoreError, match="altered"):
            scene.publish(scene.site("b", 1, m1={"question": "New?"}, m2={"question": "New?"}))


def test_a_shard_with_damaged_etags_is_named(scene: Scene) -> None:
    with sharded():
        old = scene.site("a", 0)
        scene.publish(old)
        for key in named_shards(bodies(scene)):
            rows = bodies(scene)[key].partition(b"\n")[0]
            scene.store(old.config).put(key, rows + b"\nnull\n", If.ALWAYS)
        with pytest.raises(StoreError, match="altered; it is part of the record"):
            scene.publish(scene.site("b", 1, m1={"question": "New?"}))


@pytest.mark.parametrize(
    ("markets", "before", "number"),
    [(999, 0, 0), (1_000, 0, 32), (90_910, 0, 4096), (90_910, 8192, 8192), (90_910, 1024, 4096), (499, 32, 0),
     (600, 32, 32), (1_700, 32, 64)],
)  # fmt: skip
def test_a_shard_has_a_few_dozen_markets(markets: int, before: int, number: int) -> None:
    assert shards.number(markets, before) == number


def test_the_shards_of_what_changed_count_as_puts() -> None:
    assert shards.changed(999, 50) == 0
    assert shards.changed(90_910, 50) == 51
    assert shards.changed(90_910, 90_910) == 4097


def test_a_takedown_that_makes_the_record_whole_again_leaves_no_old_versions_of_shards(scene: Scene) -> None:
    scene.server.bucket.versioning = "Enabled"
    with sharded():
        scene.publish(scene.site("a", 0))
    scene.publish(scene.site("b", 1, m6=None))
    versions, _ = scene.server.bucket.list_versions("", ("", ""), 10_000)
    assert not [version.key for version in versions if f"/{SHARDS}" in f"/{version.key}"]


def test_a_shard_that_a_killed_publisher_put_late_is_deleted_by_the_first_run_after_the_hour(scene: Scene) -> None:
    with sharded():
        site = scene.site("a", 0)
        scene.publish(site)
        store, orphan = scene.store(site.config), f"{SHARDS}{'a' * 18}"
        root = json.loads(scene.objects()[record.KEY].body)
        over = {"until": "2020-01-01T00:00:00Z", "touched": [], "generations": []}
        store.put(record.KEY, json.dumps({**root, "abandoned": [over]}).encode(), If.ALWAYS)
        store.put(orphan, b"late", If.ALWAYS)
        scene.publish(site)
        assert shard_keys(scene.objects()) == named_shards(bodies(scene))


class OneByOne(DiesAfter):
    """A store that gets one request at a time, each by itself."""

    at_once: Final = 1


def test_a_store_so_slow_that_putting_all_shards_outlasts_the_lease_is_published_to(scene: Scene) -> None:
    waited = [0.0]

    def wait(request: Request) -> None:
        if is_put_of(request, f"/{SHARDS}"):
            time.sleep(0.05)  # so that the thread which renews the lease sees the answer to the one before
            scene.pass_time(0.25 * LEASE_S)
            waited[0] += 0.25 * LEASE_S

    scene.server.before = wait
    measured = time.clock_gettime
    with sharded(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "clock_gettime", lambda clock: measured(clock) + waited[0])
        site = scene.site("a", 0)
        publish_site(site, cast("Any", OneByOne(scene.store(site.config), 10_000)))
        assert waited[0] > LEASE_S
        check_whole(scene.objects(), site)


def test_a_first_publish_puts_each_shard_once_and_announces_the_markets_in_a_few(scene: Scene) -> None:
    with sharded():
        done = len(scene.server.log)
        scene.publish(scene.site("a", 0))
        puts = requests_of_shards(scene, done).count("PutObject")
        assert puts == len(named_shards(bodies(scene))) + 1


def test_the_markets_of_a_first_publish_that_was_killed_are_known(scene: Scene) -> None:
    with sharded():
        site = scene.site("a", 0)
        scene.server.before = lambda request: DENIED if is_put_of(request, "v1/build.json") else None
        with pytest.raises(StoreError):
            scene.publish(site)
        published = record_of(scene.objects())
        assert published
        assert not published.built.complete
        assert published.built.markets == site.manifest.markets


def test_a_withdrawal_from_a_small_site_deletes_shards_that_no_record_names(scene: Scene) -> None:
    scene.publish(scene.site("a", 0))
    scene.store(scene.config("a")).put(f"{SHARDS}{'a' * 18}", market_id(6).encode(), If.ALWAYS)
    scene.publish(scene.site("b", 1, m6=None))
    assert not shard_keys(scene.objects())


def test_a_takedown_reads_no_shard_until_the_detail_is_gone_and_then_each_once(
    scene: Scene,
) -> None:
    with sharded():
        scene.publish(scene.site("a", 0))
        before, done = named_shards(bodies(scene)), len(scene.server.log)
        take_down(scene, 6)
        log = scene.server.log[done:]
    deletion = next(place for place, entry in enumerate(log) if entry.operation.startswith("Delete"))
    later = [entry.key for entry in log[deletion:] if SHARDS in entry.key and entry.operation == "GetObject"]
    assert not [entry.key for entry in log[:deletion] if SHARDS in entry.key]
    assert sorted(later) == sorted(f"{PREFIX}{key}" for key in before)


def test_a_missing_index_is_named_since_nothing_else_names_its_chunks(scene: Scene) -> None:
    with sharded():
        scene.layouts["a"] = "chunks"
        old = scene.site("a", 0)
        scene.publish(old)
        store = scene.store(old.config)
        key = next(key for key in sorted(scene.objects()) if keys.is_immutable(key) and key.endswith("/index.json"))
        store.delete([key])
        with pytest.raises(StoreError, match=f"{key}: missing; it is part of the record, .* rebuild --verify"):
            Lease(store, old.config.publish.lease).read()
        store.put(key, b"{", If.ALWAYS)
        with pytest.raises(StoreError, match=f"{key}: altered"):
            Lease(store, old.config.publish.lease).read()
        scene.publish(old, is_verifying=True)
        check_whole(scene.objects(), old)


def test_an_index_that_a_killed_publisher_may_have_deleted_may_be_missing(scene: Scene) -> None:
    with sharded():
        site, entry = lose_an_index(scene, until="2100-01-01T00:00:00Z")
        found = Lease(scene.store(site.config), site.config.publish.lease).read()
        assert found
        assert entry.chunks in [other.chunks for other in found.built.retired if other.pair == entry.pair]


def test_a_takedown_forgets_that_only_when_it_has_read_what_the_index_would_say(scene: Scene) -> None:
    with sharded():
        lose_an_index(scene, until="2020-01-01T00:00:00Z")
        take_down(scene, 6)
        published = record_of(scene.objects())
    assert published
    assert published.abandoned == ()
    check_hidden(scene.objects(), 6)


def lose_an_index(scene: Scene, until: str) -> tuple[SiteContent, Retired]:
    """Have a publisher that was cut short delete the index of a retired generation, `until` then at the latest."""
    scene.layouts["a"] = "chunks"
    old = scene.site("a", 0)
    scene.publish(old)
    scene.publish(scene.site("a", 1, m1={"question": "New?"}))
    store = scene.store(old.config)
    published = record_of(scene.objects())
    assert published
    entry = next(entry for entry in published.built.retired if entry.chunks)
    store.delete([keys.index(*entry.pair)])
    root = json.loads(scene.objects()[record.KEY].body)
    due = json.loads(entry.model_dump_json(by_alias=True))
    late = {"until": until, "touched": [], "generations": [], "due": [due]}
    store.put(record.KEY, json.dumps({**root, "abandoned": [late]}).encode(), If.ALWAYS)
    return old, entry


def test_a_change_to_one_list_puts_the_rows_of_its_first_pages_and_not_of_all_lists() -> None:
    lists = [f"open.category-{number}/new" for number in range(30)]
    first_pages = {keys.first_page(name, limit): f"{limit:032}" for name in lists for limit in range(1, 101)}
    markets = dict.fromkeys(map(market_id, range(1_000)), ("open",))
    built = manifest_of(objects=first_pages, markets=markets)
    store = MemoryStore()
    changed = {keys.first_page(lists[7], limit): "0" * 32 for limit in range(1, 101)}
    for objects in (first_pages, first_pages | changed):
        store.traffic.clear()
        lease = Lease(cast("Any", store), timedelta(minutes=5))
        before = lease.read(built)
        wanted = built.model_copy(update={"objects": objects})
        etags = before.etags if before else {}
        lease.take(Published(sequence=0, built=wanted, etags=updated(etags, dict.fromkeys(changed, "e"), ())), ())
    size = sum(size for key, size in store.traffic.items() if key.startswith(SHARDS))
    assert size < 30_000, "3,000 first pages have 300 kB of rows"


def is_put_of(request: Request, part: str) -> bool:
    """Whether it puts an object with that in its key."""
    return request.operation == "PutObject" and part in f"/{request.key}"


def test_a_row_has_a_key_only_where_its_market_has_one_and_is_otherwise_as_ever() -> None:
    rows: Rows = {"a": ("d1", ["open"], None, "key of a"), "b": ("d2", ["open"], ["slug"])}
    line = shards.encoded(rows)
    assert line == b'{"a":["d1",["open"],null,"key of a"],"b":["d2",["open"],["slug"]]}'
    assert shards.decoded(line) == {"a": ("d1", ("open",), None, "key of a"), "b": ("d2", ("open",), ("slug",))}
    for bad in (b'{"a":["d1",null]}', b'{"a":["d1",null,null,"key","more"]}'):
        with pytest.raises(ValueError, match="no shard"):
            shards.decoded(bad)
