"""What publishing costs in each layout: objects, bytes, PUT requests, USD per month. Pure.

An estimate is made from the size of the site and what earlier builds changed. Until two builds were compared it assumes
the worst: every build replaces every object.
"""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from pydantic import ValidationError

from generator.api import keys
from generator.api.contract import SORTS
from generator.api.downloads import STEP_LIFETIME
from generator.cost import sizes
from generator.cost.prices import Place, PriceList
from generator.cost.sizes import Change, Site
from generator.models import replaced
from generator.tree import state
from generator.tree.layouts import LAYOUTS
from generator.tree.stored import StoredModel

#: A twelfth of a year of 365 days.
MINUTES_PER_MONTH: Final = 43_800
#: A publish that changes something writes the store's record three times: intent, commit, release. A large one has an
#: intent and a state besides.
RECORD_PUTS: Final = 3
_STATE_PUTS: Final = 2
#: The lists of all public markets.
_OF_ALL: Final = frozenset(keys.list_name("all", sort) for sort in SORTS)
_MINUTES_PER_DAY: Final = 1_440
#: Minutes between two builds from which a third is foretold.
_SHORTEST_GAP: Final = 1.0
#: Schedules that cron can express, in minutes.
_SCHEDULES: Final = (10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1_440)
_GB: Final = 1e9


class Load(StoredModel):
    """What one publish does to a store: PUT requests, the objects and bytes it retires, the bytes of its step."""

    puts: float
    retired_objects: float
    retired_bytes: float
    step_bytes: float = 0.0


class Basis(StoredModel):
    """Running means over `builds` earlier builds, `minutes` apart; `loads` by layout, empty without builds."""

    builds: int = 0
    minutes: float = 0.0
    loads: Mapping[str, Load] = {}


class ChangeCost(NamedTuple):
    """What one change costs: new objects and their bytes, and the USD of all PUT requests at each place."""

    objects: int
    bytes: int
    usd: Mapping[str, float]


class LayoutCost(StoredModel):
    """The cost of a layout. `stored…` includes retired generations until they are due."""

    objects: int
    bytes: int
    stored_objects: int
    stored_bytes: int
    puts_per_publish: int
    puts_per_month: int
    usd_per_month: Mapping[str, float]


class Cost(StoredModel):
    """The estimate, as in the report. `schedule` is in minutes."""

    prices_as_of: str
    schedule: int
    basis: Basis
    layouts: Mapping[str, LayoutCost]


@dataclass(frozen=True)
class Terms:
    """Minutes between two publishes, the lifetime of cursors, and the prices."""

    schedule: int
    lifetime: timedelta
    prices: PriceList

    @property
    def publishes_per_month(self) -> float:
        """Publishes per month."""
        return MINUTES_PER_MONTH / self.schedule

    @property
    def kept(self) -> int:
        """The most publishes whose retired generations are in the store at once."""
        return int(self.lifetime.total_seconds() // 60 // self.schedule) + 1

    @property
    def most_steps(self) -> int:
        """The most publishes whose steps the change feed retains."""
        return int(STEP_LIFETIME.total_seconds() // 60 // self.schedule)


def learned(before: Basis, site: Site, change: Change, schedule: int) -> Basis:
    """The basis after one more build: a running mean over about a day, because load varies with the time of day.

    Builds seconds apart teach nothing: hardly anything changes in between, and an hour is no multiple of it.
    """
    if change.minutes < _SHORTEST_GAP:
        return before
    builds = before.builds + 1
    weight = 1 / min(builds, max(1, _MINUTES_PER_DAY // schedule))
    seen = {layout: _load(layout, site, change) for layout in LAYOUTS}
    means = {layout: _mean(before.loads.get(layout), load, weight) for layout, load in seen.items()}
    return Basis(builds=builds, minutes=_moved(before.minutes, change.minutes, weight), loads=means)


def cost(site: Site, basis: Basis, terms: Terms) -> Cost:
    """Estimate the cost of a site whose builds change what `basis` says."""
    costs = {layout: _cost(layout, site, basis, terms) for layout in LAYOUTS}
    return Cost(prices_as_of=terms.prices.as_of, schedule=terms.schedule, basis=basis, layouts=costs)


def priced(known: LayoutCost, place: Place, schedule: int) -> float:
    """USD per month for an estimated layout, at any place and on any schedule (minutes)."""
    return _usd(known.puts_per_publish * MINUTES_PER_MONTH / schedule, known.stored_bytes, place)


def cheaper(known: LayoutCost, place: Place, schedule: int, limit: float) -> int | None:
    """The shortest of a few longer schedules that stays within the limit (USD per month); None when none does."""
    for minutes in _SCHEDULES:
        if minutes > schedule and priced(known, place, minutes) <= limit:
            return minutes
    return None


def of_change(layout: str, site: Site, change: Change, known: PriceList) -> ChangeCost:
    """The cost of one change; objects outside lists, index and downloads are taken as equally long."""
    new = sizes.new_part(site, change, layout)
    objects = new.objects + change.objects
    size = new.bytes + change.objects * site.bytes // max(1, site.objects)
    puts = objects + _record_puts(site)
    return ChangeCost(objects, size, {place.name: _usd(puts, 0, place) for place in known.places})


def changed_objects(site: Site, change: Change) -> dict[str, int]:
    """The number of objects a change replaces, by layout."""
    return {layout: round(_load(layout, site, change).puts - _record_puts(site)) for layout in LAYOUTS}


def saved(site: Site, known: Cost, terms: Terms, names: AbstractSet[str]) -> dict[str, dict[str, float]]:
    """About how many USD per month it would save, by layout and place, to publish no lists of these names.

    Their share of what a build changes is taken to be their share of everything.
    """
    rest, found = site.without(names), dict[str, dict[str, float]]()
    for layout, cost_of in known.layouts.items():
        whole, less = (_worst(layout, one, terms.schedule).puts for one in (site, rest))
        puts = cost_of.puts_per_month * (1 - less / whole)
        stored = cost_of.stored_bytes * (1 - rest.total(layout)[1] / max(1, site.total(layout)[1]))
        found[layout] = _prices(puts, stored, terms.prices.places)
    return found


def of_report(content: bytes | None) -> Cost | None:
    """The estimate in the bytes of a report; None when it has none that can be read."""
    try:
        return Cost.model_validate(json.loads(content or b"{}")["cost"])
    except (KeyError, TypeError, ValueError, ValidationError):
        return None


def _record_puts(site: Site) -> int:
    markets = max((size.count for size in site.lists if size.name in _OF_ALL), default=0)
    return RECORD_PUTS + (_STATE_PUTS if markets >= state.LEAST else 0)


def _load(layout: str, site: Site, change: Change) -> Load:
    new = sizes.new_part(site, change, layout)
    return Load(
        puts=new.objects + change.objects + _record_puts(site),
        retired_objects=new.immutable,
        retired_bytes=new.immutable_bytes,
        step_bytes=change.step_bytes,
    )


def _mean(before: Load | None, seen: Load, weight: float) -> Load:
    known = before or seen
    return Load(**{name: _moved(getattr(known, name), value, weight) for name, value in seen})


def _moved(mean: float, seen: float, weight: float) -> float:
    return round(mean + (seen - mean) * weight, 1)


def _cost(layout: str, site: Site, basis: Basis, terms: Terms) -> LayoutCost:
    worst = _worst(layout, site, terms.schedule)
    load = _expected(basis.loads.get(layout), worst, basis.minutes, terms.schedule)
    count, size = site.total(layout)
    steps, steps_bytes = site.downloads.kept(load.step_bytes, terms.most_steps)
    stored = size + load.retired_bytes * terms.kept + steps_bytes - site.downloads.steps_bytes
    puts = round(load.puts)
    return LayoutCost(
        objects=count,
        bytes=size,
        stored_objects=round(count + load.retired_objects * terms.kept + steps - site.downloads.steps),
        stored_bytes=round(stored),
        puts_per_publish=puts,
        puts_per_month=round(puts * terms.publishes_per_month),
        usd_per_month=_prices(puts * terms.publishes_per_month, stored, terms.prices.places),
    )


def _worst(layout: str, site: Site, schedule: int) -> Load:
    """The load of a build that replaces everything, of which `daily` objects are replaced by one build a day."""
    load, daily = _load(layout, site, sizes.everything(site)), site.downloads.daily
    spared = 1 - min(1, schedule / _MINUTES_PER_DAY)
    return replaced(
        load,
        puts=load.puts - spared * daily.objects,
        retired_objects=load.retired_objects - spared * daily.objects,
        retired_bytes=load.retired_bytes - spared * daily.bytes,
    )


def _expected(mean: Load | None, worst: Load, minutes: float, schedule: int) -> Load:
    """The mean, scaled up when builds will be further apart than they were; at most the worst case."""
    if mean is None:
        return worst
    scale = max(1.0, schedule / max(minutes, _SHORTEST_GAP))
    # The worst case has no step, as it would outweigh the dump.
    step, step_bytes = int(mean.step_bytes > 0), mean.step_bytes * scale
    return Load(
        puts=min(worst.puts + step, mean.puts * scale),
        retired_objects=min(worst.retired_objects + step, mean.retired_objects * scale),
        retired_bytes=min(worst.retired_bytes + step_bytes, mean.retired_bytes * scale),
        step_bytes=step_bytes,
    )


def _prices(puts: float, stored_bytes: float, places: Sequence[Place]) -> dict[str, float]:
    return {place.name: round(_usd(puts, stored_bytes, place), 2) for place in places}


def _usd(puts: float, stored_bytes: float, place: Place) -> float:
    return puts / 1e6 * place.per_million_puts + stored_bytes / _GB * place.per_gb_month
