"""What publishing costs, for every layout: objects, bytes, PUT requests, money a month. Pure.

It is given how long the lists are and what one build changes, and knows neither markets nor stores. What is not known
yet is taken at its worst: every object is new with every build.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from pydantic import ValidationError

from generator.api.contract import LIMIT_DEFAULT
from generator.cost.prices import Place, Prices
from generator.tree import chunks, pages
from generator.tree.manifest import StoredModel

#: A twelfth of a year of 365 days.
MINUTES_PER_MONTH: Final = 43_800
#: A publish that changes something puts the store's record three times: intent, commit, release.
RECORD_PUTS: Final = 3
_MINUTES_PER_DAY: Final = 1_440
#: Schedules that cron can be told, in minutes.
_SCHEDULES: Final = (10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1_440)
_GB: Final = 1e9
#: What stands around the items of an average answer.
_ENVELOPE_BYTES: Final = 100
#: Index and two chunks, from which a window is cut.
_CHUNK_READS: Final = 3


@dataclass(frozen=True, slots=True)
class ListSize:
    """One list: its items, and their bytes together."""

    name: str
    count: int
    bytes: int


@dataclass(frozen=True)
class Site:
    """Everything that is published: the lists; how many objects belong to none, and their bytes."""

    lists: tuple[ListSize, ...] = ()
    objects: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Change:
    """What a build replaced; lists are given by name.

    `objects` counts new objects outside lists. `minutes` have passed since the previous build. `chunks` holds the
    number of new chunks per list of `new_generations`, where known.
    """

    new_generations: frozenset[str]
    new_first_pages: frozenset[str]
    objects: int
    minutes: float
    chunks: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Objects:
    """What one list becomes: immutable objects, and the mutable ones that lead to them."""

    immutable: int
    immutable_bytes: int
    mutable: int
    mutable_bytes: int


def _as_pages(one: ListSize) -> _Objects:
    later, first = pages.weight(one.count, one.bytes)
    return _Objects(pages.page_count(one.count), later, len(pages.LIMITS), first)


def _as_chunks(one: ListSize) -> _Objects:
    count, size, head = chunks.weight(one.name, one.count, one.bytes)
    return _Objects(count + 1, size, 1, head)


@dataclass(frozen=True)
class _Layout:
    """How a list becomes objects, how many are read for a page, whether generations share some."""

    objects: Callable[[ListSize], _Objects]
    reads: int
    is_shared: bool


_LAYOUTS: Final[Mapping[str, _Layout]] = {
    pages.LAYOUT: _Layout(_as_pages, 1, is_shared=False),
    chunks.LAYOUT: _Layout(_as_chunks, _CHUNK_READS, is_shared=True),
}


#: The names of all layouts that can be estimated.
LAYOUTS: Final = tuple(_LAYOUTS)


class Load(StoredModel):
    """What one publish means for a store: PUT requests, and what it retires."""

    puts: float
    retired_objects: float
    retired_bytes: float


class Basis(StoredModel):
    """What is known of earlier builds: means over `builds` of them, which were `minutes` apart; no build, no means."""

    builds: int = 0
    minutes: float = 0.0
    loads: Mapping[str, Load] = {}


class LayoutCost(StoredModel):
    """What a layout costs. `stored` is with the generations that are retired and still kept."""

    objects: int
    bytes: int
    stored_objects: int
    stored_bytes: int
    puts_per_publish: int
    puts_per_month: int
    usd_per_month: Mapping[str, float]


class Cost(StoredModel):
    """The estimate, as the report has it. `schedule` is in minutes."""

    prices_as_of: str
    schedule: int
    basis: Basis
    layouts: Mapping[str, LayoutCost]


@dataclass(frozen=True)
class Terms:
    """Minutes between two publishes, how long retired generations are kept, and the prices."""

    schedule: int
    lifetime: timedelta
    prices: Prices

    @property
    def publishes_per_month(self) -> float:
        """How often a month is published."""
        return MINUTES_PER_MONTH / self.schedule

    @property
    def kept(self) -> int:
        """How many publishes' retired generations are in the store when it is at its fullest."""
        return int(self.lifetime.total_seconds() // 60 // self.schedule) + 1


def learned(before: Basis, site: Site, change: Change, schedule: int) -> Basis:
    """The basis after one more build: a running mean over about a day, because nights are calmer than days."""
    builds = before.builds + 1
    weight = 1 / min(builds, max(1, _MINUTES_PER_DAY // schedule))
    seen = {name: _load(layout, site, change) for name, layout in _LAYOUTS.items()}
    means = {name: _mean(before.loads.get(name), load, weight) for name, load in seen.items()}
    return Basis(builds=builds, minutes=_moved(before.minutes, change.minutes, weight), loads=means)


def cost(site: Site, basis: Basis, terms: Terms) -> Cost:
    """The cost of a site for which builds are as `basis` has them."""
    layouts = {name: _cost(layout, site, basis.loads.get(name), basis, terms) for name, layout in _LAYOUTS.items()}
    return Cost(prices_as_of=terms.prices.as_of, schedule=terms.schedule, basis=basis, layouts=layouts)


def priced(known: LayoutCost, place: Place, schedule: int) -> float:
    """USD a month for a layout that was estimated earlier, at any place and on any schedule."""
    return _usd(known.puts_per_publish * MINUTES_PER_MONTH / schedule, known.stored_bytes, place)


def cheaper(known: LayoutCost, place: Place, schedule: int, limit: float) -> int | None:
    """The shortest of a few schedules with which a layout stays within the limit; None when none of them does."""
    for minutes in (one for one in _SCHEDULES if one > schedule):
        if priced(known, place, minutes) <= limit:
            return minutes
    return None


def reading_cost(site: Site, layout: str, reads: int, place: Place) -> float:
    """USD a month for so many requests of readers, as if nothing were cached or compressed; fixed fees included."""
    prices, objects = place.reads, reads * _LAYOUTS[layout].reads
    usd = sum(prices.per_month.values()) + reads / 1e6 * sum(prices.per_million.values())
    usd += objects / 1e6 * sum(prices.per_million_objects.values())
    return usd + reads * page_bytes(site) / _GB * sum(prices.per_gb.values())


def page_bytes(site: Site) -> int:
    """The bytes of an average answer: a page of the default limit."""
    items = sum(one.count for one in site.lists)
    return round(LIMIT_DEFAULT * sum(one.bytes for one in site.lists) / max(1, items)) + _ENVELOPE_BYTES


def changed_objects(site: Site, change: Change) -> dict[str, int]:
    """How many objects a change replaces, for every layout."""
    return {name: round(_load(layout, site, change).puts) - RECORD_PUTS for name, layout in _LAYOUTS.items()}


def written(site: Site, change: Change, layout: str) -> tuple[int, int]:
    """How many objects a change writes, and their bytes; those that belong to no list are of equal size."""
    made = {one.name: _LAYOUTS[layout].objects(one) for one in site.lists}
    new, first = [made[name] for name in change.new_generations], [made[name] for name in change.new_first_pages]
    count = sum(one.immutable for one in new) + sum(one.mutable for one in first) + change.objects
    size = sum(one.immutable_bytes for one in new) + sum(one.mutable_bytes for one in first)
    return count, size + site.bytes * change.objects // max(1, site.objects)


def objects(site: Site, layout: str) -> int:
    """How many objects a build makes."""
    made = (_LAYOUTS[layout].objects(one) for one in site.lists)
    return site.objects + sum(one.immutable + one.mutable for one in made)


def everything(site: Site) -> Change:
    """The change of a build that replaces all there is."""
    names = frozenset(one.name for one in site.lists)
    return Change(names, names, site.objects, 0)


def of_report(content: bytes | None) -> Cost | None:
    """The estimate in a report; None when there is none that this program can read."""
    try:
        return Cost.model_validate(json.loads(content or b"{}")["cost"])
    except (KeyError, TypeError, ValueError, ValidationError):
        return None


def _load(layout: _Layout, site: Site, change: Change) -> Load:
    objects = {one.name: layout.objects(one) for one in site.lists}
    parts = change.chunks if layout.is_shared else {}
    new = [_replaced(objects[name], parts.get(name)) for name in change.new_generations]
    leading = sum(objects[name].mutable for name in change.new_first_pages)
    immutable = sum(one.immutable for one in new)
    return Load(
        puts=immutable + leading + change.objects + RECORD_PUTS,
        retired_objects=immutable,
        retired_bytes=sum(one.immutable_bytes for one in new),
    )


def _replaced(one: _Objects, new_chunks: int | None) -> _Objects:
    """What is new of a list's immutable objects, of which its generations share those that stay."""
    if new_chunks is None:
        return one
    size = one.immutable_bytes * (new_chunks + 1) // one.immutable
    return replace(one, immutable=new_chunks + 1, immutable_bytes=size)


def _mean(before: Load | None, seen: Load, weight: float) -> Load:
    known = before or seen
    return Load(
        puts=_moved(known.puts, seen.puts, weight),
        retired_objects=_moved(known.retired_objects, seen.retired_objects, weight),
        retired_bytes=_moved(known.retired_bytes, seen.retired_bytes, weight),
    )


def _moved(mean: float, seen: float, weight: float) -> float:
    return round(mean + (seen - mean) * weight, 1)


def _cost(layout: _Layout, site: Site, mean: Load | None, basis: Basis, terms: Terms) -> LayoutCost:
    load = _expected(mean, _load(layout, site, everything(site)), basis.minutes, terms.schedule)
    lists = [layout.objects(one) for one in site.lists]
    count = site.objects + sum(one.immutable + one.mutable for one in lists)
    size = site.bytes + sum(one.immutable_bytes + one.mutable_bytes for one in lists)
    stored = size + load.retired_bytes * terms.kept
    puts = round(load.puts)
    return LayoutCost(
        objects=count,
        bytes=size,
        stored_objects=round(count + load.retired_objects * terms.kept),
        stored_bytes=round(stored),
        puts_per_publish=puts,
        puts_per_month=round(puts * terms.publishes_per_month),
        usd_per_month=_prices(puts * terms.publishes_per_month, stored, terms.prices.places),
    )


def _expected(mean: Load | None, worst: Load, minutes: float, schedule: int) -> Load:
    """What a publish will be like: as the mean, and more if builds are to be further apart; never above the worst."""
    if mean is None:
        return worst
    scale = max(1.0, schedule / max(minutes, 1.0))
    return Load(
        puts=min(worst.puts, mean.puts * scale),
        retired_objects=min(worst.retired_objects, mean.retired_objects * scale),
        retired_bytes=min(worst.retired_bytes, mean.retired_bytes * scale),
    )


def _prices(puts: float, stored_bytes: float, places: Sequence[Place]) -> dict[str, float]:
    return {place.name: round(_usd(puts, stored_bytes, place), 2) for place in places}


def _usd(puts: float, stored_bytes: float, place: Place) -> float:
    return puts / 1e6 * place.per_million_puts + stored_bytes / _GB * place.per_gb_month
