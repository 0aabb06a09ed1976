"""The schemas of the OpenAPI document: the contract's models as JSON Schema, with named enums."""

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema

from generator.api import archive, changelog, contract, downloads, feeds, forms, prices, site_index
from generator.api.openapi import meanings
from generator.config.settings import Texts

JsonObject: TypeAlias = dict[str, Any]


class Category(contract.Closed):
    """A category that has lists."""

    slug: str
    name: str


class BuildRecord(contract.Closed):
    """What is published, and as of when."""

    as_of: forms.Timestamp
    generator: str
    variant: contract.Variant
    layout: Literal["pages", "chunks"]
    markets: forms.Count
    lists: dict[str, forms.Count]
    snapshot_size: forms.Count
    search: Annotated[list[str] | None, contract.IfPresent] = None
    categories: Annotated[list[Category] | None, contract.IfPresent] = None


#: The bodies of all responses; pydantic adds the models they contain.
_BODIES: Final = (
    contract.PublicMarketList,
    contract.PublicMarketSnapshot,
    contract.PublicMarketDetail,
    contract.ErrorResponse,
    BuildRecord,
    site_index.SiteIndex,
    changelog.Changelog,
    prices.Prices,
    feeds.Feed,
    downloads.DumpHead,
    archive.ArchiveHead,
    archive.ArchivedDay,
    downloads.ChangesHead,
)
#: Properties that say more than the core variant does.
_EXTENDED: Final = contract.EXTENDED_PROPERTIES | {"search", "tags"}
#: Name and description of each enum by its values. For unnamed enums, client generators create a type per use.
_ENUMS: Final[dict[tuple[str, ...], tuple[str, str]]] = {
    contract.MARKET_STATUSES: ("MarketStatus", "The states of a market."),
    get_args(contract.Resolution): ("Resolution", "The ways in which a market is resolved."),
    contract.STATUS_FILTERS: ("StatusFilter", "The groups of states that can be listed."),
    contract.SORTS: ("Sort", "The orders in which markets can be listed."),
    get_args(contract.Direction): ("Direction", "The sides of a threshold."),
    get_args(changelog.ChangeKind): ("ChangeKind", "The ways in which the API changes."),
    feeds.FEED_NAMES: ("FeedName", "The feeds there are."),
    ("ndjson", "parquet"): ("DumpFormat", "The formats of a dump."),
}
_REF: Final = "#/components/schemas/"
_SECTION: Final = re.compile(r" \(contract §[^)]*\)")


def ref(name: str) -> JsonObject:
    """A reference to the named schema."""
    return {"$ref": f"{_REF}{name}"}


@cache
def schemas(variant: contract.Variant, fills_step: timedelta, texts: Texts) -> JsonObject:
    """All schemas by name, where fills leave their window in these steps, and texts are no longer than these."""
    omitted = frozenset[str]() if variant == "extended" else _EXTENDED
    models = {name: _model(name, schema, omitted, fills_step) for name, schema in _generated().items()}
    for model in models.values():
        shown = model["properties"]
        shown |= {name: _bounded(shown[name], longest) for name, longest in texts if name in shown}
    enums = {
        name: {"description": description, "type": "string", "enum": list(values)}
        for values, (name, description) in _ENUMS.items()
    }
    return {**models, **enums}


def used(known: JsonObject, part: JsonObject) -> JsonObject:
    """Those of the `known` schemas that a part of a document uses, sorted by name."""
    names, found = set[str](), {*_references(part)}
    while new := found - names:
        names |= new
        found = {reference for name in new for reference in _references(known[name])}
    return {name: known[name] for name in sorted(names)}


def _references(part: Any) -> Iterator[str]:
    """The names of the schemas that a part of a document refers to."""
    if isinstance(part, dict):
        if str(part.get("$ref", "")).startswith(_REF):
            yield part["$ref"].removeprefix(_REF)
        part = part.values()
    elif not isinstance(part, list):
        return
    for value in part:
        yield from _references(value)


@cache
def _generated() -> JsonObject:
    """Every schema as pydantic generates it: once, as that takes longer than the rest of the document."""
    mode: JsonSchemaMode = "serialization"
    _, generated = models_json_schema(
        [(model, mode) for model in _BODIES],
        ref_template=f"{_REF}{{model}}",
        schema_generator=_Untitled,
    )
    found: JsonObject = generated["$defs"]
    return found


class _Untitled(GenerateJsonSchema):
    """Omits the titles that pydantic derives from property names, as they are redundant."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic names it
        """Never."""
        return False


def _model(name: str, schema: JsonObject, omitted: frozenset[str], fills_step: timedelta) -> JsonObject:
    kept = {
        key: value for key, value in schema["properties"].items() if name == Category.__name__ or key not in omitted
    }
    properties = {key: _property(name, key, value, fills_step) for key, value in kept.items()}
    # Readers of the document do not have the contract, so omit its section numbers.
    polished = {**schema, "description": _SECTION.sub("", schema["description"]), "properties": properties}
    del polished["title"]
    return polished


def _property(model: str, name: str, schema: JsonObject, fills_step: timedelta) -> JsonObject:
    if schema.get("default", ...) is None:
        # A default of None means that the property may be absent; on the wire it is never null.
        schema = next(choice for choice in schema["anyOf"] if choice.get("type") != "null")
    return {"description": meanings.of_property(model, name, fills_step), **_with_named_enums(schema)}


def _bounded(schema: JsonObject, longest: int) -> JsonObject:
    """The schema of a text with the site's own bound in place of the greatest that a site may have."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [_bounded(choice, longest) for choice in schema["anyOf"]]}
    return {**schema, "maxLength": longest} if "maxLength" in schema else schema


def _with_named_enums(schema: JsonObject) -> JsonObject:
    named = _ENUMS.get(tuple(schema.get("enum", ())))
    if named:
        return ref(named[0])
    if "anyOf" in schema:
        return {**schema, "anyOf": [_with_named_enums(choice) for choice in schema["anyOf"]]}
    return schema
