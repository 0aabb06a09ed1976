"""Builds of databases with questions, asked in this process."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from generator.config.shape import following
from generator.tree.manifest_file import recorded_settings
from tests.questions.asking import Get, Site
from tests.questions.checker import oracle_of
from tests.questions.oracle import Oracle, Setting
from tests.support.edges.in_process import Local, render
from tests.support.sites.builds import NO_LIMITS, build_now, make_config

EXTENDED: Final = Setting(variant="extended")
#: Settings of the build of the troubled site.
TROUBLED: Final = {"variant": "extended", "categories": "weather,a,Zürich", "layout": "chunks"}


def served(folder: Path, fill: Callable[[Path], object], **settings: object) -> Get:
    """A build of a database, asked in this process."""
    fill(folder / "markets.db")
    config = make_config(folder, **NO_LIMITS, guards__max_invalid=1, **settings)
    build_now(config)
    render(following(config, recorded_settings(config.output)))
    return asked(folder, **settings)


def asked(folder: Path, **settings: object) -> Get:
    config = make_config(folder, **NO_LIMITS, **settings)
    local = Local(following(config, recorded_settings(config.output)))

    def get(path: str) -> tuple[int, Mapping[str, str], bytes]:
        found = local.ask(path)
        return found.status, found.headers, found.body

    return get


def oracle_for(get: Get, folder: Path, setting: Setting) -> Oracle:
    with closing(sqlite3.connect(folder / "markets.db")) as database:
        return oracle_of(Site(get), database, setting)
