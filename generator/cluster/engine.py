"""Runs calls on the workers of a Dask scheduler, with a bound on the results that wait. The only owner of the library.

Dask runs a call again elsewhere if its worker dies, three more times unless the scheduler is set otherwise.
"""

import asyncio
import logging
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from generator.cluster.program import this_program
from generator.cluster.worker import Failure
from generator.errors import ClusterError, ConfigError, PublicMarketsError

Key = TypeVar("Key")
Result = TypeVar("Result")

#: The most bytes of results that may wait here and in the scheduler.
WAITING_BYTES: Final = 64_000_000
#: Calls per thread that are sent ahead, so that no worker waits for the next one.
_AHEAD: Final = 3
#: How often a call is tried that failed for a reason that may pass.
ATTEMPTS: Final = 3
#: How long to wait for the first worker, and for another one when all are gone.
PATIENCE_S: Final = 120.0
_POLL_S: Final = 5.0
#: What these log is told by our errors, in a sentence and without tracebacks.
_LOGGERS: Final = ("distributed", "distributed.client", "tornado.application", "asyncio")
_REMEDY: Final = "nothing was replaced; run again"


@contextmanager
def connected(address: str) -> Iterator["Cluster"]:
    """Connect to a scheduler, whose address begins with `tcp://` or `tls://`, and which has a worker.

    Raises ClusterError, or ConfigError if Dask is not installed.
    """
    try:
        from distributed import Client  # noqa: PLC0415 - most sites need no cluster
    except ModuleNotFoundError as error:
        raise ConfigError("cluster is set but Dask is not installed; pip install 'public-markets[dask]'") from error
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        connect: Any = Client  # which has no types
        asyncio.run(_probe(connect, address))
        client = connect(address, set_as_default=False, name="public-markets")
    # TypeError is that there is no certificate, RuntimeError that Dask's configuration forbids plain text.
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = str(error) or "no answer"
        raise ClusterError(
            f"cluster: {address}: no Dask scheduler can be reached ({reason}); {_advice(address)}"
        ) from error
    try:
        yield Cluster(client, address)
    finally:
        with suppress(OSError, TimeoutError, RuntimeError):
            client.close(timeout=_POLL_S)


def _advice(address: str) -> str:
    if address.startswith("tls:"):
        names = " and ".join(f"DASK_DISTRIBUTED__COMM__TLS__{name}" for name in ("CA_FILE", "CLIENT__CERT"))
        return f"start one there, or correct the setting or the certificates ({names}, see docs/cluster.md)"
    return "start one there, or correct the setting; the address of one with TLS begins with tls://"


async def _probe(client: Any, address: str) -> None:
    """Connect once with a bound: against a server that is no scheduler, a client would wait for ever."""
    import dask  # noqa: PLC0415

    patience = dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))

    async def connect() -> None:
        probing = client(address, asynchronous=True, set_as_default=False, timeout=patience)
        try:
            await probing
        finally:
            await probing.close()  # which not every failure does by itself

    await asyncio.wait_for(connect(), patience + 1)


def _entry() -> Callable[..., bytes]:
    """What a worker calls. A function inside a function travels as code: one that is named must exist everywhere.

    The scheduler needs nothing of ours then, and a worker that has not installed us says so instead of dying.
    """

    # Dask passes its worker by this name when it runs a function on all of them.
    def run(program: tuple[str, str], payload: bytes, dask_worker: Any = None) -> bytes:
        from distributed import get_worker  # noqa: PLC0415

        address = (dask_worker or get_worker()).address
        try:
            from generator.cluster import worker  # noqa: PLC0415
        except ImportError as error:
            return f"worker {address} cannot import public-markets ({error})".encode()
        return worker.run(program, payload, address)

    return run


@dataclass
class _Running(Generic[Key, Result]):
    """A call that was sent."""

    key: Key
    call: Callable[[], Result]
    attempt: int = 1


class Cluster:
    """A connected scheduler and its workers."""

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self._address = address
        self._require_workers(PATIENCE_S)
        self._require_python()

    def threads(self) -> int:
        """How many calls run at once now."""
        return max(1, sum(self._threads().values()))

    def _threads(self) -> dict[str, int]:
        """By worker."""
        with self._asking():
            threads: dict[str, int] = self._client.nthreads()
        return threads

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Ask the scheduler, which may go away: its errors are an OSError, which would blame the disk, and others."""
        try:
            yield
        except (OSError, RuntimeError) as error:
            raise self._gone() from error

    def _gone(self) -> ClusterError:
        return ClusterError(f"cluster: the scheduler {self._address} went away; {_REMEDY}")

    def everywhere(self, call: Callable[[], object]) -> dict[str, PublicMarketsError | None]:
        """Run a call once on each worker; return its error, if any, by the worker's address."""
        try:
            found: dict[str, bytes] = self._client.run(_entry(), this_program()[:], _pickled(call))
        except Exception as error:
            raise ClusterError(f"cluster: {type(error).__name__}: {error}; look into the workers' logs") from error
        return {address: _error(_unpickled(body)) for address, body in found.items()}

    def results(
        self, calls: Iterable[tuple[Key, Callable[[], Result]]], expected_bytes: int
    ) -> Iterator[tuple[Key, Result]]:
        """Run calls, each with a key; yield key and result in the order of completion.

        `expected_bytes` of a result are assumed until some have arrived. Raises the error of a call, or ClusterError.
        """
        executor = self._client.get_executor(pure=False)  # equal calls are different calls
        flow = _Flow[Key, Result](executor, iter(calls), expected_bytes, _AHEAD * self.threads())
        try:
            while flow.fill():
                done, _ = wait(flow.running, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                if not done:
                    self._require_workers(PATIENCE_S)
                for future in done:
                    yield from flow.take(future, self._body(future))
        finally:
            for future in flow.running:
                future.cancel()

    def _body(self, future: "Future[bytes]") -> bytes:
        try:
            return future.result()
        except CancelledError as error:
            raise self._gone() from error
        except Exception as error:
            # Of Dask itself: those of calls come back as results.
            raise ClusterError(f"cluster: {type(error).__name__}: {error}; {_REMEDY}") from error

    def _require_workers(self, patience: float) -> None:
        if self._threads():
            return
        with self._asking():
            try:
                self._client.wait_for_workers(1, timeout=patience)
            except TimeoutError as error:
                raise ClusterError(
                    f"cluster: the scheduler {self._address} has no worker, and none came within {patience:g} s; start "
                    f"some, and look into the logs of those that ended; {_REMEDY}"
                ) from error

    def _require_python(self) -> None:
        """Refuse workers of another Python: they could not read what they are sent."""
        with self._asking():
            versions = self._client.get_versions()
        here = _python(versions["client"])
        for address, found in versions["workers"].items():
            if _python(found) != here:
                raise ClusterError(f"worker {address} runs Python {_python(found)}, this is {here}; install the same")


def _python(versions: Any) -> str:
    return ".".join(str(versions["host"]["python"]).split(".")[:2])


def _pickled(call: Callable[[], object]) -> bytes:
    return pickle.dumps(call, pickle.HIGHEST_PROTOCOL)


def _unpickled(body: bytes) -> Any:
    """What a call returned, or its Failure."""
    if not body.startswith(pickle.PROTO):  # see `_entry`
        return Failure(ClusterError(f"{body.decode()}; install it there with the extra `dask`; {_REMEDY}"))
    return pickle.loads(body)  # noqa: S301 - from our own workers


def _error(result: Any) -> PublicMarketsError | None:
    return result.error if isinstance(result, Failure) else None


class _Flow(Generic[Key, Result]):
    """Calls on their way: as many at a time as keep the workers busy, and as leave room for all their results."""

    def __init__(
        self, executor: Executor, calls: Iterator[tuple[Key, Callable[[], Result]]], expected_bytes: int, most: int
    ) -> None:
        self.running: dict[Future[bytes], _Running[Key, Result]] = {}
        self._executor = executor
        self._calls = calls
        self._largest = max(1, expected_bytes)
        self._most = most
        self._entry = _entry()

    def fill(self) -> bool:
        """Send calls while there is room; return whether any are running."""
        while len(self.running) < self._room():
            following = next(self._calls, None)
            if following is None:
                break
            self._send(_Running(*following))
        return bool(self.running)

    def _room(self) -> int:
        return min(self._most, max(1, WAITING_BYTES // self._largest))

    def _send(self, running: _Running[Key, Result]) -> None:
        future = self._executor.submit(self._entry, this_program()[:], _pickled(running.call))
        self.running[future] = running

    def take(self, future: "Future[bytes]", body: bytes) -> Iterator[tuple[Key, Result]]:
        """The result that has arrived; nothing if the call is to be tried again."""
        running = self.running.pop(future)
        # Late results are the size of late ones: a bound on the largest ever would slow down a build of small ones.
        self._largest = max(len(body), self._largest * 9 // 10, 1)
        result = _unpickled(body)
        if not isinstance(result, Failure):
            yield running.key, result
        elif result.may_pass and running.attempt < ATTEMPTS:
            self._send(_Running(running.key, running.call, running.attempt + 1))
        else:
            raise result.error
