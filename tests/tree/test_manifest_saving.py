"""The manifest of a large folder: shards change alone, no root names a missing shard, and killed builds do no harm."""

import os
from pathlib import Path
from typing import Any

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.errors import OutputError
from generator.tree import files, manifest, manifest_file, shards, staging
from generator.tree.folder import Output, locked
from generator.tree.manifest import Current, Manifest, Retired
from generator.tree.manifest_saving import Saving
from tests.support.deaths import dead_at_each_call
from tests.support.sites.builds import manifest_of
from tests.support.sites.rows import market_id

MARKETS = tuple(market_id(number) for number in range(1, shards.LEAST + 101))
OPEN, LIST = ("open",), "all/new"


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


def built(generation: str = "g1", number: int = len(MARKETS)) -> Manifest:
    """A manifest with so many markets; every other one has a slug, every third a key."""
    markets = sorted(MARKETS[:number])
    found = {market: (f"slug-{market}",) for market in markets[::2]}
    details = [key for market in markets for key in keys.details(market, *found.get(market, (None,)))]
    objects = (keys.BUILD, keys.head(LIST), keys.SNAPSHOT, *details)
    return manifest_of(
        layout="chunks", current={LIST: Current(generation=generation, count=1, bytes=1, chunks=("c1", generation))},
        objects=dict.fromkeys(sorted(objects), "digest"), markets=dict.fromkeys(markets, OPEN), slugs=found,
        site_keys={market: f"key of {market}" for market in markets[::3]},
    )  # fmt: skip


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
    assert len(before) > 8
    assert len(after.keys() - before.keys()) == 3, "of the market, of the list's head, and of its new generation"
    assert len(before.keys() - after.keys()) == 2, "the chunks of the retired generation stay named"
    assert all(after[name] == before[name] for name in after.keys() & before.keys())


def test_a_new_market_leaves_the_shards_of_all_others_but_its_neighbours(output: Path) -> None:
    saved(output, built(number=len(MARKETS) - 1))
    before = shards_of(output)
    saved(output, built())
    assert len(shards_of(output).keys() - before.keys()) <= 4


def test_small_folders_keep_one_file_and_a_folder_that_grows_or_shrinks_changes_its_form(output: Path) -> None:
    few, half = built(number=shards.LEAST - 1), built(number=shards.LEAST // 2)
    assert saved(output, few) == few
    assert (output / files.MANIFEST).read_bytes() == few.encoded()
    assert saved(output, built()) == built()
    assert shards_of(output)
    assert saved(output, half) == half
    assert shards_of(output), "half as many markets stay split"
    few = built(number=shards.LEAST // 2 - 1)
    assert saved(output, few) == few
    assert (output / files.MANIFEST).read_bytes() == few.encoded()
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


def test_a_reader_beside_a_build_reads_again_when_shards_are_replaced(output: Path) -> None:
    saved(output, built())
    state = changed(built(), MARKETS[5])
    builds = [state]

    def get(name: str) -> bytes | None:
        if name != files.MANIFEST and builds:
            saved(output, builds.pop())
        path = output / name
        return path.read_bytes() if path.exists() else None

    assert manifest_file.read(output, get) == state


def test_shards_are_on_the_disk_before_a_root_names_them_when_generations_are_purged(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (output / API_VERSION).mkdir(parents=True)
    (output / files.MANIFEST).write_bytes(changed(built(), MARKETS[3]).encoded())
    calls, opening, replacing = list[str](), os.open, os.replace

    def opened(path: Any, flags: int, *more: Any, **options: Any) -> int:
        calls.extend(["sync"] * bool(flags & os.O_DIRECTORY and ".staging" in str(path)))
        return opening(path, flags, *more, **options)

    def replaced(source: Any, target: Any) -> None:
        calls.append(Path(target).name)
        replacing(source, target)

    with locked(output) as folder:
        before = folder.manifest()
        assert before
        monkeypatch.setattr(os, "open", opened)
        monkeypatch.setattr(os, "replace", replaced)
        staging.purge_retired(folder, before)
    assert calls.index("sync") < min(calls.index(name) for name in named(output)) < calls.index(files.MANIFEST)


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


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("is_split", [True, False], ids=["from-shards", "from-one-file"])
def test_a_build_killed_at_any_call_leaves_a_whole_manifest_that_the_next_build_replaces(
    output: Path, *, is_split: bool
) -> None:
    """It changes two markets."""
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
    for death in dead_at_each_call(before, output, lambda: save(Output(output, output / ".staging-killed"), new)):
        found = manifest_file.read(output)
        assert found in (old, intent, new), death
        seen.append(found)
        assert saved(output, new) == new
        assert shards_of(output).keys() == named(output)
    assert all(state in seen for state in (old, intent, new))
    assert len(seen) > 2 * 10
