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

#: The largest answer that is kept in memory, in bytes; dumps and steps are written to files.
MOST_BYTES = 16 << 20
NOT_MODIFIED = 304
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
#: What goes wrong when JSON is not what it should be.
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
OK = 200
#: How many answers are kept.
_MOST_KEPT = 100


@dataclass(frozen=True)
class Call:
    """A GET. The body is kept as the site sends it, or decompressed and in memory if there is no `file`.

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
    """Sends a site each request as often as it takes, within the limits, and reads its answer.

    `base_url` is the address before `/v1`.
    """

    def __init__(self, base_url: str, options: Options | None) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise errors.ClientError("is not an http or https URL", url=base_url)
        self._base, self._options = base_url.rstrip("/").removesuffix("/v1"), options or Options()
        self._sent = deque[float](maxlen=self._options.requests)
        self._searched = deque[float](maxlen=self._options.searches)

    def _url(self, path: str) -> str:
        return f"{self._base}/v1/{path}"

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
            attempt += 1
            await self._pace(is_search=call.is_search)
            try:
                answer = await self._send(call)
                return await self._apart(partial(_read, call, answer, read))
            except errors.ClientError as error:
                error.url = error.url or call.url
                told = error.retry_after if isinstance(error, errors.UnavailableError) else None
                is_last = attempt >= self._options.tries or (told or 0) > self._options.patience
                if is_last or not isinstance(error, errors.UnavailableError | errors.AnswerError):
                    raise
            # Clients that failed together should not come back together.
            pause = self._options.pause * 2.0 ** (attempt - 1) * random.uniform(0.5, 1)  # noqa: S311 - nothing is secret
            await self._sleep(min(pause, self._options.patience) if told is None else told)

    async def _fetch(self, url: str, kind: Callable[..., T], *, is_search: bool = False) -> T:
        """The object at an address, asked for conditionally if it was read before."""
        cache = {} if self._options.cache is None else self._options.cache
        etag, known = cache.get(url, (None, b""))

        def read(answer: Answer) -> T:
            text = known if answer.status == NOT_MODIFIED else answer.body
            found = decoded(kind, parsed(text))
            if new := answer.headers.get("etag"):
                cache[url] = (new, text)
                if len(cache) > _MOST_KEPT:
                    del cache[next(iter(cache))]
            return found

        return await self._ask(Call(url, {"If-None-Match": etag} if etag else {}, is_search=is_search), read)

    async def _pace(self, *, is_search: bool) -> None:
        """Wait until the limits allow another request; who waits has its place, which nobody else takes meanwhile."""
        for sent in (self._sent, self._searched) if is_search else (self._sent,):
            now = time.monotonic()
            turn = max(now, sent[0] + self._options.window) if len(sent) == sent.maxlen else now
            sent.append(turn)
            if turn > now:
                await self._sleep(turn - now)


def _read(call: Call, answer: Answer, read: Callable[[Answer], T]) -> T:
    """What `read` makes of the answer, if it is no error."""
    if answer.status == NOT_MODIFIED and "If-None-Match" not in call.headers:
        raise errors.AnswerError(f"the site answers {NOT_MODIFIED} to what was asked without a condition")
    if answer.status in {OK, NOT_MODIFIED}:
        return read(answer)
    path, message = _said(answer)
    if answer.status in _TEMPORARY:
        pause = retry_after(answer.headers.get("retry-after"))
        message = f"{message}; try again {'later' if pause is None else f'in {pause:g} s'}"
        raise errors.UnavailableError(message, status=answer.status, retry_after=pause)
    # Cursors come from the site: one that it refuses was good once.
    refused = errors.ExpiredCursorError if path == "cursor" else errors.ApiError
    raise (errors.NotFoundError if answer.status in {404, 410} else refused)(message, status=answer.status, path=path)


def _said(answer: Answer) -> tuple[str, str]:
    """The path and message of an error, whatever the body is; of several, the first."""
    try:
        body = json.loads(answer.body)
        first, *_ = body.get("details") or [{"path": (), "message": body["error"]}]
        return ".".join(map(str, first["path"])), str(first["message"])
    except MALFORMED:
        return "", f"the site answers {answer.status}"


def parsed(body: str | bytes, url: str = "") -> Any:
    """The values in a JSON text."""
    try:
        return json.loads(body)
    except MALFORMED:
        raise errors.AnswerError("is not JSON", url=url) from None


def retry_after(text: str | None) -> float | None:
    """The seconds of a Retry-After, which may be a date; None if there is none that can be understood."""
    if text and text.isascii() and text.isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text or "").timestamp() - time.time())
    except MALFORMED:
        return None
