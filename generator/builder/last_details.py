"""The details that the last build left in place: which of them still hold, and which to read all the same."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

import pydantic_core

from generator import __version__
from generator.api import contract, keys
from generator.markets.catalog import Market
from generator.markets.fills import Window
from generator.source.fill_windows import EarlierCounts
from generator.tree import files, fingerprints, manifest
from generator.tree.fingerprints import Made
from generator.tree.folder import Output
from generator.tree.manifest import Manifest
from generator.tree.staging import Staged


class Fate(Enum):
    """What becomes of a detail: it stays, or gets a new market object in front of what it has, or is read anew."""

    KEEP = auto()
    UPDATE = auto()
    READ = auto()


@dataclass(frozen=True)
class Sample:
    """Which of the details that need not be read are read all the same: this share of them, chosen by the seed."""

    share: float
    seed: str

    @classmethod
    def chosen(cls, share: float, seed: str | None = None) -> "Sample":
        """A sample with this seed, or with one of its own."""
        return cls(share, secrets.token_hex(8) if seed is None else seed)

    def has(self, market_id: str) -> bool:
        """Whether a market (id) is in it."""
        chosen = hashlib.blake2b(market_id.encode(), key=self.seed.encode(), digest_size=_CHANCE_BYTES).digest()
        return int.from_bytes(chosen) < self.share * 256**_CHANCE_BYTES


#: What decides whether a market is in a sample.
_CHANCE_BYTES: Final = 6


def shape_of(settings: Mapping[str, str]) -> str:
    """A digest of everything but the database that shapes a detail: the settings, and the programs that encode it."""
    programs = {"program": __version__, "encoder": pydantic_core.__version__}
    return hashlib.sha256(contract.encode([programs, settings])).hexdigest()


@dataclass(frozen=True)
class LastDetails:
    """What `previous` says of the details in a folder, and what they were made of, by market id.

    A file that changed in the file system after `since` (nanoseconds) was not written by the last build.
    """

    folder: Output
    objects: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Made] = field(default_factory=dict)
    since: int = 0

    @classmethod
    def load(cls, folder: Output, previous: Manifest | None, shape: str, as_of: str) -> "LastDetails":
        """Load what the last build left; nothing holds if that was killed, or had other settings or a later as-of."""
        # A later as-of may have made remarks about future times, which an earlier one must make again.
        if previous is None or not previous.complete or previous.as_of > as_of:
            return cls(folder)
        found = fingerprints.parsed(folder.read(files.FINGERPRINTS))
        since = folder.changed_at(files.FINGERPRINTS)
        if found is None or since is None or (found.as_of, found.shape) != (previous.as_of, shape):
            return cls(folder)
        return cls(folder, previous.objects, found.details, since)

    def fate(self, market: Market) -> Fate:
        """What becomes of a market's detail, as far as fingerprints and the file system tell."""
        made, now = self.known.get(market.item.id), market.fingerprint
        if made is None or now is None or made.version != now.version:
            return Fate.READ
        if made.market != now.market:
            return Fate.UPDATE
        return Fate.KEEP if self._is_in_place(market, made.size) else Fate.READ

    def _is_in_place(self, market: Market, size: int) -> bool:
        found = keys.details(market.item.id, market.item.slug)
        return all(key in self.objects and self.folder.is_untouched(key, size, self.since) for key in found)

    def body(self, market_id: str) -> bytes | None:
        """The bytes of a detail; None unless they are those that the last build wrote."""
        key = keys.detail(market_id)
        body = self.folder.read(key)
        return body if body is not None and manifest.digest(key, body) == self.objects.get(key) else None

    def keep(self, market: Market, staged: Staged) -> int:
        """Add a detail that stays in place to what is staged; return its size."""
        size = self.known[market.item.id].size
        for key in keys.details(market.item.id, market.item.slug):
            staged.objects[key] = self.objects[key]
            staged.size += size
        return size

    def counts(self, sample: Sample) -> EarlierCounts:
        """The fills that were counted in the last build."""
        windows = {
            market_id: (made.version, Window(made.fills24h, made.until)) for market_id, made in self.known.items()
        }
        return EarlierCounts(windows, sample.has)


def made_of(market: Market, size: int) -> Made | None:
    """What a detail of `size` bytes is made of; None if the database does not tell its version."""
    return Made(*market.fingerprint, size, market.item.fills24h, market.until) if market.fingerprint else None
