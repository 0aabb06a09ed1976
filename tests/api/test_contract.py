"""The wire schema matches the specification of the read API, field by field."""

import json
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from generator.api import contract
from tests.support.sites.rows import FX_MEMBER, fill_id, market_id

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

#: Every resource with valid content that has all its fields, and whether it is closed to additional properties.
RESOURCES: dict[type[BaseModel], tuple[dict[str, Any], bool]] = {
    contract.PublicMarketListItem: (ITEM, False),
    contract.PublicMarketDetailMarket: (MARKET, False),
    contract.FxFamilyMember: (FX, True),
    contract.OrderBook: (BOOK, True),
    contract.OrderBookLevel: (LEVEL, True),
    contract.PublicRecentFill: (FILL, True),
    contract.ProbabilityPoint: (POINT, True),
    contract.PublicMarketSignal: (SIGNAL, True),
    contract.PublicMarketList: ({"items": [ITEM], "nextCursor": "abc"}, True),
    contract.PublicMarketSnapshot: ({"freshMarkets": [SIGNAL], "closingSoonMarkets": []}, True),
    contract.PublicMarketDetail: (
        {"market": MARKET, "orderBook": BOOK, "recentFills": [FILL], "probHistory": [POINT]},
        True,
    ),
    contract.ErrorResponse: ({"error": "bad", "details": [{"path": ["limit"], "message": "too large"}]}, True),
    contract.ErrorDetail: ({"path": ["limit"], "message": "too large"}, True),
}
resources = pytest.mark.parametrize("model", RESOURCES, ids=lambda model: str(model.__name__))


def read(model: type[BaseModel], content: object) -> BaseModel:
    return model.model_validate_json(json.dumps(content))


def accepts(model: type[BaseModel], content: object) -> bool:
    try:
        read(model, content)
    except ValidationError:
        return False
    return True


def test_the_enums_are_the_specifications() -> None:
    assert contract.MARKET_STATUSES == ("open", "closed", "resolved", "cancelled")
    assert contract.STATUS_FILTERS == ("open", "archive", "closed", "resolved", "cancelled", "all")
    assert contract.SORTS == ("popular", "activity", "volume", "new", "ended")
    assert get_args(contract.Resolution) == ("YES", "NO", "CANCEL")
    assert get_args(contract.Direction) == ("gte", "lte")


def test_the_limits_are_the_specifications() -> None:
    assert (contract.LIMIT_MIN, contract.LIMIT_MAX, contract.LIMIT_DEFAULT) == (1, 100, 20)
    assert (contract.PRICE_MIN, contract.PRICE_MAX) == (0.01, 0.99)
    assert contract.API_VERSION == "v1"


def test_archive_is_what_is_closed_resolved_or_cancelled() -> None:
    assert contract.STATES_OF_FILTER["archive"] == ("closed", "resolved", "cancelled")
    assert contract.STATES_OF_FILTER["all"] == contract.MARKET_STATUSES
    assert all(contract.STATES_OF_FILTER[status] == (status,) for status in contract.MARKET_STATUSES)
    assert contract.DEFAULT_STATUS == "open"


def test_open_and_all_are_sorted_by_popularity_and_the_archive_by_end() -> None:
    assert contract.DEFAULT_SORT == {
        "open": "popular", "archive": "ended", "closed": "ended", "resolved": "ended", "cancelled": "ended",
        "all": "popular",
    }  # fmt: skip


@resources
def test_a_resource_is_read_and_written_field_by_field(model: type[BaseModel]) -> None:
    content, _ = RESOURCES[model]
    assert json.loads(contract.encode(read(model, content))) == content


@resources
def test_every_field_is_required(model: type[BaseModel]) -> None:
    content, _ = RESOURCES[model]
    optional = {name for name in content if accepts(model, {key: content[key] for key in content if key != name})}
    assert optional == ({"details"} if model is contract.ErrorResponse else set())


@resources
def test_a_closed_resource_has_no_other_properties(model: type[BaseModel]) -> None:
    content, is_closed = RESOURCES[model]
    assert accepts(model, content | {"surprise": 1}) is not is_closed


@resources
def test_nothing_is_guessed_from_another_type(model: type[BaseModel]) -> None:
    content, _ = RESOURCES[model]
    for name, value in content.items():
        if isinstance(value, int | float):
            assert not accepts(model, content | {name: "1"})
        assert not accepts(model, content | {name: {"surprise": 1}})


@pytest.mark.parametrize(
    ("model", "name", "good", "bad"),
    [
        (contract.PublicMarketListItem, "prob", [0, 1, 0.5], [-0.001, 1.001]),
        (contract.PublicMarketListItem, "volume", [0, 1e15], [-0.001]),
        (contract.PublicMarketListItem, "traderCount", [0, 7], [-1, 7.5]),
        (contract.PublicMarketListItem, "fills24h", [0, 7], [-1, 7.5]),
        (contract.PublicMarketDetailMarket, "poolYes", [0, 7.5], [-1]),
        (contract.PublicMarketDetailMarket, "poolNo", [0, 7.5], [-1]),
        (contract.PublicMarketSignal, "prob", [0, 1], [-0.001, 1.001]),
        (contract.OrderBookLevel, "price", [0.01, 0.99], [0.009, 0.991, None]),
        (contract.OrderBookLevel, "amount", [0, 1], [-1]),
        (contract.PublicRecentFill, "price", [0.01, 0.99, None], [0.009, 0.991]),
        (contract.PublicRecentFill, "amount", [0], [-1]),
        (contract.PublicRecentFill, "shares", [0], [-1]),
        (contract.ProbabilityPoint, "prob", [0, 1], [-0.001, 1.001, None]),
        (contract.FxFamilyMember, "thresholdValue", [-1, 0, 1e9], [None]),
        (contract.FxFamilyMember, "direction", ["gte", "lte"], ["eq", None]),
        (contract.FxFamilyMember, "weekStart", ["2024-02-29"], ["2026-02-29", "2026-01-26T00:00:00Z", None]),
        (contract.PublicMarketListItem, "status", [*contract.MARKET_STATUSES], ["archive", "all", "OPEN"]),
        (contract.PublicMarketListItem, "resolution", ["YES", "NO", "CANCEL", None], ["yes", "MKT"]),
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
def test_a_value_is_within_the_specifications_bounds(
    model: type[BaseModel], name: str, good: list[Any], bad: list[Any]
) -> None:
    content, _ = RESOURCES[model]
    assert [value for value in good if not accepts(model, content | {name: value})] == []
    assert [value for value in bad if accepts(model, content | {name: value})] == []


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_number_is_beyond_json(number: str) -> None:
    text = json.dumps(ITEM).replace('"volume": 1.0', f'"volume": {number}')
    assert number in text
    with pytest.raises(ValidationError):
        contract.PublicMarketListItem.model_validate_json(text)


def test_an_fx_member_is_built_from_database_names_too() -> None:
    assert json.loads(contract.encode(contract.FxFamilyMember.model_validate(FX_MEMBER))) == FX


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
