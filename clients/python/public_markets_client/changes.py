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
from itertools import groupby
from operator import itemgetter
from typing import Any, BinaryIO, Literal
from urllib.parse import urljoin

from public_markets_client.decoding import decoded
from public_markets_client.errors import AnswerError, StartAgainError
from public_markets_client.models import ChangesHead, FullMarket
from public_markets_client.requester import MALFORMED, parsed

LONGEST_LINE = 16 << 20
_PIECE = 1 << 18
_DECODER = json.JSONDecoder()
_DIGEST = re.compile(r"[0-9a-f]{64}")
#: A step is named by the first half of its digest.
_NAME = re.compile(r"[0-9a-f]{32}\.ndjson\.gz")


@dataclass(frozen=True)
class FeedFile:
    """A file that a head names; its SHA-256 digest begins with `digest`, and `size` is in bytes."""

    url: str
    size: int
    digest: str


@dataclass(frozen=True)
class Position:
    """Where in the feed a copy is, and the ETag of the head that led there, at this `url`."""

    session: str
    serial: int
    state: str
    url: str
    etag: str | None


@dataclass(frozen=True)
class FeedHead:
    """The head of the feed: where it is, and its files with their addresses in full."""

    position: Position
    dump: FeedFile
    steps: tuple[FeedFile, ...]

    def steps_since(self, position: Position) -> tuple[FeedFile, ...]:
        """The steps that lead from there to the newest state: each leads from one serial to the next."""
        here = self.position
        if position.session != here.session:
            raise StartAgainError("the site has begun a new session")
        behind = here.serial - position.serial
        if not 0 <= behind <= len(self.steps):
            raise StartAgainError(f"no steps lead from serial {position.serial} to {here.serial}")
        return self.steps[len(self.steps) - behind :]


Kind = Literal["added", "changed", "gone"]


@dataclass(frozen=True)
class Change:
    """What became of a market: its line now and before, None where there is none."""

    kind: Kind
    id: str
    line: bytes | None
    line_before: bytes | None

    @property
    def market(self) -> FullMarket | None:
        """The market as it is now; None if it is gone."""
        return None if self.line is None else decoded(FullMarket, parsed(self.line, ""))

    @property
    def before(self) -> FullMarket | None:
        """The market as it was; None if it is new."""
        return None if self.line_before is None else decoded(FullMarket, parsed(self.line_before, ""))


def head_of(values: Any, url: str, etag: str | None) -> FeedHead:
    """The head with these values, which came from `url`."""
    found = decoded(ChangesHead, values)
    if not (_DIGEST.fullmatch(found.dump.sha256) and all(_NAME.fullmatch(step.name) for step in found.steps)):
        raise AnswerError("is not the head of a change feed")
    try:
        # Addresses may be relative to the head's.
        dump_url, steps_url = urljoin(url, found.dump.url), urljoin(url, found.steps_url)
    except ValueError:
        raise AnswerError("names an address that is none") from None
    return FeedHead(
        position=Position(found.session, found.serial, found.state, url, etag),
        dump=FeedFile(dump_url, found.dump.size, found.dump.sha256),
        steps=tuple(FeedFile(steps_url + one.name, one.size, one.name.partition(".")[0]) for one in found.steps),
    )


def require_whole(file: BinaryIO, named: FeedFile) -> None:
    """Raise AnswerError if a file that was fetched is not the one that a head names."""
    file.seek(0)
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    if file.tell() != named.size:
        raise AnswerError(f"is {'longer' if file.tell() > named.size else 'shorter'} than the head says")
    if not digest.hexdigest().startswith(named.digest):
        raise AnswerError("is not the file that the head names: its digest differs")


def lines_of(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The lines of a dump or a step, which is gzip."""
    file.seek(0)
    with gzip.GzipFile(fileobj=file, mode="rb") as text:
        try:
            yield from lines_in(text, name)
        except (OSError, EOFError, zlib.error) as error:
            raise StartAgainError(f"is damaged: {error}", url=name) from None


def lines_in(text: Any, name: str) -> Iterator[bytes]:
    """The lines of a binary file; no more of a line is read than may be."""
    while line := text.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise StartAgainError(f"has a line of more than {LONGEST_LINE >> 20} MB", url=name)
        yield line


def properties(line: bytes) -> dict[str, str]:
    """The names and values of a market as they are written: '"prob"' and '0.50'."""
    text, found, end = line.decode(), dict[str, str](), 0
    while text[end] != "}":
        start = end + 1
        _, colon = _DECODER.raw_decode(text, start)
        _, end = _DECODER.raw_decode(text, colon + 1)
        found[text[start:colon]] = text[colon + 1 : end]
    return found


def _line_of(found: dict[str, str]) -> bytes:
    return ("{" + ",".join(f"{name}:{value}" for name, value in found.items()) + "}\n").encode()


def first_value(line: bytes) -> tuple[str, str]:
    """The first property of a line: the id of a market, or the digest of one that is gone."""
    (name, value), *_ = json.loads(line).items()
    if not isinstance(value, str):
        raise TypeError
    return name, value


def digest_of(market_id: str) -> str:
    """How a step names a market that is gone."""
    return hashlib.sha256(market_id.encode()).hexdigest()


class Merge:
    """The combined changes of some steps, so that one pass over the copy applies them."""

    def __init__(self) -> None:
        self.gone: set[str] = set()
        self.changed: dict[str, dict[str, str]] = {}
        self._ids: dict[str, str] = {}

    def add(self, step: Iterable[bytes], name: str) -> None:
        """Add the next step: first what is gone, then markets that changed or are new; messages name the step."""
        try:
            for line in step:
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

    def apply(self, old: Iterable[bytes]) -> Iterator[bytes]:
        """The lines of the copy after the steps: ascending by id, as before."""
        with_id = ((first_value(line)[1], line) for line in old)
        for market_id, line, values in _joined(with_id, sorted(self.changed.items())):
            is_kept = line and not (self.gone and digest_of(market_id) in self.gone)
            if values:
                yield _line_of((properties(line) if is_kept else {}) | values)
            elif is_kept:
                yield line


def _joined(left: Iterable[tuple[str, Any]], right: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any, Any]]:
    """What both have under each id, None where there is nothing; they ascend by id."""
    marked = ((market_id, 0, value) for market_id, value in left), ((market_id, 1, value) for market_id, value in right)
    for market_id, group in groupby(heapq.merge(*marked), key=itemgetter(0)):
        found = {side: value for _, side, value in group}
        yield market_id, found.get(0), found.get(1)


def differences(old: Iterable[bytes], new: Iterable[bytes], name: str) -> Iterator[Change]:
    """What became of each market, ascending by id like both arguments; messages name the copy."""
    for market_id, before, now in _joined(with_ids(old, name), with_ids(new, name)):
        if before != now:
            kind: Kind = "added" if before is None else "gone" if now is None else "changed"
            yield Change(kind, market_id, now, before)


def with_ids(lines: Iterable[bytes], name: str) -> Iterator[tuple[str, bytes]]:
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
        raise StartAgainError(f"{name} is damaged") from None


def digested(lines: Iterable[bytes], digest: "hashlib._Hash") -> Iterator[bytes]:
    """The same lines, which the digest sees pass."""
    for line in lines:
        digest.update(line)
        yield line


def spool(changes: Iterable[Change], file: BinaryIO) -> None:
    """Write changes into a file, however many there are."""
    file.seek(0)
    file.truncate()
    for change in changes:
        texts = [change.line and change.line.decode(), change.line_before and change.line_before.decode()]
        file.write(json.dumps([change.kind, change.id, *texts]).encode() + b"\n")


def spooled(file: BinaryIO) -> Iterator[Change]:
    """The changes in such a file."""
    file.seek(0)
    for text in file:
        kind, market_id, *lines = json.loads(text)
        line, before = (one.encode() if one else None for one in lines)
        yield Change(kind, market_id, line, before)
