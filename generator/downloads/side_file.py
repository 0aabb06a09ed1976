"""What a build keeps of its dump beside `v1/`, so that the next one copies what did not change. Pure."""

from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from generator.api.downloads import THINNED
from generator.downloads.histories import HeldRows
from generator.downloads.segments import Segment
from generator.tree.stored import StoredModel

#: Increase it when an older program could misread the file.
FORMAT: Final = 1


class HistoryState(StoredModel):
    """What files of full histories hold: looked at by a build `as_of` then; the files' names, and entries by market.

    `tables` are those that the files are of: an older version had fewer.
    """

    as_of: str
    tables: tuple[str, ...] = THINNED
    files: tuple[str, ...]
    markets: Mapping[str, HeldRows]


class SideFile(StoredModel):
    """The segments of dumps, by the names of these: of the newest, and of the one that it replaced.

    After a build was killed, readers may find either of them. `is_doubted`: details in place may differ from the dump.
    `partitions` has a digest of the markets of each partition, by the name of its Parquet file; and of the links in the
    file of all markets, if it has any. `histories` are absent unless they are full.
    """

    format: int = FORMAT
    dumps: Mapping[str, tuple[Segment, ...]] = {}
    partitions: Mapping[str, str] = {}
    is_doubted: bool = False
    histories: HistoryState | None = None

    def encoded(self) -> bytes:
        """The file's bytes."""
        return self.model_dump_json(by_alias=True).encode() + b"\n"


def decoded(content: bytes | None) -> SideFile:
    """The file with these bytes; an empty one if there is none, or none that this program can read."""
    try:
        found = SideFile.model_validate_json(content or b"{}")
    except ValidationError:
        return SideFile()
    return found if found.format == FORMAT else SideFile()
