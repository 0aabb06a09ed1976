"""Database values are converted to wire values, or refused with a reason."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from generator.api import contract, forms
from generator.markets import detail, faults, row_validation
from tests.support.sites.builds import NOW
from tests.support.sites.rows import (
    FX_MEMBER,
    fill_id,
    market_id,
    market_row,
    public_market,
)

WIRE_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")


def refusal(columns: dict[str, Any] | None = None, **market: Any) -> str:
    """Why a row of `markets` is quarantined."""
    with pytest.raises(ValidationError) as caught:
        row_validation.market(market_row(**(columns or {}) | market), fx=None, fills24h=0, as_of=NOW)
    return "; ".join(fault.reason() for fault in faults.of(caught.value))


def detail_row(row: dict[str, Any]) -> dict[str, Any]:
    """What of the row is read again for the detail."""
    return {name: row[name] for name in detail.COLUMNS}


# ── times ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("2026-01-31 12:00:00.000000", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31t12:00:00z", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31 12:00", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31 12:00:00+00", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31 12:00:00.5+00", "2026-01-31T12:00:00.500Z"),
        ("0001-01-01 00:00:00.000000", "0001-01-01T00:00:00.000Z"),
        ("0001-01-01T00:00:00-01:00", "0001-01-01T01:00:00.000Z"),
        ("9999-12-31 23:59:59.9999999", "9999-12-31T23:59:59.999Z"),
        ("9999-12-31T23:59:59.999+23:59", "9999-12-31T00:00:59.999Z"),
    ],
)
def test_a_time_is_shown_in_utc(stored: str, shown: str) -> None:
    assert row_validation.timestamp(stored) == shown


@pytest.mark.parametrize(
    "stored",
    [
        *("", "now", "infinity", "-infinity", "2026-01-31", "12:00:00", "20260131T120000Z", "2026-W05-6T12:00:00Z"),
        *("2026-02-30 12:00:00.000000", "2026-13-01 00:00:00", "2026-01-31 25:00:00", "2026-01-31 12:61:00"),
        *("2026-01-31 12:00:00,000000", "2026-01-31T12:00:00,5Z", "2026-01-31 24:00:00.000000", "2026-01-31T24:00:00Z"),
        *("2026-01-31 12:00:60", "2026-01-31T12:00:00 UTC", "2026-01-31 12:00:00.000000 BC", "31.01.2026 12:00"),
        *("10000-01-01 00:00:00", "0000-01-01 00:00:00", "2026-01-31T12:00:00+99:00", "\u0662026-01-31 12:00:00"),
        *("2026-01-31 12:00:0\u0660.000000", " 2026-01-31 12:00:00", "2026-01-31 12:00:00\n"),
        *("2026-01-31 12:00:00\0", "2026-01-31 12:00:00.00000\0"),
        *(None, 0, 1_769_860_800, 1.5, True, b"2026-01-31 12:00:00", datetime(2026, 1, 31, tzinfo=UTC)),
    ],
)
def test_what_is_no_time_is_refused(stored: Any) -> None:
    with pytest.raises(ValueError, match="not a time"):
        row_validation.timestamp(stored)


@pytest.mark.parametrize("stored", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_that_its_offset_takes_out_of_the_calendar_is_refused(stored: str) -> None:
    with pytest.raises(ValueError, match="not a time between the years 0001 and 9999"):
        row_validation.timestamp(stored)


@settings(deadline=None, max_examples=300)
@given(
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)),  # noqa: DTZ001 - the zone is drawn below
    st.none() | st.integers(-1439, 1439),
    st.sampled_from(" T"),
    st.sampled_from(["auto", "seconds", "milliseconds", "microseconds"]),
)
def test_every_iso_form_of_an_instant_is_shown_as_that_instant(
    local: datetime, offset: int | None, separator: str, precision: str
) -> None:
    moment = local if offset is None else local.replace(tzinfo=timezone(timedelta(minutes=offset)))
    stored = moment.isoformat(separator, precision)
    instant = datetime.fromisoformat(stored)
    instant = instant.replace(tzinfo=UTC) if offset is None else instant.astimezone(UTC)
    shown = row_validation.timestamp(stored)
    assert WIRE_TIME.fullmatch(shown)
    assert datetime.fromisoformat(shown) == instant.replace(microsecond=instant.microsecond // 1000 * 1000)


@settings(deadline=None, max_examples=300)
@given(st.text(st.sampled_from("0123456789-:.,TtZz+ W"), min_size=14, max_size=32) | st.text(max_size=40))
def test_whatever_is_shown_has_the_one_form(suffix: str) -> None:
    for stored in (suffix, f"2026-01-31 {suffix}", f"2026-01-31 12:00{suffix}", f"2026-01-31 12:00:00{suffix}"):
        try:
            shown = row_validation.timestamp(stored)
        except ValueError:
            continue
        assert WIRE_TIME.fullmatch(shown)


# ── ids, numbers, texts ───────────────────────────────────────────────────────────────────────────────────────────


def test_an_id_is_shown_in_lower_case() -> None:
    assert forms.uuid("ABCDEF12-3456-7890-ABCD-EF1234567890") == "abcdef12-3456-7890-abcd-ef1234567890"
    assert public_market(id="ABCDEF12-3456-7890-ABCD-EF1234567890").item.id == "abcdef12-3456-7890-abcd-ef1234567890"


@pytest.mark.parametrize(
    "stored",
    [
        *("", "1", "not-an-id", market_id(1)[:-1], market_id(1) + "0", f" {market_id(1)}", f"{market_id(1)}\n"),
        *(market_id(1).replace("-", ""), "{" + market_id(1) + "}", f"urn:uuid:{market_id(1)}", "g" + market_id(1)[1:]),
        *("\u0661" + market_id(1)[1:], None, 7, market_id(1).encode()),
    ],
)
def test_what_is_no_uuid_is_refused(stored: Any) -> None:
    with pytest.raises(ValueError, match="not a UUID"):
        forms.uuid(stored)


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (Decimal("-0"), 0.0),
        (-1e-9, 0.0), (-5e-324, 0.0), (-0.0, 0.0), (0, 0.0), (0.3, 0.3), (1, 1.0), (Decimal("0.25"), 0.25),
        (1.000000000000004, 1.0), (1 + 1e-9, 1.0),
    ],
)  # fmt: skip
def test_a_probability_a_hair_beyond_its_bound_is_set_to_it(stored: Any, shown: float) -> None:
    market = public_market(prob=stored)
    assert repr(market.item.prob) == repr(shown)
    assert json.loads(market.body)["prob"] == shown
    point = row_validation.PointRow.model_validate({"timestamp": NOW, "prob": stored})
    assert repr(point.prob) == repr(shown)


UNFIT: dict[str, tuple[Any, ...]] = {
    "prob": (-2e-9, 1 + 2e-9, 1.2, -1, float("nan"), float("inf"), float("-inf"), "0.5", None, True),
    "volume": (-0.01, -1e-9, float("nan"), float("inf"), 10**400, "1", None, True, b"1"),
    "pool_yes": (-0.01, None),
    "pool_no": (-0.01, None),
    "trader_count": (-1, 7.5, float("nan"), float("inf"), 10**400, Decimal("1e4400"), "7", None, True),
    **dict.fromkeys(("question", "status", "close_time", "created_at", "last_activity_at"), (None,)),
}


@pytest.mark.parametrize("column", UNFIT)
def test_what_the_contract_has_no_place_for_costs_the_row(column: str) -> None:
    for stored in UNFIT[column]:
        assert refusal({column: stored}).startswith(f"{column}: "), stored
        if column == "prob":
            with pytest.raises(ValidationError):
                row_validation.PointRow.model_validate({"timestamp": NOW, "prob": stored})


@pytest.mark.parametrize(("stored", "shown"), [(7, 7), (7.0, 7), (Decimal(7), 7), (2**60, 2**60), (0, 0)])
def test_a_count_is_a_whole_number_however_it_is_stored(stored: Any, shown: int) -> None:
    assert public_market(trader_count=stored).item.trader_count == shown
    assert f'"traderCount":{shown},'.encode() in public_market(trader_count=stored).body


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (0.01, 0.01), (0.99, 0.99), (0.5, 0.5), (Decimal("0.5"), 0.5), (0.9900000000000001, 0.99),
        (0.009999999999, 0.01), (0.35000000000000003, 0.35000000000000003),
        *((price, None) for price in (None, 0.0, 0.009999, 0.990001, 1, -3, 1e300)),
    ],
)  # fmt: skip
def test_a_fill_price_within_its_bounds_is_shown_and_any_other_withheld(stored: Any, shown: float | None) -> None:
    assert fill(price=stored).price == shown
    for unfit in (float("nan"), float("inf"), "0.5"):
        with pytest.raises(ValidationError):
            fill(price=unfit)


def fill(price: Any = 0.5) -> row_validation.FillRow:
    return row_validation.fill((market_id(1), fill_id(1), 1.0, 2.0, price, "2026-01-15 00:00:00"))


@pytest.mark.parametrize("text", ["", "☃ قبل", "a\u2028b", 'quote " \\ </script>', "\N{FAMILY}\u200d", "x" * 2_000])
def test_any_text_is_shown_as_it_is(text: str) -> None:
    assert json.loads(public_market(question=text).body)["question"] == text


# ── FX members ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("threshold", "shown"), [(Decimal("1.08"), 1.08), (-3, -3.0), (1e12, 1e12)])
def test_a_member_of_a_public_fx_family_shows_it(threshold: Any, shown: float) -> None:
    wire = row_validation.market(market_row(), fx={**FX_MEMBER, "threshold_value": threshold}, fills24h=0, as_of=NOW)
    assert json.loads(contract.encode(wire))["fxFamilyMember"] == {
        "title": "EUR/USD weekly", "instrument": "EURUSD", "source": "ECB reference rates",
        "weekStart": "2026-01-26", "weekEnd": "2026-01-30", "thresholdValue": shown, "direction": "gte",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("title", None), ("instrument", 7), ("source", "\udcff"), ("week_start", "2026-02-30"), ("week_end", None),
        ("week_end", "2026-01-30 00:00:00"), ("threshold_value", float("nan")), ("threshold_value", "1.08"),
        ("direction", "eq"), ("direction", None),
    ],
)  # fmt: skip
def test_a_broken_membership_costs_the_market(column: str, value: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        row_validation.market(market_row(), fx={**FX_MEMBER, column: value}, fills24h=0, as_of=NOW)
    assert {fault.column for fault in faults.of(caught.value)} == {f"fx_members.{column}"}


# ── derived values ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("columns", "accepts"),
    [
        ({}, True),
        ({"status": "closed"}, False),
        ({"status": "resolved"}, False),
        ({"status": "cancelled"}, False),
        ({"trading_pause_reason": "under review"}, False),
        ({"trading_pause_reason": ""}, True),
        ({"trading_pause_reason": " \t\n\u00a0"}, True),
        ({"close_time": "2026-01-31 12:00:00.000000"}, False),
        ({"close_time": "2026-01-31 12:00:00.000999"}, False),
        ({"close_time": "2026-01-31 12:00:00.001000"}, True),
        ({"close_time": "2026-01-31T13:00:00+01:00"}, False),
        ({"close_time": "2026-01-31T11:30:00-01:00"}, True),
        ({"close_time": "0001-01-01 00:00:00"}, False),
        ({"close_time": "9999-12-31 23:59:59"}, True),
    ],
)
def test_bets_are_accepted_while_open_not_closing_yet_and_not_paused(columns: dict[str, Any], accepts: bool) -> None:  # noqa: FBT001 - a table's column
    assert public_market(**columns).item.accepting_bets is accepts


@pytest.mark.parametrize(
    ("stored", "shown"),
    [(None, None), ("", None), ("  ", None), ("\n\u2003", None), ("under review", "under review"), (" x ", " x ")],
)
def test_a_blank_pause_reason_is_none_in_list_and_detail(stored: str | None, shown: str | None) -> None:
    row = market_row(trading_pause_reason=stored)
    wire = row_validation.market(row, fx=None, fills24h=0, as_of=NOW)
    shown_detail = detail.of_item(contract.PublicMarketListItem.model_validate(wire), None, detail_row(row))
    assert (wire.trading_pause_reason, shown_detail.trading_pause_reason) == (shown, shown)


@pytest.mark.parametrize("status", ["open", "closed"])
@pytest.mark.parametrize(
    "early",
    [
        {"resolution": "YES", "resolved_at": "2026-01-30 00:00:00.000000"},
        {"resolution": "NO"},
        {"resolved_at": "2027-01-30 00:00:00.000000"},
        {"resolution": "not a resolution", "resolved_at": "not a time"},
    ],
)
def test_an_outcome_before_its_time_is_in_neither_list_nor_detail(status: str, early: dict[str, Any]) -> None:
    row = market_row(status=status, **early)
    market = row_validation.market(row, fx=None, fills24h=0, as_of=NOW)
    assert (market.status, market.resolution, market.resolved_at) == (status, None, None)
    shown_detail = detail.of_item(contract.PublicMarketListItem.model_validate(market), None, detail_row(row))
    assert (shown_detail.resolution, shown_detail.resolved_at) == (None, None)
    assert row_validation.has_early_outcome(row)


@pytest.mark.parametrize("status", ["resolved", "cancelled"])
def test_a_settled_market_shows_its_outcome_and_when_it_was_settled(status: str) -> None:
    row = market_row(status=status, resolution="CANCEL", resolved_at="2026-01-30 00:00:00.000000")
    market = row_validation.market(row, fx=None, fills24h=0, as_of=NOW)
    assert (market.resolution, market.resolved_at) == ("CANCEL", "2026-01-30T00:00:00.000Z")
    assert not row_validation.has_early_outcome(row)
    assert not row_validation.has_early_outcome(market_row())
