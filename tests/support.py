"""What several test files build with: configurations, databases with hand-written rows, builds, and what they left."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from generator import build, config, demo, rows
from generator.catalog import Market
from generator.cli import main
from generator.config import Config
from generator.contract import Variant
from generator.report import Report

ROOT: Final = Path(__file__).parent.parent
AS_OF: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
#: `AS_OF` on the wire.
NOW: Final = "2026-01-31T12:00:00.000Z"

#: Settings of the extended variant with lists for two categories, the second of which has a name that is no slug.
EXTENDED: Final[Mapping[str, str]] = {"variant": "extended", "categories": "politics,u.s. 2024 elections"}
#: Settings of each variant, for what is tested in both.
VARIANTS: Final[Mapping[Variant, Mapping[str, str]]] = {"core": {}, "extended": EXTENDED}

CHUNKED: Final = {"layout": "chunks"}
#: What is tested after the core variant in the layout `pages`: the other three, by name.
OTHER_BUILDS: Final[Mapping[str, Mapping[str, str]]] = {
    "core-chunks": CHUNKED,
    "extended-pages": EXTENDED,
    "extended-chunks": {**EXTENDED, **CHUNKED},
}

#: Builds of the demo by variant, and by layout if it is not `pages`.
Outputs: TypeAlias = Callable[..., Path]

#: A valid membership of an FX family, as it is in the database and on its way to the wire.
FX_MEMBER: Final[Mapping[str, Any]] = {
    "title": "EUR/USD weekly",
    "instrument": "EURUSD",
    "source": "ECB reference rates",
    "week_start": "2026-01-26",
    "week_end": "2026-01-30",
    "threshold_value": 1.08,
    "direction": "gte",
}


def all_commands() -> dict[str, click.Command]:
    """Every command by its name."""
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


class Silent:
    """Progress that shows nothing."""

    def start(self, steps: int) -> None:
        """Expect so many steps."""

    def advance(self) -> None:
        """Count one as done."""


def make_config(folder: Path, **settings: object) -> Config:
    """Settings for `folder`/markets.db and `folder`/output; write `detail__recent_fills=3` for detail.recent_fills."""
    file = folder / "config.yaml"
    file.touch()
    values = {"source.url": f"sqlite:///{folder / 'markets.db'}", "output": str(folder / "output")}
    values |= {key.replace("__", "."): str(value) for key, value in settings.items()}
    return config.load(file, overrides=[f"{key}={value}" for key, value in values.items()], environ={})


def build_now(settings: Config, as_of: datetime = AS_OF, *, shrink: bool = False, invalid: bool = False) -> Report:
    """Build in this process."""
    clock = build.Clock(as_of, is_set=True)
    return build.build(settings, clock, allowed=build.Allowed(shrink=shrink, invalid=invalid), progress=Silent())


def run(*arguments: str | Path, cwd: Path = ROOT, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the real command line; `environ` is added to this process's environment."""
    return subprocess.run(
        [sys.executable, "-m", "generator", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def files(output: Path, below: str = "v1") -> dict[str, bytes]:
    """Every file of an output folder below `v1`, by its key; `below=""` for really every file."""
    found = (path for path in (output / below).rglob("*") if path.is_file())
    return {path.relative_to(output).as_posix(): path.read_bytes() for path in sorted(found)}


# ── databases with hand-written rows ──────────────────────────────────────────────────────────────────────────────


def create_database(path: Path) -> sqlite3.Connection:
    """Create an empty database and open it; what is inserted is there at once."""
    demo.create_empty(path)
    return sqlite3.connect(path, isolation_level=None)


def market_id(number: int) -> str:
    """A UUID that sorts like its number."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def fill_id(number: int) -> str:
    """A UUID that sorts like its number and is no market's."""
    return f"{number:08x}-0000-4000-9000-000000000000"


def insert(connection: sqlite3.Connection, relation: str, **columns: Any) -> None:
    """Insert one row as it stands."""
    marks = ", ".join("?" * len(columns))
    connection.execute(f"INSERT INTO {relation} ({', '.join(columns)}) VALUES ({marks})", [*columns.values()])


def market_row(number: int = 1, **columns: Any) -> dict[str, Any]:
    """A valid public open market; `columns` replace its values."""
    return {
        "id": market_id(number),
        "slug": None,
        "question": f"Question {number}?",
        "description": None,
        "status": "open",
        "approval": "approved",
        "is_listed": 1,
        "prob": 0.5,
        "volume": 100.0,
        "pool_yes": 50.0,
        "pool_no": 50.0,
        "close_time": "2026-06-30 23:59:59.000000",
        "resolution": None,
        "created_at": "2026-01-01 00:00:00.000000",
        "resolved_at": None,
        "last_activity_at": "2026-01-15 00:00:00.000000",
        "trader_count": 10,
        "trading_pause_reason": None,
        "creation_source": None,
        "sponsor": None,
    } | columns


def public_market(number: int = 1, *, fx: Mapping[str, Any] | None = None, fills24h: int = 0, **columns: Any) -> Market:
    """The market of `market_row(number, **columns)` as a catalog holds it."""
    return Market.of(rows.market(market_row(number, **columns), fx=fx, fills24h=fills24h, as_of=NOW))


def insert_market(connection: sqlite3.Connection, number: int = 1, **columns: Any) -> str:
    """Insert a valid public open market, with `columns` in place of its values; returns its id."""
    row = market_row(number, **columns)
    insert(connection, "markets", **row)
    return str(row["id"])


def insert_fill(connection: sqlite3.Connection, number: int = 1, **columns: Any) -> None:
    """Insert a valid fill, of market 1 if `market_id` is not given."""
    row = {
        "id": fill_id(number),
        "market_id": market_id(1),
        "amount": 10.0,
        "shares": 20.0,
        "price": 0.5,
        "created_at": "2026-01-15 00:00:00.000000",
    }
    insert(connection, "fills", **row | columns)


def insert_category(connection: sqlite3.Connection, category: object, position: object = 0, **columns: Any) -> None:
    """Insert a category, of market 1 if `market_id` is not given."""
    row = {"market_id": market_id(1), "category": category, "position": position}
    insert(connection, "market_categories", **row | columns)


def insert_order(connection: sqlite3.Connection, **columns: Any) -> None:
    """Insert a valid public bid, on market 1 if `market_id` is not given."""
    row = {"market_id": market_id(1), "side": "bid", "price": 0.4, "amount": 5.0, "is_public": 1}
    insert(connection, "orders", **row | columns)


def insert_point(connection: sqlite3.Connection, recorded_at: object, prob: object = 0.5, **columns: Any) -> None:
    """Insert a point of the history, of market 1 if `market_id` is not given."""
    row = {"market_id": market_id(1), "recorded_at": recorded_at, "prob": prob}
    insert(connection, "probabilities", **row | columns)


def insert_fx_member(connection: sqlite3.Connection, **columns: Any) -> None:
    """Insert a valid membership of a public FX family, of market 1 if `market_id` is not given."""
    insert(connection, "fx_members", **{"market_id": market_id(1), **FX_MEMBER, "is_public": 1} | columns)
