"""What to ask a site and when to ask again; `clients` does the sending and waiting, at once or in an event loop."""

import email.utils
import json
import random
import time
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

from public_markets_client import errors
from public_markets_client.decoding import T, decoded
from public_markets_client.errors import AnswerError, ApiError, UnavailableError

#: The largest answer that is kept in memory, in bytes; dumps and steps are written to files.
MOST_BYTES = 16 << 20
NOT_MODIFIED = 304
_ABSENT = frozenset({404, 410})
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
#: What goes wrong when JSON is not what it should be.
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
OK = 200
#: How many answers are kept.
_MOST_KEPT = 100


@dataclass(frozen=True)
class Call:
    """A GET. The body is kept as the site sends it, or decompressed and in memory if there is no `file`.

    `most` bytes of it are read at most; `is_search` tells that the smaller limit of searches applies.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    file: BinaryIO | None = None
    most: int = MOST_BYTES
    is_search: bool = False


@dataclass(frozen=True)
class Answer:
    """What came back; `headers` are asked for by names in lower case."""

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Options:
    """How a client behaves.

    `timeout`: seconds without a byte until a request has failed. The site takes so many `requests` from an address in
    `window` seconds, and so many `searches` among them. A request is sent as often as `tries`, after `pause` seconds,
    then twice as long each time; the site's Retry-After goes before, and one of more than `patience` seconds is an
    error at once. `cache` has ETag and body of what was read last, by address; None asks unconditionally. `progress` is
    told the bytes of a file so far, and how many it has.
    """

    timeout: float = 30.0
    requests: int = 300
    searches: int = 30
    window: float = 60.0
    tries: int = 6
    pause: float = 0.5
    patience: float = 120.0
    cache: MutableMapping[str, tuple[str, bytes]] | None = field(default_factory=dict)
    progress: Callable[[int, int], None] | None = None


class Requester:
    """Sends each request as often as it takes, within the limits, and reads its answer."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._sent, self._searched = deque[float](), deque[float]()

    async def _send(self, call: Call) -> Answer:
        """The answer to a call; raise ClientError if there is no whole one."""
        raise NotImplementedError

    async def _sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def _apart(self, work: Callable[[], T]) -> T:
        """Do what takes long without keeping others waiting."""
        raise NotImplementedError

    async def _ask(self, call: Call, read: Callable[[Answer], T]) -> T:
        """What `read` makes of the answer; raise ClientError if there is none that it can read."""
        attempt = 0
        while True:
            await self._pace(is_search=call.is_search)
            try:
                answer = await self._send(call)
                return await self._apart(partial(_read, answer, read))
            except (UnavailableError, AnswerError) as error:
                error.url = error.url or call.url
                told = error.retry_after if isinstance(error, UnavailableError) else None
                attempt += 1
                if attempt >= self._options.tries or (told or 0) > self._options.patience:
                    raise
            # Clients that failed together should not come back together.
            pause = self._options.pause * 2.0 ** (attempt - 1) * random.uniform(0.5, 1)  # noqa: S311 - nothing is secret
            await self._sleep(min(pause, self._options.patience) if told is None else told)

    async def _fetch(self, url: str, kind: Callable[..., T], *, is_search: bool = False) -> T:
        """The object at an address, asked for conditionally if it was read before."""
        cache = self._options.cache
        etag, known = (cache or {}).get(url, (None, b""))

        def read(answer: Answer) -> T:
            if answer.status == NOT_MODIFIED and etag is None:
                raise AnswerError(f"the site answers {NOT_MODIFIED} to what was asked without a condition")
            text = known if answer.status == NOT_MODIFIED else answer.body
            found = decoded(kind, parsed(text, url))
            if cache is not None and (new := answer.headers.get("etag")):
                cache[url] = (new, text)
                if len(cache) > _MOST_KEPT:
                    del cache[next(iter(cache))]
            return found

        return await self._ask(Call(url, {"If-None-Match": etag} if etag else {}, is_search=is_search), read)

    async def _pace(self, *, is_search: bool) -> None:
        """Wait until the limits allow another request."""
        limits = [(self._sent, self._options.requests), (self._searched, self._options.searches)]
        for sent, most in limits if is_search else limits[:1]:
            while sent and (pause := sent[0] + self._options.window - time.monotonic()) <= 0:
                sent.popleft()
            if len(sent) >= most:
                await self._sleep(pause)
                sent.popleft()
            sent.append(time.monotonic())


def _read(answer: Answer, read: Callable[[Answer], T]) -> T:
    """What `read` makes of the answer, if it is no error."""
    if len(answer.body) > MOST_BYTES:
        raise AnswerError(f"has more than {MOST_BYTES >> 20} MB")
    if answer.status in {OK, NOT_MODIFIED}:
        return read(answer)
    path, message = _said(answer)
    if answer.status in _TEMPORARY:
        pause = retry_after(answer.headers.get("retry-after"))
        message = f"{message}; try again {'later' if pause is None else f'in {pause:g} s'}"
        raise UnavailableError(message, url=answer.url, status=answer.status, retry_after=pause)
    kind = errors.NotFoundError if answer.status in _ABSENT else ApiError
    if path == "cursor" and message.startswith(errors.EXPIRED):
        kind = errors.ExpiredCursorError
    raise kind(message, url=answer.url, status=answer.status, path=path)


def _said(answer: Answer) -> tuple[str, str]:
    """The path and message of an error, whatever the body is; of several, the first."""
    try:
        body = json.loads(answer.body)
        message = str(body["error"])
        for one in body.get("details") or ():
            return ".".join(map(str, one["path"])), str(one["message"])
    except MALFORMED:
        message = f"the site answers {answer.status}"
    return "", message


def parsed(body: bytes, url: str) -> Any:
    """The values in a JSON text."""
    try:
        return json.loads(body)
    except MALFORMED:
        raise AnswerError("is not JSON", url=url) from None


def retry_after(text: str | None) -> float | None:
    """The seconds of a Retry-After, which may be a date; None if there is none that can be understood."""
    if text and text.isascii() and text.isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text or "").timestamp() - time.time())
    except MALFORMED:
        return None
