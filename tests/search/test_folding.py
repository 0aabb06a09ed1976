"""The table by which routers fold: what it says of every character is what Python does with it."""

import json
import unicodedata
from bisect import bisect_right
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from generator.search import folding
from tests.support.readers import search

TABLE: Final = json.loads(folding.table())
FOLDS: Final = {
    char: folded
    for chars, _, folded in (entry.partition("=") for entry in TABLE["folds"].split(";") if entry)
    for char in chars
}
#: Beyond ASCII, every character of the planes that have several kinds, and some of Han and Hangul, which have one.
CHARACTERS: Final = [
    chr(code)
    for code in (
        *range(0x80, 0x3400), *range(0x3400, 0xA000, 29), *range(0xA000, 0xAC00), *range(0xAC00, 0xD7A4, 13),
        *range(0xD7A4, 0xD800), *range(0xF900, 0x17000), *range(0x17000, 0x1AF00, 29), *range(0x1AF00, 0x20000),
        *range(0x20000, 0x2F800, 97), *range(0x2F800, 0x2FC00), *range(0x30000, 0x33480, 97), *range(0xE0000, 0xE0300),
    )
]  # fmt: skip


def kind(char: str) -> str:
    return str(TABLE["kinds"][bisect_right(TABLE["starts"], ord(char)) - 1])


def by_table(char: str) -> str:
    """What a character becomes, with a blank for what is no letter."""
    if kind(char) == folding.HANGUL:
        return unicodedata.normalize("NFD", char)
    if char in FOLDS:
        return str(FOLDS[char])
    return {folding.MARK: "", folding.SEPARATOR: " "}.get(kind(char), char)


def plainly(char: str) -> str:
    return "".join(part if unicodedata.category(part)[0] in "LN" else " " for part in search.folded(char))


def test_the_table_folds_every_character_as_python_does() -> None:
    assert [char for char in CHARACTERS if by_table(char).strip() != plainly(char).strip()] == []
    assert [char for char in CHARACTERS if bool(by_table(char)) != bool(plainly(char))] == []


def test_folding_twice_changes_nothing() -> None:
    assert [char for char in CHARACTERS if folding.fold(folding.fold(char)) != folding.fold(char)] == []
    assert FOLDS.keys().isdisjoint("".join(FOLDS.values())), "a router looks up what is folded already"


def test_characters_of_scripts_without_spaces_are_known_by_their_kind() -> None:
    letters = [char for char in CHARACTERS if by_table(char) == char != " "]
    assert len(letters) > 15_000
    assert [char for char in letters if (kind(char) == folding.UNSPACED) != search.is_unspaced(char)] == []
    assert {kind(part) for part in "".join(FOLDS.values()) if part > "\x7f"} == {folding.LETTER, folding.UNSPACED}


@settings(max_examples=200)
@given(
    st.text(st.one_of(st.sampled_from("aZ9 _-\u0301é’ß東ｶﾞΣ한"), st.characters(exclude_categories=["Cs"])), max_size=80)
)
def test_a_text_is_folded_piece_by_piece_as_it_is_as_a_whole(text: str) -> None:
    whole = "".join(char if folding.is_letter(char) else " " for char in folding.fold(text))
    assert folding.spaced(text).split() == whole.split()


def test_the_table_is_small_and_tells_nothing_of_the_markets() -> None:
    assert len(folding.table()) < 50_000
    assert folding.table() is folding.table()
