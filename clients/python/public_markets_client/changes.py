"""The rules of the change feed, as docs/details/change-feed.md in the project has them; nothing here sends or stores.

Start with `Merge` and `differences`. Lines are bytes, each with its line feed; they are never encoded again.
"""

import gzip
import hashlib
import heapq
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, BinaryIO, Literal

from public_markets_client.decoding import Extensible, decoded
from public_markets_client.errors import AnswerError, DamagedError, StartAgainError
from public_markets_client.models import ChangesHead, FullMarket
from public_markets_client.requester import JSON, MALFORMED, Answer, etag_of, parsed

#: The bytes of a line at most, and of steps that are merged in memory; the dump, which is not, costs hardly more.
LONGEST_LINE, MOST_MERGED = 16 << 20, 256 << 20
_PIECE = 1 << 18
_DIGEST = re.compile(r"[0-9a-f]{64}")
_STEP = re.compile(r"[0-9a-f]{32}\.ndjson\.gz")
#: How a line begins; other ids would have another order, or no place, in some store.
_FIRST = re.compile(r'\{"(id|gone)":"([ !#-\[\]-~]+)"[,}]')
#: Half of a pair, or a whole one.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class FeedFile:
    """A file that a head names; `url` may be relative to the head's; `size` is in bytes.

    Its SHA-256 digest begins with `digest`. A step also has the as-of of the data that it leads to.
    """

    url: str
    size: int
    digest: str
    as_of: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Position(Extensible):
    """Where in the feed a copy is, and the ETag of the head that led there, at this `url`.

    `questions` is the digest of its definitions of questions, None if the site has none.
    """

    session: str
    serial: int
    state: str
    url: str
    etag: str | None
    questions: str | None = None


class FeedHead:
    """The head of the feed that was answered at `url`: where the feed is, and its files."""

    def __init__(self, url: str, answer: Answer) -> None:
        values = parsed(answer.body)
        found = decoded(ChangesHead, values)
        here = {name: values[name] for name in ("session", "serial", "state")}
        here |= {"questions": found.questions and found.questions.state}
        self.position = decoded(Position, here | {"url": url, "etag": etag_of(answer)})
        self.dump = FeedFile(found.dump.url, found.dump.size, found.dump.sha256)
        defining = found.questions.files if found.questions else ()
        named = (FeedFile(one.url, one.size, one.sha256) for one in defining if one.format == "ndjson")
        self.definitions = next(named, None)
        # A step is named by the first half of its digest.
        self.steps = [FeedFile(found.steps_url + one.name, one.size, one.name[:32], one.as_of) for one in found.steps]
        digests = [self.dump.digest] + ([self.definitions.digest] if self.definitions else [])
        are_named = all(map(_DIGEST.fullmatch, digests)) and all(_STEP.fullmatch(one.name) for one in found.steps)
        if not are_named or (found.questions and not self.definitions):
            raise AnswerError("is not the head of a change feed")

    def steps_since(self, position: Position) -> list[FeedFile]:
        """The steps that lead from there to the newest state: each leads from one serial to the next."""
        here = self.position
        if position.session != here.session:
            raise StartAgainError("the site has begun a new session")
        behind = here.serial - position.serial
        if not 0 <= behind <= len(self.steps):
            raise StartAgainError(f"no steps lead from serial {position.serial} to {here.serial}")
        return self.steps[len(self.steps) - behind :]


@dataclass(frozen=True)
class Change:
    """What becomes of a market: its line now and before, None where there is none."""

    id: str
    line: bytes | None
    line_before: bytes | None

    @property
    def kind(self) -> Literal["added", "changed", "gone"]:
        """What became of it, if the lines differ."""
        return "added" if self.line_before is None else "gone" if self.line is None else "changed"

    @property
    def market(self) -> FullMarket | None:
        """The market as it is now; None if it is gone."""
        return None if self.line is None else decoded(FullMarket, parsed(self.line))

    @property
    def before(self) -> FullMarket | None:
        """The market as it was; None if it is new."""
        return None if self.line_before is None else decoded(FullMarket, parsed(self.line_before))


def require_whole(file: BinaryIO, named: FeedFile) -> None:
    """Raise DamagedError if a file that was fetched is not the one that a head names."""
    file.seek(0)
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    if not digest.hexdigest().startswith(named.digest):
        raise DamagedError("is not the file that the head names: its digest differs")


def lines_of(file: BinaryIO, name: str, most: int) -> Iterator[bytes]:
    """The lines of a dump or a step, which is gzip, and of which no more than `most` bytes are read."""
    file.seek(0)
    with gzip.GzipFile(fileobj=file, mode="rb") as text:
        try:
            for line in lines_in(text, name):
                most -= len(line)
                if most < 0:
                    raise StartAgainError("is longer than largest_file allows", url=name)
                _require_unicode(line, name)
                yield line
        except (OSError, EOFError, zlib.error) as error:
            raise StartAgainError(f"is damaged: {error}", url=name) from None


def lines_in(text: Any, name: str) -> Iterator[bytes]:
    """The lines of a binary file; no more of a line is read than may be."""
    while line := text.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise StartAgainError(f"has a line of more than {LONGEST_LINE >> 20} MB", url=name)
        yield line


def _require_unicode(line: bytes, name: str) -> None:
    """Raise StartAgainError for a line that databases could not keep, or not read again."""
    try:
        text = line.decode()
        if _SURROGATE.search(line):
            json.dumps(JSON.decode(text), ensure_ascii=False).encode()
    except MALFORMED:
        raise StartAgainError("has a line that is not valid Unicode", url=name) from None


def properties(line: bytes) -> dict[str, str]:
    """The names and values of a market as they are written: '"prob"' and '0.50'."""
    text, found, end = line.decode(), dict[str, str](), 0
    while text[end] != "}":
        start = end + 1
        _, colon = JSON.raw_decode(text, start)
        _, end = JSON.raw_decode(text, colon + 1)
        found[text[start:colon]] = text[colon + 1 : end]
    return found


def _line_of(found: dict[str, str]) -> bytes:
    return ("{" + ",".join(f"{name}:{value}" for name, value in found.items()) + "}\n").encode()


def first_value(line: bytes) -> tuple[str, str]:
    """The first property of a line: the id of a market, or the digest of one that is gone; raises what is MALFORMED."""
    text = line.decode()
    JSON.decode(text)
    return _FIRST.match(text).group(1, 2)  # type: ignore[union-attr,return-value]


def digest_of(market_id: str) -> str:
    """How a step names a market that is gone."""
    return hashlib.sha256(market_id.encode()).hexdigest()


class Merge:
    """The combined changes of some steps, so that one pass over the copy applies them."""

    def __init__(self, most: int = MOST_MERGED) -> None:
        self._room = most
        self.gone: set[str] = set()
        self.changed: dict[str, dict[str, str]] = {}
        self._ids: dict[str, str] = {}

    def add(self, step: Iterable[bytes], name: str) -> None:
        """Add the next step: first what is gone, then markets that changed or are new; messages name the step."""
        try:
            for line in step:
                self._room -= len(line)
                if self._room < 0:
                    raise StartAgainError("and the steps before it are too long to be merged", url=name)
                kind, value = first_value(line)
                if kind == "gone":
                    self.gone.add(value)
                    # This also discards what an earlier step said of it.
                    self.changed.pop(self._ids.get(value, ""), None)
                else:
                    self._ids[digest_of(value)] = value
                    # A property that is known keeps its place.
                    self.changed[value] = self.changed.get(value, {}) | properties(line)
        except MALFORMED:
            raise StartAgainError("is no step of a change feed", url=name) from None

    def apply(self, old: Iterable[bytes]) -> Iterator[Change]:
        """What becomes of each market of the copy, and of those that are new: ascending by id, as before."""
        for market_id, line, values in _joined(with_ids(old), sorted(self.changed.items())):
            kept = None if self.gone and digest_of(market_id) in self.gone else line
            yield Change(market_id, _line_of((properties(kept) if kept else {}) | values) if values else kept, line)


def _joined(left: Iterable[tuple[str, Any]], right: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any, Any]]:
    """What both have under each id, None where there is nothing; they ascend by id."""
    sides = ((market_id, 0, value) for market_id, value in left), ((market_id, 1, value) for market_id, value in right)
    for market_id, group in groupby(heapq.merge(*sides), key=lambda marked: marked[0]):
        found = {side: value for _, side, value in group}
        yield market_id, found.get(0), found.get(1)


def whole(lines: Iterable[bytes], state: str) -> Iterator[bytes]:
    """The same; raise StartAgainError if one is damaged or not in its place, or if they do not have this digest."""
    for change in checked(replaced((), lines), state):
        yield change.line or b""


def replaced(old: Iterable[bytes], new: Iterable[bytes]) -> Iterator[Change]:
    """What becomes of each market where these lines replace those; both ascend by id."""
    for market_id, before, line in _joined(with_ids(old), with_ids(new)):
        yield Change(market_id, line, before)


def with_ids(lines: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Each line with the id of its market; raise StartAgainError where one is damaged, or does not ascend."""
    last = ""
    try:
        for line in lines:
            _, market_id = first_value(line)
            if market_id <= last:
                raise ValueError
            last = market_id
            yield market_id, line
    except MALFORMED:
        raise StartAgainError("a line is damaged, or not in its place") from None


def checked(found: Iterable[Change], state: str) -> Iterator[Change]:
    """The same; raise StartAgainError at the end if the lines that they lead to do not have this digest."""
    digest = hashlib.sha256()
    for change in found:
        digest.update(change.line or b"")
        yield change
    if digest.hexdigest() != state:
        raise StartAgainError("the digest of the result differs from the site's")


def spool(found: Iterable[Change], file: BinaryIO) -> None:
    """Write what really changes into a file, however much that is."""
    file.seek(0)
    file.truncate()
    for change in found:
        if change.line != change.line_before:
            texts = [one and one.decode() for one in (change.line, change.line_before)]
            file.write(json.dumps([change.id, *texts]).encode() + b"\n")


def spooled(file: BinaryIO) -> Iterator[Change]:
    """The changes in such a file."""
    file.seek(0)
    for text in file:
        market_id, *lines = json.loads(text)
        yield Change(market_id, *(one and one.encode() for one in lines))
