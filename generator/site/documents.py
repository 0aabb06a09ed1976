"""Makes the documents outside lists, and says which lists a catalog has. It knows neither the database nor the disk."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from generator.api import changelog, contract, keys, openapi, prices
from generator.api.contract import SORTS, STATUS_FILTERS, Sort, StatusFilter
from generator.api.feeds import FEED_NAMES, Feed
from generator.config.settings import Config
from generator.feeds import atom, json_feed
from generator.markets.categories import slug_of
from generator.site import site_index
from generator.site.catalog import Catalog
from generator.site.family import ROOT, Family, Ingredients
from generator.site.site_index import BuildRecord, Category
from generator.tree.generation import Artifact, ItemList

#: So many lists are sooner sorted one by one than all are.
_FEW: Final = 10


def offered(catalog: Catalog, config: Config) -> dict[str, str]:
    """The categories that get lists: names by slug; empty in the core variant."""
    known = catalog.categories()
    if config.categories is None:
        return known
    wanted = {slug_of(reference, known) for reference in config.categories}
    return {slug: name for slug, name in known.items() if slug in wanted}


def list_parts(categories: Iterable[str]) -> dict[str, tuple[StatusFilter, Sort, str | None]]:
    """Status, sort and category of every list, by its name."""
    parts = [(status, sort, one) for one in (None, *categories) for status in STATUS_FILTERS for sort in SORTS]
    return {keys.list_name(*part): part for part in parts}


def lists(catalog: Catalog, categories: Collection[str], chosen: Collection[str] | None = None) -> list[ItemList]:
    """Every list, or those of the `chosen` names; a worker makes a generation of each."""
    if chosen is not None and len(chosen) <= _FEW:
        parts = list_parts(categories)
        return [ItemList(name, catalog.items(*parts[name])) for name in chosen]
    found = (
        ItemList(keys.list_name(status, sort, category), items)
        for category, status, sort, items in catalog.lists(categories)
    )
    return [one for one in found if chosen is None or one.name in chosen]


def snapshot(site: Ingredients) -> Iterator[Artifact]:
    """The groups of the landing page."""
    yield Artifact(keys.SNAPSHOT, contract.encode(site.catalog.snapshot(site.config.snapshot.size)))


def all_prices(site: Ingredients) -> Iterator[Artifact]:
    """The prices of all open markets, unless they are too many."""
    items = (market.body for market in site.catalog.listed() if market.status == "open")
    body = prices.make(items, site.catalog.as_of, site.read(keys.PRICES))
    if body is not None:
        yield Artifact(keys.PRICES, body)


def feeds(site: Ingredients) -> Iterator[Artifact]:
    """Each feed in its two forms, which show the beginning of a list."""
    links = site.catalog.links(site.config.market_url)
    for name in FEED_NAMES:
        made = json_feed.make(name, site.items_of(json_feed.SOURCES[name]), site.config, links)
        feed = json_feed.dated(made, Feed.found(site.read(keys.feed(name, "json"))), site.catalog.as_of)
        yield Artifact(keys.feed(name, "json"), contract.encode(feed))
        yield Artifact(keys.feed(name, "atom"), atom.encode(feed))


def errors(_: Config, __: Sequence[Family]) -> Iterator[Artifact]:
    """The bodies of errors that do not depend on the request."""
    for status, body in contract.FIXED_ERRORS.items():
        yield Artifact(keys.error(status), contract.encode(body))


def openapi_json(config: Config, families: Sequence[Family]) -> Iterator[Artifact]:
    """The OpenAPI document."""
    yield Artifact(keys.OPENAPI, contract.encode(openapi_document(config, families)))


def openapi_document(config: Config, families: Sequence[Family]) -> openapi.JsonObject:
    """The OpenAPI document of a site with these settings, as JSON values."""
    found = [
        openapi.Document(f"/{ROOT}{path}", one.name, one.told(config), one.schema, one.may_be_absent, one.tag)
        for one in families if one.schema and one.is_on(config) for path in one.documents
    ]  # fmt: skip
    index, text = site_index.make(config, families), site_index.llms_text(config, families)
    bodies = dict.fromkeys(one.schema for one in families if one.schema)
    return openapi.document(config, openapi.Described(index, text, found, (*bodies, type(index))))


def index(config: Config, families: Sequence[Family]) -> Iterator[Artifact]:
    """What `/v1/` answers."""
    yield Artifact(keys.SITE_INDEX, contract.encode(site_index.make(config, families)))


def llms_text(config: Config, families: Sequence[Family]) -> Iterator[Artifact]:
    """The API on one screen."""
    yield Artifact(keys.LLMS, site_index.llms_text(config, families).encode())


def api_changelog(_: Config, __: Sequence[Family]) -> Iterator[Artifact]:
    """What changed in the API."""
    yield Artifact(keys.CHANGELOG, contract.encode(changelog.published()))


def build_json(
    config: Config, version: str, catalog: Catalog, counts: Mapping[str, int], categories: Mapping[str, str]
) -> Artifact:
    """build.json, for readers and monitors: `counts` of items by list, names of `categories` by slug.

    Lists of one category are not counted there: everybody who asks how fresh the data is would fetch thirty of each.
    It names the settings by which `verify` can tell what each answer must be.
    """
    index = [Category(slug=slug, name=name) for slug, name in categories.items()]
    counted = {name: count for name, count in sorted(counts.items()) if keys.CATEGORY_SEPARATOR not in name}
    content = BuildRecord(
        as_of=catalog.as_of,
        generator=version,
        variant=config.variant,
        layout=config.layout,
        markets=len(catalog.markets),
        lists=counted,
        snapshot_size=config.snapshot.size,
        search=[*config.search_texts] or None,
        categories=index if config.variant == "extended" else None,
    )
    return Artifact(keys.BUILD, contract.encode(content))
