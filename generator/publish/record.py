"""The record in the store: what is published, and who is publishing. Pure.

It is replaced by conditional puts only, and always before the objects it describes: whatever an interrupted publisher
left behind, the next one finds in the record.
"""

import operator
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, Literal

from pydantic import Field

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.api.forms import instant
from generator.errors import StoreError
from generator.models import replaced
from generator.tree import generations, manifest, stored
from generator.tree.blocklist import Hold
from generator.tree.manifest import Current, Manifest, Retired, RetiredGenerations
from generator.tree.stored import Instant, StoredModel

KEY: Final = "manifest.json"
#: Raised when an older program could misread the record.
FORMAT: Final = 2
#: How long after the end of a publisher its last requests may take effect. Stores refuse signatures that are older than
#: a quarter of an hour, and no proxy holds a request for longer than this.
IN_FLIGHT: Final = timedelta(hours=1)

#: The most keys of requests without an answer that the record names, some 100 bytes each: those of one deletion.
MOST_NAMED: Final = 1_000

#: What to do about a record that cannot be parsed.
_REMEDY: Final = (
    "if the target is right, `public-markets publish --verify` checks every object and writes the record anew"
)
_MOVING: Final = "`public-markets rebuild --verify` brings it over"


class DamagedShardError(StoreError):
    """A shard that the record names is missing or altered, or an index that says what the record leaves out."""

    def __init__(self, store: str, key: str, *, is_missing: bool) -> None:
        found = "missing" if is_missing else "altered"
        super().__init__(
            f"{store}: {key}: {found}; it is part of the record, which `public-markets rebuild --verify` writes anew"
        )


class Work(StoredModel):
    """A publisher at work.

    `owner` is a random id of the run, `process` the identity of its process, `who` its name in messages. `touched` are
    the mutable objects it puts or deletes. Times are the store's.
    """

    owner: str
    process: str
    who: str
    since: Instant
    deadline: Instant
    touched: tuple[str, ...]


class Abandoned(StoredModel):
    """What requests of an earlier publisher may still do: they may take effect `until` then (RFC 3339, UTC).

    Of one that was cut short, `touched` are the mutable objects that it meant to put or delete, `generations` those it
    may not have completed. `due` are those it may delete; their chunks are only the ones that no other generation had.

    Of one that ended well, `touched` and `immutable` are the objects of its requests that got no answer. If there are
    more than the record can name, `is_anything`: then they are looked for in the whole store.
    """

    until: Instant
    touched: tuple[str, ...]
    generations: RetiredGenerations
    due: RetiredGenerations = Field(default=(), exclude_if=operator.not_)
    immutable: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    is_anything: bool = Field(default=False, exclude_if=operator.not_)

    def beside(self, later: "Abandoned") -> "Abandoned | None":
        """What this says beside an entry that holds for longer; None if that says it all."""
        if self.until > later.until:
            return self
        touched, immutable = frozenset(later.touched), frozenset(later.immutable)
        update = {
            "touched": tuple(key for key in self.touched if key not in touched),
            "immutable": tuple(key for key in self.immutable if key not in immutable),
            "generations": _others(self.generations, later.generations),
            "due": _others(self.due, later.due),
            "is_anything": self.is_anything and not later.is_anything,
        }
        return replaced(self, **update) if any(update.values()) else None


def _others(entries: Iterable[Retired], known: Iterable[Retired]) -> tuple[Retired, ...]:
    """The entries that are not among the known ones, or have more chunks."""
    chunks = {entry.pair: {*entry.chunks} for entry in known}
    return tuple(
        entry for entry in entries if entry.pair not in chunks or not chunks[entry.pair].issuperset(entry.chunks)
    )


class Published(StoredModel):
    """The state of a store. `sequence` counts its changes.

    `built` is the manifest of what is published; it is incomplete while first pages are being replaced. `etags` are the
    store's ETags of the mutable objects. `due` are generations that are no longer retained and still to be deleted.
    After a withdrawal, `are_caches_stale` until a CDN was invalidated, by whichever run first knows one, and
    `are_versions_kept` until the old versions of objects were deleted. `are_copies_long`: immutable objects were put
    while a CDN was known, so caches may keep them for a year. `probed_at` is when the store last proved that
    it honours conditional puts. `abandoned` is what requests of earlier publishers may still do. `stale_shards` are
    those that the record no longer names and that are still to be deleted. `retirements` says, for each shard of
    retired generations, when these were retired; `built` has the retired generations that are in no shard. `is_held`
    says that a hold was set since the last build was published, so the blocked list must be read after the record. A
    former program kept the `hold` here.
    """

    format: int = FORMAT
    sequence: int
    built: Manifest
    etags: Mapping[str, str]
    work: Work | None = None
    due: RetiredGenerations = ()
    are_caches_stale: bool = False
    probed_at: Instant | Literal[""] = ""
    abandoned: tuple[Abandoned, ...] = Field(default=(), exclude_if=operator.not_)
    are_versions_kept: bool = Field(default=False, exclude_if=operator.not_)
    are_copies_long: bool = Field(default=False, exclude_if=operator.not_)
    stale_shards: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    retirements: Mapping[str, Instant] = Field(default_factory=dict, exclude_if=operator.not_)
    is_held: bool = Field(default=False, exclude_if=operator.not_)
    hold: Hold | None = Field(default=None, exclude_if=operator.not_)

    def encoded(self) -> bytes:
        """The object's bytes."""
        return self.model_dump_json(by_alias=True).encode() + b"\n"

    def named_shards(self) -> frozenset[str]:
        """The names of all shards that this root names."""
        return frozenset((*self.built.shard_names, *self.retirements)) - {""}

    def due_generations(self) -> dict[tuple[str, str], Current]:
        """The generations that are due, by list and name."""
        return {entry.pair: entry for entry in self.due}

    def unfinished(self) -> frozenset[str]:
        """The mutable objects of unknown content: a publisher that is at work or was interrupted may replace them."""
        return frozenset(self.work.touched) if self.work else frozenset()

    def incomplete(self, now: str) -> tuple[Retired, ...]:
        """The generations that runs cut short had begun so long ago that no request of theirs is under way."""
        if self.work is None or self.built.complete:
            return ()
        return tuple(entry for entry in self.built.retired if entry.partial and entry.is_due(now, IN_FLIGHT))

    def is_settled(self) -> bool:
        """Whether nobody is at work, or left work behind."""
        return self.work is None and not self.abandoned

    def holds_copies(self, *, has_cdn: bool) -> bool:
        """Whether copies of withdrawn markets may remain that a run can end; `has_cdn` says that it knows a CDN.

        A run without one that withdraws nothing has nothing to do, so that a site that has none stays cheap to publish.
        """
        return self.are_versions_kept or (self.are_caches_stale and has_cdn)

    def abandoned_at(self, now: str, *, is_sharded: bool = False) -> Abandoned | None:
        """What the publisher at work will have abandoned if another takes over `now`; None if it was done.

        Of a record that `is_sharded`, it may still put shards.
        """
        if self.work is None:
            return None
        is_committed = self.built.complete and not self.work.touched
        if is_committed and not self.due and not is_sharded:
            return None
        begun = () if self.built.complete else (entry for entry in self.built.retired if entry.partial)
        kept = generations.chunk_keys(self.built.generations())
        return Abandoned(
            until=instant(datetime.fromisoformat(now) + IN_FLIGHT),
            touched=self.work.touched,
            generations=tuple(begun),
            due=tuple(generations.without_chunks(entry.list, entry, kept) for entry in self.due),
        )


def unanswered(asked: Collection[str], now: str) -> Abandoned | None:
    """What requests to these keys may still do that got no answer until `now`; None if there were none."""
    if not asked:
        return None
    found = sorted(key for key in asked if key.startswith(f"{API_VERSION}/"))
    named = found if len(found) <= MOST_NAMED else []
    immutable = tuple(filter(keys.is_immutable, named))
    return Abandoned(
        until=instant(datetime.fromisoformat(now) + IN_FLIGHT),
        touched=tuple(key for key in named if not keys.is_immutable(key)),
        generations=(),
        immutable=immutable,
        is_anything=len(named) < len(found),
    )


def decoded(content: bytes) -> Published:
    """Parse the record without its shards; raise ValueError if it is damaged, foreign or of another format."""
    stored.require_format(content, FORMAT, manifest.OLDEST_FORMAT)
    return replaced(Published.model_validate_json(content), format=FORMAT)


def fault(error: ValueError, content: bytes) -> str:
    """What is wrong with a record that cannot be parsed, and what to do."""
    return stored.fault(error, content, _REMEDY, _MOVING)
