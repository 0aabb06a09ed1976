"""Small sites to publish: a few markets in three lists, each with five limits, with every kind of object.

They are made with a build's own functions, folder and manifest; publishing one takes milliseconds.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from generator import __version__
from generator.api import contract, keys
from generator.api.contract import SORTS, Variant
from generator.api.forms import instant
from generator.builder.collector import Collector
from generator.config.settings import Config
from generator.downloads import periods
from generator.downloads.histories import LastHistories, NewHistories
from generator.markets import detail
from generator.markets.market import Market
from generator.markets.slugs import SiteKeys
from generator.progress import SILENT
from generator.site import documents, download_files, families
from generator.site.catalog import Catalog, Details, Naming
from generator.site.make import Maker
from generator.site.questions import QuestionRows
from generator.source.address import shape
from generator.tree import staging
from generator.tree.folder import Output, locked
from generator.tree.generation import Artifact
from generator.tree.manifest import Manifest
from generator.tree.staging import Rendered, Staged
from tests.support.faults import LIMITS_WALKED, Seen, State, seen
from tests.support.readers.search import is_match
from tests.support.sites.builds import AS_OF, files
from tests.support.sites.rows import market_id, public_market

LISTS: Final = ("all/popular", "closed/new", "open/new")
#: The lists of a site with a search index, which leads into those of all markets; and searches, by the name of the list
#: that each filters: of all markets, of some, by a word that only edited ones have, and by one of descriptions.
SEARCHED_LISTS: Final = (*(keys.list_name("all", sort) for sort in SORTS), "closed/new", "open/new")
SEARCHES: Final = ("all/popular?quest", "open/new?edited", "closed/volume?question 3", "all/ended?kw0")
#: The limits that have first pages: those that are walked, and 100, which a takedown reads.
LIMITS: Final = (*LIMITS_WALKED, 2)
#: Every market by its number, with what differs from `market_row`.
MARKETS: Final[Mapping[int, Mapping[str, Any]]] = {
    1: {"trader_count": 3},
    2: {"trader_count": 5},
    3: {"trader_count": 1, "status": "closed"},
    4: {"trader_count": 5},
    5: {"trader_count": 2, "status": "closed"},
    6: {"trader_count": 4},
    7: {"trader_count": 9, "status": "resolved", "resolution": "NO", "resolved_at": "2026-01-20 00:00:00"},
    8: {"trader_count": 2},
    9: {"trader_count": 7},
}
#: What details say besides: of each market, and beside it.
_MORE: Final = '"poolYes":50.0,"poolNo":50.0,"tradingPauseReason":null,"fxFamilyMember":null'
_FILL: Final = {
    "id": "00000001-0000-4000-9000-000000000000", "amount": 10.0, "shares": 20.0, "price": 0.5,
    "timestamp": "2026-01-15T00:00:00.000Z",
}  # fmt: skip
_HISTORY: Final = [{"timestamp": "2026-01-01T00:00:00.000Z", "prob": 0.5}]
_BESIDE: Final = {"orderBook": {"bids": [], "asks": []}, "recentFills": [_FILL], "probHistory": _HISTORY}


def markets(**changes: Mapping[str, Any] | None) -> dict[int, Mapping[str, Any]]:
    """The markets after changes: `m3={"question": "Why?"}` edits the third, `m3=None` removes it."""
    numbers = {int(name.removeprefix("m")): columns for name, columns in changes.items()}
    edited = {number: {**MARKETS.get(number, {}), **columns} for number, columns in numbers.items() if columns}
    gone = {number for number, columns in numbers.items() if columns is None}
    return {number: columns for number, columns in {**MARKETS, **edited}.items() if number not in gone}


@dataclass(frozen=True)
class SiteContent:
    """The content of a folder: objects by key, lists in order, and the settings to build and publish it."""

    config: Config
    manifest: Manifest
    files: dict[str, bytes]
    state: State

    @property
    def folder(self) -> Path:
        return self.config.output

    def published(self) -> "SiteContent":
        """The site as publishing it left its folder: a session of the change feed may have begun there."""
        if keys.head(keys.CHANGES) not in self.manifest.objects:
            return self
        with locked(self.folder) as folder:
            manifest = folder.manifest()
        if manifest is None or manifest.as_of != self.manifest.as_of:
            return self
        return replace(self, manifest=manifest, files=files(self.folder))


def make(config: Config, shown: Mapping[int, Mapping[str, Any]], minute: int) -> SiteContent:
    """Build a site of these markets in the folder, `minute` minutes after `AS_OF`."""
    catalog = catalog_of(shown, minute, config.search_texts)
    names = SEARCHED_LISTS if config.can_search else LISTS
    with locked(config.output) as folder:
        staging.place(folder, folder.manifest(), rendered(folder, catalog, config, names), config.cursor.lifetime)
        manifest = folder.manifest()
    assert manifest
    state = state_of(catalog) | (searched(catalog) if config.can_search else {})
    return SiteContent(config, manifest, files(config.output), state)


def catalog_of(shown: Mapping[int, Mapping[str, Any]], minute: int, search_texts: tuple[str, ...] = ()) -> Catalog:
    """The catalog of these markets, `minute` minutes after `AS_OF`, with the words of the `search_texts`."""
    return Catalog(
        (
            public_market(number, search_texts=search_texts, **{"description": secret(number), **columns})
            for number, columns in shown.items()
        ),
        as_of=instant(AS_OF + timedelta(minutes=minute)),
        hidden=0,
        # Every other one has a key, which the record keeps.
        naming=Naming(site_keys=SiteKeys({market_id(number): site_key(number) for number in shown if number % 2}, {})),
    )


def site_key(number: int) -> str:
    """The key of a market on the operator's site."""
    return f"key of {secret(number)}"


def secret(number: int) -> str:
    """A word that only this market has, in its description; in the index, its end stands by itself."""
    return f"kw0{number:02}secret"


def without(state: State, *numbers: int) -> State:
    """The state after a takedown."""
    ids = {market_id(number) for number in numbers}
    return {name: [seen for seen in items if seen[0] not in ids] for name, items in state.items()}


def rendered(folder: Output, catalog: Catalog, config: Config, names: tuple[str, ...] = LISTS) -> Rendered:
    """Stage the details, the named lists, and everything else that a build makes with these settings."""
    staged = Staged()
    for market in catalog.markets:
        staged.put(folder, Artifact(keys.detail(market.id), _detail(market)))
    changed = [*filter(None, map(keys.market_id, staged.changed))]
    lines = {market.id: detail.market_object(_detail(market)) for market in catalog.markets}
    maker = Maker(folder, folder.manifest(), config, SILENT, names=names)
    details = Details(staged, changed, lines.__getitem__, histories=_histories(folder, catalog, config))
    return maker.make(catalog, details, families.of_settings(config), _base(catalog, config)).rendered


def _histories(folder: Output, catalog: Catalog, config: Config) -> NewHistories | None:
    """The histories of all details, if it is their turn."""
    state = download_files.found_in(folder, folder.read)
    if not config.has_parquet or (state and not periods.is_due(state.as_of, catalog.as_of)):
        return None
    collector = Collector(LastHistories(state.markets, state.as_of) if state else LastHistories(), catalog.as_of)
    for market in catalog.markets:
        collector.points([(point["timestamp"], point["prob"]) for point in _HISTORY])
        collector.fills([tuple(_FILL[name] for name in ("timestamp", "id", "amount", "shares", "price"))])
        collector.finish(market)
    found, spool = collector.close()
    path = folder.scratch(f"histories-{secrets.token_hex(8)}")
    with spool:
        path.write_bytes(spool.read())
    return found.stored_at(str(path))


def _detail(market: Market) -> bytes:
    """The body of a detail that has a description, a fill and a point of history."""
    more = f',"description":"{secret(int(market.id[:8], 16))}",{_MORE}}}'
    return b'{"market":%b%b,%b' % (market.body[:-1], more.encode(), contract.encode(_BESIDE)[1:])


def _base(catalog: Catalog, config: Config) -> Manifest:
    return Manifest(
        complete=False, as_of=catalog.as_of, version=__version__, variant=config.variant, layout=config.layout,
        settings=shape(config), current={}, retired=(), objects={}, markets={},
    )  # fmt: skip


def state_of(catalog: Catalog, names: tuple[str, ...] = LISTS) -> State:
    """What the named lists show."""
    selected = _selected(catalog)
    return {name: [_seen(market) for market in selected[name]] for name in names}


def questions(catalog: Catalog, variant: Variant, names: tuple[str, ...]) -> State:
    """What the named lists of questions show."""
    rows = QuestionRows(catalog, catalog.questions or (), variant)
    parts = {name: documents.list_parts(())[name.removeprefix(keys.OF_QUESTIONS)] for name in names}
    return {name: [*map(seen, map(from_json, rows.items(*part)))] for name, part in parts.items()}


def searched(catalog: Catalog, searches: tuple[str, ...] = SEARCHES) -> State:
    """What the searches show: the list without the markets that lack a word."""
    selected = _selected(catalog)
    parted = {name: name.partition("?") for name in searches}
    return {
        name: [_seen(market) for market in selected[list_name] if is_match(words, [" ".join(market.words)])]
        for name, (list_name, _, words) in parted.items()
    }


def _selected(catalog: Catalog) -> dict[str, list[Market]]:
    """The markets of every list, by its name."""
    shown_as = {market.body: market for market in catalog.markets}
    return {
        keys.list_name(status, sort): [shown_as[item] for item in items] for _, status, sort, items in catalog.lists()
    }


def _seen(market: Market) -> Seen:
    return market.item.id, market.item.question, market.item.status
