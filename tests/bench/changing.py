"""Rebuilds of a site, and what each of them writes.

Every file that a build writes under `v1/` is a PUT of the publish that follows.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from generator.api import contract, keys
from tests.bench import databases
from tests.bench.runner import Runner, product
from tests.bench.tables import Measured
from tests.support.project import ROOT
from tests.support.sites.builds import AS_OF

#: Kinds of what is written.
CHUNKS, INDEXES, HEADS, DETAILS, OTHERS, BESIDE = ("chunks", "indexes", "heads", "details", "others", "beside v1")
#: In the layout `chunks`.
OF_LISTS: Final = (CHUNKS, INDEXES, HEADS)
#: The one file that every build touches.
_LOCK: Final = ".lock"


@dataclass(frozen=True)
class Written:
    """Objects, and their bytes."""

    objects: int = 0
    bytes: int = 0

    def __add__(self, other: "Written") -> "Written":
        return Written(self.objects + other.objects, self.bytes + other.bytes)


@dataclass(frozen=True)
class Built:
    """One build: what it wrote, by kind; the number of files of `v1/`; its report, or that of the last that wrote."""

    taken: Measured
    written: Mapping[str, Written]
    files: int
    report: Mapping[str, Any]

    @property
    def puts(self) -> int:
        """The PUTs of the publish that follows, without those of the record."""
        return sum(part.objects for kind, part in self.written.items() if kind != BESIDE)

    @property
    def lists(self) -> Written:
        """What it wrote of lists, in the layout `chunks`."""
        return sum((self.written[kind] for kind in OF_LISTS), Written())

    @property
    def read(self) -> int | None:
        """The number of details that it read; None if it wrote nothing, and so no report."""
        return self.report["run"]["details"]["read"] if self.puts else None


def built(
    runner: Runner, database: Path, output: Path, minutes: int, checkout: Path = ROOT, /, **settings: object
) -> Built:
    """Build that many minutes after AS_OF, in `chunks` if no setting says otherwise, and count what that writes."""
    as_of = (AS_OF + timedelta(minutes=minutes)).isoformat()
    settings = {"layout": "chunks", "source__url": databases.url(database), "output": output, **settings}
    marker = runner.root / "before"
    marker.write_bytes(b"")
    taken = runner.measured(product("build", "--as-of", as_of, folder=runner.root, **settings).of(checkout))
    said = counted(taken.stdout.splitlines()[-1])
    report = json.loads((output / "report.json").read_bytes())
    made = Built(taken, written_since(output, marker), sum(said.values()), report)
    if made.puts != said["written"]:
        raise SystemExit(f"{output}: {made.puts} files are new, but the build says: {taken.stdout}")
    return made


def counted(summary: str) -> dict[str, int]:
    """The numbers of written and unchanged files in the summary line."""
    words = summary.replace(",", "").split()
    return {"written": int(words[words.index("written") - 2]), "unchanged": int(words[words.index("unchanged") - 1])}


def written_since(output: Path, marker: Path) -> dict[str, Written]:
    """What was written since the marker was, by kind."""
    found = dict.fromkeys((*OF_LISTS, DETAILS, OTHERS, BESIDE), Written())
    since = marker.stat().st_ctime_ns
    for key, status in _files(output):
        if status.st_ctime_ns > since and key != _LOCK:
            kind = _kind(key)
            found[kind] += Written(1, status.st_size)
    return found


def _kind(key: str) -> str:
    if not key.startswith(f"{contract.API_VERSION}/"):
        return BESIDE
    if not key.startswith((f"{keys.LISTS}/", f"{keys.QUESTION_LISTS}/")):
        return DETAILS if keys.is_detail(key) or keys.is_question(key) else OTHERS
    if key.endswith(f"/{keys.HEAD}"):
        return HEADS
    return CHUNKS if f"/{keys.CHUNKS}/" in key else INDEXES if key.endswith(f"/{keys.INDEX}") else OTHERS


def _files(output: Path) -> Iterator[tuple[str, os.stat_result]]:
    for folder, _, files in os.walk(output):
        for name in files:
            path = os.path.join(folder, name)  # noqa: PTH118 - of 300,000 files
            yield os.path.relpath(path, output), os.stat(path)  # noqa: PTH116
