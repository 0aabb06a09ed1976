"""Markets validated column by column are those of single rows, and so is what is wrong with them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from generator.api import contract
from generator.downloads import market_lines
from generator.markets import detail, faults, market_columns, row_validation
from generator.markets.fills import NO_FILLS, Window
from generator.markets.market import Market, SearchWords
from generator.markets.market_columns import Batch, Given
from generator.markets.row_validation import ExtendedFields
from tests.markets.test_batch_validation import IDS, NUMBERS, PLAIN_TIMES, TIMES
from tests.support.sites.builds import NOW
from tests.support.sites.rows import FX_MEMBER, market_id, market_row

TOO_LONG: Final = ["é" * 1_001, "🙂" * 2_000, "🙂" * 2_001, "\r" * 100_000, "\r" * 100_001]
TEXTS: Final = (
    st.text(max_size=5)
    | st.sampled_from(["", " ", "Rain?", '","', '\\",', "%b", "a\nb", "東京", "\ud800", None, 7, b"x", ["x"]])
    | st.sampled_from(
        ["a\tb\r\nc", "\x1b[2J", "\0", "\x1c", "\x7f", "\x85", "\u2028", "\u202e", "\xc2", "é" * 1_000, *TOO_LONG]
    )
)
COLUMNS: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "id": IDS,
    **dict.fromkeys(("question", "description", "trading_pause_reason", "creation_source", "sponsor"), TEXTS),
    **dict.fromkeys(("prob", "volume", "pool_yes", "pool_no"), NUMBERS),
    **dict.fromkeys(("close_time", "created_at", "resolved_at", "last_activity_at"), TIMES | PLAIN_TIMES),
    "status": st.sampled_from([*contract.MARKET_STATUSES, "OPEN", None, 1, ["open"]]),
    "resolution": st.sampled_from([*contract.RESOLUTIONS, "yes", None, 0, {}]),
    "trader_count": NUMBERS | st.integers(0, 9),
}
EXTENDED: Final = st.none() | st.builds(
    ExtendedFields, st.none() | st.just("a-slug"), st.lists(st.sampled_from(["Crypto", "Élection"]), unique=True)
)
WINDOWS: Final = [NO_FILLS, Window(5, "2026-01-31T12:00:00.000Z")]
VERSIONS: Final = st.sampled_from([None, "a version", "another"])
WORDS: Final = SearchWords(("title", "description"))
FX: Final = st.none() | st.sampled_from(
    [
        FX_MEMBER,
        *({**FX_MEMBER, **wrong} for wrong in ({"direction": "up"}, {"title": "\x9b"}, {"source": "x" * 1_001})),
    ]
)


@st.composite
def rows(draw: st.DrawFn) -> Given:
    """A valid row, but for a few of its columns."""
    chosen = draw(st.lists(st.sampled_from([*COLUMNS]), max_size=3, unique=True))
    row = market_row(draw(st.integers(1, 9)), **{name: draw(COLUMNS[name]) for name in chosen})
    return Given(row, draw(FX), draw(st.sampled_from(WINDOWS)), draw(EXTENDED), draw(VERSIONS))


class Watched(Batch):
    """Tells which rows are validated one by one."""

    asked: ClassVar = list[Given]()

    def rows(self) -> Iterator[Given]:
        found = [*super().rows()]
        self.asked.extend(found)
        return iter(found)


def batch(found: Sequence[Given]) -> Watched:
    """These rows by column."""
    Watched.asked.clear()
    rows, fx, windows, extended, versions = zip(*found, strict=True) if found else ((),) * 5
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return Watched(columns, fx, windows, extended, versions)


def of_rows(found: Sequence[Given]) -> list[Market | ValidationError]:
    return market_columns.of_rows(batch(found), NOW, WORDS)


def shown(result: Market | ValidationError) -> object:
    return faults.of(result) if isinstance(result, ValidationError) else result


def by_row(given: Given) -> contract.PublicMarketDetailMarket | ValidationError:
    try:
        return row_validation.market(
            given.row, fx=given.fx, fills24h=given.window.number, as_of=NOW, extended=given.extended
        )
    except ValidationError as error:
        return error


def made_of(given: Given) -> Market | ValidationError:
    market = by_row(given)
    if isinstance(market, ValidationError):
        return market
    return Market.of(
        market,
        has_early_outcome=row_validation.has_early_outcome(given.row),
        words=WORDS.of(market.question, market.description),
        version=given.version,
        until=given.window.until,
    )


@pytest.mark.campaign
@settings(deadline=None, max_examples=150)
@given(st.lists(rows(), max_size=3))
def test_markets_and_faults_are_those_of_single_rows(found: list[Given]) -> None:
    made = of_rows(found)
    assert [*map(shown, made)] == [shown(made_of(given)) for given in found]
    for market, given_row in zip(made, found, strict=True):
        if not isinstance(market, ValidationError):
            body = contract.encode(contract.PublicMarketListItem.model_validate(vars(by_row(given_row))))
            assert (market.body, contract.encode(market.item)) == (body, body)
            assert market.item == contract.PublicMarketListItem.model_validate_json(body)


@pytest.mark.parametrize("extended", [None, ExtendedFields("a-slug", ["Crypto"])])
def test_what_databases_usually_hold_is_validated_at_once(extended: ExtendedFields | None) -> None:
    usual: list[dict[str, Any]] = [
        {},
        {"description": "Rules", "trading_pause_reason": "", "sponsor": "x", "trader_count": 3.0, "volume": 7},
        {"status": "open", "resolution": "YES", "resolved_at": "not a time"},
        {"status": "resolved", "resolution": "NO", "resolved_at": "2026-01-30 00:00:00.000000"},
    ]
    found = [Given(market_row(number, **columns), None, NO_FILLS, extended) for number, columns in enumerate(usual)]
    found.append(Given(market_row(9), FX_MEMBER, WINDOWS[1], extended))
    expected = [shown(made_of(given)) for given in found]
    assert [*map(shown, of_rows(found))] == expected
    assert Watched.asked == []


@settings(deadline=None, max_examples=100)
@given(rows())
def test_a_detail_is_what_validating_all_of_it_again_makes(given_row: Given) -> None:
    def shown(market: contract.PublicMarketDetailMarket) -> object:
        return contract.encode(market), [*vars(market)], repr(market.fx_family_member)

    row = given_row.row
    item = contract.PublicMarketListItem.model_validate(vars(by_row(Given(market_row(), None, NO_FILLS, None))))
    columns = {name: row[name] for name in (*detail.COLUMNS, *row_validation.EXTENDED_COLUMNS)}
    columns["id"] = market_id(1)
    try:
        expected: object = shown(
            row_validation.MarketRow.model_validate({**vars(item), **columns, "fx_family_member": None})
        )
    except ValidationError as error:
        expected = faults.of(error)
    try:
        made: object = shown(detail.of_item(item, None, columns))
    except ValidationError as error:
        made = faults.of(error)
    assert made == expected


#: What a line has between a question and what lists do not show.
LIKE_A_LINE: Final = st.sampled_from([',"description":', '","description":null'])


@given(rows(), TEXTS | LIKE_A_LINE, TEXTS)
def test_a_line_of_a_dump_tells_of_a_market_what_its_row_told(given: Given, question: Any, description: Any) -> None:
    """Not what only builds ask: findings, windows and versions."""
    row = {**given.row, "question": question, "description": description}
    try:
        valid = row_validation.market(row, fx=None, fills24h=3, as_of=NOW, extended=given.extended)
    except ValidationError:
        return
    words = WORDS.of(valid.question, valid.description)
    unknown: dict[str, Any] = dict.fromkeys(("has_bidi_override", "hides_characters", "mixes_scripts"), False)
    expected = Market.of(valid, words=words)._replace(has_visible_question=True, **unknown)
    line = contract.encode(contract.PublicMarketDetailMarket.model_validate(valid))
    assert Market.of_item(market_lines.item_of(line), words) == expected
