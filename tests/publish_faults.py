"""What the fault tests of publishing share: a bucket to spoil, publishers to disturb, readers, and what must hold."""
# ruff: noqa: S311 - nothing here is secret, and every run must draw the same lots

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from generator import blocked, build, keys, manifest, output, record
from generator.config import Config
from generator.contract import API_VERSION
from generator.manifest import Manifest
from generator.pages import page_keys
from generator.publish import Options, Outcome, Publication
from generator.record import Published
from generator.refusals import Permissions
from generator.store import Store
from generator.store_s3 import Bucket as BucketStore
from generator.stores import open_store
from tests import publish_sites
from tests.faults import Fault as FileFault
from tests.faults import GoneError, Reader, Runner, State, expected_keys
from tests.publish_sites import LISTS, Site
from tests.s3_behaviour import DROPPED, Fault
from tests.s3_bucket import Bucket, Conditions, RefusedError
from tests.s3_server import BUCKET, S3Server
from tests.s3_wire import Answer, Request
from tests.support import Silent, make_config, market_id

PREFIX: Final = "api/"
LIFETIME_S: Final = 24 * 3600
LEASE_S: Final = 60
ALLOWED: Final = Permissions(shrink=True, older=True)


@dataclass(frozen=True)
class Found:
    """An object as a store has it."""

    body: bytes
    etag: str
    headers: Mapping[str, str]


#: Everything in a bucket, by its key as publishers know it.
Objects = Mapping[str, Found]


class Scene:
    """A bucket of our S3 server, folders that hold sites, and publishers: in this process, and in others."""

    def __init__(self, folder: Path, server: S3Server) -> None:
        self.folder = folder
        self.server = server
        self.reader = Reader(self.read)
        self.lock = threading.Lock()
        #: How often the bucket was replaced as a whole.
        self.resets = 0
        self._stores: dict[Path, Store] = {}

    def config(self, name: str, **settings: object) -> Config:
        """The settings of a machine that publishes here, with an output folder of its own."""
        (self.folder / name).mkdir(exist_ok=True)
        return make_config(self.folder / name, **self._settings() | settings)

    def arguments(self, command: str, name: str, *more: str) -> list[str]:
        """The command line that `config(name)` stands for."""
        config = self.config(name)
        settings = {key.replace("__", "."): value for key, value in self._settings().items()}
        overrides = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        place = ["--config", str(self.folder / name / "config.yaml"), "--set", f"output={config.output}"]
        return [command, *more, *place, *overrides]

    def _settings(self) -> dict[str, object]:
        return {
            "source__url": f"sqlite:///{self.folder / 'markets.db'}",
            "publish__target": f"s3://{self.server.name}/{PREFIX}",
            "publish__endpoint_url": self.server.url,
            "publish__lease": LEASE_S,
            "cursor__lifetime": LIFETIME_S,
        }

    def site(self, name: str, minute: int, **changes: Mapping[str, Any] | None) -> Site:
        """Make a site, in a folder of its own, out of the usual markets and some changes."""
        return publish_sites.make(self.config(name), publish_sites.markets(**changes), minute)

    def publish(self, site: Site, **options: Any) -> Outcome:
        """Publish in this process, from a machine that was there before: it opens its store but once."""
        return publish_site(site, self.store(site.config), **options)

    def store(self, config: Config) -> Store:
        if config.output not in self._stores:
            self._stores[config.output] = open_store(config)
        return self._stores[config.output]

    def read(self, key: str) -> bytes | None:
        """Read as the edge does."""
        try:
            return self.server.bucket.get(PREFIX + key).body
        except RefusedError:
            return None

    def objects(self) -> dict[str, Found]:
        """Everything that can be read now."""
        return {
            key.removeprefix(PREFIX): Found(one.body, one.etag.strip('"'), one.headers)
            for key, one in self.server.bucket.current().items()
        }

    def reset(self, objects: Objects) -> None:
        """Put these objects in place of all others."""
        bucket = Bucket(self.server.behaviour, self.server.clock)
        for key, one in objects.items():
            bucket.put(PREFIX + key, one.body, one.headers, Conditions())
        with self.lock:
            self.server.bucket = bucket
            self.resets += 1

    def pass_time(self, seconds: float) -> None:
        """Move the store's clock."""
        self.server.behaviour.clock_offset_s += seconds


def publish_site(site: Site, store: Store, **options: Any) -> Outcome:
    """Publish in this process; options are fields of `Options`."""
    wanted = Options(**{"allowed": ALLOWED} | options)
    with output.locked(site.folder) as folder:
        publication = Publication(folder, store, site.config, build.shape(site.config), wanted)
        return publication.run(Silent(), lambda _: None)


# ── what must hold ────────────────────────────────────────────────────────────────────────────────────────────────


def record_of(objects: Objects) -> Published | None:
    found = objects.get(record.KEY)
    return record.decoded(found.body) if found else None


def check_known(objects: Objects) -> None:
    """At any moment: the record accounts for every key, so that whatever was left can be found and deleted."""
    published = record_of(objects)
    known: set[str] = set()
    if published:
        known = expected_keys(published.built) | published.unfinished()
        for doomed in published.doomed:
            known.update(page_keys(doomed.list, doomed.generation, doomed.count))
    unknown = sorted(key for key in objects if key.startswith(f"{API_VERSION}/") and key not in known)
    assert not unknown, f"unknown to the record: {unknown[:5]} of {len(unknown)}"


def check_whole(objects: Objects, site: Site) -> None:
    """After a publish that came to its end: the store has this very site, and what the record says beyond it."""
    published = record_of(objects)
    assert published, "nothing is published"
    assert published.work is None, "somebody is still at work"
    assert published.built.complete
    assert not published.doomed
    assert published.built.lists == site.manifest.lists, "the record tells of another site"
    assert published.built.objects == site.manifest.objects, "the record tells of other objects"
    check_known(objects)
    for key in site.manifest.objects:
        assert key in objects, f"{key} is missing"
        assert objects[key].body == site.files[key], f"{key} is stale"
        assert published.etags[key] == objects[key].etag, f"{key} has another ETag than recorded"
    for key in expected_keys(published.built.model_copy(update={"retired": whole_retired(published.built)})):
        assert key in objects, f"{key} is missing"
    check_headers(objects)


def whole_retired(built: Manifest) -> tuple[manifest.Retired, ...]:
    return tuple(one for one in built.retired if not one.partial)


def check_headers(objects: Objects) -> None:
    for key, one in objects.items():
        told = {name.lower(): value for name, value in one.headers.items()}
        wanted = {name.lower(): value for name, value in keys.headers(key).items()}
        assert told.items() >= wanted.items(), f"{key} has the headers {told}"


def check_hidden(objects: Objects, *numbers: int) -> None:
    """Of markets that were withdrawn not a byte is left where readers can get it."""
    for number in numbers:
        texts = (market_id(number).encode(), f"Question {number}".encode())
        for key, one in objects.items():
            if key.startswith(f"{API_VERSION}/"):
                assert market_id(number) not in key, f"{key} is there"
                assert not any(text in one.body for text in texts), f"{key} shows market {number}"


# ── readers ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Walkers:
    """A thread that walks the lists page by page for as long as the test lasts; every walk must be of one state."""

    def __init__(self, scene: Scene, *states: State) -> None:
        self.exact = 0
        self.gone = 0
        self._is_withdrawing = False
        self._withdrawals = 0
        self._scene = scene
        self._random = random.Random(1)
        self._possible: dict[str, list[list[Any]]] = {name: [] for name in LISTS}
        self._is_over = threading.Event()
        self._broken: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, name="walkers", daemon=True)
        self.expect(*states)

    def expect(self, *states: State) -> None:
        """Let walks be of these states, too; tell before they can be seen."""
        for state in states:
            for name in LISTS:
                self._possible[name].append([*state[name]])

    def withdraw(self, *, is_withdrawing: bool) -> None:
        """Tell that markets may be withdrawn from now on, which ends walks; or that they all are."""
        self._withdrawals += is_withdrawing and not self._is_withdrawing
        self._is_withdrawing = is_withdrawing

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        if kind is None and self._broken:
            raise self._broken[0]

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                self._walk(self._random.choice(LISTS), self._random.choice(publish_sites.LIMITS))
        except BaseException as broken:  # noqa: BLE001 - raised again in the thread of the test
            self._broken.append(broken)

    def _walk(self, name: str, limit: int) -> None:
        resets, at, seen = self._scene.resets, None, []
        is_withdrawing, withdrawals = self._is_withdrawing, self._withdrawals
        while True:
            with self._scene.lock:
                if resets != self._scene.resets:
                    return
                try:
                    items, at_next = self._scene.reader.page(name, limit, at)
                except GoneError:
                    if at is not None:
                        is_excused = is_withdrawing or withdrawals != self._withdrawals
                        assert is_excused, f"a walk of {name} by {limit} was cut off"
                        self.gone += 1
                    return
            seen += items
            at = at_next
            if at is None:
                break
            time.sleep(0.0005)
        assert seen in self._possible[name], f"a walk of {name} by {limit} was torn"
        self.exact += 1


# ── strikes ───────────────────────────────────────────────────────────────────────────────────────────────────────


#: Requests without credentials, which are refused: they never take effect.
ANONYMOUS: Final = "anonymous"


def label(request: Request) -> str:
    """What a request does for a publisher."""
    if request.key_id is None:
        return ANONYMOUS
    key = request.key.removeprefix(PREFIX)
    operation = request.operation.removesuffix("Object")
    if key.startswith(f"{API_VERSION}/"):
        ranks = ("detail", "document", "first", "build")
        return f"{operation} {'page' if keys.is_immutable(key) else ranks[keys.rank(key)]}"
    names = {record.KEY: "record", blocked.KEY: "blocked"}
    return f"{operation} {names.get(key, 'probe' if key else 'bucket')}"


#: The label that fits every request.
ANY: Final = "any"


@dataclass(frozen=True)
class Strike:
    """At which request something happens: before it takes effect, or after, when it is not answered yet."""

    label: str
    number: int
    after: bool = False


@dataclass
class Watch:
    """Counts a publisher's requests by label, and does something at one of them. Put into a server's hooks."""

    strike: Strike | None
    act: Callable[[], None] = lambda: None
    #: Whether nothing that comes later arrives, as it is with a process that was killed.
    ends: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    has_struck: bool = False
    _chosen: Request | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def before(self, request: Request) -> Fault | None:
        with self._lock:
            if self.has_struck and self.ends:
                return DROPPED
            texts = (ANY, label(request))
            self.counts.update(texts)
            strike = self.strike
            if strike is None or strike.label not in texts or self.counts[strike.label] != strike.number:
                return None
            self._chosen = request
        if strike.after:
            return None
        self._strike()
        return DROPPED if self.ends else None

    def after(self, request: Request, _: Answer) -> None:
        if request is self._chosen and self.strike and self.strike.after:
            self._strike()

    def _strike(self) -> None:
        self.has_struck = True
        self.act()

    @contextmanager
    def over(self, server: S3Server) -> Iterator["Watch"]:
        """Watch for the length of the block."""
        server.before, server.after = self.before, self.after
        try:
            yield self
        finally:
            server.before = server.after = None


def places(counts: Mapping[str, int], few: int = 6) -> list[Strike]:
    """Where to strike a publisher that made these requests: at each, and where there are many alike, at some."""
    return [
        Strike(text, number, after)
        for text, count in counts.items()
        if text != ANY
        for number in sorted({*range(1, count + 1)} if count <= few else {1, 2, count // 2, count - 1, count})
        for after in ((False,) if text == ANONYMOUS else (False, True))
    ]


def prepare() -> None:
    """Load what boto3 and obstore load for the first of all clients. Nothing is connected, so forks are safe."""
    BucketStore(BUCKET, PREFIX, endpoint_url="http://127.0.0.1:1", client="obstore")


class Victims:
    """Commands in processes of their own, which are killed when the server gets a certain request of theirs."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._runner = Runner(scene.folder / "victim.log", "tests.publish_faults")
        self.kills = 0

    def close(self) -> None:
        self._runner.close()

    def run(self, arguments: list[str]) -> Counter[str]:
        """Run a command to its end; returns its requests by label."""
        with Watch(None).over(self._scene.server) as watch:
            self.finish(arguments)
        return watch.counts

    def finish(self, arguments: list[str]) -> Counter[str]:
        """Run a command to its end; returns its file calls by label."""
        self._runner.begin(arguments)
        assert self._runner.end() == 0, self._runner.log()
        return self._runner.calls

    def fail(self, arguments: list[str], fault: FileFault) -> None:
        """Run a command that is killed at a file call, if it comes to that: threads differ in what they have to do."""
        self._runner.begin(arguments, fault)
        code = self._runner.end()
        assert code in (0, -signal.SIGKILL), self._runner.log()
        self.kills += code != 0

    def kill(self, arguments: list[str], strike: Strike) -> bool:
        """Run a command until it is killed; tell whether that came to pass."""
        pid: list[int] = []
        is_begun = threading.Event()

        def act() -> None:
            is_begun.wait()
            os.kill(pid[0], signal.SIGKILL)

        with Watch(strike, act, ends=True).over(self._scene.server) as watch:
            pid.append(self._runner.begin(arguments))
            is_begun.set()
            code = self._runner.end()
        assert code == (-signal.SIGKILL if watch.has_struck else 0), f"{strike}: {code}: {self._runner.log()}"
        self.kills += watch.has_struck
        return watch.has_struck

    @contextmanager
    def stopped(self, arguments: list[str], strike: Strike) -> Iterator[Callable[[], int]]:
        """Stop a command at a request for the length of the block; what is yielded tells then how it ended."""
        pid: list[int] = []
        is_begun, is_stopped = threading.Event(), threading.Event()

        def act() -> None:
            is_begun.wait()
            os.kill(pid[0], signal.SIGSTOP)
            is_stopped.set()

        with Watch(strike, act).over(self._scene.server):
            pid.append(self._runner.begin(arguments))
            is_begun.set()
            assert is_stopped.wait(timeout=60), f"{strike} never came"
            try:
                yield self._runner.end
            finally:
                os.kill(pid[0], signal.SIGCONT)


def check_lists(scene: Scene, *states: State) -> None:
    """Every list can be walked by every limit, and shows one of these states."""
    scene.reader.check(*states, lists=LISTS)
