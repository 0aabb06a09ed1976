"""The chunks layout: heads, indexes and chunks hold exactly the list, and unchanged chunks keep their names."""

import hashlib
import json
from itertools import product

import pytest

from generator.api import keys
from generator.tree import chunks, generations
from generator.tree.chunks import ChunkedList
from generator.tree.generation import ItemList
from generator.tree.manifest import Current

POPULAR = "open/popular"
NEW = "open.rain/new"
ENDED = "all/ended"
COUNTS = (0, 1, 2, 99, 100, 101, 199, 200, 201, 350)


def encoded(numbers: range) -> list[bytes]:
    """Items with line breaks, escapes and multi-byte characters."""
    return [
        json.dumps({"n": n, "text": 'é\u2028\n"],"nextCursor":' * (n % 3)}, ensure_ascii=False).encode()
        for n in numbers
    ]  # fmt: skip


def made(count: int, list_name: str = POPULAR) -> ChunkedList:
    return ChunkedList(ItemList(list_name, encoded(range(count))))


@pytest.mark.parametrize("list_name", [POPULAR, NEW, ENDED])
@pytest.mark.parametrize("count", COUNTS)
def test_the_chunks_are_the_list(count: int, list_name: str) -> None:
    generation = made(count, list_name)
    objects = dict(generation.objects())
    body = objects.pop(keys.index(list_name, generation.name))
    index, found = json.loads(body), [json.loads(body) for body in objects.values()]
    ends = [sum(chunk["count"] for chunk in found[: number + 1]) for number in range(len(found))]
    names = [name for _, name in index["chunks"]]
    assert (index["count"], index["chunks"]) == (count, [[*entry] for entry in zip(ends, names, strict=True)])
    assert (chunks.names(body), generation.chunks) == (names, tuple(names))
    assert {len(line) for line in body.split(b"\n")[1:-1]} <= {chunks.LINE_LENGTH - 1, chunks.LINE_LENGTH - 2}
    assert [*objects] == [keys.chunk(list_name, name) for name in names]
    assert [item for body in objects.values() for item in chunks.items(body)] == encoded(range(count))
    assert [item for chunk in found for item in chunk["items"]] == [*map(json.loads, encoded(range(count)))]


@pytest.mark.parametrize("count", COUNTS)
def test_a_head_has_the_first_hundred_items_and_leads_into_the_generation(count: int) -> None:
    generation = made(count)
    ((key, body),) = generation.first_pages()
    assert key == keys.head(POPULAR)
    assert chunks.items(body) == encoded(range(min(count, 100)))
    head = json.loads(body)
    assert (head["generation"], head["count"]) == (generation.name, count)
    assert [*head] == ["generation", "count", "items"]


def test_a_chunk_is_named_by_its_bytes() -> None:
    for key, body in made(150).objects():
        if key.endswith(keys.INDEX):
            assert chunks.names(body) == [*made(150).chunks]
        else:
            assert key == keys.chunk(POPULAR, hashlib.sha256(body).hexdigest()[:32])


@pytest.mark.parametrize("body", [b"", b"[", b'{"items":[{', b"\xff"])
def test_a_damaged_body_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        chunks.items(body)


@pytest.mark.parametrize("body", [b"", b"[", b"{}", b"[]", b"null", b'{"chunks": 1}', b'{"chunks": [[1]]}', b"\xff"])
def test_a_damaged_index_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        chunks.names(body)


def test_an_index_is_known_by_its_bytes() -> None:
    made = [ChunkedList(ItemList(NEW, encoded(range(count)))) for count in (350, 351)]
    for one, other in product(made, repeat=2):
        key, body = keys.index(NEW, one.name), dict(other.objects())[keys.index(NEW, other.name)]
        current = Current(generation=one.name, count=one.count, bytes=1, chunks=one.chunks)
        assert generations.is_intact(NEW, current, key, body) == (one is other)
        assert not generations.is_intact(NEW, current, key, body + b" ")
