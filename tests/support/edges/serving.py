"""Starts `public-markets serve` as a user does, and reads the expected lists from the database."""

import signal
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from generator.api import keys
from generator.api.contract import STATES_OF_FILTER, Sort, StatusFilter
from tests.support import commands
from tests.support.waiting import PATIENCE_S

MARKETS: Final = f"/{keys.MARKETS}"
#: More than any test sends.
UNLIMITED: Final = ("--set", "rate_limit.requests=1000000", "--set", "rate_limit.searches=1000000")
#: Paths where `serve` has its own pages and an edge has none.
OWN_PAGES: Final = {("GET", "/"), ("GET", "/inspect/")}
#: As docs/api.md promises them. Times are text of several forms in the database and are cut to milliseconds.
_ORDERS: Final[dict[Sort, str]] = {
    "popular": "trader_count DESC, volume DESC",
    "activity": "instant(last_activity_at) DESC",
    "volume": "volume DESC",
    "new": "instant(created_at) DESC",
    "ended": "instant(coalesce(resolved_at, close_time)) DESC",
}


@dataclass(frozen=True)
class Served:
    """A running server: its process, port, first lines and log file."""

    process: commands.Beside
    port: int
    said: tuple[str, str]
    log: Path

    def logged(self) -> str:
        return self.log.read_text("utf-8")

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; returns the server's exit code and output."""
        return self.process.end(signal.SIGINT), self.process.stdout.read()


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Served]:
    """Serve `folder`/output on a free port."""
    log, where = folder / "serve.log", ("--config", _config(folder), "--set", f"output={folder / 'output'}")
    process = commands.beside("serve", "--port", "0", *where, *options, stderr=log)
    with process.stdout:
        try:
            said = (process.stdout.readline(), process.stdout.readline())
            assert said[0], log.read_text("utf-8")
            yield Served(process, int(said[0].split("://")[1].split("/")[0].rpartition(":")[2]), said, log)
        finally:
            process.end(signal.SIGKILL)


def mind_interrupts() -> None:
    """What a child does before it becomes a server that Ctrl-C must stop."""
    # What a shell starts in the background would ignore them, and so would its children.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _config(folder: Path) -> Path:
    path = folder / "config.yaml"
    path.touch()
    return path


def in_order(database: Path, status: StatusFilter, sort: Sort, category: str | None = None) -> list[str]:
    """The ids of a list as the database orders them; of a category by its name, if one is given."""
    marks = ", ".join("?" * len(STATES_OF_FILTER[status]))
    with closing(sqlite3.connect(database)) as connection:
        connection.create_function("instant", 1, _instant)
        rows = connection.execute(
            "SELECT lower(id) FROM markets WHERE approval = 'approved' AND is_listed"
            " AND id NOT IN (SELECT market_id FROM fx_members WHERE is_public)"
            " AND (? IS NULL OR id IN (SELECT market_id FROM market_categories WHERE category = ?))"
            f" AND status IN ({marks}) ORDER BY {_ORDERS[sort]}, lower(id)",
            [category, category, *STATES_OF_FILTER[status]],
        )
        return [row[0] for row in rows]


def _instant(text: str) -> str:
    moment = datetime.fromisoformat(text)
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.isoformat(timespec="milliseconds")


def exchange(port: int, sent: bytes) -> bytes:
    """Send the bytes as they stand and return all that comes back."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        while chunk := connection.recv(65536):
            received += chunk
    return received
