"""Runs and measures commands: a new folder for every run, competitors in random order.

Trees are not deleted before a measurement: ext4 without a journal creates files up to twenty times slower for minutes
afterwards. They are deleted when the disk fills up, followed by a pause, and at the end.
"""

import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

import pytest

from tests.bench.tables import Measured
from tests.support.project import ROOT

_T = TypeVar("_T")

#: ext4 without a journal does not reuse an inode for a minute after its deletion, and searches past it meanwhile.
_REST_S: Final = 65
#: Old trees are deleted when less than this share of the space free at the start is left.
_MIN_FREE: Final = 0.4
#: The longest that creating an empty file takes on an idle file system, the number of probes, and how long to wait:
#: inodes deleted but not yet written are skipped for six minutes.
_SLOW_S: Final = 60e-6
_PROBES: Final = 2_000
_PATIENCE_S: Final = 420
START_UP: Final = "start-up (--version)"
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

    def markets(self, number: int) -> int:
        """The number of markets to use; `number` is that of the published figures."""
        return max(10, round(number * self.scale))


@dataclass(frozen=True)
class Command:
    """A program with its arguments, its working directory, and additions to the environment."""

    arguments: Sequence[str | Path]
    cwd: Path = ROOT
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Competitor:
    """A way to do the job; `command` gets the path, not yet created, for the run's files."""

    name: str
    command: Callable[[Path], Command]


class Runner:
    """Measures commands in a folder on the file system under test."""

    def __init__(self, options: Options, root: Path) -> None:
        self.options = options
        self.root = root
        self.missing: list[str] = []
        self.created_s: list[float] = []
        self._trees = root / "trees"
        self._trees.mkdir()
        self._numbers = count(1)
        self._free = self._free_bytes()
        # Waits out one slow phase only, so that a machine that is always slow is measured as it is; trials never wait.
        self._is_patient = options.scale >= 1

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
            arguments = [*PYTHON, "tests.bench.measure", file.name, *map(str, command.arguments)]
            environ = {**os.environ, "PYTHONPATH": str(ROOT), **command.environ}
            done = subprocess.run(
                arguments, cwd=command.cwd, env=environ, stdout=subprocess.PIPE, text=True, check=False
            )
            if done.returncode:
                raise SystemExit(f"{shlex.join(map(str, command.arguments))} ended with {done.returncode}")
            return Measured(**json.load(file), stdout=done.stdout)

    def race(
        self, competitors: Sequence[Competitor], check: Callable[[str, Path], None] = lambda _name, _output: None
    ) -> dict[str, list[Measured]]:
        """Measure every competitor once a round, in random order; `check` gets each output of the first round."""
        results: dict[str, list[Measured]] = {competitor.name: [] for competitor in competitors}
        for number in range(self.options.rounds):
            self.rest_if_full()
            self.wait_for_disk()
            for competitor in random.sample(competitors, len(competitors)):
                output = self.new(competitor.name)
                taken = self.measured(competitor.command(output))
                say(f"  round {number + 1} of {self.options.rounds}: {competitor.name}: {taken.wall_s:.2f} s")
                results[competitor.name].append(taken)
                if number == 0:
                    check(competitor.name, output)
        return results

    def _free_bytes(self) -> float:
        state = os.statvfs(self.root)
        return min(state.f_bavail * state.f_frsize, state.f_favail * 4096)

    def wait_for_disk(self) -> None:
        """Wait while creating files is slow, as after many deletions."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._is_patient and (taken := self._probed()) > _SLOW_S:
            say(f"  a file takes {taken * 1e6:.0f} µs to create: waiting until the disk is idle")
            time.sleep(5)
            self._is_patient = time.monotonic() < deadline
        self.created_s.append(self._probed())

    def disk_state(self) -> str:
        """A sentence that says whether the file system was idle before each round."""
        took = sorted(round(seconds * 1e6) for seconds in self.created_s)
        if took[-1] <= _SLOW_S * 1e6:
            return f"before each round, creating a file took at most {took[-1]} us, as it should"
        return (
            f"before a round, creating a file took {took[0]} to {took[-1]} us, more than {_SLOW_S * 1e6:.0f}: the disk "
            "was busy, **so do not trust the figures of builds**"
        )

    def _probed(self) -> float:
        """Seconds to create an empty file, on average."""
        folder = self.new("probe")
        folder.mkdir()
        began = time.perf_counter()
        for number in range(_PROBES):
            os.close(os.open(folder / str(number), os.O_CREAT | os.O_EXCL))
        return (time.perf_counter() - began) / _PROBES

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


@contextmanager
def provided(runner: Runner, what: str, remedy: str, server: AbstractContextManager[_T]) -> Iterator[_T | None]:
    """Run a server of the tests for the block; None, reported as not measured, if it is not installed."""
    with ExitStack() as stack:
        running = None
        try:
            running = stack.enter_context(server)
        except pytest.skip.Exception as error:
            runner.not_measured(f"{what} ({error})", remedy)
        yield running


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


def start_up(folder: Path) -> Competitor:
    """The time of `--version`: the start of Python and the imports that every command needs."""
    return Competitor(START_UP, lambda _: Command([*PYTHON, "generator", "--version"], cwd=folder))


def same_files(reference: Path, output: Path) -> None:
    """Raise SystemExit unless both folders hold the same files with the same bytes."""
    done = subprocess.run(["diff", "-rq", reference, output], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the files differ:\n{done.stdout[:1000]}{done.stderr[:1000]}")
