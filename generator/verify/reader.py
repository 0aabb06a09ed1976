"""Reads a site over HTTP as its readers do: gently, and asking only for what is new. Only this module uses urllib3."""

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.client import HTTPException
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import urllib3
from urllib3.exceptions import DecodeError, HTTPError

from generator.errors import VerifyError
from generator.verify import bare_head
from generator.wording import counted, escaped

#: Seconds to wait for a connection, and for the next bytes of an answer.
_TIMEOUT: Final = urllib3.Timeout(connect=10, read=60)
#: How often a request is made at most that fails or is refused for a while.
_ATTEMPTS: Final = 4
#: Seconds to wait where a 429 or 503 names none, and at most.
_PAUSE_S: Final = 10.0
_LONGEST_PAUSE_S: Final = 120.0
#: How long a site is waited for in all.
_LONGEST_PAUSES_S: Final = 1_200.0
#: What asks to come back later.
_LATER: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
#: The largest body that is kept, to be asked for again only if it has changed, and how many are.
_KEPT: Final = 200_000
_COPIES: Final = 1_000
#: The most bytes of a body, uncompressed, where nothing says how many there are: the prices of a million markets.
_LONGEST: Final = 256 << 20
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


class SpentError(VerifyError):
    """As many requests were made as may be."""


class SiteAnswer(NamedTuple):
    """An answer: its request's path and query, status, headers by name in lower case, and body as it was meant."""

    target: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def age(self) -> str:
        """What a cache says of its copy, for people; empty if nothing."""
        age = self.headers.get("age", "")
        return f"; its copy is {age} s old, says the cache" if age.isdecimal() and age != "0" else ""


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

    Counts its `requests`, and keeps in `refusals` the answers 429 that it met. `say` gets what to tell people who wait.
    Makes at most so many requests in all, if that is given, and raises SpentError instead of another.
    """

    def __init__(self, url: str, per_minute: float, say: Callable[[str], None], most: int | None = None) -> None:
        if not _is_address(url):
            raise VerifyError(f"{url}: is no address of a site; write one such as https://api.example.org")
        self.url = url.rstrip("/")
        self.requests = 0
        self.refusals: list[SiteAnswer] = []
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=False)
        self._pace = Pace(per_minute)
        self._searches = Pace(per_minute / _PER_SEARCH)
        self.say = say
        self._paused_s = 0.0
        self._most = most
        self._copies: dict[str, SiteAnswer] = {}

    def get(self, path: str, parameters: Mapping[str, object] | None = None) -> SiteAnswer:
        """The answer to a GET of a path below the address, such as `v1/build.json`; a copy that a 304 confirms.

        Raises NoAnswerError if there is none.
        """
        query = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
        if parameters and "q" in parameters:
            self._searches.keep()
        return self._get(f"{self.url}/{path}{query}", f"/{path}{query}", _LONGEST)

    def file(self, key: str, address: str, size: int) -> SiteAnswer:
        """A file of a download, of `size` bytes: the site's own, or else that of the address that it names.

        Files are named by their content, so both are the same. Raises NoAnswerError for one that is longer.
        """
        answer = self._get(f"{self.url}/{key}", f"/{key}", size)
        if answer.status == HTTPStatus.OK or not _is_address(address):
            return answer
        try:
            return self._get(address, address, size)
        except NoAnswerError:
            return answer

    def ask(self, method: str, target: str, headers: Mapping[str, str] | None = None) -> SiteAnswer:
        """The answer to any request below the address, whatever its status but 429; `target` begins with a slash.

        That of HEAD has the body that was sent, though none should be.
        """
        return self._answered(method, f"{self.url}{target}", target, headers or {}, _LONGEST)

    def _get(self, address: str, target: str, longest: int) -> SiteAnswer:
        copy = self._copies.get(address)
        asked = {"If-None-Match": copy.headers["etag"]} if copy else {}
        answer = self._answered("GET", address, target, {"Accept-Encoding": "gzip", **asked}, longest)
        if answer.status == HTTPStatus.NOT_MODIFIED and copy:
            return copy
        is_small = len(answer.body) <= _KEPT and (copy is not None or len(self._copies) < _COPIES)
        if answer.status == HTTPStatus.OK and "etag" in answer.headers and is_small:
            self._copies[address] = answer
        return answer

    def _answered(self, method: str, address: str, target: str, headers: Mapping[str, str], longest: int) -> SiteAnswer:
        for attempt in range(1, _ATTEMPTS + 1):
            if self.requests == self._most:
                raise SpentError(f"{self.url}: was asked {counted(self.requests, 'time')}, which is as often as may be")
            self._pace.keep()
            self.requests += 1
            try:
                answer = self._sent(method, address, target, headers, longest)
            except (HTTPError, HTTPException, OSError) as error:
                if attempt == _ATTEMPTS:
                    reason = escaped(" ".join(str(error).split()))
                    raise NoAnswerError(address, target, f"does not answer ({reason})") from error
                time.sleep(attempt)
                continue
            if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
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

    def _sent(self, method: str, address: str, target: str, headers: Mapping[str, str], longest: int) -> SiteAnswer:
        """One request, and no other that its answer leads to."""
        if method == "HEAD":
            return SiteAnswer(target, *bare_head.ask(address, {**_HEADERS, **headers}))
        response = self._pool.request(
            method, address, headers={**_HEADERS, **headers}, redirect=False, preload_content=False
        )
        try:
            body = response.read(longest + 1, decode_content=True)
        except DecodeError:
            body = b""  # which no answer of ours is, so it is told what it lacks
        finally:
            response.close()  # which keeps the connection if all was read
        if len(body) > longest:
            raise NoAnswerError(address, target, f"sends more than {counted(longest, 'byte', ',')}")
        return SiteAnswer(
            target, response.status, {name.lower(): response.headers[name] for name in response.headers}, body
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:  # such as http://[
        return False


def _pause_of(answer: SiteAnswer) -> float:
    asked = answer.headers.get("retry-after", "")
    return min(float(asked), _LONGEST_PAUSE_S) if asked.isdecimal() else _PAUSE_S
