"""Sites in PostgreSQL, built on a cluster or by forked workers, whose builds can be held half-way."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

from tests.source.native import Postgres
from tests.support import commands
from tests.support.cluster import Cluster, Worker
from tests.support.commands import Running
from tests.support.postgres import Server
from tests.support.sites.builds import NOW, files
from tests.support.waiting import wait_until

#: The relation whose rows of one market can be held: workers read it last, the coordinator never.
HELD: Final = "orders"
#: The number of files whose differences a failure shows.
_SHOWN: Final = 3
#: How long a build took, in its report and on its page; and digests of the settings and of what has either.
_TOOK: Final = re.compile(
    rb'"seconds":\s*\{[^}]*\}|"stages":\s*\{[^}]*\}|<dt>Duration</dt>.*?</div>'
    rb'|^[0-9a-f]{64}\n|"shape":"[0-9a-f]+","edges":\{[^}]*\},"beside":"[0-9a-f]+"'
)
_URL: Final = "PUBLIC_MARKETS_SOURCE__URL"
_WAITING: Final = "FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock' AND wait_event = 'advisory'"


class ClusterSite:
    """A schema with markets, and builds of it into folders below `folder`."""

    def __init__(self, server: Server, database: str, schema: str, folder: Path) -> None:
        self.rows = Postgres(server, database=database, schema=schema)
        self.folder = folder
        self.schema = schema
        self.settings: dict[str, str] = {}
        self._lock = int(schema.rpartition("_")[2])
        (folder / "config.yaml").touch()

    def output(self, name: str) -> Path:
        return self.folder / name / "output"

    def words(self, cluster: str | None, name: str, as_of: str = NOW) -> list[str]:
        """The command line of a build into the folder of this name."""
        settings = {
            "source.schema": self.schema,
            "source.audit": "0",
            "output": str(self.output(name)),
            **self.settings,
        }
        if cluster:
            settings["cluster"] = cluster
        self.output(name).parent.mkdir(exist_ok=True)
        pairs = (f"{key}={value}" for key, value in settings.items())
        return ["build", "--as-of", as_of, *(word for pair in pairs for word in ("--set", pair))]

    def begin(
        self,
        cluster: str | None,
        name: str = "cluster",
        *,
        as_of: str = NOW,
        url: str = "",
        is_fresh: bool = False,
    ) -> Running:
        """Begin a build; without a cluster, by forked workers."""
        words = self.words(cluster, name, as_of)
        return commands.begin(*words, cwd=self.folder, is_fresh=is_fresh, **{_URL: url or self.rows.url})

    def build(self, cluster: str | None, name: str = "cluster", *, as_of: str = NOW) -> dict[str, bytes]:
        """Build, which must succeed; return the whole output folder."""
        ended = self.begin(cluster, name, as_of=as_of).wait()
        assert ended.returncode == 0, ended.stderr
        return everything(self.output(name))

    def execute(self, statement: str, *values: Any) -> list[Any]:
        cursor = self.rows.connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else []

    @contextmanager
    def edited(self) -> Iterator[None]:
        """Change every row that a range reads during the block."""
        self.execute("UPDATE markets SET question = question || '!'; UPDATE fills SET amount = amount + 1")
        yield
        self.execute("UPDATE markets SET question = left(question, -1); UPDATE fills SET amount = amount - 1")

    # ── in the middle of a build ──────────────────────────────────────────────────────────────────────────────────

    def has_gate(self) -> None:
        """Have the last market with orders held while the gate is closed."""
        ((held,),) = self.execute(f"SELECT max(market_id::text) FROM {HELD}")
        self.execute(f"ALTER TABLE {HELD} RENAME TO {HELD}_rows")
        self.execute(
            f"CREATE FUNCTION gate(market_id text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN "
            f"IF market_id = '{held}' THEN PERFORM pg_advisory_xact_lock_shared({self._lock}); END IF; "
            f"RETURN true; END $$"
        )
        self.execute(f"CREATE VIEW {HELD} AS SELECT * FROM {HELD}_rows WHERE gate(market_id::text)")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Close the gate during the block."""
        self.execute("SELECT pg_advisory_lock(%s)", self._lock)
        try:
            yield
        finally:
            self.execute("SELECT pg_advisory_unlock(%s)", self._lock)

    def worker_at_gate(self, cluster: Cluster, running: Running) -> Worker:
        """Wait until a worker is held half-way through its range; return it."""
        found: list[Worker] = []

        def is_held() -> bool:
            assert not has_ended(running), running.wait().stderr
            ports = {port for (port,) in self.execute(f"SELECT client_port {_WAITING}", self.rows.name)}
            found[:] = [worker for worker in cluster.workers if worker.is_alive() and ports & local_ports(worker.pid)]
            return bool(found)

        wait_until(is_held, pause=0.05)
        return found[0]

    def cut_off_held(self) -> bool:
        """End the connections of the workers at the gate; return whether there were any."""
        cut = self.execute(f"SELECT pg_terminate_backend(pid, 60000) {_WAITING}", self.rows.name)
        return bool(cut)

    def cut_off(self, running: Running) -> None:
        """End the coordinator's connection, which keeps the snapshot."""
        ports = [*(local_ports(running.pid) - local_ports(os.getpid()))]  # which it has inherited
        cut = self.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_port = ANY(%s)", ports)
        assert cut == [(True,)]


def has_ended(running: Running) -> bool:
    """Whether the command has ended; it must still be waited for."""
    return os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def local_ports(pid: int) -> set[int]:
    """The local ports of a process's sockets."""
    own = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            own.add(link.readlink().name)
    return {_port(found[1]) for found in _sockets() if f"socket:[{found[9]}]" in own}


def _sockets() -> Iterator[list[str]]:
    """Every TCP socket of this machine: the words of its line in proc(5)."""
    return (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])


def _port(address: str) -> int:
    return int(address.partition(":")[2], 16)


def everything(output: Path) -> dict[str, bytes]:
    """Every file, but for the place of the folder, which nginx's configuration has, and for how fast it was made.

    Nor does it matter that another cluster is another setting.
    """
    place = str(output).encode()
    found = {key: body.replace(place, b"OUTPUT") for key, body in files(output, "").items()}
    return {key: body if key.startswith("v1/") else _TOOK.sub(b"", body) for key, body in found.items()}


def assert_same(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> None:
    differing = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    lines = (unified_diff(_lines(one.get(key)), _lines(other.get(key)), key, n=0) for key in differing[:_SHOWN])
    assert not differing, "\n".join(
        (f"{len(differing)} files differ:", *(f"{line:.500}" for diff in lines for line in diff))
    )


def _lines(body: bytes | None) -> list[str]:
    return (body or b"").decode("utf-8", "replace").splitlines()
