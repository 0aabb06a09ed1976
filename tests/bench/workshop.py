"""Where benchmarks work: new folders for every run, one way to measure, competitors in random order.

Trees are not deleted before a measurement: ext4 without a journal creates files up to twenty times slower for minutes
afterwards. They go when the disk fills up, followed by a rest, and at the end.
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
from tests.support.builds import ROOT

_T = TypeVar("_T")

#: ext4 without a journal does not use an inode again for a minute after its deletion, and searches past it meanwhile.
_REST_S: Final = 65
#: Old trees are deleted when less than this share of what was free at the beginning is left.
_LEFT: Final = 0.4
#: What creating an empty file takes at most on a file system at ease, how many are tried, how long to wait for it:
#: inodes that were deleted and not written yet are passed over for six minutes.
_SLOW_S: Final = 60e-6
_PROBES: Final = 2_000
_PATIENCE_S: Final = 420
START_UP: Final = "start-up (--version)"
PYTHON: Final = (sys.executable, "-m")


@dataclass(frozen=True)
class Options:
    """What the person at the keyboard wants."""

    folder: Path
    rounds: int = 5
    #: Every number of markets is multiplied by it: below 1 to try the benchmark itself.
    scale: float = 1.0
    #: Whether to measure what takes longest, too.
    is_long: bool = False
    aws: str = "aws"

    def markets(self, number: int) -> int:
        """The number of markets to work with, where `number` is the one that figures are published for."""
        return max(10, round(number * self.scale))


@dataclass(frozen=True)
class Command:
    """A program with its arguments, where it runs, and what is in its environment besides what is in ours."""

    arguments: Sequence[str | Path]
    cwd: Path = ROOT
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Competitor:
    """A way to do the job; `command` gets the folder, not there yet, that the run should leave its files in."""

    name: str
    command: Callable[[Path], Command]


class Workshop:
    """A folder on the file system that is measured."""

    def __init__(self, options: Options, root: Path) -> None:
        self.options = options
        self.root = root
        self.missing: list[str] = []
        self.created_s: list[float] = []
        self._trees = root / "trees"
        self._trees.mkdir()
        self._numbers = count(1)
        self._free = self._room()
        # Given up once, so that a machine that is always slow is measured as it is.
        self._is_patient = True

    def new(self, name: str) -> Path:
        """A path in a folder that is used once."""
        folder = self._trees / f"{next(self._numbers)}-{name.replace('/', '-').replace(' ', '-')}"
        folder.mkdir()
        return folder / "output"

    def lacks(self, what: str, remedy: str) -> None:
        """Say loudly, here and in the report, what could not be measured."""
        sentence = f"NOT MEASURED: {what}; {remedy}"
        say(sentence)
        self.missing.append(sentence)

    def program(self, name: str, remedy: str) -> str | None:
        """Where a program is; None, said loudly, when it is not."""
        found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
        if found is None:
            self.lacks(f"{name} is not installed", remedy)
        return found

    def measured(self, command: Command) -> Measured:
        """Run the command on a disk that has nothing left to write, and measure it; raise SystemExit if it fails."""
        os.sync()
        with tempfile.NamedTemporaryFile(dir=self.root, suffix=".json") as file:
            arguments = [*PYTHON, "tests.bench.measure", file.name, *map(str, command.arguments)]
            environ = {**os.environ, "PYTHONPATH": str(ROOT), **command.environ}
            done = subprocess.run(
                arguments, cwd=command.cwd, env=environ, stdout=subprocess.PIPE, text=True, check=False
            )
            if done.returncode:
                raise SystemExit(f"{shlex.join(map(str, command.arguments))} ended with {done.returncode}")
            return Measured(**json.load(file), said=done.stdout)

    def race(
        self,
        competitors: Sequence[Competitor],
        check: Callable[[str, Path], None] = lambda _name, _output: None,
    ) -> dict[str, list[Measured]]:
        """Measure every competitor once a round, in random order; `check` sees what each left in the first round."""
        results: dict[str, list[Measured]] = {one.name: [] for one in competitors}
        for number in range(self.options.rounds):
            self.rest_if_full()
            self.settle()
            for one in random.sample(competitors, len(competitors)):
                output = self.new(one.name)
                taken = self.measured(one.command(output))
                say(f"  round {number + 1} of {self.options.rounds}: {one.name}: {taken.wall_s:.2f} s")
                results[one.name].append(taken)
                if number == 0:
                    check(one.name, output)
        return results

    def _room(self) -> float:
        state = os.statvfs(self.root)
        return min(state.f_bavail * state.f_frsize, state.f_favail * 4096)

    def settle(self) -> None:
        """Wait while creating files is slow because somebody, maybe an earlier run, has deleted many."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._is_patient and (taken := self._probed()) > _SLOW_S:
            say(f"  a file takes {taken * 1e6:.0f} µs to create: waiting, since somebody deletes files or works")
            time.sleep(5)
            self._is_patient = time.monotonic() < deadline
        self.created_s.append(self._probed())

    def ease(self) -> str:
        """Whether the file system was at ease, as a sentence."""
        took = sorted(round(one * 1e6) for one in self.created_s)
        if took[-1] <= _SLOW_S * 1e6:
            return f"before each round creating a file took at most {took[-1]} us: as it should be"
        return (
            f"before a round creating a file took {took[0]} to {took[-1]} us, more than {_SLOW_S * 1e6:.0f}: somebody "
            "deleted files or worked, **so figures of builds are not to be trusted**"
        )

    def _probed(self) -> float:
        """Seconds that it takes to create an empty file."""
        folder = self.new("probe")
        folder.mkdir()
        began = time.perf_counter()
        for number in range(_PROBES):
            os.close(os.open(folder / str(number), os.O_CREAT | os.O_EXCL))
        return (time.perf_counter() - began) / _PROBES

    def rest_if_full(self) -> None:
        """Delete what earlier rounds left when the disk fills up, and wait until the file system is over it."""
        if self._room() > self._free * _LEFT:
            return
        say("  deleting what earlier rounds left, then a rest for the file system")
        remove(self._trees)
        self._trees.mkdir()
        os.sync()
        time.sleep(_REST_S)


@contextmanager
def opened(options: Options) -> Iterator[Workshop]:
    """A workshop in a folder of its own below `options.folder`, deleted at the end."""
    options.folder.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(dir=options.folder, prefix="run-"))
    try:
        # Servers that run as somebody else must reach what is in it.
        root.chmod(0o755)
        root.joinpath("config.yaml").touch()
        yield Workshop(options, root)
    finally:
        say("deleting what the benchmark made")
        remove(root)


@contextmanager
def provided(workshop: Workshop, what: str, remedy: str, server: AbstractContextManager[_T]) -> Iterator[_T | None]:
    """Run a server of the tests for the block; None, said loudly, where it is not installed."""
    with ExitStack() as stack:
        running = None
        try:
            running = stack.enter_context(server)
        except pytest.skip.Exception as error:
            workshop.lacks(f"{what} ({error})", remedy)
        yield running


def remove(tree: Path) -> None:
    """Delete a tree of maybe millions of files."""
    subprocess.run(["rm", "-rf", tree], check=True)


def say(sentence: str) -> None:
    """Tell on stderr how far it is."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def product(*arguments: str | Path, folder: Path, **settings: object) -> Command:
    """The product's command line; write `publish__target=…` for publish.target. `folder` has the config.yaml."""
    overrides = [part for key, value in settings.items() for part in ("--set", f"{key.replace('__', '.')}={value}")]
    return Command([*PYTHON, "generator", *arguments, *overrides], cwd=folder)


def start_up(folder: Path) -> Competitor:
    """What the product takes to say its version: the start of Python, and what it imports in any case."""
    return Competitor(START_UP, lambda _: Command([*PYTHON, "generator", "--version"], cwd=folder))


def same_files(reference: Path, output: Path) -> None:
    """End the benchmark unless both folders hold the same files with the same bytes."""
    done = subprocess.run(["diff", "-rq", reference, output], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"not the same files:\n{done.stdout[:1000]}{done.stderr[:1000]}")
