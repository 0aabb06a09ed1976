"""A command in this process that dies at a change of a file, or at a request: what it does later has no effect."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.stores.s3.behaviour import DENIED, Fault
from tests.support.stores.s3.server import Met, S3Server
from tests.support.stores.s3.wire import Request

#: What changes a folder.
CHANGES: Final = ("open", "replace", "rename", "mkdir", "rmdir", "unlink")
#: Those that change what is in place already, or put something into place.
PLACING: Final = ("replace", "rename", "rmdir", "unlink")
_FILE_CALLS: Final = (*CHANGES, "link")
_STORE_CALLS: Final = frozenset({"PUT", "POST", "DELETE"})


@contextmanager
def intercepted(
    calls: tuple[str, ...], around: Callable[[str, tuple[Any, ...], Callable[[], Any]], Any]
) -> Iterator[None]:
    """Calls with these names that change a folder go through `around`: their name, arguments, and what makes them."""

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return function(*arguments, **options)
            return around(name, arguments, lambda: function(*arguments, **options))

        return wrapped

    with pytest.MonkeyPatch.context() as patch:
        for name in calls:
            patch.setattr(os, name, watched(name, getattr(os, name)))
        yield


@contextmanager
def dying(
    is_last: Callable[[str, Path], bool], *, is_after: bool = False, calls: tuple[str, ...] = PLACING
) -> Iterator[None]:
    """The block dies before (or after) the call that is the last one, by its name and its path.

    `replace` is told by what it replaces, `rename` by what it takes away.
    Forked workers live on. What the block does in order when it is interrupted happens all the same.
    """
    is_dead, process = False, os.getpid()

    def around(name: str, arguments: tuple[Any, ...], call: Callable[[], Any]) -> Any:
        nonlocal is_dead
        if is_dead or os.getpid() != process:
            return call()
        is_dead = is_last(name, Path(os.fsdecode(arguments[name == "replace"])))
        if is_dead and not is_after:
            raise KeyboardInterrupt
        result = call()
        if is_dead:
            raise KeyboardInterrupt
        return result

    with intercepted(calls, around):
        try:
            yield
        except KeyboardInterrupt:
            assert is_dead


@contextmanager
def dying_at(number: int, *, is_after: bool) -> Iterator[list[str]]:
    """The same at the call of this number, of all that change a folder; yields those that were made."""
    made = list[str]()

    def is_last(call: str, _: Path) -> bool:
        made.append(call)
        return len(made) == number

    with dying(is_last, is_after=is_after, calls=CHANGES):
        yield made


class KilledError(BaseException):
    """The end of the process: nothing catches it."""


class Kill:
    """Lets a command make so many writes, to files and to the store, and ends it at the next one."""

    def __init__(self, writes: int) -> None:
        self.left = writes
        self._lock = threading.Lock()

    @property
    def has_struck(self) -> bool:
        return self.left < 0

    @contextmanager
    def over(self, server: S3Server) -> Iterator[None]:
        """Count, and strike, during the block."""
        server.before, server.after = self._before, None
        try:
            with intercepted(_FILE_CALLS, self._counted):
                yield
        except KilledError:
            pass
        finally:
            server.before = server.after = None

    def _count(self) -> bool:
        """Count a write; return whether the process has ended."""
        with self._lock:
            self.left -= 1
            return self.has_struck

    def _counted(self, _name: str, _arguments: tuple[Any, ...], call: Callable[[], Any]) -> Any:
        if self._count():
            raise KilledError
        return call()

    def _before(self, request: Request) -> Fault | None:
        if request.method in _STORE_CALLS:
            return DENIED if self._count() else None
        return DENIED if self.has_struck else None


@contextmanager
def dying_before(server: S3Server, is_next: Callable[[Request], bool]) -> Iterator[None]:
    """A command in the block gets no further than such a request; other faults stay."""
    is_dead, others = False, server.before

    def before(request: Request) -> Met:
        nonlocal is_dead
        is_dead = is_dead or is_next(request)
        return DENIED if is_dead else others(request) if others else None

    server.before = before
    try:
        yield
    finally:
        server.before = others
    assert is_dead


def dead_at_each_call(before: Path, place: Path, act: Callable[[], object]) -> Iterator[str]:
    """Copies of a folder, each after `act` died before or after another call that changes it; yields which one."""
    for number in count(1):
        for is_after in (False, True):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(before, place)
            (place / ".staging-killed").mkdir()
            with dying_at(number, is_after=is_after) as made:
                act()
            yield f"{number}: {made[-1]}"
        if len(made) < number:
            return
