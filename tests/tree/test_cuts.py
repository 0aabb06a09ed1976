"""A list without some items, made of the chunks around them, is byte for byte the list made whole."""

import random
from collections.abc import Collection, Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import keys
from generator.tree import cuts
from generator.tree.chunks import ChunkedList
from generator.tree.cuts import ChunksInPlace, InDoubtError, ShortenedList
from generator.tree.generation import ItemList
from generator.tree.manifest import Current
from tests.tree.test_borders import MANY, item

NAME: Final = "open/new"


def current_of(made: ChunkedList) -> Current:
    size = sum(len(body) for _, body in made.objects())
    return Current(generation=made.name, count=made.count, bytes=size, chunks=made.chunks)


class Place:
    """Objects by key; those that are read or staged are noted."""

    def __init__(self, made: ChunkedList) -> None:
        self.objects = dict(made.objects())
        self.read_keys: list[str] = []
        self.staged: dict[str, bytes] = {}

    def read(self, key: str) -> bytes | None:
        self.read_keys.append(key)
        return self.objects.get(key)

    def put(self, key: str, body: bytes) -> bool:
        self.staged[key] = body
        return key not in self.objects

    def shortened(self, made: ChunkedList, gone: Sequence[int]) -> ShortenedList | None:
        return cuts.shortened(ChunksInPlace(self.read, NAME, current_of(made)), gone)


def without(items: Sequence[bytes], gone: Collection[int]) -> ChunkedList:
    return ChunkedList(ItemList(NAME, [one for place, one in enumerate(items) if place not in gone]))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 3_000), st.integers(1, 60_000), st.data())
def test_it_is_the_list_made_whole(count: int, longest: int, data: Any) -> None:
    dice = random.Random(longest)  # noqa: S311 - the same lists every time
    large = {dice.randrange(count): longest for _ in range(40)} if count else {}
    items = [item(number, "x" * large.get(number, 0)) for number in range(count)]
    gone = sorted(data.draw(st.sets(st.integers(0, count - 1), max_size=30))) if count else []
    before, expected = ChunkedList(ItemList(NAME, items)), without(items, gone)
    place = Place(before)
    made = place.shortened(before, gone)
    assert made is not None
    staged = made.stage(place)  # type: ignore[arg-type]
    whole = dict(expected.objects())
    kept = {*made.kept()}
    assert kept == {*before.places()} & {*expected.places()} - {keys.index(NAME, before.name)} - {*place.staged}
    assert place.staged == {key: body for key, body in whole.items() if key not in kept}
    assert (made.name, made.count, made.chunks) == (expected.name, expected.count, expected.chunks)
    assert ([*made.first_pages()], [*made.places()]) == ([*expected.first_pages()], [*expected.places()])
    assert staged.size == current_of(expected).bytes
    assert len(place.read_keys) == len({*place.read_keys})


def test_of_a_long_list_only_chunks_around_the_item_and_those_of_the_head_are_read() -> None:
    before = ChunkedList(ItemList(NAME, MANY))
    for gone in (0, 9_000, len(MANY) - 1):
        place = Place(before)
        made = place.shortened(before, [gone])
        assert made is not None
        assert made.name == without(MANY, {gone}).name
        assert len(before.chunks) > 120
        assert 2 <= len(place.read_keys) <= 12


@pytest.mark.parametrize("kind", ["index", "chunk"])
@pytest.mark.parametrize("fault", ["missing", "damaged"])
def test_what_is_missing_or_damaged_is_noticed_when_it_is_read(kind: str, fault: str) -> None:
    before = ChunkedList(ItemList(NAME, MANY[:1_000]))
    place = Place(before)
    key = keys.index(NAME, before.name) if kind == "index" else keys.chunk(NAME, before.chunks[0])
    if fault == "missing":
        del place.objects[key]
    else:
        place.objects[key] = place.objects[key].replace(b"0", b"1", 1)
    with pytest.raises(InDoubtError, match=f"{kind} is missing or damaged"):
        place.shortened(before, [3])


def test_an_index_that_is_not_what_is_recorded_is_noticed() -> None:
    before = ChunkedList(ItemList(NAME, MANY[:1_000]))
    recorded = current_of(before).with_chunks(before.chunks[1:])
    with pytest.raises(InDoubtError, match="not what is recorded"):
        ChunksInPlace(Place(before).read, NAME, recorded)
