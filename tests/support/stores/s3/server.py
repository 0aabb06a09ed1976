"""An S3 server in a thread of the test that fails on demand. It checks no signatures."""

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, ParamSpec, Self, TypeVar

from tests.support.stores.s3 import api as s3_api
from tests.support.stores.s3.behaviour import CONFLICT, DENIED, Behaviour, Fault, Lots
from tests.support.stores.s3.bucket import Bucket
from tests.support.stores.s3.wire import Answer, Request, error, receive, serialised, truncated

BUCKET: Final = "markets"
_NOTHING: Final = Answer(204)
_P = ParamSpec("_P")
_T = TypeVar("_T")

#: What a request meets, or what is to be called for that.
Met = Fault | Callable[[], Fault | None] | None
#: Called in a thread of its own before a request takes effect: it may wait, ask the server, and return a fault.
#: One that is `prompt` is called without a thread; it does all this in what it returns.
Before = Callable[[Request], Met]
#: Called in the same ways when a request has taken effect, before it is answered.
After = Callable[[Request, Answer], object]


@dataclass(frozen=True, slots=True)
class Entry:
    """A log entry for a request. Entries are in the order in which requests took effect."""

    operation: str
    key: str
    condition: str
    #: None: the connection was cut.
    status: int | None


class S3Server:
    """One bucket behind HTTP. Behaviour, clock and hooks may be changed while it runs, from any thread."""

    name: Final = BUCKET

    def __init__(self, *, seed: int = 0) -> None:
        self.behaviour: Final = Behaviour()
        self.clock: Callable[[], float] = time.time
        self.before: Before | None = None
        self.after: After | None = None
        self.log: list[Entry] = []
        self.bucket = Bucket(self.behaviour, self._now)
        self.port = 0
        self._lots = Lots(seed)
        self._requests_by_key_id: Counter[str] = Counter()
        self._broken: list[BaseException] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="s3-server", daemon=True)

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.port}"

    def objects(self) -> dict[str, tuple[bytes, Mapping[str, str]]]:
        """All current objects: body and headers by key."""
        return {key: (version.body, version.headers) for key, version in self.bucket.current().items()}

    def count(self, operation: str) -> int:
        """The number of requests of this kind so far."""
        return sum(entry.operation == operation for entry in self.log)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, _: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if raised is None and self._broken:
            raise self._broken[0]

    def _now(self) -> float:
        return self.clock() + self.behaviour.clock_offset_s

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=256)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _hang_up(self) -> None:
        self._listener.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await asyncio.sleep(0)  # lets the sockets be closed

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection in order."""
        try:
            while request := await receive(reader, writer):
                answer, is_cut = await self._answer(request)
                writer.write(answer)
                await writer.drain()
                if is_cut:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client is gone, or we are
        except BaseException as broken:  # noqa: BLE001 - a hook may fail its test, which runs in another thread
            self._broken.append(broken)
        finally:
            with suppress(OSError):  # closing is not enough where a forked process has the socket, too
                writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            writer.transport.abort()

    async def _answer(self, request: Request) -> tuple[bytes, bool]:
        """The bytes to send, and whether to cut the connection then."""
        if self.behaviour.latency_s:
            await asyncio.sleep(self.behaviour.latency_s)
        fault = await self._fault(request)
        if fault and not fault.applied:
            self._note(request, fault.status)
            return self._sent(request, fault)
        answer = s3_api.applied(self.bucket, request, self._fails_to_delete)
        self._note(request, fault.status if fault else answer.status)
        if self.after:
            await _told(self.after, request, answer)
        return self._sent(request, fault, answer)

    def _sent(self, request: Request, fault: Fault | None, answer: Answer = _NOTHING) -> tuple[bytes, bool]:
        if fault is None:
            return serialised(answer, request, self._now()), False
        if fault.status is not None:
            is_foreign = fault.page or fault.headers
            foreign = Answer(fault.status, fault.page.encode(), fault.headers)
            refusal = foreign if is_foreign else error(fault.status, fault.code, "Requested by the test.")
            return serialised(refusal, request, self._now()), False
        return truncated(answer, request, self._now()) if fault.truncated else b"", True

    def _note(self, request: Request, status: int | None) -> None:
        self.log.append(Entry(request.operation, request.key, request.condition, status))

    async def _fault(self, request: Request) -> Fault | None:
        if self.before and (fault := await _told(self.before, request)):
            return fault
        return self._refusal(request) or self._drawn(request)

    def _refusal(self, request: Request) -> Fault | None:
        """The error of a well-behaved server in this configuration."""
        if request.bucket != self.name:
            return Fault(404, "NoSuchBucket")
        key_id = request.key_id
        if key_id is None:
            return None if self.behaviour.open_to_everyone else DENIED
        self._requests_by_key_id[key_id] += 1
        limit = self.behaviour.expire_after
        if limit is not None and self._requests_by_key_id[key_id] > limit:
            return Fault(400, "ExpiredToken")
        if self.behaviour.refuses_lists and request.operation.startswith("List"):
            return DENIED
        is_unsummed = request.operation == "DeleteObjects" and "content-md5" not in request.headers
        return Fault(400, "MissingContentMD5") if self.behaviour.wants_content_md5 and is_unsummed else None

    def _drawn(self, request: Request) -> Fault | None:
        shares = self.behaviour.shares
        fault = self._lots.fault(shares, request.operation, request.key) if shares else None
        return None if fault is CONFLICT and not request.condition else fault

    def _fails_to_delete(self, key: str) -> str:
        share = self.behaviour.delete_errors
        return self.behaviour.delete_code if share > 0 and self._lots.draw("delete", key) < share else ""


def prompt(hook: Callable[_P, _T]) -> Callable[_P, _T]:
    """Mark a hook that never waits."""
    hook.is_prompt = True  # type: ignore[attr-defined]
    return hook


async def _told(hook: Callable[_P, "_T | Callable[[], _T]"], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """What the hook returns in the end."""
    is_prompt = getattr(hook, "is_prompt", False)
    found = hook(*args, **kwargs) if is_prompt else await _in_thread(hook, *args, **kwargs)
    return await _in_thread(found) if callable(found) else found


async def _in_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Like asyncio.to_thread, whose pool would have hooks that wait for each other wait forever."""
    future: Future[_T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = function(*args, **kwargs)
        except BaseException as broken:  # noqa: BLE001 - it is raised again where it is awaited
            future.set_exception(broken)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="s3-server-hook", daemon=True).start()
    return await asyncio.wrap_future(future)
