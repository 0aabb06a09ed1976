"""Which rows are final is told for one row by its text, and for many by their numbers; and when files are made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.api.downloads import CANDLES, CLOSES
from generator.downloads import derivation, periods, records
from generator.downloads.derivation import Grouped

_TIMES = st.integers(-62_135_596_800_000, 253_402_300_799_999)  # of years 1 to 9999


def wire(milliseconds: int) -> str:
    return f"{np.datetime64(milliseconds, 'ms')}Z"


@pytest.mark.parametrize("table", [*CANDLES, CLOSES])
@given(as_of=_TIMES, offset=st.integers(-90_000_000, 90_000_000), step=st.sampled_from([1, 3_600_000, 86_400_000]))
def test_a_row_is_final_by_both(table: str, as_of: int, offset: int, step: int) -> None:
    time = min(max((as_of + offset) // step * step, -62_135_596_800_000), 253_402_300_799_999)
    row = np.zeros(1, records.TYPES[table])
    row[records.TIMES[table]] = time
    (is_over,) = derivation.are_over(Grouped.of_one(table, row), wire(as_of))
    assert is_over == periods.is_over(table, wire(time), wire(as_of))


@pytest.mark.parametrize(
    ("last", "as_of", "is_due"),
    [
        ("2026-10-31T00:00:00.000Z", "2026-10-31T23:59:59.999Z", False),
        ("2026-10-31T23:59:59.999Z", "2026-11-01T00:00:00.000Z", True),
        ("2026-11-01T00:00:00.000Z", "2026-10-31T23:59:59.999Z", True),
    ],
)
def test_histories_are_due_with_the_first_build_of_another_day(last: str, as_of: str, is_due: bool) -> None:  # noqa: FBT001
    assert periods.is_due(last, as_of) is is_due
