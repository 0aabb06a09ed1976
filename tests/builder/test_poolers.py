"""Builds read through PgBouncer, with as many connections as its pool lets them have."""

import re
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Final, Literal

import pytest

from generator.demo.database import seed
from generator.site import worker_pool
from tests.source.native import Postgres
from tests.support.pgbouncer import pooler
from tests.support.postgres import Server, running
from tests.support.sites.builds import AS_OF, CHUNKED, build_now, files, make_config

SETTINGS: Final = {**CHUNKED, "search": "off"}


@pytest.fixture(scope="module")
def served(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A database that is worth several workers."""
    folder = tmp_path_factory.mktemp("served")
    seed(folder / "markets.db", as_of=AS_OF, markets=130)
    database = Postgres(postgres)
    database.copy(folder / "markets.db")
    with closing(database.connection):
        yield database


def built(folder: Path, url: str) -> tuple[dict[str, bytes], list[str]]:
    """The files of a build from this address, and its remarks about workers."""
    report = build_now(make_config(folder, **SETTINGS, source__url=url, output=folder / "output"))
    return files(folder / "output", "v1"), [str(one) for one in report.remarks if one.subject == "worker"]


@pytest.fixture(scope="module")
def direct(served: Postgres, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a build without a pooler."""
    return built(tmp_path_factory.mktemp("direct"), served.url)[0]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("size", [1, 2, 10])
def test_a_build_goes_on_with_the_connections_that_the_pool_has(
    size: int, mode: Literal["transaction", "session"], *, served: Postgres, postgres: Server,
    direct: dict[str, bytes], tmp_path: Path,
) -> None:  # fmt: skip
    workers = worker_pool.available()
    with pooler(postgres, size=size, mode=mode) as pool:
        made, remarks = built(tmp_path, pool.url(served.name))
        assert made == direct
        assert pool.logins() <= 1 + workers
    if size == 1 and workers > 1:
        (remark,) = remarks
        told = (
            r"warning: worker pool: not every worker got a connection to the database \((\d+) of \1: no answer within "
        )
        assert re.match(told, remark), remark


@pytest.mark.campaign(short=0)
def test_two_servers_in_turn_behind_one_port_are_read_as_one_of_them(
    served: Postgres, postgres: Server, direct: dict[str, bytes], tmp_path: Path
) -> None:
    with running() as other, other.connect() as connection:
        connection.execute(f"CREATE DATABASE {served.name}")
        copy = Postgres(other, database=served.name)
        seed(tmp_path / "markets.db", as_of=AS_OF, markets=130)
        copy.copy(tmp_path / "markets.db")
        with closing(copy.connection), in_turn(postgres.port, other.port) as port:
            url = served.url.replace(f":{postgres.port}/", f":{port}/")
            assert built(tmp_path, url) == (direct, []), "another server is no lack of connections"


@contextmanager
def in_turn(*ports: int) -> Iterator[int]:
    """A port of this machine that leads to each of these in turn, one connection after the other."""
    turns = cycle(ports)

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with closing(socket.create_connection(("127.0.0.1", next(turns)))) as target:
                back = Thread(target=pass_on, args=(target, self.request))
                back.start()
                pass_on(self.request, target)
                back.join()

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
