"""The manifest of a large folder: shards change alone, no root names a missing shard, and killed builds do no harm."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.errors import OutputError
from generator.tree import files, manifest, manifest_file, row_shards, shards, staging
from generator.tree.folder import Output, locked
from generator.tree.manifest import Current, Manifest, Retired
from generator.tree.manifest_saving import Saving
from tests.support.sites.rows import market_id
from tests.support.stores.records import sharded

MARKETS = tuple(market_id(number) for number in range(1, 41))
OPEN, LIST = ("open",), "all/new"


@pytest.fixture
def output(tmp_path: Path) -> Iterator[Path]:
    with sharded():
        yield tmp_path / "output"


def built(generation: str = "g1", number: int = len(MARKETS), *, is_complete: bool = True) -> Manifest:
    """A manifest with so many markets; every other one has a slug, every third a key."""
    markets = sorted(MARKETS[:number])
    found = {market: (f"slug-{market}",) for market in markets[::2]}
    details = [key for market in markets for key in keys.details(market, *found.get(market, (None,)))]
    objects = (keys.BUILD, keys.head(LIST), keys.SNAPSHOT, *details)
    return Manifest(
        complete=is_complete,
        as_of="2026-01-31T12:00:00.000Z",
        version="1",
        variant="core",
        layout="chunks",
        current={LIST: Current(generation=generation, count=1, bytes=1, chunks=("c1", generation))},
        retired=(),
        objects=dict.fromkeys(sorted(objects), "digest"),
        markets=dict.fromkeys(markets, OPEN),
        slugs=found,
        site_keys={market: f"key of {market}" for market in markets[::3]},
    )


def changed(state: Manifest, market: str, generation: str = "g2") -> Manifest:
    """The state after a market changed, and so its list."""
    old = state.current[LIST]
    retired = Retired(list=LIST, retired_at=state.as_of, **dict(old))
    lists = {LIST: old.model_copy(update={"generation": generation, "chunks": ("c1", generation)})}
    objects = {**state.objects, keys.detail(market): "other", keys.head(LIST): "other"}
    return state.model_copy(update={"objects": objects, "current": lists, "retired": (retired,)})


def save(folder: Output, final: Manifest) -> None:
    """Save it as a build does."""
    before = folder.manifest()
    saving = Saving(folder, before)
    content = saving.final(final)
    intent = saving.intent(final, final.markets)
    saving.move()
    folder.save(files.MANIFEST, intent)
    folder.save(files.MANIFEST, content)
    saving.sweep()


def saved(root: Path, *states: Manifest) -> Manifest | None:
    """What the folder says after these were saved."""
    with locked(root) as folder:
        for state in states:
            save(folder, state)
        return folder.manifest()


def shards_of(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / files.SHARDS).iterdir()}


def named(root: Path) -> frozenset[str]:
    found = manifest_file.decoded(root, (root / files.MANIFEST).read_bytes()).row_shards
    return found.all() if found else frozenset()


def test_a_large_manifest_is_read_as_it_was_saved(output: Path) -> None:
    state = changed(built(), MARKETS[0])
    found = saved(output, built(), state)
    assert found == state
    assert [*found.objects] == [*state.objects]
    assert [*found.markets] == [*state.markets]
    assert shards_of(output).keys() == named(output)
    content = (output / files.MANIFEST).read_bytes()
    assert MARKETS[0].encode() not in content


def test_one_changed_market_writes_few_shards_and_deletes_as_many(output: Path) -> None:
    saved(output, built())
    before = shards_of(output)
    saved(output, changed(built(), MARKETS[7]))
    after = shards_of(output)
    assert len(before) > 10
    assert len(after.keys() - before.keys()) == 3, "of the market, of the list's head, and of its new generation"
    assert len(before.keys() - after.keys()) == 2, "the chunks of the retired generation stay named"
    assert all(after[name] == before[name] for name in after.keys() & before.keys())


def test_a_new_market_leaves_the_shards_of_all_others_but_its_neighbours(output: Path) -> None:
    saved(output, built(number=39))
    before = shards_of(output)
    saved(output, built())
    assert len(shards_of(output).keys() - before.keys()) <= 4


def test_small_folders_keep_one_file_and_a_folder_that_grows_or_shrinks_changes_its_form(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "LEAST", 40)
    assert saved(output, built(number=39)) == built(number=39)
    assert (output / files.MANIFEST).read_bytes() == built(number=39).encoded()
    assert saved(output, built()) == built()
    assert shards_of(output)
    assert saved(output, built(number=20)) == built(number=20)
    assert shards_of(output), "half as many markets stay split"
    assert saved(output, built(number=19)) == built(number=19)
    assert (output / files.MANIFEST).read_bytes() == built(number=19).encoded()
    assert not (output / files.SHARDS).exists()


@pytest.mark.parametrize("damage", ["missing", "altered"])
def test_a_shard_that_is_missing_or_altered_is_named_with_the_remedy(output: Path, damage: str) -> None:
    saved(output, built())
    place = output / files.SHARDS / min(named(output))
    if damage == "missing":
        place.unlink()
    else:
        place.write_bytes(place.read_bytes()[:-1])
    with pytest.raises(OutputError) as caught, locked(output) as folder:
        folder.manifest()
    sentence = str(caught.value)
    assert sentence == (
        f"{place}: {damage}, and part of manifest.json; move the folder away and build again; keep its blocked.json"
    )


def test_a_reader_beside_a_build_reads_again_when_shards_are_replaced(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(output, built())
    state, decode = changed(built(), MARKETS[5]), manifest_file.decoded
    builds = [lambda: saved(output, state)]

    def decoded(folder: Path, content: bytes) -> Manifest:
        found = decode(folder, content)
        if builds:
            monkeypatch.setattr(manifest_file, "decoded", decode)
            builds.pop()()
        return found

    monkeypatch.setattr(manifest_file, "decoded", decoded)
    assert manifest_file.read(output) == state


def test_shards_are_on_the_disk_before_a_root_names_them_when_generations_are_purged(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (output / API_VERSION).mkdir(parents=True)
    (output / files.MANIFEST).write_bytes(changed(built(), MARKETS[3]).encoded())
    calls: list[str] = []

    def watched(function: Callable[..., None]) -> Callable[..., None]:
        def wrapped(*given: Any) -> None:
            calls.append(function.__name__)
            function(*given)

        return wrapped

    monkeypatch.setattr(Output, "sync", watched(Output.sync))
    monkeypatch.setattr(Output, "move", watched(Output.move))
    with locked(output) as folder:
        before = folder.manifest()
        assert before
        staging.purge_retired(folder, before)
    assert calls.index("sync") < calls.index("move")


def test_shards_that_no_root_names_are_swept_and_files_of_others_stay(output: Path) -> None:
    saved(output, built())
    (output / files.SHARDS / ("0" * 24)).write_bytes(b"left by a killed build")
    (output / files.SHARDS / "notes.txt").write_bytes(b"ours")
    saved(output, built())
    assert shards_of(output).keys() == named(output) | {"notes.txt"}


def test_without_the_digests_of_details_everything_else_is_read(output: Path) -> None:
    saved(output, built())
    whole = built()
    with locked(output) as folder:
        found = folder.manifest(is_light=True)
    assert found
    kept = {key: digest for key, digest in whole.objects.items() if not key.startswith(keys.DETAILS)}
    assert found == whole.model_copy(update={"objects": kept})


# ── killed at every call ──────────────────────────────────────────────────────────────────────────────────────────


class Killed(BaseException):
    """Raised in place of a kill."""


@contextmanager
def killed(call: int, *, is_after: bool) -> Iterator[list[str]]:
    """End at the call of this number that changes the folder, before or after it; yields those that were made."""
    made: list[str] = []

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return function(*arguments, **options)
            made.append(name)
            if len(made) == call and not is_after:
                raise Killed
            result = function(*arguments, **options)
            if len(made) == call:
                raise Killed
            return result

        return wrapped

    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "replace", "rename", "mkdir", "rmdir", "unlink"):
            patch.setattr(os, name, watched(name, getattr(os, name)))
        try:
            yield made
        except Killed:
            patch.undo()


def begin(root: Path, state: Manifest) -> None:
    """Save it without what a process that ends in order does."""
    staging = root / ".staging-killed"
    staging.mkdir()
    save(Output(root, staging), state)


def check_kills(output: Path, *, is_split: bool) -> None:
    """Kill a build that changes two markets at every call, and finish it by another."""
    old, new = built(), changed(built(), MARKETS[7])
    new = new.model_copy(update={"markets": {**new.markets, MARKETS[9]: ("open", "open.rain")}})
    retired = manifest.begun(old, new.lists(), new.as_of).retired
    union = {**old.markets, MARKETS[9]: ("open", "open.rain")}
    intent = old.model_copy(update={"complete": False, "retired": retired, "markets": union})
    before = output.with_name("before")
    before.mkdir()
    if is_split:
        saved(before, old)
    else:
        (before / files.MANIFEST).write_bytes(old.encoded())
    seen: list[Manifest] = []
    for number in range(1, 1_000):
        for is_after in (False, True):
            shutil.rmtree(output, ignore_errors=True)
            shutil.copytree(before, output)
            with killed(number, is_after=is_after) as made:
                begin(output, new)
            found = manifest_file.read(output)
            assert found in (old, intent, new), f"{number}: {made[-1]}"
            seen.append(found)
            assert saved(output, new) == new
            assert shards_of(output).keys() == named(output)
        if len(made) < number:
            break
    assert all(state in seen for state in (old, intent, new))
    assert number > 10


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("is_split", [True, False], ids=["from-shards", "from-one-file"])
def test_a_build_killed_at_any_call_leaves_a_whole_manifest_that_the_next_build_replaces(
    output: Path, monkeypatch: pytest.MonkeyPatch, *, is_split: bool
) -> None:
    monkeypatch.setattr(row_shards, "_MEAN", 16)
    check_kills(output, is_split=is_split)
