"""The details that the last build left in place: which of them still hold, and which to read all the same."""

import hashlib
import secrets
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final, NamedTuple

from generator import program
from generator.api import contract, keys
from generator.config.settings import Config
from generator.config.shape import shaping
from generator.downloads.histories import HeldRows, LastHistories
from generator.markets import columns
from generator.markets.market import Fingerprint, Market
from generator.source import address
from generator.source.earlier import NOTHING_EARLIER, EarlierMarket, EarlierMarkets, Versions
from generator.tree import fingerprints, manifest
from generator.tree.fingerprints import Made
from generator.tree.folder import Output
from generator.tree.manifest import Manifest
from generator.tree.staging import Staged


class Fate(Enum):
    """What a build does with a detail: keeps it, replaces its market object, or reads all of it."""

    KEEP = auto()
    UPDATE = auto()
    READ = auto()


class InPlace(NamedTuple):
    """A detail in the folder: the digest and the size in bytes of each of its objects."""

    digest: str
    size: int


@dataclass(frozen=True)
class Sample:
    """The details that are read although they need not be: this share of them, chosen by the seed."""

    share: float
    seed: int

    @classmethod
    def chosen(cls, share: float) -> "Sample":
        """A random sample of this share of the details."""
        return cls(share, secrets.randbelow(_CHANCES))

    def has(self, market_id: str) -> bool:
        """Whether a market (id) is in it."""
        # Asked for every market, twice: a checksum that starts anywhere is chance enough, at a tenth of the time.
        return zlib.crc32(market_id.encode(), self.seed) < self.share * _CHANCES


#: The number of checksums, and of seeds.
_CHANCES: Final = 2**32


#: The sample that leaves nothing out.
EVERY_DETAIL: Final = Sample(1, 0)


def shape_of(config: Config) -> str:
    """A digest of what shapes details besides rows: which database, the settings, and the program that makes them."""
    settings = {**shaping(config), "source": address.identity(config)}
    return hashlib.sha256(contract.encode([program.maker(), settings])).hexdigest()


@dataclass(frozen=True)
class LastDetails:
    """What `previous` says of the details in a folder, and what they were made of, by market id.

    `shape` is that of the details to be built (see `shape_of`); details of another shape in the folder are not known,
    though they are in place. `times` are those of the folders of details when all this was loaded, and `trusted` the
    folders in which no file was touched since the last build. `turn` is that of this build (see `Fingerprints`).
    """

    folder: Output
    shape: str
    objects: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Made] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()
    turn: int = 0

    @classmethod
    def load(cls, folder: Output, previous: Manifest | None, shape: str, as_of: str) -> "LastDetails":
        """Load what the last build left.

        Nothing is known if that was killed, or had other settings or a later as-of, or the database tells no versions.
        """
        # A later as-of may have made remarks about future times, which an earlier one must make again.
        if previous is None or not previous.complete or previous.as_of > as_of:
            return cls(folder, shape)
        found = fingerprints.load(folder)
        if found is None or (found.as_of, found.shape) != (previous.as_of, shape):
            return cls(folder, shape, previous.objects)
        times = folder.folder_times(keys.DETAILS, keys.SLUGS)
        turn = (found.turn + (previous.as_of != as_of)) % fingerprints.TURNS  # two builds of one instant are one
        trusted = frozenset(name for name, time in found.folders.items() if times.get(name) == time)
        last = cls(folder, shape, previous.objects, found.details, times, trusted, turn)
        return replace(last, trusted=frozenset()) if last._was_trust_broken(previous) else last

    def _was_trust_broken(self, previous: Manifest) -> bool:
        """Whether a file was touched in a trusted folder: one of those whose turn it is."""
        looked_at = ((key, made) for key, made in self.known.items() if fingerprints.is_in_turn(key, self.turn))
        named = ((tuple(previous.details(market_id)), made) for market_id, made in looked_at if made.changed)
        return any(
            self._are_trusted(names) and fingerprints.stamps(self.folder, names, made) != made.changed
            for names, made in named
        )

    def _are_trusted(self, names: Iterable[str]) -> bool:
        return all(fingerprints.folder_of(name) in self.trusted for name in names)

    def without_histories_of(self, entries: Mapping[str, HeldRows]) -> "LastDetails":
        """The same, but nothing is known of the details whose histories are not those of the files in place."""
        known = {
            key: made for key, made in self.known.items() if key in entries and entries[key].version == made.version
        }
        return replace(self, known=known)

    def earlier(self, now: str, sample: Sample, blocked: Collection[str], histories: LastHistories) -> EarlierMarkets:
        """The markets of which neither row nor detail need be read if their versions are the same.

        `now` is the instant to build for, a wire timestamp. `histories` is what the files of histories hold: a market
        whose row changed since they were made has a version that the last build knew, but they may not know its close.
        """
        rows = {key: made for key, made in self.known.items() if made.item and key not in blocked}
        if not rows:
            return NOTHING_EARLIER
        try:
            markets = columns.of_plain([made.item for made in rows.values()])
            holders = {slug: market for market in markets for slug in market.categories}
            categories = {slug: market.category_names()[slug] for slug, market in holders.items()}
        except (AttributeError, KeyError, TypeError, ValueError):  # it was altered
            return NOTHING_EARLIER
        if [market.id for market in markets] != [*rows]:
            return NOTHING_EARLIER
        found = {
            market.id: EarlierMarket(Versions(rows[market.id].version, rows[market.id].row), market)
            for market in markets
            if self._is_untouched(keys.details(market.id, market.slug), rows[market.id])
            and not histories.has_other_close(market)
        }
        return EarlierMarkets(now, found, categories, sample.has)

    def of(self, wanted: Mapping[str, str | None]) -> dict[str, Made]:
        """What is known of these markets, given as slugs by id; `changed` says when their files were touched last.

        It is empty where one of them is not as the last build left it.
        """
        known = ((market_id, slug, self.known.get(market_id)) for market_id, slug in wanted.items())
        return {
            market_id: made._replace(changed=self._stamps(keys.details(market_id, slug), made))
            for market_id, slug, made in known
            if made is not None
        }

    def _is_untouched(self, names: Sequence[str], made: Made) -> bool:
        """Whether no file of a detail was touched since the last build, not even its times or rights."""
        return bool(made.changed) and self._seen(names, made) == made.changed

    def _seen(self, names: Sequence[str], made: Made) -> tuple[int, ...]:
        """When the files of a detail were touched last, as their folders or they themselves tell; empty if unknown."""
        if not made.changed or any(key not in self.objects for key in names):
            return ()
        return made.changed if self._are_trusted(names) else fingerprints.stamps(self.folder, names, made)

    def _stamps(self, names: Sequence[str], made: Made) -> tuple[int, ...]:
        """When the files of a detail were touched last; empty unless each has the bytes that the last build left."""
        found = self._seen(names, made)
        if found in (made.changed, ()):
            return found
        # A copy, a link or other rights change these times, too, and reading files is quicker than reading rows.
        self.folder.are_placed(names)
        found = fingerprints.stamps(self.folder, names, made)
        return () if None in map(self._body, names) else found

    def in_place(self, wanted: Mapping[str, str | None], known: Mapping[str, Made]) -> dict[str, InPlace]:
        """The details whose files are untouched since the last build, of markets given as slugs by id.

        `known` is what `of` says of these markets: it has looked at the files of those already.
        """
        found = ((market_id, self._size(market_id, slug, known.get(market_id))) for market_id, slug in wanted.items())
        return {
            market_id: InPlace(self.objects[keys.detail(market_id)], size)
            for market_id, size in found
            if size is not None
        }

    def _size(self, market_id: str, slug: str | None, made: Made | None) -> int | None:
        """The size of a detail whose files are untouched."""
        if made is not None:
            return made.size if made.changed else None
        names = keys.details(market_id, slug)
        sizes = {self.folder.size_if_unchanged(key) if key in self.objects else None for key in names}
        return sizes.pop() if len(sizes) == 1 else None

    def body(self, market_id: str) -> bytes | None:
        """The bytes of a detail; None unless they are those that the last build wrote."""
        return self._body(keys.detail(market_id))

    def _body(self, key: str) -> bytes | None:
        body = self.folder.read(key)
        return body if body is not None and manifest.digest(key, body) == self.objects.get(key) else None

    def hold(self, market_id: str, slug: str | None, size: int, staged: Staged) -> None:
        """Add a detail that stays in place to what is staged."""
        for key in keys.details(market_id, slug):
            staged.objects[key] = self.objects[key]
            staged.size += size

    def keep(self, market: Market, staged: Staged, changed: tuple[int, ...] = ()) -> Made:
        """Add a detail that was not read to what is staged; return what it is made of.

        `changed` says when its files were touched, if that was since the last build.
        """
        made = self.known[market.id]
        if changed:
            made = made._replace(changed=changed)
        self.hold(market.id, market.slug, made.size, staged)
        if (made.fills24h, made.until) == (market.fills24h, market.until):
            return made
        return made._replace(fills24h=market.fills24h, until=market.until)


def fate(made: Made | None, now: Fingerprint | None) -> Fate:
    """What to do with a detail that was made of this, as far as the fingerprint tells."""
    if made is None or now is None or made.version != now.version:
        return Fate.READ
    if made.market != now.market:
        return Fate.UPDATE
    return Fate.KEEP if made.changed else Fate.READ


def made_of(market: Market, size: int) -> Made | None:
    """What a detail of `size` bytes is made of; None if the database does not tell its version."""
    return Made(*market.fingerprint, size, market.fills24h, market.until) if market.fingerprint else None
