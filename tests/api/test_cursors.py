"""Minted cursors can be parsed; everything else is refused."""

import string
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import cursors, keys
from generator.api.contract import SORTS, STATUS_FILTERS
from generator.api.cursors import CursorError, WalkPlace

GENERATION = "p0123456789abcdef012"
LIST = "open/popular"
LISTS = [keys.list_name(status, sort) for status in STATUS_FILTERS for sort in SORTS]

generations = st.builds(
    "{}{}".format,
    st.sampled_from(string.ascii_lowercase),
    st.text("0123456789abcdef", min_size=cursors.GENERATION_LENGTH - 1, max_size=cursors.GENERATION_LENGTH - 1),
)
positions = st.integers(1, 10**cursors.POSITION_LENGTH - 1)


def is_refused(list_name: str, text: str) -> bool:
    try:
        cursors.read(list_name, text)
    except CursorError:
        return True
    return False


def minted_as(digits: str) -> str:
    """A cursor with a correct check for any digits, however odd."""
    return f"{cursors.check(LIST, GENERATION, digits)}{GENERATION}{digits}"  # type: ignore[arg-type]


def mutations(text: str) -> Iterator[str]:
    """Every text that differs from `text` in one character: replaced, omitted, added, or swapped with the next."""
    characters = string.printable + "é\u0663\uff13\u06f0\u0131\u017f\u212a\u2028\xa0😀"
    for at in range(len(text)):
        yield text[:at] + text[at + 1 :]
        yield text[:at] + text[at + 1 : at + 2] + text[at] + text[at + 2 :]
        yield from (text[:at] + character + text[at + 1 :] for character in characters)
    for at in range(len(text) + 1):
        yield from (text[:at] + character + text[at:] for character in characters)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(LISTS), generations, positions)
def test_a_minted_cursor_is_read_back(list_name: str, generation: str, position: int) -> None:
    text = cursors.mint(list_name, generation, position)
    assert cursors.read(list_name, text) == WalkPlace(generation, position)
    assert set(text) <= set(string.ascii_lowercase + string.digits)
    assert text[cursors.CHECK_LENGTH :] == f"{generation}{position}"


def test_the_check_is_the_digest_that_the_edge_routers_compute() -> None:
    # The first ten hexadecimal digits that `printf open/popular/p0123456789abcdef012/40 | sha256sum` prints.
    assert cursors.mint(LIST, GENERATION, 40) == "ac9a41a9f9p0123456789abcdef01240"


@pytest.mark.parametrize("position", [1, 20, 100, 4_980, 987_654_321])
def test_every_mutation_of_one_character_is_refused(position: int) -> None:
    text = cursors.mint(LIST, GENERATION, position)
    others = {mutation for mutation in mutations(text) if mutation != text}
    assert len(others) > 6_000
    assert [other for other in others if not is_refused(LIST, other)] == []


def test_a_cursor_is_refused_by_every_list_but_its_own() -> None:
    assert len(LISTS) == 30
    for own in LISTS:
        text = cursors.mint(own, GENERATION, 20)
        assert [name for name in LISTS if not is_refused(name, text)] == [own]


@pytest.mark.parametrize(
    "digits",
    [
        *("0", "00", "020", "+20", "-20", " 20", "20 ", "2_0", "20.0", "2e1", "0x14", "", "1000000000", "20\n"),
        *("\u0662\u0660", "\uff12\uff10", "\xb2"),
    ],
)
def test_a_position_that_no_walk_stands_at_is_refused_even_with_a_fitting_check(digits: str) -> None:
    assert is_refused(LIST, minted_as(digits))
    assert not is_refused(LIST, minted_as("20"))


@pytest.mark.parametrize(
    "generation",
    [
        "P0123456789abcdef012", "00123456789abcdef012", "p0123456789ABCDEF012", "p0123456789abcdeg012",
        "ä0123456789abcdef012", "p0123456789abcdef01\u0662", "p../../../../../../a",
    ],
)  # fmt: skip
def test_a_generation_that_was_never_named_so_is_refused_even_with_a_fitting_check(generation: str) -> None:
    assert len(generation) == cursors.GENERATION_LENGTH
    assert is_refused(LIST, cursors.mint(LIST, generation, 20))
