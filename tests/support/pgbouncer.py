"""PgBouncer in front of a test's PostgreSQL, as hosted databases have it, reachable from this machine only."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tests.support import programs
from tests.support.edges.servers import await_port, free_port
from tests.support.postgres import ADMIN, PASSWORD, Server, account
from tests.support.waiting import PATIENCE_S

_SETTINGS: Final = """
[databases]
{databases}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = {mode}
default_pool_size = {size}
query_wait_timeout = {wait_s}
logfile = {folder}/log
"""


@dataclass(frozen=True)
class Pooler(Server):
    """A running pooler: a server, seen from outside."""

    log: Path = Path()

    def logins(self) -> int:
        """How many clients have connected so far."""
        return len(re.findall("login attempt", self.log.read_text()))


@contextmanager
def pooler(
    server: Server, *, size: int, mode: Literal["session", "transaction"] = "transaction", wait_s: int = 0
) -> Iterator[Pooler]:
    """Run a pooler of at most `size` connections to each database of a server; a client waits `wait_s`, 0 for ever."""
    program = programs.require("pgbouncer", Path("/usr/sbin"), reason="no build is tried behind a pooler")
    folder, port, owner = Path(tempfile.mkdtemp(prefix="public-markets-pgbouncer-")), free_port(), account()
    password = PASSWORD.replace('"', '""')
    (folder / "users").write_text(f'"{ADMIN}" "{password}"\n')
    databases = f"* = host=127.0.0.1 port={server.port}"
    settings = _SETTINGS.format(databases=databases, port=port, folder=folder, mode=mode, size=size, wait_s=wait_s)
    (folder / "settings.ini").write_text(settings)
    for path in (folder, *folder.iterdir()) if owner else ():
        os.chown(path, owner["user"], owner["group"])
    process = subprocess.Popen([program, folder / "settings.ini"], stdout=-3, stderr=-3, **owner)
    try:
        await_port(port, process, (folder / "log").read_text)
        yield Pooler(port, log=folder / "log")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        shutil.rmtree(folder, ignore_errors=True)
