"""The wire schema reads and writes its resources exactly; test_changelog.py holds its fields, bounds and words."""

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from generator.api import contract
from tests.support.sites.rows import fill_id, market_id

TIME = "2026-01-31T12:00:00.000Z"
SIGNAL: dict[str, Any] = {
    "id": market_id(1),
    "question": "Question?", "prob": 0.5, "volume": 1.0, "closeTime": TIME, "createdAt": TIME,
    "lastActivityAt": TIME, "traderCount": 3, "fills24h": 1,
}  # fmt: skip
ITEM = SIGNAL | {"status": "open", "resolution": None, "resolvedAt": None, "acceptingBets": True}
FX = {
    "title": "EUR/USD weekly", "instrument": "EURUSD", "source": "ECB reference rates", "weekStart": "2026-01-26",
    "weekEnd": "2026-01-30", "thresholdValue": 1.08, "direction": "gte",
}  # fmt: skip
MARKET = ITEM | {"description": None, "poolYes": 1.0, "poolNo": 1.0, "tradingPauseReason": None, "fxFamilyMember": FX}
LEVEL = {"price": 0.5, "amount": 1.0}
BOOK = {"bids": [LEVEL], "asks": [LEVEL]}
FILL = {"id": fill_id(1), "amount": 1.0, "shares": 2.0, "price": 0.5, "timestamp": TIME}
POINT = {"timestamp": TIME, "prob": 0.5}

#: Every resource with valid content that has all its fields.
RESOURCES: dict[type[BaseModel], dict[str, Any]] = {
    contract.PublicMarketListItem: ITEM,
    contract.FxFamilyMember: FX,
    contract.OrderBookLevel: LEVEL,
    contract.PublicRecentFill: FILL,
    contract.ProbabilityPoint: POINT,
    contract.PublicMarketSignal: SIGNAL,
    contract.PublicMarketList: {"items": [ITEM], "nextCursor": "abc"},
    contract.PublicMarketSnapshot: {"freshMarkets": [SIGNAL], "closingSoonMarkets": []},
    contract.PublicMarketDetail: {"market": MARKET, "orderBook": BOOK, "recentFills": [FILL], "probHistory": [POINT]},
    contract.ErrorResponse: {"error": "bad", "details": [{"path": ["limit"], "message": "too large"}]},
}
resources = pytest.mark.parametrize("model", RESOURCES, ids=lambda model: str(model.__name__))


def accepts(model: type[BaseModel], content: object) -> bool:
    try:
        model.model_validate_json(json.dumps(content))
    except ValidationError:
        return False
    return True


@resources
def test_a_resource_is_read_and_written_field_by_field(model: type[BaseModel]) -> None:
    content = RESOURCES[model]
    assert json.loads(contract.encode(model.model_validate_json(json.dumps(content)))) == content


@resources
def test_nothing_is_guessed_from_another_type(model: type[BaseModel]) -> None:
    content = RESOURCES[model]
    for name, value in content.items():
        if isinstance(value, int | float):
            assert not accepts(model, content | {name: "1"})
        assert not accepts(model, content | {name: {"surprise": 1}})


@pytest.mark.parametrize(
    ("model", "name", "good", "bad"),
    [
        (contract.FxFamilyMember, "weekStart", ["2024-02-29"], ["2026-02-29", "2026-01-26T00:00:00Z", None]),
        (contract.PublicMarketListItem, "id", [market_id(9)], ["9", "A0000000-0000-4000-8000-000000000000"]),
        (contract.PublicRecentFill, "id", [market_id(9)], ["9", market_id(9) + "\n"]),
        (
            contract.PublicMarketListItem,
            "closeTime",
            ["0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"],
            ["2026-02-30T00:00:00.000Z", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000+00:00", "2026-01-31"],
        ),
    ],
)
def test_ids_and_times_have_one_spelling_that_a_schema_cannot_tell(
    model: type[BaseModel], name: str, good: list[Any], bad: list[Any]
) -> None:
    content = RESOURCES[model]
    assert [value for value in good if not accepts(model, content | {name: value})] == []
    assert [value for value in bad if accepts(model, content | {name: value})] == []


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_number_is_beyond_json(number: str) -> None:
    text = json.dumps(ITEM).replace('"volume": 1.0', f'"volume": {number}')
    assert number in text
    with pytest.raises(ValidationError):
        contract.PublicMarketListItem.model_validate_json(text)


def test_error_bodies_that_do_not_depend_on_the_request() -> None:
    bodies = {status: contract.encode(body) for status, body in contract.FIXED_ERRORS.items()}
    assert bodies == {
        400: b'{"error":"invalid request","details":[{"path":["request"],'
        b'"message":"must be well-formed HTTP, with a path and query of at most 4000 characters, '
        b'and without a body or a range"}]}',
        404: b'{"error":"not found"}',
        405: b'{"error":"method not allowed"}',
        429: b'{"error":"too many requests"}',
        503: b'{"error":"temporarily unavailable"}',
    }


def test_published_bytes_are_compact_utf8_in_the_order_of_the_fields() -> None:
    point = contract.ProbabilityPoint(timestamp=TIME, prob=1.0)
    assert contract.encode(point) == b'{"timestamp":"2026-01-31T12:00:00.000Z","prob":1.0}'
    assert contract.encode({"é\u2028": ["☃", None, True]}) == '{"é\u2028":["☃",null,true]}'.encode()


def test_a_published_snapshot_can_be_read_whatever_questions_an_earlier_version_let_through() -> None:
    """A takedown must never fail for the text of another market."""
    given = {name: ITEM[name] for name in contract.PublicMarketSignal.model_json_schema()["properties"]}
    groups = {"freshMarkets": [given | {"question": "\x1b[2J" * 1_000}], "closingSoonMarkets": []}
    assert json.loads(contract.encode(contract.PublicMarketSnapshot.model_validate(groups))) == groups
