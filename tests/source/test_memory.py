"""The memory of a build does not grow with the past of its markets."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.source.native import Postgres, detail
from tests.support.campaigns import rounds
from tests.support.project import ROOT
from tests.support.sites.builds import AS_OF
from tests.support.sites.rows import create_database, insert_market, market_id

#: Runs the command line and prints the peak memory of its process, in kB. Not ru_maxrss, which a fork inherits from
#: its parent.
MEASURED: Final = """
import sys
from generator.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


def peak(folder: Path, url: str) -> float:
    """The peak memory of a build, in MB."""
    (folder / "config.yaml").touch()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "build", "--as-of", AS_OF.isoformat()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PUBLIC_MARKETS_SOURCE__URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    return int(done.stdout.splitlines()[-1]) / 1024


FEW, MANY = rounds(3_000, 30_000), rounds(60_000, 300_000)
#: Rows of one market, from a series of numbers `i`, in turn: history, a fill, an order.
LONG_PAST: Final = (
    """
    INSERT INTO probabilities (market_id, recorded_at, prob)
    SELECT '{id}', {time}, (i % 1000) / 1000.0 FROM {series} WHERE i % 3 = 0
    """,
    """
    INSERT INTO fills (id, market_id, amount, shares, price, created_at)
    SELECT {uuid}, '{id}', 1.5, 2.5, 0.5, {time} FROM {series} WHERE i % 3 = 1
    """,
    """
    INSERT INTO orders (market_id, side, price, amount, is_public)
    SELECT '{id}', 'bid', (i % 99 + 1) / 100.0, i, {true} FROM {series} WHERE i % 3 = 2
    """,
)
SQLITE_SERIES: Final = {
    "series": "(WITH RECURSIVE s (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < {rows} - 1) SELECT i FROM s)",
    "time": "strftime('%Y-%m-%d %H:%M:%f000', '2025-01-01', '+' || (i * 60) || ' seconds')",
    "uuid": "printf('%08x-0000-4000-9000-000000000000', i)",
    "true": "1",
}
POSTGRES_SERIES: Final = {
    "series": "generate_series(0, {rows} - 1) AS i",
    "time": "'2025-01-01Z'::timestamptz + i * interval '60 seconds'",
    "uuid": "(lpad(to_hex(i), 8, '0') || '-0000-4000-9000-000000000000')::uuid",
    "true": "true",
}


def long_past(series: dict[str, str], rows: int) -> Iterator[str]:
    for statement in LONG_PAST:
        yield statement.format(**{**series, "series": series["series"].format(rows=rows)}, id=market_id(1))


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("source", ["sqlite", "postgresql"])
def test_memory_does_not_grow_with_the_past(
    tmp_path: Path, make_postgres: Callable[..., Postgres], source: str
) -> None:
    peaks = []
    for rows in (FEW, MANY):
        folder = tmp_path / str(rows)
        folder.mkdir()
        if source == "sqlite":
            with closing(create_database(folder / "markets.db")) as connection, connection:
                insert_market(connection)
                connection.executescript(f"BEGIN; {';'.join(long_past(SQLITE_SERIES, rows))}; COMMIT")
            url = f"sqlite:///{folder / 'markets.db'}"
        else:
            database = make_postgres(number="double precision")
            database.insert_market()
            for statement in long_past(POSTGRES_SERIES, rows):
                database.connection.execute(statement)
            url = database.url
        peaks.append(peak(folder, url))
        assert len(detail(folder / "output", 1)["probHistory"]) == 500
    assert peaks[1] - peaks[0] < 15, peaks
