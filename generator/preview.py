"""The local server: the API from `output/`, answered by the very router that a build rendered and that edges run.

Around the router it does what an edge does: objects with ETag, 304 and gzip, a rate limit, a log. It alone shows the
pages for people. It knows no rule of the API, and of `output/` it reads `v1/`, the router and those pages.
"""

import errno
import gzip
import hashlib
import html
import ipaddress
import json
import logging
import re
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import quickjs
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header, parse_etags
from werkzeug.serving import WSGIRequestHandler, make_server

from generator import answers, contract, edge, inspector, keys
from generator.config import Config
from generator.errors import PreviewError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

#: Where the pages for people are shown. Below it lies the output folder, so that their links work as from disk.
PAGE_PATH: Final = "/inspect/"
_PAGE_TYPES: Final = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
#: What may be a key, told before a file is looked for.
_KEY: Final = re.compile(rf"{contract.API_VERSION}/[a-z0-9/._-]{{1,200}}")

_LOG: Final = logging.getLogger("public_markets.requests")
#: A log line shows so much of a request target.
_SHOWN: Final = 1000
#: Addresses whose requests are counted; more than these push the oldest out.
_ADDRESSES: Final = 10_000
#: Seconds that a client may keep the server waiting.
_PATIENCE: Final = 10
_UNREADABLE: Final = "public_markets.unreadable"
_BODILESS: Final = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Router:
    """The rendered router in a JavaScript engine; a build that lands is noticed at the next question.

    QuickJS must stay in the thread that made it: one thread owns it, everyone else asks there.
    """

    _QUESTIONS: Final = """
        const QUESTIONS = {
          route: function (method, path, query) {
            const found = route(method, path, query, digest);
            return found.key === undefined ? found : { key: found.key, headers: cors() };
          },
          missing: missing,
          fixed: fixed,
        };
        function ask(question, words) {
          return JSON.stringify(QUESTIONS[question].apply(null, JSON.parse(words)));
        }
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, ...] | None = None
        self._context: Any = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="router")

    def ask(self, question: str, *words: str | int) -> Any:
        """Put one of the questions above."""
        return self._thread.submit(self._ask, question, json.dumps(words)).result()

    def _ask(self, question: str, words: str) -> Any:
        try:
            self._refresh()
        except FileNotFoundError:
            # Whoever deletes the folder to build it anew keeps the router that was read before.
            if self._context is None:
                raise
        return json.loads(self._context.get("ask")(question, words))

    def _refresh(self) -> None:
        found = self._path.stat()
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        if stamp != self._stamp:
            context = quickjs.Context()
            context.add_callable("digest", lambda text: hashlib.sha256(text.encode()).hexdigest())
            context.eval(self._path.read_text("utf-8") + self._QUESTIONS)
            self._context, self._stamp = context, stamp


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
        except Exception:  # noqa: BLE001 - one bad request must not end the others
            _LOG.exception("cannot answer, see below:")
            answer = _failure(HTTPStatus.INTERNAL_SERVER_ERROR, contract.ErrorResponse(error="internal error"))
        headers = dict(answer.headers)
        if answer.status not in _BODILESS:
            headers["content-length"] = str(len(answer.body))
        body = b"" if environ["REQUEST_METHOD"] == "HEAD" else answer.body
        asked = f"{environ['REQUEST_METHOD']} {environ['RAW_URI']}"
        duration = (time.perf_counter() - began) * 1000
        _LOG.info("%s status=%d bytes=%d duration_ms=%.1f", _printable(asked), answer.status, len(body), duration)
        start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", list(headers.items()))
        return [body]

    def _answer(self, environ: "WSGIEnvironment") -> Answer:
        method, target = environ["REQUEST_METHOD"], environ["RAW_URI"]
        if environ.get(_UNREADABLE) or any(letter <= " " or letter == "\x7f" for letter in target):
            return _failure(HTTPStatus.BAD_REQUEST, contract.invalid())
        path, query = _split(target)
        page = self._page(path) if method in ("GET", "HEAD") else None
        if page:
            return page
        if not self._limit.grants(environ["REMOTE_ADDR"], time.monotonic()):
            return _made(self._router.ask("fixed", HTTPStatus.TOO_MANY_REQUESTS))
        found = self._router.ask("route", method, path, query)
        if "key" not in found:
            return _made(found)
        body = self._read(found["key"])
        if body is None:
            return _made(self._router.ask("missing", found["key"]))
        return _object(body, {**keys.headers(found["key"]), **found["headers"]}, environ)

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
        name = path.removeprefix(PAGE_PATH) or inspector.PAGE
        content_type = _PAGE_TYPES.get(Path(name).suffix, "text/plain; charset=utf-8")
        if name not in inspector.NAMES:
            body, content_type = self._read(name) if _KEY.fullmatch(name) else None, keys.CONTENT_TYPE
        elif (self._output / name).is_file():
            body = (self._output / name).read_bytes()
        else:
            body = _links(self._markets, self._documents) if name == inspector.PAGE else None
        headers = {"content-type": content_type, "cache-control": "no-store"}
        return Answer(HTTPStatus.OK, headers, body) if body is not None else None


def _split(target: str) -> tuple[str, str]:
    """Path and query as they were sent; a proxy's form of the target (RFC 9112, 3.2.2) names the server, too."""
    absolute = re.fullmatch(r"https?://[^/?#]*(.*)", target, re.IGNORECASE)
    if absolute:
        target = absolute[1] if absolute[1].startswith("/") else f"/{absolute[1]}"
    path, _, query = target.partition("?")
    return path, query


def _made(by_router: Mapping[str, Any]) -> Answer:
    return Answer(by_router["status"], by_router["headers"], by_router["body"].encode())


def _failure(status: int, body: contract.ErrorResponse) -> Answer:
    """What the router is never asked about."""
    headers = {"content-type": keys.CONTENT_TYPE, "cache-control": "no-store", **answers.CORS}
    return Answer(status, headers, contract.encode(body))


def _object(body: bytes, headers: Mapping[str, str], environ: "WSGIEnvironment") -> Answer:
    """An object as this client wants it: compressed, or nothing at all because it has it already."""
    encoding = {}
    etag = hashlib.sha256(body).hexdigest()[:32]
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


class _Handler(WSGIRequestHandler):
    """Reads a request without touching its target, and answers what is no HTTP in the contract's form."""

    timeout = _PATIENCE
    _unreadable = False

    def make_environ(self) -> "WSGIEnvironment":
        target = self.requestline if self._unreadable else self.requestline.split()[1]
        self.path = "/"  # werkzeug would decode and normalise the target, or fail on it
        environ = super().make_environ()
        return environ | {"RAW_URI": target, _UNREADABLE: self._unreadable}

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        self._unreadable = True
        self.command, self.request_version, self.headers = "-", "HTTP/1.1", HTTPMessage()
        self.run_wsgi()

    def version_string(self) -> str:
        return "public-markets"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Leave it to the application, which knows what was answered."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        """A client that went away or fell asleep is no news."""


def serve(config: Config, *, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until interrupted; `announce` is told the address of the list when it can be asked for."""
    _LOG.setLevel(logging.INFO)
    router = Router(config.output / edge.ROUTER)
    path = _try_out(router, config)
    with _listener(host, port) as listener:
        name, number = listener.getsockname()[:2]
        server = make_server(
            host, port, Preview(config, router), threaded=True, request_handler=_Handler, fd=listener.fileno()
        )
        if not ipaddress.ip_address(name.partition("%")[0]).is_loopback:
            _LOG.warning(
                "listening on %s: whoever reaches this machine can read all this, the inspection page included; "
                "this server is for looking at a build, an edge is for readers",
                name,
            )
        with suppress(KeyboardInterrupt):
            announce(f"http://{f'[{name}]' if ':' in name else name}:{number}{path}")
            server.serve_forever()


def _try_out(router: Router, config: Config) -> str:
    """Ask the router for the list, so that what cannot work is said at once; returns the list's path."""
    path, _ = edge.public_paths(config)
    try:
        found = router.ask("route", "GET", path, "")
    except (FileNotFoundError, NotADirectoryError) as error:
        remedy = "run `public-markets build` first, or `public-markets demo` for made-up markets"
        raise PreviewError(f"{config.output}: nothing is built there; {remedy}") from error
    except (OSError, UnicodeDecodeError, quickjs.JSException) as error:
        reason = str(error).partition("\n")[0]
        raise PreviewError(f"{config.output / edge.ROUTER}: cannot be run ({reason}); build again") from error
    if "key" not in found:
        raise PreviewError(f"{config.output}: was built for another base_url than {config.base_url}; build again")
    return path


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, UnicodeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        if number == errno.EADDRINUSE:
            sentence = f"port {port} is in use; stop what listens there, or choose another with --port"
        elif number == errno.EACCES:
            sentence = f"port {port} may not be used by this user; choose one above 1023 with --port"
        else:
            sentence = f"cannot listen on {host}: {error}; --host 127.0.0.1 is always there"
        raise PreviewError(sentence) from error
