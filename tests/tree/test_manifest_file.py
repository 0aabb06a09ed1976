"""The manifest of a large folder: no header names a state that is not in place, and killed builds do no harm."""

import os
from pathlib import Path
from typing import Any

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.errors import OutputError
from generator.tree import files, manifest, manifest_file, staging
from generator.tree import state as states
from generator.tree.folder import Output, locked
from generator.tree.manifest import Current, Manifest, Retired
from generator.tree.staging import Saving
from tests.support.deaths import dead_at_each_call
from tests.support.sites.builds import manifest_in, manifest_of
from tests.support.sites.rows import market_id

MARKETS = tuple(market_id(number) for number in range(1, states.LEAST + 101))
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


def states_of(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / files.STATES).iterdir()}


def named(root: Path) -> frozenset[str]:
    found = manifest_file.decoded(root, (root / files.MANIFEST).read_bytes())
    return frozenset((found.state, found.intended)) - {""}


def test_a_large_manifest_is_read_as_it_was_saved(output: Path) -> None:
    state = changed(built(), MARKETS[0])
    found = saved(output, built(), state)
    assert found == state
    assert [*found.objects] == [*state.objects]
    assert [*found.markets] == [*state.markets]
    assert states_of(output).keys() == named(output)
    content = (output / files.MANIFEST).read_bytes()
    assert MARKETS[0].encode() not in content


def test_a_build_that_changes_only_build_json_keeps_the_state(output: Path) -> None:
    saved(output, built())
    before = (output / files.STATES / min(named(output))).stat().st_ino
    later = built().model_copy(update={"as_of": "2026-02-01T12:00:00.000Z"})
    later = later.model_copy(update={"objects": {**later.objects, keys.BUILD: "other"}})
    assert saved(output, later) == later
    assert [path.stat().st_ino for path in (output / files.STATES).iterdir()] == [before]


def test_small_folders_keep_one_file_and_a_folder_that_grows_or_shrinks_changes_its_form(output: Path) -> None:
    few = built(number=states.LEAST - 1)
    assert saved(output, few) == few
    assert (output / files.MANIFEST).read_bytes() == few.encoded()
    assert saved(output, built()) == built()
    assert len(states_of(output)) == 1
    assert saved(output, few) == few
    assert (output / files.MANIFEST).read_bytes() == few.encoded()
    assert not (output / files.STATES).exists()


@pytest.mark.parametrize("damage", ["missing", "altered"])
def test_a_state_that_is_missing_or_altered_is_named_with_the_remedy(output: Path, damage: str) -> None:
    saved(output, built())
    place = output / files.STATES / min(named(output))
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


def test_a_reader_beside_a_build_reads_again_when_the_state_is_replaced(output: Path) -> None:
    saved(output, built())
    state = changed(built(), MARKETS[5])
    builds = [state]

    def get(name: str) -> bytes | None:
        if name != files.MANIFEST and builds:
            saved(output, builds.pop())
        path = output / name
        return path.read_bytes() if path.exists() else None

    assert manifest_file.read(output, get) == state


def test_a_state_is_on_the_disk_before_a_header_names_it_when_generations_are_purged(
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


def test_states_that_no_header_names_are_swept_and_files_of_others_stay(output: Path) -> None:
    saved(output, built())
    (output / files.STATES / ("0" * 24)).write_bytes(b"left by a killed build")
    (output / files.STATES / "notes.txt").write_bytes(b"ours")
    saved(output, built())
    assert states_of(output).keys() == named(output) | {"notes.txt"}


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
@pytest.mark.parametrize("is_split", [True, False], ids=["from-a-state", "from-one-file"])
def test_a_build_killed_at_any_call_leaves_a_whole_manifest_that_the_next_build_replaces(
    output: Path, *, is_split: bool
) -> None:
    """It changes two markets."""
    old, new = built(), changed(built(), MARKETS[7])
    new = new.model_copy(update={"markets": {**new.markets, MARKETS[9]: ("open", "open.rain")}})
    retired = manifest.intend(old, new.lists(), {}, new.as_of).retired
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
        found = manifest_in(output)
        assert found in (old, intent, new), death
        seen.append(found)
        assert saved(output, new) == new
        assert states_of(output).keys() == named(output)
    assert all(state in seen for state in (old, intent, new))
    assert len(seen) > 2 * 10
