"""Makes the documents outside lists, and says which lists a catalog has. It knows neither the database nor the disk."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from generator.api import changelog, contract, keys, openapi, prices
from generator.api.contract import SORTS, STATUS_FILTERS, Sort, StatusFilter
from generator.api.feeds import FEED_NAMES, Feed
from generator.config.settings import Config
from generator.feeds import atom, json_feed
from generator.markets.categories import slug_of
from generator.site import site_index
from generator.site.catalog import Catalog, Ordered
from generator.site.family import ROOT, Family, Ingredients
from generator.site.questions import QuestionRows
from generator.site.site_index import BuildRecord, Category, QuestionTotals
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


def lists(catalog: Ordered[Any], categories: Collection[str], chosen: Collection[str] | None = None) -> list[ItemList]:
    """Every list, or those of the `chosen` names; a worker makes a generation of each."""
    if chosen is not None and len(chosen) <= _FEW:
        parts = list_parts(categories)
        return [ItemList(name, catalog.items(*parts[name])) for name in chosen]
    found = (
        ItemList(keys.list_name(status, sort, category), items)
        for category, status, sort, items in catalog.lists(categories)
    )
    return [one for one in found if chosen is None or one.name in chosen]


def question_lists(rows: QuestionRows, categories: Collection[str], chosen: Collection[str] | None) -> list[ItemList]:
    """Every list of questions, or those of the `chosen` names."""
    of, names = keys.OF_QUESTIONS, None
    if chosen is not None:
        names = [name.removeprefix(of) for name in chosen]
    return [ItemList(of + one.name, one.items) for one in lists(rows, categories, names)]


def question_details(site: Ingredients) -> Iterator[Artifact]:
    """The details of all questions."""
    for one in site.questions.details() if site.questions else ():
        for key in keys.questions(one.id, one.slug):
            yield Artifact(key, one.body)


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
    of_questions = site.catalog.question_links(site.config.question_url)
    for name in FEED_NAMES:
        items = site.items_of(json_feed.source(name, site.config))
        made = json_feed.make(name, items, site.config, links, of_questions)
        questions = [question.id for question in site.catalog.questions or ()]
        feed = json_feed.dated(made, Feed.found(site.read(keys.feed(name, "json"))), site.catalog.as_of, questions)
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


def api_changelog(config: Config, __: Sequence[Family]) -> Iterator[Artifact]:
    """What changed in the API."""
    yield Artifact(keys.CHANGELOG, contract.encode(changelog.published(has_questions=config.has_questions)))


def build_json(
    config: Config, version: str, catalog: Catalog, counts: Mapping[str, int], categories: Mapping[str, str]
) -> Artifact:
    """build.json, for readers and monitors: `counts` of items by list, names of `categories` by slug.

    Lists of one category are not counted there: everybody who asks how fresh the data is would fetch thirty of each.
    It names the settings by which `verify` can tell what each answer must be.
    """
    index = [Category(slug=slug, name=name) for slug, name in categories.items()]
    counted = {name: count for name, count in sorted(counts.items()) if keys.CATEGORY_SEPARATOR not in name}
    of_questions = {name: counted.pop(name) for name in [*counted] if name.startswith(keys.OF_QUESTIONS)}
    content = BuildRecord(
        as_of=catalog.as_of,
        generator=version,
        variant=config.variant,
        layout=config.layout,
        markets=len(catalog.markets),
        lists=counted,
        questions=_questions(catalog, of_questions),
        snapshot_size=config.snapshot.size,
        search=[*config.search_texts] or None,
        categories=index if config.variant == "extended" else None,
    )
    return Artifact(keys.BUILD, contract.encode(content))


def _questions(catalog: Catalog, counts: Mapping[str, int]) -> QuestionTotals | None:
    """How many questions there are, with `counts` of rows by list; None where there is no such resource."""
    if catalog.questions is None:
        return None
    rows = {name.removeprefix(keys.OF_QUESTIONS): count for name, count in counts.items()}
    return QuestionTotals(count=len(catalog.questions), lists=rows or None)
