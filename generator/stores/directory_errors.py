"""Explains the errors of files below a directory store: which file, whose it is, and what to do."""

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from generator import filesystem
from generator.errors import StoreError

REMEDY: Final = "choose another directory with --set publish.target=…"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise errors of a file as a StoreError that says what to do."""
    try:
        yield
    except OSError as error:
        raise explanation(path, error) from error


def explanation(path: str | Path, error: OSError) -> StoreError:
    """What happened to a file, and what to do."""
    sentence = f"{path}: {filesystem.sentence(error, REMEDY)}"
    return StoreError(f"{sentence} ({_rights(Path(path))})" if isinstance(error, PermissionError) else sentence)


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.parents) if os.path.lexists(place))


def _rights(path: Path) -> str:
    """Who this user is, and whose the nearest existing folder is."""
    place = existing(path)
    status = place.lstat()
    mode = stat.S_IMODE(status.st_mode)
    return f"this user is {_name(os.geteuid())}; {place} belongs to {_name(status.st_uid)}, mode {mode:04o}"


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # it has no entry, as in many containers
        return f"user {user}"
