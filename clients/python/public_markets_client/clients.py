"""The two clients: the operations of `site` in an event loop, and the same at once."""

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, suppress
from functools import partial, wraps
from gzip import GzipFile
from http.cookiejar import CookieJar, DefaultCookiePolicy
from io import BytesIO
from typing import Any, BinaryIO, Concatenate, ParamSpec, cast

import httpx

from public_markets_client import __version__
from public_markets_client.decoding import T
from public_markets_client.errors import AnswerError, ClientError, DamagedError, NoSiteError, UnavailableError
from public_markets_client.requester import MOST_BYTES, OK, Answer, Call, Options
from public_markets_client.site import Site

P = ParamSpec("P")
_TOO_LONG = f"has more than {MOST_BYTES >> 20} MB"
_AGENT = {"User-Agent": f"public-markets-client/{__version__}"}
#: An answer that begins, and the pieces of its body.
_Begun = tuple[httpx.Response, AsyncIterator[bytes]]


def _settings(options: Options) -> Any:
    # Sites need no cookies, and whatever they send would be kept.
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    return {"timeout": options.timeout, "cookies": cookies, "headers": _AGENT}


class _HttpSite(Site):
    """What both ways to send have in common: what becomes of an answer."""

    _begin: Callable[[Call], AbstractAsyncContextManager[_Begun]]

    async def _send(self, call: Call) -> Answer:
        body = b""
        try:
            async with self._begin(call) as (response, pieces):
                # What is wrong with the body of an error does not matter.
                with suppress(*() if response.status_code == OK else (AnswerError,)):
                    body = await self._body(call, response, pieces)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not self.is_closed:
                raise  # it is of who is told of progress
            raise self._failure(error) from None
        return Answer(response.status_code, response.headers, body)

    def _failure(self, error: Exception) -> ClientError:
        """What a request without an answer comes to; a wrong address stays so, and so does a certificate."""
        cause: BaseException = error
        while deeper := cause.__cause__ or cause.__context__:
            cause = deeper
        is_unnamed = isinstance(cause, socket.gaierror) and cause.errno != socket.EAI_AGAIN
        # Other errors of TLS are of connections that have ended.
        is_untrusted = type(cause) in {ssl.SSLError, ssl.SSLCertVerificationError}
        reason = str(error) or type(error).__name__
        if (is_unnamed or is_untrusted or isinstance(error, httpx.InvalidURL | ValueError)) and not self._is_site:
            return NoSiteError(f"{self._base} ({reason})")
        return UnavailableError(f"cannot be read ({reason}); try again later")

    async def _body(self, call: Call, response: httpx.Response, pieces: AsyncIterator[bytes]) -> bytes:
        """What is in the body, unless it goes into the file of the call."""
        file = call.file if response.status_code == OK else None
        most, problem = (call.most, "is longer than the head says") if file else (MOST_BYTES, _TOO_LONG)
        # What made-up answers of tests have was decoded already.
        named = "" if response.is_stream_consumed else response.headers.get("content-encoding", "")
        is_plain = (coding := named.strip().lower()) in {"", "identity"}
        if not is_plain and (file or coding not in {"gzip", "x-gzip"}):
            raise AnswerError(f"has the Content-Encoding {coding[:20]}, which cannot be read")
        body = file or BytesIO()
        body.seek(0)
        body.truncate()
        async for piece in pieces:
            if body.tell() + body.write(piece) > most:
                raise AnswerError(problem)
            if file and self._options.progress:
                self._options.progress(body.tell(), most)
        body.seek(0)
        if is_plain:
            return b"" if file else body.read()
        return await self._apart(partial(_decompressed, body, most))


def _decompressed(body: BinaryIO, most: int) -> bytes:
    """The text of a gzip file; raise AnswerError if that has more bytes than it may."""
    try:
        text = GzipFile(fileobj=body).read(most + 1)
    except (OSError, EOFError, zlib.error):
        raise DamagedError("cannot be decompressed") from None
    if len(text) > most:
        raise AnswerError(_TOO_LONG)
    return text


class AsyncClient(_HttpSite, AbstractAsyncContextManager["AsyncClient"]):
    """A client of one site for asyncio, to be used in an `async with`: methods are awaited, or iterated by `async for`.

    All methods raise ClientError. `http` is used instead of a client of httpx with the usual settings, and not closed.
    Files are checked and copies changed in threads.
    """

    def __init__(self, base_url: str, options: Options | None = None, http: httpx.AsyncClient | None = None) -> None:
        super().__init__(base_url, options)
        self.is_owner, self.http = http is None, http or httpx.AsyncClient(**_settings(self._options))

    async def aclose(self) -> None:
        """Close the connections; whatever is asked after that raises ClientError."""
        self.is_closed = True
        if self.is_owner:
            await self.http.aclose()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @asynccontextmanager
    async def _begin(self, call: Call) -> AsyncGenerator[_Begun, None]:
        async with self.http.stream("GET", call.url, headers=call.headers, follow_redirects=False) as response:
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
        with self.http.stream("GET", call.url, headers=call.headers, follow_redirects=False) as response:
            yield response, _in_turn(response.iter_bytes() if response.is_stream_consumed else response.iter_raw())


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

    def close(self) -> None:
        """Close the connections; whatever is asked after that raises ClientError."""
        self.site.is_closed = True
        if self.site.is_owner:
            self.site.http.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    market, snapshot, build, prices = _one(Site.market), _one(Site.snapshot), _one(Site.build), _one(Site.prices)
    question, questions, latest_changes = _one(Site.question), _many(Site.questions), _many(Site.latest_changes)
    index, step_times, dated_changes = _one(Site.index), _one(Site.step_times), _many(Site.dated_changes)
    markets, dump, follow = _many(Site.markets), _many(Site.dump), _many(Site.follow)
