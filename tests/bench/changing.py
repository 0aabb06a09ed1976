"""Builds of a site in `chunks` that was built before, and what each of them writes.

Every file that a build writes under `v1/` is a PUT of the publish that follows.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from generator.api import keys
from tests.bench import databases
from tests.bench.rebuild import counted
from tests.bench.runner import Runner, product
from tests.bench.tables import Measured
from tests.support.builds import AS_OF


@dataclass(frozen=True)
class Written:
    """Objects, and their bytes."""

    objects: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Built:
    """One build, and what it wrote: objects of lists and of the search index, details, and the others.

    `read` is the number of details that were read, if the build wrote a report, because it wrote anything at all.
    """

    taken: Measured
    lists: Written
    details: Written
    others: Written
    read: int | None

    @property
    def puts(self) -> int:
        """The PUTs of the publish that follows, without those of the record."""
        return self.lists.objects + self.details.objects + self.others.objects


def built(runner: Runner, database: Path, output: Path, minutes: int, **settings: object) -> Built:
    """Build that many minutes after AS_OF, and count what that writes."""
    as_of = (AS_OF + timedelta(minutes=minutes)).isoformat()
    settings = {"layout": "chunks", "source__url": databases.url(database), "output": output, **settings}
    marker = runner.root / "before"
    marker.write_bytes(b"")
    taken = runner.measured(product("build", "--as-of", as_of, folder=runner.root, **settings))
    parts = written_since(output, marker)
    total = sum(part.objects for part in parts)
    if total != counted(taken.stdout.splitlines()[-1])["written"]:
        raise SystemExit(f"{output}: {total} files are new, but the build says: {taken.stdout}")
    run = json.loads((output / "report.json").read_bytes())["run"]
    return Built(taken, *parts, run["details"]["read"] if total else None)


def written_since(output: Path, marker: Path) -> tuple[Written, Written, Written]:
    """What was written of lists, of details and of the others since the marker was."""
    found = {"lists": Written(), "details": Written(), "others": Written()}
    since = marker.stat().st_ctime_ns
    for key, status in _files(output):
        if status.st_ctime_ns > since:
            part = "details" if keys.is_detail(key) else "lists" if key.startswith(_LISTS) else "others"
            found[part] = Written(found[part].objects + 1, found[part].bytes + status.st_size)
    return found["lists"], found["details"], found["others"]


_LISTS: Final = f"{keys.LISTS}/"


def _files(output: Path) -> Iterator[tuple[str, os.stat_result]]:
    for folder, _, files in os.walk(output / "v1"):
        for name in files:
            path = os.path.join(folder, name)  # noqa: PTH118 - of 100,000 files
            yield os.path.relpath(path, output), os.stat(path)  # noqa: PTH116
