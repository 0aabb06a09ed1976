"""The `pages` layout: one list becomes an object per page, for every limit. Pure.

A page is a slice of the list's joined items between a fixed head and a `nextCursor` tail; nothing is encoded here.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from generator.api import cursors, keys
from generator.api.contract import LIMIT_MAX, LIMIT_MIN
from generator.tree.generation import ItemList, PageFolder, StagedGeneration, Weight, Workplace, stage_objects

#: Part of every generation's name: increase it when the bytes or the URLs of pages change.
FORMAT: Final = "1"
LAYOUT: Final = "pages"
LETTER: Final = "p"
LIMITS: Final = range(LIMIT_MIN, LIMIT_MAX + 1)

_JSON: Final = json.JSONDecoder()
_HEAD: Final = b'{"items":['
_NEXT: Final = b'],"nextCursor":"'
_END: Final = b'"}'
_LAST: Final = b'],"nextCursor":null}'


class PagedList:
    """One content of one list, cut into pages; equal content has an equal `name`."""

    #: Generations of this layout have no chunks.
    chunks: tuple[str, ...] = ()

    def __init__(self, source: ItemList) -> None:
        self.list_name = source.name
        self.count = len(source.items)
        self._joined = b",".join(source.items)
        # Where each item starts, and one past the end: a page drops the comma before the next item.
        self._offsets = list(accumulate((len(item) + 1 for item in source.items), initial=0))
        self.name = self._digest(source.items)

    def _digest(self, items: Sequence[bytes]) -> str:
        # Hash the lengths, too: two lists with the same joined bytes but other items must not share a name.
        digest = hashlib.sha256(f"{FORMAT}\n{LAYOUT}\n{self.list_name}\n{[len(item) for item in items]}\n".encode())
        digest.update(self._joined)
        return LETTER + digest.hexdigest()[: cursors.GENERATION_LENGTH - 1]

    @cached_property
    def _tails(self) -> list[bytes]:
        """The bytes after the items of a page, by the position where it ends; all limits share this table."""
        minted = (cursors.mint(self.list_name, self.name, position).encode() for position in range(1, self.count))
        return [_LAST, *(_NEXT + text + _END for text in minted), _LAST]

    def _body(self, start: int, size: int) -> bytes:
        end = min(start + size, self.count)
        if start == end:
            return _HEAD + _LAST
        return _HEAD + self._joined[self._offsets[start] : self._offsets[end] - 1] + self._tails[end]

    def first(self, limit: int) -> bytes:
        """The first page of a walk with `limit`."""
        return self._body(0, limit)

    def first_pages(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of every first page, one per limit."""
        return ((keys.first_page(self.list_name, limit), self.first(limit)) for limit in LIMITS)

    def places(self) -> Iterator[str]:
        """What exists when the generation is in place: the prefix of its pages, which are moved at once."""
        yield keys.generation_prefix(self.list_name, self.name)

    def stage(self, folder: Workplace) -> StagedGeneration:
        """Stage all pages but the first ones, together; or, if there is a folder for them, those that it lacks."""
        (prefix,) = self.places()
        if folder.has(prefix):
            return stage_objects(folder, self.objects())
        size = folder.put_pages(prefix, self.folders())
        return StagedGeneration((prefix,), page_count(self.count), size, size)

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of all these pages."""
        (prefix,) = self.places()
        for folder in self.folders():
            yield from ((f"{prefix}/{folder.name}/{position}.json", body) for position, body in folder.pages)

    def folders(self) -> Iterator[PageFolder]:
        """All pages but the first ones: for every limit, one at each multiple of the limit."""
        for limit in LIMITS:
            step = limit * keys.PAGES_PER_FOLDER
            for start in range(0, self.count, step):
                positions = range(max(start, limit), min(start + step, self.count), limit)
                if positions:
                    pages = ((position, self._body(position, limit)) for position in positions)
                    yield PageFolder(keys.page_folder(limit, start), pages)


def remade(list_name: str, generation: str, items: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """The key and bytes of all pages of a generation but the first ones, of its `items` but the first."""
    made = PagedList(ItemList(list_name, [b"", *items]))
    made.name = generation
    return made.objects()


@dataclass(frozen=True)
class Page:
    """A page as a reader sees it: its encoded items, and the cursor of the next page."""

    items: list[bytes]
    next_cursor: str | None


def read(body: bytes) -> Page:
    """Parse a page without changing a byte of its items; raise ValueError when it is not a page."""
    if not body.startswith(_HEAD) or not body.endswith((_END, _LAST)):
        raise ValueError("not a whole page")
    text, end, items = body.decode(), len(_HEAD), []
    while text[end] != "]":
        begin = end + (text[end] == ",")
        _, end = _JSON.raw_decode(text, begin)
        items.append(text[begin:end].encode())
    return Page(items, json.loads(text[: len(_HEAD)] + text[end:])["nextCursor"])


def page_count(items: int) -> int:
    """The number of pages of a list of `items`, first pages excluded: about 5.19 per item."""
    return sum(max(0, items - 1) // limit for limit in LIMITS)


def weight(items: int, size: int) -> Weight:
    """The pages of a list of `items` with `size` bytes in total.

    An estimate: it takes all items as equally long, and all cursors as long as the last, so it is off by about 0.1 %.
    """
    mean, tail = size / max(items, 1) + 1, _tail_length(items)
    later = first = 0.0
    for limit in LIMITS:
        shown = min(items, limit)
        first += len(_HEAD) + shown * mean + (tail if items > limit else len(_LAST)) - (shown > 0)
        later_pages = max(0, items - 1) // limit
        later += later_pages * (len(_HEAD) - 1 + tail) + (items - shown) * mean
        later -= (tail - len(_LAST)) if later_pages else 0
    return Weight(page_count(items), round(later), len(LIMITS), round(first))


def _tail_length(items: int) -> int:
    return len(_NEXT) + cursors.CHECK_LENGTH + cursors.GENERATION_LENGTH + len(str(items)) + len(_END)


def page_keys(list_name: str, generation: str, count: int) -> Iterator[str]:
    """The keys of all pages of a generation of `count` items, first pages excluded."""
    for limit in LIMITS:
        yield from (keys.page(list_name, generation, limit, position) for position in range(limit, count, limit))


def size_at(position: int, limit: int) -> int:
    """The size of the page to serve to a walk at `position` that now asks for `limit` items.

    It is the largest precomputed page that starts there, holds at most `limit` items and does not cross the next
    multiple of `limit`, so a reader who changed the limit soon gets whole pages again. There is always one.
    """
    room = limit - position % limit
    return next(size for size in range(room, 0, -1) if position % size == 0)
