"""The lists of a catalog, and the documents outside lists. It knows neither the database nor the disk."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from generator.api import changelog, contract, keys, llms, prices, site_index
from generator.api.feeds import FEED_NAMES, Feed
from generator.api.openapi import document as openapi
from generator.api.openapi.schemas import BuildRecord, Category
from generator.config.settings import Config
from generator.feeds import atom, json_feed
from generator.markets.categories import slug_of
from generator.site.catalog import Catalog
from generator.tree.artifact import Artifact
from generator.tree.generation import ItemList
from generator.tree.manifest import Manifest


def offered(catalog: Catalog, config: Config) -> dict[str, str]:
    """The categories that get lists: names by slug; empty in the core variant."""
    known = catalog.categories()
    if config.categories is None:
        return known
    wanted = {slug_of(reference, known) for reference in config.categories}
    return {slug: name for slug, name in known.items() if slug in wanted}


def lists(catalog: Catalog, categories: Iterable[str]) -> list[ItemList]:
    """Every list; a worker makes a generation of each."""
    return [
        ItemList(keys.list_name(status, sort, category), items)
        for category, status, sort, items in catalog.lists(categories)
    ]


def derived(
    catalog: Catalog, lists: Sequence[ItemList], config: Config, read: Callable[[str], bytes | None]
) -> Iterator[Artifact]:
    """The documents made of markets, and of `lists`, whose beginning feeds show; `read` reads those in place.

    Without the prices, although they are wanted, if there are too many.
    """
    yield Artifact(keys.SNAPSHOT, contract.encode(catalog.snapshot(config.snapshot.size)))
    if config.prices_file:
        items = (market.body for market in catalog.listed() if market.status == "open")
        body = prices.make(items, catalog.as_of, read(keys.PRICES))
        if body is not None:
            yield Artifact(keys.PRICES, body)
    if config.feeds.enabled:
        yield from _feeds(catalog, lists, config, read)


def fixed(config: Config) -> Iterator[Artifact]:
    """The documents that depend on no market."""
    for status, body in contract.FIXED_ERRORS.items():
        yield Artifact(keys.error(status), contract.encode(body))
    yield Artifact(keys.OPENAPI, contract.encode(openapi.document(config)))
    yield Artifact(keys.SITE_INDEX, contract.encode(site_index.make(config)))
    yield Artifact(keys.LLMS, llms.text(config).encode())
    yield Artifact(keys.CHANGELOG, contract.encode(changelog.CHANGELOG))


def _feeds(
    catalog: Catalog, lists: Sequence[ItemList], config: Config, read: Callable[[str], bytes | None]
) -> Iterator[Artifact]:
    items = {one.name: one.items for one in lists}
    links = catalog.links(config.market_url)
    for name in FEED_NAMES:
        made = json_feed.make(name, items[json_feed.SOURCES[name]], config, links)
        feed = json_feed.dated(made, Feed.found(read(keys.feed(name, "json"))), catalog.as_of)
        yield Artifact(keys.feed(name, "json"), contract.encode(feed))
        yield Artifact(keys.feed(name, "atom"), atom.encode(feed))


def build_json(
    base: Manifest, config: Config, markets: int, counts: Mapping[str, int], categories: Mapping[str, str]
) -> Artifact:
    """build.json, for readers and monitors: `counts` of items by list, names of `categories` by slug.

    Lists of one category are not counted there: everybody who asks how fresh the data is would fetch thirty of each.
    It names the settings by which `verify` can tell what each answer must be.
    """
    index = [Category(slug=slug, name=name) for slug, name in categories.items()]
    counted = {name: count for name, count in sorted(counts.items()) if keys.CATEGORY_SEPARATOR not in name}
    content = BuildRecord(
        as_of=base.as_of,
        generator=base.version,
        variant=base.variant,
        layout=base.layout,
        markets=markets,
        lists=counted,
        snapshot_size=config.snapshot.size,
        search=[*config.search_texts] or None,
        categories=index if base.variant == "extended" else None,
    )
    return Artifact(keys.BUILD, contract.encode(content))
