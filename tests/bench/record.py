"""What a publish with 50 changed markets reads and writes of the record, at two sizes: `make bench ONLY=record`.

It is measured again after a day of builds every five minutes, each of which replaced all lists.

The real protocol runs on a store in memory and on made-up manifests with as many lists and chunks as the demo's. A
changed market changes two chunks of every list it is in. Objects for readers are neither made nor put. The publish
before changed as many markets.
"""

import hashlib
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Final, cast
from unittest.mock import patch

from generator.api import keys
from generator.api.contract import SORTS, StatusFilter
from generator.api.forms import instant
from generator.progress import SILENT
from generator.publish import protocol, record
from generator.publish.guards import Options
from generator.publish.lease import Lease, Target
from generator.publish.plan import Plan
from generator.publish.protocol import Run
from generator.stores.store import BeforeEach, Condition, Stored, nothing
from generator.tree import chunks
from generator.tree.blocklist import BlockedList
from generator.tree.files import STATES
from generator.tree.manifest import Current, Manifest, Retired
from tests.bench.runner import Runner
from tests.bench.tables import table
from tests.publish.explorer.world import BucketStore, World
from tests.support.sites.builds import make_config

#: Numbers of public markets; the demo with 100,000 markets has the second.
SIZES: Final = (20_000, 90_910)
#: Items per chunk; at this size there are some more.
ITEMS: Final = 100
CHANGED: Final = 50
OPERATIONS: Final = ("GET", "PUT", "LIST", "DELETE")
NOW: Final = datetime(2026, 2, 1, 12, tzinfo=UTC)
#: Builds that a day's walks may still be in.
BUILDS: Final = 287
EVERY: Final = timedelta(minutes=5)
_CATEGORIES: Final = ("politics", "sports", "science", "economics", "culture")
_CHUNKS_PER_CHANGE: Final = 2


@dataclass
class _Traffic:
    """Requests for the record and their bytes, by operation."""

    requests: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    cpu_s: float = 0

    def add(self, operation: str, size: int) -> None:
        self.requests[operation] = self.requests.get(operation, 0) + 1
        self.bytes[operation] = self.bytes.get(operation, 0) + size


class Memory(BucketStore):
    """Counts the record's traffic: its root, states and intents."""

    def __init__(self) -> None:
        world = World()
        super().__init__(world, lambda _, carry_out: carry_out(world))
        self.counted = _Traffic()

    def now(self) -> datetime:
        return NOW

    def get(self, key: str) -> Stored | None:
        found = super().get(key)
        self.counted.add("GET", len(found.body) if found else 0)
        return found

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        if key == record.KEY or key.startswith(STATES):
            self.counted.add("PUT", len(body))
        return super().put(key, body, condition)

    def keys(self, prefix: str) -> Iterator[str]:
        self.counted.add("LIST", 0)
        return super().keys(prefix)

    def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:
        if any(key.startswith(STATES) for key in keys):
            self.counted.add("DELETE", 0)
        super().delete(keys, before_each)


class _Folder:
    """Remembers what a publish from here left."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    def read(self, name: str) -> bytes | None:
        return self._files.get(name)

    def save(self, name: str, content: bytes) -> None:
        self._files[name] = content


class _Applier:
    """Puts nothing."""

    def withdraw(self, plan: Plan, blocked: object) -> None: ...

    def sweep_early(self, generations: object) -> None: ...

    def sweep(self, plan: Plan) -> None: ...

    def upload_generations(self, generations: object) -> None: ...

    def replace(self, plan: Plan) -> dict[str, str]:
        # S3 has MD5 digests.
        return {
            step.key: hashlib.md5(f"{step.key} {plan.final.as_of}".encode(), usedforsecurity=False).hexdigest()
            for step in plan.uploads
        }


def _hex(rng: random.Random, digits: int) -> str:
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def first(markets: int, rng: random.Random) -> Manifest:
    """The manifest of a build of that many markets."""
    ids = [f"{_hex(rng, 8)}-{_hex(rng, 4)}-4{_hex(rng, 3)}-8{_hex(rng, 3)}-{_hex(rng, 12)}" for _ in range(markets)]
    sizes: dict[StatusFilter, int] = {
        "all": markets,
        "open": markets * 2 // 3,
        "resolved": markets // 4,
        "closed": markets // 12,
    }
    counts = {keys.list_name(status, sort): count for status, count in sizes.items() for sort in SORTS}
    counts |= {
        keys.list_name(status, sort, category): count // len(_CATEGORIES)
        for status, count in sizes.items() for sort in SORTS for category in _CATEGORIES
    }  # fmt: skip
    memberships = {market_id: ("open", f"open.{rng.choice(_CATEGORIES)}") for market_id in ids}
    objects = {keys.detail(market_id): _hex(rng, 32) for market_id in ids}
    objects |= {key: _hex(rng, 32) for key in (keys.SNAPSHOT, keys.BUILD, *map(keys.head, counts))}
    return Manifest(
        complete=True, as_of="2026-01-31T12:00:00.000Z", version="1", variant="core", layout="chunks",
        current={name: _generation(name, count, [_hex(rng, 32) for _ in range(-(-count // ITEMS))])
                 for name, count in counts.items()},
        retired=(), objects=objects, markets=memberships,
    )  # fmt: skip


def _generation(list_name: str, count: int, names: Sequence[str]) -> Current:
    generation = chunks.generation_name(list_name, _index(count, names))
    return Current(generation=generation, count=count, bytes=count * 400, chunks=tuple(names))


def _index(count: int, names: Sequence[str]) -> bytes:
    return chunks.index([min(count, ITEMS * (place + 1)) for place in range(len(names))], names)


def changed(before: Manifest, minute: int, rng: random.Random) -> Manifest:
    """The manifest of the next build, after that many markets have changed."""
    chosen = rng.sample(sorted(before.markets), min(CHANGED, len(before.markets)))
    objects = {keys.detail(market_id): _hex(rng, 32) for market_id in chosen}
    objects |= {key: _hex(rng, 32) for key in before.objects if not keys.is_detail(key)}
    lists = replaced(before.lists(), len(before.markets), rng)
    update = {"as_of": f"2026-01-31T12:{minute:02}:00.000Z", "current": lists, "objects": {**before.objects, **objects}}
    return before.model_copy(update=update)


def replaced(lists: Mapping[str, Current], markets: int, rng: random.Random) -> dict[str, Current]:
    """The lists after that many of the markets have changed."""
    found = {}
    for name, current in lists.items():
        names, share = [*current.chunks], current.count / markets
        for place in rng.sample(range(len(names)), min(len(names), round(CHANGED * share * _CHUNKS_PER_CHANGE))):
            names[place] = _hex(rng, 32)
        found[name] = _generation(name, current.count, names)
    return found


def day(built: Manifest, rng: random.Random, builds: int) -> Manifest:
    """The manifest after so many builds that changed no market but replaced every list."""
    lists, retired = built.lists(), list[Retired]()
    for build in range(builds):
        at = instant(NOW - (builds - build) * EVERY)
        retired += [Retired(list=name, retired_at=at, **dict(current)) for name, current in lists.items()]
        lists = replaced(lists, len(built.markets), rng)
    return built.model_copy(update={"current": lists, "retired": tuple(retired)})


def record_as(store: Memory, built: Manifest, config: Any) -> None:
    """Write a record which says that this is published."""
    store.counted = _Traffic()
    lease = Lease(cast("Any", store))
    published = lease.read()
    assert published
    wanted = published.model_copy(update={"built": built})
    lease.take(wanted, ())
    lease.release(wanted)


def publish(store: Memory, built: Manifest, folder: Any, config: Any) -> _Traffic:
    """Publish what was built in a folder."""
    store.counted, begin = _Traffic(), time.process_time()
    target = Target.of(cast("Any", store), config, folder)
    target.lease.read()
    content: Any = SimpleNamespace(
        built=built,
        folder=folder,
        is_build=True,
        remaining=frozenset(),
        warnings=(),
        problems=(),
        recovered=lambda _: content,
    )
    with patch.object(protocol, "Applier", lambda *_: _Applier()):
        protocol.publish(protocol.compare(Run.of(target, content, SILENT, Options(), BlockedList())))
    store.counted.cpu_s = time.process_time() - begin
    return store.counted


def measured(markets: int, config: Any, a_day: int = BUILDS) -> Mapping[str, _Traffic]:
    """The traffic of each kind of publish; `a_day` has so many builds."""
    rng = random.Random(1)  # noqa: S311 - for equal figures
    store, folder, built = Memory(), _Folder(), first(markets, rng)
    found = {"the first": publish(store, built, folder, config)}
    for minute in (5, 10):
        built = changed(built, minute, rng)
        found[f"{CHANGED} changed"] = publish(store, built, folder, config)
    found["nothing changed"] = publish(store, built, folder, config)
    built = changed(built, 15, rng)
    found[f"{CHANGED} changed, folder lost"] = publish(store, built, _Folder(), config)
    after = day(built, rng, a_day)
    record_as(store, after, config)
    built = changed(after, 59, rng)
    found[f"{CHANGED} changed, after a day"] = publish(store, built, folder, config)
    found["nothing changed, after a day"] = publish(store, built, folder, config)
    return found


def run(runner: Runner) -> Iterator[str]:
    """Measure every size."""
    config = make_config(runner.root, layout="chunks", publish__single_writer=True, cursor__lifetime=86_400)
    yield "## The record's traffic"
    yield ""
    rows = []
    a_day = min(BUILDS, runner.options.markets(BUILDS))
    for markets in dict.fromkeys(map(runner.options.markets, SIZES)):
        for name, traffic in measured(markets, config, a_day).items():
            read, put = traffic.bytes.get("GET", 0), traffic.bytes.get("PUT", 0)
            requests = (f"{traffic.requests.get(operation, 0):,}" for operation in OPERATIONS)
            cpu = f"{traffic.cpu_s:.2f}"
            rows.append([f"{markets:,} markets, {name}", *requests, f"{read:,}", f"{put:,}", cpu])
    yield from table(["publish", *OPERATIONS, "bytes read", "bytes put", "CPU s"], rows)
