"""What a site publishes: `build.json`, and the index at `/v1/` of all that is not found through something else."""

from typing import Annotated, Literal

from generator.api import feeds, keys, links
from generator.api.contract import API_VERSION, Closed, IfPresent, Variant
from generator.api.forms import Count, Timestamp, UriTemplate, Url
from generator.config.settings import Config


class Category(Closed):
    """A category that has lists."""

    slug: str
    name: str


class BuildRecord(Closed):
    """What is published, and as of when."""

    as_of: Timestamp
    generator: str
    variant: Variant
    layout: Literal["pages", "chunks"]
    markets: Count
    lists: dict[str, Count]
    snapshot_size: Count
    search: Annotated[list[str] | None, IfPresent] = None
    categories: Annotated[list[Category] | None, IfPresent] = None


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


def make(config: Config) -> SiteIndex:
    """The index of a site with these settings."""
    return SiteIndex(
        markets=_url(config, keys.MARKETS),
        snapshot=_url(config, keys.SNAPSHOT.removesuffix(".json")),
        prices=_url(config, keys.PRICES) if config.prices_file else None,
        build=_url(config, keys.BUILD),
        openapi=_url(config, keys.OPENAPI),
        llms=_url(config, keys.LLMS),
        changelog=_url(config, keys.CHANGELOG),
        dumps=_url(config, keys.head(keys.DUMPS)) if config.dumps.ndjson else None,
        changes=_url(config, keys.head(keys.CHANGES)) if config.has_changes else None,
        feeds=[_feed(config, name) for name in feeds.FEED_NAMES] if config.feeds.enabled else None,
        market_url=links.uri_template(config.market_url),
    )


def address(config: Config) -> str:
    """The address of the index itself."""
    return _url(config, f"{API_VERSION}/")


def _feed(config: Config, name: feeds.FeedName) -> FeedAddresses:
    as_json, atom = (_url(config, keys.feed(name, extension)) for extension in ("json", "atom"))
    return FeedAddresses(name=name, json_feed=as_json, atom=atom)


def _url(config: Config, path: str) -> str:
    return f"{config.base_url}/{path}"
