"""Markets by column, which pass between processes in less than a third of the time, and as plain values. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from generator.api.contract import FxFamilyMember
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


def plain(market: Market) -> tuple[Any, ...]:
    """A market without its fingerprint, as values that JSON has: equal ones for equal markets."""
    shown: dict[str, Any] = {
        "body": market.body.decode(),
        "fx": market.fx and market.fx.model_dump(mode="json"),
        "words": sorted(market.words),  # another process makes a set of texts in another order
    }
    values = market._replace(**shown)
    return tuple(value for name, value in zip(Market._fields, values, strict=True) if name in NAMES)


def of_plain(markets: Sequence[Sequence[Any]]) -> list[Market]:
    """Markets from what `plain` made of them. Raises ValueError if it is anything else."""
    if not markets:
        return []
    found: dict[str, Any] = dict(zip(NAMES, zip(*markets, strict=True), strict=True))
    found["body"] = [body.encode() for body in found["body"]]
    found["fx"] = [None if fx is None else FxFamilyMember.model_validate(fx) for fx in found["fx"]]
    return Columns([*found.values()]).markets({})
