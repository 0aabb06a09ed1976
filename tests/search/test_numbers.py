"""Numbers as printable ASCII, in as many characters as their greatest needs."""

from hypothesis import given
from hypothesis import strategies as st

from generator.search import numbers


@given(st.lists(st.integers(0, 399_999)))
def test_numbers_of_fixed_width_lead_back_to_themselves(found: list[int]) -> None:
    width = numbers.width(400_000)
    text = numbers.encode_fixed(found, width)
    assert (width, len(text)) == (3, 3 * len(found))
    digits = [code - numbers.FIRST - (code > numbers.BACKSLASH) for code in text.encode()]
    values = [digits[at] * 91**2 + digits[at + 1] * 91 + digits[at + 2] for at in range(0, len(digits), 3)]
    assert values == found


def test_a_width_is_as_small_as_it_may_be() -> None:
    limits = (0, 1, 91, 92, 8_281, 8_282, 753_571, 753_572)
    assert [*map(numbers.width, limits)] == [1, 1, 1, 2, 2, 3, 3, 4]
