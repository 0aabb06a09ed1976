"""What a build keeps of its dump beside `v1/`, so that the next one copies what did not change. Pure."""

import hashlib
from collections.abc import Mapping
from typing import Final

from pydantic import Field, ValidationError

from generator.downloads.histories import HeldRows
from generator.downloads.segments import Segment
from generator.tree.stored import StoredModel

#: Increase it when an older program could misread the file.
FORMAT: Final = 1
_SEAL: Final = b',"digest":"'


class HistoryState(StoredModel):
    """What the files of histories hold: looked at by a build `as_of` then; the files' names, and entries by market.

    `tables` are those that the files are of, and `stated` is what these state of licence and publisher.
    """

    as_of: str
    tables: tuple[str, ...]
    files: tuple[str, ...]
    stated: str = Field("", exclude_if=lambda stated: not stated)
    markets: Mapping[str, HeldRows]


class SideFile(StoredModel):
    """The segments of dumps, by the names of these: of the newest, and of the one that it replaced.

    After a build was killed, readers may find either of them. `is_doubted`: details in place may differ from the dump.
    `links` has, by the names of Parquet files of all markets, a digest of what these have besides, such as links.
    `histories` are absent without Parquet. `maker` is the program that made the files; '' if an older one did, or a
    takedown of what another made.
    """

    format: int = FORMAT
    dumps: Mapping[str, tuple[Segment, ...]] = {}
    links: Mapping[str, str] = Field({}, alias="partitions")  # as earlier versions named it
    is_doubted: bool = False
    histories: HistoryState | None = None
    maker: str = ""

    def encoded(self) -> bytes:
        """The file's bytes, of which the last property is a digest of all before it."""
        return _sealed(self.model_dump_json(by_alias=True).encode().removesuffix(b"}"))


def decoded(content: bytes | None) -> SideFile:
    """The file with these bytes; an empty one if there is none, or none that this program can read, or it is damaged.

    Earlier versions wrote no digest.
    """
    body, seal, _ = (content or b"{}").rpartition(_SEAL)
    if seal and content != _sealed(body):
        return SideFile()
    try:
        found = SideFile.model_validate_json(body + b"}" if seal else content or b"{}")
    except ValidationError:
        return SideFile()
    return found if found.format == FORMAT else SideFile()


def _sealed(body: bytes) -> bytes:
    return body + _SEAL + hashlib.sha256(body).hexdigest().encode() + b'"}\n'
