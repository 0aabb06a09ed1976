"""A gzip file in segments, so that what did not change is copied without compressing it again. Pure.

    header      10 bytes, always the same: no name, no time
    segment     raw deflate of some lines, made on its own, up to and with a full flush
    …
    end         the final, empty deflate block `03 00`, then CRC-32 and length of the whole text

This is one member in the sense of RFC 1952, as browsers need it, and it has no parts that others could read by
themselves: what says where a segment begins is kept beside the file.

A segment holds a group of markets, ascending by id. Whether a market begins a group depends on its own id, so a market
that is new or gone changes one group or two.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from generator.wording import counted

#: Magic, deflate, no flags, no time, no hint of the level, unknown system.
HEADER: Final = bytes.fromhex("1f8b08000000000000ff")
#: A final block without content; CRC-32 and length follow, little-endian, four bytes each.
END: Final = b"\x03\x00"
#: The bytes of a file that are in no segment.
FRAME_SIZE: Final = len(HEADER) + len(END) + 8
#: The package's README has what other levels cost.
LEVEL: Final = 6
#: Markets per group on average, and at most: what has to be made again for one that changed, and held in memory.
GROUP_SIZE: Final = 256
MOST_LINES: Final = 8 * GROUP_SIZE
#: Bytes of a line: no market's texts come near it.
LONGEST_LINE: Final = 16 << 20
#: How a full flush ends.
_FLUSHED: Final = b"\x00\x00\xff\xff"
_RAW: Final = -zlib.MAX_WBITS
_GZIP: Final = 16 + zlib.MAX_WBITS
_FOUR_BYTES: Final = 1 << 32
_PIECE: Final = 1 << 18
_COPIED: Final = 1 << 14
_DIGEST_LENGTH: Final = 32

_T = TypeVar("_T")


class Segment(NamedTuple):
    """One segment of a dump: digests of its ids and of its compressed bytes, their number, and its lines."""

    ids: str
    digest: str
    size: int
    lines: int


@dataclass(frozen=True, slots=True)
class Written:
    """A finished dump: digest and size of the file, digest of its text, markets, and segments in order."""

    sha256: str
    size: int
    state: str
    count: int
    segments: tuple[Segment, ...]


class GzipMember:
    """Writes one gzip member, part by part."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._file, self._text = hashlib.sha256(), hashlib.sha256()
        self._crc = self._length = self.size = 0
        self._put(HEADER)

    def part(self, compressed: bytes, text: bytes) -> None:
        """Write a part that ends with a flush, and count its text in."""
        self._crc = zlib.crc32(text, self._crc)
        self._length += len(text)
        self._text.update(text)
        self._put(compressed)

    def close(self) -> tuple[str, str]:
        """Finish the file and return its SHA-256 digest, and that of its text."""
        sums = self._crc.to_bytes(4, "little") + (self._length % _FOUR_BYTES).to_bytes(4, "little")
        self._put(END + sums)
        return self._file.hexdigest(), self._text.hexdigest()

    def _put(self, piece: bytes) -> None:
        self._file.update(piece)
        self.size += len(piece)
        self._write(piece)


class GzipWriter:
    """Writes a dump, group by group, ascending by id."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._member = GzipMember(write)
        self._segments = list[Segment]()

    def add(self, ids: Sequence[str], text: bytes) -> None:
        """Compress and write the lines of these markets, each of which ends with a line feed."""
        self.copy(ids, compress(text), text)

    def copy(self, ids: Sequence[str], compressed: bytes, text: bytes) -> None:
        """Write a segment that is compressed already."""
        self._member.part(compressed, text)
        self._segments.append(Segment(ids_digest(ids), digest(compressed), len(compressed), len(ids)))

    def close(self) -> Written:
        """Finish the file."""
        sha256, state = self._member.close()
        count = sum(segment.lines for segment in self._segments)
        return Written(sha256, self._member.size, state, count, tuple(self._segments))


def begins_group(market_id: str, before: int) -> bool:
    """Whether a group begins with this market, if there are so many in the one before."""
    return zlib.crc32(market_id.encode()) % GROUP_SIZE == 0 or before == MOST_LINES


def groups(ids: Iterable[str]) -> Iterator[list[str]]:
    """Cut ids into groups; raise ValueError unless they ascend."""
    return grouped(ids, str)


def grouped(items: Iterable[_T], id_of: Callable[[_T], str]) -> Iterator[list[_T]]:
    """Cut anything that has ids into the same groups."""
    group, last = list[_T](), ""
    for item in items:
        market_id = id_of(item)
        if market_id <= last:
            raise ValueError(f"the markets of a dump ascend by id, but {market_id} follows {last}")
        last = market_id
        if group and begins_group(market_id, len(group)):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def ids_digest(ids: Iterable[str]) -> str:
    """A digest that stands for exactly these ids, in this order."""
    return digest("\n".join(ids).encode())


def digest(body: bytes) -> str:
    """A digest of some bytes, as segments have it."""
    return hashlib.sha256(body).hexdigest()[:_DIGEST_LENGTH]


def compressor() -> "zlib._Compress":
    """What makes a segment; end it with `Z_FULL_FLUSH`."""
    return zlib.compressobj(LEVEL, zlib.DEFLATED, _RAW, zlib.DEF_MEM_LEVEL)


def compress(text: bytes) -> bytes:
    """The segment with this text."""
    compressing = compressor()
    return compressing.compress(text) + compressing.flush(zlib.Z_FULL_FLUSH)


def decompress(segment: bytes) -> bytes:
    """The text of a segment; raise ValueError if it is damaged."""
    try:
        return zlib.decompressobj(_RAW).decompress(segment)
    except zlib.error as error:
        raise ValueError(f"not a segment of a dump: {error}") from error


def found(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The segments of a file, each with its text; none of one without lines.

    Raises ValueError for one that was not made in segments. Header and trailer are not looked at: the file's digest is
    known to be right.
    """
    start, end = len(HEADER), len(body) + len(HEADER) - FRAME_SIZE
    while start < end:
        stop, text = start, b""
        while not text.endswith(b"\n"):  # compressed bytes may look like a flush, too
            stop = body.index(_FLUSHED, stop, end) + len(_FLUSHED)
            text = decompress(body[start:stop])
        yield body[start:stop], text
        start = stop


def with_texts(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The pieces of a segment, each with the text that it adds."""
    decompressing = zlib.decompressobj(_RAW)
    return ((piece, decompressing.decompress(piece)) for piece in pieces)


def lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a gzip file that comes in pieces of any size, without line feeds.

    Raises ValueError if it is damaged, or has a longer line than any market makes.
    """
    begun, length = list[bytes](), 0
    for text in _texts(pieces):
        first, *others = text.split(b"\n")
        length += len(first)
        if length > LONGEST_LINE:
            raise ValueError(f"a line has more than {counted(LONGEST_LINE, 'byte', ',')}")
        begun.append(first)
        if others:
            yield b"".join(begun)
            yield from others[:-1]
            begun, length = [others[-1]], len(others[-1])
    if length:
        raise ValueError("the last line of the file does not end")


def _texts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    decompressing = zlib.decompressobj(_GZIP)
    try:
        for piece in _small(pieces):
            if decompressing.eof:
                raise ValueError("something follows the gzip file")
            given = piece
            while text := decompressing.decompress(given, _PIECE):
                yield text
                given = decompressing.unconsumed_tail
    except zlib.error as error:
        raise ValueError(f"damaged gzip file: {error}") from error
    if not decompressing.eof or decompressing.unused_data:
        raise ValueError("the gzip file is cut short, or something follows it")


def _small(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same in small pieces: at each step, what is not decompressed yet is copied."""
    for piece in pieces:
        for start in range(0, len(piece), _COPIED):
            yield piece[start : start + _COPIED]
