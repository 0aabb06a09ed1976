"""Puts the pages for people into the output folder, after a build or a takedown. They show the report that is saved."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from generator import program
from generator.api import keys
from generator.api.downloads import DumpHead
from generator.builder.inspection import history, pages
from generator.builder.inspection.downloads import Downloads
from generator.builder.inspection.excerpts import Excerpts, encoded, on_page
from generator.builder.inspection.history import HistoryFigures
from generator.config.settings import Config
from generator.downloads import parquet
from generator.site.catalog import Catalog
from generator.tree import files, manifest
from generator.tree.folder import Output


def excerpts_of(
    folder: Output, catalog: Catalog, market_url: str | None, digests: Mapping[str, str], *, is_full: bool = False
) -> Excerpts:
    """The excerpts of a catalog's details, as they are staged or in place; `digests` are those of all, by key.

    `market_url` is the setting. `is_full`: none is taken over from the page in place.
    """
    maker = program.this_program().digest
    found = Excerpts(catalog, market_url, maker)
    known = on_page(None if is_full else folder.read(files.INSPECTION), maker)
    for market_id in found.wanted():
        key = keys.detail(market_id)
        digest = digests.get(key, "")
        if digest in known:
            found.keep(market_id, known[digest])
        elif (body := folder.newest(key)) is not None and manifest.digest(key, body) == digest:
            found.keep(market_id, encoded(body, digest))
    return found


def place(folder: Output, config: Config, catalog: Catalog, excerpts: Excerpts) -> None:
    """Update the pages of a catalog's markets; `config` has the settings that the site was built with."""
    report = json.loads(folder.read(files.REPORT) or b"{}")
    downloads, figures = Downloads.read(folder.read), None
    if config.has_full_histories and downloads.dump:
        figures = _figures(folder, downloads.dump, catalog)
    placed = set()
    for name, body in pages.render(config, report, excerpts, downloads, figures):
        placed.add(name)
        if folder.put(name, body):
            folder.move(name)
    for name in files.PAGES:
        if name not in placed:
            folder.discard_key(name)


def _figures(folder: Output, head: DumpHead, catalog: Catalog) -> HistoryFigures:
    """The figures of full histories, or why there are none: what is published needs no page."""
    try:
        return history.figures(
            head, catalog, partial(_rows, folder), folder.read(files.HISTORY), program.this_program().digest
        )
    except (OSError, ValueError) as error:
        return HistoryFigures(head.history_as_of or head.as_of, fault=str(error))


def _rows(folder: Output, object_keys: Sequence[str], columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for key in object_keys:
        try:
            with folder.path(key).open("rb") as file:
                yield from parquet.values(file, columns)
        except ValueError as error:
            raise ValueError(f"{folder.path(key)}: {error}") from error


def is_in_place(folder: Output, config: Config) -> bool:
    """Whether the page in place shows the report that is saved."""
    page = folder.read(files.INSPECTION)
    return page is not None and pages.shows(page, config, json.loads(folder.read(files.REPORT) or b"{}"))
