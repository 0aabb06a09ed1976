"""Markets by column, which pass between processes in less than a third of the time, and as plain values. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

from generator.api import contract
from generator.api.contract import FxFamilyMember, PublicMarketListItem
from generator.markets.market import ONE, Market

#: The names of all fields on the wire. The last ones are left out where they are None.
_NAMES: Final = {name: field.alias or name for name, field in PublicMarketListItem.model_fields.items()}
_IF_PRESENT: Final = ("slug", "category", "categories")
_ALWAYS: Final = tuple(name for name in _NAMES if name not in _IF_PRESENT)
#: Of the other fields, those whose values may contain a comma.
_TEXTS: Final = ("question",)
_ITEM: Final = (
    "{" + ",".join(f'"{_NAMES[name]}":' + ('"%b"' if name in _TEXTS else "%b") for name in _ALWAYS) + "%b}"
).encode()


def encoded_items(values: Mapping[str, Sequence[Any]]) -> list[bytes]:
    """The items of one or more valid markets, whose values are given by field."""
    columns = [_between_quotes(values[name]) if name in _TEXTS else _plain(values[name]) for name in _ALWAYS]
    return [_ITEM % row for row in zip(*columns, _ends(values), strict=False)]


def _plain(values: Sequence[Any]) -> list[bytes]:
    return contract.encode(values)[1:-1].split(b",")


def _between_quotes(texts: Sequence[str]) -> list[bytes]:
    # JSON escapes quotation marks within texts, so these three characters occur only between texts.
    return contract.encode(texts)[2:-2].split(b'","')


def _ends(values: Mapping[str, Sequence[Any]]) -> Iterable[bytes]:
    """The fields that are not in every item."""
    if all(value is None for name in _IF_PRESENT for value in values[name]):
        return repeat(b"")
    return [
        b"".join(
            b',"%b":%b' % (_NAMES[name].encode(), contract.encode(value))
            for name, value in zip(_IF_PRESENT, row, strict=True)
            if value is not None
        )
        for row in zip(*(values[name] for name in _IF_PRESENT), strict=True)
    ]


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
