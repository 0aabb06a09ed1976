"""What to ask a site and when to ask again; `clients` does the sending and waiting, at once or in an event loop."""

import email.utils
import json
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, takewhile
from typing import Any, BinaryIO
from urllib.parse import SplitResult, urljoin, urlsplit

from public_markets_client import errors
from public_markets_client.decoding import T, decoded

#: The largest answer that is kept in memory, in bytes, and all that are kept to ask whether they have changed; dumps
#: and steps are written to files.
MOST_BYTES = 16 << 20
OK, NOT_MODIFIED, NOT_FOUND = 200, 304, 404
#: 304 among them, where nobody asked whether anything has changed.
_TEMPORARY = frozenset({NOT_MODIFIED, 408, 425, 429, 500, 502, 503, 504})
#: What goes wrong when JSON is not what it should be.
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
#: How many answers are kept, and how many redirects are followed. A longer ETag could not be sent back.
_MOST_KEPT, _MOST_REDIRECTS, _LONGEST_ETAG = 100, 5, 200
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": ":80", "https": ":443"}
#: Python alone would take NaN for JSON; `int` refuses it, and Infinity.
JSON = json.JSONDecoder(parse_constant=int)


@dataclass(frozen=True)
class Call:
    """A GET. The body is in memory if there is no `file`.

    A file has `most` bytes at most; `is_search` tells that the smaller limit of searches applies.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    file: BinaryIO | None = None
    most: int = MOST_BYTES
    is_search: bool = False


@dataclass(frozen=True)
class Answer:
    """What came back; `headers` are asked for by names in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Options:
    """How a client behaves.

    `timeout`: seconds without a byte until a request has failed. The site takes so many `requests` from an address in
    `window` seconds, and so many `searches` among them. A request is sent as often as `tries`, after `pause` seconds,
    then twice as long each time; the site's Retry-After goes before, and one of more than `patience` seconds is an
    error at once. `cache` has ETag and body of what was read last, by address; None asks unconditionally. `hosts` are
    asked besides the site's own, each with its port unless it is the usual one. No file has more bytes, decompressed,
    than `largest_file`. `progress` is told the bytes of a file so far, and how many it has.
    """

    timeout: float = 30.0
    requests: int = 300
    searches: int = 30
    window: float = 60.0
    tries: int = 6
    pause: float = 0.5
    patience: float = 120.0
    cache: MutableMapping[str, tuple[str, bytes]] | None = field(default_factory=dict)
    hosts: Collection[str] = ()
    largest_file: int = 2 << 30
    progress: Callable[[int, int], None] | None = None


class Requester:
    """Sends a site each request as often as it takes, within the limits, and reads its answer.

    `base_url` is the address before `/v1`.
    """

    def __init__(self, base_url: str, options: Options | None) -> None:
        self._base, self._options = site_address(base_url), options or Options()
        self._site = _split(self._base)
        #: Whether it has answered as a site does; before that, what is no JSON comes from another server.
        self._is_site = self.is_closed = False
        self._sent = deque[float](maxlen=self._options.requests)
        self._searched = deque[float](maxlen=self._options.searches)

    def _url(self, path: str) -> str:
        return f"{self._base}/v1/{path}"

    #: Returns the answer to a call, or raises ClientError if there is no whole one.
    _send: Callable[[Call], Awaitable[Answer]]

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - who has an event loop waits in it

    async def _apart(self, work: Callable[[], T]) -> T:
        """Do what takes long; where there is an event loop, without keeping it waiting."""
        return work()

    async def _ask(self, call: Call, read: Callable[[Answer], T]) -> T:
        """What `read` makes of the answer; raise ClientError if there is none that it can read."""
        for attempt in takewhile(lambda _: not self.is_closed, count(1)):
            try:
                return await self._apart(partial(self._read, call, await self._answer(call), read))
            except errors.ClientError as error:
                error.url = error.url or call.url
                told = error.retry_after if isinstance(error, errors.UnavailableError) else None
                is_last = attempt >= self._options.tries or (told or 0) > self._options.patience
                if is_last or not isinstance(error, errors.UnavailableError | errors.DamagedError):
                    raise
            # Clients that failed together should not come back together.
            pause = self._options.pause * 2.0 ** (attempt - 1) * random.uniform(0.5, 1)  # noqa: S311 - nothing is secret
            await self._sleep(min(pause, self._options.patience) if told is None else told)
        raise errors.ClientError("the client was closed; make another", url=self._base)

    async def _answer(self, call: Call) -> Answer:
        """The answer to a call, where redirects lead."""
        call = replace(call, headers={"Accept-Encoding": "gzip", **call.headers})
        for _ in range(_MOST_REDIRECTS + 1):
            await self._pace(is_search=call.is_search)
            answer = await self._send(call)
            location = answer.headers.get("location")
            if location is None or answer.status not in _REDIRECTS:
                return answer
            call = replace(call, url=self._permitted(location, call.url))
        raise errors.ClientError(f"redirects more than {_MOST_REDIRECTS} times")

    def _permitted(self, address: str, before: str) -> str:
        """The address that an answer from another one names, if it may be asked; else raises ClientError."""
        try:
            url = _split(urljoin(before, address))
        except ValueError as error:
            raise errors.ClientError(f"names an address that {error}", url=before) from None
        if before.startswith("https:") and url.scheme == "http":
            raise errors.ClientError("leads from https to http", url=before)
        is_same_name = url.scheme == "https" and url.hostname == self._site.hostname
        if not is_same_name and url.netloc not in {self._site.netloc, *self._options.hosts}:
            raise errors.OtherHostError(url.netloc, url=before)
        return url.geturl()

    async def _fetch(self, url: str, kind: Callable[..., T], *, is_search: bool = False) -> T:
        """The object at an address, asked for conditionally if it was read before."""
        cache = {} if self._options.cache is None else self._options.cache
        etag, known = cache.get(url, (None, b""))

        def read(answer: Answer) -> tuple[T, str | None, bytes]:
            text = known if answer.status == NOT_MODIFIED else answer.body
            return decoded(kind, parsed(text)), etag_of(answer), text

        call = Call(url, {"If-None-Match": etag} if etag else {}, is_search=is_search)
        found, new, text = await self._ask(call, read)
        cache.pop(url, None)  # so that it is the newest
        if new:
            cache[url] = (new, text)
        while len(cache) > _MOST_KEPT or sum(len(one) for _, one in [*cache.values()]) > MOST_BYTES:
            cache.pop(next(iter([*cache])), None)
        return found

    async def _pace(self, *, is_search: bool) -> None:
        """Wait until the limits allow another request; who waits has its place, which nobody else takes meanwhile."""
        for sent in (self._sent, self._searched) if is_search else (self._sent,):
            now = time.monotonic()
            turn = max(now, sent[0] + self._options.window) if len(sent) == sent.maxlen else now
            sent.append(turn)
            if turn > now:
                await self._sleep(turn - now)

    def _read(self, call: Call, answer: Answer, read: Callable[[Answer], T]) -> T:
        """What `read` makes of the answer, if it is no error."""
        if answer.status == OK or (answer.status == NOT_MODIFIED and "If-None-Match" in call.headers):
            try:
                value = read(answer)
            except errors.DamagedError:
                if self._is_site or "json" in answer.headers.get("content-type", "json"):
                    raise
                raise errors.NoSiteError(self._base, answer.status) from None
            self._is_site = True
            return value
        path, message = _said(answer)
        if answer.status in _TEMPORARY:
            pause = retry_after(answer.headers.get("retry-after"))
            message = f"{message or 'no reason given'}; try again {'later' if pause is None else f'in {pause:g} s'}"
            raise errors.UnavailableError(message, status=answer.status, retry_after=pause)
        if not self._is_site and (not message or (answer.status == NOT_FOUND and "/v1/" in self._base)):
            raise errors.NoSiteError(self._base, answer.status)
        # Cursors come from the site: one that it refuses was good once.
        refused = errors.ExpiredCursorError if path == "cursor" else errors.ApiError
        kind = errors.NotFoundError if answer.status in {NOT_FOUND, 410} else refused
        raise kind(message or "no reason given", status=answer.status, path=path)


def _said(answer: Answer) -> tuple[str, str]:
    """The path and message of an error, of several the first; nothing if the body is not as sites have it."""
    try:
        body = json.loads(answer.body)
        first, *_ = body.get("details") or [{"path": (), "message": body["error"]}]
        return ".".join(map(str, first["path"])), first["message"] if isinstance(first["message"], str) else ""
    except MALFORMED:
        return "", ""


def parsed(body: str | bytes, url: str = "") -> Any:
    """The values in a JSON text."""
    try:
        return JSON.decode(body if isinstance(body, str) else body.decode("utf-8-sig"))
    except MALFORMED:
        raise errors.DamagedError("is not JSON", url=url) from None


def etag_of(answer: Answer) -> str | None:
    """The ETag of an answer, if it can be sent back."""
    etag = answer.headers.get("etag", "")
    return etag if etag.isascii() and etag.isprintable() and 0 < len(etag) <= _LONGEST_ETAG else None


def site_address(text: str) -> str:
    """The address of a site without /v1 and slashes at its end; raise ClientError if it cannot be one."""
    try:
        parts = _split(text.strip())
        return parts._replace(path=parts.path.rstrip("/").removesuffix("/v1").rstrip("/")).geturl()
    except ValueError as error:
        # What is before the @ may be a password.
        raise (errors.ClientError(f"the address {error}") if "@" in text else errors.NoSiteError(text)) from None


def _split(address: str) -> SplitResult:
    """The parts of an address of http or https, without the usual port; raise ValueError if it is none."""
    try:
        parts = urlsplit(address)
        usual, _, _ = _PORTS[parts.scheme], parts.port, parts.hostname[0]  # type: ignore[index]
    except (ValueError, KeyError, TypeError):
        raise ValueError("is none of http or https") from None
    if "@" in parts.netloc:
        raise ValueError("has a user name in it; leave it out")
    return parts._replace(netloc=parts.netloc.lower().removesuffix(usual))


def retry_after(text: str | None) -> float | None:
    """The seconds of a Retry-After, which may be a date; None if there is none that can be understood."""
    if text and text.isascii() and text.isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text or "").timestamp() - time.time())
    except MALFORMED:
        return None
