"""The index of the site and llms.txt: what is published, and nothing that is not."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from generator.api import columns
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
    ({"dumps__ndjson": False, "changes__enabled": False}, {"dumps", "dataset", "attach", "changes"}),
]
WITH_QUESTIONS = [
    ({"questions__enabled": True}, {"questions"}),
    ({"questions__enabled": True, "questions__lists": False}, set()),
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


def test_it_names_the_tables_where_they_are_published(tmp_path: Path) -> None:
    def told(**settings: object) -> tuple[list[str], str]:
        config = make_config(tmp_path, base_url=BASE, **settings)
        _, _, text = site_index.llms_text(config, FAMILIES).partition("As Parquet: ")
        return index_of(tmp_path, **settings).get("tables", []), text.partition(".")[0]

    assert told() == ([], "")
    without_fills = ["markets", "history", "candlesDay", "candlesHour", "closes"]
    assert told(dumps__parquet=True) == (without_fills, ", ".join(without_fills))
    everything = {"dumps__parquet": True, "dumps__fills": True, "questions__enabled": True}
    assert told(**everything) == ([*columns.NAMES], ", ".join(columns.NAMES))


def test_it_tells_licence_and_publisher_where_they_are_set(tmp_path: Path) -> None:
    settings = {"license": "CC-BY-4.0", "publisher__name": "Example", "publisher__url": "https://example.org"}
    index = index_of(tmp_path, **settings)
    assert {**index_of(tmp_path), "license": "CC-BY-4.0"} == index_of(tmp_path, license="CC-BY-4.0")
    assert index["publisher"] == {"name": "Example", "url": "https://example.org"}
    info = openapi(make_config(tmp_path, **settings))["info"]
    assert (info["license"], info["contact"]) == ({"name": "CC-BY-4.0", "identifier": "CC-BY-4.0"}, index["publisher"])
    told = openapi(make_config(tmp_path, license="https://example.org/terms", publisher__url="https://example.org"))
    assert told["info"]["license"] == {"name": "https://example.org/terms", "url": "https://example.org/terms"}
    assert told["info"]["contact"] == {"name": "example.org", "url": "https://example.org"}
    assert not {"license", "contact"} & openapi(make_config(tmp_path))["info"].keys()


@pytest.mark.parametrize(("settings", "added"), WITH_QUESTIONS)
def test_it_names_the_list_of_questions_if_there_is_one(
    tmp_path: Path, settings: dict[str, object], added: set[str]
) -> None:
    index = index_of(tmp_path, **settings)
    assert index.keys() - index_of(tmp_path).keys() == added
    assert index.get("questions", f"{BASE}/v1/public/questions") == f"{BASE}/v1/public/questions"


@pytest.mark.parametrize("variant", VARIANTS)
def test_llms_txt_tells_of_questions_where_there_are_some(tmp_path: Path, variant: str) -> None:
    def lines(**settings: object) -> list[str]:
        config = make_config(tmp_path, base_url=BASE, variant=variant, **settings)
        return site_index.llms_text(config, FAMILIES).splitlines()

    assert not any("question" in line for line in lines())
    address, reference = f"- {BASE}/v1/public/questions", {"core": "questionId", "extended": "questionRef"}[variant]
    detail = f"{address}/{{{reference}}}: one question with all its markets"
    found = lines(questions__enabled=True)
    assert [line for line in found if line.startswith(address)] == [
        f"{address}?status=open&sort=popular&limit=100: a page of a list of questions",
        detail,
    ]
    assert any("in markets only" in line for line in found) == (variant == "extended")
    assert [line for line in lines(questions__enabled=True, questions__lists=False) if "question" in line] == [detail]


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
@pytest.mark.parametrize("settings", [settings for settings, _ in (*WITHOUT, *WITH_QUESTIONS)], ids="-".join)
def test_llms_txt_names_the_same_addresses_on_one_screen(
    tmp_path: Path, variant: str, settings: dict[str, object]
) -> None:
    text = site_index.llms_text(make_config(tmp_path, base_url=BASE, variant=variant, **settings), FAMILIES)
    index = index_of(tmp_path, **settings)
    named = {address.rstrip("/") for address in ADDRESS.findall(text)} - {f"{BASE}/v1/public/questions"}
    assert named == addresses(index) - {index["llms"], index.get("questions")}
    assert text.endswith("UTC.\n")
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 120
    assert ("`q`" in text) == ("`category`" in text) == (variant == "extended")
