"""The CloudFront edge: its two functions, run on the table of cases and on what a bucket responds."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract, cursors, keys
from generator.api.contract import Variant
from generator.config.downloads import Dumps
from generator.config.settings import Config
from generator.edge import cloudfront as edge_cloudfront
from generator.edge import responses
from generator.edge.compaction import compact
from tests.support.campaigns import every_pair
from tests.support.edges.cases import asking, mismatches, requests
from tests.support.edges.cloudfront import (
    AWKWARD,
    CHUNKED,
    EXTENDED,
    FULL,
    IN_BUCKET,
    PLAIN,
    Event,
    Query,
    bucket_response,
    distribution,
    origin_event,
    rendered,
    shown_headers,
)
from tests.support.edges.router_lint import findings
from tests.support.sites.builds import Outputs
from tests.support.sites.rows import market_id

CASES: Final[Mapping[Variant, int]] = {"core": 706, "extended": 880}
PAGE_GONE: Final = contract.encode(contract.invalid("cursor.gone")).decode()
LIST_UNKNOWN: Final = contract.encode(contract.invalid("category")).decode()
NOT_FOUND: Final = responses.error_bodies()[404]
UNAVAILABLE: Final = responses.error_bodies()[503]
GENERATION: Final = "p" + "0" * (cursors.GENERATION_LENGTH - 1)


# ── the two functions on the table ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    ("program", "query", "config"),
    every_pair(
        ("njs", "node"),
        ("raw", "parsed"),
        (PLAIN, IN_BUCKET, AWKWARD.model_copy(update={"base_url": PLAIN.base_url}), EXTENDED),
    ),
)
def test_every_case_of_the_table(program: str, query: Query, config: Config, outputs: Outputs, tmp_path: Path) -> None:
    output = outputs(config.variant)
    cases = requests(output, can_search=False)
    assert len(cases) >= CASES[cases[0].variant]
    wrong = mismatches(cases, distribution(config, output, tmp_path).answers(cases, program, query), output)
    assert not wrong, "\n".join([f"{len(wrong)} wrong", *wrong[:10]])


@pytest.mark.parametrize("config", [PLAIN, IN_BUCKET, AWKWARD, EXTENDED, CHUNKED, FULL])
def test_the_function_keeps_to_what_cloudfront_runs(config: Config) -> None:
    before, line, after = rendered(config)["function.js"].partition(
        compact("const crypto = require('crypto');").strip()
    )
    assert line, "the only module"
    assert findings(before + after) == []
    assert [one.partition(": ")[2] for one in findings(f"{before}\nconst {{ a }} = b;\n{after}")] == ["destructuring"]


@pytest.mark.parametrize("program", ["njs", "node"])
def test_a_query_makes_no_difference_to_the_cache_key(program: str, demo_output: Path, tmp_path: Path) -> None:
    edge_ = distribution(PLAIN, demo_output, tmp_path)
    found = edge_.viewer_requests([asking("sort=new&limit=5&utm=1"), asking("limit=5&x=%&sort=n%65w")], program, "raw")
    assert found[0] == found[1]
    assert found[0]["uri"] == f"/{keys.first_page('open/new', 5)}"


# ── the origin's responses ────────────────────────────────────────────────────────────────────────────────────────

FIRST_PAGE: Final = keys.first_page("open/popular", 20)
FIRST_OF_CATEGORY: Final = keys.first_page("open.sports/popular", 20)
PAGE: Final = keys.page("open/popular", GENERATION, 20, 40)
DETAIL: Final = keys.detail(market_id(1))
NAMED_FILES: Final = (f"v1/dumps/markets/{'0' * 32}.ndjson.gz", f"v1/changes/{'f' * 32}.ndjson.gz")
ALL_FILES: Final = (*NAMED_FILES, *(f"v1/dumps/{rest}/{'9' * 32}.parquet" for rest in (
    "markets", "history/period=2026-10", "candles/day/period=2026",
)))  # fmt: skip


def origin_response(
    folder: Path, status: int, phrase: str, headers: Mapping[str, str], *, uri: str, config: Config = PLAIN
) -> Event:
    return origin_responses(folder, [(status, phrase, headers, uri)], config)[0]


def origin_responses(
    folder: Path, answers: Iterable[tuple[int, str, Mapping[str, str], str]], config: Config = PLAIN
) -> list[Event]:
    """What becomes of these answers of the bucket: status, phrase, headers and key of each."""
    root = edge_cloudfront.function_values(config)["root"]
    events = [origin_event("GET", root + key, status, phrase, headers) for status, phrase, headers, key in answers]
    return distribution(config, folder, folder).origin_responses(events)


@pytest.mark.parametrize("config", [PLAIN, IN_BUCKET, AWKWARD])
def test_an_object_that_is_missing(config: Config, tmp_path: Path) -> None:
    deleted = {"x-amz-delete-marker": "true", "x-amz-version-id": "3", "Content-Length": "9"}
    always_there = [FIRST_PAGE, keys.SNAPSHOT, keys.error(404), keys.SITE_INDEX, *map(keys.head, keys.DOWNLOADS)]
    missing = [PAGE, FIRST_OF_CATEGORY, DETAIL, keys.PRICES, *NAMED_FILES, *always_there]
    asked = [(key, marks) for key in missing for marks in ({}, deleted)]
    answers = [
        (found, phrase, {**headers, **marks}, key)
        for key, marks in asked
        for found, phrase, headers in [bucket_response(key, None)]
    ]
    gone, unknown, absent = (400, PAGE_GONE), (400, LIST_UNKNOWN), (404, NOT_FOUND)
    expected = {PAGE: gone, FIRST_OF_CATEGORY: unknown, **dict.fromkeys([DETAIL, keys.PRICES, *NAMED_FILES], absent)}
    for case, response in zip(asked, origin_responses(tmp_path, answers, config), strict=True):
        status, body = expected.get(case[0], (503, UNAVAILABLE))
        assert (response["status"], response["body"]) == (str(status), body), case
        values = shown_headers(response)
        assert values.pop("transfer-encoding") == "chunked"
        assert values == responses.error_headers(status, config) | responses.COMMON, case


def test_what_is_there_passes_without_the_buckets_own_headers(tmp_path: Path) -> None:
    status, phrase, headers = bucket_response(PAGE, b"{}")
    response = origin_response(tmp_path, status, phrase, headers, uri=PAGE)
    assert (response["status"], response["statusDescription"]) == ("200", "OK")
    assert "body" not in response
    kept = {name.lower(): value for name, value in headers.items() if not name.startswith("x-amz-")}
    assert shown_headers(response) == kept | responses.COMMON


def test_a_bucket_that_fails_or_refuses_is_unavailable(tmp_path: Path) -> None:
    answers = [
        (status, phrase, {**headers, "Location": "https://example.com"}, key)
        for key in (PAGE, FIRST_PAGE, DETAIL, keys.SNAPSHOT)
        for status in (301, 307, 400, 403, 412, 429, 500, 502, 503, 504)
        for _, phrase, headers in [bucket_response(key, None)]
    ]
    for answer, response in zip(answers, origin_responses(tmp_path, answers), strict=True):
        assert (response["status"], response["body"]) == ("503", UNAVAILABLE), answer
        values = shown_headers(response)
        del values["transfer-encoding"]
        assert values == responses.error_headers(503, PLAIN) | responses.COMMON, answer


def test_the_page_of_a_failure_says_when_to_try_again(tmp_path: Path) -> None:
    status, phrase, headers = bucket_response(keys.error(503), b"{}")
    shown = origin_response(tmp_path, status, phrase, headers, uri=keys.error(503))
    assert shown["headers"]["retry-after"][0]["value"] == "10"
    assert "retry-after" not in origin_response(tmp_path, status, phrase, headers, uri=keys.error(400))["headers"]


@pytest.mark.parametrize(("status", "phrase"), [(304, "Not Modified"), (416, "Range"), (206, "Partial Content")])
def test_other_responses_of_the_bucket_pass(status: int, phrase: str, tmp_path: Path) -> None:
    headers = {"ETag": '"1"', "x-amz-delete-marker": "false", "Via": "1.1 x", "x-amz-id-2": "x"}
    response = origin_response(tmp_path, status, phrase, headers, uri=PAGE)
    assert (response["status"], response["statusDescription"], "body" in response) == (str(status), phrase, False)
    assert response["headers"].keys() == {"etag", "via", *responses.COMMON}


def test_files_to_take_away_lie_under_the_names_that_readers_use(demo_output: Path, tmp_path: Path) -> None:
    config = IN_BUCKET.model_copy(update={"dumps": Dumps(parquet=True), "base_url": "https://api.example.com/a"})
    edge_ = distribution(config, demo_output, tmp_path)
    root = edge_cloudfront.function_values(config)["root"]
    for program in ("njs", "node"):
        found = edge_.viewer_requests([asking("x=1", f"/a/{key}") for key in ALL_FILES], program, "raw")
        assert [one["uri"] for one in found] == [root + key for key in ALL_FILES]
    elsewhere = edge_.viewer_requests([asking(path=f"/{key}") for key in ALL_FILES], "njs", "raw")
    assert all("statusCode" in one for one in elsewhere)
