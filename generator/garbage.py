"""Turns the collection of cyclic garbage off and on.

A build makes millions of objects that stay and next to no cyclic garbage; looking for it takes a tenth of a rebuild.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: New objects after which a worker looks for garbage: about as many as it makes for fifty markets.
_OBJECTS: Final = 50_000


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no cyclic garbage in this block."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def collect_own() -> None:
    """Collect garbage in this worker, which makes as many objects as the build, few of which stay.

    Objects that it inherited stay, so they are exempt.
    """
    gc.freeze()
    gc.set_threshold(_OBJECTS)
    gc.enable()
