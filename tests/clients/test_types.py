"""The client's types and the API's description cannot part ways."""

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import date, datetime
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import pytest

from generator.api.openapi import document
from public_markets_client import models
from public_markets_client.decoding import Extensible, wire_name
from tests.support.sites.builds import make_config

#: The types by the names of their schemas; the latter are the contract's.
TYPES: Final[Mapping[str, type[Extensible]]] = {
    "PublicMarketListItem": models.Market,
    "PublicMarketDetailMarket": models.FullMarket,
    "FxFamilyMember": models.FxFamilyMember,
    "OrderBookLevel": models.OrderBookLevel,
    "OrderBook": models.OrderBook,
    "PublicRecentFill": models.Fill,
    "ProbabilityPoint": models.ProbabilityPoint,
    "PublicMarketDetail": models.MarketDetail,
    "PublicMarketSignal": models.Signal,
    "PublicMarketSnapshot": models.Snapshot,
    "MarketPrice": models.Price,
    "Prices": models.Prices,
    "Category": models.Category,
    "BuildRecord": models.Build,
    "PublicMarketList": models.Page,
    "MarketsFile": models.MarketsFile,
    "PartitionFile": models.PartitionFile,
    "DumpHead": models.DumpHead,
    "Step": models.Step,
    "ChangesHead": models.ChangesHead,
}
#: Schemas that the client has no type for: errors become exceptions, and nothing of it reads the others.
UNREAD: Final = {
    "ErrorDetail", "ErrorResponse", "Changelog", "ChangelogEntry", "Feed", "FeedAddresses", "FeedAuthor", "FeedEntry",
    "SiteIndex",
}  # fmt: skip


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    config = make_config(tmp_path_factory.mktemp("settings"), variant="extended", dumps__parquet=True)
    found: dict[str, Any] = document.document(config)["components"]["schemas"]
    return found


def described(schemas: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """The type that values of a schema have in the client."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return TYPES[name].__name__ if name in TYPES else described(schemas, schemas[name])
    if "anyOf" in schema:
        return " | ".join(sorted(described(schemas, one) for one in schema["anyOf"]))
    kind = schema.get("type", "string" if "enum" in schema else None)
    if isinstance(kind, list):
        return " | ".join(sorted(described(schemas, {**schema, "type": one}) for one in kind))
    if kind == "array":
        return f"[{described(schemas, schema['items'])}]"
    if kind == "object":
        return f"{{{described(schemas, schema['additionalProperties'])}}}"
    form = {"date-time": "datetime", "date": "date"}.get(schema.get("format", ""), "str")
    return {"string": form, "number": "float", "integer": "int", "boolean": "bool", "null": "None"}[str(kind)]


def annotated(hint: Any) -> str:
    """The same of an annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        return " | ".join(sorted(annotated(one) for one in arguments))
    if origin is tuple:
        return f"[{annotated(arguments[0])}]"
    if origin is not None:
        return f"{{{annotated(arguments[1])}}}"
    return "None" if hint is types.NoneType else str(hint.__name__)


def declared(kind: type[Extensible]) -> Iterator[tuple[str, str, bool]]:
    """The properties of a type: name in JSON, type of value, whether it is always there."""
    hints = get_type_hints(kind)
    for one in fields(kind):
        if one.name != "json":
            is_required = one.default is MISSING
            form = annotated(hints[one.name])
            # What may be absent is None then.
            yield (
                wire_name(one.name),
                form if is_required else form.replace(" | None", "").replace("None | ", ""),
                is_required,
            )


def test_every_schema_has_its_type_or_is_not_read(schemas: dict[str, Any]) -> None:
    enumerations = {name for name, schema in schemas.items() if "enum" in schema or "oneOf" in schema}
    assert schemas.keys() - enumerations - UNREAD == TYPES.keys() | ({"Resolution"} - enumerations)
    assert len(TYPES) == 20


@pytest.mark.parametrize("name", TYPES)
def test_a_type_has_the_properties_of_its_schema(schemas: dict[str, Any], name: str) -> None:
    schema = schemas[name]
    wanted = {
        (key, described(schemas, value), key in schema["required"]) for key, value in schema["properties"].items()
    }
    assert {*declared(TYPES[name])} == wanted
    assert wanted


def test_what_lists_can_be_asked_for_is_what_the_api_takes(schemas: dict[str, Any]) -> None:
    assert [*get_args(models.Status)] == schemas["StatusFilter"]["enum"]
    assert [*get_args(models.Sort)] == schemas["Sort"]["enum"]


def test_times_are_datetimes() -> None:
    assert (annotated(datetime), annotated(date | None)) == ("datetime", "None | date")
