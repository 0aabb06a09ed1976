"""Interrupts publishers at a given request: holds, stops or kills them, in this process or others."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.publish import record
from generator.site.families import rank
from generator.stores.s3 import Bucket as BucketStore
from generator.stores.store import BeforeEach, Condition, Store, nothing
from generator.tree.blocklist import KEY
from generator.tree.files import STATES
from tests.publish.faults.scene import PREFIX, Scene
from tests.support.faults import Runner
from tests.support.stores import records
from tests.support.stores.s3.behaviour import DROPPED, Fault
from tests.support.stores.s3.server import BUCKET, Met, S3Server, prompt
from tests.support.stores.s3.wire import Answer, Request
from tests.support.waiting import PATIENCE_S

#: Requests without credentials, which are always refused.
ANONYMOUS: Final = "anonymous"


def label(request: Request) -> str:
    """The kind of a publisher's request."""
    if request.key_id is None:
        return ANONYMOUS
    key = request.key.removeprefix(PREFIX)
    operation = request.operation.removesuffix("Object")
    if key.startswith(f"{API_VERSION}/"):
        ranks = ("detail", "document", "first", "first", "build")
        return f"{operation} {'page' if keys.is_immutable(key) else ranks[rank(key)]}"
    if key.startswith(STATES):
        return f"{operation} state"
    names = {record.KEY: "record", KEY: "blocked"}
    return f"{operation} {names.get(key, 'probe' if key else 'bucket')}"


#: The label that matches every request.
ANY: Final = "any"


@dataclass(frozen=True)
class Strike:
    """The request to interrupt: before it takes effect, or after that but before the response."""

    label: str
    number: int
    after: bool = False


@dataclass
class Watch:
    """Server hooks that count a publisher's requests by label, and act at one of them."""

    strike: Strike | None
    act: Callable[[], None] = lambda: None
    #: Whether all later requests are dropped, as after a kill.
    ends: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    has_struck: bool = False
    _chosen: Request | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @prompt
    def before(self, request: Request) -> Met:
        with self._lock:
            if self.has_struck and self.ends:
                return DROPPED
            texts = (ANY, label(request))
            self.counts.update(texts)
            strike = self.strike
            if (
                strike is None
                or self._chosen
                or strike.label not in texts
                or self.counts[strike.label] != strike.number
            ):
                return None
            self._chosen = request
        return None if strike.after else self._strike

    @prompt
    def after(self, request: Request, _: Answer) -> Callable[[], object] | None:
        return self._strike if request is self._chosen and self.strike and self.strike.after else None

    def _strike(self) -> Fault | None:
        self.has_struck = True
        self.act()
        return DROPPED if self.ends else None

    @contextmanager
    def over(self, server: S3Server) -> Iterator["Watch"]:
        """Watch during the block."""
        server.before, server.after = self.before, self.after
        try:
            yield self
        finally:
            server.before = server.after = None


class DiedError(BaseException):
    """Simulates the end of a process: nothing catches it."""


class DiesAfter:
    """A store that ends the process after a number of writes; it makes one request at a time."""

    parallel: Final = 1

    def __init__(self, store: Store, writes: int) -> None:
        self._store = store
        self._left = writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        self._count()
        return self._store.put(key, body, condition)

    def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:
        self._count()
        self._store.delete(keys, before_each)

    def _count(self) -> None:
        if self._left == 0:
            raise DiedError
        self._left -= 1


def prepare() -> None:
    """Import boto3 and obstore without connecting, so that forks are fast and safe."""
    BucketStore(BUCKET, PREFIX, endpoint_url="http://127.0.0.1:1", client="obstore")


class Victims:
    """Commands in separate processes, killed when the server receives a given request."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        splits = [records.__name__] if records.are_split() else []
        self._runner = Runner(scene.folder / "victim.log", "tests.publish.faults.strikes", each=splits)

    def close(self) -> None:
        self._runner.close()

    def run(self, arguments: list[str]) -> Counter[str]:
        """Run a command to completion; returns its requests by label."""
        with Watch(None).over(self._scene.server) as watch:
            self._runner.begin(arguments)
            assert self._runner.end() == 0, self._runner.log()
        return watch.counts

    def kill(self, arguments: list[str], strike: Strike) -> bool:
        """Run a command until it is killed; returns whether it was."""
        pid: list[int] = []
        has_started = threading.Event()

        def act() -> None:
            has_started.wait()
            os.kill(pid[0], signal.SIGKILL)

        with Watch(strike, act, ends=True).over(self._scene.server) as watch:
            pid.append(self._runner.begin(arguments))
            has_started.set()
            code = self._runner.end()
        assert code == (-signal.SIGKILL if watch.has_struck else 0), f"{strike}: {code}: {self._runner.log()}"
        return watch.has_struck

    @contextmanager
    def stopped(self, arguments: list[str], strike: Strike) -> Iterator[Callable[[], int]]:
        """Stop a command at a request during the block; yields a function that returns its exit code."""
        pid: list[int] = []
        has_started, is_stopped = threading.Event(), threading.Event()

        def act() -> None:
            has_started.wait()
            os.kill(pid[0], signal.SIGSTOP)
            is_stopped.set()

        with Watch(strike, act).over(self._scene.server):
            pid.append(self._runner.begin(arguments))
            has_started.set()
            assert is_stopped.wait(timeout=PATIENCE_S), f"{strike} never came"
            try:
                yield self._runner.end
            finally:
                os.kill(pid[0], signal.SIGCONT)


@pytest.fixture
def victims(scene: Scene) -> Iterator[Victims]:
    with closing(Victims(scene)) as victims:
        yield victims
