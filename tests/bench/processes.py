"""CPU time and peak memory of processes that outlive a measurement, from /proc (Linux)."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
#: What resets a process's peak memory if written to its `clear_refs`.
_PEAK: Final = "5"


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
