"""Which process this is, in words by which others on the same machine can tell whether it has ended.

Of a process on another machine, in another container or before the last restart nothing can be told.
"""

import os
import secrets
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_ENDED: Final = frozenset("ZX")


def identity() -> str:
    """This process; no other one ever has the same."""
    place, start = _place(), _start(os.getpid())
    if place is None or start is None:
        return secrets.token_hex(16)  # nobody can tell
    return f"{place} {os.getpid()} {start}"


def has_ended(other: str) -> bool:
    """Whether the process is known to have ended."""
    place, _, rest = other.partition(" ")
    if place != _place():
        return False
    pid, _, start = rest.partition(" ")
    return _start(int(pid)) != start


def _place() -> str | None:
    """This start of this machine, and the namespace in which process ids mean something."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return None


def _start(pid: int) -> str | None:
    """When the process began, in ticks since the machine did; None when it has ended."""
    try:
        # proc(5): after the name in parentheses come the state and, as the 22nd of all fields, the start.
        fields = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in _ENDED else fields[19]
