"""A lock file: excludes other processes, and is shared by the threads of one store, which may keep it for a while.

The operating system releases the lock when its holder ends. `flock`, unlike `lockf`, also excludes two stores of one
process, because each opens the file itself.
"""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition
from typing import IO, Final

from generator import filesystem
from generator.stores.store import UnavailableError

_WAIT_S: Final = 0.005
_ATTEMPTS: Final = 1_000
#: How long batches may follow one another under one lock, and how long it is then free, so that whoever asks every
#: `_WAIT_S` gets it in good time.
_TENURE_S: Final = 0.05
_PAUSE_S: Final = 0.001


class LockFile:
    """The lock file `path`; its folder is created with it. `on_first` is called under the lock the first time."""

    def __init__(self, path: Path, on_first: Callable[[], None]) -> None:
        self._path = path
        self._on_first: Callable[[], None] | None = on_first
        self._condition = Condition()
        self._file: IO[bytes] | None = None
        self._holders = 0
        self._since = 0.0

    @contextmanager
    def held(self, *, is_batch: bool = False) -> Iterator[None]:
        """Hold the lock, together with other threads. A batch waits for its turn; it may itself wait for anyone else.

        Raise UnavailableError when another process keeps the lock for seconds.
        """
        with self._condition:
            if is_batch:
                self._condition.wait_for(self._has_time)
            if self._file is None:
                self._acquire()
            self._holders += 1
        try:
            yield
        finally:
            with self._condition:
                self._holders -= 1
                if not self._holders:
                    self._release()

    def _has_time(self) -> bool:
        return self._file is None or time.monotonic() < self._since + _TENURE_S

    def _acquire(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = open(self._path, "ab", opener=filesystem.open_no_link)  # noqa: SIM115 - closed by the last holder
        try:
            self._wait_for(file)
            if self._on_first:
                self._on_first()
        except BaseException:
            file.close()
            raise
        self._on_first = None
        self._file, self._since = file, time.monotonic()

    def _wait_for(self, file: IO[bytes]) -> None:
        # Not forever: a suspended process may hold the lock.
        for _ in range(_ATTEMPTS):
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_WAIT_S)
        raise UnavailableError(f"{self._path}: another process holds the lock")

    def _release(self) -> None:
        if self._file:
            is_over = not self._has_time()
            self._file.close()
            self._file = None
            if is_over:
                time.sleep(_PAUSE_S)
            self._condition.notify_all()
