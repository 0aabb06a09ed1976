"""What a build must know of all markets before it reads ranges of them independently. It opens no connection."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from generator.findings import Finding
from generator.markets import detail
from generator.markets.categories import AS_GIVEN, Spellings
from generator.markets.detail import DetailMarket
from generator.markets.market import Market
from generator.markets.slugs import NO_KEYS, SiteKeys
from generator.source.earlier import Versions, lower
from generator.source.queries import CHOSEN_AT_MOST, EVERYTHING, MANY, Chosen, Range, Within


@dataclass(frozen=True)
class Found:
    """The rows of a range by id as the database spells it (`keys`), in its order, and what was made of each.

    `markets` has None for a row that was quarantined. `rest` has each row's values of `columns`, which only details
    show.
    `altered` names the markets (ids) whose categories are published otherwise than their rows have them, or left out.
    `false_versions` names the markets (ids) whose count of fills changed although their version did not.
    """

    keys: Sequence[Any]
    markets: Sequence[Market | None]
    columns: Sequence[str]
    rest: Sequence[Sequence[Any]]
    altered: list[str]
    false_versions: list[str]

    def public(self) -> Iterator[tuple[Any, Market]]:
        """Each public market, with its id as the database spells it."""
        return ((key, market) for key, market in zip(self.keys, self.markets, strict=True) if market is not None)

    def market_object(self, place: int) -> DetailMarket:
        """What a detail shows of the row at a place. Raises ValueError if it was quarantined."""
        market = self.markets[place]
        if market is None:
            raise ValueError(f"row {place} was quarantined")
        return detail.of_item(market.item, market.fx, dict(zip(self.columns, self.rest[place], strict=True)))


class Part(NamedTuple):
    """Markets to read, and their place among all that are, in the database's order: from `first` to before `last`."""

    within: Within
    first: int
    last: int


@dataclass(frozen=True)
class Facts:
    """What the rows of a part do not tell about its markets.

    `columns` are those of OPTIONAL that the database has. `slugs` are by market id as the database spells it, `fx`
    memberships by id in lower case. `repeated` counts the occurrences of every id, in lower case, that is not unique.
    `unclear` are the markets, by id in lower case, of which nobody can tell whether their family is public.
    """

    columns: tuple[str, ...] = ()
    fx: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    slugs: Mapping[str, str] = field(default_factory=dict)
    spellings: Spellings = AS_GIVEN
    repeated: Mapping[str, int] = field(default_factory=dict)
    unclear: Mapping[str, Finding] = field(default_factory=dict)


@dataclass(frozen=True)
class Survey:
    """All visible markets, and what is known of them together.

    `keys` are the ids of those to read, as the database spells and sorts them; the rows of those that are `kept`, by
    id, need not be read. `hidden` is the number of hidden markets. `site_keys` are those of the operator's site, which
    no detail shows. `audited` are markets that would have been kept, as they were. `versions` are those of all markets
    whose id no other has, if the database tells both. `doubled` are the markets (ids) with several FX memberships,
    which every build must report.
    """

    keys: Sequence[Any]
    hidden: int
    facts: Facts
    refused_slugs: Mapping[str, Finding]
    site_keys: SiteKeys = NO_KEYS
    kept: Mapping[str, Market] = field(default_factory=dict)
    audited: Mapping[str, Market] = field(default_factory=dict)
    versions: Mapping[str, Versions] = field(default_factory=dict)
    doubled: frozenset[str] = frozenset()

    def parts(self, size: int, *, by_name: bool = False) -> list[Part]:
        """Divide the markets to read into parts of about `size` markets, in the database's order.

        `by_name` asks for the markets of several parts by their names, if all have one that no other has.
        """
        if self.kept or (by_name and len(self.keys) > size and self._can_be_named()):
            return [*self._chosen(min(size, CHOSEN_AT_MOST))]
        starts = [*self._starts(size)]
        if not starts:
            return [Part(EVERYTHING, 0, len(self.keys))]
        # No comparison is true of NULL, so one part asks for it by name.
        first = Range(None, self.keys[starts[0]], has_null=None in self.keys)
        bounds = zip(starts, [*starts[1:], len(self.keys)], strict=True)
        later = (Part(Range(self.keys[start], self._end(end)), start, end) for start, end in bounds)
        return [Part(first, 0, starts[0]), *later]

    def _can_be_named(self) -> bool:
        return not self.facts.repeated and all(map(can_be_asked_for, self.keys))

    def _chosen(self, size: int) -> Iterator[Part]:
        for first in range(0, len(self.keys), size):
            chosen = tuple(self.keys[first : first + size])
            yield Part(Chosen(chosen), first, first + len(chosen))

    def _starts(self, size: int) -> Iterator[int]:
        """Where all parts but the first begin: at ids that any database can compare with."""
        start = size
        while start < len(self.keys):
            if can_be_asked_for(self.keys[start]):
                yield start
                start += size
            else:
                start += 1

    def _end(self, place: int) -> Any:
        return self.keys[place] if place < len(self.keys) else None

    def ids(self, part: Part) -> list[str]:
        """The ids of a part's markets, in lower case, malformed ones included."""
        return [*map(lower, self.keys[part.first : part.last])]

    def facts_of(self, part: Part) -> Facts:
        """What is known of the markets of a part."""
        known, keys, found = self.facts, self.keys[part.first : part.last], self.ids(part)
        return Facts(
            known.columns, _of(known.fx, found), _of(known.slugs, keys), known.spellings, _of(known.repeated, found),
            _of(known.unclear, found),
        )  # fmt: skip


def _of(mapping: Mapping[Any, Any], keys: Iterable[Any]) -> dict[Any, Any]:
    return {key: mapping[key] for key in keys if key in mapping} if mapping else {}


def repeated(ids: Sequence[str]) -> dict[str, int]:
    """How often each id, in lower case, occurs that is not unique."""
    return {key: count for key, count in Counter(ids).items() if count > 1} if len({*ids}) < len(ids) else {}


def are_few(keys: Sequence[Any], count: int) -> bool:
    """Whether these of `count` markets are better asked for by name, which all of them must have."""
    return len(keys) <= MANY * count and all(map(can_be_asked_for, keys))


def can_be_asked_for(key: Any) -> bool:
    """Whether this is a plain text. One that is no UUID will be quarantined, but a million must not be one part."""
    return isinstance(key, str) and key.isprintable()  # which neither NUL nor invalid UTF-8 is
