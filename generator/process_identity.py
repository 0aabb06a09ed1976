"""Identifies a process, so that others on the same machine can find out whether it has ended.

Nothing is known of processes on another machine, in another container or from before the last restart.
"""

import os
import secrets
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")
_ENDED: Final = frozenset("ZX")


def identity() -> str:
    """The identity of this process, never used again."""
    place, state = _place(), _state(os.getpid())
    if place is None or state is None:
        return secrets.token_hex(16)  # unknowable
    return f"{place} {os.getpid()} {state.start}"


def has_ended(other: str) -> bool:
    """Whether the process with this identity is known to have ended."""
    place, _, rest = other.partition(" ")
    if place != _place():
        return False
    pid, _, start = rest.partition(" ")
    if not _exists(int(pid)):
        return True
    state = _state(int(pid))
    return state is not None and (state.has_ended or state.start != start)


def _place() -> str | None:
    """The boot of this machine, and the namespace of its process ids."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return None


class _State(NamedTuple):
    """What /proc shows of a process: whether it has ended, and its start in ticks since boot."""

    has_ended: bool
    start: str


def _exists(pid: int) -> bool:
    # Not by /proc, which may be mounted to hide the processes of other users (hidepid).
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def _state(pid: int) -> _State | None:
    """The state of the process; None if it is gone or hidden."""
    try:
        # proc(5): after the name in parentheses come the state and, as the 22nd of all fields, the start.
        fields = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return _State(fields[0] in _ENDED, fields[19])
