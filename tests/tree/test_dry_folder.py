"""The folder of a dry run answers as the real one would after the same changes, and leaves that one as it is."""

import os
import tempfile
import time
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.tree import dry_folder
from generator.tree.folder import Output, locked
from tests.support.sites.builds import manifest_of

MUTABLE: Final = ("v1/build.json", "v1/public/markets/snapshot.json")
STATES: Final = ("state/0", "state/1")
BESIDE: Final = ("manifest.json", "blocked.json")
#: A generation of pages, which moves as a whole, and one of its pages.
GENERATION: Final = "v1/public/markets/lists/all/new/p0"
PAGE: Final = f"{GENERATION}/20-0/20.json"
EVERY: Final = (*MUTABLE, *STATES, *BESIDE, PAGE)
NO_MANIFEST: Final = manifest_of()
Steps: TypeAlias = list[tuple[str, str, bytes]]
STEPS: Final = st.lists(
    st.tuples(st.sampled_from(["put", "save", "discard", "generation", "discard generation"]),
              st.sampled_from(EVERY), st.binary(max_size=2)),
    max_size=10,
)  # fmt: skip


def step(folder: Output, what: str, name: str, body: bytes) -> None:
    if what == "discard generation":
        folder.discard_key(GENERATION)
    elif what == "generation":
        if not folder.has(GENERATION):
            folder.put(PAGE, body)
            folder.move(GENERATION)
    elif what == "discard":
        if name != PAGE:  # only whole generations are deleted
            folder.discard_key(name)
    elif name in BESIDE:
        folder.save(name, body)
    elif name != PAGE and folder.put(name, body):
        folder.move(name)


def seen(folder: Output) -> list[object]:
    """What a folder tells of its files."""
    unknown = sorted(folder._name(path) for path in folder.unknown(NO_MANIFEST))  # noqa: SLF001 - where it is, differs
    told = [(folder.read(name), folder.has(name), folder.weight([name])) for name in EVERY]
    names = [folder.names(place) for place in ("state/", "v1/", "v1/public/markets/")]
    return [told, names, folder.has(GENERATION), unknown, folder.strangers(NO_MANIFEST)]


def files(root: Path) -> dict[str, tuple[bytes, int]]:
    paths = (path for path in root.rglob("*") if path.is_file() and path.name != ".lock")
    return {path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_ctime_ns) for path in paths}


@pytest.mark.campaign
@given(STEPS, STEPS)
def test_it_answers_as_a_folder_with_the_same_changes(before: Steps, steps: Steps) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        for name in (one, other):
            with locked(Path(name)) as folder:
                for arguments in before:
                    step(folder, *arguments)
        there = files(Path(one))
        with dry_folder.whole(Path(one)) as overlay, locked(Path(other)) as folder:
            assert seen(overlay) == seen(folder)
            for arguments in steps:
                step(overlay, *arguments)
                step(folder, *arguments)
                assert seen(overlay) == seen(folder)
        assert files(Path(one)) == there


def test_an_object_that_was_closed_to_readers_stays_so(tmp_path: Path) -> None:
    with locked(tmp_path) as folder:
        step(folder, "put", MUTABLE[0], b"1")
    (tmp_path / MUTABLE[0]).chmod(0o600)
    with dry_folder.whole(tmp_path) as overlay:
        assert not overlay.put(MUTABLE[0], b"1")
        assert overlay.are_placed([MUTABLE[0]])
    assert (tmp_path / MUTABLE[0]).stat().st_mode & 0o777 == 0o600


def test_a_deletion_leaves_no_mark_for_later_files(tmp_path: Path) -> None:
    with locked(tmp_path) as folder:
        step(folder, "put", MUTABLE[0], b"1")
    later = time.time() + 1000
    os.utime(tmp_path / MUTABLE[0], (later, later))
    with dry_folder.whole(tmp_path) as overlay:
        overlay.discard_key(MUTABLE[0])
    assert (tmp_path / ".lock").stat().st_mtime < later
