"""A directory as a store: what a web server reads, concurrent writers, and what is refused."""

import errno
import fcntl
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, NoReturn

import pytest

from generator.api import keys
from generator.errors import BusyError, StoreError
from generator.stores.directory import Directory
from generator.stores.store import ConditionFailedError, If, UnavailableError
from tests.support.project import ROOT

KEY = "v1/public/markets/snapshot.json"
IMMUTABLE = keys.page("open/new", "g1", 20, 20)
ELSEWHERE = "choose another directory with --set publish.target="


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "srv" / "site"


@pytest.fixture
def store(root: Path) -> Directory:
    return Directory(root)


def served(root: Path) -> dict[str, bytes]:
    """What a web server finds, which serves only the API."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in (root / "v1").rglob("*") if path.is_file()}


# What readers see


def validators(path: Path) -> tuple[int, int]:
    """What nginx makes an ETag of."""
    found = path.stat()
    return int(found.st_mtime), found.st_size


def test_no_two_contents_of_a_name_have_time_and_size_in_common(store: Directory, root: Path) -> None:
    seen = list[tuple[int, int]]()
    for number in range(5):
        store.put(KEY, f"{number}".encode() * (number % 2 + 1), If.ALWAYS)
        seen.append(validators(root / KEY))
        if number == 2:
            Directory(root).delete([KEY])
    assert len({*seen}) == 5
    assert [time for time, _ in seen] == sorted({time for time, _ in seen})
    for later in (1, 2):
        store.put(f"v1/{later}.json", b"new", If.ALWAYS)
        assert validators(root / f"v1/{later}.json")[0] <= seen[-1][0], "later than any deletion, but no more"


def test_a_clock_that_was_wrong_once_does_not_date_all_later_files(store: Directory, root: Path) -> None:
    times = list[int]()
    for deletes in (False, True):
        store.put(KEY, b"old", If.ALWAYS)
        os.utime(root / KEY, (2**32, 2**32))
        if deletes:
            store.delete([KEY])
        store.put(KEY, b"new", If.ALWAYS)
        times.append(validators(root / KEY)[0])
    assert max(times) < 2**31


@pytest.mark.parametrize("key", [KEY, IMMUTABLE])
@pytest.mark.parametrize("before", [None, b"half a p"])
def test_readers_never_see_a_part_of_an_object(
    key: str, before: bytes | None, store: Directory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if before:
        store.put(key, before, If.ALWAYS)
    seen: list[dict[str, bytes]] = []
    write = os.write

    def watched(handle: int, body: bytes) -> int:
        seen.append(served(root))
        return write(handle, body[:4])

    monkeypatch.setattr(os, "write", watched)
    store.put(key, b"a whole page", If.ALWAYS)
    assert seen == [{key: before} if before else {}] * 3
    assert served(root) == {key: b"a whole page"}


def test_an_identical_page_is_not_written_again(store: Directory, root: Path) -> None:
    store.put(IMMUTABLE, b"a whole page", If.ALWAYS)
    before = (root / IMMUTABLE).stat()
    assert Directory(root).put(IMMUTABLE, b"a whole page", If.ALWAYS) == store.etag_of(b"a whole page")
    after = (root / IMMUTABLE).stat()
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)


def test_a_page_left_incomplete_by_a_killed_publisher_is_rewritten(store: Directory, root: Path) -> None:
    store.put(IMMUTABLE, b"a whole page", If.ALWAYS)
    (root / IMMUTABLE).write_bytes(b"a who")
    Directory(root).put(IMMUTABLE, b"a whole page", If.ALWAYS)
    assert served(root) == {IMMUTABLE: b"a whole page"}


def test_no_other_files_are_left_beside_objects(store: Directory, root: Path) -> None:
    root.parent.mkdir()
    (root.parent / "neighbour.json").touch()
    store.put(KEY, b"1", If.ABSENT)
    store.put(IMMUTABLE, b"2", If.ALWAYS)
    with pytest.raises(ConditionFailedError):
        store.put(KEY, b"3", If.ABSENT)
    assert served(root) == {KEY: b"1", IMMUTABLE: b"2"}
    assert [listed.key for listed in store.list("")] == sorted([KEY, IMMUTABLE])
    assert {path.name for path in root.iterdir()} == {"v1", ".lock-publish"}


def test_empty_folders_are_removed_and_the_directory_stays(store: Directory, root: Path) -> None:
    for key in (KEY, IMMUTABLE, keys.page("open/new", "g2", 20, 20)):
        store.put(key, b"1", If.ALWAYS)
    store.delete([IMMUTABLE])
    folders = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_dir()}
    assert keys.generation_prefix("open/new", "g1") not in folders
    assert keys.generation_prefix("open/new", "g2") in folders
    store.delete([listed.key for listed in store.list("")])
    assert [path.name for path in root.iterdir()] == [".lock-publish"]


def test_reading_creates_no_files(store: Directory, root: Path, tmp_path: Path) -> None:
    store.now()
    store.get(KEY)
    store.delete([KEY])
    store.flush()
    assert list(store.list("")) == []
    assert not store.is_open_to_everyone()
    assert list(tmp_path.iterdir()) == []
    assert not root.exists()


def test_a_folder_is_not_an_object(store: Directory) -> None:
    store.put(KEY, b"1", If.ALWAYS)
    assert store.get("v1/public") is None
    assert store.get(f"{KEY}/below") is None


# Concurrent writers

COUNT = """
import sys
from pathlib import Path
from generator.stores.store import ConditionFailedError, If
from generator.stores.directory import Directory

store = Directory(Path(sys.argv[1]))
done = 0
while done < 100:
    found = store.get("count")
    try:
        store.put("count", str(int(found.body) + 1 if found else 1).encode(), found.etag if found else If.ABSENT)
        done += 1
    except ConditionFailedError:
        pass
"""


def test_concurrent_processes_lose_no_update(store: Directory, root: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", COUNT, str(root)], cwd=ROOT) for _ in range(4)]
    assert [process.wait(timeout=120) for process in processes] == [0] * 4
    found = store.get("count")
    assert found is not None
    assert found.body == b"400"


def test_a_stopped_writer_does_not_block_others_forever(store: Directory, root: Path, waits: list[float]) -> None:
    store.put(KEY, b"1", If.ALWAYS)
    with (root / ".lock-publish").open("ab") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(UnavailableError, match=r"\.lock-publish: another process holds the lock$"):
            store.put(KEY, b"2", If.ALWAYS)
        assert 1 < sum(waits) < 60
        store.put(IMMUTABLE, b"a page that nothing leads to yet", If.ALWAYS)
    store.put(KEY, b"3", If.ALWAYS)
    assert served(root)[KEY] == b"3"


def test_a_temporary_file_of_a_killed_writer_is_not_an_object(store: Directory, root: Path) -> None:
    store.put(KEY, b"1", If.ALWAYS)
    for name in (".aside-publish", ".aside-publish-5e1f-140"):
        (root / name).write_bytes(b"longer than what comes")
    assert [listed.key for listed in store.list("")] == [KEY]
    Directory(root).put(KEY, b"2", If.ALWAYS)
    assert served(root) == {KEY: b"2"}
    assert {path.name for path in root.iterdir()} == {"v1", ".lock-publish"}


def test_objects_put_together_take_the_lock_once(store: Directory, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    flock = fcntl.flock

    def noted(file: IO[bytes], operation: int) -> None:
        taken.append(operation)
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", noted)
    with store.together():
        etags = [store.put(f"v1/{number}.json", b"1", If.ABSENT) for number in range(20)]
        with pytest.raises(ConditionFailedError):
            store.put("v1/7.json", b"2", If.ABSENT)
        store.put("v1/7.json", b"2", etags[7])
    assert len(taken) == 1
    assert len(served(root)) == 20
    assert served(root)["v1/7.json"] == b"2"
    with pytest.raises(ConditionFailedError):
        store.put("v1/7.json", b"3", etags[7])
    assert len(taken) == 2


def test_a_block_that_fails_releases_the_lock(store: Directory, root: Path) -> None:
    store.put(KEY, b"1", If.ABSENT)
    with pytest.raises(ConditionFailedError), store.together():
        store.put(KEY, b"1", If.ABSENT)
    assert Directory(root).put(KEY, b"2", If.ALWAYS)


@pytest.mark.campaign
def test_threads_that_put_without_end_let_others_take_the_lock(store: Directory, root: Path) -> None:
    others = threading.Event()

    def put(number: int) -> int:
        rounds = 0
        while not others.is_set():
            with store.together():
                for _ in range(20):
                    store.put(f"v1/{number}.json", b"1", If.ALWAYS)
            rounds += 1
        return rounds

    with ThreadPoolExecutor(3) as pool:
        threads = [pool.submit(put, number) for number in range(3)]
        try:
            for _ in range(3):
                Directory(root).put(KEY, b"of another process", If.ALWAYS)
        finally:
            others.set()
    assert all(thread.result() for thread in threads)


def test_a_folder_that_becomes_a_link_is_noticed_by_the_next_block(
    store: Directory, root: Path, tmp_path: Path
) -> None:
    with store.together():
        store.put("v1/public/x.json", b"1", If.ALWAYS)
    (root / "v1" / "public").rename(tmp_path / "elsewhere")
    (root / "v1" / "public").symlink_to(tmp_path / "elsewhere")
    with store.together(), pytest.raises(StoreError, match="a symbolic link leads elsewhere"):
        store.put("v1/public/x.json", b"2", If.ALWAYS)
    assert (tmp_path / "elsewhere" / "x.json").read_bytes() == b"1"


@pytest.mark.parametrize("key", [KEY, IMMUTABLE])
def test_a_temporary_file_that_another_writer_discards_is_written_again(
    key: str, store: Directory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    discarded: list[Path] = []

    def discard_once(handle: int, body: bytes) -> int:
        written = write(handle, body)
        if not discarded:
            discarded.extend(root.glob(".aside-publish*"))
            for path in discarded:
                path.unlink()
        return written

    root.mkdir(parents=True)
    monkeypatch.setattr(os, "write", discard_once)
    store.put(key, b"1", If.ALWAYS)
    assert len(discarded) == 1
    assert served(root) == {key: b"1"}


# Durability


def test_records_reach_the_disk_before_their_names_and_their_names_before_the_put_returns(
    store: Directory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, rename = os.fsync, os.rename

    def path_of(handle: int) -> Path:
        return Path(f"/proc/self/fd/{handle}").readlink()

    def noted_fsync(handle: int) -> None:
        path = path_of(handle)
        calls.append("sync folder" if path == root else f"sync {path.read_bytes().decode()}")
        fsync(handle)

    def noted_rename(source: str, target: str) -> None:
        rename(source, target)
        calls.append(f"rename to {Path(target).name}")

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_rename)
    for key in ("manifest.json", "blocked.json"):
        calls.clear()
        store.put(key, b"{}", If.ABSENT)
        assert calls == ["sync {}", f"rename to {key}", "sync folder"]
    for key in (KEY, IMMUTABLE):  # they are flushed together, before the record says that they are there
        calls.clear()
        store.put(key, b"{}", If.ALWAYS)
        assert calls == [f"rename to {Path(key).name}"]


def test_the_disk_starts_writing_what_was_put_before_the_flush(
    store: Directory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[bool] = []
    main, opened, body = threading.current_thread(), os.open, bytes(7 << 20)

    def noted(path: str | Path, flags: int, *rest: int, **named: Any) -> int:
        if Path(path) == root and flags & os.O_DIRECTORY:  # in order to sync its file system
            syncs.append(threading.current_thread() is main)
            if len(syncs) == 3:
                raise OSError(errno.EIO, "Input/output error")
        return opened(path, flags, *rest, **named)

    def put_much() -> None:
        for number in range(6):
            store.put(f"v1/{number}.json", body, If.ALWAYS)

    monkeypatch.setattr(os, "open", noted)
    put_much()
    store.flush()
    assert syncs == [False, True]
    put_much()
    with pytest.raises(StoreError, match="input/output error"):  # which the system reports only once
        store.flush()


def test_deletions_end_when_the_lease_is_lost(store: Directory, root: Path) -> None:
    names = [f"v1/{number:03}.json" for number in range(250)]
    for name in names:
        store.put(name, b"1", If.ALWAYS)
    calls: list[int] = []

    def refuse_the_second() -> None:
        store.put("manifest.json", b"1", If.ALWAYS)  # as a renewal does, which takes the lock
        calls.append(1)
        if len(calls) == 2:
            raise BusyError("overtaken")

    with pytest.raises(BusyError):
        store.delete(names, refuse_the_second)
    assert len(served(root)) == 150


# The clock and permissions


def test_the_clock_is_the_file_systems(store: Directory, root: Path) -> None:
    root.mkdir(parents=True)
    (root / "before").touch()
    now = store.now().timestamp()
    (root / "after").touch()
    grain = 1e-6  # resolution of a datetime
    assert (root / "before").stat().st_mtime - grain <= now <= (root / "after").stat().st_mtime + grain
    assert {path.name for path in root.iterdir()} == {"before", "after"}


def test_a_world_writable_directory_is_detected(store: Directory, root: Path) -> None:
    store.put(KEY, b"1", If.ALWAYS)
    assert not store.is_open_to_everyone()
    root.chmod(root.stat().st_mode | stat.S_IWOTH)
    assert store.is_open_to_everyone()


# What is refused

CALLS: dict[str, Callable[[Directory, str], object]] = {
    "put": lambda store, key: store.put(key, b"1", If.ALWAYS),
    "create": lambda store, key: store.put(key, b"1", If.ABSENT),
    "get": Directory.get,
    "head": Directory.head,
    "delete": lambda store, key: store.delete([key]),
    "list": lambda store, key: list(store.list(key)),
}


@pytest.mark.parametrize("name", CALLS)
def test_neither_a_link_to_a_folder_elsewhere_nor_a_key_outside_is_followed(
    name: str, store: Directory, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside" / "public" / "x.json"
    outside.parent.mkdir(parents=True)
    outside.write_text("not ours")
    root.mkdir(parents=True)
    with pytest.raises(StoreError, match="leads elsewhere"):
        CALLS[name](store, "v1/../../../outside/public/x.json")
    (root / "v1").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match=rf"^{root}/v1/public: a symbolic link leads elsewhere; .*{ELSEWHERE}"):
        CALLS[name](store, "v1/public/x.json")
    assert [(path.name, path.read_text()) for path in outside.parent.iterdir()] == [("x.json", "not ours")]


def test_an_object_that_is_a_link_is_replaced_not_written_through(store: Directory, root: Path) -> None:
    target = root.parent / "elsewhere.json"
    for key in (KEY, IMMUTABLE):
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).symlink_to(target)
        target.write_text("not ours")
    store.put(IMMUTABLE, b"1", If.ALWAYS)
    assert not (root / IMMUTABLE).is_symlink()
    store.delete([IMMUTABLE])
    with pytest.raises(StoreError, match=rf"^{root}/{KEY}: is a symbolic link"):
        store.get(KEY)
    with pytest.raises(StoreError, match=rf"^{root}/{KEY}: is a symbolic link"):
        list(store.list(""))
    store.put(KEY, b"1", If.ALWAYS)
    assert served(root) == {KEY: b"1"}
    assert target.read_text() == "not ours"


def test_a_link_in_place_of_the_lock_file_is_refused(store: Directory, root: Path, tmp_path: Path) -> None:
    root.mkdir(parents=True)
    (root / ".lock-publish").symlink_to(tmp_path / "victim")
    for name in ("create", "delete"):
        with pytest.raises(StoreError, match=r"is a symbolic link, which is not followed; move it away, or choose"):
            CALLS[name](store, KEY)
    assert not (tmp_path / "victim").exists()


def test_the_blocked_list_is_readable_by_the_publisher_only(store: Directory, root: Path) -> None:
    root.mkdir(parents=True)
    (root / ".aside-publish-private").touch(0o644)  # left by a killed run
    for body in (b"1", b"2"):
        store.put("blocked.json", body, If.ALWAYS)
        assert stat.S_IMODE((root / "blocked.json").stat().st_mode) == 0o600
    store.put(KEY, b"1", If.ALWAYS)
    assert (root / KEY).stat().st_mode & stat.S_IRGRP
    assert served(root) == {KEY: b"1"}
    assert [listed.key for listed in store.list("")] == sorted([KEY, "blocked.json"])


def test_the_directory_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    root.parent.mkdir(parents=True)
    root.symlink_to(tmp_path / "disk")
    Directory(root).put(KEY, b"1", If.ALWAYS)
    assert served(tmp_path / "disk") == {KEY: b"1"}


def test_a_file_in_place_of_the_directory_is_named(store: Directory, root: Path) -> None:
    root.parent.mkdir(parents=True)
    root.touch()
    for name in ("put", "create", "delete"):
        with pytest.raises(StoreError, match=rf"^{root}.*; move that file away, or {ELSEWHERE}"):
            CALLS[name](store, KEY)
    with pytest.raises(StoreError, match=rf"^{root}: .*; move that file away, or {ELSEWHERE}"):
        store.now()


def refused_elsewhere(before: str, root: Path, key: str) -> str:
    """What a process is told that does something, and then puts an object."""
    code = f"""
import os, resource, signal
from pathlib import Path
from generator.errors import StoreError
from generator.stores.store import If
from generator.stores.directory import Directory
{before}
try:
    Directory(Path({str(root)!r})).put({key!r}, b"x" * 2000, If.ALWAYS)
except StoreError as error:
    print(error)
"""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def test_a_read_only_directory_is_named(tmp_path: Path) -> None:
    """As another user: root may write everywhere."""
    root = tmp_path / "site"
    root.mkdir(mode=0o755)
    if os.geteuid() != 0:
        root.chmod(0o555)
    refusal = refused_elsewhere("if os.geteuid() == 0: os.setgroups([]); os.setuid(65534)", root, "v1/build.json")
    assert "permission denied; grant this user write access, or choose another directory" in refusal
    who = r"this user is \w+; /\S+ belongs to \w+, mode 0[0-7]{3}"
    assert re.search(rf"\({who}\)$", refusal.strip())


def test_a_directory_that_may_only_be_read_has_a_clock_for_monitors(
    store: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(**_: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", deny)
    assert abs(datetime.now(UTC) - store.now()) < timedelta(minutes=1)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("key", [KEY, IMMUTABLE])
def test_a_full_disk_is_named_and_the_old_object_stays(key: str, store: Directory, root: Path) -> None:
    store.put(KEY, b"old", If.ALWAYS)
    limited = "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    refusal = refused_elsewhere(limited, root, key)
    assert refusal == f"{root}/{key}: file too large; free some space, or {ELSEWHERE}…\n"
    assert served(root)[KEY] == b"old"
