"""What a build must know of all markets before it reads ranges of them independently, and what tells it.

That is one short row of each, and what only all of them together decide.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from generator.findings import Finding
from generator.markets import categories, detail, faults, slugs
from generator.markets.categories import AS_GIVEN, Spellings
from generator.markets.detail import DetailMarket
from generator.markets.market import Market, digest
from generator.markets.quarantine import Quarantine
from generator.markets.slugs import NO_KEYS, SiteKeys
from generator.source import queries
from generator.source.connection import Row, Transaction
from generator.source.earlier import EarlierMarkets, Versions, lower
from generator.source.queries import CHOSEN_AT_MOST, EVERYTHING, MANY, Chosen, Range, Statements, Within

#: The optional column that is read of all markets at once, as keys must be unique.
SITE_KEY: Final = "key"
#: Those that tell which markets must be read, if the database has both.
_VERSIONS: Final = ("detail_version", "market_version")
#: Those that are read with a market's row.
_WITH_ROWS: Final = ("detail_version",)
#: Rows of a survey that have a digest together.
_BLOCK: Final = 1_000
_FX: Final = ("title", "instrument", "source", "week_start", "week_end", "threshold_value", "direction")
_SECOND_FAMILY: Final = Finding(
    column="market_id",
    text="the market is a member of a family already",
    remedy="keep one public membership per market",
)
#: Of several memberships the first counts. Databases may sort texts differently, and return equal ones in any order.
_PRECEDENCE: Final = ("week_start", "title", *(name for name in _FX if name not in {"week_start", "title"}))


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
    which every build must report. `digests` are those of everything that was read of all markets, if the database tells
    both versions, and no two markets have one id.
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
    digests: tuple[str, ...] = ()

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


def _repeated(ids: Sequence[str]) -> dict[str, int]:
    """How often each id, in lower case, occurs that is not unique."""
    return {key: count for key, count in Counter(ids).items() if count > 1} if len({*ids}) < len(ids) else {}


def _blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    remaining = iter(rows)
    while block := [*islice(remaining, _BLOCK)]:
        yield block


def _digest(rows: Sequence[Any]) -> str:
    """A digest of rows, which differs if a value or its type does."""
    return digest(repr(rows).encode())


def _are_few(keys: Sequence[Any], count: int) -> bool:
    """Whether these of `count` markets are better asked for by name, which all of them must have."""
    return len(keys) <= MANY * count and all(map(can_be_asked_for, keys))


def can_be_asked_for(key: Any) -> bool:
    """Whether this is a plain text. One that is no UUID will be quarantined, but a million must not be one part."""
    return isinstance(key, str) and key.isprintable()  # which neither NUL nor invalid UTF-8 is


@dataclass(frozen=True)
class Surveyor:
    """Surveys in an open transaction. `columns` are the optional ones that the database has of `markets`."""

    transaction: Transaction
    statements: Statements
    quarantine: Quarantine
    columns: Sequence[str]
    is_extended: bool

    def survey(self, earlier: EarlierMarkets) -> Survey:
        """Everything; the rows of markets that hold need not be read if those that do not are few."""
        # First, so that a failure of `markets` is not reported as one of a relation that is joined with it.
        in_all = self.transaction.number(self.statements.count_markets(), "markets")
        rows = [*self._rows_of_all()]
        of = dict(zip(self._names, zip(*rows, strict=True) if rows else ((),) * len(self._names), strict=True))
        keys, ids = of["id"], [*map(lower, of["id"])]
        site_keys = SiteKeys.of(zip(keys, of[SITE_KEY], strict=True)) if SITE_KEY in of else NO_KEYS
        known = slugs.references(zip(keys, of["slug"], strict=True) if self.is_extended else ())
        unlisted = self._unclear_markets()
        repeated = _repeated([*ids, *unlisted])
        told = zip(ids, map(Versions.of, *(of.get(name, ()) for name in _VERSIONS)), strict=False)
        versions = {market_id: both for market_id, both in told if market_id not in repeated}
        holding = earlier.holding(versions, {lower(key): slug for key, slug in known.usable.items()})
        audited = {market_id: market for market_id, market in holding.items() if earlier.is_audited(market_id)}
        candidates = {market_id: market for market_id, market in holding.items() if market_id not in audited}
        # The rows of one id may be asked for twice if they are asked for by name.
        kept, spelled = self._spelled([*zip(keys, ids, strict=True)], {} if repeated else candidates, earlier)
        for market_id in earlier.respelled(audited, spelled):
            del audited[market_id]
        wanted = [key for key, market_id in zip(keys, ids, strict=True) if market_id not in kept]
        fx, doubled = self._fx_members(wanted if kept else None)
        columns = tuple(name for name in self.columns if name in _WITH_ROWS)
        facts = Facts(columns, fx, known.usable, spelled, repeated, self._unclear_families(wanted if kept else None))
        hidden = in_all - len(keys) - len(unlisted)
        is_told = _VERSIONS[0] in of and not repeated
        digests = (_digest([in_all, unlisted]), *map(_digest, _blocks(rows))) if is_told else ()
        return Survey(
            wanted, hidden, facts, known.refused, site_keys, kept, audited, versions, frozenset(doubled), digests
        )

    def same(
        self, digests: Sequence[str], refused: Container[str], spelled: Spellings, is_wanted: Callable[[str], bool]
    ) -> Survey | None:
        """A survey of those markets alone that are wanted (by id), if the `digests` of an earlier one still hold.

        `refused` are the markets (ids) whose slugs that one refused, `spelled` is what it found of categories. What
        does not hold is noticed without reading on.
        """
        expected, wanted, count = iter(digests), dict[Any, Mapping[str, Any]](), 0
        in_all = self.transaction.number(self.statements.count_markets(), "markets")
        if next(expected, None) != _digest([in_all, self._unclear_markets()]):
            return None
        for rows in _blocks(self._rows_of_all()):
            if next(expected, None) != _digest(rows):
                return None
            wanted |= {row[0]: dict(zip(self._names, row, strict=True)) for row in rows if is_wanted(lower(row[0]))}
            count += len(rows)
        keys = [*wanted]
        if next(expected, None) is not None or not _are_few(keys, count):
            return None
        fx, doubled = self._fx_members(keys)
        slugs = {key: row["slug"] for key, row in wanted.items() if row.get("slug") and lower(key) not in refused}
        facts = Facts(_WITH_ROWS, fx, slugs, spelled, {}, self._unclear_families(keys))
        return Survey(keys, 0, facts, {}, doubled=frozenset(doubled))

    def _rows_of_all(self) -> Iterator[Row]:
        """Stream what is read of all visible markets, in the order of their ids."""
        return self.transaction.rows(self.statements.markets(*self._names), "markets")

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The columns that are read of all visible markets."""
        return (
            "id",
            *(["slug"] if self.is_extended else []),
            *([SITE_KEY] if SITE_KEY in self.columns else []),
            *(_VERSIONS if {*_VERSIONS} <= {*self.columns} else []),
        )

    def _spelled(
        self, keys: Sequence[tuple[Any, str]], candidates: Mapping[str, Market], earlier: EarlierMarkets
    ) -> tuple[Mapping[str, Market], Spellings]:
        """Which of the candidates are kept, and what is shown in place of some names of categories.

        `keys` are all markets, by id as the database spells it and as we do.
        """
        kept = _kept_of(keys, candidates)
        wanted = [key for key, market_id in keys if market_id not in kept] if kept else None
        names = self._category_names(wanted) if self.is_extended else ()
        spelled = categories.spellings(chain(names, earlier.named(kept)))
        if respelled := {*earlier.respelled(kept, spelled)}:
            kept = _kept_of(keys, {market_id: kept[market_id] for market_id in kept.keys() - respelled})
        return kept, spelled

    def _fx_members(self, wanted: Sequence[Any] | None) -> tuple[dict[str, Mapping[str, Any]], set[str]]:
        """The public FX membership of each of these markets, by id in lower case, and those that have several.

        It is validated with its market, so a bad membership quarantines the market too: without it, the market would
        enter the lists, where members of public families must not appear. For the same reason ids match in any case.
        """
        members, doubled = dict[str, Mapping[str, Any]](), set[str]()
        for market_id, *values in self._memberships(wanted, *_FX):
            member: Mapping[str, Any] = dict(zip(_FX, values, strict=True))
            if market_id in members:
                doubled.add(market_id)
                self.quarantine.reject("fx_members", market_id, _SECOND_FAMILY)
                member = min(members[market_id], member, key=_precedence)
            members[market_id] = member
        return members, doubled

    def _unclear_markets(self) -> list[str]:
        """The approved markets (ids) of which nobody can tell whether they are listed; they are quarantined."""
        if not self.statements.has_any_boolean:
            return []
        statement = self.statements.markets("id", "is_listed", unclear=True)
        found = [*self.transaction.rows(statement, "markets")]
        for market_id, value in found:
            self.quarantine.reject("markets", market_id, faults.unclear("is_listed", value))
        return [lower(market_id) for market_id, _ in found]

    def _unclear_families(self, wanted: Sequence[Any] | None) -> dict[str, Finding]:
        """The fault of each of these markets, by id in lower case, that is in a family which may be public or not."""
        found = self._memberships(wanted, "is_public", unclear=True) if self.statements.has_any_boolean else ()
        return {market_id: faults.unclear("fx_members.is_public", value) for market_id, value in found}

    def _category_names(self, wanted: Sequence[Any] | None) -> Iterator[Sequence[Any]]:
        """Stream the market's id and the name for each category of each of these markets."""
        for within in _asked(wanted):
            statement = self.statements.of_visible("market_categories", "category", within=within)
            yield from self.transaction.rows(statement, "market_categories")

    def _memberships(
        self, wanted: Sequence[Any] | None, *columns: str, unclear: bool = False
    ) -> Iterator[Sequence[Any]]:
        for within in _asked(wanted):
            statement = self.statements.of_visible_in_any_case("fx_members", *columns, within=within, unclear=unclear)
            yield from self.transaction.rows(statement, "fx_members")


def _kept_of(keys: Sequence[tuple[Any, str]], candidates: Mapping[str, Market]) -> Mapping[str, Market]:
    """The candidates, unless all others are too many to ask for by name, or cannot be."""
    others = [key for key, market_id in keys if market_id not in candidates]
    return candidates if _are_few(others, len(keys)) else {}


def _asked(wanted: Sequence[Any] | None) -> Iterable[Within]:
    """How to ask for these markets, by id as the database spells it; None for all."""
    return [EVERYTHING] if wanted is None else queries.by_name(wanted)


def _precedence(member: Mapping[str, Any]) -> list[str]:
    values = (member[name] for name in _PRECEDENCE)
    return [str(float(value) if isinstance(value, Decimal) else value) for value in values]
