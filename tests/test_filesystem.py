"""The file system: bytes written ahead are on the disk, and write errors are reported."""

import threading
from pathlib import Path

import pytest

from generator.filesystem import WriteAhead


def test_writing_ahead_goes_on_in_a_thread_that_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "page.json").write_bytes(bytes(1_000_000))
    before = threading.active_count()
    with WriteAhead(tmp_path) as ahead:
        for _ in range(3):
            ahead.begin()
        assert threading.active_count() > before
    assert threading.active_count() == before


def test_a_failed_write_ahead_is_reported_at_the_end(tmp_path: Path) -> None:
    ahead = WriteAhead(tmp_path / "gone")
    with pytest.raises(FileNotFoundError), ahead:
        ahead.begin()


def test_an_error_of_the_block_takes_precedence(tmp_path: Path) -> None:
    def fail() -> None:
        with WriteAhead(tmp_path / "gone") as ahead:
            ahead.begin()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
