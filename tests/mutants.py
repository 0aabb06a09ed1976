"""Whether the tests find faults as well as those of another commit did: one-line faults, drawn by a seed, in both.

    python -m tests.mutants BASE [--commit HEAD] [--count 60] [--seed 1] [--jobs 2]

The faults are in lines of `generator/` that both commits have. Each is put into a checkout of either commit under
.mutants/, where the test files that reach the line run, the quickest first, up to the first failure or for a minute.
For what `make test` does not find so, the campaigns of these files run, too. What is known is kept in .mutants/: run
the same command again to go on where it was stopped. Takes hours.
"""

import argparse
import ast
import hashlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any, Final

import pytest
from coverage import Coverage, CoverageData

ROOT: Final = Path(__file__).parents[1]
KEPT: Final = ROOT / ".mutants"
_WRITING: Final = Lock()
#: How long the tests of a fault may run, in seconds: those of `make test`, and the campaigns.
PATIENCE_S: Final = {"short": 60, "campaigns": 300}

_COMPARED: Final[Mapping[type, str]] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_COMBINED: Final[Mapping[type, str]] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.BitOr: "&"}


@dataclass(frozen=True)
class Fault:
    """A change of one line: the part of it from `begin` to `end` becomes `instead`."""

    path: str
    line: int
    begin: int
    end: int
    instead: str
    text: str

    @property
    def name(self) -> str:
        """Equal in all commits in which the line is the same, unless its file has it twice."""
        return f"{self.path}: {self.text.strip()} [{self.begin}:{self.end} = {self.instead}]"

    def apply(self, source: str) -> str:
        lines = source.splitlines(keepends=True)
        line = lines[self.line - 1].encode()
        lines[self.line - 1] = (line[: self.begin] + self.instead.encode() + line[self.end :]).decode()
        return "".join(lines)


def faults(path: str, source: str) -> Iterator[Fault]:
    """Every fault of a file, of those that one line can have."""
    lines = source.splitlines()
    for node in _run(ast.parse(source)):
        for begin, end, instead in _changes(node):
            if begin[0] == end[0]:
                yield Fault(path, begin[0], begin[1], end[1], instead, lines[begin[0] - 1])


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it but types, which nothing runs."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _run(child)


def _changes(node: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int], str]]:
    """The places of a node, as line and byte, and what may stand there instead."""
    match node:
        case ast.Compare(left=left, ops=[one], comparators=[right]) if type(one) in _COMPARED:
            yield _end(left), _begin(right), f" {_COMPARED[type(one)]} "
        case ast.BoolOp(op=op, values=[left, right, *_]):
            yield _end(left), _begin(right), " or " if isinstance(op, ast.And) else " and "
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _begin(node), _begin(operand), ""
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMBINED and not isinstance(left, ast.Constant):
            yield _end(left), _begin(right), f" {_COMBINED[type(op)]} "
        case ast.Constant(value=bool() as value):
            yield _begin(node), _end(node), str(not value)
        case ast.Constant(value=int() as number):
            yield _begin(node), _end(node), str(number + 1)
        case ast.If(test=test) | ast.IfExp(test=test):
            yield _begin(test), _end(test), "True"
            yield _begin(test), _end(test), "False"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield _begin(value), _end(value), "None"
        case ast.Expr(value=ast.Call() as value):
            yield _begin(value), _end(value), "None"
        case _:
            pass


def _begin(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def drawn(seed: int, count: int, ours: Path, theirs: Path) -> list[tuple[Fault, Fault]]:
    """`count` faults, each as it is in both checkouts. Which come first depends on the seed and their names alone."""
    both = dict[str, tuple[Fault, Fault]]()
    for file in sorted((ours / "generator").rglob("*.py")):
        path = file.relative_to(ours).as_posix()
        if not (theirs / path).exists():
            continue
        mine, other = file.read_text("utf-8"), (theirs / path).read_text("utf-8")
        equal = _equal_lines(mine.splitlines(), other.splitlines())
        there = {(fault.line, fault.begin, fault.instead): fault for fault in faults(path, other)}
        for fault in faults(path, mine):
            twin = there.get((equal.get(fault.line, 0), fault.begin, fault.instead))
            if twin is not None and fault.name not in both:
                both[fault.name] = fault, twin
    order = sorted(both, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
    return [both[name] for name in order[:count]]


def _equal_lines(ours: list[str], theirs: list[str]) -> dict[int, int]:
    """The number of each line of ours that the other file has, too, and its number there."""
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return {a + at + 1: b + at + 1 for a, b, size in blocks for at in range(size)}


class Checkout:
    """A commit under .mutants/, with as many copies as run at once, and what its test files reach and take."""

    def __init__(self, commit: str, jobs: int) -> None:
        self.commit = commit
        self._trees = SimpleQueue[Path]()
        self.first = self._tree(0)
        for number in range(jobs):
            self._trees.put(self._tree(number))
        self._results = KEPT / f"{commit}.results.json"
        self.found: dict[str, dict[str, str]] = json.loads(self._results.read_text()) if self._results.exists() else {}
        reached = KEPT / f"{commit}.reached.json"
        if not reached.exists():
            reached.write_text(json.dumps(_reached(self.first)))
        self._reached = json.loads(reached.read_text())

    def _tree(self, number: int) -> Path:
        tree = KEPT / f"{self.commit}-{number}"
        if not tree.exists():
            _git("worktree", "add", "--force", "--detach", "--quiet", str(tree), self.commit)
            for place in ("tests/node", "clients/typescript"):
                (tree / place / "node_modules").symlink_to(ROOT / place / "node_modules")
            (tree / "tests" / Path(__file__).name).write_bytes(Path(__file__).read_bytes())  # the plugin below
        return tree

    def files(self, fault: Fault) -> list[str]:
        """The test files that reach the line; those that reach its module, if it runs when that is loaded."""
        of_file = self._reached["lines"].get(fault.path, {})
        of_line = of_file.get(str(fault.line)) or {file for files in of_file.values() for file in files}
        package = f"tests/{Path(fault.path).parent.name}/"
        beside = [file for file in self._reached["seconds"] if file.startswith(package)]
        return sorted(of_line or beside, key=lambda file: self._reached["seconds"].get(file, 0.0))

    def try_out(self, fault: Fault, tier: str) -> None:
        """Run the tests of a fault, unless that was done."""
        if tier in self.found.get(fault.name, {}):
            return
        tree = self._trees.get()
        path = tree / fault.path
        source = _git("show", f"{self.commit}:{fault.path}", strip=False)
        path.write_text(fault.apply(source), "utf-8")
        try:
            end = _first_failure(tree, self.files(fault), tier)
        finally:
            path.write_text(source, "utf-8")
            self._trees.put(tree)
        with _WRITING:
            self.found.setdefault(fault.name, {})[tier] = end
            self._results.write_text(json.dumps(self.found, indent=1))
            sys.stdout.write(f"{self.commit[:8]} {tier}: {end}: {fault.name}\n")
            sys.stdout.flush()

    def has_found(self, fault: Fault) -> bool:
        return any(end.startswith("found") for end in self.found.get(fault.name, {}).values())


def _first_failure(tree: Path, tests: Sequence[str], tier: str) -> str:
    """How the tests end: `found by` a test, `survived`, or `survived so far` when time is up."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-m", "campaign"] if tier == "campaigns" else []
    with subprocess.Popen(
        [*command, *tests], cwd=tree, env=_environment(tree, tier), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, _ = process.communicate(timeout=PATIENCE_S[tier])
        except subprocess.TimeoutExpired:
            _kill(process)
            return "survived so far"
    first = next((line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))), "")
    if process.returncode in (0, 5):  # 5: no campaign is among these files
        return "survived"
    return f"found by {first.partition(' ')[2].partition(' - ')[0] or 'an error of pytest'}"


def _kill(process: "subprocess.Popen[str]") -> None:
    os.killpg(process.pid, 9)
    process.communicate()


def _reached(tree: Path) -> dict[str, Any]:
    """The test files that reach each line of `generator/`, and the seconds that each file takes.

    A file that fails in such a checkout as it is tells of no fault, and is left out.
    """
    for old in tree.glob(".reached*"):
        old.unlink()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "3", "--dist", "loadfile", "-p", "tests.mutants"]
    subprocess.run(command, cwd=tree, env=_environment(tree, "short"), check=False)
    lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    seconds: dict[str, float] = defaultdict(float)
    failed = set[str]()
    for part in tree.glob(".reached.tests.*"):
        found = json.loads(part.read_text())
        failed |= {*found["failed"]}
        for file, taken in found["seconds"].items():
            seconds[file] += taken
    for part in tree.glob(".reached.data.*"):
        data = CoverageData(str(part))
        data.read()
        for file in data.measured_files():
            path = Path(file).relative_to(tree).as_posix()
            for line, contexts in data.contexts_by_lineno(file).items():
                lines[path][line] |= {context for context in contexts if context and context not in failed}
    return {
        "lines": {path: {line: sorted(tests) for line, tests in of.items()} for path, of in lines.items()},
        "seconds": {file: taken for file, taken in seconds.items() if file not in failed},
        "failed": sorted(failed),
    }


def _environment(tree: Path, tier: str) -> dict[str, str]:
    full = {"TEST_ALL": "1"} if tier == "campaigns" else {}
    return {**os.environ, **full, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}


def _git(*words: str, strip: bool = True) -> str:
    printed = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return printed.strip() if strip else printed


class _Recorder:
    """A plugin of pytest: which lines the tests of each file reach, in the process of the tests."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed = set[str]()
        self._coverage = Coverage(data_file=f".reached.data.{os.getpid()}", source=["generator"], config_file=False)
        self._coverage.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self._coverage.switch_context(item.nodeid.partition("::")[0])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self._seconds[file] += report.duration
        if report.failed:
            self._failed.add(file)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        found = {"seconds": self._seconds, "failed": [*self._failed]}
        Path(f".reached.tests.{os.getpid()}").write_text(json.dumps(found))


def pytest_configure(config: pytest.Config) -> None:
    is_leader = config.getoption("numprocesses", default=None) and "PYTEST_XDIST_WORKER" not in os.environ
    if not is_leader:
        config.pluginmanager.register(_Recorder())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("base", metavar="BASE", help="the commit to compare with")
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    options = _options()
    KEPT.mkdir(exist_ok=True)
    both = [Checkout(_git("rev-parse", name), options.jobs) for name in (options.commit, options.base)]
    pairs = drawn(options.seed, options.count, both[0].first, both[1].first)
    for tier in PATIENCE_S:
        with ThreadPoolExecutor(options.jobs) as threads:
            for checkout, column in zip(both, zip(*pairs, strict=True), strict=True):
                left = [fault for fault in column if not checkout.has_found(fault)]
                [*threads.map(lambda fault, at=checkout, tier=tier: at.try_out(fault, tier), left)]
    table = {f"{checkout.commit[:8]}": [checkout.has_found(fault) for fault in column]
             for checkout, column in zip(both, zip(*pairs, strict=True), strict=True)}  # fmt: skip
    for commit, found in table.items():
        sys.stdout.write(f"{commit}: found {sum(found)} of {len(found)} faults\n")
    for (ours, _), *ends in zip(pairs, *table.values(), strict=True):
        if len({*ends}) > 1:
            sys.stdout.write(f"{'only here' if ends[0] else 'only in the base'}: {ours.name}\n")


if __name__ == "__main__":
    main()
