"""Ends a command in this process at one of its writes, as a kill would: nothing that it does later has an effect."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.support.deaths import CHANGES, intercepted
from tests.support.stores.s3.behaviour import DENIED, Fault
from tests.support.stores.s3.server import S3Server
from tests.support.stores.s3.wire import Request

_FILE_CALLS: Final = (*CHANGES, "link")
_STORE_CALLS: Final = frozenset({"PUT", "POST", "DELETE"})


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
    """A command in the block gets no further than such a request."""
    is_dead = False

    def before(request: Request) -> Fault | None:
        nonlocal is_dead
        is_dead = is_dead or is_next(request)
        return DENIED if is_dead else None

    server.before = before
    try:
        yield
    finally:
        server.before = None
    assert is_dead
