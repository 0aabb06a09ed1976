"""What the details in the output folder were made of, so that a build need not read again what did not change.

The file is saved after the details have moved into place and before the manifest is complete. So it never says more
than the disk holds, if the manifest is complete and of the same build. A large one keeps what it says of markets in
shards named by their content, so that a build writes only those that changed; if one is missing, nothing is known.
"""

import hashlib
import operator
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple
from zlib import crc32

from pydantic import Field, ValidationError
from pydantic_core import from_json, to_json

from generator.models import replaced
from generator.tree import files
from generator.tree.folder import Output
from generator.tree.stored import StoredModel

#: Files of fewer details stay whole.
LEAST: Final = 1_000
#: One market in so many begins a shard: a change writes about 10 KB then, and there are not too many files.
_MEAN: Final = 128
#: Hexadecimal digits of a shard's name.
_NAME_LENGTH: Final = 24
_NAME: Final = re.compile(rf"[0-9a-f]{{{_NAME_LENGTH}}}", re.ASCII)


class MadeOf(NamedTuple):
    """What one detail was made of: the digests of its fingerprint, its size in bytes, and its window of fills.

    `row` is the digest of the version of the market's row, of which `item` was made: the plain values of what lists
    show. Both are empty if the next build must read that row.
    """

    version: str
    market: str
    size: int
    fills24h: int
    until: str
    row: str = ""
    item: tuple[Any, ...] = ()


class Fingerprints(StoredModel):
    """What the build of `as_of` made each detail of, by market id; `shape` stands for the program and its settings.

    Markets with quarantined rows or remarks are left out: every build must read them, to report them. A large file has
    the names of its `shards` in place of `details`. `digest` is that of everything else.
    """

    as_of: str
    shape: str
    details: Mapping[str, MadeOf]
    shards: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    digest: str = ""

    def encoded(self) -> bytes:
        """The file's bytes: the same content gives the same bytes."""
        return replaced(self, digest=self.own_digest()).model_dump_json(by_alias=True).encode() + b"\n"

    def own_digest(self) -> str:
        """The digest of everything else."""
        return hashlib.sha256(replaced(self, digest="").model_dump_json().encode()).hexdigest()


def parsed(content: bytes | None) -> Fingerprints | None:
    """What the file itself says; None if it is missing, altered or of another version."""
    try:
        found = Fingerprints.model_validate_json(content) if content else None
    except ValidationError:
        return None
    return replaced(found, digest="") if found and found.digest == found.own_digest() else None


def load(folder: Output) -> Fingerprints | None:
    """What a folder says of its details; None if the file or a shard is missing, damaged or of another version."""
    found = parsed(folder.read(files.FINGERPRINTS))
    if found is None or not found.shards:
        return found
    details = dict[str, MadeOf]()
    for name in found.shards:
        if (shard := _shard(folder, name)) is None:
            return None
        details.update(shard)
    return replaced(found, details=details, shards=())


def _shard(folder: Output, name: str) -> dict[str, MadeOf] | None:
    """What a shard says; None if it is missing, damaged or of another version."""
    body = folder.read(_key(name))
    if body is None or _name_of(body) != name:
        return None
    try:
        return dict(_joined(body))
    except (KeyError, TypeError, ValueError):
        return None


def save(folder: Output, made: Fingerprints) -> None:
    """Save what the details were made of; write only what changed, and delete stale shards."""
    names = tuple(_put_shards(folder, made.details)) if _is_large(folder, made) else ()
    _save(folder, replaced(made, details={}, shards=names) if names else made)


def _save(folder: Output, made: Fingerprints) -> None:
    """Save the file, and delete the shards that it does not name."""
    if not (made.details or made.shards):
        if folder.has(files.FINGERPRINTS):
            folder.discard_key(files.FINGERPRINTS)
    elif (content := made.encoded()) != folder.read(files.FINGERPRINTS):
        folder.save(files.FINGERPRINTS, content)
    for stale in set(folder.names(files.FINGERPRINT_SHARDS)) - {*made.shards}:
        if _NAME.fullmatch(stale):
            folder.discard_key(_key(stale))


def redate(folder: Output, as_of: str) -> None:
    """Have the file say the same of a later build, which made nothing of anything."""
    if found := parsed(folder.read(files.FINGERPRINTS)):
        folder.save(files.FINGERPRINTS, replaced(found, as_of=as_of).encoded())


def keep_only(folder: Output, markets: Container[str]) -> None:
    """Forget all other markets (ids): nothing of a market that was taken down may stay."""
    nothing = Fingerprints(as_of="", shape="", details={})
    found = parsed(folder.read(files.FINGERPRINTS)) or nothing
    if not found.shards:
        save(folder, replaced(found, details=_only(found.details, markets)))
        return
    names = list[str]()
    for name in found.shards:
        if (shard := _shard(folder, name)) is None:
            save(folder, nothing)
            return
        kept = _only(shard, markets)
        names += [name] if len(kept) == len(shard) else _put_shards(folder, kept)
    _save(folder, replaced(found, shards=tuple(names)))


def _only(details: Mapping[str, MadeOf], markets: Container[str]) -> dict[str, MadeOf]:
    return {market_id: made for market_id, made in details.items() if market_id in markets}


def _is_large(folder: Output, made: Fingerprints) -> bool:
    is_split = folder.has(files.FINGERPRINT_SHARDS)
    return bool(made.details) and len(made.details) >= (LEAST // 2 if is_split else LEAST)


def _put_shards(folder: Output, details: Mapping[str, MadeOf]) -> Iterator[str]:
    """Put the shards that are not in place; yield the names of all."""
    # Not flushed to the disk: a shard that a crash damages no longer matches its name, and then nothing is known.
    for ids in _grouped(sorted(details)):
        body = to_json({"ids": ids, "made": [*zip(*(details[market_id] for market_id in ids), strict=True)]})
        name = _name_of(body)
        if folder.put(_key(name), body):
            folder.move(_key(name))
        yield name


def _grouped(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Sorted ids in groups: adding or removing one changes a group or two, however many there are."""
    borders = [place for place, market_id in enumerate(ids) if place and not crc32(market_id.encode()) % _MEAN]
    return (ids[first:last] for first, last in pairwise([0, *borders, len(ids)] if ids else []))


def _name_of(body: bytes) -> str:
    """The name of a shard: shards of equal names are equal."""
    return hashlib.sha256(body).hexdigest()[:_NAME_LENGTH]


def _joined(body: bytes) -> Iterator[tuple[str, MadeOf]]:
    """What a shard says of markets, by id: the columns of `MadeOf`, which reads faster than rows."""
    content = from_json(body)
    *columns, items = content["made"]
    return zip(content["ids"], map(MadeOf, *columns, map(tuple, items)), strict=True)


def _key(name: str) -> str:
    return f"{files.FINGERPRINT_SHARDS}{name}"
