"""Writing the folder: full disks, foreign or modified folders, and files that are left alone."""

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.builder.guards import BuildOverrides, Clock
from generator.builder.run import build
from generator.errors import OutputError
from generator.progress import SILENT
from generator.publish import withdrawal
from generator.tree.folder import locked
from generator.tree.manifest import FORMAT
from tests.support.commands import fresh, run
from tests.support.disks import Disk
from tests.support.faults import World, check_whole, fast_folder
from tests.support.project import ROOT
from tests.support.sites.builds import AS_OF, block, build_now, files, make_config
from tests.support.sites.rows import market_id

NO_ROOM = "no space left on device; free some space, or"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with fast_folder(tmp_path) as folder, closing(World(folder)) as world:
        yield world


@pytest.fixture
def output(world: World) -> Path:
    """A folder with a build of the world."""
    return built(world)


def built(world: World, output: Path | None = None) -> Path:
    output = output or world.folder / "output"
    build_now(make_config(world.folder, output=output))
    check_whole(output)
    return output


def command(world: World, output: Path) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    (world.folder / "config.yaml").touch()
    settings = (f"source.url=sqlite:///{world.folder / 'markets.db'}", f"output={output}")
    overrides = [word for setting in settings for word in ("--set", setting)]
    return run("build", "--as-of", AS_OF.isoformat(), "--config", str(world.folder / "config.yaml"), *overrides)


def check_refused(result: subprocess.CompletedProcess[str], *words: object) -> None:
    assert result.returncode == 1, result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    for word in words:
        assert str(word) in result.stderr


def differences(before: dict[str, bytes], output: Path) -> list[str]:
    """The keys that changed in the folder."""
    after = files(output, "")
    return [key for key in {**before, **after} if before.get(key) != after.get(key)]


# ── disks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_written_to_a_disk_that_is_already_full(world: World, disk: Disk) -> None:
    disk.mount("size=1m")
    check_refused(command(world, disk.path / "output"), disk.path / "output", NO_ROOM)
    assert [path.name for path in (disk.path / "output").iterdir()] == [".lock"]


# ── paths ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_without_the_right_to_write_is_named(world: World) -> None:
    output = world.folder / "output"
    output.mkdir(mode=0o555)
    weak = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []  # root may write everywhere
    command = [*weak, *fresh(), "build", f"--set=output={output}", f"--set=source.url=sqlite:///{world.folder}/x.db"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    check_refused(result, f"error: {output}", "permission denied; grant this user write access, or choose another")


def test_a_file_where_the_folder_should_be_is_left_alone(world: World) -> None:
    place = world.folder / "place"
    place.write_text("mine")
    check_refused(command(world, place), f"{place}: file exists; move that file away, or choose another")
    check_refused(
        command(world, place / "below"), f"{place / 'below'}: not a directory; move that file away, or choose"
    )
    assert place.read_text() == "mine"


def test_a_folder_with_foreign_files_is_left_alone(world: World) -> None:
    output = world.folder / "output"
    (output / "v1").mkdir(parents=True)
    (output / "v1" / "theirs.json").write_text("{}")
    check_refused(command(world, output), f"{output / 'v1'} exists but {output / 'manifest.json'} does not", "move it")
    assert files(output) == {"v1/theirs.json": b"{}"}
    assert not list(output.glob(".staging-*"))


def test_a_link_to_a_folder_is_followed(world: World) -> None:
    (world.folder / "elsewhere").mkdir()
    (world.folder / "link").symlink_to("elsewhere")
    built(world, world.folder / "link")
    assert (world.folder / "link").is_symlink()
    check_whole(world.folder / "elsewhere")


#: Contents of a manifest, and what is said of them.
UNREADABLE: Final = {
    **dict.fromkeys((b"", b'{"hello": "world"}', b"\xff\xfe", f'{{"format": {FORMAT}}}'.encode()), "damaged"),
    b'{"format": 99, "everything": "else"}': f"format 99, this program knows {FORMAT}; upgrade this program",
}


@pytest.mark.campaign(short=0)
def test_a_manifest_that_cannot_be_read_is_refused(world: World, output: Path) -> None:
    world.advance()
    for content, words in UNREADABLE.items():
        (output / "manifest.json").write_bytes(content)
        before = files(output, "")
        check_refused(command(world, output), output / "manifest.json", words)
        assert differences(before, output) == []


def test_a_manifest_of_another_version_is_not_called_damaged(world: World, output: Path) -> None:
    content = json.loads((output / "manifest.json").read_bytes())
    (output / "manifest.json").write_text(json.dumps(content | {"shards": 7}))
    with pytest.raises(
        OutputError,
        match=r"manifest\.json: written by another version \(unknown: shards\); `public-markets rebuild --verify` "
        r"brings it over \(`build --full` where there is no target\), or run that version$",
    ):
        build_now(make_config(world.folder))


# ── tampering ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_strays_under_v1_are_removed_and_everything_else_is_left_alone(world: World, output: Path) -> None:
    strays = ("stray.json", "public/markets/detail/00/stray.json", "public/markets/lists/open/popular/first/101.json")
    for key in strays:
        (output / "v1" / key).parent.mkdir(exist_ok=True)
        (output / "v1" / key).write_text("{}")
    generation = output / "v1/public/markets/lists/open/popular" / ("p" + "0" * 19)
    (generation / "1-0").mkdir(parents=True)
    (generation / "1-0" / "1.json").write_text("{}")
    ours = {"notes.txt": b"ours", "ours.html": b"<p>", "edge/ours.js": b"//", "v10/public.json": b"{}"}
    for key, body in ours.items():
        (output / key).parent.mkdir(exist_ok=True)
        (output / key).write_bytes(body)
    report = build_now(make_config(world.folder))
    assert report.deleted == len(strays) + 1
    for key, body in ours.items():
        assert (output / key).read_bytes() == body
        (output / key).unlink()
    (output / "v10").rmdir()
    check_whole(output)


def test_links_under_v1_are_not_followed(world: World, output: Path) -> None:
    elsewhere = world.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.json").write_text("mine")
    (output / "v1" / "folder").symlink_to(elsewhere)
    (output / "v1" / "file.json").symlink_to(elsewhere / "mine.json")
    first = output / keys.first_page("open/new", 1)
    (elsewhere / "first.json").write_bytes(first.read_bytes())
    first.unlink()
    first.symlink_to(elsewhere / "first.json")
    current = json.loads((output / "manifest.json").read_bytes())["current"]["open/new"]
    name = keys.generation_prefix("open/new", current["generation"])
    (output / keys.LISTS / "open/new" / ("p" + "1" * 19)).symlink_to(output / name)
    build_now(make_config(world.folder))
    assert not first.is_symlink()
    check_whole(output)
    assert not [path for path in (output / "v1").rglob("*") if path.is_symlink()]
    assert (elsewhere / "mine.json").read_text() == "mine"
    assert {path.name for path in elsewhere.iterdir()} == {"mine.json", "first.json"}


def test_a_link_in_place_of_the_lock_file_is_refused(tmp_path: Path) -> None:
    output, victim = tmp_path / "output", tmp_path / "victim"
    output.mkdir()
    (output / ".lock").symlink_to(victim)
    for content in (None, "mine"):
        if content:
            victim.write_text(content)
        with pytest.raises(OutputError, match=rf"^{output}/\.lock: is a symbolic link, .*; move it away, or choose"):
            locked(output).__enter__()
        assert victim.exists() == bool(content)
    assert victim.read_text() == "mine"
    assert [path.name for path in output.iterdir()] == [".lock"]


@pytest.mark.campaign(short=0)
def test_a_link_in_place_of_a_folder_is_refused_before_anything_is_written(world: World, output: Path) -> None:
    world.advance()
    settings = make_config(world.folder, base_url="https://other.example")  # other files for the edges
    elsewhere = world.folder / "elsewhere"
    for place in ("v1", keys.DETAILS, f"{keys.LISTS}/open/new/first", "edge/nginx"):  # the edges' files come last
        shutil.move(output / place, elsewhere)
        (output / place).symlink_to(elsewhere)
        before, outside = files(output, ""), files(elsewhere, "")
        refusal = rf"^{output}/{place}: is a symbolic link, which is not followed; replace it with a folder, or"
        with pytest.raises(OutputError, match=refusal):
            build_now(settings)
        assert files(elsewhere, "") == outside
        if not place.startswith("edge"):
            assert differences(before, output) == []
        (output / place).unlink()
        shutil.move(elsewhere, output / place)


def test_a_link_among_the_leftovers_is_removed_and_not_followed(tmp_path: Path) -> None:
    output, elsewhere = tmp_path / "output", tmp_path / "elsewhere"
    output.mkdir()
    elsewhere.mkdir()
    (elsewhere / "mine.json").write_text("mine")
    (output / ".staging-dead").symlink_to(elsewhere)
    with locked(output):
        pass
    assert (elsewhere / "mine.json").read_text() == "mine"
    assert not list(output.glob(".staging-*"))


# ── private files ──────────────────────────────────────────────────────────────────────────────────────────────


PRIVATE = (
    "manifest.json",
    "report.json",
    "index.html",
    "blocked.json",
    "details.json",
    "dumps.json",
    "unchanged.state",
)


def modes(output: Path) -> dict[str, int]:
    return {name: stat.S_IMODE((output / name).stat().st_mode) for name in PRIVATE if (output / name).exists()}


def test_files_that_name_what_is_not_public_are_readable_by_the_operator_only(world: World, output: Path) -> None:
    block(output, market_id(3))
    assert modes(output) == dict.fromkeys(PRIVATE, 0o600)
    world.advance()
    build_now(make_config(world.folder))
    assert modes(output) == dict.fromkeys(PRIVATE, 0o600), "what replaces them"
    with locked(output) as folder:
        withdrawal.from_folder(folder, [market_id(4)], timedelta(hours=6))
    assert modes(output) == {name: 0o600 for name in PRIVATE if name not in {"index.html", "unchanged.state"}}
    build_now(make_config(world.folder))
    assert modes(output) == dict.fromkeys(PRIVATE, 0o600)


@pytest.mark.campaign(short=0)
def test_folders_that_nobody_else_can_enter_are_mended_with_what_is_in_them(world: World, output: Path) -> None:
    """As a copy under umask 077 leaves them."""
    mode = (output / API_VERSION).stat().st_mode
    opened = {output / API_VERSION, *(path for path in (output / API_VERSION).rglob("*") if path.is_dir())}
    for path in (output / API_VERSION, *(output / API_VERSION).rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    output.chmod(0o700)
    build_now(make_config(world.folder), full=True)
    served = (output / key for key in files(output) if stat.S_IMODE((output / key).stat().st_mode) & stat.S_IROTH)
    found = {folder for path in served for folder in path.parents if folder in opened}
    assert {API_VERSION, keys.DETAILS, keys.LISTS} <= {str(folder.relative_to(output)) for folder in found}
    assert {folder.stat().st_mode for folder in found} == {mode}
    assert stat.S_IMODE(output.stat().st_mode) == 0o700, "the operator's"


def test_private_files_of_an_older_version_become_private(tmp_path: Path) -> None:
    output, victim = tmp_path / "output", tmp_path / "victim"
    output.mkdir()
    (output / "state").mkdir(0o755)
    victim.touch(0o644)
    for name in PRIVATE[:2]:
        (output / name).touch(0o644)
    (output / "blocked.json").symlink_to(victim)
    with locked(output):
        pass
    assert [modes(output)[name] for name in PRIVATE[:2]] == [0o600, 0o600]
    assert stat.S_IMODE((output / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE(victim.stat().st_mode) != 0o600, "links are not followed"


# ── times ──


@pytest.mark.campaign(short=0)
def test_what_a_build_replaces_or_brings_back_is_later_by_a_second(world: World, output: Path) -> None:
    """As an ETag of nginx is the time in seconds and the size."""
    ahead = int((output / ".lock").stat().st_mtime) + 100
    mutable = [key for key in files(output) if not keys.is_immutable(key)]
    for key in mutable:
        os.utime(output / key, (ahead, ahead))
    before, gone = files(output), keys.detail(market_id(4))
    with locked(output) as folder:
        withdrawal.from_folder(folder, [market_id(4)], timedelta(hours=6))
    assert not (output / gone).exists()
    world.advance()
    build_now(make_config(world.folder))
    after = files(output)
    same = {key for key in mutable if before[key] == after.get(key)} - {gone}
    replaced = {key for key in mutable if key in after} - same
    assert gone in replaced
    assert min(len(same), len(replaced)) > 3
    assert not [key for key in replaced if int((output / key).stat().st_mtime) <= ahead]


# ── ages ──


def test_cursors_live_as_long_as_promised_however_long_a_build_takes(world: World) -> None:
    """Their generation is retired when readers can no longer begin in it, not when the build that does it begins."""
    config = make_config(world.folder)
    began = datetime.now(UTC) - config.cursor.lifetime - timedelta(hours=1)
    retained = []
    for as_of in (began, began, datetime.now(UTC)):
        clock = Clock(as_of, is_set=False)
        retained.append(build(config, clock, overrides=BuildOverrides(), progress=SILENT).retained)
        if len(retained) == 1:
            world.advance()
    assert retained[0] == 0 < retained[1] == retained[2]


# ── nothing to do ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_build_of_the_same_data_touches_nothing(world: World, output: Path) -> None:
    before = {path: path.lstat() for path in output.rglob("*")}
    report = build_now(make_config(world.folder))
    assert (report.written, report.deleted) == (0, 0)
    after = {path: path.lstat() for path in output.rglob("*")}
    assert before.keys() == after.keys()
    touched = [path.name for path in before if before[path].st_ctime_ns != after[path].st_ctime_ns]
    assert sorted(touched) == [".lock"]
    moved = [path.name for path in before if before[path].st_ino != after[path].st_ino]
    assert moved == []
