"""The dump: all listed markets as NDJSON, made from the previous one and what changed. Pure.

A line is the `market` object of a detail, byte for byte; lines ascend by id and end with a line feed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from generator.downloads import market_lines, segments
from generator.downloads.segments import GzipWriter, Segment, Written


@dataclass(frozen=True, slots=True)
class Previous:
    """The dump that a new one is made from: `read` returns so many bytes from an offset, or fewer at the end."""

    read: Callable[[int, int], bytes]
    segments: Sequence[Segment]


@dataclass(frozen=True, slots=True)
class Markets:
    """What a dump is made of: the ids of its markets, which must ascend, and their lines, without line feeds.

    `line_of` is asked for those that are `changed` or that the previous dump lacks; all others keep their lines. So
    `changed` has every market whose line may differ from that in the previous dump. `is_anew`: all lines are compressed
    again, as another program may have compressed those of the previous dump.
    """

    ids: Iterable[str]
    changed: AbstractSet[str]
    line_of: Callable[[str], bytes]
    is_anew: bool = False


class Changed(NamedTuple):
    """A market whose line changed, without line feed; `before` is None if it is new, `after` if it is gone."""

    id: str
    before: bytes | None
    after: bytes | None


class Made(NamedTuple):
    """A new dump, and whether it was compared with all of a previous one, so that each change was reported."""

    written: Written
    is_compared: bool


def make(
    write: Callable[[bytes], object],
    markets: Markets,
    previous: Previous | None,
    on_change: Callable[[Changed], object],
) -> Made:
    """Write the dump of these markets; raise ValueError unless their ids ascend.

    `on_change` gets what did change, ascending by id, unless there is nothing to compare with. A damaged segment of the
    previous dump is as good as none: then the dump is right, but the changes are incomplete, as `Made` says.
    """
    writer = GzipWriter(write)
    former = _Former(previous, on_change)
    for group in segments.groups(markets.ids):
        former.skip_to(group[0])
        whole = former.whole(group)
        if whole is None or not markets.changed.isdisjoint(group):
            lines = [_line(market_id, former, markets) for market_id in group]
            if whole is None or markets.is_anew or lines != whole.lines:
                writer.add(group, b"\n".join([*lines, b""]))
                continue
        else:
            former.skip()
        writer.copy(group, whole.compressed, whole.text)
    former.close()
    return Made(writer.close(), former.is_complete)


def parts(body: bytes) -> Iterator[tuple[Segment, list[bytes]]]:
    """The segments of a dump, each with its lines; raise ValueError if it was not made in segments."""
    for compressed, text in segments.found(body):
        found = text.split(b"\n")[:-1]
        ids = segments.ids_digest(map(market_lines.id_of, found))
        yield Segment(ids, segments.digest(compressed), len(compressed), len(found)), found


def lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a dump or a step, as `segments.lines` gives them."""
    return segments.lines(pieces)


def changes(before: Iterable[bytes], after: Iterable[bytes]) -> Iterator[Changed]:
    """What differs between the lines of two dumps, ascending by id; raise ValueError for a line that is no market."""
    for market_id, found in groupby(merge(_of_side(0, before), _of_side(1, after)), key=itemgetter(0)):
        lines = {side: line for _, side, line in found}
        if lines.get(0) != lines.get(1):
            yield Changed(market_id, lines.get(0), lines.get(1))


def _of_side(side: int, lines: Iterable[bytes]) -> Iterator[tuple[str, int, bytes]]:
    return ((market_lines.id_of(line), side, line) for line in lines)


def _line(market_id: str, former: "_Former", markets: Markets) -> bytes:
    """The line of a market, and report it if it changed."""
    former.skip_to(market_id)
    before = former.take(market_id)
    after = markets.line_of(market_id) if before is None or market_id in markets.changed else before
    if before != after:
        former.report(Changed(market_id, before, after))
    return after


class _Whole(NamedTuple):
    compressed: bytes
    text: bytes
    ids: list[str]
    lines: list[bytes]


class _Former:
    """Reads the previous dump in order, a segment at a time, and reports the markets that are gone."""

    def __init__(self, previous: Previous | None, on_change: Callable[[Changed], object]) -> None:
        self.is_complete = previous is not None
        self._on_change = on_change
        self._segments = iter(()) if previous is None else self._read(previous)
        self._current = _Whole(b"", b"", [], [])
        self._at = 0

    def report(self, change: Changed) -> None:
        if self.is_complete:
            self._on_change(change)

    def whole(self, ids: Sequence[str]) -> _Whole | None:
        """The segment that comes next, if it has just these markets; those before them have been passed over."""
        return self._current if self._has_next() and self._current.ids == ids else None

    def skip(self) -> None:
        """Pass over the rest of the segment."""
        self._at = len(self._current.ids)

    def skip_to(self, market_id: str | None) -> None:
        """Pass over the markets before this one, or all: they are gone."""
        while self._has_next() and (market_id is None or self._current.ids[self._at] < market_id):
            self.report(Changed(self._current.ids[self._at], self._current.lines[self._at], None))
            self._at += 1

    def take(self, market_id: str) -> bytes | None:
        """The line of a market, if it comes next."""
        if not self._has_next() or self._current.ids[self._at] != market_id:
            return None
        self._at += 1
        return self._current.lines[self._at - 1]

    def close(self) -> None:
        self.skip_to(None)

    def _has_next(self) -> bool:
        while self._at == len(self._current.ids):
            found = next(self._segments, None)
            if found is None:
                return False
            self._current, self._at = found, 0
        return True

    def _read(self, previous: Previous) -> Iterator[_Whole]:
        """The segments that are sound."""
        offset = len(segments.HEADER)
        for segment in previous.segments:
            found = _checked(segment, previous.read(offset, segment.size))
            offset += segment.size
            if found is None:
                self.is_complete = False
            else:
                yield found
        # No segment begins like this, so none is left out.
        if previous.read(offset, len(segments.END)) != segments.END:
            self.is_complete = False


def _checked(segment: Segment, compressed: bytes) -> _Whole | None:
    """A segment of the previous dump, unless it is damaged or that of another dump."""
    if segments.digest(compressed) != segment.digest:
        return None
    try:
        text = segments.decompress(compressed)
        *lines, rest = text.split(b"\n")
        ids = [*map(market_lines.id_of, lines)]
    except ValueError:
        return None
    is_right = not rest and len(ids) == segment.lines and segments.ids_digest(ids) == segment.ids
    return _Whole(compressed, text, ids, lines) if is_right else None
