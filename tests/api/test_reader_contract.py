"""Every kind of change that would break a reader's program is found, and no other."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest

from generator.api import contract
from generator.api.changelog import ChangeKind, ChangelogEntry
from generator.config.settings import Config
from generator.site.families import openapi
from tests.api.reader_contract import Break, breaks, complaints, promises

DOCUMENT: Final = openapi(Config(variant="extended"))
GONE: Final = object()
SCHEMAS: Final = ("components", "schemas")
ITEM: Final = (*SCHEMAS, "PublicMarketListItem", "properties")
LISTS: Final = ("paths", "/v1/public/markets", "get")
LIMIT, CATEGORY, NEXT = ((*LISTS, "parameters", number) for number in (2, 4, 6))
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


def found(*edits: Edit) -> list[str]:
    """What would break by these edits."""
    return [*map(str, breaks(promises(DOCUMENT), promises(edited(*edits))))]


def parameter(*, required: bool) -> dict[str, Any]:
    return {"name": "key", "in": "query", "required": required, "schema": {"type": "string"}}


#: Where the document is edited, the new value, and all that would break.
BREAKING: Final[list[tuple[Path, Any, list[str]]]] = [
    # answers
    ((*ITEM, "volume"), GONE, ["PublicMarketListItem.volume: was removed"]),
    ((*ITEM, "volume", "type"), "string", ["PublicMarketListItem.volume: type changed from number to string"]),
    ((*SCHEMAS, "ErrorResponse", "required"), [], ["ErrorResponse.error: may be absent"]),
    (
        (*SCHEMAS, "MarketStatus", "enum"),
        [*contract.MARKET_STATUSES, "paused"],
        [f"PublicMarket{name}.status: has new values: paused" for name in ("DetailMarket", "ListItem")],
    ),
    (
        (*SCHEMAS, "BuildRecord", "properties", "host"),
        {"type": "string"},
        ["BuildRecord.host: was added to an object that has no other properties"],
    ),
    ((*LISTS, "responses", "200", "headers", "X-As-Of"), GONE, ["listMarkets.200.X-As-Of: was removed"]),
    ((*LISTS, "responses", "410"), {"$ref": "#/components/responses/NotFound"}, ["listMarkets.410: is a new status"]),
    # requests
    (("paths", "/v1/prices.json"), GONE, ["getPrices: was removed"]),
    (NEXT, parameter(required=True), ["listMarkets.key: is a new parameter that must be given"]),
    ((*LIMIT, "required"), True, ["listMarkets.limit: must be given"]),
    ((*SCHEMAS, "Sort", "enum"), contract.SORTS[:-1], ["listMarkets.sort: no longer takes ended"]),
    ((*LIMIT, "schema", "maximum"), 50, ["listMarkets.limit: maximum was lowered from 100 to 50"]),
    ((*LIMIT, "schema", "default"), 10, ["listMarkets.limit: default changed from 20 to 10"]),
]
#: Edits that no program notices.
HARMLESS: Final[list[Edit]] = [
    ((*ITEM, "host"), {"type": "string"}),
    (("paths", "/v1/new"), {"get": {**DOCUMENT["paths"]["/v1/"]["get"], "operationId": "getNew"}}),
    ((*SCHEMAS, "MarketStatus", "enum"), contract.MARKET_STATUSES[:-1]),
    ((*SCHEMAS, "Sort", "enum"), [*contract.SORTS, "random"]),
    ((*LIMIT, "schema", "minimum"), GONE),
]


@pytest.mark.parametrize(("path", "value", "expected"), BREAKING)
def test_what_would_break_programs_is_found(path: Path, value: Any, expected: list[str]) -> None:
    assert found((path, value)) == expected


@pytest.mark.parametrize("edit", HARMLESS)
def test_what_programs_do_not_notice_is_not_found(edit: Edit) -> None:
    assert promises(edited(edit)) != promises(DOCUMENT) or edit[0][-1] == "description"
    assert found(edit) == []


# ── what the changelog must say ───────────────────────────────────────────────────────────────────────────────────

BREAK: Final = Break("getPrices", "was removed")


def entry(kind: ChangeKind, day: str, text: str = "It is gone.", effective: str | None = None) -> ChangelogEntry:
    return ChangelogEntry(
        date=day, generator="1.0.0", kind=kind, where=["getBuild", "getPrices"], text=text, effective=effective
    )


ANNOUNCED: Final = entry("announced", "2027-01-01", effective="2027-04-01")


@pytest.mark.parametrize(
    ("entries", "accepted"),
    [
        ([entry("removed", "2027-04-01"), ANNOUNCED], 1),
        ([entry("changed", "2027-01-02", "Without notice: it showed too much.")], 0),
        # An announcement waits for its day, whatever else changes before.
        ([entry("removed", "2027-05-01"), entry("changed", "2027-03-01"), ANNOUNCED], 2),
    ],
)
def test_a_change_that_was_announced_or_that_could_not_wait_is_accepted_if_it_is_named(
    entries: list[ChangelogEntry], accepted: int
) -> None:
    assert complaints([BREAK], entries, accepted) == []


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
        "no entry", "announced only", "not announced", "too early", "announced with the change itself",
        "an entry of an earlier change", "announced for another",
    ],
)  # fmt: skip
def test_any_other_is_refused_with_what_to_write_and_where(entries: list[ChangelogEntry], accepted: int) -> None:
    other = Break("getLlmsText", "was removed")
    sentence, same_of_other = complaints([BREAK, other], entries, accepted)
    assert sentence == (
        "getPrices: was removed. Put an entry that names getPrices first in generator/api/changelog.json. It needs an "
        "earlier one, announced 90 days ahead, whose `effective` has come; only if it mends a harm may its text begin "
        "with 'Without notice:' instead"
    )
    assert same_of_other == sentence.replace("getPrices", "getLlmsText")
