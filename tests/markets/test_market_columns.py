"""Markets validated column by column are those of single rows, and so is what is wrong with them."""

import tracemalloc
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from generator.api import contract
from generator.markets import faults, market_columns, row_validation
from generator.markets.catalog import Market
from generator.markets.market_columns import Given
from generator.markets.row_validation import ExtendedFields
from tests.markets.test_batch_validation import IDS, NUMBERS, PLAIN_TIMES, TIMES
from tests.support.builds import NOW
from tests.support.rows import FX_MEMBER, market_id, market_row

TEXTS: Final = st.sampled_from(["", " ", "Rain?", "a\nb", "東京", "\ud800", None, 7, b"x", ["x"]])
COLUMNS: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "id": IDS,
    "question": TEXTS,
    "description": TEXTS,
    "status": st.sampled_from([*contract.MARKET_STATUSES, "OPEN", None, 1, ["open"]]),
    "prob": NUMBERS,
    "volume": NUMBERS,
    "pool_yes": NUMBERS,
    "pool_no": NUMBERS,
    "close_time": TIMES | PLAIN_TIMES,
    "resolution": st.sampled_from([*contract.RESOLUTIONS, "yes", None, 0, {}]),
    "created_at": TIMES | PLAIN_TIMES,
    "resolved_at": TIMES | PLAIN_TIMES,
    "last_activity_at": TIMES | PLAIN_TIMES,
    "trader_count": NUMBERS | st.integers(0, 9),
    "trading_pause_reason": TEXTS,
    "creation_source": TEXTS,
    "sponsor": TEXTS,
}
EXTENDED: Final = st.none() | st.builds(
    ExtendedFields, st.none() | st.just("a-slug"), st.lists(st.sampled_from(["Crypto", "Élection"]), unique=True)
)
FX: Final = st.none() | st.just(FX_MEMBER) | st.just({**FX_MEMBER, "direction": "up"})


@st.composite
def rows(draw: st.DrawFn) -> Given:
    """A valid row, but for a few of its columns."""
    chosen = draw(st.lists(st.sampled_from([*COLUMNS]), max_size=3, unique=True))
    row = market_row(draw(st.integers(1, 9)), **{name: draw(COLUMNS[name]) for name in chosen})
    return Given(row, draw(FX), draw(st.integers(0, 5)), draw(EXTENDED))


def shown(result: contract.PublicMarketDetailMarket | ValidationError) -> object:
    if isinstance(result, ValidationError):
        return faults.of(result)
    return contract.encode(result), [*vars(result)], repr(result.fx_family_member)


def by_row(given: Given) -> contract.PublicMarketDetailMarket | ValidationError:
    try:
        return row_validation.market(
            given.row, fx=given.fx, fills24h=given.fills24h, as_of=NOW, extended=given.extended
        )
    except ValidationError as error:
        return error


@settings(deadline=None, max_examples=150)
@given(st.lists(rows(), max_size=3))
def test_markets_and_faults_are_those_of_single_rows(found: list[Given]) -> None:
    made = market_columns.of_rows(found, NOW)
    assert [*map(shown, made)] == [shown(by_row(given)) for given in found]
    for market in made:
        if not isinstance(market, ValidationError):
            body = contract.encode(contract.PublicMarketListItem.model_validate(vars(market)))
            kept = Market.of(market)
            assert (kept.body, contract.encode(kept.item)) == (body, body)
            assert kept.item == contract.PublicMarketListItem.model_validate_json(body)


@pytest.mark.parametrize("extended", [None, ExtendedFields("a-slug", ["Crypto"])])
def test_what_databases_usually_hold_is_validated_at_once(
    extended: ExtendedFields | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual: list[dict[str, Any]] = [
        {},
        {"description": "Rules", "trading_pause_reason": "", "sponsor": "x", "trader_count": 3.0, "volume": 7},
        {"status": "open", "resolution": "YES", "resolved_at": "not a time"},
        {"status": "resolved", "resolution": "NO", "resolved_at": "2026-01-30 00:00:00.000000"},
    ]
    found = [Given(market_row(number, **columns), None, 0, extended) for number, columns in enumerate(usual)]
    found.append(Given(market_row(9), FX_MEMBER, 2, extended))
    expected = [shown(by_row(given)) for given in found]
    monkeypatch.setattr(row_validation, "market", None)
    assert [*map(shown, market_columns.of_rows(found, NOW))] == expected


def test_a_bad_row_is_the_only_one_refused_and_slows_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Mapping[str, Any]]()
    by_itself = row_validation.market

    def market(row: Mapping[str, Any], **given: Any) -> row_validation.MarketRow:
        asked.append(row)
        return by_itself(row, **given)

    monkeypatch.setattr(row_validation, "market", market)
    found = [Given(market_row(number, prob=2 if number == 80 else 0.5), None, 0, None) for number in range(200)]
    made = market_columns.of_rows(found, NOW)
    assert [number for number, result in enumerate(made) if isinstance(result, ValidationError)] == [80]
    assert [contract.encode(result)[7:15] for result in made if not isinstance(result, ValidationError)] == [
        f"{number:08x}".encode() for number in range(200) if number != 80
    ]
    assert len(asked) <= 25


def test_a_batch_of_long_descriptions_is_not_copied_as_a_whole() -> None:
    found = [Given(market_row(number, description=f"{number}" * 100_000), None, 0, None) for number in range(10, 60)]
    tracemalloc.start()
    market_columns.of_rows(found, NOW)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000 < sum(len(given.row["description"]) for given in found)


@settings(deadline=None, max_examples=100)
@given(rows())
def test_a_detail_is_what_validating_all_of_it_again_makes(given_row: Given) -> None:
    row = given_row.row
    item = contract.PublicMarketListItem.model_validate(vars(by_row(Given(market_row(), None, 0, None))))
    columns = {name: row[name] for name in (*row_validation.DETAIL_COLUMNS, *row_validation.EXTENDED_COLUMNS)}
    columns["id"] = market_id(1)
    try:
        expected: object = shown(
            row_validation.MarketRow.model_validate({**vars(item), **columns, "fx_family_member": None})
        )
    except ValidationError as error:
        expected = faults.of(error)
    try:
        made: object = shown(row_validation.with_detail(item, None, columns))
    except ValidationError as error:
        made = faults.of(error)
    assert made == expected
