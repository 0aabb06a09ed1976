"""The types of the client are generated from what the API says of itself."""

import os
from typing import Any, Final

import pytest

import generate_models
from generator.site.families import openapi
from public_markets_client import models
from tests.support.project import ROOT
from tests.support.sites.builds import make_config

MODULE: Final = ROOT / "clients/python/public_markets_client/models.py"
#: Schemas that the client has no type for: errors become exceptions, and nothing of it reads the others.
UNREAD: Final = {
    "ErrorDetail", "ErrorResponse", "Changelog", "ChangelogEntry", "Feed", "FeedAddresses", "FeedAuthor", "FeedEntry",
    "SiteIndex",
}  # fmt: skip


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document of a site with all that can be published."""
    folder = tmp_path_factory.mktemp("settings")
    return openapi(make_config(folder, variant="extended", dumps__parquet=True, dumps__fills=True))


def schemas(found: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = found["components"]["schemas"]
    return known


def test_the_types_are_those_of_the_api(described: dict[str, Any]) -> None:
    current = generate_models.module(described)
    if os.environ.get("BLESS") == "1":
        MODULE.write_text(current, "utf-8")
        return
    assert MODULE.read_text("utf-8") == current, "the API changed: run `make bless` and commit the types"


def test_every_schema_has_its_type_or_is_not_read(described: dict[str, Any]) -> None:
    known = schemas(described)
    chosen = {"StatusFilter", "Sort"}
    enumerations = {name for name, schema in known.items() if "enum" in schema} - chosen
    assert known.keys() - enumerations - UNREAD == generate_models.TYPES.keys()
    assert {*models.__all__} == {*generate_models.TYPES.values()}
    assert len(models.__all__) == 22
