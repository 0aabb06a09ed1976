"""The record in the store: what is published, and who is publishing. Pure.

It is replaced by conditional puts only, and always before the objects it describes: whatever an interrupted publisher
left behind, the next one finds in the record.
"""

from collections.abc import Mapping
from typing import Final

from pydantic import Field

from generator.tree import manifest
from generator.tree.manifest import Current, Manifest, Retired, StoredModel

KEY: Final = "manifest.json"
#: Raised when an older program could misread the record.
FORMAT: Final = 1


class Work(StoredModel):
    """A publisher at work.

    `owner` is a random id of the run, `process` the identity of its process, `who` its name in messages. `touched` are
    the mutable objects it puts or deletes. Times are the store's.
    """

    owner: str
    process: str
    who: str
    since: str
    deadline: str
    touched: tuple[str, ...]


class Published(StoredModel):
    """The state of a store. `sequence` counts its changes.

    `built` is the manifest of what is published; it is incomplete while first pages are being replaced. `etags` are the
    store's ETags of the mutable objects. `due` are generations that are no longer retained and still to be deleted.
    `are_caches_stale` until the CDN was invalidated after a withdrawal. `probed_at` is when the store last proved that
    it honours conditional puts.
    """

    format: int = FORMAT
    sequence: int
    built: Manifest
    etags: Mapping[str, str]
    work: Work | None = None
    #: Stored as `doomed`, its name in the first version.
    due: tuple[Retired, ...] = Field(default=(), alias="doomed")
    are_caches_stale: bool = False
    probed_at: str = ""

    def encoded(self) -> bytes:
        """The object's bytes."""
        return self.model_dump_json(by_alias=True).encode() + b"\n"

    def due_generations(self) -> dict[tuple[str, str], Current]:
        """The generations that are due, by list and name."""
        return {(entry.list, entry.generation): entry for entry in self.due}

    def unfinished(self) -> frozenset[str]:
        """The mutable objects of unknown content: a publisher that is at work or was interrupted may replace them."""
        return frozenset(self.work.touched) if self.work else frozenset()


def decoded(content: bytes) -> Published:
    """Parse the record; raise ValueError if it is damaged, foreign or of another format."""
    found = manifest.format_of(content)
    if found != FORMAT:
        raise ValueError(f"format {found}, this program knows {FORMAT}")
    return Published.model_validate_json(content)
