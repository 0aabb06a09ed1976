"""The record in the store: what is published, and who is publishing. Pure.

It is replaced by conditional puts only, and always before the objects it describes: whatever an interrupted publisher
left behind, the next one finds in the record.
"""

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import chain
from typing import Final, Literal, Self, TypeVar

from pydantic import Field
from pydantic_core import from_json

from generator.errors import StoreError
from generator.models import replaced
from generator.tree import manifest, stored
from generator.tree.blocklist import Hold
from generator.tree.manifest import Current, Manifest, Retired, RetiredGenerations, SiteKeyOf, Slugs
from generator.tree.stored import Instant, StoredModel

KEY: Final = "manifest.json"
#: Raised when an older program could misread the record.
FORMAT: Final = 2
#: How long after the end of a publisher its last requests may take effect. Stores refuse signatures that are older than
#: a quarter of an hour, and no proxy holds a request for longer than this.
IN_FLIGHT: Final = timedelta(hours=1)

#: Stands for the parts of a former program's large record, which this one does not read.
FORMER_STATE: Final = "former"
#: What only the root of a former program's large record says, or says in another way.
_FORMER: Final = frozenset({"retirements", "staleShards", "due"})
#: What to do about a record that cannot be parsed.
_REMEDY: Final = (
    "if the target is right, `public-markets publish --verify` checks every object and writes the record anew"
)
_MOVING: Final = "`public-markets rebuild --verify` brings it over"


#: The first and the last position of chunks that the current generation has, too. No name is like this: each has a
#: digest of 32 hexadecimal digits in it.
_RANGE: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
Value = TypeVar("Value")


class DamagedStateError(StoreError):
    """A state or an intent that the record names is missing or altered, or the record is a former program's."""

    def __init__(self, store: str, key: str, *, is_missing: bool, is_former: bool = False) -> None:
        found = "missing" if is_missing else "written by an earlier version" if is_former else "altered"
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


class Intent(StoredModel):
    """What a large record says of unfinished work: how it differs from the state, and the objects it touches.

    `retired` are the generations that the state has otherwise or not at all, `gone` those (list and name) that it has
    and the record does not. `markets`, `slugs`, `site_keys` and `members` are the rows that differ.
    """

    touched: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    retired: RetiredGenerations = Field(default=(), exclude_if=operator.not_)
    gone: tuple[tuple[str, str], ...] = Field(default=(), exclude_if=operator.not_)
    markets: Mapping[str, tuple[str, ...]] = Field(default_factory=dict, exclude_if=operator.not_)
    slugs: Slugs = Field(default_factory=dict, exclude_if=operator.not_)
    site_keys: SiteKeyOf = Field(default_factory=dict, exclude_if=operator.not_)
    members: Mapping[str, tuple[str, ...]] = Field(default_factory=dict, exclude_if=operator.not_)
    due: RetiredGenerations = Field(default=(), exclude_if=operator.not_)

    @classmethod
    def of(cls, before: Manifest, wanted: "Published", touched: tuple[str, ...]) -> Self:
        """How a record differs from one with this state."""
        built = wanted.built
        known, names = {entry.pair: entry for entry in before.retired}, {entry.pair for entry in built.retired}
        return cls(
            touched=touched,
            retired=_packed((entry for entry in built.retired if known.get(entry.pair) != entry), before),
            gone=tuple(pair for pair in known if pair not in names),
            markets=_differing(before.markets, built.markets),
            slugs=_differing(before.slugs, built.slugs),
            site_keys=_differing(before.site_keys, built.site_keys),
            members=_differing(before.members, built.members),
            due=_packed(wanted.due, before),
        )

    def applied_to(self, published: "Published") -> "Published":
        """The record with this intent; `published` has the state."""
        built = published.built
        left_out = {entry.pair for entry in self.retired}.union(self.gone)
        built = replaced(
            built,
            retired=(
                *(entry for entry in built.retired if entry.pair not in left_out),
                *_unpacked(self.retired, built),
            ),
            markets=_updated(built.markets, self.markets),
            slugs=_updated(built.slugs, self.slugs),
            site_keys=_updated(built.site_keys, self.site_keys),
            members=_updated(built.members, self.members),
        )
        work = replaced(published.work, touched=self.touched) if published.work else None
        due = _unpacked(self.due, published.built)
        return replaced(published, built=built, work=work, due=due, intent=None)


def _packed(entries: Iterable[Retired], built: Manifest) -> tuple[Retired, ...]:
    """The entries with `first-last` for chunks that stand at these positions of their list's current generation."""
    places = {
        name: {chunk: place for place, chunk in enumerate(current.chunks)} for name, current in built.current.items()
    }

    def ranges(entry: Retired) -> Iterator[str]:
        run: list[int] = []
        for chunk in entry.chunks:
            place = places.get(entry.list, {}).get(chunk)
            if run and place != run[-1] + 1:
                yield f"{run[0]}-{run[-1]}"
                run = []
            if place is None:
                yield chunk
            else:
                run.append(place)
        if run:
            yield f"{run[0]}-{run[-1]}"

    return tuple(entry.with_chunks(tuple(ranges(entry))) for entry in entries)


def _unpacked(entries: Iterable[Retired], built: Manifest) -> tuple[Retired, ...]:
    """The entries with the chunks that ranges stand for."""

    def names(entry: Retired, part: str) -> Sequence[str]:
        found, current = _RANGE.fullmatch(part), built.current.get(entry.list)
        return current.chunks[int(found[1]) : int(found[2]) + 1] if found and current else (part,)

    return tuple(
        entry.with_chunks(tuple(chain.from_iterable(names(entry, part) for part in entry.chunks))) for entry in entries
    )


def _differing(before: Mapping[str, Value], now: Mapping[str, Value]) -> dict[str, Value]:
    return {key: value for key, value in now.items() if before.get(key) != value}


def _updated(before: Mapping[str, Value], more: Mapping[str, Value]) -> Mapping[str, Value]:
    return dict(sorted({**before, **more}.items())) if more else before


class Published(StoredModel):
    """The state of a store. `sequence` counts its changes.

    `built` is the manifest of what is published; it is incomplete while first pages are being replaced. `etags` are the
    store's ETags of the mutable objects. `due` are generations that are no longer retained and still to be deleted.
    After a withdrawal, `are_caches_stale` until a CDN was invalidated, by whichever run first knows one, and
    `are_versions_kept` until the old versions of objects were deleted. `are_copies_long`: immutable objects were put
    while a CDN was known, so caches may keep them for a year. `probed_at` is when the store last proved that it honours
    conditional puts. `doubted_until` then (RFC 3339, UTC), requests of publishers that were cut short, or got no
    answer, may take effect; it is forgotten by the first run that lists the store after it. `is_held` says that a hold
    was set since the last build was published, so the blocked list must be read after the record. A former program kept
    the `hold` here.

    Of a large record, only the root is replaced: `built` is then the header of the manifest, whose `state` names the
    object that says the rest, with the ETags; `previous` is the one before, `stale` those before it, each with the
    instant from which on nothing named it. `intent` is, or names the object that says, what a publisher does.
    """

    format: int = FORMAT
    sequence: int
    built: Manifest
    etags: Mapping[str, str]
    work: Work | None = None
    due: RetiredGenerations = ()
    are_caches_stale: bool = False
    probed_at: Instant | Literal[""] = ""
    doubted_until: Instant | Literal[""] = Field(default="", exclude_if=operator.not_)
    are_versions_kept: bool = Field(default=False, exclude_if=operator.not_)
    are_copies_long: bool = Field(default=False, exclude_if=operator.not_)
    intent: Intent | str | None = Field(default=None, exclude_if=operator.not_)
    previous: str = Field(default="", exclude_if=operator.not_)
    stale: Mapping[str, Instant] = Field(default_factory=dict, exclude_if=operator.not_)
    is_held: bool = Field(default=False, exclude_if=operator.not_)
    hold: Hold | None = Field(default=None, exclude_if=operator.not_)

    def encoded(self) -> bytes:
        """The object's bytes."""
        return self.model_dump_json(by_alias=True).encode() + b"\n"

    @property
    def is_root(self) -> bool:
        """Whether this is the root of a large record, which names the rest."""
        return bool(self.built.state or self.built.market_count)

    def named(self) -> frozenset[str]:
        """The names of the objects that this root names."""
        intent = self.intent if isinstance(self.intent, str) else ""
        return frozenset((self.built.state, self.previous, intent)) - {""}

    def due_generations(self) -> dict[tuple[str, str], Current]:
        """The generations that are due, by list and name."""
        return {entry.pair: entry for entry in self.due}

    def unfinished(self) -> frozenset[str]:
        """The mutable objects of unknown content: a publisher that is at work or was interrupted may replace them."""
        return frozenset(self.work.touched) if self.work else frozenset()

    @property
    def is_doubted(self) -> bool:
        """Whether the store may hold what the record does not say: of a publisher cut short, or a former program."""
        return bool(self.doubted_until) or self.work is not None or self.built.may_have_archive

    def is_settled(self, now: str) -> bool:
        """Whether nobody is at work or left work behind, and no run need note that a doubt has ended."""
        return self.work is None and now <= (self.doubted_until or now)

    def holds_copies(self, *, has_cdn: bool) -> bool:
        """Whether copies of withdrawn markets may remain that a run can end; `has_cdn` says that it knows a CDN.

        A run without one that withdraws nothing has nothing to do, so that a site that has none stays cheap to publish.
        """
        return self.are_versions_kept or (self.are_caches_stale and has_cdn)


def decoded(content: bytes) -> Published:
    """Parse the record without its state; raise ValueError if it is damaged, foreign or of another format."""
    stored.require_format(content, FORMAT, manifest.OLDEST_FORMAT)
    said = from_json(content)
    if isinstance(said, dict) and isinstance(built := said.get("built"), dict) and "shardNames" in built:
        # The root of a former program's large record: it says whose site this is, and how large and old it is.
        said = {name: value for name, value in said.items() if name not in _FORMER}
        said["built"] = {name: value for name, value in built.items() if name != "shardNames"}
        said["built"] |= {"retired": [], "state": FORMER_STATE}
    if isinstance(said, dict) and isinstance(late := said.get("abandoned"), list):
        # A former program named what requests may still do, each until then.
        untils = [str(entry.get("until")) for entry in late if isinstance(entry, dict)]
        said = {name: value for name, value in said.items() if name != "abandoned"}
        said["doubtedUntil"] = max(untils, default="")
    return replaced(Published.model_validate(said), format=FORMAT)


def fault(error: ValueError, content: bytes) -> str:
    """What is wrong with a record that cannot be parsed, and what to do."""
    return stored.fault(error, content, _REMEDY, _MOVING)
