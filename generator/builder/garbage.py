"""When Python collects cyclic garbage.

A build makes millions of objects that stay, and next to no such garbage: to look for it takes a tenth of a rebuild.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage in this block."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def collect_own() -> None:
    """Collect the garbage of this worker: it makes as many objects as the build, and few of them stay."""
    gc.enable()
