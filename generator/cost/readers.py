"""What readers cost: requests, the objects read for them, and the bytes sent. Pure."""

from typing import Final, NamedTuple

from generator.api.contract import LIMIT_MAX
from generator.config.settings import Config
from generator.cost.estimate import MINUTES_PER_MONTH
from generator.cost.prices import Place
from generator.cost.sizes import Site
from generator.tree import layouts

#: Objects that a request for a file reads at most: the Worker reads R2 twice for a conditional one.
_READS_PER_FILE: Final = 2
_GB: Final = 1e9


class Limit(NamedTuple):
    """What the rate limit grants one address in a month: requests, and how many of these may be searches."""

    requests: int
    searches: int

    @classmethod
    def of(cls, config: Config) -> "Limit":
        """The limit of these settings; without search there are no searches. No edge grants less than one a minute."""
        windows = MINUTES_PER_MONTH * 60 / config.rate_limit.window.total_seconds()
        requests = round(max(config.rate_limit.requests * windows, MINUTES_PER_MONTH))
        searches = round(max(config.rate_limit.searches * windows, MINUTES_PER_MONTH)) if config.can_search else 0
        return cls(requests, min(searches, requests))


def reading_cost(site: Site, layout: str, reads: int, place: Place, objects_per_read: int | None = None) -> float:
    """USD per month for `reads` requests, uncached and uncompressed; fixed fees included.

    A read is that of a list's page, unless `objects_per_read` says how many objects a search takes.
    """
    fees = sum(place.reads.per_month.values())
    if objects_per_read is None:
        objects_per_read = layouts.reads_per_page(layout)
    else:
        fees += sum(place.reads.per_month_with_search.values())
    return fees + reads * _usd(place, objects_per_read, site.page_bytes())


def egress_cost(site: Site, downloads: int, per_gb: float) -> float:
    """USD per month for `downloads` of the whole dump, at a price per GB; requests for them cost next to nothing."""
    return downloads * site.downloads.dump_bytes / _GB * per_gb


def address_cost(site: Site, layout: str, limit: Limit, place: Place, objects_per_search: int) -> float:
    """USD per month for one address that always asks for what costs most, as often as it may; without fixed fees."""
    largest = site.page_bytes(LIMIT_MAX)
    page = _usd(place, layouts.reads_per_page(layout), largest)
    file = _usd(place, _READS_PER_FILE, site.downloads.dump_bytes) if site.downloads.dump_bytes else 0.0
    dearest = max(page, file)
    search = max(dearest, _usd(place, objects_per_search, largest))
    return (limit.requests - limit.searches) * dearest + limit.searches * search


def refusal_cost(place: Place) -> float:
    """USD, at most, for a million requests that the rate limit refuses."""
    return sum(place.reads.per_million.values())


def _usd(place: Place, objects: int, size: int) -> float:
    """The price of one request that reads so many objects and is answered with so many bytes."""
    prices = place.reads
    usd = sum(prices.per_million.values()) / 1e6 + objects * sum(prices.per_million_objects.values()) / 1e6
    return usd + size / _GB * sum(prices.per_gb.values())
