"""A description of the machine that the figures were measured on."""

import os
import platform
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

_GIB: Final = 1 << 30


def described(folder: Path) -> Iterator[str]:
    """The machine, the file system that holds `folder`, and the date, as lines of Markdown."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    free = shutil.disk_usage(folder).free / _GIB
    yield f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load {os.getloadavg()[0]:.1f} before the first run"
    yield f"- {len(os.sched_getaffinity(0))} cores ({_processor()}), {memory:.0f} GiB of memory"
    yield f"- {file_system(folder)} with {free:.0f} GiB and {os.statvfs(folder).f_favail:,} inodes free"
    yield f"- {platform.system()} {platform.release()}, Python {platform.python_version()}"


def file_system(folder: Path) -> str:
    """The type of the file system that holds `folder`, and its device."""
    place, found = folder.resolve(), "unknown file system"
    longest = -1
    for line in Path("/proc/self/mounts").read_text("utf-8").splitlines():
        device, mounted, kind, *_ = line.split()
        if place.is_relative_to(mounted) and len(mounted) >= longest:
            longest, found = len(mounted), f"{kind} on {device}"
    return found


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
