"""The pages layout: every walk with one limit is exact, and a walk that changes its limit loses and repeats nothing."""

import json
from functools import cache, cached_property
from itertools import cycle
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.api import cursors, keys
from generator.tree.generation import ItemList
from generator.tree.pages import LIMITS, PagedList, page_count, page_keys, read, size_at

LIST = "all/popular"


class Walkable:
    """A list of `count` items with all its pages at hand, as a store would have them: by key."""

    def __init__(self, count: int) -> None:
        self.items = [{"n": n, "text": "é" * (n % 7)} for n in range(count)]
        encoded = [json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode() for item in self.items]
        self.generation = PagedList(ItemList(LIST, encoded))

    @cached_property
    def pages(self) -> dict[str, bytes]:
        prefix = keys.generation_prefix(LIST, self.generation.name)
        return {
            f"{prefix}/{folder.name}/{position}.json": body
            for folder in self.generation.folders()
            for position, body in folder.pages
        }

    def first(self, limit: int) -> tuple[list[Any], str | None]:
        return self._read(self.generation.first(limit))

    def page(self, limit: int, position: int) -> tuple[list[Any], str | None]:
        return self._read(self.pages[keys.page(LIST, self.generation.name, limit, position)])

    def position(self, text: str) -> int:
        """The position in the cursor, which must be of this list and generation."""
        place = cursors.read(LIST, text)
        assert place.generation == self.generation.name
        return place.position

    @staticmethod
    def _read(body: bytes) -> tuple[list[Any], str | None]:
        content = json.loads(body)
        assert list(content) == ["items", "nextCursor"]
        return content["items"], content["nextCursor"]


@cache
def walkable(count: int) -> Walkable:
    return Walkable(count)


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 330), st.lists(st.integers(1, 100), min_size=1, max_size=12))
@example(330, [20, 100])
@example(330, [7, 100, 64, 1, 99])
def test_a_walk_that_changes_its_limit_has_neither_gap_nor_duplicate(count: int, limits: list[int]) -> None:
    walk, asked = walkable(count), cycle(limits)
    seen, text = walk.first(next(asked))
    while text is not None:
        limit, position = next(asked), walk.position(text)
        assert position == len(seen)
        items, text = walk.page(size_at(position, limit), position)
        assert 0 < len(items) <= limit
        seen += items
        assert (text is None) == (len(seen) == count)
    assert seen == walk.items


def test_no_larger_page_fits() -> None:
    for limit in LIMITS:
        for position in range(1, 700):
            room = limit - position % limit
            assert size_at(position, limit) == max(size for size in LIMITS if size <= room and position % size == 0)


@pytest.mark.parametrize("count", [*range(45), 99, 100, 101, 199, 200, 201, 330, 1_010])
def test_there_are_as_many_pages_as_counted_each_in_its_folder(count: int) -> None:
    walk = walkable(count)
    expected = {
        keys.page(LIST, walk.generation.name, limit, at) for limit in LIMITS for at in range(limit, count, limit)
    }
    assert walk.pages.keys() == expected
    assert sorted(page_keys(LIST, walk.generation.name, count)) == sorted(expected)
    folders = [(folder.name, len(list(folder.pages))) for folder in walk.generation.folders()]
    assert len({name for name, _ in folders}) == len(folders)
    assert sum(pages for _, pages in folders) == page_count(count) == len(expected)
    assert all(0 < pages <= 100 for _, pages in folders)


def name_of(*items: bytes, list_name: str = LIST) -> str:
    return PagedList(ItemList(list_name, items)).name


def test_other_content_order_or_list_has_another_name() -> None:
    lists = ((), (b"1",), (b"1", b"2"), (b"2", b"1"), (b"1", b"2", b"2"))
    names = [*(name_of(*items) for items in lists), *(name_of(*lists[at], list_name="open/popular") for at in (0, 2))]
    assert len({*names}) == len(names)


@pytest.mark.parametrize("count", [0, 1, 2, 20, 101])
def test_a_page_is_split_without_changing_a_byte(count: int) -> None:
    encoded = [f'{{"n": {n},"t":"\u00e9 ],\\"[{{","x":[1 , 2]}}'.encode() for n in range(count)]
    generation = PagedList(ItemList(LIST, encoded))
    seen, page = [], read(generation.first(20))
    pages = {at: body for folder in generation.folders() if folder.name == "20-0" for at, body in folder.pages}
    while True:
        seen += page.items
        if page.next_cursor is None:
            break
        page = read(pages[cursors.read(LIST, page.next_cursor).position])
    assert seen == encoded


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"items":[', b'{"items":[{}', b'{"items":[{},', b'{"items":[]', b"\xff"]
)
def test_splitting_anything_but_a_page_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
        read(body)
