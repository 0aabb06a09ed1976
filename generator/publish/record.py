"""The record in the store: what is published, and who is publishing. Pure.

It is replaced by conditional puts only, and written before what it speaks of: whatever a publisher that ended early
left behind is known to the next one.
"""

from collections.abc import Mapping
from typing import Final

from generator.tree import manifest
from generator.tree.manifest import Manifest, Retired, StoredModel

KEY: Final = "manifest.json"
#: Raised when an older program could misread the record.
FORMAT: Final = 1


class Work(StoredModel):
    """A publisher at work.

    `owner` is a random name of its own, `process` the identity of its process, `who` its name for people. `touched`
    are the mutable objects that it puts or deletes. Times are the store's.
    """

    owner: str
    process: str
    who: str
    since: str
    deadline: str
    touched: tuple[str, ...]


class Published(StoredModel):
    """The state of a store. `sequence` counts its changes.

    `built` is the manifest of what is there; it is not complete while first pages are being replaced. `etags` are the
    store's tokens for the mutable objects. `doomed` generations lead nowhere and are to be deleted. `are_caches_stale`
    until the CDN was told to forget what was withdrawn. `probed_at` is when the store last showed that it keeps
    conditions.
    """

    format: int = FORMAT
    sequence: int
    built: Manifest
    etags: Mapping[str, str]
    work: Work | None = None
    doomed: tuple[Retired, ...] = ()
    are_caches_stale: bool = False
    probed_at: str = ""

    def encoded(self) -> bytes:
        """The object's bytes."""
        return self.model_dump_json(by_alias=True).encode() + b"\n"

    def unfinished(self) -> frozenset[str]:
        """The mutable objects whose content is not known: a publisher that ended early may have replaced them."""
        return frozenset(self.work.touched) if self.work else frozenset()


def decoded(content: bytes) -> Published:
    """Read the object; raise ValueError for what is damaged, foreign or of another format."""
    found = manifest.format_of(content)
    if found != FORMAT:
        raise ValueError(f"format {found}, this program knows {FORMAT}")
    return Published.model_validate_json(content)
