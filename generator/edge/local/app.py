"""The local server's application: what an edge does around the router, for the API in `output/`.

It answers from objects with ETag, 304 and gzip, limits the rate, and logs. Unlike an edge, it also shows the pages for
people. It knows no rule of the API, and reads only `v1/` and those pages.
"""

import gzip
import hashlib
import html
import logging
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from werkzeug.datastructures import Accept
from werkzeug.exceptions import RequestedRangeNotSatisfiable
from werkzeug.http import http_date, is_resource_modified, parse_accept_header
from werkzeug.wrappers import Response
from werkzeug.wsgi import FileWrapper

from generator.api import contract, keys
from generator.config import networks
from generator.config.settings import Config
from generator.edge import responses
from generator.edge.local import reader
from generator.edge.local.js_router import DamagedError, NextStep, Router
from generator.edge.local.reader import Hosts, RequestCounter
from generator.edge.router import list_paths, public_paths
from generator.tree import files

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

#: One range. Others are ignored, as the standard allows.
_RANGE: Final = re.compile("bytes=(?:[0-9]+-[0-9]*|-(?P<last>[0-9]+))")
#: Bytes read at once.
_PIECE: Final = 1 << 16


class UnsatisfiableError(Exception):
    """The range lies outside the file; `headers` tell its size."""

    def __init__(self, size: int) -> None:
        super().__init__(f"no such range in a file of size {size}")
        self.headers = {"content-range": f"bytes */{size}"}


def response(path: Path, headers: Mapping[str, str], environ: "WSGIEnvironment") -> Response:
    """The file, its range, or 304. Its name, a digest, is its ETag.

    Raise UnsatisfiableError if it has no such range, and OSError if it cannot be read.
    """
    file = path.open("rb")
    found = Response(FileWrapper(file, _PIECE), headers=dict(headers), direct_passthrough=True)
    found.call_on_close(file.close)
    size = path.stat().st_size
    found.content_length = size
    found.set_etag(path.name.partition(".")[0])
    try:
        found.make_conditional(_conditions(environ, found), accept_ranges=True, complete_length=size)
    except RequestedRangeNotSatisfiable as error:
        found.close()
        raise UnsatisfiableError(size) from error
    found.headers["accept-ranges"] = "bytes"
    # The server sends one, too.
    found.headers.pop("Date", None)
    return found


def _conditions(environ: "WSGIEnvironment", found: Response) -> "WSGIEnvironment":
    """The request without what does not apply: If-Match, as the API has no 412, and a Range that is to be ignored."""
    kept = {name: value for name, value in environ.items() if name != "HTTP_IF_MATCH"}
    is_known = not is_resource_modified(kept, found.get_etag()[0], last_modified=found.last_modified)
    asked = _RANGE.fullmatch(kept.pop("HTTP_RANGE", ""))
    if asked and not is_known and environ["REQUEST_METHOD"] == "GET":
        # More bytes from the end than there are: the library would refuse them.
        is_all = asked["last"] is not None and int(asked["last"]) >= (found.content_length or 0) > 0
        kept["HTTP_RANGE"] = "bytes=0-" if is_all else asked[0]
    return kept


#: Path of the pages for people. The output folder lies below it, so their links work as they do from disk.
PAGE_PATH: Final = "/inspect/"
_PAGE_TYPES: Final = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
#: Text that may be a key; checked before the file system is.
_KEY: Final = re.compile(rf"{contract.API_VERSION}/[a-z0-9/._=-]{{1,200}}")

LOGGER: Final = logging.getLogger("public_markets.requests")
#: Characters of a request target that a log line shows.
_LOGGED: Final = 1000
#: Bytes in which as-of begins build.json, and in which a page's cursor ends it.
_ENDS: Final = 64
#: Where the server marks a request that is not HTTP, in the WSGI environment.
MALFORMED: Final = "public_markets.malformed"


class _Response(Response):
    default_mimetype = None


class LocalEdge:
    """The WSGI application."""

    def __init__(self, config: Config, router: Router, hosts: Hosts) -> None:
        self._output = config.output
        self._hosts = hosts
        self._immutable = keys.immutable_control(config)
        self._router = router
        self._lists, self._documents = list_paths(config), public_paths(config)[1]
        self._root = urlsplit(config.base_url).path
        self._config = config
        self._proxies = networks.parsed(config.rate_limit.trusted_proxies)
        limit = config.rate_limit
        self._requests = RequestCounter(limit.requests, limit.window.total_seconds())
        self._searches = RequestCounter(limit.searches, limit.window.total_seconds()) if config.can_search else None

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer, and log one line, whatever happens."""
        start = time.perf_counter()
        try:
            response = self._answer(environ)
        except (OSError, DamagedError) as error:
            LOGGER.error("request failed: %s", error)  # noqa: TRY400 - no fault of the program
            response = self._error(HTTPStatus.SERVICE_UNAVAILABLE)
        except Exception:
            LOGGER.exception("request failed:")
            response = self._error(HTTPStatus.SERVICE_UNAVAILABLE)
        body, _, headers = response.get_wsgi_response(environ)
        size, status = response.content_length or 0, HTTPStatus(response.status_code)
        if not response.is_streamed or environ["REQUEST_METHOD"] == "HEAD":
            body = [b"".join(body)]
            size = len(body[0])
        request = _printable(f"{environ['REQUEST_METHOD']} {environ['RAW_URI']}")
        duration = (time.perf_counter() - start) * 1000
        LOGGER.info("%s status=%d bytes=%d duration_ms=%.1f", request, status, size, duration)
        start_response(f"{status.value} {status.phrase}", headers)
        return body

    def _answer(self, environ: "WSGIEnvironment") -> Response:
        method, target = environ["REQUEST_METHOD"], environ["RAW_URI"]
        if environ.get(MALFORMED) or any(letter <= " " or letter == "\x7f" for letter in target):
            return self._error(HTTPStatus.BAD_REQUEST)
        authority, path, query = _split(target)
        page = self._page(path) if method in ("GET", "HEAD") else None
        if page:
            return page if self._hosts.include(authority or environ.get("HTTP_HOST", "")) else _foreign_host()
        if not self._grants(environ, method, path, query):
            return _from_router(self._router.fixed(HTTPStatus.TOO_MANY_REQUESTS), environ)
        return self._carry_out(self._router.route(method, path, query), environ)

    def _grants(self, environ: "WSGIEnvironment", method: str, path: str, query: str) -> bool:
        """Whether the reader's limits have room for the request, which is counted."""
        address = reader.address(environ["REMOTE_ADDR"], environ.get("HTTP_X_FORWARDED_FOR", ""), self._proxies)
        network, now = self._router.network_of(address), time.monotonic()
        if not self._requests.grants(network, now):
            return False
        if self._searches is None or not self._router.is_search(method, path, query):
            return True
        return self._searches.grants(network, now)

    def _error(self, status: HTTPStatus) -> Response:
        """The answer to a request that does not get as far as the router, or that fails."""
        headers = responses.error_headers(status, self._config) | responses.COMMON
        return _Response(responses.error_bodies()[status], status, headers)

    def _carry_out(self, decision: NextStep, environ: "WSGIEnvironment") -> Response:
        """Read the objects that the router names until there is an answer."""
        # Read first: the data is never older than it says.
        as_of = self._router.as_of_in((self._read(keys.BUILD) or b"")[:_ENDS].decode(errors="replace"))
        while "status" not in decision:
            if "read" in decision:
                decision = {"asOf": as_of, "modified": self._modified(decision["read"][0]), **decision}
                decision = self._router.cut(decision, [self._text(key) for key in decision["read"]])
                continue
            key = decision["key"]
            if decision.get("isDownload"):
                if (path := self._path(key)) is not None:
                    return self._stream(path, key, environ)
            elif (body := self._read(key)) is not None:
                etag = hashlib.sha256(body).hexdigest()[:32]
                link = self._router.link_in(decision, body[-_ENDS:].decode(errors="replace"))
                own = {
                    "last-modified": self._modified(key),
                    "link": link,
                    "x-as-of": "" if keys.is_immutable(key) else as_of,
                }
                headers = {**keys.headers(key, self._immutable), **self._router.common(), **own}
                return _from_object(body, etag, {name: value for name, value in headers.items() if value}, environ)
            decision = decision.get("otherwise") or self._router.missing(key)
        if decision.get("isMiss") and not as_of:
            LOGGER.error("%s: missing or empty; build again", self._output / keys.BUILD)
            return self._error(HTTPStatus.SERVICE_UNAVAILABLE)
        return _from_router(decision, environ)

    def _stream(self, path: Path, key: str, environ: "WSGIEnvironment") -> Response:
        """The response with a file of a download."""
        headers = {**keys.headers(key, self._immutable), **self._router.common(), "last-modified": self._modified(key)}
        try:
            return response(path, headers, environ)
        except UnsatisfiableError as error:
            refused = self._router.fixed(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            return _Response(refused["body"], refused["status"], refused["headers"] | error.headers)

    def _read(self, key: str) -> bytes | None:
        """The object of a key, or None."""
        path = self._path(key)
        try:
            return None if path is None else path.read_bytes()
        except FileNotFoundError:
            return None

    def _path(self, key: str) -> Path | None:
        """The file of a key, or None. Links that lead out of `v1/` are not followed."""
        try:
            path = Path(os.path.realpath(self._output / key, strict=True))
        except (FileNotFoundError, NotADirectoryError):
            return None
        is_published = path.is_relative_to((self._output / contract.API_VERSION).resolve())
        return path if is_published and path.is_file() else None

    def _text(self, key: str) -> str | None:
        body = self._read(key)
        try:
            return None if body is None else body.decode()
        except UnicodeDecodeError as error:
            raise DamagedError(f"{key} is damaged ({error.reason}): delete it and build again") from error

    def _modified(self, key: str) -> str:
        try:
            return http_date((self._output / key).stat().st_mtime)
        except OSError:
            return ""

    def _page(self, path: str) -> Response | None:
        """A page for people, or a file that it links to. No CORS headers: no other site needs to read it."""
        if path == "/":
            return _Response(status=HTTPStatus.FOUND, headers={"location": PAGE_PATH, **responses.NO_SNIFFING})
        if not path.startswith(PAGE_PATH):
            return None
        name = path.removeprefix(PAGE_PATH) or files.INSPECTION
        content_type = _PAGE_TYPES.get(Path(name).suffix, "text/plain; charset=utf-8")
        if keys.is_download(name) and _KEY.fullmatch(name):
            # Too large to be read here.
            headers = {"location": f"{self._root}/{name}", **responses.NO_SNIFFING}
            return _Response(status=HTTPStatus.FOUND, headers=headers)
        if name not in (*files.PAGES, files.STATUS):
            body, content_type = self._read(name) if _KEY.fullmatch(name) else None, keys.content_type(name)
        elif (self._output / name).is_file():
            body = (self._output / name).read_bytes()
        else:
            body = _links(self._lists, self._documents) if name == files.INSPECTION else None
        headers = {"content-type": content_type, "cache-control": "no-store", **responses.NO_SNIFFING}
        return _Response(body, headers=headers) if body is not None else None


def _split(target: str) -> tuple[str, str, str]:
    """Authority, path and query as they were sent. Only the absolute form has an authority (RFC 9112, 3.2.2)."""
    absolute = re.fullmatch(r"https?://([^/?#]*)(.*)", target, re.IGNORECASE)
    if absolute:
        target = absolute[2] if absolute[2].startswith("/") else f"/{absolute[2]}"
    path, _, query = target.partition("?")
    return absolute[1] if absolute else "", path, query


def _from_router(answer: NextStep, environ: "WSGIEnvironment") -> Response:
    headers, body = dict(answer["headers"]), answer["body"].encode()
    etag = headers.pop("etag", None)
    if etag:
        return _from_object(body, etag.strip('"'), headers, environ)
    return _Response(body, answer["status"], headers)


def _from_object(body: bytes, etag: str, headers: Mapping[str, str], environ: "WSGIEnvironment") -> Response:
    """An object, or a page cut out of objects; compressed if the client accepts it, 304 if the client has it."""
    is_packed = parse_accept_header(environ.get("HTTP_ACCEPT_ENCODING"), Accept).quality("gzip") > 0
    response = _Response(body, headers={**headers, "vary": "Accept-Encoding"})
    response.set_etag(f"{etag}-gzip" if is_packed else etag)
    # The API has no 412, so If-Match is ignored.
    response.make_conditional({name: value for name, value in environ.items() if name != "HTTP_IF_MATCH"})
    # The server sends one, too.
    response.headers.pop("Date", None)
    if is_packed and response.status_code == HTTPStatus.OK:
        response.set_data(gzip.compress(body, mtime=0))
        response.content_encoding = "gzip"
    return response


def _foreign_host() -> Response:
    """The answer where a page is asked for under a name that anybody's site could have. No CORS headers, like pages."""
    body = contract.ErrorResponse(
        error="the pages are not shown for this host; open them at http://127.0.0.1 and the port, "
        "or start serve with --host and the name you use"
    )
    headers = {"content-type": keys.CONTENT_TYPE, "cache-control": "no-store", **responses.NO_SNIFFING}
    return _Response(contract.encode(body), HTTPStatus.MISDIRECTED_REQUEST, headers)


def _links(lists: Sequence[str], documents: Iterable[str]) -> bytes:
    """A page of calls to try, shown while there is no inspection page."""
    calls = [f"{path}{query}" for path in lists for query in ("", "?status=archive&limit=5", "?sort=new")]
    calls += documents
    items = "\n".join(f'<li><a href="{html.escape(call)}">{html.escape(call)}</a></li>' for call in calls)
    title = "<!doctype html>\n<meta charset=utf-8>\n<title>Public Markets</title>\n<h1>Public Markets</h1>\n"
    said = "<p>There is no inspection page: a takedown deletes it, and the next build makes it.</p>\n"
    return f"{title}{said}<ul>\n{items}\n</ul>\n".encode()


def _printable(text: str) -> str:
    """One line of ASCII: no request can forge a log line or send control codes to a terminal."""
    line = "".join(char if " " <= char <= "~" else f"\\x{ord(char):02x}" for char in text[:_LOGGED])
    return line if len(text) <= _LOGGED else f"{line}…"
