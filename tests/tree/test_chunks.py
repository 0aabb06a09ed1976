"""The chunks layout: heads, indexes and chunks hold exactly the list, and unchanged chunks keep their names."""

import hashlib
import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import cursors, keys
from generator.tree import chunks, pages
from generator.tree.chunks import Generation, borders
from generator.tree.generation import ItemList

POPULAR = "open/popular"
NEW = "open.rain/new"
ENDED = "all/ended"
COUNTS = (0, 1, 2, 99, 100, 101, 199, 200, 201, 250)


def encoded(numbers: range) -> list[bytes]:
    """Items with line breaks, escapes and multi-byte characters."""
    return [
        json.dumps({"n": n, "text": 'é\u2028\n"],"nextCursor":' * (n % 3)}, ensure_ascii=False).encode()
        for n in numbers
    ]  # fmt: skip


def made(count: int, list_name: str = POPULAR) -> Generation:
    return Generation(ItemList(list_name, encoded(range(count))))


def added(count: int, number: int, list_name: str) -> int:
    """The number of new chunks after that many items are prepended."""
    before = made(count, list_name)
    after = Generation(ItemList(list_name, encoded(range(1_000, 1_000 + number)) + encoded(range(count))))
    return len({*after.chunks} - {*before.chunks})


@pytest.mark.parametrize("list_name", [POPULAR, NEW, ENDED])
@pytest.mark.parametrize("count", COUNTS)
def test_the_chunks_are_the_list(count: int, list_name: str) -> None:
    generation = made(count, list_name)
    objects = dict(generation.objects())
    index = json.loads(objects.pop(keys.index(list_name, generation.name)))
    assert index == {"count": count, "first": min(count, index["first"]), "chunks": [*generation.chunks]}
    assert [*objects] == [keys.chunk(list_name, name) for name in index["chunks"]]
    assert [item for body in objects.values() for item in chunks.items(body)] == encoded(range(count))
    assert [item for body in objects.values() for item in json.loads(body)] == [*map(json.loads, encoded(range(count)))]


@pytest.mark.parametrize("count", COUNTS)
def test_a_head_has_the_first_hundred_items_and_leads_into_the_generation(count: int) -> None:
    generation = made(count)
    ((key, body),) = generation.first_pages()
    assert key == keys.head(POPULAR)
    assert chunks.items(body) == encoded(range(min(count, 100)))
    head = json.loads(body)
    assert (head["generation"], head["count"]) == (generation.name, count)
    assert [*head] == ["generation", "count", "items"]


def test_a_page_of_a_hundred_meets_two_chunks_at_most() -> None:
    for name in (POPULAR, NEW):
        for count in range(600):
            sizes = [end - start for start, end in pairwise(borders(name, count))]
            assert sum(sizes) == count
            assert {*sizes[1:-1]} <= {100}
            assert all(0 < size <= 100 for size in sizes)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 350), st.integers(1, 60))
def test_arrivals_at_the_front_change_the_newest_chunks_only(count: int, number: int) -> None:
    for name in (NEW, ENDED):
        assert added(count, number, name) <= 1 + (count % 100 + number) // 100
    assert added(300, 1, POPULAR) == 4, "where borders count from the front, all of them move"


def test_an_edit_changes_the_chunk_that_holds_it() -> None:
    items = encoded(range(350))
    before = Generation(ItemList(POPULAR, items))
    items[150] = b'{"n":"edited"}'
    after = Generation(ItemList(POPULAR, items))
    assert [old == new for old, new in zip(before.chunks, after.chunks, strict=True)] == [True, False, True, True]
    assert before.name != after.name


def test_generations_have_equal_names_only_for_equal_content() -> None:
    assert made(250).name == made(250).name
    names = [made(count, name).name for count in COUNTS for name in (POPULAR, NEW, ENDED)]
    joined = Generation(ItemList(POPULAR, [b"1,\n2"]))
    assert len({*names, joined.name, Generation(ItemList(POPULAR, [b"1", b"2"])).name}) == len(names) + 2
    assert made(1).name != pages.Generation(ItemList(POPULAR, encoded(range(1)))).name


def test_a_generations_name_fits_into_a_cursor_and_shows_the_layout() -> None:
    name = made(150).name
    assert cursors.read(POPULAR, cursors.mint(POPULAR, name, 100)) == cursors.Cursor(name, 100)
    assert name.startswith("c")


def test_a_chunk_is_named_by_its_bytes() -> None:
    for key, body in made(150).objects():
        if key.endswith(keys.INDEX):
            assert body == chunks.index(POPULAR, 150, made(150).chunks)
        else:
            assert key == keys.chunk(POPULAR, hashlib.sha256(body).hexdigest()[:32])


@pytest.mark.parametrize("body", [b"", b"[", b'{"items":[{', b"\xff"])
def test_a_damaged_body_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        chunks.items(body)
