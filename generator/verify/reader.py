"""Reads a site over HTTP as its readers do: gently, and asking only for what is new. Only this module uses urllib3."""

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from generator.errors import VerifyError
from generator.wording import counted

#: Seconds to wait for a connection, and for the next bytes of an answer.
_TIMEOUT: Final = urllib3.Timeout(connect=10, read=60)
#: How often a request is made at most that fails or is refused for a while.
_ATTEMPTS: Final = 4
#: Seconds to wait where a 429 or 503 names none, and at most.
_PAUSE_S: Final = 10.0
_LONGEST_PAUSE_S: Final = 120.0
#: What asks to come back later.
_LATER: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
#: The largest body that is kept, to be asked for again only if it has changed, and how many are.
_KEPT: Final = 200_000
_COPIES: Final = 1_000
_USER_AGENT: Final = "public-markets-verify"


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
    """Spaces requests: at most `burst` at once, and then `per_minute`."""

    def __init__(self, per_minute: float, burst: int) -> None:
        self._interval_s = 60 / per_minute
        self._burst_s = burst * self._interval_s
        self._free_at = time.monotonic() - self._burst_s

    def keep(self) -> None:
        """Wait until one more request is due."""
        now = time.monotonic()
        self._free_at = max(self._free_at, now - self._burst_s) + self._interval_s
        if self._free_at > now:
            time.sleep(self._free_at - now)


class SiteReader:
    """Reads the site at an address. Counts its `requests`; `say` gets what to tell people who wait."""

    def __init__(self, url: str, per_minute: float, say: Callable[[str], None]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise VerifyError(f"{url}: is no address of a site; write one such as https://api.example.org")
        self.url = url.rstrip("/")
        self.requests = 0
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=False, headers={"User-Agent": _USER_AGENT})
        self._pace = Pace(per_minute, burst=max(1, round(per_minute / 5)))
        self._say = say
        self._copies: dict[str, SiteAnswer] = {}

    def get(self, path: str, parameters: Mapping[str, object] | None = None) -> SiteAnswer:
        """The answer to a GET of a path below the address, such as `v1/build.json`; a copy that a 304 confirms.

        Raises VerifyError if the site does not answer.
        """
        query = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
        return self._get(f"{self.url}/{path}{query}", f"/{path}{query}")

    def file(self, key: str, address: str) -> SiteAnswer:
        """A file of a download: the site's own, or else that of the address that it names, maybe on another host.

        Files are named by their content, so both are the same.
        """
        answer = self.get(key)
        return answer if answer.status == HTTPStatus.OK else self._get(address, address)

    def _get(self, address: str, target: str) -> SiteAnswer:
        copy = self._copies.get(address)
        asked = {"If-None-Match": copy.headers["etag"]} if copy else {}
        answer = self._answered(address, target, {"Accept-Encoding": "gzip", **asked})
        if answer.status == HTTPStatus.NOT_MODIFIED and copy:
            return copy
        is_small = len(answer.body) <= _KEPT and (copy is not None or len(self._copies) < _COPIES)
        if answer.status == HTTPStatus.OK and "etag" in answer.headers and is_small:
            self._copies[address] = answer
        return answer

    def _answered(self, address: str, target: str, headers: Mapping[str, str]) -> SiteAnswer:
        for attempt in range(1, _ATTEMPTS + 1):
            self._pace.keep()
            self.requests += 1
            try:
                found = self._pool.request("GET", address, headers={**self._pool.headers, **headers})
            except HTTPError as error:
                if attempt == _ATTEMPTS:
                    reason = " ".join(str(error).split())
                    raise VerifyError(
                        f"{address}: does not answer ({reason}); correct the address, or try later"
                    ) from error
                time.sleep(attempt)
                continue
            answer = SiteAnswer(
                target, found.status, {name.lower(): value for name, value in found.headers.items()}, found.data
            )
            if found.status not in _LATER or attempt == _ATTEMPTS:
                return answer
            pause_s = _pause_of(answer)
            self._say(f"{target}: {found.status}; waiting {counted(round(pause_s), 'second')}, as the site asks")
            time.sleep(pause_s)
        raise AssertionError("each attempt ends or goes on")


def _pause_of(answer: SiteAnswer) -> float:
    asked = answer.headers.get("retry-after", "")
    return min(float(asked), _LONGEST_PAUSE_S) if asked.isdecimal() else _PAUSE_S
