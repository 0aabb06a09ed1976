"""The local server: HTTP around the application, on this machine."""

import errno
import ipaddress
import logging
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPMessage
from typing import TYPE_CHECKING, Any, Final

from werkzeug.serving import WSGIRequestHandler, make_server

from generator.config.settings import Config
from generator.edge.local import js_router
from generator.edge.local.app import LOGGER, MALFORMED, LocalEdge
from generator.edge.local.reader import Hosts
from generator.edge.router import public_paths
from generator.errors import PreviewError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_NOT_ASCII: Final = re.compile(rb"[\x80-\xff]")
#: Seconds to wait for a slow client.
_TIMEOUT: Final = 10


class _Handler(WSGIRequestHandler):
    """Reads a request without touching its target, and has the application answer even what is not HTTP."""

    raw_requestline: bytes
    timeout = _TIMEOUT
    _is_malformed = False

    def parse_request(self) -> bool:
        """Encode letters that were sent as they are, in UTF-8: the base class would take each byte for a letter."""
        self.raw_requestline = _NOT_ASCII.sub(lambda byte: b"%%%02X" % byte[0][0], self.raw_requestline)
        return super().parse_request()

    def make_environ(self) -> "WSGIEnvironment":
        target = self.requestline if self._is_malformed else self.requestline.split()[1]
        self.path = "/"  # werkzeug would decode and normalise the target, or fail on it
        environ = super().make_environ()
        return environ | {"RAW_URI": target, MALFORMED: self._is_malformed}

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        self._is_malformed = True
        self.command, self.request_version, self.headers = "-", "HTTP/1.1", HTTPMessage()
        self.run_wsgi()

    def version_string(self) -> str:
        return "public-markets"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing; the application logs each request with its answer."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: clients that disconnect or time out are normal."""


def serve(config: Config, *, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until interrupted; calls `announce` with the address of the list once it can be reached."""
    LOGGER.setLevel(logging.INFO)
    router = js_router.load(config)
    with _listener(host, port) as listener:
        address, actual_port = listener.getsockname()[:2]
        app = LocalEdge(config, router, Hosts(host, address))
        server = make_server(host, port, app, threaded=True, request_handler=_Handler, fd=listener.fileno())
        if not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
            LOGGER.warning(
                "listening on %s: anyone who can reach this machine can read everything served here, the inspection "
                "page included; use an edge for real readers",
                address,
            )
        with suppress(KeyboardInterrupt):
            path, _ = public_paths(config)
            announce(f"http://{f'[{address}]' if ':' in address else address}:{actual_port}{path}")
            server.serve_forever()


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, UnicodeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        if number == errno.EADDRINUSE:
            sentence = f"port {port} is in use; stop the program that uses it, or choose another port with --port"
        elif number == errno.EACCES:
            sentence = f"this user may not listen on port {port}; choose a port above 1023 with --port"
        else:
            sentence = f"cannot listen on {host}: {error}; try --host 127.0.0.1"
        raise PreviewError(sentence) from error
