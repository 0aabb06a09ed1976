"""Separate file systems that tests can fill without harm.

A pytest plugin: ask for `disk`.
"""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.programs import unavailable
from tests.support.waiting import PATIENCE_S


class Disk:
    """A file system in a mount namespace that a shell keeps open."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self._place = place
        self._shell = subprocess.Popen(
            ["unshare", "-rm", "sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        #: Its path for other processes.
        self.path = Path(f"/proc/{self._shell.pid}/root{place}")

    def mount(self, options: str) -> None:
        """Mount a file system in memory, or remount it with other options."""
        assert self._shell.stdin
        assert self._shell.stdout
        try:
            self._shell.stdin.write(f"mount -t tmpfs -o {options} none '{self._place}' && echo mounted\n")
            self._shell.stdin.flush()
        except BrokenPipeError:
            unavailable("unshare -rm is refused here: no disk can be filled")
        answer = self._shell.stdout.readline()
        if answer != "mounted\n":
            unavailable(f"no file system can be mounted here ({answer.strip()}): no disk can be filled")

    def close(self) -> None:
        self._shell.communicate(timeout=PATIENCE_S)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with closing(Disk(tmp_path / "disk")) as disk:
        yield disk
