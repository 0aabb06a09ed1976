"""What stores and networks charge: dated prices from the file beside this module."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from generator.config.settings import Config, Guards

_FILE: Final = Path(__file__).parent / "prices.json"
_AMAZON: Final = "s3.amazonaws.com"


def _day(text: str) -> str:
    return date.fromisoformat(text).isoformat()


#: USD.
_Price = Annotated[float, Field(ge=0)]
_Day = Annotated[str, AfterValidator(_day)]


class _Data(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, extra="forbid", frozen=True)


class Reads(_Data):
    """Charges for reads: fixed, and more where there is search; per million requests and objects read; per GB sent."""

    per_month: Mapping[str, _Price]
    per_month_with_search: Mapping[str, _Price] = {}
    per_million: Mapping[str, _Price]
    per_million_objects: Mapping[str, _Price]
    per_gb: Mapping[str, _Price]


class Place(_Data):
    """A store with the network in front of it. `hosts` are the domains of its endpoints.

    `egress` has the price of a GB sent, for each way in which large files can reach readers.
    """

    name: str
    hosts: tuple[str, ...]
    note: str = ""
    per_million_puts: _Price
    per_gb_month: _Price
    reads: Reads
    egress: Mapping[str, _Price] = {}
    sources: Mapping[str, str] = {}


class PriceList(_Data):
    """All known prices, as of a day."""

    as_of: _Day
    places: tuple[Place, ...]

    def of(self, host: str | None) -> Place | None:
        """The place that an endpoint belongs to; None when its prices are not known."""
        places = (place for place in self.places if host and any(_is_within(host, domain) for domain in place.hosts))
        return next(places, None)


def _is_within(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


def load() -> PriceList:
    """Read the prices."""
    return PriceList.model_validate_json(_FILE.read_bytes())


def judged(known: PriceList, config: Config) -> Place | None:
    """The place whose prices guards.max_monthly_cost is checked against; None when it does not apply.

    For a bucket with unknown prices it is the first place, but only if the limit was set explicitly: the default limit
    must not refuse a store that may be free.
    """
    place = known.of(host(config))
    is_set = config.guards.max_monthly_cost != Guards().max_monthly_cost
    return place or (known.places[0] if is_set and host(config) else None)


def host(config: Config) -> str | None:
    """The host of the bucket that is published to; None for a directory, or without a target."""
    if config.publish.bucket() is None:
        return None
    endpoint = config.publish.endpoint_url
    return urlsplit(endpoint).hostname if endpoint else _AMAZON
