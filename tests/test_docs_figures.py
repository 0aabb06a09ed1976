"""The figures in docs/ about the API and the files, compared with the constants in the code."""

import os
import re
from pathlib import Path
from typing import Final, get_args

import pytest

from generator.api import changelog, contract, cursors, keys, slugs
from generator.api.feeds import FEED_NAMES, MOST_ENTRIES
from generator.api.questions import SHOWN_MARKETS, QuestionListItem
from generator.config import loader
from generator.cost import estimate, prices
from generator.cost.estimate import Terms
from generator.search.generation import MOST_OBJECTS
from generator.site.families import openapi
from generator.tree import pages
from tests.api.reader_contract import promises
from tests.support.project import ROOT
from tests.support.readers.pages import rows_of

API: Final = (ROOT / "docs" / "api.md").read_text("utf-8")
BUILDS: Final = (ROOT / "docs" / "builds.md").read_text("utf-8")
FEEDS: Final = (ROOT / "docs" / "feeds.md").read_text("utf-8")
EXTENDED: Final = (ROOT / "docs" / "extended-variant.md").read_text("utf-8")
SIZING: Final = (ROOT / "docs" / "sizing.md").read_text("utf-8")
LAYOUTS: Final = (ROOT / "docs" / "layouts-and-cost.md").read_text("utf-8")


DEFAULTS: Final = loader.load(Path(os.devnull), environ={})


def row(name: str, text: str = API) -> list[str]:
    """The cells after the first one, in the one row of a table that begins with the name."""
    (found,) = re.findall(rf"^\| {name} \|(.*)\|$", text, re.MULTILINE)
    return [cell.strip() for cell in found.split("|")]


def words(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def test_parameters_of_the_list_are_those_of_the_contract() -> None:
    allowed, default = row("`status`")
    assert {*words(allowed)} == {*contract.STATUS_FILTERS}
    assert words(default) == [contract.DEFAULT_STATUS]
    assert words(allowed)[1:5] == [*contract.STATES_OF_FILTER["archive"], "archive"]
    allowed, default = row("`sort`")
    assert words(allowed) == [*contract.SORTS]
    usual, *named, other = words(default)
    assert {status: usual if status in named else other for status in contract.STATUS_FILTERS} == contract.DEFAULT_SORT
    assert row("`limit`") == [f"{contract.LIMIT_MIN} to {contract.LIMIT_MAX}", str(contract.LIMIT_DEFAULT)]


def test_every_sort_is_explained() -> None:
    assert words(row("`popular`")[0]) == ["traderCount", "volume"]
    properties = {name: words(row(f"`{name}`")[0]) for name in contract.SORTS}
    known = {field.alias or name for name, field in contract.PublicMarketListItem.model_fields.items()}
    assert all(found and known.issuperset(found) for found in properties.values())


def test_readers_are_told_how_they_learn_of_changes() -> None:
    _, _, text = API.partition("## Changes of the API")
    assert f"is announced {changelog.NOTICE.days} days before" in text
    assert f"begins with `{changelog.WITHOUT_NOTICE}`" in text
    kinds = re.findall(r"^`kind` is (.*)\. `where`", text, re.MULTILINE)
    assert words(kinds[0]) == [*get_args(changelog.ChangeKind)]
    promised = promises(openapi(DEFAULTS))
    places = re.findall(r"`(\w+[\w.]*)` (?:is a property|an operation|its parameter|a header)", " ".join(text.split()))
    assert len(places) == 4
    assert {*places} < promised.keys()


def test_every_error_is_explained() -> None:
    statuses = {int(code) for code in re.findall(r"^\| (\d{3}) \|", API, re.MULTILINE)}
    assert statuses == set(contract.FIXED_ERRORS)
    assert row("503")[0].startswith(contract.FIXED_ERRORS[503].error)


def test_the_longest_target_is_named() -> None:
    assert f"more than {contract.TARGET_LENGTH:,} characters" in " ".join(API.split())


def test_the_messages_for_cursors_stand_in_the_guide() -> None:
    faults = [fault for fault in contract.PARAMETER_ERRORS if fault.partition(".")[0] == "cursor"]
    assert len(faults) == 3
    for fault in faults:
        assert f"| `{contract.PARAMETER_ERRORS[fault]}` |" in API


def test_every_path_is_that_of_the_keys() -> None:
    shown = re.findall(r"^\| `GET /(\S+)` \|", API, re.MULTILINE)
    snapshot = keys.SNAPSHOT.removesuffix(".json")
    heads = [keys.head(keys.DUMPS), keys.DATASET, keys.head(keys.CHANGES)]
    others = [f"{contract.API_VERSION}/", keys.feed("new", "json"), *heads]
    markets = [keys.MARKETS, snapshot, keys.PRICES, f"{keys.MARKETS}/{{marketId}}"]
    assert shown == [*markets, keys.QUESTIONS, keys.BUILD, keys.OPENAPI, keys.CHANGELOG, *others]
    of_feeds = re.findall(r"`GET /(\S+)` \|", FEEDS)
    assert f"the first {MOST_ENTRIES} markets" in FEEDS
    assert of_feeds == [keys.feed(name, form) for name in FEED_NAMES for form in ("json", "atom")]


def test_every_property_of_a_row_of_questions_is_explained() -> None:
    _, _, table = API.partition("### What a row says")
    explained = [name for first, *_ in rows_of(table.partition("\n## ")[0]) for name in words(first)]
    known = {field.alias or name for name, field in QuestionListItem.model_fields.items()}
    assert sorted(explained) == sorted(known - {"id", "title"})
    assert ("ten at most" in row("`markets`")[0], SHOWN_MARKETS) == (True, 10)


def test_a_cursor_is_cut_as_described() -> None:
    described = (
        f"`check` ({cursors.CHECK_LENGTH} characters), `generation` ({cursors.GENERATION_LENGTH}) and `position`"
    )
    assert described in " ".join(BUILDS.split())


def test_the_slug_of_a_category_is_made_as_described() -> None:
    name, slug = re.findall(r"`([^`]+)` is `([^`]+)`", EXTENDED)[0]
    assert slugs.of_category(name) == slug
    assert f"up to {contract.CATEGORY_LENGTH} characters" in EXTENDED
    assert f"1 to {slugs.REFERENCE_LENGTH} ASCII letters" in EXTENDED


def test_lists_become_as_many_files_as_described() -> None:
    assert f"{pages.page_count(100_000) / 100_000:.2f} n" in LAYOUTS
    lists = len(contract.STATUS_FILTERS) * len(contract.SORTS)
    assert f"{lists * len(pages.LIMITS):,} files for an empty category" in " ".join(EXTENDED.split())


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_the_cost_of_schedules_is_that_of_as_many_puts() -> None:
    usd_per_put = prices.load().places[0].per_million_puts / 1e6
    objects = dict(zip(("chunks", "pages"), map(number, row("objects of a build", SIZING)), strict=False))
    schedules = re.search(r"^  \| `schedule` \|(.*)\|$", SIZING, re.MULTILINE)
    assert schedules
    for layout, built in objects.items():
        (found,) = re.findall(rf"^  \| `{layout}` \|(.*)\|$", SIZING, re.MULTILINE)
        for usd, schedule in zip(found.split("|"), schedules[1].split("|"), strict=True):
            puts = (built + estimate.RECORD_PUTS) * estimate.MINUTES_PER_MONTH / int(schedule)
            assert number(usd) == pytest.approx(puts * usd_per_put, rel=0.03)


def test_the_space_of_retired_generations_is_that_of_their_number() -> None:
    known = prices.load()
    hourly, often = (Terms(minutes, DEFAULTS.cursor.lifetime, known).kept + 1 for minutes in (DEFAULTS.schedule, 5))
    assert f"{hourly} times with the defaults, {often} times with a schedule of 5 minutes" in " ".join(SIZING.split())


def test_the_age_of_copies_is_that_of_the_cache_header() -> None:
    ages = dict(part.strip().split("=") for part in keys.MUTABLE.split(",")[1:])
    assert [*re.findall(r"(\d+) (?:seconds|more)|keeps it for (\d+)", SIZING)] == [
        (ages["s-maxage"], ""), (ages["stale-while-revalidate"], ""), ("", ages["max-age"])
    ]  # fmt: skip


def test_a_search_costs_as_many_reads_as_described() -> None:
    text = " ".join(EXTENDED.split())
    assert f"at most {MOST_OBJECTS} objects for a page" in text
    amazon, cloudflare = (sum(place.reads.per_million_objects.values()) for place in prices.load().places)
    assert f"up to {MOST_OBJECTS} GET requests of S3: {MOST_OBJECTS * amazon:.0f} USD per million searches" in text
    # One more for build.json.
    most = MOST_OBJECTS + 1
    assert f"up to {most} class B operations of R2: {most * cloudflare:.0f} USD per million" in text
