"""How calls flow to the workers of a cluster, and their results back."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pytest

from generator.cluster import engine
from generator.cluster.engine import Cluster
from generator.cluster.worker import run
from generator.errors import ClusterError
from generator.program import this_program

#: Of a result: so large that fewer may wait than the workers could take.
SIZE: Final = 4_000_000
CALLS: Final = 60
THREADS: Final = 8


class Client(ThreadPoolExecutor):
    """Stands for Dask: runs calls in threads of this process."""

    def nthreads(self) -> dict[str, int]:
        return {"tcp://worker": THREADS}

    def get_versions(self) -> dict[str, Any]:
        here = {"host": {"python": ".".join(map(str, sys.version_info[:3]))}}
        return {"client": here, "workers": {"tcp://worker": here}}

    def get_executor(self, *, pure: bool) -> Executor:
        assert not pure, "or equal calls would run once"
        return self

    def submit(self, _: Callable[..., Any], /, *words: Any, **__: Any) -> Future[Any]:
        program, payload = words
        assert program == this_program()
        return super().submit(run, program, payload, "tcp://worker")


@dataclass(frozen=True)
class Call:
    """Returns so many bytes."""

    size: int

    def __call__(self) -> bytes:
        return bytes(self.size)


class Hostile(Client):
    """Its texts would control a terminal."""

    python = "\x1b]0;"

    def get_versions(self) -> dict[str, Any]:
        versions = super().get_versions()
        return versions | {"workers": {"\x1b[2J": {"host": {"python": self.python}}}} if self.python else versions

    def run(self, *_: Any) -> dict[str, object]:
        raise OSError("\x1b[2J")

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        future = Future[Any]()
        future.set_exception(OSError("\x1b[2J"))
        return future


class Deserted(Client):
    """Loses its workers once calls were sent; then the scheduler may send a pickle that is refused."""

    def __init__(self, refused: list[str], told: str = "") -> None:
        super().__init__(1)
        self._refused, self._told = refused, told
        self._has_calls = False
        self.waits = 0

    def nthreads(self) -> dict[str, int]:
        return {} if self._has_calls else super().nthreads()

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        self._has_calls = True
        return Future[Any]()

    def wait_for_workers(self, _: int, *, timeout: float) -> None:
        self.waits += 1
        assert timeout <= engine.PATIENCE_S
        self._refused += [self._told] if self._told else []
        raise TimeoutError


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Client(THREADS) as client:
        yield Cluster(client, "tcp://scheduler")


@pytest.mark.parametrize(("expected_bytes", "known_from"), [(SIZE, 0), (2 * SIZE, 0), (1, CALLS // 2)])
def test_no_more_results_wait_than_there_is_room_for_once_their_size_is_known(
    cluster: Cluster, expected_bytes: int, known_from: int
) -> None:
    sent = 0

    def calls() -> Iterator[tuple[int, Call]]:
        nonlocal sent
        for sent in range(1, CALLS + 1):
            yield sent, Call(SIZE)

    on_their_way = [sent - place for place, _ in enumerate(cluster.results(calls(), expected_bytes))]
    assert len(on_their_way) == CALLS
    assert max(on_their_way[known_from:]) * SIZE <= engine.WAITING_BYTES


def test_texts_of_a_scheduler_do_not_reach_the_terminal_as_they_are() -> None:
    with Hostile(1) as client:
        with pytest.raises(ClusterError, match=r"runs Python  \]0;, but") as told:
            Cluster(client, "tcp://scheduler")
        client.python = ""
        cluster = Cluster(client, "tcp://scheduler")
        with pytest.raises(ClusterError) as raised:
            cluster.everywhere(Call(1))
        with pytest.raises(ClusterError) as arrived:
            next(cluster.results([(1, Call(1))], 1))
    assert [str(found.value).isprintable() for found in (told, raised, arrived)] == [True] * 3


@pytest.mark.parametrize(
    ("told", "waits", "sentence"),
    [
        pytest.param("distributed.scheduler.KilledWorker", 1, "went away", id="a pickle is refused"),
        pytest.param("", 3, "the scheduler tcp://scheduler has no worker, and none joined within 0.03 s", id="nothing"),
    ],
)
def test_waiting_for_a_worker_ends(told: str, waits: int, sentence: str) -> None:
    refused = list[str]()
    with Deserted(refused, told) as client:
        cluster = Cluster(client, "tcp://scheduler", refused, patience_s=0.03, poll_s=0.01)
        with pytest.raises(ClusterError, match=sentence):
            next(cluster.results([(1, Call(1))], 1))
        assert waits <= client.waits <= waits + 1
