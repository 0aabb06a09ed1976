"""Values of the Cloudflare templates: bucket, domain, the rate limits in the binding's terms. Pure."""

import re
import zlib
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from generator.api import keys
from generator.config.settings import Config
from generator.edge import responses

FOLDER: Final = "cloudflare"
WORKER: Final = "worker.js"
WRANGLER: Final = "wrangler.jsonc"
NAMES: Final = (WORKER, WRANGLER)

#: Prefix of the Worker's name, and the bucket's name where `publish.target` has none.
_NAME: Final = "public-markets"
#: A Worker's name is a DNS label of its address on workers.dev.
_NAME_LENGTH: Final = 63
_NOT_IN_NAMES: Final = re.compile("[^a-z0-9]+")
#: How many rate limit namespaces there are to choose from, by `base_url`.
_NAMESPACES: Final = 1_000_000_000
#: Periods of the rate limit binding, in seconds.
_PERIODS: Final = (10, 60)


def worker_values(config: Config, router: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the Worker; `router` are those of the router core."""
    period = _period(config)
    too_many = responses.error_headers(HTTPStatus.TOO_MANY_REQUESTS, config) | {"retry-after": str(period)}
    return {
        **router,
        "fixed_headers": router["fixed_headers"] | {HTTPStatus.TOO_MANY_REQUESTS: too_many},
        "build": keys.BUILD,
        "root": _target(config)[1],
        "cache_root": f"{config.base_url}/",
        "content_type": keys.CONTENT_TYPE,
        "immutable": keys.immutable_control(config),
        "mutable": keys.MUTABLE,
        "file_control": keys.download_control(config),
        "file_types": keys.DOWNLOAD_TYPES,
    }


def wrangler_values(config: Config) -> dict[str, Any]:
    """Values of wrangler's configuration."""
    host, path = _domain(config.base_url)
    limits = [*_limits(config)]
    return {
        "name": _name(host),
        "worker": WORKER,
        "bucket": _target(config)[0],
        "route": _route(host, path),
        "limits": limits,
        "counted": ", ".join(f"{limit['count']} {limit['name']}" for limit in limits),
        "window": responses.window_seconds(config),
        "period": _period(config),
    }


def _limits(config: Config) -> Iterator[Mapping[str, Any]]:
    """A rate limit binding for requests and, where there is search, one for searches."""
    yield _limit("requests", "RATE_LIMITER", config.rate_limit.requests, config)
    if config.can_search:
        yield _limit("searches", "SEARCH_LIMITER", config.rate_limit.searches, config)


def _limit(name: str, binding: str, count: int, config: Config) -> Mapping[str, Any]:
    """The same rate in the binding's period."""
    seconds = responses.window_seconds(config)
    return {
        "name": name,
        "binding": binding,
        "namespace": str(1 + zlib.crc32(f"{config.base_url}#{name}".encode()) % _NAMESPACES),
        "count": count,
        "granted": max(-(-count * _period(config) // seconds), 1),
    }


def _period(config: Config) -> int:
    """The binding's next period that is as long as the window, or its longest."""
    return next((period for period in _PERIODS if period >= responses.window_seconds(config)), _PERIODS[-1])


def _target(config: Config) -> tuple[str, str]:
    """The bucket and the prefix of its keys."""
    return config.publish.bucket() or (_NAME, "")


def _domain(base_url: str) -> tuple[str, str]:
    """Host and path of the public address; empty where there is none yet."""
    url = urlsplit(base_url)
    return (str(url.hostname), url.path) if url.scheme == "https" else ("", "")


def _name(host: str) -> str:
    """A Worker name that differs between the deployments of an account."""
    return f"{_NAME}-{_NOT_IN_NAMES.sub('-', host)}"[:_NAME_LENGTH].rstrip("-")


def _route(host: str, path: str) -> dict[str, Any] | None:
    """A custom domain, for which Cloudflare creates DNS record and certificate; a path needs a domain that exists."""
    if not host:
        return None
    return {"pattern": f"{host}{path}/*"} if path else {"pattern": host, "custom_domain": True}
