"""The types of the client are generated from what the API says of itself."""

import json
import os
from copy import deepcopy
from typing import Any, Final

import pytest

import generate_models
from generator.api import contract, downloads
from generator.api.openapi import document
from public_markets_client import models
from public_markets_client.decoding import decoded, wire_name
from tests.clients.encoding import encoded
from tests.support.sites.builds import NOW, ROOT, make_config

MODULE: Final = ROOT / "clients/python/public_markets_client/models.py"
#: Schemas that the client has no type for: errors become exceptions, and nothing of it reads the others.
UNREAD: Final = {
    "ErrorDetail", "ErrorResponse", "Changelog", "ChangelogEntry", "Feed", "FeedAddresses", "FeedAuthor", "FeedEntry",
    "SiteIndex",
}  # fmt: skip


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The documents of sites with all that can be published, by how much of the histories is."""
    folder = tmp_path_factory.mktemp("settings")
    settings = {"variant": "extended", "dumps__parquet": True}
    return [
        document.document(make_config(folder, **settings, dumps__histories=histories))
        for histories in ("thinned", "full")
    ]


@pytest.fixture
def changeable(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, to change."""
    return deepcopy(documents)


def schemas(found: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = found["components"]["schemas"]
    return known


def test_the_types_are_those_of_the_api(documents: list[dict[str, Any]]) -> None:
    current = generate_models.module(documents)
    if os.environ.get("BLESS") == "1":
        MODULE.write_text(current, "utf-8")
        return
    assert MODULE.read_text("utf-8") == current, "the API changed: run `make bless` and commit the types"


def test_every_schema_has_its_type_or_is_not_read(documents: list[dict[str, Any]]) -> None:
    known = schemas(documents[0]) | schemas(documents[1])
    chosen = {"StatusFilter", "Sort"}
    enumerations = {name for name, schema in known.items() if "enum" in schema} - chosen
    assert known.keys() - enumerations - UNREAD == generate_models.TYPES.keys()
    assert {*models.__all__} == {*generate_models.TYPES.values()}
    assert len(models.__all__) == 22


def test_names_are_found_again_in_json(documents: list[dict[str, Any]]) -> None:
    names = {key for name in generate_models.TYPES for key in schemas(documents[1]).get(name, {}).get("properties", {})}
    assert {wire_name(generate_models.snake_case(key)) for key in names} == names
    assert len(names) > 60


def test_files_of_thinned_and_of_full_histories_are_read() -> None:
    file = {"name": "a", "url": "https://example.org/a", "sha256": "0" * 64, "size": 1}
    thinned = {"history": [file | {"state": "archive", "month": "2026-01"}], "fills": [file | {"state": "open"}]}
    full = {name: [file | {"period": "2026"}] for name in ("history", "fills", "candlesDay", "candlesHour", "closes")}
    for files in (thinned, full):
        values = {"asOf": NOW, "count": 0, "state": "0" * 64, "markets": [], "historyAsOf": NOW, **files}
        assert json.loads(contract.encode(downloads.DumpHead.model_validate(values))) == values, "it is a head"
        head = decoded(models.DumpHead, values)
        assert encoded(head) == values
        assert head.extra == {}


def test_a_description_uses_the_names_and_values_of_python(changeable: list[dict[str, Any]]) -> None:
    for found in changeable:
        schemas(found)["Step"]["properties"]["asOf"]["description"] = (
            "Null `closeTime` is null; `Step` and MiB are kept."
        )
    line = "    as_of: datetime  # Null `close_time` is None; `Step` and MiB are kept.\n"
    assert line in generate_models.module(changeable)


@pytest.mark.parametrize(
    ("place", "schema", "problem"),
    [
        ("Step.size", {"oneOf": []}, "no annotation says"),
        ("Step.size", {"anyOf": [{"type": "string"}, {"type": "number"}]}, "no annotation says"),
        ("Step.size", {"$ref": "#/components/schemas/FeedAuthor"}, "name the schema in TYPES"),
        ("PeriodFile.name", {"type": "integer"}, "PartitionFile cannot stand for all its schemas: name is"),
        ("PublicMarketDetailMarket.prob", {"type": "integer"}, "FullMarket has not all that Market has"),
    ],
)
def test_what_no_type_can_say_is_an_error(
    changeable: list[dict[str, Any]], place: str, schema: dict[str, Any], problem: str
) -> None:
    name, _, key = place.partition(".")
    for found in changeable:
        if name in schemas(found):
            schemas(found)[name]["properties"][key] = {"description": "It.", **schema}
    with pytest.raises(ValueError, match=problem):
        generate_models.module(changeable)


def test_what_one_kind_of_site_may_lack_is_optional(changeable: list[dict[str, Any]]) -> None:
    schemas(changeable[1])["Step"]["required"].remove("size")
    assert "    size: int | None = None  #" in generate_models.module(changeable).partition("class Step(")[2]


def test_a_type_whose_schema_is_gone_is_an_error(changeable: list[dict[str, Any]]) -> None:
    for found in changeable:
        del schemas(found)["Step"]
    with pytest.raises(ValueError, match="Step has no schema: remove it from TYPES"):
        generate_models.module(changeable)
