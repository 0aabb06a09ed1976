"""Files of downloads: what is written and not needed goes at once, and several writers share a folder."""

from pathlib import Path

import pytest

from generator.api.downloads import MarketsFile
from generator.downloads.parquet import WrittenTable
from generator.tree.download import Draft, NewFiles, Write
from generator.tree.folder import Output, locked

BASE_URL = "https://markets.example"


def left(folder: Path) -> list[str]:
    """The files in the folder, staged or in place."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != ".lock")


def described(draft: Draft[bytes]) -> MarketsFile:
    digest = draft.content.hex().ljust(64, "0")
    return MarketsFile.of(WrittenTable(digest, len(draft.content), 1), BASE_URL)


def draft(folder: Output, body: bytes) -> tuple[NewFiles, Draft[bytes]]:
    def make(write: Write) -> bytes:
        write(body)
        return body

    new = NewFiles(folder)
    return new, new.draft(make)


def test_several_writers_share_a_folder(tmp_path: Path) -> None:
    with locked(tmp_path) as folder:
        drafts = [draft(folder, body) for body in (b"one", b"two")]
        files = [new.stage(made, described(made)) for new, made in drafts]
        assert left(tmp_path) == sorted(file.name.rpartition("/")[2] for file in files)


def test_what_is_in_place_already_is_deleted_at_once(tmp_path: Path) -> None:
    with locked(tmp_path) as folder:
        new, made = draft(folder, b"one")
        key = new.stage(made, described(made)).key
        folder.move(key)
        again, same = draft(folder, b"one")
        again.stage(same, described(same))
        assert again.staged == set()
        assert left(tmp_path) == [key.rpartition("/")[2]]


def test_what_nobody_needs_and_what_could_not_be_written_is_deleted_at_once(tmp_path: Path) -> None:
    def fail(write: Write) -> None:
        write(b"half")
        raise ValueError("unwritable")

    with locked(tmp_path) as folder:
        new = NewFiles(folder)
        assert new.draft(lambda _: None).content is None
        with pytest.raises(ValueError, match="unwritable"):
            new.draft(fail)
        new.discard(draft(folder, b"unused")[1])
        assert left(tmp_path) == []
