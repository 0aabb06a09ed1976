"""The types of the clients are generated from what the API says of itself."""

import json
import os
from typing import Any, Final

import pytest

import generate_models
from generator.site.families import openapi
from public_markets_client import models
from tests.support.project import ROOT
from tests.support.sites.builds import make_config

MODULE: Final = ROOT / "clients/python/public_markets_client/models.py"
#: What the types of the client for TypeScript are made of, when it is built.
DOCUMENT: Final = ROOT / "clients/typescript/openapi.json"
#: Schemas that the client has no type for: errors become exceptions, and nothing of it reads the others.
UNREAD: Final = {
    "ErrorDetail", "ErrorResponse", "Changelog", "ChangelogEntry", "Feed", "FeedAddresses", "FeedAuthor", "FeedEntry",
    "SiteIndex", "CalibrationBucket", "Horizon", "History",
}  # fmt: skip


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document of a site with all that can be published."""
    folder = tmp_path_factory.mktemp("settings")
    everything = {"dumps__parquet": True, "dumps__fills": True, "questions__enabled": True, "history__public": True}
    return openapi(make_config(folder, variant="extended", **everything))


def schemas(found: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = found["components"]["schemas"]
    return known


def test_the_types_are_those_of_the_api(described: dict[str, Any]) -> None:
    document = json.dumps(described, ensure_ascii=False, indent=1) + "\n"
    for path, current in ((MODULE, generate_models.module(described)), (DOCUMENT, document)):
        if os.environ.get("BLESS") == "1":
            path.write_text(current, "utf-8")
        assert path.read_text("utf-8") == current, "the API changed: run `make bless` and commit the types"


def test_every_schema_has_its_type_or_is_not_read(described: dict[str, Any]) -> None:
    known = schemas(described)
    chosen = {"StatusFilter", "Sort"}
    enumerations = {name for name, schema in known.items() if "enum" in schema} - chosen
    assert known.keys() - enumerations - UNREAD == generate_models.TYPES.keys()
    assert {*models.__all__} == {*generate_models.TYPES.values()}
    assert len(models.__all__) == 32
