"""Shared by tests that build: configurations, commands, builds, and the files they leave."""

import gzip
import json
import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from generator.api import keys
from generator.api.contract import Variant
from generator.api.downloads import DumpHead
from generator.builder.dry_run import DryRun, dry_run, trial
from generator.builder.guards import BuildOverrides, Clock
from generator.builder.report import Report
from generator.builder.run import build
from generator.cli.main import main
from generator.config import loader
from generator.config.settings import Config
from generator.errors import BUILD_GUARDS
from generator.markets.quarantine import Quarantine
from generator.progress import SILENT, Progress
from generator.source.reader import open_reader
from generator.tree import blocklist, dry_folder, manifest_file
from generator.tree.folder import locked
from generator.tree.manifest import Manifest
from tests.support.readers import parquet

AS_OF: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
#: `AS_OF` on the wire.
NOW: Final = "2026-01-31T12:00:00.000Z"

#: Settings of the extended variant with lists for two categories, the second with a name that is not a slug.
EXTENDED: Final[Mapping[str, str]] = {"variant": "extended", "categories": "politics,u.s. 2024 elections"}
#: Settings of each variant, for tests of both.
VARIANTS: Final[Mapping[Variant, Mapping[str, str]]] = {"core": {}, "extended": EXTENDED}

CHUNKED: Final = {"layout": "chunks"}
#: Settings of a site that refuses no reader for the number of requests.
NO_LIMITS: Final[Mapping[str, int]] = {"rate_limit__requests": 1_000_000, "rate_limit__searches": 1_000_000}
#: The three combinations besides the core variant in the layout `pages`, by name.
OTHER_BUILDS: Final[Mapping[str, Mapping[str, str]]] = {
    "core-chunks": CHUNKED,
    "extended-pages": EXTENDED,
    "extended-chunks": {**EXTENDED, **CHUNKED},
}

_FEEDS: Final = f"{keys.FEEDS}/"
#: When an entry of a feed was modified, and the prices changed last.
_MODIFIED: Final = re.compile(rb'"date_modified":"[^"]*"|<updated>[^<]*</updated>|^{"asOf":"[^"]*"')

#: Builds of the demo by variant, and by layout if it is not `pages`.
Outputs: TypeAlias = Callable[..., Path]


def all_commands() -> dict[str, click.Command]:
    """Every command by name."""
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def make_config(folder: Path, **settings: object) -> Config:
    """Settings for `folder`/markets.db and `folder`/output; write `detail__recent_fills=3` for detail.recent_fills."""
    file = folder / "config.yaml"
    file.touch()
    values = {"source.url": f"sqlite:///{folder / 'markets.db'}", "output": str(folder / "output")}
    values |= {key.replace("__", "."): str(value) for key, value in settings.items()}
    return loader.load(file, overrides=[f"{key}={value}" for key, value in values.items()], environ={})


def build_now(settings: Config, as_of: datetime = AS_OF, *, progress: Progress = SILENT, **overrides: bool) -> Report:
    """Build in this process; `overrides` are the guards to accept, and other fields of `BuildOverrides`, by name."""
    accepted = frozenset(name for name in BUILD_GUARDS if overrides.pop(name, False))
    chosen = BuildOverrides(accepted, **overrides)
    return build(settings, Clock(as_of, is_set=True), overrides=chosen, progress=progress)


def manifest_of(**fields: Any) -> Manifest:
    """The manifest of a folder, with nothing in it but these fields."""
    nothing: dict[str, Any] = {"current": {}, "retired": (), "objects": {}, "markets": {}}
    about = {"complete": True, "as_of": NOW, "version": "1", "variant": "core", "layout": "pages"}
    return Manifest(**about | nothing | fields)


def manifest_in(output: Path) -> Manifest:
    """The manifest that is in a folder."""
    found = manifest_file.read(output, lambda name: (output / name).read_bytes() if (output / name).exists() else None)
    assert found
    return found


def dump_head(output: Path) -> DumpHead:
    """What names the files of the dump in an output folder."""
    return DumpHead.model_validate_json((output / keys.head(keys.DUMPS)).read_bytes())


def block(output: Path, *ids: str) -> None:
    """Put markets on the list of those that are taken down, and do nothing else."""
    with locked(output) as folder:
        folder.save(blocklist.KEY, blocklist.load(folder).decided(ids, is_blocked=True, now=NOW).encoded())


def dry_run_of(
    settings: Config, as_of: datetime = AS_OF, *, output: Path | None = None, progress: Progress = SILENT
) -> DryRun:
    """Make what a build into the folder would make now."""
    clock, quarantine = Clock(as_of, is_set=True), Quarantine()
    with dry_folder.brief(output or settings.output) as folder, open_reader(settings, quarantine) as reader:
        return dry_run(trial(folder, settings, clock, quarantine, progress), reader)


def text_of(key: str, body: bytes) -> bytes:
    """What a reader of the object sees: what compressed files hold, too."""
    if key.endswith(".parquet"):
        return _rows(body)
    return _unzipped(body) if key.endswith(".gz") else body


@lru_cache(maxsize=500)
def _rows(body: bytes) -> bytes:
    return repr(parquet.rows(body)).encode()


_unzipped: Final = lru_cache(maxsize=500)(gzip.decompress)


def lasting(found: dict[str, bytes]) -> dict[str, bytes]:
    """These files, by key, without what depends on earlier builds: change feed, dump's head and what names its files,
    dates of changes.
    """
    undated = {key: _MODIFIED.sub(b"", body) for key, body in found.items() if _is_dated(key)}
    return {key: body for key, body in found.items() if not tells_of_earlier_builds(key)} | undated


def tells_of_earlier_builds(key: str) -> bool:
    """Whether a fresh build of the same state may make other bytes of the object."""
    if _is_dated(key) or key in {keys.DATASET, keys.ATTACH}:
        return True
    of_dumps = f"{keys.list_prefix(keys.DUMPS)}/"
    return key.startswith(f"{keys.list_prefix(keys.CHANGES)}/") or (key.startswith(of_dumps) and key.endswith(".json"))


def _is_dated(key: str) -> bool:
    return key == keys.PRICES or key.startswith(_FEEDS)


def details(output: Path, by: str = "id") -> dict[str, Any]:
    """What was built of every market, by its id or another property."""
    found = (json.loads(path.read_bytes()) for path in output.glob("v1/public/markets/detail/*/*.json"))
    return {detail["market"][by]: detail for detail in found}


def files(output: Path, below: str = "v1") -> dict[str, bytes]:
    """Every file of an output folder below `v1`, by its key.

    `below=""` for all files but the lock, and the page that says when and how the last command ended.
    """
    found, start = dict[str, bytes](), len(os.path.join(output, ""))  # noqa: PTH118 - thousands of files, as texts
    for folder, _, names in os.walk(output / below):
        for path in (f"{folder}/{name}" for name in names if name not in {".lock", "status.html"}):
            with open(path, "rb") as file:  # noqa: PTH123
                found[path[start:]] = file.read()
    return {key: found[key] for key in sorted(found, key=lambda key: key.split("/"))}
