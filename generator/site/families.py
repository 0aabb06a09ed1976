"""The table of contents: every kind of object under `v1/`, in publication order. Pure.

Start here to see what is published, or to add to it: what is made of the catalog, or of settings, is a module that
makes it and a row. Whatever has to know all documents goes over these rows: the maker, and through what it makes
manifest, record and plan; publication order; the routes of every edge; OpenAPI, `/v1/` and `llms.txt`; `verify` and the
inspection page. What has generations is in `tree.generations`, too, which knows how theirs are read.

`<list>` is `<status>/<sort>`, or `<status>.<category>/<sort>` for a category, given by its slug. The search index has
the keys of a list `all/search` in the layout `chunks`, in either layout. The `<digest>` of a slug is taken in lower
case: slugs may be longer than file names, and file systems disagree on case. Keys are relative to the output folder
and to the bucket's prefix. Beside `v1/` lie private objects: see `api.keys`.
"""

from collections.abc import Iterator
from typing import Final

from generator.api import changelog, changes, contract, downloads, feeds, keys, prices
from generator.api.downloads import NDJSON, PARQUET
from generator.api.history import History
from generator.api.openapi import JsonObject
from generator.api.questions import QuestionDetail, QuestionList
from generator.config.settings import Config
from generator.site import attach, dataset, documents, history
from generator.site.family import ROOT, Family, Ingredients, Rank
from generator.site.site_index import BuildRecord
from generator.tree.generation import Artifact

_LIST: Final = f"{keys.LISTS}/<status>/<sort>"
_QUESTION_LIST: Final = f"{keys.QUESTION_LISTS}/<status>/<sort>"
_SEARCH: Final = keys.list_prefix(keys.SEARCH)
_DUMPS: Final = keys.list_prefix(keys.DUMPS)
_CHANGES: Final = keys.list_prefix(keys.CHANGES)

FAMILIES: Final = (
    Family(
        "details", (f"{keys.DETAILS}/<start of id>/<id>.json", f"{keys.SLUGS}/<start of digest>/<digest of slug>.json"),
        Rank.DETAIL, "one market with order book, recent fills and history",
        schema=contract.PublicMarketDetail, may_be_absent=True,
    ),
    Family(
        "questions",
        (
            f"{keys.QUESTION_DETAILS}/<start of id>/<id>.json",
            f"{keys.QUESTION_SLUGS}/<start of digest>/<digest of slug>.json",
        ),
        Rank.DETAIL, "one question with all its markets",
        schema=QuestionDetail, is_on=lambda config: config.has_questions, may_be_absent=True,
        of_markets=documents.question_details,
    ),
    Family("index", (keys.SITE_INDEX,), Rank.DOCUMENT, "where everything is", address="", of_settings=documents.index),
    Family(
        "snapshot", (keys.SNAPSHOT,), Rank.DOCUMENT, "small groups of open markets",
        address=keys.SNAPSHOT.removeprefix(ROOT).removesuffix(".json"),
        schema=contract.PublicMarketSnapshot, of_markets=documents.snapshot,
    ),
    Family(
        "openapi", (keys.OPENAPI,), Rank.DOCUMENT, "every request and field (OpenAPI 3.1)",
        of_settings=documents.openapi_json,
    ),
    Family("llms", (keys.LLMS,), Rank.DOCUMENT, "the API on one screen, as text", of_settings=documents.llms_text),
    Family(
        "changelog", (keys.CHANGELOG,), Rank.DOCUMENT, "what changed in this API, and what will, by date",
        schema=changelog.Changelog, of_settings=documents.api_changelog,
    ),
    Family(
        "prices", (keys.PRICES,), Rank.DOCUMENT, "probability and volume of all open markets, in one object",
        schema=prices.Prices, is_on=lambda config: config.prices_file, may_be_absent=True,
        of_markets=documents.all_prices,
    ),
    Family(
        "history", (keys.HISTORY,), Rank.DOCUMENT, "how right probabilities were, of all markets that resolved",
        schema=History, is_on=lambda config: config.history.public, may_be_absent=True,
        of_dump=history.made,
    ),
    Family(
        "feeds", tuple(keys.feed(name, extension) for name in feeds.FEED_NAMES for extension in ("atom", "json")),
        Rank.DOCUMENT, "new and resolved markets, latest first",
        schema=feeds.Feed, is_on=lambda config: config.feeds.enabled, of_markets=documents.feeds,
    ),
    Family(
        "errors", tuple(map(keys.error, contract.FIXED_ERRORS)), Rank.DOCUMENT, "errors, which edges answer verbatim",
        schema=contract.ErrorResponse, is_addressed=False, of_settings=documents.errors,
    ),
    Family(
        "dumps", (keys.head(keys.DUMPS),), Rank.DUMP, "names the files that hold all listed markets (NDJSON, gzip)",
        immutable=(
            f"{_DUMPS}/<generation>/{keys.INDEX}",
            *(f"{_DUMPS}/{downloads.MARKETS_FOLDER}<digest>.{extension}" for extension in (NDJSON, PARQUET)),
            *(f"{_DUMPS}/{table}/<period>/<digest>.{PARQUET}" for table in downloads.TABLES),
            *(f"{_DUMPS}/{downloads.QUESTIONS_FOLDER}<digest>.{extension}" for extension in (NDJSON, PARQUET)),
        ),
        schema=downloads.DumpHead, is_on=lambda config: config.dumps.ndjson,
    ),
    Family(
        "dataset", (keys.DATASET,), Rank.DUMP, "the dump for machines: files, columns, licence (Croissant)",
        is_on=lambda config: config.dumps.ndjson, of_dump=dataset.made,
    ),
    Family(
        "attach", (keys.ATTACH,), Rank.DUMP, "SQL by which DuckDB has each table of the dump by name",
        is_on=lambda config: config.dumps.ndjson, of_dump=attach.made,
    ),
    Family(
        "lists", (f"{_LIST}/{keys.FIRST}/<limit>.json", f"{_LIST}/{keys.HEAD}"), Rank.HEAD, "a page of a list",
        immutable=(
            f"{_LIST}/<generation>/<limit>-<hundreds of pages>/<position>.json",
            f"{_LIST}/<generation>/{keys.INDEX}", f"{_LIST}/{keys.CHUNKS}/<start of digest>/<digest>.json",
        ),
        schema=contract.PublicMarketList, may_be_absent=True,
    ),
    Family(
        "question_lists", (f"{_QUESTION_LIST}/{keys.FIRST}/<limit>.json", f"{_QUESTION_LIST}/{keys.HEAD}"), Rank.HEAD,
        "a page of a list of questions",
        immutable=(
            f"{_QUESTION_LIST}/<generation>/<limit>-<hundreds of pages>/<position>.json",
            f"{_QUESTION_LIST}/<generation>/{keys.INDEX}",
            f"{_QUESTION_LIST}/{keys.CHUNKS}/<start of digest>/<digest>.json",
        ),
        schema=QuestionList, is_on=lambda config: config.has_question_lists, may_be_absent=True,
    ),
    Family(
        "search", (f"{_SEARCH}/{keys.HEAD}",), Rank.HEAD, "the index by which edges answer `q`",
        immutable=(
            f"{_SEARCH}/<generation>/{keys.INDEX}", f"{_SEARCH}/{keys.CHUNKS}/<start of digest>/<digest>.json",
        ),
        is_addressed=False, is_on=lambda config: config.can_search,
    ),
    Family(
        "changes", (keys.head(keys.CHANGES),), Rank.HEAD, "names the files that keep a copy of them up to date",
        immutable=(f"{_CHANGES}/<generation>/{keys.INDEX}", f"{_CHANGES}/<digest>.{NDJSON}"),
        schema=changes.ChangesHead, is_on=lambda config: config.has_changes,
    ),
    Family(
        "build", (keys.BUILD,), Rank.BUILD, "as-of, counts", in_extended=", categories", schema=BuildRecord,
    ),
)  # fmt: skip
_BY_KEY: Final = {key: family for family in FAMILIES if not family.is_varied for key in family.keys}
_VARIED: Final = tuple(family for family in FAMILIES if family.is_varied)


def rank(key: str) -> Rank:
    """The place of an object that changes in publication order; that of a document if another version knows it."""
    known = _BY_KEY.get(key) or next((family for family in _VARIED if family.pattern.fullmatch(key)), None)
    return known.rank if known else Rank.DOCUMENT


def documents_of(config: Config) -> dict[str, str]:
    """The key of each document that a site with these settings has, by its path below the API's root."""
    return {path: key for family in FAMILIES if family.is_on(config) for path, key in family.documents.items()}


def optional(config: Config) -> list[str]:
    """The keys of documents that a site with these settings may lack."""
    found = (family for family in FAMILIES if family.may_be_absent and family.is_on(config))
    return [key for family in found for key in family.documents.values()]


def fixed_keys() -> list[str]:
    """The keys of the documents that depend on settings alone, in order."""
    return sorted(key for family in FAMILIES if family.of_settings for key in family.keys)


def made_of_dump() -> frozenset[str]:
    """The keys of the documents that are made of the dump: figures of its markets, or names of its files."""
    return frozenset(key for family in FAMILIES if family.of_dump for key in family.keys)


def changing() -> frozenset[str]:
    """The keys of the documents that change with most markets: not feeds, which show the latest ones."""
    return frozenset(
        key
        for family in FAMILIES
        if family.name != "feeds" and (family.of_markets or family.of_dump or family.rank is Rank.BUILD)
        for key in family.documents.values()
    )


def of_markets(site: Ingredients) -> Iterator[Artifact]:
    """The documents that are made of markets."""
    for family in FAMILIES:
        if family.of_markets and family.is_on(site.config):
            yield from family.of_markets(site)


def of_dump(site: Ingredients) -> Iterator[Artifact]:
    """The documents that are made of markets and of the dump, which is made before them."""
    for family in FAMILIES:
        if family.of_dump and family.is_on(site.config):
            yield from family.of_dump(site)


def of_settings(config: Config) -> Iterator[Artifact]:
    """The documents that depend on no market."""
    for family in FAMILIES:
        if family.of_settings and family.is_on(config):
            yield from family.of_settings(config, FAMILIES)


def openapi(config: Config) -> JsonObject:
    """The OpenAPI document of a site with these settings, as JSON values."""
    return documents.openapi_document(config, FAMILIES)
