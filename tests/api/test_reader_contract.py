"""Every kind of change that would break a reader's program is found, and no other."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest

from generator.api.changelog import ChangeKind, ChangelogEntry
from generator.api.openapi import document as openapi
from generator.config.settings import Config
from tests.api.reader_contract import Break, breaks, complaints, promises

DOCUMENT: Final = openapi.document(Config(variant="extended"))
GONE: Final = object()
SCHEMAS: Final = ("components", "schemas")
ITEM: Final = (*SCHEMAS, "PublicMarketListItem", "properties")
LISTS: Final = ("paths", "/v1/public/markets", "get")
SORT, LIMIT, CURSOR, CATEGORY, Q = ((*LISTS, "parameters", number) for number in range(1, 6))
STATUSES: Final = ("open", "closed", "resolved", "cancelled")
SORTS: Final = ("popular", "activity", "volume", "new", "ended")
Path = Sequence[str | int]
Edit = tuple[Path, Any]


def edited(*edits: Edit) -> dict[str, Any]:
    """The document with other values at these paths, or without them."""
    made: dict[str, Any] = json.loads(json.dumps(DOCUMENT))
    for (*steps, last), value in edits:
        part: Any = made
        for step in steps:
            part = part[step]
        if value is GONE:
            del part[last]
        elif isinstance(part, list) and last == len(part):
            part.append(value)
        else:
            part[last] = value
    return made


def found(*edits: Edit) -> dict[str, str]:
    """The breaks of an edit, by place."""
    made = breaks(promises(DOCUMENT), promises(edited(*edits)))
    assert len({one.where for one in made}) == len(made)
    return dict(made)


def parameter(name: str, *, required: bool) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": {"type": "string"}}


def without(schema: str, name: str) -> Edit:
    """The property is not required any more."""
    required = DOCUMENT["components"]["schemas"][schema]["required"]
    return (*SCHEMAS, schema, "required"), [key for key in required if key != name]


OF_ANSWERS: Final = {
    "a property is removed": (((*ITEM, "volume"), GONE), {"PublicMarketListItem.volume": "was removed"}),
    "a type is another": (
        ((*ITEM, "volume", "type"), "string"),
        {"PublicMarketListItem.volume": "type changed from number to string"},
    ),
    "a property may be absent": (
        without("PublicMarketListItem", "volume"),
        {"PublicMarketListItem.volume": "may be absent"},
    ),
    "an enumeration has a new value": (
        ((*SCHEMAS, "MarketStatus", "enum"), [*STATUSES, "paused"]),
        {
            "PublicMarketListItem.status": "has new values: paused",
            "PublicMarketDetailMarket.status": "has new values: paused",
        },
    ),
    "a text may be longer": (
        ((*ITEM, "question", "maxLength"), 3000),
        {"PublicMarketListItem.question": "maxLength changed from 2000 to 3000"},
    ),
    "an array has other items": (
        ((*SCHEMAS, "PublicMarketDetail", "properties", "recentFills", "items", "$ref"), "#/components/schemas/Step"),
        {
            "PublicMarketDetail.recentFills": "items changed from {'$ref': '#/components/schemas/PublicRecentFill'} "
            "to {'$ref': '#/components/schemas/Step'}"
        },
    ),
    "a closed object has a new property": (
        ((*SCHEMAS, "BuildRecord", "properties", "host"), {"type": "string"}),
        {"BuildRecord.host": "was added to an object that has no other properties"},
    ),
    "a header is removed": (
        ((*LISTS, "responses", "200", "headers", "X-As-Of"), GONE),
        {"listMarkets.200.X-As-Of": "was removed"},
    ),
    "a status is added": (
        ((*LISTS, "responses", "410"), {"$ref": "#/components/responses/NotFound"}),
        {"listMarkets.410": "is a new status"},
    ),
}
OF_REQUESTS: Final = {
    "an operation is removed": ((("paths", "/v1/prices.json"), GONE), {"getPrices": "was removed"}),
    "a parameter is removed": ((CATEGORY, GONE), {"listMarkets.category": "was removed"}),
    "a parameter is new and must be given": (
        ((*LISTS, "parameters", 6), parameter("key", required=True)),
        {"listMarkets.key": "is a new parameter that must be given"},
    ),
    "a parameter must be given": (((*LIMIT, "required"), True), {"listMarkets.limit": "must be given"}),
    "a parameter takes a value less": (
        ((*SCHEMAS, "Sort", "enum"), SORTS[:-1]),
        {"listMarkets.sort": "no longer takes ended"},
    ),
    "a maximum is lowered": (
        ((*LIMIT, "schema", "maximum"), 50),
        {"listMarkets.limit": "maximum was lowered from 100 to 50"},
    ),
    "a minimum is raised": (
        ((*LIMIT, "schema", "minimum"), 10),
        {"listMarkets.limit": "minimum was raised from 1 to 10"},
    ),
    "a default is another": (
        ((*LIMIT, "schema", "default"), 10),
        {"listMarkets.limit": "default changed from 20 to 10"},
    ),
}
HARMLESS: Final = {
    "an open object has a new property": ((*ITEM, "host"), {"type": "string"}),
    "a path is new": (("paths", "/v1/new"), {"get": {**DOCUMENT["paths"]["/v1/"]["get"], "operationId": "getNew"}}),
    "a description is another": ((*ITEM, "volume", "description"), "Another."),
    "a property is always there": ((*SCHEMAS, "ErrorResponse", "required"), ["error", "details"]),
    "an answer has a value less": ((*SCHEMAS, "MarketStatus", "enum"), STATUSES[:-1]),
    "a parameter takes a value more": ((*SCHEMAS, "Sort", "enum"), [*SORTS, "random"]),
    "a parameter is new": ((*LISTS, "parameters", 6), parameter("key", required=False)),
    "a minimum is given up": ((*LIMIT, "schema", "minimum"), GONE),
}


@pytest.mark.parametrize(
    ("edit", "expected"), [*OF_ANSWERS.values(), *OF_REQUESTS.values()], ids=[*OF_ANSWERS, *OF_REQUESTS]
)
def test_what_would_break_programs_is_found(edit: Edit, expected: dict[str, str]) -> None:
    assert found(edit) == expected


@pytest.mark.parametrize("edit", HARMLESS.values(), ids=HARMLESS)
def test_what_programs_do_not_notice_is_not_found(edit: Edit) -> None:
    assert promises(edited(edit)) != promises(DOCUMENT) or edit[0][-1] in ("description", "examples", "servers")
    assert found(edit) == {}


def test_another_path_is_found_under_the_name_of_its_operation() -> None:
    prices = DOCUMENT["paths"]["/v1/prices.json"]
    moved = found((("paths", "/v1/prices.json"), GONE), (("paths", "/v1/all-prices.json"), prices))
    assert moved == {"getPrices": "request changed from GET /v1/prices.json to GET /v1/all-prices.json"}


# ── what the changelog must say ───────────────────────────────────────────────────────────────────────────────────

BREAK: Final = Break("getPrices", "was removed")


def entry(kind: ChangeKind, day: str, text: str = "It is gone.", effective: str | None = None) -> ChangelogEntry:
    return ChangelogEntry(
        date=day, generator="1.0.0", kind=kind, where=["getBuild", "getPrices"], text=text, effective=effective
    )


ANNOUNCED: Final = entry("announced", "2027-01-01", effective="2027-04-01")


@pytest.mark.parametrize(
    "entries",
    [
        [entry("removed", "2027-04-01"), ANNOUNCED],
        [entry("changed", "2027-01-02", "Without notice: it showed too much.")],
    ],
    ids=["announced in time", "mends a harm"],
)
def test_a_change_that_was_announced_or_that_could_not_wait_is_accepted_if_it_is_named(
    entries: list[ChangelogEntry],
) -> None:
    assert complaints([BREAK], entries, len(entries) - 1) == []


def test_an_announcement_waits_for_its_day_whatever_else_changes_before() -> None:
    entries = [entry("removed", "2027-05-01"), entry("changed", "2027-03-01"), ANNOUNCED]
    assert complaints([BREAK], entries, 2) == []


@pytest.mark.parametrize(
    ("entries", "accepted"),
    [
        ([], 0),
        ([ANNOUNCED], 0),
        ([entry("removed", "2027-04-01")], 0),
        ([entry("removed", "2027-03-31"), ANNOUNCED], 1),
        ([entry("removed", "2027-04-01"), ANNOUNCED], 0),
        ([entry("removed", "2027-04-01"), ANNOUNCED], 2),
        ([entry("removed", "2028-04-01"), entry("changed", "2027-04-01"), ANNOUNCED], 2),
    ],
    ids=[
        "no entry",
        "announced only",
        "not announced",
        "too early",
        "announced with the change itself",
        "an entry of an earlier change",
        "announced for another",
    ],
)
def test_any_other_is_refused_with_what_to_write_and_where(entries: list[ChangelogEntry], accepted: int) -> None:
    other = Break("getLlmsText", "was removed")
    sentence, same_of_other = complaints([BREAK, other], entries, accepted)
    assert sentence == (
        "getPrices: was removed. Put an entry that names getPrices first in generator/api/changelog.py. It needs an "
        "earlier one, announced 90 days ahead, whose `effective` has come; only if it mends a harm may its text begin "
        "with 'Without notice:' instead"
    )
    assert same_of_other == sentence.replace("getPrices", "getLlmsText")
