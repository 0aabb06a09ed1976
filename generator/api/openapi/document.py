"""The OpenAPI 3.1 document of the read API, built from the contract's models. It reads no data.

Generated clients follow it to the letter, so HEAD, OPTIONS and 304 appear in prose only: as operations and responses
they would blur the types of the others.
"""

from typing import Final
from urllib.parse import urlsplit

from generator import __version__
from generator.api import contract, keys, slugs
from generator.api.openapi import descriptions as texts
from generator.api.openapi import downloads, examples, parameters, responses
from generator.api.openapi.schemas import BuildRecord, Category, JsonObject, schemas, used
from generator.config.settings import Config

#: Version of the interface (contract §9), not of this program.
VERSION: Final = "1.0.0"
#: Where `public-markets serve` listens, unless told otherwise.
_LOCAL_SERVER: Final = "http://127.0.0.1:8000"


def document(config: Config) -> JsonObject:
    """The document as JSON values."""
    described = {"paths": _paths(config), "responses": responses.shared_errors(config)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Public Markets Read API",
            "summary": "Public data of a prediction market.",
            "description": texts.introduction(config),
            "version": VERSION,
        },
        "servers": _servers(config),
        "security": [],
        "tags": [
            {"name": "markets", "description": "Lists of markets, and what is public of each."},
            {"name": "build", "description": "What is published, and as of when."},
            *downloads.tags(config),
        ],
        "paths": described["paths"],
        "components": {
            "schemas": used(
                schemas(config.variant, config.fills_window_step, config.texts),
                described,
            ),
            "responses": described["responses"],
        },
    }


def _paths(config: Config) -> JsonObject:
    markets = f"/{keys.MARKETS}"
    return {
        markets: {"get": _list_markets(config)},
        f"/{keys.SNAPSHOT.removesuffix('.json')}": {"get": _get_snapshot(config)},
        f"{markets}/{{{contract.market_parameter(config.variant)}}}": {"get": _get_market(config)},
        f"/{keys.BUILD}": {"get": _get_build(config)},
        **downloads.paths(config),
    }


def _servers(config: Config) -> list[JsonObject]:
    """The public address, and that of `public-markets serve`."""
    local = _LOCAL_SERVER + urlsplit(config.base_url).path
    if config.base_url == local:
        return [{"url": local, "description": "Local development server"}]
    return [{"url": config.base_url}, {"url": local, "description": "Local development server"}]


def _list_markets(config: Config) -> JsonObject:
    walk = {name: f"$request.query.{name}" for name in ("status", "sort", "limit")}
    if config.variant == "extended":
        walk["category"] = "$request.query.category"
    if config.can_search:
        walk["q"] = "$request.query.q"
    links = {
        "nextPage": {
            "operationId": "listMarkets",
            "parameters": {**walk, "cursor": "$response.body#/nextCursor"},
            "description": "The next page of this walk, unless `nextCursor` is null.",
        },
        "market": _market_link("/items/0/id", "The first market of the page; the others likewise.", config),
    }
    return {
        "operationId": "listMarkets",
        "summary": "List public markets",
        "description": texts.listing(config),
        "tags": ["markets"],
        "parameters": parameters.of_list(config),
        "responses": {
            "200": responses.found("A page of the list.", "PublicMarketList", examples.lists(config.variant), links),
            "400": responses.invalid("A parameter is invalid; `details` names it.", _list_faults(config)),
            **responses.refused(405, 429, 503),
        },
    }


def _list_faults(config: Config) -> JsonObject:
    faults: dict[str, tuple[str, ...]] = {
        "limit": ("limit",),
        "cursor": ("cursor",),
        "foreignCursor": ("cursor.foreign",),
        "expiredCursor": ("cursor.gone",),
        "several": ("status", "limit"),
    }
    if config.variant == "extended":
        faults["category"] = ("category",)
    if config.can_search:
        faults["q"] = ("q",)
    return examples.rejections(config.variant, faults, can_search=config.can_search)


def _get_snapshot(config: Config) -> JsonObject:
    text = "The first of the markets; the others likewise."
    links = {
        "freshMarket": _market_link("/freshMarkets/0/id", text, config),
        "closingSoonMarket": _market_link("/closingSoonMarkets/0/id", text, config),
    }
    return {
        "operationId": "getSnapshot",
        "summary": "Get markets for a landing page",
        "description": texts.snapshot(config),
        "tags": ["markets"],
        "responses": {
            "200": responses.found("The groups.", "PublicMarketSnapshot", examples.snapshots(), links),
            **responses.refused(405, 429, 503),
        },
    }


def _get_market(config: Config) -> JsonObject:
    name = contract.market_parameter(config.variant)
    named: dict[str, tuple[str, ...]] = {name: (name,)}
    faults = examples.rejections(config.variant, named)
    return {
        "operationId": "getMarket",
        "summary": "Get one market",
        "description": texts.detail(config),
        "tags": ["markets"],
        "parameters": [parameters.of_market(config.variant)],
        "responses": {
            "200": responses.found("The market.", "PublicMarketDetail", examples.details(config.variant), {}),
            "400": responses.invalid("The identifier is invalid.", faults),
            **responses.refused(404, 405, 429, 503),
        },
    }


def _get_build(config: Config) -> JsonObject:
    extended = config.variant == "extended"
    record = BuildRecord(
        as_of="2026-01-31T12:00:00.000Z",
        generator=__version__,
        variant=config.variant,
        layout=config.layout,
        markets=4,
        lists={keys.list_name("open", "popular"): 2, keys.list_name("archive", "ended"): 1},
        snapshot_size=config.snapshot.size,
        search=[*config.search_texts] or None,
        categories=[Category(slug=slugs.of_category(name), name=name) for name in examples.CATEGORIES]
        if extended
        else None,
    )
    example = {"summary": "Some of its lists", "value": record.model_dump(mode="json", by_alias=True)}
    return {
        "operationId": "getBuild",
        "summary": "Get what is published, and as of when",
        "description": texts.build(config.variant),
        "tags": ["build"],
        "responses": {
            "200": responses.found("The record of what is published.", "BuildRecord", {"build": example}, {}),
            **responses.refused(405, 429, 503),
        },
    }


def _market_link(pointer: str, description: str, config: Config) -> JsonObject:
    return {
        "operationId": "getMarket",
        "parameters": {contract.market_parameter(config.variant): f"$response.body#{pointer}"},
        "description": description,
    }
