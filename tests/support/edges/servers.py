"""HTTP servers for tests, and a client that sends exactly the given bytes."""

import http.client
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

from tests.support.programs import require
from tests.support.waiting import PATIENCE_S, wait_until

#: Sockets that keep ports for servers that are about to listen.
_kept: Final[list[socket.socket]] = []


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def free_port() -> int:
    """A port of this machine for a server that is about to listen; without one, connections to it are refused.

    Linux gives it to no other process while this one lives, neither for a connection nor as any free port.
    """
    socket_ = socket.socket()
    # Servers set it, too: Linux lets sockets that do share an address as long as none of them listens.
    socket_.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    socket_.bind(("127.0.0.1", 0))
    port = int(socket_.getsockname()[1])
    _kept.append(socket_)
    return port


class Client:
    """A persistent connection to a server on this machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._connection: socket.socket | None = None

    def send(self, method: str, target: str, **headers: str) -> Answer:
        """Send the request line as it stands; header names are written with `_` for `-`."""
        lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        request = "\r\n".join([*lines, "", ""]).encode()
        try:
            return self._exchange(request, method)
        except (ConnectionError, http.client.BadStatusLine):
            self.close()  # it was closed after the previous answer; a second failure is an error
            return self._exchange(request, method)

    def _exchange(self, request: bytes, method: str) -> Answer:
        if self._connection is None:
            self._connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        self._connection.sendall(request)
        response = http.client.HTTPResponse(self._connection, method=method)
        response.begin()
        body = response.read()
        if response.will_close:
            self.close()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def mortal(*command: str | Path) -> list[str]:
    """The command, killed on Linux when its parent ends for any reason; elsewhere unchanged."""
    setpriv = shutil.which("setpriv")
    return [*([setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []), *map(str, command)]


class QuietHandler(BaseHTTPRequestHandler):
    """Keeps connections open, and says nothing of requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or the body of each answer waits 40 ms for the receipt of its head

    def reply(self, answer: Answer) -> None:
        """Send an answer, and how long it is."""
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name not in {"connection", "content-length", "transfer-encoding", "date", "server"}:
                self.send_header(name, value)
        has_body = answer.status not in (204, 304)
        if has_body:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if has_body and self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler], port: int = 0) -> Iterator[int]:
    """Answer HTTP by a handler of the standard library; yield the port."""
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def await_port(port: int, process: "subprocess.Popen[Any]", told: Callable[[], str]) -> None:
    """Wait until a program listens; show what it told if it ends instead."""

    def listens() -> bool:
        with closing(socket.socket()) as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    wait_until(lambda: process.poll() is not None or listens(), pause=0.05)
    assert process.poll() is None, f"the server ended: {told()}"


@contextmanager
def connected(port: int) -> Iterator[Client]:
    with closing(Client(port)) as client:
        yield client


@contextmanager
def folder_for_anybody() -> Iterator[Path]:
    """A folder that the unprivileged user of `nobody_owning` can reach, unlike pytest's."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def nobody_owning(folder: Path) -> int | None:
    """The user to run a server as, for subprocess: `nobody`, who then owns `folder`, if we are root."""
    if os.geteuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody")
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    return nobody.pw_uid


@contextmanager
def nginx(output: Path, port: int, name: str = "nginx.conf") -> Iterator[None]:
    """Run what a build rendered for nginx into `output`, exactly as it stands, as an unprivileged user.

    That user owns the folder of the configuration, where nginx writes; what is published it may only read.
    """
    program = require("nginx", Path("/usr/sbin"), reason="its configuration is not run")
    if not any(folder.joinpath("ngx_http_js_module.so").exists() for folder in _module_folders(program)):
        require("ngx_http_js_module.so", reason="nginx has no njs module")
    configuration = output / "edge" / "nginx" / name
    command = [str(program), "-c", str(configuration), "-g", "daemon off;"]
    owner = nobody_owning(configuration.parent)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, user=owner) as process:
        try:
            await_port(port, process, lambda: process.communicate()[1])
            yield
        finally:
            process.terminate()


def temporary_folders(folder: Path) -> str:
    """nginx's settings of its temporary folders, which an unprivileged user could not create in the usual place."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return "\n".join(f'    {kind}_temp_path "{folder}/temp-{kind}";' for kind in kinds)


def _module_folders(program: Path) -> Iterator[Path]:
    yield program.parent.parent / "lib" / "nginx" / "modules"
    yield Path("/usr/lib/nginx/modules")
