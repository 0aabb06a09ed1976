"""Publishers that are struck at a request of theirs: watched, held, stopped or killed, here or in other processes."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.publish import record
from generator.publish.stores.s3 import Bucket as BucketStore
from generator.tree.blocklist import KEY
from tests.publish.faults.scene import PREFIX, Scene
from tests.support.faults import Fault as FileFault
from tests.support.faults import Runner
from tests.support.s3.behaviour import DROPPED, Fault
from tests.support.s3.server import BUCKET, S3Server
from tests.support.s3.wire import Answer, Request

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
    names = {record.KEY: "record", KEY: "blocked"}
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


def places(counts: Mapping[str, int], few: int = 4) -> list[Strike]:
    """Where to strike a publisher that made these requests: at each, and where there are many alike, at some."""
    return [
        Strike(text, number, after)
        for text, count in counts.items()
        if text != ANY
        for number in sorted({*range(1, count + 1)} if count <= few else {1, count // 2, count})
        for after in ((False,) if text == ANONYMOUS else (False, True))
    ]


def prepare() -> None:
    """Load what boto3 and obstore load for the first of all clients. Nothing is connected, so forks are safe."""
    BucketStore(BUCKET, PREFIX, endpoint_url="http://127.0.0.1:1", client="obstore")


class Victims:
    """Commands in processes of their own, which are killed when the server gets a certain request of theirs."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._runner = Runner(scene.folder / "victim.log", "tests.publish.faults.strikes")
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
        code, said = self.end(arguments)
        assert code == 0, said
        return self._runner.calls

    def end(self, arguments: list[str]) -> tuple[int, str]:
        """Run a command that may fail; returns its exit code and what it said."""
        self._runner.begin(arguments)
        return self._runner.end(), self._runner.log()

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


@pytest.fixture
def victims(scene: Scene) -> Iterator[Victims]:
    with closing(Victims(scene)) as victims:
        yield victims
