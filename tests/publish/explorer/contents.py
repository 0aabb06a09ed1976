"""What is published in the explorer: two lists of two or three markets, with pages for two limits, in both layouts."""

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from generator.api import keys
from generator.config.settings import Config
from generator.tree import staging
from generator.tree.files import MANIFEST, SHARDS
from generator.tree.manifest import Manifest
from tests.publish.explorer.world import Folder
from tests.publish.faults import sites
from tests.support.builds import make_config
from tests.support.faults import State
from tests.support.rows import market_id

LISTS: Final = ("all/popular", "open/new")
#: One limit that makes walks, and the one that a takedown reads by.
LIMITS: Final = (1, 100)
LEASE_S: Final = 60
LAYOUTS: Final = ("pages", "chunks")
#: Stands for the layout of games whose site has a search index.
SEARCHED: Final = "searched"
#: What is searched there, as `SearchingReader` knows it.
SEARCHES: Final = ("all/popular?quest",)

#: The markets of each content of the database by number, and the minute of its build.
CONTENTS: Final[Mapping[str, tuple[Mapping[int, Mapping[str, Any]], int]]] = {
    "old": ({1: {}, 2: {}}, 0),
    "other": ({1: {}, 2: {"question": "Question 2, edited?"}}, 1),
    "new": ({1: {"question": "Question 1, edited?"}, 2: {}, 3: {}}, 2),
}


@dataclass(frozen=True)
class Built:
    """What a build leaves in an empty folder: all files, those under `v1/` described by `manifest`."""

    files: Mapping[str, bytes]
    manifest: Manifest
    state: State


@cache
def workplace() -> Path:
    """For the files of configuration; outputs are in memory."""
    folder = Path(tempfile.mkdtemp(prefix="explorer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def config(layout: str, machine: str) -> Config:
    """The settings of a machine, with an output folder of its own."""
    folder = workplace() / f"{machine}-{layout}"
    folder.mkdir()
    search = {"layout": "chunks", "variant": "extended", "search": "title+description"} if layout == SEARCHED else {}
    return make_config(
        folder, **{"layout": layout} | search, source__url="sqlite:///markets.db", publish__target="s3://bucket/",
        publish__lease=LEASE_S, publish__cache_fill=0, publish__purge_command='["true"]',
    )  # fmt: skip


@cache
def built(layout: str, content: str, blocked: frozenset[str] = frozenset()) -> Built:
    """Build the content without the blocked markets."""
    markets, minute = CONTENTS[content]
    shown = {number: columns for number, columns in markets.items() if market_id(number) not in blocked}
    settings = config(layout, "builder")
    folder = Folder(settings.output, {})
    is_searched = settings.can_search
    catalog = sites.catalog_of(shown, minute, settings.search_texts)
    rendered = sites.rendered(folder, catalog, settings, sites.SEARCHED_LISTS if is_searched else LISTS)
    staging.place(folder, None, rendered, timedelta(days=1))
    found = folder.manifest()
    assert found
    # The documents that never change are left out: they would be as many objects again, and none is ever written.
    left_out = {key for key in found.objects if key.startswith(keys.ERRORS) or key == keys.OPENAPI}
    objects = {key: digest for key, digest in found.objects.items() if key not in left_out}
    manifest = found.model_copy(update={"objects": objects})
    files = {key: body for key, body in folder.files.items() if key not in left_out and not key.startswith(SHARDS)}
    state = sites.state_of(catalog, LISTS) | (sites.searched(catalog, SEARCHES) if is_searched else {})
    return Built({**files, MANIFEST: manifest.encoded()}, manifest, state)


def layout_of(settings: Config) -> str:
    """The layout, or what stands for it."""
    return SEARCHED if settings.can_search else settings.layout
