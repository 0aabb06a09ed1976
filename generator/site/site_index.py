"""The index of the site, which `/v1/` answers: the address of everything that is not found through something else."""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

from pydantic import Field, create_model

from generator.api import feeds, keys, links
from generator.api.contract import Closed, IfPresent
from generator.api.forms import UriTemplate, Url
from generator.config.settings import Config
from generator.site.family import ROOT, Family


class FeedAddresses(Closed):
    """A feed in both of its forms."""

    name: feeds.FeedName
    json_feed: Url
    atom: Url


class SiteIndex(Closed):
    """Where everything is; what this site does not publish is absent."""

    markets: Url
    snapshot: Url
    prices: Annotated[Url | None, IfPresent] = None
    build: Url
    openapi: Url
    llms: Url
    changelog: Url
    dumps: Annotated[Url | None, IfPresent] = None
    changes: Annotated[Url | None, IfPresent] = None
    feeds: Annotated[list[FeedAddresses] | None, IfPresent] = None
    market_url: Annotated[UriTemplate | None, IfPresent] = None


@cache
def model(families: Sequence[Family]) -> type[SiteIndex]:
    """The form of the index of sites that have no other families; those that SiteIndex does not name come last."""
    others: dict[str, Any] = {
        one.name: (Annotated[Url | None, IfPresent, Field(description=f"The address of `{one.name}`.")], None)
        for one in families
        if one.path is not None and one.path and one.name not in SiteIndex.model_fields
    }
    return create_model("SiteIndex", __base__=SiteIndex, __doc__=SiteIndex.__doc__, **others) if others else SiteIndex


def make(config: Config, families: Sequence[Family]) -> SiteIndex:
    """The index of a site with these settings."""
    addresses = {one.name: _url(config, one.path) for one in families if one.path and one.is_on(config)}
    return model(families)(
        **addresses,
        markets=_url(config, keys.MARKETS.removeprefix(ROOT)),
        feeds=[_feed(config, name) for name in feeds.FEED_NAMES] if config.feeds.enabled else None,
        market_url=links.uri_template(config.market_url),
    )


def in_order(families: Sequence[Family]) -> list[Family]:
    """The documents that have an address of their own, in the order of the index."""
    names = [*model(families).model_fields]
    return sorted((one for one in families if one.path), key=lambda one: names.index(one.name))


def _feed(config: Config, name: feeds.FeedName) -> FeedAddresses:
    as_json, atom = (f"{config.base_url}/{keys.feed(name, extension)}" for extension in ("json", "atom"))
    return FeedAddresses(name=name, json_feed=as_json, atom=atom)


def _url(config: Config, path: str) -> str:
    return f"{config.base_url}/{ROOT}{path}"
