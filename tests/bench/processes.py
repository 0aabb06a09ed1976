"""CPU time and peak memory of processes that outlive a measurement, from /proc (Linux)."""

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_INTERVAL_S: Final = 0.2
#: What resets a process's peak memory if written to its `clear_refs`.
_PEAK: Final = "5"

#: CPU seconds, by the name of a process or a group of processes.
Cpu = Mapping[str, float]


@dataclass(frozen=True)
class Sample:
    """A moment (seconds since 1970), and the CPU seconds that each name had used until then."""

    time: float
    cpu_s: Cpu


@dataclass
class Watch:
    """Samples, and the peak memory in MiB of every process, by its name."""

    samples: list[Sample] = field(default_factory=list)
    peaks: dict[str, float] = field(default_factory=dict)


def family(root: int) -> list[int]:
    """The ids of a running process and its descendants; empty if it has ended."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root] if _stat(root) else []
    for pid in found:
        found += children.get(pid, [])
    return found


def parent(pid: int) -> int:
    """The id of the process's parent."""
    return int(_stat(pid)[1])


def cpu_s(pids: Iterable[int]) -> float:
    """CPU seconds of processes and of their children that have ended; 0 for a process that has itself ended."""
    return sum(int(ticks) for pid in pids for ticks in _stat(pid)[11:15]) / _TICKS


def peak_mib(pid: int) -> float:
    """The peak memory of a process in MiB; 0 if it has ended."""
    with suppress(OSError):
        for line in (_PROC / str(pid) / "status").read_text("utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def forget_peak(pid: int) -> None:
    """Reset the peak memory of a process to what it has now."""
    with suppress(OSError):
        (_PROC / str(pid) / "clear_refs").write_text(_PEAK, "utf-8")


def _stat(pid: int) -> list[str]:
    """The fields of a process's `stat` from its state on; empty if it has ended."""
    try:
        return (_PROC / str(pid) / "stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return []


@contextmanager
def watched(roots: Mapping[str, int], whole: Iterable[str] = ()) -> Iterator[Watch]:
    """Sample processes during the block. Those named in `whole` are watched with all their descendants.

    The peak of a whole family is that of its largest process.
    """
    watch, ended = Watch(), threading.Event()
    families = frozenset(whole)
    for name, root in roots.items():
        for pid in family(root) if name in families else [root]:
            forget_peak(pid)

    def sample() -> None:
        while True:
            is_last = ended.wait(_INTERVAL_S)
            _sample(watch, roots, families)
            if is_last:
                return

    _sample(watch, roots, families)
    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()


def _sample(watch: Watch, roots: Mapping[str, int], families: frozenset[str]) -> None:
    found = {}
    for name, root in roots.items():
        pids = family(root) if name in families else [root]
        # A process that has ended and was waited for reports no time.
        found[name] = max(cpu_s(pids), watch.samples[-1].cpu_s[name] if watch.samples else 0.0)
        watch.peaks[name] = max([watch.peaks.get(name, 0.0), *map(peak_mib, pids)])
    watch.samples.append(Sample(time.time(), found))
