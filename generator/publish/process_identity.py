"""Identifies a process, so that others on the same machine can find out whether it has ended.

Nothing is known of processes on another machine, in another container or from before the last restart.
"""

import os
import secrets
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_ENDED: Final = frozenset("ZX")


def identity() -> str:
    """The identity of this process, never used again."""
    place, start = _place(), _start(os.getpid())
    if place is None or start is None:
        return secrets.token_hex(16)  # unknowable
    return f"{place} {os.getpid()} {start}"


def has_ended(other: str) -> bool:
    """Whether the process with this identity is known to have ended."""
    place, _, rest = other.partition(" ")
    if place != _place():
        return False
    pid, _, start = rest.partition(" ")
    return _start(int(pid)) != start


def _place() -> str | None:
    """The boot of this machine, and the namespace of its process ids."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return None


def _start(pid: int) -> str | None:
    """The start of the process, in ticks since boot; None if it has ended."""
    try:
        # proc(5): after the name in parentheses come the state and, as the 22nd of all fields, the start.
        fields = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in _ENDED else fields[19]
