"""What is published in the explorer: two lists of two or three markets, with pages for two limits, in both layouts.

Where there are questions, two lists of these besides.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final

from generator.api import keys
from generator.config.settings import Config
from generator.markets.questions import Member, Question
from generator.site.catalog import Catalog
from generator.site.sessions import LastPublish
from generator.tree import staging
from generator.tree.files import MANIFEST, STATES
from generator.tree.folder import locked
from generator.tree.manifest import Manifest
from tests.publish.explorer.scheduler import nobody
from tests.publish.explorer.world import workplace
from tests.publish.faults import sites
from tests.support.faults import State
from tests.support.sites.builds import NOW, make_config
from tests.support.sites.builds import files as files_of
from tests.support.sites.rows import market_id

LISTS: Final = ("all/popular", "open/new")
#: One limit that makes walks, and the one that a takedown reads by.
LIMITS: Final = (1, 100)
LAYOUTS: Final = ("pages", "chunks")
#: Stand for the layouts of games whose site has a search index, and all kinds of objects: index, feeds, prices, record
#: of accuracy, dump, change feed, and Parquet with full histories. The record of the last is whole; all others are
#: split.
SEARCHED: Final = "searched"
EVERYTHING: Final = "everything"
WHOLE: Final = "whole"
#: The same for sites with questions: in pages, where takedowns find them in details; and with a dump, whose definitions
#: tell of them.
ASKED: Final = "asked"
DEFINED: Final = "defined"
QUESTION_LISTS: Final = ("questions/all/popular", "questions/open/new")
_SEARCHED: Final = {"layout": "chunks", "variant": "extended", "search": "title+description"}
_ALL_KINDS: Final = {**_SEARCHED, "dumps__parquet": True, "dumps__fills": True, "history__public": True}
_FEW_KINDS: Final = {"dumps__ndjson": False, "feeds__enabled": False, "prices_file": False}
_SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    SEARCHED: {**_SEARCHED, **_FEW_KINDS},
    EVERYTHING: _ALL_KINDS,
    WHOLE: _ALL_KINDS,
    ASKED: {**_FEW_KINDS, "questions__enabled": True},
    DEFINED: {"layout": "chunks", "variant": "extended", "search": "off", "questions__enabled": True},
}
#: What is searched there, as `SearchingReader` knows it.
SEARCHES: Final = ("all/popular?quest",)

#: The markets of each content of the database by number, and the minute of its build.
CONTENTS: Final[Mapping[str, tuple[Mapping[int, Mapping[str, Any]], int]]] = {
    "old": ({1: {}, 2: {}}, 0),
    "other": ({1: {}, 2: {"question": "Question 2, edited?"}}, 1),
    "unpublished": ({1: {"question": "Question 1, never published?"}, 2: {}}, 1),
    "new": ({1: {"question": "Question 1, edited?"}, 2: {}, 3: {}}, 2),
}
#: The title and the markets of the question in each content: in "new" a market left it, one joined, and it was edited;
#: in "other" it is gone.
QUESTIONS: Final[Mapping[str, tuple[str, tuple[int, ...]]]] = {
    "old": ("Which?", (1, 2)),
    "unpublished": ("Which, never published?", (1, 2)),
    "new": ("Which of these?", (1, 3)),
}
QUESTION_ID: Final = "ffffffff-0000-4000-a000-000000000000"
REFERENCE: Final = keys.question_reference(QUESTION_ID)
#: What only the unpublished content says.
NEVER_PUBLISHED: Final = b"never published"
#: What differs where there is Parquet: a market that has ended is in the archive of its month. Its text, which can
#: hardly be compressed, makes the dump so large that the change feed keeps steps.
_OF_DOWNLOADS: Final[Mapping[int, Mapping[str, Any]]] = {
    2: {
        "status": "resolved",
        "resolution": "NO",
        "resolved_at": "2026-01-20 00:00:00",
        "question": f"Question 2, {hashlib.shake_128().hexdigest(900)}?",
    }
}


@dataclass(frozen=True)
class Built:
    """What a build leaves in an empty folder: all files, those under `v1/` described by `manifest`."""

    files: Mapping[str, bytes]
    manifest: Manifest
    state: State


@cache
def config(layout: str, machine: str) -> Config:
    """The settings of a machine, with an output folder of its own."""
    folder = workplace() / f"{machine}-{layout}"
    folder.mkdir()
    kinds = {"layout": layout, **_FEW_KINDS} if layout in LAYOUTS else _SETTINGS[layout]
    return make_config(
        folder, **kinds, source__url="sqlite:///markets.db", publish__target="s3://bucket/",
        publish__purge_command='["true"]',
    )  # fmt: skip


@cache
def built(layout: str, content: str, blocked: frozenset[str] = frozenset()) -> Built:
    """Build the content without what is blocked: markets (ids), and the question (its reference).

    The new content is built where the old one was published, and another built after it, so its change feed has steps.
    Others begin a session, as on a machine of its own: two machines never continue one session.
    """
    settings = config(layout, "-".join(["builder", content, *sorted(blocked)]).replace("/", "-"))
    catalog = _catalog(settings, content, blocked)
    with nobody():
        if content == "new" and not blocked:
            published = _place(settings, _catalog(settings, "old", frozenset()))
            with locked(settings.output) as folder:
                LastPublish.of(published, settings.publish.target).save(folder)
            _place(settings, _catalog(settings, "unpublished", frozenset()))
        found = _place(settings, catalog)
    # The documents that never change are left out: they would be as many objects again, and none is ever written.
    unchanging = (keys.ERRORS, keys.LLMS, keys.CHANGELOG, keys.SITE_INDEX, keys.OPENAPI)
    left_out = {key for key in found.objects if key.startswith(unchanging)}
    objects = {key: digest for key, digest in found.objects.items() if key not in left_out}
    manifest = found.model_copy(update={"objects": objects})
    files = {
        key: body for key, body in files_of(settings.output, "").items()
        if key not in left_out and not key.startswith((STATES, "."))
    }  # fmt: skip
    state = sites.state_of(catalog, LISTS) | (sites.searched(catalog, SEARCHES) if settings.can_search else {})
    if catalog.questions is not None:
        state |= sites.questions(catalog, settings.variant, QUESTION_LISTS)
    return Built({**files, MANIFEST: manifest.encoded()}, manifest, state)


def _catalog(settings: Config, content: str, blocked: frozenset[str]) -> Catalog:
    markets, minute = CONTENTS[content]
    more = _OF_DOWNLOADS if settings.has_parquet else {}
    shown = {
        number: {**more.get(number, {}), **columns}
        for number, columns in markets.items() if market_id(number) not in blocked
    }  # fmt: skip
    catalog = sites.catalog_of(shown, minute, settings.search_texts)
    if not settings.has_questions:
        return catalog
    return catalog.of_questions([] if REFERENCE in blocked else [*_questions(content, shown)])


def _questions(content: str, shown: Collection[int]) -> Iterator[Question]:
    title, numbers = QUESTIONS.get(content, ("", ()))
    if members := tuple(Member(market_id(number), f"{number}", number, None) for number in numbers if number in shown):
        yield Question(QUESTION_ID, "which", "key", title, None, "independent", NOW, members)


def _place(settings: Config, catalog: Catalog) -> Manifest:
    lists = sites.SEARCHED_LISTS if settings.can_search else LISTS
    lists += QUESTION_LISTS if settings.has_questions else ()
    with locked(settings.output) as folder:
        before = folder.manifest()
        placed = staging.place(folder, before, sites.rendered(folder, catalog, settings, lists), timedelta(days=1))
        return staging.purge_retired(folder, placed.manifest)


def layout_of(settings: Config) -> str:
    """The layout, or what stands for it."""
    return settings.output.parent.name.rpartition("-")[2]
