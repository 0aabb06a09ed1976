"""What a folder says of its details: in shards if it is large, and nothing is known if anything of it is damaged."""

import hashlib
from pathlib import Path

import pytest

from generator.models import replaced
from generator.tree import files, fingerprints
from generator.tree.fingerprints import Fingerprints, MadeOf
from generator.tree.folder import Output, locked
from tests.support.deaths import dead_at_each_call
from tests.support.sites.rows import market_id


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


def made(as_of: str = "12:00", changed: int = 0) -> Fingerprints:
    """What a build made of a thousand markets, of which it changed so many."""
    versions = {market_id(number): "v2" if number < changed else "v1" for number in range(fingerprints.LEAST)}
    details = {
        key: MadeOf(version, "m", 100, 3, as_of[:2], "r", (number,) * (number % 3))
        for number, (key, version) in enumerate(versions.items())
    }
    return Fingerprints(as_of=as_of, shape="s", details=details if as_of[:2] == "12" else {})


def save(output: Path, *states: Fingerprints) -> Fingerprints | None:
    with locked(output) as folder:
        for state in states:
            fingerprints.save(folder, state)
        return fingerprints.load(folder)


def shards_of(output: Path) -> dict[str, Path]:
    return {path.name: path for path in (output / files.FINGERPRINT_SHARDS).glob("*")}


def test_a_change_of_one_market_writes_one_shard_and_deletes_the_former(output: Path) -> None:
    assert save(output, made()) == made()
    before = {name: path.stat().st_ino for name, path in shards_of(output).items()}
    assert save(output, made("12:01", 1)) == made("12:01", 1)
    after = {name: path.stat().st_ino for name, path in shards_of(output).items()}
    assert len(before) > 5
    assert [len(before.items() - after.items()), len(after.items() - before.items())] == [1, 1]
    assert market_id(7) not in (output / files.FINGERPRINTS).read_text()
    assert {path.stat().st_mode & 0o777 for path in shards_of(output).values()} == {0o600}


@pytest.mark.parametrize("damage", ["missing", "altered"])
def test_nothing_is_known_without_a_shard_and_the_next_build_repairs_it(output: Path, damage: str) -> None:
    save(output, made())
    path = min(shards_of(output).values())
    path.unlink() if damage == "missing" else path.write_bytes(path.read_bytes()[:-1])
    with locked(output) as folder:
        assert fingerprints.load(folder) is None
    assert save(output, made()) == made()


def test_nothing_is_known_from_files_of_another_version(output: Path) -> None:
    name = hashlib.sha256(b"{}").hexdigest()[:24]
    (output / files.FINGERPRINT_SHARDS).mkdir(parents=True)
    (output / files.FINGERPRINT_SHARDS / name).write_bytes(b"{}")
    for content in (b"{}", replaced(made(), details={}, shards=(name,)).encoded()):
        (output / files.FINGERPRINTS).write_bytes(content)
        assert fingerprints.load(Output(output, output)) is None


def test_where_nothing_is_known_of_details_nothing_is_left(output: Path) -> None:
    save(output, made())
    assert save(output, made("13:00")) is None
    assert not shards_of(output)


@pytest.mark.parametrize("is_split", [True, False], ids=["from-shards", "from-one-file"])
def test_a_build_killed_at_any_call_leaves_what_is_true_or_nothing(output: Path, *, is_split: bool) -> None:
    old, new = made(), made("12:01", 2)
    before = output.with_name("before")
    before.mkdir()
    if is_split:
        save(before, old)
    else:
        (before / files.FINGERPRINTS).write_bytes(old.encoded())
    seen: list[Fingerprints | None] = []
    folder = Output(output, output / ".staging-killed")
    for _ in dead_at_each_call(before, output, lambda: fingerprints.save(folder, new)):
        seen.append(fingerprints.load(Output(output, output)))
        assert save(output, new) == new
        assert shards_of(output)
    assert len(seen) > 2 * 3
    assert all(found in (old, new) for found in seen)
    assert [*map(seen.count, (old, new))].count(0) == 0


def keep_only(output: Path, kept: set[str]) -> Fingerprints | None:
    with locked(output) as folder:
        fingerprints.keep_only(folder, kept)
        return fingerprints.load(folder)


@pytest.mark.parametrize("is_split", [True, False], ids=["from-shards", "from-one-file"])
def test_what_is_kept_only_is_all_that_is_left(output: Path, *, is_split: bool) -> None:
    whole = made() if is_split else replaced(made(), details=dict([*made().details.items()][:100]))
    save(output, whole)
    before = {name: path.stat().st_ino for name, path in shards_of(output).items()}
    kept = {*whole.details} - {market_id(7), market_id(8)}
    expected = {key: one for key, one in whole.details.items() if key in kept}
    assert keep_only(output, kept) == replaced(whole, details=expected)
    after = {name: path.stat().st_ino for name, path in shards_of(output).items()}
    assert bool(before) is is_split
    assert len(before.items() - after.items()) <= 2
    assert not any(market_id(7).encode() in path.read_bytes() for path in output.rglob("*") if path.is_file())
    assert keep_only(output, set()) is None
    assert shards_of(output) == {}


def test_of_shards_that_are_damaged_nothing_is_kept(output: Path) -> None:
    save(output, made())
    min(shards_of(output).values()).write_bytes(b"{}")
    assert keep_only(output, {*made().details}) is None
    assert shards_of(output) == {}
