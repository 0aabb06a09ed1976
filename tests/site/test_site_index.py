"""The index of the site and llms.txt: what is published, and nothing that is not."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from generator.api.contract import encode
from generator.site import site_index
from generator.site.families import FAMILIES, openapi
from tests.support.sites.builds import VARIANTS, make_config

BASE = "https://api.example.org/x"
ADDRESS = re.compile(r"https://[^\s:?,;{]+")
WITHOUT = [
    ({}, set()),
    ({"feeds__enabled": False}, {"feeds"}),
    ({"prices_file": False}, {"prices"}),
    ({"changes__enabled": False}, {"changes"}),
    ({"dumps__ndjson": False, "changes__enabled": False}, {"dumps", "changes"}),
]


def index_of(folder: Path, **settings: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        encode(site_index.make(make_config(folder, base_url=BASE, **settings), FAMILIES))
    )
    return found


def addresses(value: object) -> set[str]:
    if isinstance(value, str):
        return {value} & {*ADDRESS.findall(value)}
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(addresses, values))


@pytest.mark.parametrize(("settings", "absent"), WITHOUT)
def test_it_leaves_out_what_is_not_published(tmp_path: Path, settings: dict[str, object], absent: set[str]) -> None:
    assert index_of(tmp_path).keys() - index_of(tmp_path, **settings).keys() == absent


@pytest.mark.parametrize("name", ["id", "slug"])
def test_index_openapi_and_llms_txt_say_where_the_page_of_a_market_is(tmp_path: Path, name: str) -> None:
    template = f"https://example.org/markets/{{{name}}}?from=api"
    settings = {"market_url": template, "variant": "extended"}
    config = make_config(tmp_path, base_url=BASE, **settings)
    assert index_of(tmp_path, **settings)["marketUrl"] == template
    assert f"- {template}: the page of a market, for people; fill in its `{name}`\n" in site_index.llms_text(
        config, FAMILIES
    )
    assert f"is at `{template}`: a URI template" in openapi(config)["info"]["description"]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("settings", [settings for settings, _ in WITHOUT], ids="-".join)
def test_llms_txt_names_the_same_addresses_on_one_screen(
    tmp_path: Path, variant: str, settings: dict[str, object]
) -> None:
    text = site_index.llms_text(make_config(tmp_path, base_url=BASE, variant=variant, **settings), FAMILIES)
    index = index_of(tmp_path, **settings)
    assert {address.rstrip("/") for address in ADDRESS.findall(text)} == addresses(index) - {index["llms"]}
    assert text.endswith("UTC.\n")
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 120
    assert ("`q`" in text) == ("`category`" in text) == (variant == "extended")
