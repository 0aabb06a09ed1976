"""After a takedown in the output folder: brings report and pages for people up to what the folder holds now.

A takedown deletes the pages that quote markets before anything else, so a run that is killed leaves none. They are then
made as a build makes them, from what is published in the folder: without the database, and with the settings that the
folder was built with.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial

from pydantic import ValidationError

from generator import garbage
from generator.builder.changes import SiteSize
from generator.builder.inspection import placing
from generator.builder.inspection.downloads import Downloads
from generator.builder.report_after_takedown import Remains, tells_of, without
from generator.builder.report_file import DownloadCounts, ReportFile, SearchCounts
from generator.config.settings import Config
from generator.cost import estimate, prices
from generator.cost.estimate import Basis, Cost, Terms
from generator.errors import OutputError, PublicMarketsError
from generator.models import replaced
from generator.site import search_index
from generator.site.catalog import Catalog
from generator.site.make import Outline
from generator.site.published import PublishedState
from generator.tree import blocklist, families, files
from generator.tree.folder import Output
from generator.tree.in_turn import Notify, locked_in_turn
from generator.tree.manifest import Manifest


def remake_page(config: Config, notify: Notify) -> None:
    """Make the pages again, if that of the inspection is missing or tells of a blocked market; nothing without a build.

    What keeps it from being made is told with the remedy: a takedown has not failed for it.
    """
    if config.output.exists():
        with _telling(config, notify), locked_in_turn(config.output, notify) as folder:
            _remake_page(folder, config)


def remake_missing_page(folder: Output, config: Config, notify: Notify) -> None:
    """The same in a folder that is locked already, if a takedown there left no page."""
    with _telling(config, notify):
        if not folder.has(files.INSPECTION) and blocklist.load(folder).ids():
            _remake_page(folder, config)


@contextmanager
def _telling(config: Config, notify: Notify) -> Iterator[None]:
    try:
        with garbage.uncollected():
            yield
    except PublicMarketsError as error:
        notify(f"{config.output / files.INSPECTION}: not made again: {error}; run `public-markets build`")


def _remake_page(folder: Output, config: Config) -> None:
    built = folder.manifest()
    if built is None:
        return
    blocked = blocklist.load(folder)
    state = PublishedState(built, folder, partial(map, folder.read))
    recorded = replaced(state.settings(), schedule=config.schedule)
    saved = ReportFile.decoded(folder.read(files.REPORT))
    is_right = saved is not None and built.complete and saved.as_of == built.as_of
    if saved and is_right and placing.is_in_place(folder, recorded) and not tells_of(saved, blocked.ids()):
        return
    if folder.has(files.INSPECTION) and not blocked.ids():
        return
    for page in files.QUOTING:
        folder.discard_key(page)
    if saved is None or not is_right:
        raise OutputError(f"{folder.path(files.REPORT)} is missing, damaged, or not of this version and this build")
    remade = _Remade(folder, built, state.catalog(), recorded)
    terms = Terms(config.schedule, config.cursor.lifetime, prices.load(config))
    report = without(saved, blocked, remade.remains(saved.cost, terms))
    # What changed in the folder after the build must not look older than it.
    folder.save_as_old(files.REPORT, report.encoded())
    excerpts = placing.excerpts_of(folder, remade.catalog, recorded.market_url, built.objects)
    placing.place(folder, recorded, remade.catalog, excerpts)


@dataclass(frozen=True)
class _Remade:
    """What is published in a folder, counted as a build counts what it made."""

    folder: Output
    built: Manifest
    catalog: Catalog
    config: Config

    def remains(self, cost: Cost | None, terms: Terms) -> Remains:
        """Everything that a report says of it; the estimate goes by what builds changed until now."""
        site = SiteSize.in_place(self.folder, self.built).site(self._outline.lists, self._downloads)
        return Remains(
            catalog=self.catalog,
            categories=self.config.categories or (),
            lists=self.built.lists(),
            objects=len(self.built.objects) + families.total(self.built.current_generations()),
            retained=len(self.built.retired),
            search=self._search(),
            downloads=self._downloads,
            cost=estimate.cost(site, cost.basis if cost else Basis(), terms),
        )

    @cached_property
    def _outline(self) -> Outline:
        return Outline.of(self.catalog, self.config)

    @cached_property
    def _downloads(self) -> DownloadCounts | None:
        try:
            heads = Downloads.read(self.folder.read)
        except ValidationError as error:
            raise OutputError(f"{self.folder.path('')}: the head of the dump or the change feed is damaged") from error
        if heads.dump is None:
            return None
        return DownloadCounts.of(heads.dump, heads.changes)

    def _search(self) -> SearchCounts | None:
        if not self.config.can_search:
            return None
        generations = {name: current.generation for name, current in self.built.lists().items()}
        return SearchCounts.of(
            search_index.make(self.catalog, self._outline.categories, self.config.layout, generations)
        )
