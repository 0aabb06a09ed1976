"""Reads a site over HTTP as its readers do: gently, and asking only for what is new."""

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from http.client import HTTPException, IncompleteRead
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from generator.api import file_names
from generator.errors import VerifyError
from generator.verify.exchange import Connections, Exchange, SlowError, UnfitError, ask_bare_head
from generator.verify.spooled_body import SpooledBody
from generator.wording import counted, escaped

#: How often a request is made at most that fails or is refused for a while.
_ATTEMPTS: Final = 4
#: Seconds to wait where a 429 or 503 names none, and at most.
_PAUSE_S: Final = 10.0
_LONGEST_PAUSE_S: Final = 120.0
#: How long a site is waited for in all.
_LONGEST_PAUSES_S: Final = 1_200.0
#: What asks to come back later.
_LATER: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
#: The largest body that is kept, to be asked for again only if it has changed, and the bytes of all that are.
_KEPT: Final = 200_000
_COPIES: Final = 32 << 20
#: The most bytes of a body, uncompressed, where nothing says how many there are.
LONGEST: Final = 16 << 20
#: The same of a file, whatever its head says.
_LARGEST_FILE: Final = 8 << 30
#: How many refusals are kept.
_REFUSALS: Final = 10
#: How many seconds' worth of requests may be made up for at once.
_CATCH_UP_S: Final = 2
#: A site allows ten times as many requests as searches, unless it was set otherwise.
_PER_SEARCH: Final = 10
#: Some caches send CORS headers only to those who ask for them.
ORIGIN: Final = "https://verify.invalid"
_HEADERS: Final = {"User-Agent": "public-markets-verify", "Origin": ORIGIN}


class NoAnswerError(VerifyError):
    """The site sent no answer, or none that can be kept. `target` is what was asked for, `reason` why."""

    def __init__(self, address: str, target: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}; correct the address, or try later")
        self.target = target
        self.reason = reason


class NoEndError(NoAnswerError):
    """The site sent an answer so slowly that nobody waits for its end."""


class SpentError(VerifyError):
    """As many requests were made as may be."""


class SiteAnswer(NamedTuple):
    """An answer: its request's path and query, status, headers by name in lower case, and body as it was meant.

    `flaw` says why the body is empty if it did not come whole, or is not what its headers say.
    """

    target: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    flaw: str | None = None

    @property
    def age(self) -> str:
        """What a cache says of its copy, for people; empty if nothing."""
        age = self.headers.get("age", "")
        return f"; its copy is {age} s old, says the cache" if age.isdecimal() and age != "0" else ""


class SiteFile(NamedTuple):
    """A file of a download: the answer, whose body is left out if it is a 200, and its content."""

    answer: SiteAnswer
    content: SpooledBody


class Pace:
    """Spaces requests, so many `per_minute`; what was late is made up for, but no more than two seconds' worth."""

    def __init__(self, per_minute: float) -> None:
        self._interval_s = 60 / per_minute
        self._free_at = time.monotonic()

    def keep(self) -> None:
        """Wait until one more request is due."""
        now = time.monotonic()
        self._free_at = max(self._free_at, now - _CATCH_UP_S) + self._interval_s
        if self._free_at > now:
            time.sleep(self._free_at - now)


class SiteReader:
    """Reads the site at an address, with so many requests a minute, a tenth of them searches.

    Counts its `requests`, the last of which was for `target`, and keeps in `refusals` the first answers 429 that it
    met, in `answered` the targets without parameters that it got. `say` gets what to tell people who wait. Makes at
    most so many requests in all, if that is given, and raises SpentError instead of another. Asks no other server but
    that at `files_url`, if files of downloads are there, too.
    """

    def __init__(
        self,
        url: str,
        per_minute: float,
        say: Callable[[str], None],
        most: int | None = None,
        files_url: str | None = None,
    ) -> None:
        for address in (url, files_url):
            if address is not None and not _is_address(address):
                raise VerifyError(f"{address}: is no address of a site; write one such as https://api.example.org")
        self.url = url.rstrip("/")
        self.files_url = files_url and files_url.rstrip("/")
        self.requests = 0
        self.target = "/"
        self.refusals: list[SiteAnswer] = []
        self.answered = set[str]()
        self._connections = Connections()
        self._pace = Pace(per_minute)
        self._searches = Pace(per_minute / _PER_SEARCH)
        self.say = say
        self._paused_s = 0.0
        self._most = most
        self._copies: dict[str, SiteAnswer] = {}
        self._copied = 0

    def get(self, path: str, parameters: Mapping[str, object] | None = None, longest: int = LONGEST) -> SiteAnswer:
        """The answer to a GET of a path below the address, such as `v1/build.json`; a copy that a 304 confirms.

        Raises NoAnswerError if there is none of at most so many bytes.
        """
        query = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
        if parameters and "q" in parameters:
            self._searches.keep()
        address, target = f"{self.url}/{path}{query}", f"/{path}{query}"
        copy = self._copies.get(address)
        asked = {"Accept-Encoding": "gzip"} | ({"If-None-Match": copy.headers["etag"]} if copy else {})
        answer = self._answered("GET", address, asked, target, partial(_whole, longest=longest))
        if answer.status == HTTPStatus.NOT_MODIFIED and copy:
            return copy
        if answer.status == HTTPStatus.OK and not query:
            self.answered.add(target)
        if answer.status == HTTPStatus.OK and "etag" in answer.headers:
            self._keep(address, answer)
        return answer

    def file(self, key: str, size: int) -> SiteFile:
        """A file of a download, of `size` bytes: the site's own, or else that at the other address.

        Files are named by their content, so both are the same. Raises NoAnswerError for one that is longer, and for a
        key that no file has.
        """
        if not file_names.is_file(key):
            raise NoAnswerError(self.url, f"/{key}", "is the name of no file that a site has")
        found = self._file(f"{self.url}/{key}", f"/{key}", size)
        if found.answer.status == HTTPStatus.OK or self.files_url is None:
            return found
        other = f"{self.files_url}/{key}"
        try:
            return self._file(other, other, size)
        except NoAnswerError:
            return found

    def _file(self, address: str, target: str, size: int) -> SiteFile:
        content = SpooledBody()

        def read(exchange: Exchange) -> bytes:
            if exchange.status != HTTPStatus.OK:
                return _whole(exchange)
            content.take(exchange.body(min(size, _LARGEST_FILE)))
            return b""

        answer = self._answered("GET", address, {}, target, read)
        return SiteFile(answer, content)

    def ask(self, method: str, target: str, headers: Mapping[str, str] | None = None) -> SiteAnswer:
        """The answer to any request below the address, whatever its status but 429; `target` begins with a slash.

        That of HEAD has the body that was sent, though none should be. A body that cannot be read is a `flaw`.
        """
        flaws = list[str]()

        def read(exchange: Exchange) -> bytes:
            try:
                return _whole(exchange)
            except IncompleteRead:
                flaws.append("is cut off before the end of its body")
            except UnfitError as error:
                flaws.append(str(error))
            return b""

        answer = self._answered(method, f"{self.url}{target}", headers or {}, target, read)
        return answer._replace(flaw=flaws[-1]) if flaws else answer

    @property
    def left(self) -> int:
        """How many more requests may be made."""
        return sys.maxsize if self._most is None else self._most - self.requests

    def _keep(self, address: str, answer: SiteAnswer) -> None:
        size = len(answer.body) + sum(map(len, answer.headers.values()))
        if len(answer.body) <= _KEPT and (address in self._copies or self._copied + size <= _COPIES):
            self._copied += 0 if address in self._copies else size
            self._copies[address] = answer

    def _answered(
        self, method: str, address: str, headers: Mapping[str, str], target: str, read: Callable[[Exchange], bytes]
    ) -> SiteAnswer:
        """The answer, whose body is what `read` makes of it."""
        for attempt in range(1, _ATTEMPTS + 1):
            if self.requests == self._most:
                raise SpentError(f"{self.url}: was asked {counted(self.requests, 'time')}, which is as often as may be")
            self._pace.keep()
            self.requests += 1
            self.target = target
            try:
                answer = self._sent(method, address, headers, target, read)
            except SlowError as error:
                raise NoEndError(address, target, str(error)) from error
            except UnfitError as error:
                raise NoAnswerError(address, target, str(error)) from error
            except (HTTPException, OSError) as error:
                if attempt == _ATTEMPTS:
                    reason = escaped(" ".join(str(error).split()))
                    raise NoAnswerError(address, target, f"does not answer ({reason})") from error
                time.sleep(attempt)
                continue
            if answer.status == HTTPStatus.TOO_MANY_REQUESTS and len(self.refusals) < _REFUSALS:
                self.refusals.append(answer)
            if answer.status not in _LATER or attempt == _ATTEMPTS or self._paused_s > _LONGEST_PAUSES_S:
                return answer
            pause_s = _pause_of(answer)
            self.say(
                f"{escaped(target)}: {answer.status}; waiting {counted(round(pause_s), 'second')}, as the site asks"
            )
            self._paused_s += pause_s
            time.sleep(pause_s)
        raise AssertionError("each attempt ends or goes on")

    def _sent(
        self, method: str, address: str, headers: Mapping[str, str], target: str, read: Callable[[Exchange], bytes]
    ) -> SiteAnswer:
        """One request, and no other that its answer leads to."""
        if method == "HEAD":
            return SiteAnswer(target, *ask_bare_head(address, {**_HEADERS, **headers}))
        with self._connections.sent(method, address, {**_HEADERS, **headers}) as exchange:
            return SiteAnswer(target, exchange.status, exchange.headers, read(exchange))


def _whole(exchange: Exchange, longest: int = LONGEST) -> bytes:
    return b"".join(exchange.body(longest))


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:  # such as http://[
        return False


def _pause_of(answer: SiteAnswer) -> float:
    asked = answer.headers.get("retry-after", "")
    return min(float(asked), _LONGEST_PAUSE_S) if asked.isdecimal() else _PAUSE_S
