"""Sums of questions are the real ones, rounded once."""

from fractions import Fraction
from math import fsum, inf, nextafter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generator.markets.questions import exact_sum

GREATEST = nextafter(inf, 0)
#: Just below the middle between the greatest double and what would be the next.
NEARLY_TOO_MUCH = [2.0**1023, 2.0**971 - 2.0**918, 2.0**1023 - 3 * 2.0**970]
ODD = st.sampled_from([GREATEST, GREATEST / 2, *NEARLY_TOO_MUCH, 2.0**970, 2.0**969, 2.0**918, 5e-324, 0.1, 1e16, 1.0])
ANY = st.floats(0, allow_nan=False, allow_infinity=False)


@given(st.lists(st.one_of(ODD, ANY), max_size=12))
@example(NEARLY_TOO_MUCH)
@example([GREATEST, 2.0**970])
def test_the_sum_is_the_double_that_is_nearest_to_the_real_one(values: list[float]) -> None:
    try:
        nearest = float(sum(map(Fraction, values), Fraction(0)))
    except OverflowError:
        nearest = inf
    assert exact_sum(values) == nearest


def test_the_library_alone_fails_where_only_a_partial_sum_is_too_large() -> None:
    with pytest.raises(OverflowError):
        fsum(NEARLY_TOO_MUCH)
    assert exact_sum(NEARLY_TOO_MUCH) == GREATEST


def test_nothing_and_less_than_nothing_is_zero() -> None:
    assert [str(exact_sum(values)) for values in ([], [0.0], [-0.0], [-0.0, -0.0])] == ["0.0"] * 4


def test_ties_go_to_even() -> None:
    assert exact_sum([2.0**53, 1.0]) == 2.0**53
    assert exact_sum([2.0**53, 1.0, 5e-324]) == 2.0**53 + 2
