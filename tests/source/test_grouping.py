"""Rows of many markets are converted together, with the result of converting and validating them one by one."""

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.errors import SourceError
from generator.markets import batch_validation, detail, fills, history
from generator.markets.batch_validation import RelationRows, Valid
from generator.markets.quarantine import Quarantine
from generator.source.grouping import RowsByMarket
from tests.markets.test_batch_validation import IDS, NUMBERS, PLAIN_TIMES, TIMES
from tests.support.campaigns import rounds
from tests.support.sites.rows import fill_id, market_id

NUMBER: Final = st.sampled_from([0.25, 0.5, 0.75])
#: Rows without their market's id: good ones, as in most batches, and odd ones of every kind.
GOOD: Final = {
    "orders": st.tuples(st.sampled_from(["bid", "ask"]), NUMBER, NUMBER),
    "fills": st.tuples(st.integers(0, 9).map(fill_id), NUMBER, NUMBER, NUMBER | st.none(), PLAIN_TIMES),
    "points": st.tuples(PLAIN_TIMES, NUMBER),
}
ODD: Final = {
    "orders": st.tuples(st.sampled_from(["bid", "ask", "buy", None]), NUMBERS, NUMBERS),
    "fills": st.tuples(IDS, NUMBERS, NUMBERS, NUMBERS, TIMES),
    "points": st.tuples(TIMES, NUMBERS),
}
#: A row for which all of its batch is validated one by one.
UNFIT: Final[dict[str, Callable[[int], tuple[Any, ...]]]] = {
    "orders": lambda number: (market_id(number), "unfit", 0.5, 0.5),
    "fills": lambda number: (market_id(number), fill_id(0), 0.5, 0.5, 0.5, "unfit"),
    "points": lambda number: (market_id(number), "unfit", 0.5),
}
MODULES: Final = {"orders": detail, "fills": fills, "points": history}


def made(relation: str, number: int, rows: RelationRows) -> tuple[str, list[Any]]:
    """What is made of the rows of a market, and which of them are quarantined and why."""
    quarantine, name = Quarantine(), market_id(number)
    if relation == "orders":
        shown: Any = detail.order_book(name, rows, quarantine)
    elif relation == "fills":
        shown = fills.recent(rows, 3, quarantine)
    else:
        shown = history.history(name, rows, 4, quarantine)
    return repr(shown), [row for row in quarantine if "unfit" not in row.reason]


def batched(rows: list[Any], sizes: list[int]) -> Iterator[list[Any]]:
    remaining = iter(rows)
    for size in cycle(sizes):
        if not (batch := list(islice(remaining, size))):
            return
        yield batch


@pytest.mark.campaign
@pytest.mark.parametrize("relation", GOOD)
@settings(deadline=None, max_examples=rounds(50, 400))
@given(data=st.data())
def test_any_mix_of_good_and_bad_rows_gives_what_validation_one_by_one_gives(
    relation: str, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from([GOOD[relation], GOOD[relation] | ODD[relation]]))
    markets = data.draw(st.lists(st.lists(kind, max_size=9), max_size=6))
    rows = [[(market_id(number), *row) for row in own] for number, own in enumerate(markets)]
    sizes = data.draw(st.lists(st.integers(1, 20), min_size=1, max_size=3))
    most = data.draw(st.sampled_from([4, batch_validation.BATCH]))  # of which markets may have more
    batches = batched([row for own in rows for row in own], sizes)
    groups = RowsByMarket(relation, batches, MODULES[relation].converted, most)
    found = [made(relation, number, groups.of(market_id(number))) for number in range(len(rows))]
    groups.finish()
    assert found == [made(relation, number, [*own, UNFIT[relation](number)]) for number, own in enumerate(rows)]


def points(number: int, count: int) -> list[Any]:
    return [(market_id(number), "2026-01-15 00:00:00.000000", 0.5)] * count


def test_a_market_with_very_many_rows_is_a_stream_and_what_nobody_consumes_is_skipped() -> None:
    taken = 0

    def batches() -> Iterator[list[Any]]:
        nonlocal taken
        for _ in range(50):
            taken += 1
            yield points(1, 1_000)
        yield points(1, 10) + points(2, 2) + points(3, 1)

    groups = RowsByMarket("points", batches(), history.converted)
    rows = groups.of(market_id(1))
    assert taken == 3, "no more than need be"
    assert not isinstance(rows, Valid)
    next(iter(rows))
    assert isinstance(groups.of(market_id(2)), Valid)
    assert isinstance(groups.of(market_id(3)), Valid)
    groups.finish()


def test_rows_of_a_market_that_was_not_asked_for_are_an_error() -> None:
    groups = RowsByMarket("points", iter([points(1, 1) + points(2, 1)]), history.converted)
    assert groups.of(market_id(2)) == ()
    with pytest.raises(SourceError, match=f"rows of market {market_id(1)} are out of order"):
        groups.finish()
