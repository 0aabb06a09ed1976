"""What the details in the output folder were made of, so that a build need not read again what did not change.

The file is saved after the details have moved into place and before the manifest is complete. So it never says more
than the disk holds, if the manifest is complete and of the same build.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import ValidationError

from generator.tree.manifest import StoredModel


class Made(NamedTuple):
    """What one detail was made of: the digests of its fingerprint, its size in bytes, and its window of fills."""

    version: str
    market: str
    size: int
    fills24h: int
    until: str


class Fingerprints(StoredModel):
    """What the build of `as_of` made each detail of, by market id; `shape` stands for the program and its settings.

    Markets with quarantined rows or remarks are left out: every build must read them, to report them.
    """

    as_of: str
    shape: str
    details: Mapping[str, Made]

    def encoded(self) -> bytes:
        """The file's bytes: the same content gives the same bytes."""
        return self.model_dump_json(by_alias=True).encode() + b"\n"


def parsed(content: bytes | None) -> Fingerprints | None:
    """The content of a file; None if it is missing, damaged or of another version."""
    try:
        return Fingerprints.model_validate_json(content) if content else None
    except ValidationError:
        return None
