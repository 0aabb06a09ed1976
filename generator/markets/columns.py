"""Markets by column, which pass between processes in less than a third of the time. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from generator.markets.market import ONE, Market

#: The fields that pass. Only the process that made a market needs its fingerprint.
NAMES: Final = tuple(name for name in Market._fields if name != "fingerprint")


@dataclass(frozen=True)
class Columns:
    """Markets without their fingerprints: `values` has a sequence per other field, and is empty without markets."""

    values: Sequence[Sequence[Any]] = ()

    @classmethod
    def of(cls, markets: Sequence[Market]) -> "Columns":
        """These markets by column."""
        columns = zip(Market._fields, zip(*markets, strict=True), strict=False)
        return cls([values for name, values in columns if name in NAMES])

    def markets(self, one: dict[str, str]) -> list[Market]:
        """The markets, sharing equal words and categories with all others through `one`, which it fills.

        Markets unpickled from another process have copies of their own.
        """
        if not self.values:
            return []
        found: dict[str, Iterable[Any]] = dict(zip(NAMES, self.values, strict=True))
        found["fingerprint"] = [None] * len(self.values[0])
        for name in ("status", "resolution"):
            found[name] = map(ONE.__getitem__, found[name])
        for name in ("categories", "words"):
            found[name] = (tuple(map(one.setdefault, texts, texts)) for texts in found[name])
        return [*map(Market._make, zip(*(found[name] for name in Market._fields), strict=True))]
