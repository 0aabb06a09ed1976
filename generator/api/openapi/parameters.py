"""The parameters of the OpenAPI document's operations."""

from typing import Any

from generator.api import contract, slugs
from generator.api.contract import Variant
from generator.api.openapi import descriptions as texts
from generator.api.openapi import examples
from generator.api.openapi.schemas import JsonObject, ref
from generator.config.settings import Config


def of_list(config: Config) -> list[JsonObject]:
    """The query parameters of the list."""
    limit = {
        "type": "integer",
        "minimum": contract.LIMIT_MIN,
        "maximum": contract.LIMIT_MAX,
        "default": contract.LIMIT_DEFAULT,
    }
    limits = {"default": contract.LIMIT_DEFAULT, "most": contract.LIMIT_MAX}
    return [
        _query(
            "status", texts.STATUS, {**ref("StatusFilter"), "default": contract.DEFAULT_STATUS}, _each(texts.STATUSES)
        ),
        _query("sort", texts.sorting(), ref("Sort"), _each(texts.SORTS)),
        _query("limit", texts.LIMIT, limit, {name: {"value": value} for name, value in limits.items()}),
        _query(
            "cursor",
            texts.cursor(config),
            {"type": "string", "minLength": 1},
            {"nextPage": {"summary": "From the page before", "value": examples.CURSOR}},
        ),
        *([_category_parameter()] if config.variant == "extended" else []),
        *([_q_parameter(config)] if config.can_search else []),
    ]


def _category_parameter() -> JsonObject:
    schema = {"type": "string", "minLength": 1, "maxLength": contract.CATEGORY_LENGTH}
    named = {
        slugs.of_category(name): {"summary": f"{name}, by its slug", "value": slugs.of_category(name)}
        for name in examples.CATEGORIES
    }
    named |= {"name": {"summary": "by its name", "value": examples.CATEGORIES[-1]}}
    return _query("category", texts.CATEGORY, schema, named)


def _q_parameter(config: Config) -> JsonObject:
    schema = {"type": "string", "minLength": 1, "maxLength": contract.Q_LENGTH}
    return _query("q", texts.q(config), schema, examples.SEARCHES)


def _query(name: str, description: str, schema: JsonObject, shown: JsonObject) -> JsonObject:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": schema,
        "examples": shown,
    }


def _each(meanings: dict[Any, str]) -> JsonObject:
    return {value: {"summary": meaning, "value": value} for value, meaning in meanings.items()}


def of_market(variant: Variant) -> JsonObject:
    """The parameter of a market's path."""
    name = contract.market_parameter(variant)
    return {"name": name, "in": "path", "required": True, **_market_reference(variant)}


def _market_reference(variant: Variant) -> JsonObject:
    by_id = {"summary": "A market's UUID", "value": examples.MARKET_ID}
    if variant == "core":
        schema: JsonObject = {"type": "string", "format": "uuid"}
        return {"description": texts.MARKET_ID, "schema": schema, "examples": {"market": by_id}}
    schema = {"type": "string", "pattern": f"^[A-Za-z0-9_-]{{1,{slugs.REFERENCE_LENGTH}}}$"}
    by_slug = {"summary": "A market's slug", "value": examples.SLUG}
    return {"description": texts.MARKET_REF, "schema": schema, "examples": {"id": by_id, "slug": by_slug}}
