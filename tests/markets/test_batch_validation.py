"""The fast path takes what databases usually hold, and no time that is none.

That it gives what row validation gives, `test_market_columns` and `tests/source/test_grouping` show, with these values.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import strategies as st

from generator.markets import batch_validation, row_validation
from generator.markets.batch_validation import BATCH, SlowPathError
from tests.support.sites.rows import fill_id

MOMENTS = st.datetimes()
PLAIN_TIMES = MOMENTS.map(lambda moment: moment.isoformat(" ", "microseconds"))
TIMES = st.one_of(
    PLAIN_TIMES,
    st.tuples(MOMENTS, st.sampled_from(" T"), st.sampled_from(["", "Z", "+00", "+00:00", "+02", "z"])).map(
        lambda parts: parts[0].isoformat(parts[1]) + parts[2]
    ),
    st.from_regex(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,7})?(Z|\+00)?", fullmatch=True),
    st.sampled_from([
        *["2026-02-30 00:00:00.000000", "2026-01-31 24:00:00.000000", "2026-01-31T24:00:00Z", "infinity", ""],
        *["2026-01-31 12:00:00.000000\n2026-01-31 12:00:00.000000", "2026-01-31 12:00:00,000000", "\ud800", None],
        *["٢٠٢٦-01-31 12:00:00.000000", "0044-03-15 12:00:00+00 BC", 2026, b"2026", "2026-01-31 12:00"],
    ]),
)  # fmt: skip
NUMBERS = st.one_of(
    st.floats(0, 1),
    st.floats(0.0099999, 0.010001) | st.floats(0.989999, 0.9900001),
    st.floats(),
    st.integers(),
    st.decimals(),
    st.sampled_from([
        True, False, None, "0.5", -0.0, 10**400, 1.000000000004, Decimal("sNaN"), 0.01, 0.99, 0.9900000000000001,
        0.009999999, 0.35000000000000003,
    ]),
)  # fmt: skip
IDS = st.one_of(
    st.uuids().map(str),
    st.uuids().map(lambda id_: str(id_).upper()),
    st.sampled_from(
        ["", "no-uuid", None, 7, "\ud800", f"{fill_id(1)}\n{fill_id(2)}", fill_id(1) + "İ", fill_id(1)[:-1]]
    ),
)


def test_the_same_times_are_valid_whichever_part_of_a_time_is_odd() -> None:
    usual = "2024-02-28 12:30:30.123456"
    odd = [usual[:place] + f"{number:02}" + usual[place + 2 :] for place in (5, 8, 11, 14, 17) for number in range(100)]
    odd += [f"{year}-02-29 00:00:00.000000" for year in ("0000", "1900", "2000", "2023", "2024")]
    odd += [f"2026-{month:02}-{day}{usual[10:]}" for month in range(1, 13) for day in (29, 30, 31)]
    for time in odd:
        try:
            expected = row_validation.timestamp(time)
        except ValueError:
            with pytest.raises(SlowPathError):
                batch_validation.timestamps([usual, time])
        else:
            assert batch_validation.timestamps([usual, time])[1] == expected


@pytest.mark.parametrize(
    ("taken", "values"),
    [
        (batch_validation.timestamps, ["2026-01-31 12:00:00.123456"] * 3),
        (
            batch_validation.timestamps,
            [f"2026-01-31{rest}" for rest in (" 12:00:00+00", " 12:00:00.5+00", "T12:00:00.123Z")],
        ),
        (batch_validation.uuids, [fill_id(1), fill_id(2).upper()]),
        (batch_validation.fill_prices, [None, 0.5, 0.995, Decimal("0.25"), 1]),
        (batch_validation.fill_prices, [None, None]),
        (lambda values: batch_validation.numbers(values, 0, 1), [0.5, -0.0, 1, Decimal("0.25")]),
    ],
)
def test_what_databases_usually_hold_is_taken_at_once(
    taken: Callable[[Sequence[Any]], Sequence[Any]], values: list[Any]
) -> None:
    assert len(taken(values)) == len(values)


@pytest.mark.parametrize("count", [0, 1, BATCH, BATCH + 1, 3 * BATCH])
def test_batches_hold_every_row_once_in_its_order(count: int) -> None:
    batches = list(batch_validation.batches(iter(range(count))))
    assert [row for batch in batches for row in batch] == list(range(count))
    assert all(0 < len(batch) <= BATCH for batch in batches)
