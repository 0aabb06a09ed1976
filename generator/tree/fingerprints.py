"""What the details in the output folder were made of, so that a build need not read again what did not change.

The file is saved after the details have moved into place and before the manifest is complete. So it never says more
than the disk holds, if the manifest is complete and of the same build.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import ValidationError

from generator.tree.folder import Output
from generator.tree.manifest import Manifest
from generator.tree.stored import StoredModel


class Made(NamedTuple):
    """What one detail was made of: the digests of its fingerprint, its size in bytes, and its window of fills.

    `changed` says when the file system last changed each of its files, in nanoseconds; it is empty until they are in
    place.
    """

    version: str
    market: str
    size: int
    fills24h: int
    until: str
    changed: tuple[int, ...] = ()


class Fingerprints(StoredModel):
    """What the build of `as_of` made each detail of, by market id; `shape` stands for the program and its settings.

    Markets with quarantined rows or remarks are left out: every build must read them, to report them.
    """

    as_of: str
    shape: str
    details: Mapping[str, Made]

    def stamped(self, folder: Output, manifest: Manifest) -> "Fingerprints":
        """The same, now that every file is in place."""
        details = {
            market_id: made
            if made.changed
            else made._replace(changed=stamps(folder, manifest.details(market_id), made))
            for market_id, made in self.details.items()
        }
        return self.model_copy(update={"details": details})

    def encoded(self) -> bytes:
        """The file's bytes: the same content gives the same bytes."""
        return self.model_dump_json(by_alias=True).encode() + b"\n"


def stamps(folder: Output, keys: Iterable[str], made: Made) -> tuple[int, ...]:
    """When the files of a detail last changed; empty unless all of them are in place."""
    found = [folder.changed_at(key, made.size) for key in keys]
    return tuple(stamp for stamp in found if stamp is not None) if None not in found else ()


def parsed(content: bytes | None) -> Fingerprints | None:
    """The content of a file; None if it is missing, damaged or of another version."""
    try:
        return Fingerprints.model_validate_json(content) if content else None
    except ValidationError:
        return None
