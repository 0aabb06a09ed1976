"""A process that dies at a change of a file: what it leaves, and what the next one makes of it."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

#: What changes a folder.
CHANGES: Final = ("open", "replace", "rename", "mkdir", "rmdir", "unlink")
#: Those that change what is in place already, or put something into place.
PLACING: Final = ("replace", "rename", "rmdir", "unlink")


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
