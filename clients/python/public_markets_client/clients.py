"""The two clients: the operations of `site` in an event loop, and the same at once."""

import asyncio
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, suppress
from functools import wraps
from http.cookiejar import CookieJar, DefaultCookiePolicy
from io import BytesIO
from typing import Any, Concatenate, ParamSpec, cast

import httpx

from public_markets_client.decoding import T
from public_markets_client.errors import AnswerError, UnavailableError
from public_markets_client.requester import MOST_BYTES, OK, Answer, Call, Options
from public_markets_client.site import Site

P = ParamSpec("P")
_TOO_LONG = f"has more than {MOST_BYTES >> 20} MB"
#: The bytes of an error that are read.
_MOST_SAID = 64 << 10
_PIECE = 64 << 10
#: An answer that begins, and the pieces of its body.
_Begun = tuple[httpx.Response, AsyncIterator[bytes]]


def _settings(options: Options) -> Any:
    # Sites need no cookies, and whatever they send would be kept.
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    return {"timeout": options.timeout, "cookies": cookies, "headers": {"User-Agent": "public-markets-client"}}


def _headers(call: Call) -> Any:
    return {"Accept-Encoding": "gzip", **call.headers}


class _HttpSite(Site):
    """What both ways to send have in common: what becomes of an answer."""

    def _begin(self, call: Call) -> AbstractAsyncContextManager[_Begun]:
        raise NotImplementedError

    async def _send(self, call: Call) -> Answer:
        try:
            async with self._begin(call) as (response, pieces):
                is_good = response.status_code == OK
                try:
                    body = await self._body(call, response, pieces)
                except AnswerError:
                    # What is wrong with an error does not matter.
                    if is_good:
                        raise
                    body = b""
        except httpx.TimeoutException:
            raise UnavailableError("took too long; try again later") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError) as error:
            raise UnavailableError(f"cannot be read ({str(error) or type(error).__name__}); try again later") from None
        return Answer(response.status_code, response.headers, body)

    async def _body(self, call: Call, response: httpx.Response, pieces: AsyncIterator[bytes]) -> bytes:
        """What is in the body, unless it goes into the file of the call."""
        is_good, file = response.status_code == OK, call.file if response.status_code == OK else None
        most, problem = (call.most, "is longer than the head says") if file else (MOST_BYTES, _TOO_LONG)
        most = most if is_good else _MOST_SAID
        # What made-up answers of tests have was decoded already.
        named = "" if response.is_stream_consumed else response.headers.get("content-encoding", "")
        inflated, body, received = _inflating(named.strip().lower(), is_file=bool(file)), file or BytesIO(), 0
        body.seek(0)
        body.truncate()
        async for piece in pieces:
            # What comes is counted, too: not all of it must become anything.
            received += len(piece)
            for part in inflated(piece):
                if max(received, body.tell() + body.write(part)) > most:
                    raise AnswerError(problem)
            if file and self._options.progress:
                self._options.progress(body.tell(), most)
        for _ in inflated(b""):
            pass
        body.seek(0)
        return b"" if file else body.read()


def _inflating(coding: str, *, is_file: bool) -> Callable[[bytes], Iterator[bytes]]:
    """What makes of each piece of a body, and at last of b"", its parts without the Content-Encoding.

    They are short, however much there is in a piece.
    """
    if coding in {"", "identity"}:
        return lambda piece: iter([piece])
    if is_file or coding not in {"gzip", "x-gzip"}:
        raise AnswerError(f"has the Content-Encoding {coding[:20]}, which cannot be read")
    members = list[Any]()

    def inflated(piece: bytes) -> Iterator[bytes]:
        left = piece
        while left:
            if not members or members[-1].eof:
                # Several in a row are one text.
                members[:] = [zlib.decompressobj(16 + zlib.MAX_WBITS)]
            try:
                yield members[-1].decompress(left, _PIECE)
            except zlib.error:
                raise AnswerError("cannot be decompressed") from None
            left = members[-1].unconsumed_tail or members[-1].unused_data
        if not piece and members and not members[-1].eof:
            raise AnswerError("cannot be decompressed")

    return inflated


class AsyncClient(_HttpSite, AbstractAsyncContextManager["AsyncClient"]):
    """A client of one site for asyncio, to be used in an `async with`: methods are awaited, or iterated by `async for`.

    All methods raise ClientError. `http` is used instead of a client of httpx with the usual settings, and not closed.
    Files are checked and copies changed in threads.
    """

    def __init__(self, base_url: str, options: Options | None = None, http: httpx.AsyncClient | None = None) -> None:
        super().__init__(base_url, options)
        self._is_owner, self._http = http is None, http or httpx.AsyncClient(**_settings(self._options))

    async def __aexit__(self, *_: object) -> None:
        if self._is_owner:
            await self._http.aclose()

    @asynccontextmanager
    async def _begin(self, call: Call) -> AsyncGenerator[_Begun, None]:
        async with self._http.stream("GET", call.url, headers=_headers(call), follow_redirects=False) as response:
            yield response, response.aiter_bytes() if response.is_stream_consumed else response.aiter_raw()

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _apart(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)


class _BlockingSite(_HttpSite):
    """The same without an event loop: nothing in it is ever left waiting."""

    def __init__(self, base_url: str, options: Options | None, http: httpx.Client | None) -> None:
        super().__init__(base_url, options)
        self.is_owner, self.http = http is None, http or httpx.Client(**_settings(self._options))

    @asynccontextmanager
    async def _begin(self, call: Call) -> AsyncGenerator[_Begun, None]:
        with self.http.stream("GET", call.url, headers=_headers(call), follow_redirects=False) as response:
            yield response, _in_turn(response.iter_bytes() if response.is_stream_consumed else response.iter_raw())

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - there is no event loop

    async def _apart(self, work: Callable[[], T]) -> T:
        return work()


async def _in_turn(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _result(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that never waits for an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast("T", end.value)
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
            with suppress(StopAsyncIteration):
                while True:
                    yield _result(found.__anext__())
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
