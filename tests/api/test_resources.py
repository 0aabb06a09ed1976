"""Objects encoded column by column are those that are encoded one by one."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.api import contract
from generator.api.resources import Table

NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.text("0aZ-:.%{}", max_size=5), NUMBERS, NUMBERS), max_size=5))
@example([("%s", 1e-7, 1e16), ("", 5e-324, 1.7976931348623157e308), ("{}", 0.1 + 0.2, None)])
def test_a_table_is_encoded_like_a_list_of_its_objects(rows: list[Any]) -> None:
    names = ("id", "amount", "price")
    expected = contract.encode([dict(zip(names, row, strict=True)) for row in rows])
    assert Table(id=str, amount=float, price=float).encode(rows) == expected
