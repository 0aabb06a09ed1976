"""What stores and networks charge, as data with a date: the file beside this module, or one of the owner's.

It knows no amounts of anything; `estimate` multiplies.
"""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from generator.config.settings import Config, Guards
from generator.errors import ConfigError

_BUILT_IN: Final = Path(__file__).parent / "prices.json"
_AMAZON: Final = "s3.amazonaws.com"


def _day(text: str) -> str:
    return date.fromisoformat(text).isoformat()


#: USD.
Price = Annotated[float, Field(ge=0)]
Day = Annotated[str, AfterValidator(_day)]


class _Data(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, extra="forbid", frozen=True)


class Reads(_Data):
    """What readers cost, by what is charged: fixed, per million requests, per million objects read, per GB sent."""

    per_month: Mapping[str, Price]
    per_million: Mapping[str, Price]
    per_million_objects: Mapping[str, Price]
    per_gb: Mapping[str, Price]


class Place(_Data):
    """A store with the network in front of it. `hosts` are the ends of the names of its endpoints."""

    name: str
    hosts: tuple[str, ...]
    note: str = ""
    per_million_puts: Price
    per_gb_month: Price
    reads: Reads
    sources: Mapping[str, str] = {}


class Prices(_Data):
    """All prices that are known, as they were on the day `as_of`."""

    as_of: Day
    places: tuple[Place, ...]

    def of(self, host: str | None) -> Place | None:
        """The place that an endpoint belongs to; None when its prices are not known."""
        return next((one for one in self.places if host and any(_is_within(host, end) for end in one.hosts)), None)


def _is_within(host: str, end: str) -> bool:
    return host == end or host.endswith(f".{end}")


def load(config: Config) -> Prices:
    """Read the prices; raise ConfigError when the owner's file is no such thing."""
    path = config.prices or _BUILT_IN
    try:
        return Prices.model_validate_json(path.read_bytes())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"prices: {path}: {reason}; name a file, or leave the setting away") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"prices: {path}: {where}: {first['msg'].lower()}; the file beside generator/cost/prices.py shows the form"
        ) from error


def judged(known: Prices, config: Config) -> Place | None:
    """Whose prices the limit is held against; None when there is nothing to hold.

    Of a bucket whose prices are not known they are the first ones, but only for a limit that the owner set: the default
    is no reason to refuse a store that may cost nothing.
    """
    place = known.of(host(config))
    is_set = config.guards.max_monthly_cost != Guards().max_monthly_cost
    return place or (known.places[0] if is_set and host(config) else None)


def host(config: Config) -> str | None:
    """The host of the store that is published to; None for a directory, or when nothing is published."""
    if config.publish.bucket() is None:
        return None
    endpoint = config.publish.endpoint_url
    return urlsplit(endpoint).hostname if endpoint else _AMAZON
