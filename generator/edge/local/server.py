"""The local server: HTTP around the application, on this machine."""

import errno
import ipaddress
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPMessage
from typing import TYPE_CHECKING, Any, Final

from werkzeug.serving import WSGIRequestHandler, make_server

from generator.config.settings import Config
from generator.edge import render as edge
from generator.edge.local.app import LOGGER, UNREADABLE, Preview
from generator.edge.local.js_router import Router, try_out
from generator.errors import PreviewError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

#: Seconds that a client may keep the server waiting.
_PATIENCE: Final = 10


class _Handler(WSGIRequestHandler):
    """Reads a request without touching its target, and answers what is no HTTP in the contract's form."""

    timeout = _PATIENCE
    _unreadable = False

    def make_environ(self) -> "WSGIEnvironment":
        target = self.requestline if self._unreadable else self.requestline.split()[1]
        self.path = "/"  # werkzeug would decode and normalise the target, or fail on it
        environ = super().make_environ()
        return environ | {"RAW_URI": target, UNREADABLE: self._unreadable}

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
    LOGGER.setLevel(logging.INFO)
    router = Router(config.output / edge.ROUTER)
    path = try_out(router, config)
    with _listener(host, port) as listener:
        name, number = listener.getsockname()[:2]
        server = make_server(
            host, port, Preview(config, router), threaded=True, request_handler=_Handler, fd=listener.fileno()
        )
        if not ipaddress.ip_address(name.partition("%")[0]).is_loopback:
            LOGGER.warning(
                "listening on %s: whoever reaches this machine can read all this, the inspection page included; "
                "this server is for looking at a build, an edge is for readers",
                name,
            )
        with suppress(KeyboardInterrupt):
            announce(f"http://{f'[{name}]' if ':' in name else name}:{number}{path}")
            server.serve_forever()


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
