"""The two clients: they send what the plans of `site` ask for, one at once and one asynchronously."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, closing
from functools import partial, wraps
from io import BytesIO
from typing import Any, BinaryIO, Concatenate, ParamSpec

import httpx

from public_markets_client.decoding import T
from public_markets_client.requester import MOST_BYTES, OK, Answer, Call, Options, Plan, Requester, Wait
from public_markets_client.site import Site

P = ParamSpec("P")
#: What httpx raises for a request that cannot be sent or answered.
_PROBLEMS = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError)


class _Base:
    """What both clients have: the options, the plans for a site, and what is done with each answer."""

    def __init__(self, base_url: str, options: Options | None, http: Any) -> None:
        self._options, self._is_owner = options or Options(), http is None
        self._site = Site(base_url, Requester(self._options))

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


def _failed(call: Call, error: Exception) -> Answer:
    if isinstance(error, httpx.DecodingError):
        return Answer(call.url, OK)  # a body, but not one that can be read
    if isinstance(error, httpx.TimeoutException):
        return Answer(call.url, problem="took too long")
    return Answer(call.url, problem=f"cannot be read ({str(error) or type(error).__name__})")


def _one(plan: Callable[Concatenate[Site, P], Plan[T]]) -> Callable[Concatenate["Client", P], T]:
    @wraps(plan)
    def method(client: "Client", /, *arguments: P.args, **named: P.kwargs) -> T:
        (found,) = client._each(plan(client._site, *arguments, **named))  # noqa: SLF001 - a method
        return found

    return method


def _many(plan: Callable[Concatenate[Site, P], Plan[T]]) -> Callable[Concatenate["Client", P], Iterator[T]]:
    @wraps(plan)
    def method(client: "Client", /, *arguments: P.args, **named: P.kwargs) -> Iterator[T]:
        return client._each(plan(client._site, *arguments, **named))  # noqa: SLF001 - a method

    return method


class Client(_Base, AbstractContextManager["Client"]):
    """A client of one site, to be used in a `with`: every method returns when the answer is there.

    All methods raise ClientError. `http` is used instead of a client of httpx with the usual settings, and not closed.
    """

    def __init__(self, base_url: str, options: Options | None = None, http: httpx.Client | None = None) -> None:
        super().__init__(base_url, options, http)
        self._http = http or httpx.Client(**self._settings())

    def __exit__(self, *_: object) -> None:
        if self._is_owner:
            self._http.close()

    market, snapshot, build, prices = _one(Site.market), _one(Site.snapshot), _one(Site.build), _one(Site.prices)
    markets, dump, follow = _many(Site.markets), _many(Site.dump), _many(Site.follow)
    latest_changes = _many(Site.latest_changes)

    def _each(self, plan: Plan[T]) -> Generator[T, None, None]:
        answer = None
        with closing(plan):
            while steps := _sent(plan, answer):
                (step,), answer = steps, None
                if isinstance(step, Call):
                    answer = self._send(step)
                elif isinstance(step, Wait):
                    time.sleep(step.seconds)
                else:
                    yield step

    def _send(self, call: Call) -> Answer:
        try:
            with self._http.stream("GET", call.url, headers=dict(call.headers)) as response:
                body = _empty(call)
                for piece in response.iter_raw() if call.file else response.iter_bytes():
                    if self._has_enough(call, body, piece):
                        break
            return _answer(call, response, body)
        except _PROBLEMS as error:
            return _failed(call, error)


def _async_one(
    plan: Callable[Concatenate[Site, P], Plan[T]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    @wraps(plan)
    async def method(client: "AsyncClient", /, *arguments: P.args, **named: P.kwargs) -> T:
        (found,) = [one async for one in client._each(plan(client._site, *arguments, **named))]  # noqa: SLF001 - a method
        return found

    return method


def _async_many(
    plan: Callable[Concatenate[Site, P], Plan[T]],
) -> Callable[Concatenate["AsyncClient", P], AsyncIterator[T]]:
    @wraps(plan)
    def method(client: "AsyncClient", /, *arguments: P.args, **named: P.kwargs) -> AsyncIterator[T]:
        return client._each(plan(client._site, *arguments, **named))  # noqa: SLF001 - a method

    return method


class AsyncClient(_Base, AbstractAsyncContextManager["AsyncClient"]):
    """The same for asyncio, to be used in an `async with`: methods are awaited, or iterated by `async for`.

    What plans do between requests, such as to read and write files, they do in threads.
    """

    def __init__(self, base_url: str, options: Options | None = None, http: httpx.AsyncClient | None = None) -> None:
        super().__init__(base_url, options, http)
        self._http = http or httpx.AsyncClient(**self._settings())

    async def __aexit__(self, *_: object) -> None:
        if self._is_owner:
            await self._http.aclose()

    market, snapshot = _async_one(Site.market), _async_one(Site.snapshot)
    build, prices = _async_one(Site.build), _async_one(Site.prices)
    markets, dump, follow = _async_many(Site.markets), _async_many(Site.dump), _async_many(Site.follow)
    latest_changes = _async_many(Site.latest_changes)

    async def _each(self, plan: Plan[T]) -> AsyncGenerator[T, None]:
        answer = None
        with closing(plan):
            # An answer may be a file to read and to store; the steps after a result take a moment each.
            while steps := await asyncio.to_thread(partial(_sent, plan, answer)) if answer else _sent(plan, None):
                (step,), answer = steps, None
                if isinstance(step, Call):
                    answer = await self._send(step)
                elif isinstance(step, Wait):
                    await asyncio.sleep(step.seconds)
                else:
                    yield step

    async def _send(self, call: Call) -> Answer:
        try:
            async with self._http.stream("GET", call.url, headers=dict(call.headers)) as response:
                body = _empty(call)
                async for piece in response.aiter_raw() if call.file else response.aiter_bytes():
                    if self._has_enough(call, body, piece):
                        break
            return _answer(call, response, body)
        except _PROBLEMS as error:
            return _failed(call, error)


def _sent(plan: Plan[T], answer: Answer | None) -> list[Call | Wait | T]:
    """The next step of a plan; none at its end. No StopIteration can leave a thread or a coroutine."""
    try:
        return [plan.send(answer)]
    except StopIteration:
        return []
