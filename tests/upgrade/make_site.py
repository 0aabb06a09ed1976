"""Makes a small site with the program as it is, for later versions to go on with: `python -m tests.upgrade.make_site`.

It writes `site-VERSION.tar.xz` beside this file: database, settings, output and target, after four publishes on three
days, and a takedown. The test of upgrades takes each such file. Run it at every release; never make an old one anew.
"""

import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from generator import __version__
from generator.demo.database import seed
from tests.support.sites.builds import AS_OF

SETTINGS: Final = """\
base_url: https://api.example.com
source: {url: sqlite:///markets.db}
variant: extended
layout: chunks
categories: [Politics]
dumps: {parquet: true}
publish: {target: ./target}
"""
#: Markets without a trade, so many that the record is a root and a state.
PLAIN: Final = """
INSERT INTO markets (
    id, question, description, status, approval, is_listed, prob, volume, pool_yes, pool_no,
    close_time, created_at, last_activity_at, trader_count
)
WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 1000)
SELECT
    printf('%08x-0000-4000-8000-%012x', number * 4294967, number), 'Plain market ' || number, '', 'open', 'approved',
    1, 0.5, number, 10, 10, '2027-01-01 00:00:00', '2026-01-01 00:00:00', '2026-01-01 00:00:00', 0
FROM numbers
"""
#: When the site is built, after `AS_OF`.
BUILDS: Final = (timedelta(), timedelta(days=1), timedelta(days=2), timedelta(days=2, hours=1))
#: Of the market that is taken down.
TAKEN_DOWN: Final = "taken-down.txt"


def run(folder: Path, *words: str) -> str:
    """Run the program in the folder as it ships; it must succeed. Returns what it printed."""
    command = [sys.executable, "-m", "generator", *words]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def fill(folder: Path) -> None:
    """Publish a site four times while its markets change, and take one of them down."""
    (folder / "config.yaml").write_text(SETTINGS, "utf-8")
    (folder / "target").mkdir()
    seed(folder / "markets.db", as_of=AS_OF, markets=24)
    changes = (
        PLAIN,
        "UPDATE markets SET question = question || ' (edited)' WHERE rowid = 3",
        "UPDATE markets SET is_listed = 0 WHERE rowid = 7",
        "UPDATE markets SET volume = volume + 1 WHERE rowid IN (5, 10, 15, 20)",
    )
    for later, change in zip(BUILDS, changes, strict=True):
        with closing(sqlite3.connect(folder / "markets.db", isolation_level=None)) as database:
            database.execute(change)
            (taken,) = database.execute(
                "SELECT id FROM markets WHERE approval = 'approved' AND is_listed AND rowid > 10 ORDER BY rowid"
            ).fetchone()
        run(folder, "rebuild", "--as-of", (AS_OF + later).isoformat())
    run(folder, "takedown", "--yes", taken)
    (folder / TAKEN_DOWN).write_text(taken, "utf-8")


def main() -> None:
    """Write the file of this version, which must not be there."""
    name = f"site-{__version__}.tar.xz"
    with TemporaryDirectory() as folder, tarfile.open(Path(__file__).with_name(name), "x:xz") as packed:
        fill(Path(folder))
        packed.add(folder, arcname=".")


if __name__ == "__main__":
    main()
