"""What the Cloudflare templates are told: bucket, domain, the rate limit in the binding's terms. Pure."""

import re
import zlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from generator.api import keys
from generator.config.settings import Config
from generator.edge import responses

#: The folder of Cloudflare's files.
FOLDER: Final = "cloudflare"
WORKER: Final = "worker.js"
WRANGLER: Final = "wrangler.jsonc"
NAMES: Final = (WORKER, WRANGLER)

#: The Worker's name where no domain tells deployments apart, and the bucket's where `publish.target` names none.
_NAME: Final = "public-markets"
#: A Worker's name is a label of its address on workers.dev.
_LONGEST_NAME: Final = 63
_NOT_IN_NAMES: Final = re.compile("[^a-z0-9]+")
#: So many numbers a deployment draws its own from, by its address.
_NAMESPACES: Final = 1_000_000_000
#: The periods that the rate limit binding can count in, in seconds.
_PERIODS: Final = (10, 60)


def worker_values(config: Config, router: Mapping[str, Any]) -> dict[str, Any]:
    """What the Worker is told; `router` is what the router core is told on every edge."""
    _, period = limit(config)
    waits = {HTTPStatus.TOO_MANY_REQUESTS: str(period), HTTPStatus.SERVICE_UNAVAILABLE: str(_PERIODS[0])}
    timed = {
        status.value: responses.error_headers(status, config) | {"retry-after": wait} for status, wait in waits.items()
    }
    return {
        **router,
        "fixed_headers": router["fixed_headers"] | timed,
        "root": _target(config)[1],
        "cache_root": f"{config.base_url}/",
        "content_type": keys.CONTENT_TYPE,
        "immutable": keys.IMMUTABLE,
        "mutable": keys.MUTABLE,
    }


def wrangler_values(config: Config) -> dict[str, Any]:
    """What wrangler's configuration is told."""
    requests, period = limit(config)
    host, path = _domain(config.base_url)
    return {
        "name": _name(host),
        "worker": WORKER,
        "bucket": _target(config)[0],
        "route": _route(host, path),
        "namespace": str(1 + zlib.crc32(config.base_url.encode()) % _NAMESPACES),
        "requests": config.rate_limit.requests,
        "window": responses.window_seconds(config),
        "limit": requests,
        "period": period,
    }


def limit(config: Config) -> tuple[int, int]:
    """The limit and the period with which the binding grants the same rate: the next period it has, or its longest."""
    seconds = responses.window_seconds(config)
    period = next((one for one in _PERIODS if one >= seconds), _PERIODS[-1])
    return max(-(-config.rate_limit.requests * period // seconds), 1), period


def _target(config: Config) -> tuple[str, str]:
    """The bucket, and the prefix of every key in it."""
    return config.publish.bucket() or (_NAME, "")


def _domain(base_url: str) -> tuple[str, str]:
    """The host and the path that Cloudflare is to answer for; nothing where there is no public address yet."""
    url = urlsplit(base_url)
    return (str(url.hostname), url.path) if url.scheme == "https" else ("", "")


def _name(host: str) -> str:
    """A name that two deployments in one account do not share."""
    return f"{_NAME}-{_NOT_IN_NAMES.sub('-', host)}"[:_LONGEST_NAME].rstrip("-")


def _route(host: str, path: str) -> dict[str, Any] | None:
    """Cloudflare makes a host of its own, with record and certificate; a path lies on one that is there."""
    if not host:
        return None
    return {"pattern": f"{host}{path}/*"} if path else {"pattern": host, "custom_domain": True}
