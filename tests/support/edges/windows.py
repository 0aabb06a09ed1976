"""Generated lists in the layout `chunks`, walks through them on any edge, and damage to their objects."""

import json
from collections.abc import Iterator
from http import HTTPStatus
from itertools import cycle, islice
from typing import Final

from generator.api import contract, keys
from generator.edge import responses
from generator.tree import borders, chunks
from generator.tree.generation import ItemList
from tests.support.edges.cases import faults
from tests.support.edges.edge_sites import EdgeSite
from tests.support.edges.servers import Answer
from tests.support.readers import lists

#: As many items as matter: none, pages without a cursor, chunks from the shortest list that is cut on.
LENGTHS: Final = {
    "open/popular": 0, "closed/popular": 1, "resolved/new": 99, "cancelled/new": 100, "archive/popular": 101,
    "all/volume": 200, "all/ended": 201, "all/activity": 250, "all/new": 301, "open/ended": 350, "open/volume": 550,
}  # fmt: skip
#: Texts that might confuse a program that cuts JSON.
TEXTS: Final = (
    "plain", "Ñandú, Łódź, הבחירות, 選挙", "🙂👩‍👩‍👧‍👦", "two\u2028separators\u2029that once ended lines",
    'quoted "],"nextCursor":null}', "a\nline\r\nbreak,\n]}", "\ufeffmark \x00\x1f\x7f\ud7ff\uffff", "\\n \\u000a \\",
    "long " + "ü" * 5000,
)  # fmt: skip


def made_up(name: str, count: int, seed: str = "") -> ItemList:
    """A list of items like the contract's; another seed gives other items."""
    texts = islice(cycle(TEXTS), count)
    encoded = (contract.encode({"id": f"{seed}{i}", "question": text}) for i, text in enumerate(texts))
    return ItemList(name, tuple(encoded))


LISTS: Final = {name: made_up(name, count) for name, count in LENGTHS.items()}


def walk(
    at: EdgeSite, one: ItemList, limits: Iterator[int], cursor: str | None = None, generation: str | None = None
) -> int:
    """Walk the list, comparing every page byte for byte; returns the number of pages."""
    generation, position, number = generation or chunks.ChunkedList(one).name, 0, 0
    if cursor is not None:
        position = int(cursor[30:])
    while True:
        limit = next(limits)
        answer = at.ask(one.name, limit, cursor)
        assert answer.status == HTTPStatus.OK, (one.name, position, limit, answer)
        assert answer.body == lists.page(one, generation, position, limit), (one.name, position, limit)
        cursor, position, number = json.loads(answer.body)["nextCursor"], position + limit, number + 1
        if cursor is None:
            assert position >= len(one.items)
            return number


def near_borders(one: ItemList) -> list[int]:
    """The places of a list at which a page may begin, around every border of its chunks."""
    near = {border + by for border in borders.of(one.items) for by in (-2, -1, 0, 1)}
    return sorted(near & set(range(1, len(one.items))))


def refused(answer: Answer) -> tuple[str, ...]:
    assert answer.status == HTTPStatus.BAD_REQUEST, answer
    assert responses.COMMON.items() <= answer.headers.items()
    return faults(contract.ErrorResponse.model_validate_json(answer.body))


def damaged_heads(made: chunks.ChunkedList) -> list[bytes]:
    """Damaged, of another type, or with unknown content."""
    whole = made.head()
    forged = (b'"count":250', b'"count":25'), (made.name.encode(), b"../../../../../build")
    return [whole[:-3], whole[:-9000], b"", b"<Error/>", b"null", *(whole.replace(*change) for change in forged)]


def damaged_indexes(made: chunks.ChunkedList) -> list[bytes]:
    whole = dict(made.objects())[keys.index(made.list_name, made.name)]
    lines = whole.split(b"\n")
    end = int(lines[1][1:].split(b",")[0])
    forged = (
        (f'"count":{made.count}'.encode(), f'"count":{made.count - 1}'.encode()),
        (f"{end:9},".encode(), f"{end - 7:9},".encode()),
        (made.chunks[1].encode(), b"../../../../../../../../../../bu"),
    )
    return [
        whole[:-20],
        b"",
        b"null",
        b"{}",
        *(whole.replace(*change) for change in forged),
        whole.replace(lines[1] + b"\n", b""),
    ]


def damaged_chunks(made: chunks.ChunkedList) -> list[bytes]:
    whole = dict(made.objects())[keys.chunk(made.list_name, made.chunks[1])]
    forged = f'"count":{len(chunks.items(whole))}'.encode(), b'"count":7'
    return [whole[:-3], whole[:-9000], b"", b"[\n]", b"<Error/>", whole.replace(*forged)]
