"""The two clients: the operations of `site` in an event loop, and the same at once."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import wraps
from io import BytesIO
from typing import Any, BinaryIO, Concatenate, ParamSpec

import httpx

from public_markets_client.decoding import T
from public_markets_client.errors import AnswerError, ClientError, UnavailableError
from public_markets_client.requester import MOST_BYTES, OK, Answer, Call, Options
from public_markets_client.site import Site

P = ParamSpec("P")
#: What httpx raises for a request that cannot be sent or answered.
_PROBLEMS = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError)


class _HttpSite(Site):
    """What both ways to send have in common."""

    def _settings(self) -> dict[str, Any]:
        headers = {"User-Agent": "public-markets-client", "Accept": "application/json, */*"}
        return {"follow_redirects": True, "timeout": self._options.timeout, "headers": headers}

    def _has_enough(self, call: Call, body: BinaryIO, piece: bytes) -> bool:
        """Keep a piece of a body; whether the body is longer than it may be."""
        body.write(piece)
        if call.file and self._options.progress:
            self._options.progress(body.tell(), call.most)
        return body.tell() > call.most


def _empty(call: Call) -> BinaryIO:
    """Where the body of an answer goes."""
    body = call.file or BytesIO()
    body.seek(0)
    body.truncate()
    return body


def _answer(call: Call, response: httpx.Response, body: BinaryIO) -> Answer:
    body.seek(0)
    is_file = call.file is not None and response.status_code == OK
    return Answer(call.url, response.status_code, response.headers, b"" if is_file else body.read(MOST_BYTES + 1))


def _failure(call: Call, error: Exception) -> ClientError:
    if isinstance(error, httpx.DecodingError):
        return AnswerError("cannot be decompressed", url=call.url)
    is_late = isinstance(error, httpx.TimeoutException)
    reason = "took too long" if is_late else f"cannot be read ({str(error) or type(error).__name__})"
    return UnavailableError(f"{reason}; try again later", url=call.url)


class AsyncClient(_HttpSite, AbstractAsyncContextManager["AsyncClient"]):
    """A client of one site for asyncio, to be used in an `async with`: methods are awaited, or iterated by `async for`.

    All methods raise ClientError. `http` is used instead of a client of httpx with the usual settings, and not closed.
    Files are checked and copies changed in threads.
    """

    def __init__(self, base_url: str, options: Options | None = None, http: httpx.AsyncClient | None = None) -> None:
        super().__init__(base_url, options)
        self._is_owner, self._http = http is None, http or httpx.AsyncClient(**self._settings())

    async def __aexit__(self, *_: object) -> None:
        if self._is_owner:
            await self._http.aclose()

    async def _send(self, call: Call) -> Answer:
        try:
            async with self._http.stream("GET", call.url, headers=dict(call.headers)) as response:
                body = _empty(call)
                async for piece in response.aiter_raw() if call.file else response.aiter_bytes():
                    if self._has_enough(call, body, piece):
                        break
            return _answer(call, response, body)
        except _PROBLEMS as error:
            raise _failure(call, error) from None

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _apart(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)


class _BlockingSite(_HttpSite):
    """The same without an event loop: nothing in it is ever left waiting."""

    def __init__(self, base_url: str, options: Options | None, http: httpx.Client | None) -> None:
        super().__init__(base_url, options)
        self.is_owner, self.http = http is None, http or httpx.Client(**self._settings())

    async def _send(self, call: Call) -> Answer:
        try:
            with self.http.stream("GET", call.url, headers=dict(call.headers)) as response:
                body = _empty(call)
                for piece in response.iter_raw() if call.file else response.iter_bytes():
                    if self._has_enough(call, body, piece):
                        break
            return _answer(call, response, body)
        except _PROBLEMS as error:
            raise _failure(call, error) from None

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - there is no event loop

    async def _apart(self, work: Callable[[], T]) -> T:
        return work()


def _result(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that never waits for an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("it waits for an event loop")


def _one(method: Callable[Concatenate[Site, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate["Client", P], T]:
    @wraps(method)
    def at_once(client: "Client", /, *arguments: P.args, **named: P.kwargs) -> T:
        return _result(method(client.site, *arguments, **named))

    return at_once


def _many(
    method: Callable[Concatenate[Site, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate["Client", P], Iterator[T]]:
    @wraps(method)
    def at_once(client: "Client", /, *arguments: P.args, **named: P.kwargs) -> Iterator[T]:
        found = method(client.site, *arguments, **named)
        try:
            while True:
                yield _result(found.__anext__())
        except StopAsyncIteration:
            return
        finally:
            _result(found.aclose())

    return at_once


class Client(AbstractContextManager["Client"]):
    """The same as `AsyncClient`, to be used in a `with`: every method returns when the answer is there."""

    def __init__(self, base_url: str, options: Options | None = None, http: httpx.Client | None = None) -> None:
        self.site = _BlockingSite(base_url, options, http)

    def __exit__(self, *_: object) -> None:
        if self.site.is_owner:
            self.site.http.close()

    market, snapshot, build, prices = _one(Site.market), _one(Site.snapshot), _one(Site.build), _one(Site.prices)
    markets, dump, follow = _many(Site.markets), _many(Site.dump), _many(Site.follow)
    latest_changes = _many(Site.latest_changes)
