"""Runs calls on the workers of a Dask scheduler, with a bound on the results in flight. Only this module uses Dask.

If a worker dies, Dask runs its call on another one: up to three times, unless the scheduler is configured otherwise.
"""

import asyncio
import logging
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

from pydantic import ValidationError

from generator.cluster import worker
from generator.cluster.worker import RESULT, Failure, printable
from generator.errors import ClusterError, ConfigError, PublicMarketsError
from generator.program import this_program

Key = TypeVar("Key")
#: What a worker runs.
Call: TypeAlias = Callable[[], bytes]

#: The most bytes of results in flight: expected by, or waiting in, the scheduler and this process.
WAITING_BYTES: Final = 64_000_000
#: The most bytes that a worker may answer with.
_LARGEST: Final = 1_000_000_000
#: Calls in flight per thread of the workers, so that none waits for its next one.
_AHEAD: Final = 3
#: How often a call is tried whose failures are transient.
ATTEMPTS: Final = 3
#: How long to wait for a worker when there is none, at the start or later, and how often to look.
PATIENCE_S: Final = 120.0
POLL_S: Final = 5.0
#: Silenced: our errors say the same in one sentence, without tracebacks.
_LOGGERS: Final = ("distributed", "distributed.client", "tornado.application", "asyncio")
_REMEDY: Final = "nothing was replaced; run again"
#: The error with which Dask gives up a task.
_GIVEN_UP: Final = "distributed.scheduler.KilledWorker"
#: Its other errors, such as that of a connection which ended.
_FAILED: Final = re.compile(r"(?:asyncio|builtins|distributed)\.(?:\w+\.)*\w+Error", re.ASCII)
#: What Dask may decode for us: it would unpickle any other family, as it does by default.
_PLAIN: Final = ("msgpack",)


@contextmanager
def connected(address: str, patience_s: float = PATIENCE_S) -> Iterator["Cluster"]:
    """Connect to a scheduler, at an address that begins with `tcp://` or `tls://`, and wait until it has a worker.

    Raises ClusterError if either is impossible, ConfigError if Dask is not installed.
    """
    try:
        from distributed import Client  # noqa: PLC0415 - most sites need no cluster
    except ModuleNotFoundError as error:
        raise ConfigError("cluster is set but Dask is not installed; pip install 'public-markets[dask]'") from error
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with worker.refused() as refused:
        try:
            with _client(partial(Client, set_as_default=False, deserializers=_PLAIN), address) as client:
                yield Cluster(client, address, refused, patience_s)
        except Exception as error:
            if refused:
                raise _of_pickle(address, refused[0]) from error
            raise


@contextmanager
def _client(connect: Any, address: str) -> Iterator[Any]:
    """A client of Dask's, which has no types. Raises ClusterError if there is no scheduler."""
    client = _connection(connect, address)
    try:
        yield client
    finally:
        with suppress(OSError, TimeoutError, RuntimeError):
            client.close(timeout=POLL_S)


def _connection(connect: Any, address: str) -> Any:
    try:
        asyncio.run(_probe(connect, address))
        return connect(address, name="public-markets")
    # TypeError: there is no certificate. RuntimeError: Dask's configuration forbids plain text.
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = str(error) or "no answer"
        raise ClusterError(
            f"cluster: {address}: no Dask scheduler can be reached ({reason}); {_advice(address)}"
        ) from error


def _of_pickle(address: str, name: str) -> ClusterError:
    """The error after a pickle that names this was refused: whatever failed afterwards failed because of that."""
    if name == _GIVEN_UP:
        told = f"one worker after the other died while it ran the same task; check their logs and memory; {_REMEDY}"
        return ClusterError(f"cluster: {told}")
    if _FAILED.fullmatch(name):
        told = f"the scheduler {address} or a worker failed ({name}); check their logs; {_REMEDY}"
        return ClusterError(f"cluster: {told}")
    return ClusterError(
        f"cluster: the scheduler {address} or a worker sent a pickle that names {name!a}; it was not loaded, as it may "
        "run any code; nothing was replaced; find out who can reach the scheduler (see docs/cluster.md)"
    )


def _advice(address: str) -> str:
    if address.startswith("tls:"):
        names = " and ".join(f"DASK_DISTRIBUTED__COMM__TLS__{name}" for name in ("CA_FILE", "CLIENT__CERT"))
        return f"start one there, or correct the setting or the certificates ({names}, see docs/cluster.md)"
    return "start one there, or correct the setting; with TLS, its address begins with tls://"


async def _probe(connect: Any, address: str) -> None:
    """Connect once, with a timeout: to a server that is not a scheduler, a client would wait forever."""
    import dask  # noqa: PLC0415

    patience = dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))

    async def probe() -> None:
        probing = connect(address, asynchronous=True, timeout=patience)
        try:
            await probing
        finally:
            await probing.close()  # not every failure does so

    await asyncio.wait_for(probe(), patience + 1)


def _entry() -> Callable[..., bytes]:
    """What a worker calls: a nested function, which is pickled as code, not as a name that must be importable.

    So the scheduler needs no installation of this program, and a worker without one reports that instead of dying.
    """

    # Dask passes the worker under this name when it runs a function on all of them.
    def run(program: tuple[str, str], payload: bytes, dask_worker: Any = None) -> bytes:
        import json  # noqa: PLC0415

        from distributed import get_worker  # noqa: PLC0415

        address = (dask_worker or get_worker()).address
        try:
            from generator.cluster import worker  # noqa: PLC0415
        except ImportError as error:
            missing = f"worker {address} cannot import public-markets ({error})"
            remedy = "install it there with the extra `dask`; nothing was replaced; run again"
            return json.dumps({"told": f"{missing}; {remedy}"}).encode()
        return worker.run(program, payload, address)

    return run


@dataclass
class _Running(Generic[Key]):
    """A call that was sent."""

    key: Key
    call: Call
    attempt: int = 1


class Cluster:
    """A connected scheduler and its workers. `refused` gets what pickles from there named."""

    def __init__(
        self, client: Any, address: str, refused: Sequence[str] = (), patience_s: float = PATIENCE_S,
        poll_s: float = POLL_S,
    ) -> None:  # fmt: skip
        self._client = client
        self._address = address
        self._refused = refused
        self._patience_s, self._poll_s = patience_s, poll_s
        self._require_workers()
        self._require_python()

    def threads(self) -> int:
        """How many calls the workers can run at once now; at least 1."""
        return max(1, sum(self._threads().values()))

    def _threads(self) -> dict[str, int]:
        """The number of threads of each worker, by its address."""
        with self._asking():
            threads: dict[str, int] = self._client.nthreads()
        return threads

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn the errors of asking a scheduler that has gone into ours; as an OSError, they would blame the disk."""
        try:
            yield
        except (OSError, RuntimeError) as error:
            raise self._gone() from error

    def _gone(self) -> ClusterError:
        return ClusterError(f"cluster: the scheduler {self._address} went away; {_REMEDY}")

    def everywhere(self, call: Call) -> dict[str, PublicMarketsError | None]:
        """Run a call once on each worker; return its error, or None, by the worker's address. Raises ClusterError."""
        try:
            found: dict[str, object] = self._client.run(_entry(), this_program()[:], _pickled(call))
        except Exception as error:
            raise ClusterError(
                f"cluster: {type(error).__name__}: {printable(error)}; check the workers' logs"
            ) from error
        answers = {address: _answer(body) for address, body in found.items()}
        return {address: answer.error if isinstance(answer, Failure) else None for address, answer in answers.items()}

    def results(self, calls: Iterable[tuple[Key, Call]], expected_bytes: int) -> Iterator[tuple[Key, bytes]]:
        """Run calls, each with a key; yield keys and results in the order of completion.

        `expected_bytes` is the assumed size of a result until some have arrived. Raises the error of a call, or
        ClusterError.
        """
        executor = self._client.get_executor(pure=False)  # or equal calls would run once
        flow = _Flow[Key](executor, iter(calls), expected_bytes, _AHEAD * self.threads())
        try:
            while flow.fill():
                done, _ = wait(flow.running, timeout=self._poll_s, return_when=FIRST_COMPLETED)
                if self._refused:
                    raise self._gone()
                if not done:
                    self._require_workers()
                for future in done:
                    yield from flow.take(future, self._body(future))
        finally:
            for future in flow.running:
                future.cancel()

    def _body(self, future: "Future[object]") -> object:
        try:
            return future.result()
        except CancelledError as error:
            raise self._gone() from error
        except Exception as error:
            # An error of Dask itself: those of calls are returned as results.
            raise ClusterError(f"cluster: {type(error).__name__}: {printable(error)}; {_REMEDY}") from error

    def _require_workers(self) -> None:
        """Wait for a worker if there is none. Raises ClusterError if none joins, or a pickle is refused meanwhile."""
        left_s = self._patience_s
        while not self._threads():
            if self._refused:  # which tells why there is none
                raise self._gone()
            if left_s <= 0:
                raise ClusterError(
                    f"cluster: the scheduler {self._address} has no worker, and none joined within "
                    f"{self._patience_s:g} s; start some, and check the logs of those that exited; {_REMEDY}"
                )
            with self._asking(), suppress(TimeoutError):
                self._client.wait_for_workers(1, timeout=min(self._poll_s, left_s))
            left_s -= self._poll_s

    def _require_python(self) -> None:
        """Refuse workers on another version of Python, which could not unpickle the calls. Raises ClusterError."""
        with self._asking():
            versions = self._client.get_versions()
        here = _python(versions["client"])
        for address, found in versions["workers"].items():
            if _python(found) != here:
                raise ClusterError(
                    f"worker {printable(address)} runs Python {_python(found)}, but the coordinator runs {here}; "
                    "install the same version on both"
                )


def _python(versions: Any) -> str:
    return ".".join(printable(versions["host"]["python"]).split(".")[:2])


def _pickled(call: Call) -> bytes:
    return pickle.dumps(call, pickle.HIGHEST_PROTOCOL)


def _answer(body: object) -> bytes | Failure:
    """What a call returned, or why it did not. Raises ClusterError."""
    if isinstance(body, bytes) and len(body) <= _LARGEST:
        if body.startswith(RESULT):
            return body[len(RESULT) :]
        with suppress(ValidationError):
            return Failure.model_validate_json(body)
    raise ClusterError(f"cluster: a worker returned something else than its task does; {_REMEDY}")


class _Flow(Generic[Key]):
    """Calls in flight: enough to keep the workers busy, and few enough that there is room for all their results."""

    def __init__(self, executor: Executor, calls: Iterator[tuple[Key, Call]], expected_bytes: int, most: int) -> None:
        self.running: dict[Future[object], _Running[Key]] = {}
        self._executor = executor
        self._calls = calls
        self._largest = max(1, expected_bytes)
        self._most = most
        self._entry = _entry()

    def fill(self) -> bool:
        """Send calls while there is room; return whether any are in flight."""
        while len(self.running) < self._room():
            following = next(self._calls, None)
            if following is None:
                break
            self._send(_Running(*following))
        return bool(self.running)

    def _room(self) -> int:
        return min(self._most, max(1, WAITING_BYTES // self._largest))

    def _send(self, running: _Running[Key]) -> None:
        future: Future[object] = self._executor.submit(self._entry, this_program()[:], _pickled(running.call))
        self.running[future] = running

    def take(self, future: "Future[object]", body: object) -> Iterator[tuple[Key, bytes]]:
        """Yield the result that has arrived; nothing if the call is tried again. Raises the call's error."""
        running = self.running.pop(future)
        answer = _answer(body)
        if not isinstance(answer, Failure):
            # Decays, because sizes change in the course of a build: one large result must not slow down all later ones.
            self._largest = max(len(answer), self._largest * 9 // 10, 1)
            yield running.key, answer
        elif answer.may_pass and running.attempt < ATTEMPTS:
            self._send(_Running(running.key, running.call, running.attempt + 1))
        else:
            raise answer.error
