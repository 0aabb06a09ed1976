"""Puts the pages for people into the output folder, after a build or a takedown. They show the report that is saved."""

import json
from collections.abc import Mapping

from generator import program
from generator.api import keys
from generator.builder.inspection import pages
from generator.builder.inspection.downloads import Downloads
from generator.builder.inspection.excerpts import Excerpts, encoded, on_page
from generator.config.settings import Config
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


def place(folder: Output, config: Config, excerpts: Excerpts) -> None:
    """Update the pages; `config` has the settings that the site was built with."""
    report = json.loads(folder.read(files.REPORT) or b"{}")
    downloads = Downloads.read(folder.read)
    for name, body in pages.render(config, report, excerpts, downloads):
        if folder.put(name, body):
            folder.move(name)


def is_in_place(folder: Output, config: Config) -> bool:
    """Whether the page in place shows the report that is saved."""
    page = folder.read(files.INSPECTION)
    return page is not None and pages.shows(page, config, json.loads(folder.read(files.REPORT) or b"{}"))
