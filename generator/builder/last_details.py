"""The details that the last build left in place: which of them still hold, and which to read all the same."""

import hashlib
import secrets
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import groupby
from typing import Final

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
from generator.tree.fingerprints import MadeOf
from generator.tree.folder import Output
from generator.tree.staging import Staged


class Fate(Enum):
    """What a build does with a detail: keeps it, replaces its market object, or reads all of it."""

    KEEP = auto()
    UPDATE = auto()
    READ = auto()


@dataclass
class DetailCounts:
    """How many details were read in full, got only a new market object, or stayed as they are.

    The `audited` are among those `read`: although their version had not changed, they were compared with their files.
    """

    read: int = 0
    updated: int = 0
    kept: int = 0
    audited: int = 0

    def add(self, other: "DetailCounts") -> None:
        """Add the counts of another part."""
        self.read += other.read
        self.updated += other.updated
        self.kept += other.kept
        self.audited += other.audited


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
        return zlib.crc32(market_id.encode("utf-8", "surrogatepass"), self.seed) < self.share * _CHANCES


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
    """The details of the last build that are in a folder, and what they were made of, by market id.

    `shape` is that of the details to be built (see `shape_of`); details of another shape in the folder are not known,
    though they are in place. `objects` are the digests of all objects, without those of details whose files are lost.
    The others are taken as they are: the folder is this program's own.
    """

    folder: Output
    shape: str
    objects: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, MadeOf] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Output, objects: Mapping[str, str], built_at: str, shape: str) -> "LastDetails":
        """Load what the last build left, which is complete: its `objects`, and what it made details of.

        That is not known if it had other settings, or the database tells no versions.
        """
        lost = frozenset[str]() if folder.is_as_left else frozenset(_lost(folder, objects))
        if lost:
            objects = {key: digest for key, digest in objects.items() if key not in lost}
        found = fingerprints.load(folder)
        is_known = found is not None and (found.as_of, found.shape) == (built_at, shape)
        return cls(folder, shape, objects, found.details if found and is_known else {})

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
            if self._is_in_place(market.id, market.slug) and not histories.has_other_close(market)
        }
        return EarlierMarkets(now, found, categories, sample.has)

    def of(self, wanted: Mapping[str, str | None]) -> dict[str, MadeOf]:
        """What is known of these markets, given as slugs by id, as far as their files are in place."""
        return {
            market_id: self.known[market_id]
            for market_id, slug in wanted.items()
            if market_id in self.known and self._is_in_place(market_id, slug)
        }

    def _is_in_place(self, market_id: str, slug: str | None) -> bool:
        return all(key in self.objects for key in keys.details(market_id, slug))

    def in_place(self, wanted: Mapping[str, str | None]) -> dict[str, str]:
        """The digests of the details whose files are in place, of markets given as slugs by id."""
        return {
            market_id: self.objects[keys.detail(market_id)]
            for market_id, slug in wanted.items()
            if self._is_in_place(market_id, slug)
        }

    def body(self, market_id: str) -> bytes | None:
        """The bytes of a detail; None unless they are those that the last build wrote."""
        key = keys.detail(market_id)
        body = self.folder.read(key)
        return body if body is not None and manifest.digest(key, body) == self.objects.get(key) else None

    def hold(self, market_id: str, slug: str | None, size: int, staged: Staged) -> None:
        """Add a detail that stays in place to what is staged."""
        for key in keys.details(market_id, slug):
            staged.objects[key] = self.objects[key]
            staged.size += size

    def keep(self, market: Market, staged: Staged) -> MadeOf:
        """Add a detail that was not read to what is staged; return what it is made of."""
        made = self.known[market.id]
        self.hold(market.id, market.slug, made.size, staged)
        if (made.fills24h, made.until) == (market.fills24h, market.until):
            return made
        return made._replace(fills24h=market.fills24h, until=market.until)


def _lost(folder: Output, objects: Iterable[str]) -> Iterator[str]:
    """The keys of the details among these objects whose files are not in the folder."""
    places = (key.rpartition("/") for key in objects if keys.is_detail(key))
    for place, found in groupby(places, lambda parts: parts[0]):
        there = {*folder.names(f"{place}/")}
        yield from ("".join(parts) for parts in found if parts[2] not in there)


def fate(made: MadeOf | None, now: Fingerprint | None) -> Fate:
    """What to do with a detail that was made of this, as far as the fingerprint tells."""
    if made is None or now is None or made.version != now.version:
        return Fate.READ
    return Fate.KEEP if made.market == now.market else Fate.UPDATE


def made_of(market: Market, size: int) -> MadeOf | None:
    """What a detail of `size` bytes is made of; None if the database does not tell its version."""
    return MadeOf(*market.fingerprint, size, market.fills24h, market.until) if market.fingerprint else None
