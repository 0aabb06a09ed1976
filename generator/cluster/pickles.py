"""Refuses pickles while a cluster is connected: whoever makes one chooses the code that runs when it is loaded.

Dask loads the pickles that its scheduler sends, whatever a client asks for. Python tells an audit hook of each class or
function that a pickle names, wherever it is loaded; a pickle that names none can only hold plain data.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

#: What Dask may name: with each result it sends the type.
_HARMLESS: Final = frozenset({"builtins.bytes"})
#: The names that were refused, for each block of `refused` in progress.
_watching: Final[list[list[str]]] = []


@contextmanager
def refused() -> Iterator[list[str]]:
    """Let no thread of this process load a pickle that names more than `bytes` during the block; yield the names."""
    names = list[str]()
    _install()
    _watching.append(names)
    try:
        yield names
    finally:
        _watching.pop()


@cache
def _install() -> None:
    """Add the hook, once: Python cannot remove it."""
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "pickle.find_class" and _watching and (name := ".".join(map(str, arguments))) not in _HARMLESS:
        _watching[-1].append(name)
        raise AttributeError(f"{name} is not loaded from a pickle")  # as if there were no such name
