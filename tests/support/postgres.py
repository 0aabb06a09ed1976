"""A temporary PostgreSQL server for the tests, reachable from this machine only.

A pytest plugin: ask for `postgres`, or for `new_database`, which makes an empty database on it.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from tests.support import programs
from tests.support.edges.servers import free_port
from tests.support.waiting import PATIENCE_S, wait_until

#: Awkward on purpose: it must survive a URL, and must never be printed.
PASSWORD: Final = "hunter2 /@:%?#é"  # noqa: S105 - of a temporary server
ADMIN: Final = "admin"
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "full_page_writes": "off",
    "synchronous_commit": "off", "password_encryption": "scram-sha-256", "max_wal_size": "4GB",
}  # fmt: skip


@dataclass(frozen=True)
class Server:
    """A running server and its superuser."""

    port: int
    _numbers: Iterator[int] = field(default_factory=count)

    def connect(self, database: str = "postgres", user: str = ADMIN, password: str = PASSWORD) -> Any:
        """Open a connection in autocommit mode."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, dbname=database, user=user, password=password, autocommit=True
        )

    def url(self, database: str, user: str = ADMIN, password: str = PASSWORD) -> str:
        """The database's URL as `source.url` takes it."""
        return f"postgresql://{user}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def create_database(self, encoding: str = "UTF8") -> str:
        """Create an empty database and return its name."""
        name = f"test_{next(self._numbers)}"
        with self.connect() as connection:
            create = sql.SQL("CREATE DATABASE {} ENCODING {} TEMPLATE template0")
            connection.execute(create.format(sql.Identifier(name), sql.Literal(encoding)))
        return name


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server with password authentication; without PostgreSQL the test is skipped, or fails in CI."""
    with running() as server:
        yield server


@contextmanager
def running() -> Iterator[Server]:
    """Run a server during the block, without a fixture."""
    initdb, program = (_program(name) for name in ("initdb", "postgres"))
    folder = Path(tempfile.mkdtemp(prefix="public-markets-postgres-"))
    try:
        _create_cluster(initdb, folder)
        server = Server(free_port())
        options = [argument for name, value in _SETTINGS.items() for argument in ("-c", f"{name}={value}")]
        command: list[str | Path] = [program, "-D", folder / "data", "-p", str(server.port), *options]
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **account()
            )
        try:
            wait_until(lambda: process.poll() is not None or _answers(server), pause=0.05)
            assert process.poll() is None, f"PostgreSQL does not start:\n{(folder / 'log').read_text()}"
            yield server
        finally:
            process.send_signal(signal.SIGINT)  # "fast": open connections are cut
            process.wait(timeout=PATIENCE_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(server: Server) -> bool:
    """Whether it accepts our password, as no other server would."""
    with suppress(psycopg.OperationalError):
        server.connect().close()
        return True
    return False


@pytest.fixture
def new_database(postgres: Server) -> Callable[[], str]:
    """The name of a new, empty database."""
    return postgres.create_database


def _program(name: str) -> Path:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if pg_config := shutil.which("pg_config"):
        answer = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=True)
        folders.insert(0, Path(answer.stdout.strip()))
    return programs.require(name, *folders, reason="install PostgreSQL's server to test with it")


def account() -> dict[str, Any]:
    """The user of the server: it refuses to run as root, so root runs it as nobody."""
    if os.geteuid() != 0:
        return {}
    known = {one.pw_name: one for one in pwd.getpwall()}
    found = known.get("postgres") or known.get("nobody")
    if found is None:
        programs.unavailable("neither the account postgres nor nobody exists, and PostgreSQL refuses to run as root")
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


def _create_cluster(initdb: Path, folder: Path) -> None:
    owner = account()
    password = folder / "password"
    password.write_text(PASSWORD + "\n")
    for path in (folder, password):
        if owner:
            os.chown(path, owner["user"], owner["group"])
    command: list[str | Path] = [
        *(initdb, "--pgdata", folder / "data", "--username", ADMIN, "--pwfile", password),
        *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **owner)
    assert done.returncode == 0, f"initdb failed:\n{done.stdout}{done.stderr}"
    password.unlink()
