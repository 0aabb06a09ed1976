"""Steps of the change feed: what changed from one dump to the next. Pure.

    {"gone":"<SHA-256 digest of the id>"}       first the markets that are gone, by digest
    {"id":"…","prob":0.5,"volume":12.5}         then the new and changed ones, ascending by id

A changed market has its new values only, in the order of the dump and exactly as written there; a new one has all its
properties. One whose property names changed is gone and then new. A step never says what a value was before.

A market that is withdrawn is removed from all steps that are kept: a later one says that it is gone, which does
not reveal its id to anybody who did not know it.
"""

import hashlib
import zlib
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Final, Protocol, TypeVar

from generator.api import forms
from generator.api.downloads import ENTRY_SIZE, STEP_LIFETIME
from generator.downloads import market_lines, segments
from generator.downloads.dump import Changed

_GONE: Final = b'{"gone":"'
_GONE_END: Final = b'"}'


@dataclass(frozen=True, slots=True)
class WrittenStep:
    """A finished step: digest and size of the file, and its lines."""

    sha256: str
    size: int
    count: int


class _Kept(Protocol):
    @property
    def as_of(self) -> str: ...
    @property
    def size(self) -> int: ...


_KeptT = TypeVar("_KeptT", bound=_Kept)


class StepWriter:
    """Makes a step from changes, which must ascend by id.

    Holds the compressed step in memory. Discards a step of more than `limit` bytes: pass the size of the dump, since a
    larger step is not kept.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._gone = list[bytes]()
        self._compressing = segments.compressor()
        self._pieces = list[bytes]()
        self._size = self._count = 0
        self.is_too_large = False
        #: Whether a market is no longer listed.
        self.has_gone = False

    def add(self, change: Changed) -> None:
        """Add a market's change."""
        self.has_gone |= change.after is None
        if self.is_too_large:
            return
        is_gone, line = _difference(change)
        if is_gone:
            self._gone.append(_gone_line(change.id))
        if line is not None:
            self._hold(self._compressing.compress(line + b"\n"))
        self._count += is_gone + (line is not None)
        self._discard_beyond()

    def close(self, write: Callable[[bytes], object]) -> WrittenStep | None:
        """Write the step; None if nothing changed, or if it is too large."""
        gone = b"".join([line + b"\n" for line in sorted(self._gone)])
        first = segments.compress(gone) if gone else b""
        self._hold(self._compressing.flush(zlib.Z_FULL_FLUSH))
        self._discard_beyond(len(first) + segments.FRAME_SIZE)
        if not self._count or self.is_too_large:
            return None
        member = segments.GzipMember(write)
        member.part(first, gone)
        for piece, text in segments.with_texts(self._pieces):
            member.part(piece, text)
        sha256, _ = member.close()
        return WrittenStep(sha256, member.size, self._count)

    def _discard_beyond(self, more: int = 0) -> None:
        if self._limit is not None and self._size + more > self._limit:
            self.is_too_large = True
            self._pieces.clear()

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._pieces.append(piece)
            self._size += len(piece)


def without(write: Callable[[bytes], object], body: bytes, keep: Container[str]) -> WrittenStep | None:
    """Write the step without the lines of markets that `keep` lacks; None, and nothing, if it has none of them.

    Raises ValueError if it is damaged.
    """
    found = [*segments.lines([body])]
    kept = [line for line in found if line.startswith(_GONE) or market_lines.id_of(line) in keep]
    if len(kept) == len(found):
        return None
    member = segments.GzipMember(write)
    text = b"".join([line + b"\n" for line in kept])
    member.part(segments.compress(text), text)
    sha256, _ = member.close()
    return WrittenStep(sha256, member.size, len(kept))


def retained(steps: Sequence[_KeptT], dump_size: int, as_of: str) -> list[_KeptT]:
    """The newest of these steps, oldest first: as many as are no larger than a dump of that size.

    A step counts with its entry in the head, or the head would outgrow the dump. None is more than seven days older
    than `as_of`.
    """
    oldest = forms.instant(datetime.fromisoformat(as_of) - STEP_LIFETIME)
    room = dump_size

    def fits(step: _KeptT) -> bool:
        nonlocal room
        room -= step.size + ENTRY_SIZE
        return room >= 0 and step.as_of >= oldest

    return [*takewhile(fits, reversed(steps))][::-1]


def _difference(change: Changed) -> tuple[bool, bytes | None]:
    """Whether the market is gone, and its line in the step."""
    if change.before is None or change.after is None:
        return change.after is None, change.after
    try:
        before, after = market_lines.properties(change.before), market_lines.properties(change.after)
    except ValueError:
        return True, change.after
    if [*before] != [*after]:
        return True, change.after
    values = zip(after.items(), before.values(), strict=True)
    return False, market_lines.of(
        found for found, former in values if found[1] != former or found[0] == market_lines.ID
    )


def _gone_line(market_id: str) -> bytes:
    return _GONE + hashlib.sha256(market_id.encode()).hexdigest().encode() + _GONE_END
