"""Makes a small site with the program as it is, for later versions to go on with: `python -m tests.upgrade.make_site`.

It writes `site-VERSION.tar.xz` beside this file: database, settings, output and target, after three publishes and a
takedown. The test of upgrades takes each such file. Run it at every release; never make an old one anew.
"""

import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
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
#: Of the market that is taken down.
TAKEN_DOWN: Final = "taken-down.txt"


def run(folder: Path, *words: str) -> str:
    """Run the program in the folder as it ships; it must succeed. Returns what it printed."""
    command = [sys.executable, "-m", "generator", *words]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def fill(folder: Path) -> None:
    """Publish a site three times while its markets change, and take one of them down."""
    (folder / "config.yaml").write_text(SETTINGS, "utf-8")
    (folder / "target").mkdir()
    seed(folder / "markets.db", as_of=AS_OF, markets=24)
    changes = (
        "UPDATE markets SET volume = volume + 1 WHERE rowid % 5 = 0",
        "UPDATE markets SET question = question || ' (edited)' WHERE rowid = 3",
        "UPDATE markets SET is_listed = 0 WHERE rowid = 7",
    )
    for hour, change in enumerate(changes, start=AS_OF.hour):
        with closing(sqlite3.connect(folder / "markets.db", isolation_level=None)) as database:
            database.execute(change)
            (taken,) = database.execute(
                "SELECT id FROM markets WHERE approval = 'approved' AND is_listed AND rowid > 10 ORDER BY rowid"
            ).fetchone()
        run(folder, "rebuild", "--as-of", AS_OF.replace(hour=hour).isoformat())
    run(folder, "takedown", "--yes", taken)
    (folder / TAKEN_DOWN).write_text(taken, "utf-8")


def main() -> None:
    """Write the file of this version, which must not be there."""
    file = Path(__file__).with_name(f"site-{__version__}.tar.xz")
    with TemporaryDirectory() as folder, tarfile.open(file, "x:xz") as packed:
        fill(Path(folder))
        packed.add(folder, arcname=".")


if __name__ == "__main__":
    main()
