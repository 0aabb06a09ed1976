"""Two lengths of one suite: a campaign is short and seeded in `make test`, and at full length where TEST_ALL=1.

A pytest plugin. A test marked `campaign` has two lengths. Either it gets them from `rounds` or `sample`, or it has many
cases: `campaign(short=3)` runs three of them in the short tier, spread evenly, `campaign(short=0)` none.
"""

import os
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from itertools import combinations, product
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings

IS_FULL: Final = os.environ.get("TEST_ALL") == "1"
_SEED: Final = 20260131
#: The files to name at the end of a run.
SLOWEST: Final = 20

_T = TypeVar("_T")
_N = TypeVar("_N", int, float)


def rounds(short: _N, full: _N) -> _N:
    """The number for this tier: of rounds, or of what so many rounds must show."""
    return full if IS_FULL else short


def sample(cases: Iterable[_T], short: int) -> list[_T]:
    """All cases; in the short tier `short` of them, the same ones in every run, in their order."""
    found = [*cases]
    if IS_FULL or len(found) <= short:
        return found
    chosen = random.Random(_SEED).sample(range(len(found)), short)  # noqa: S311 - nothing here is secret
    return [found[number] for number in sorted(chosen)]


def full_tier(cases: Iterable[Any], *, short: Collection[Any]) -> list[Any]:
    """Parameters for all cases; only those of `short` run in the short tier."""
    beyond = pytest.mark.campaign(short=0)
    return [
        case if case in short else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=beyond)
        for case in cases
    ]


def every_pair(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Few of all combinations, among which every two values of different axes meet.

    A fault that takes two certain values to show is found as by all combinations; one that takes three may not be.
    """
    values = [[*axis] for axis in axes]
    cases = [*product(*(range(len(axis)) for axis in values))]
    left = {pair for case in cases for pair in _pairs(case)}
    chosen = list[tuple[int, ...]]()
    while left:
        chosen.append(max(cases, key=lambda case: len(left & _pairs(case))))
        left -= _pairs(chosen[-1])
    return [tuple(axis[at] for axis, at in zip(values, case, strict=True)) for case in sorted(chosen)]


def _pairs(case: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
    """Any two values of a combination, each with the number of its axis."""
    return {*combinations(enumerate(case), 2)}


def pytest_configure(config: pytest.Config) -> None:
    # If it takes long, the machine is slow, not the test.
    patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("short", patient, derandomize=True, database=None)
    settings.register_profile("full", patient, print_blob=True)
    settings.load_profile("full" if IS_FULL else "short")


def pytest_report_header() -> str:
    short = "short, all but the long tests, which `make test-all` runs"
    return f"tier: {'full, the long tests too' if IS_FULL else short}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which files took longest; what all workers do counts together."""
    seconds: dict[str, float] = defaultdict(float)
    tests = Counter[str]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                seconds[file] += report.duration
                tests[file] += report.when == "call"
    if len(seconds) > 1:
        terminalreporter.section("slowest files", sep="-")
        terminalreporter.write_line(
            f"{sum(seconds.values()):7.1f} s {sum(tests.values()):5} tests in {len(seconds)} files"
        )
        for file, taken in sorted(seconds.items(), key=lambda item: -item[1])[:SLOWEST]:
            terminalreporter.write_line(f"{taken:7.1f} s {tests[file]:5} {file}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if IS_FULL:
        return
    by_function: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        by_function[item.nodeid.partition("[")[0]].append(item)
    left_out = {item for cases in by_function.values() for item in _beyond(cases)}
    # Whoever asks for a test by its name gets it.
    if left_out and not any("::" in argument for argument in config.args):
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _beyond(cases: list[pytest.Item]) -> set[pytest.Item]:
    """The cases of a test that the short tier leaves out."""
    marked = [(item, mark) for item in cases if (mark := item.get_closest_marker("campaign"))]
    sized = [(item, int(mark.kwargs["short"])) for item, mark in marked if "short" in mark.kwargs]
    by_size: dict[int, list[pytest.Item]] = defaultdict(list)
    for item, short in sized:
        by_size[short].append(item)
    kept = {
        found[(2 * number + 1) * len(found) // (2 * short)]
        for short, found in by_size.items()
        for number in range(short)
    }
    return {item for item, _ in sized if item not in kept}
