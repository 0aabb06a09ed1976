"""What readers of downloads find: all markets of the dump, and the steps of the change feed that lead to it."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from pydantic import TypeAdapter

from generator.api import downloads, keys
from generator.api.changes import ChangesHead
from generator.api.downloads import DownloadFile, DumpHead
from generator.downloads import dump, market_lines
from tests.downloads import states
from tests.support.faults import Seen
from tests.support.readers import parquet
from tests.support.sites.builds import text_of

#: Objects by key.
Objects = Mapping[str, bytes]
_JSON = TypeAdapter(dict)
#: A file in an SQL text: what is below the address of files.
_NAMED = re.compile(rb"/(v1/dumps/[^']+)'")
#: The lines of a dump by the ids of their markets.
Lines = dict[str, bytes]


@lru_cache(maxsize=20_000)
def readable(key: str, body: bytes) -> bytes:
    """What the object tells a reader, who opens compressed files; nothing if it is damaged."""
    try:
        return text_of(key, body)
    except Exception:  # noqa: BLE001 - of three libraries; the check of the head that names it fails
        return b""


def faults(objects: Objects) -> Iterator[str]:
    """How the heads of the downloads fail to lead to what they promise."""
    dumped, feed = DumpHead.found_by(objects.get), ChangesHead.found_by(objects.get)
    for name, head in ((keys.DUMPS, dumped), (keys.CHANGES, feed)):
        if head is None and keys.head(name) in objects:
            yield f"the head of {name} is damaged"
    named = [*(dumped.files() if dumped else ()), *([feed.dump, *feed.steps] if feed else ())]
    lost = sorted({_kind(file.key) for file in named if not _is_whole(objects, file)})
    yield from (f"a head leads to a file that is missing or damaged: {kind}" for kind in lost)
    lost = sorted({_kind(key) for key in attached(objects) if key not in objects})
    yield from (f"attach.sql names a file that is missing: {kind}" for kind in lost)
    if feed and feed.serial <= len(feed.steps):
        yield "the change feed has more steps than serials"


def attached(objects: Objects) -> list[str]:
    """The keys of the files that `attach.sql` names."""
    return [key.decode() for key in _NAMED.findall(objects.get(keys.ATTACH, b""))]


def markets(objects: Objects) -> tuple[Seen, ...] | None:
    """The markets of the dump in its order, which every form and table of it must have; None if it cannot be read."""
    head = DumpHead.found_by(objects.get)
    if head is None or not all(_is_whole(objects, file) for file in head.files()):
        return None
    lines = lines_of(objects, head.ndjson.key) or {}
    if head.parquet:
        tables = [_owners(objects[file.key]) for file in head.tables()]
        if _owners(objects[head.parquet.key]) != lines.keys() or not all(found <= lines.keys() for found in tables):
            return None
    return seen(lines)


@lru_cache(maxsize=1_000)
def _owners(file: bytes) -> set[str]:
    return parquet.owners(file)


def lines_of(objects: Objects, key: str) -> Lines | None:
    """The lines of a dump; None if it cannot be read."""
    try:
        return dict(_lines(objects.get(key, b"")))
    except ValueError:
        return None


@lru_cache(maxsize=1_000)
def _lines(dumped: bytes) -> Lines:
    return {market_lines.id_of(line): line for line in dump.lines([dumped])}


def seen(lines: Lines) -> tuple[Seen, ...]:
    """What lists show of these markets, by id."""
    found = [_JSON.validate_json(line) for line in lines.values()]
    return tuple((market["id"], market["question"], market["status"]) for market in found)


def begun(objects: Objects) -> Iterator[tuple[tuple[str, int, str], tuple[object, ...]]]:
    """What a reader who has read the heads relies on: the file of the dump, and the place in the change feed."""
    dumped, feed = DumpHead.found_by(objects.get), ChangesHead.found_by(objects.get)
    if dumped and (lines := lines_of(objects, dumped.ndjson.key)) is not None:
        yield (keys.DUMPS, 0, dumped.ndjson.name), seen(lines)
    if feed and (lines := lines_of(objects, feed.dump.key)) is not None:
        yield (keys.CHANGES, feed.serial, feed.session), (*lines.items(),)


def is_in_session(objects: Objects, session: str) -> bool:
    """Whether the feed is in this session; a follower of another one begins again."""
    feed = ChangesHead.found_by(objects.get)
    return feed is not None and feed.session == session


def leads_astray(objects: Objects, serial: int, had: tuple[object, ...]) -> bool:
    """Whether the steps lead a follower, who had these lines at a serial of the session, to another state."""
    feed = ChangesHead.found_by(objects.get)
    assert feed
    if serial < feed.serial - len(feed.steps):
        return False  # the follower begins with the dump
    lines: Lines = dict(had)  # type: ignore[arg-type]
    try:
        for step in feed.steps[len(feed.steps) - (feed.serial - serial) :]:
            lines = states.applied(lines, objects[step.key])
    except (KeyError, ValueError):
        return True
    return serial > feed.serial or lines != lines_of(objects, feed.dump.key)


def _is_whole(objects: Objects, file: DownloadFile) -> bool:
    body = objects.get(file.key)
    return body is not None and downloads.is_named_by(file.key, body) and len(body) == file.size


def _kind(key: str) -> str:
    """The kind of a file of a download."""
    return key.split("/")[2] if keys.DUMPS in key else "step"
