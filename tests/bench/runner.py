"""Runs and measures commands, in a new folder each.

Trees are not deleted before a measurement: ext4 without a journal creates files up to twenty times slower for minutes
afterwards. They are deleted when the disk fills up, followed by a pause, and at the end.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Final

from tests.bench import measure
from tests.bench.tables import Measured
from tests.support.project import ROOT

#: ext4 without a journal does not reuse an inode for a minute after its deletion, and searches past it meanwhile.
_REST_S: Final = 65
#: Old trees are deleted when less than this share of the space free at the start is left.
_MIN_FREE: Final = 0.4
PYTHON: Final = (sys.executable, "-m")


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    folder: Path
    rounds: int = 5
    #: Multiplies every number of markets; below 1 to try the benchmark itself.
    scale: float = 1.0
    #: Where databases of demo markets are kept for later runs; None: only for this one.
    databases: Path | None = None
    #: The revision to compare with.
    commit: str = "HEAD^"

    def markets(self, number: int) -> int:
        """The number of markets to use; `number` is that of the published figures."""
        return max(10, round(number * self.scale))


@dataclass(frozen=True)
class Command:
    """A program with its arguments, its working directory, and additions to the environment."""

    arguments: Sequence[str | Path]
    cwd: Path = ROOT
    environ: Mapping[str, str] = field(default_factory=dict)

    def of(self, checkout: Path) -> "Command":
        """The same command, by the code of a checkout."""
        return replace(self, environ={**self.environ, "PYTHONPATH": str(checkout)})


class Runner:
    """Measures commands in a folder on the file system under test."""

    def __init__(self, options: Options, root: Path) -> None:
        self.options = options
        self.root = root
        self.missing: list[str] = []
        self._trees = root / "trees"
        self._trees.mkdir()
        self._numbers = count(1)
        self._free = self._free_bytes()

    def new(self, name: str) -> Path:
        """A path, not yet created, in a new folder."""
        folder = self._trees / f"{next(self._numbers)}-{name.replace('/', '-').replace(' ', '-')}"
        folder.mkdir()
        return folder / "output"

    def not_measured(self, what: str, remedy: str) -> None:
        """Report on stderr and in the results what could not be measured."""
        sentence = f"NOT MEASURED: {what}; {remedy}"
        say(sentence)
        self.missing.append(sentence)

    def program(self, name: str, remedy: str) -> str | None:
        """The path of a program; None, reported as not measured, if it is not installed."""
        found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
        if found is None:
            self.not_measured(f"{name} is not installed", remedy)
        return found

    def measured(self, command: Command) -> Measured:
        """Sync the disks, unless this is a trial, then run and measure the command; raise SystemExit if it fails."""
        if self.options.scale >= 1:
            os.sync()
        with tempfile.NamedTemporaryFile(dir=self.root, suffix=".json") as file:
            arguments = [sys.executable, measure.__file__, file.name, *map(str, command.arguments)]
            environ = {**os.environ, "PYTHONPATH": str(ROOT), **command.environ}
            done = subprocess.run(
                arguments, cwd=command.cwd, env=environ, stdout=subprocess.PIPE, text=True, check=False
            )
            if done.returncode:
                raise SystemExit(f"{shlex.join(map(str, command.arguments))} ended with {done.returncode}")
            return Measured(**json.load(file), stdout=done.stdout)

    def _free_bytes(self) -> float:
        state = os.statvfs(self.root)
        return min(state.f_bavail * state.f_frsize, state.f_favail * 4096)

    def rest_if_full(self) -> None:
        """Delete the trees of earlier rounds when the disk fills up, and wait until the file system has recovered."""
        if self._free_bytes() > self._free * _MIN_FREE:
            return
        say("  deleting the trees of earlier rounds, then pausing for the file system")
        remove(self._trees)
        self._trees.mkdir()
        os.sync()
        time.sleep(_REST_S)


@contextmanager
def opened(options: Options) -> Iterator[Runner]:
    """A runner in a new folder below `options.folder`, deleted at the end."""
    options.folder.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(dir=options.folder, prefix="run-"))
    try:
        # Servers that run as another user must be able to read it.
        root.chmod(0o755)
        root.joinpath("config.yaml").touch()
        yield Runner(options, root)
    finally:
        say("deleting the benchmark's files")
        remove(root)


def remove(tree: Path) -> None:
    """Delete a tree that may hold millions of files."""
    subprocess.run(["rm", "-rf", tree], check=True)


def say(sentence: str) -> None:
    """Print progress to stderr."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def product(*arguments: str | Path, folder: Path, **settings: object) -> Command:
    """The product's command line; write `publish__target=…` for publish.target. `folder` has the config.yaml."""
    overrides = [part for key, value in settings.items() for part in ("--set", f"{key.replace('__', '.')}={value}")]
    return Command([*PYTHON, "generator", *arguments, *overrides], cwd=folder)


def start_up(folder: Path) -> Command:
    """`--version`: the start of Python and the imports that every command needs."""
    return Command([*PYTHON, "generator", "--version"], cwd=folder)


def same_files(reference: Path, output: Path) -> None:
    """Raise SystemExit unless both folders hold the same files with the same bytes."""
    done = subprocess.run(["diff", "-rq", reference, output], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the files differ:\n{done.stdout[:1000]}{done.stderr[:1000]}")
