"""The local server's application: the API from `output/`, around the router what an edge does.

Objects with ETag, 304 and gzip, a rate limit, a log. It alone shows the pages for people. It knows no rule of the API,
and of `output/` it reads `v1/` and those pages.
"""

import gzip
import hashlib
import html
import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header, parse_etags

from generator.api import contract, keys
from generator.config.settings import Config
from generator.edge import render as edge
from generator.edge import responses
from generator.edge.local.js_router import Found, Router
from generator.tree import files

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

#: Where the pages for people are shown. Below it lies the output folder, so that their links work as from disk.
PAGE_PATH: Final = "/inspect/"
_PAGE_TYPES: Final = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
#: What may be a key, told before a file is looked for.
_KEY: Final = re.compile(rf"{contract.API_VERSION}/[a-z0-9/._-]{{1,200}}")

LOGGER: Final = logging.getLogger("public_markets.requests")
#: A log line shows so much of a request target.
_SHOWN: Final = 1000
#: Addresses whose requests are counted; more than these push the oldest out.
_ADDRESSES: Final = 10_000
#: What the server says of a request that is no HTTP.
UNREADABLE: Final = "public_markets.unreadable"
_BODILESS: Final = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class RateLimit:
    """Counts the requests of each address in windows that begin with its first one; forgets what is over."""

    def __init__(self, requests: int, seconds: float) -> None:
        self._requests = requests
        self._seconds = seconds
        #: By address, when its window began and how many requests were in it; in the order of their beginning.
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._windows)

    def grants(self, address: str, now: float) -> bool:
        """Count a request; `now` is in seconds and never goes back."""
        with self._lock:
            while self._windows and now - next(iter(self._windows.values()))[0] >= self._seconds:
                self._windows.popitem(last=False)
            began, count = self._windows.get(address, (now, 0))
            self._windows[address] = (began, count + 1)
            if len(self._windows) > _ADDRESSES:
                self._windows.popitem(last=False)
            return count < self._requests


class Preview:
    """The WSGI application."""

    def __init__(self, config: Config, router: Router) -> None:
        self._output = config.output
        self._router = router
        self._markets, self._documents = edge.public_paths(config)
        self._limit = RateLimit(config.rate_limit.requests, config.rate_limit.window.total_seconds())

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer, and log one line, whatever happens."""
        began = time.perf_counter()
        try:
            answer = self._answer(environ)
        except Exception:
            LOGGER.exception("cannot answer, see below:")
            answer = _failure(HTTPStatus.INTERNAL_SERVER_ERROR, contract.ErrorResponse(error="internal error"))
        headers = dict(answer.headers)
        if answer.status not in _BODILESS:
            headers["content-length"] = str(len(answer.body))
        body = b"" if environ["REQUEST_METHOD"] == "HEAD" else answer.body
        asked = f"{environ['REQUEST_METHOD']} {environ['RAW_URI']}"
        duration = (time.perf_counter() - began) * 1000
        LOGGER.info("%s status=%d bytes=%d duration_ms=%.1f", _printable(asked), answer.status, len(body), duration)
        start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", list(headers.items()))
        return [body]

    def _answer(self, environ: "WSGIEnvironment") -> Answer:
        method, target = environ["REQUEST_METHOD"], environ["RAW_URI"]
        if environ.get(UNREADABLE) or any(letter <= " " or letter == "\x7f" for letter in target):
            return _failure(HTTPStatus.BAD_REQUEST, contract.invalid())
        path, query = _split(target)
        page = self._page(path) if method in ("GET", "HEAD") else None
        if page:
            return page
        if not self._limit.grants(environ["REMOTE_ADDR"], time.monotonic()):
            return _made(self._router.fixed(HTTPStatus.TOO_MANY_REQUESTS), environ)
        return self._answer_with(self._router.route(method, path, query), environ)

    def _answer_with(self, found: Found, environ: "WSGIEnvironment") -> Answer:
        """Read what the router asks for, until there is an answer."""
        while "status" not in found:
            if "read" in found:
                bodies = [self._read(key) for key in found["read"]]
                found = self._router.cut(found, [body if body is None else body.decode() for body in bodies])
                continue
            key = found["key"]
            if (body := self._read(key)) is not None:
                etag = hashlib.sha256(body).hexdigest()[:32]
                return _object(body, etag, {**keys.headers(key), **self._router.cors()}, environ)
            found = found.get("otherwise") or self._router.missing(key)
        return _made(found, environ)

    def _read(self, key: str) -> bytes | None:
        """The object of that key; None where there is none. Links that lead out of `v1/` lead nowhere."""
        try:
            path = (self._output / key).resolve(strict=True)
            is_published = path.is_relative_to((self._output / contract.API_VERSION).resolve())
            return path.read_bytes() if is_published else None
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def _page(self, path: str) -> Answer | None:
        """A page for people, or what it links. Without CORS headers: no other site's page needs to read it."""
        if path == "/":
            return Answer(HTTPStatus.FOUND, {"location": PAGE_PATH}, b"")
        if not path.startswith(PAGE_PATH):
            return None
        name = path.removeprefix(PAGE_PATH) or files.INSPECTION
        content_type = _PAGE_TYPES.get(Path(name).suffix, "text/plain; charset=utf-8")
        if name not in files.PAGES:
            body, content_type = self._read(name) if _KEY.fullmatch(name) else None, keys.CONTENT_TYPE
        elif (self._output / name).is_file():
            body = (self._output / name).read_bytes()
        else:
            body = _links(self._markets, self._documents) if name == files.INSPECTION else None
        headers = {"content-type": content_type, "cache-control": "no-store"}
        return Answer(HTTPStatus.OK, headers, body) if body is not None else None


def _split(target: str) -> tuple[str, str]:
    """Path and query as they were sent; a proxy's form of the target (RFC 9112, 3.2.2) names the server, too."""
    absolute = re.fullmatch(r"https?://[^/?#]*(.*)", target, re.IGNORECASE)
    if absolute:
        target = absolute[1] if absolute[1].startswith("/") else f"/{absolute[1]}"
    path, _, query = target.partition("?")
    return path, query


def _made(by_router: Found, environ: "WSGIEnvironment") -> Answer:
    headers, body = dict(by_router["headers"]), by_router["body"].encode()
    etag = headers.pop("etag", None)
    return _object(body, etag.strip('"'), headers, environ) if etag else Answer(by_router["status"], headers, body)


def _failure(status: int, body: contract.ErrorResponse) -> Answer:
    """What the router is never asked about."""
    headers = {"content-type": keys.CONTENT_TYPE, "cache-control": "no-store", **responses.CORS}
    return Answer(status, headers, contract.encode(body))


def _object(body: bytes, etag: str, headers: Mapping[str, str], environ: "WSGIEnvironment") -> Answer:
    """An object, or a page cut out of some, as this client wants it: compressed, or not again if it has it already."""
    encoding = {}
    if parse_accept_header(environ.get("HTTP_ACCEPT_ENCODING"), Accept).quality("gzip") > 0:
        encoding = {"Content-Encoding": "gzip"}
        etag += "-gzip"
    headers = {**headers, "ETag": f'"{etag}"', "Vary": "Accept-Encoding"}
    if parse_etags(environ.get("HTTP_IF_NONE_MATCH")).contains_weak(etag):
        return Answer(HTTPStatus.NOT_MODIFIED, headers, b"")
    return Answer(HTTPStatus.OK, headers | encoding, gzip.compress(body, mtime=0) if encoding else body)


def _links(markets: str, documents: Iterable[str]) -> bytes:
    """A page for as long as nobody wrote one: the first calls to try."""
    calls = [markets, f"{markets}?status=archive&limit=5", f"{markets}?sort=new", *documents]
    items = "\n".join(f'<li><a href="{html.escape(call)}">{html.escape(call)}</a></li>' for call in calls)
    title = "<!doctype html>\n<meta charset=utf-8>\n<title>Public Markets</title>\n<h1>Public Markets</h1>\n"
    return f"{title}<ul>\n{items}\n</ul>\n".encode()


def _printable(text: str) -> str:
    """One line of ASCII, so that no request can forge a line of the log or command a terminal."""
    shown = "".join(one if " " <= one <= "~" else f"\\x{ord(one):02x}" for one in text[:_SHOWN])
    return shown if len(text) <= _SHOWN else f"{shown}…"
