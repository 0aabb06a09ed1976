"""What the nginx templates are told: folders, addresses, the rate limit in nginx's terms. Pure."""

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

from generator.api import contract, keys
from generator.config.settings import Config
from generator.edge import responses

#: The folder of nginx's files, where it also keeps its own.
FOLDER: Final = "nginx"
SCRIPT: Final = "nginx.js"
LOCAL: Final = "nginx.conf"
BUCKET: Final = "bucket.conf"

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
#: Where the router reads objects; no reader gets there.
OBJECTS: Final = "/-/objects/"
#: An object that the router reads has at most a hundred items; more than this is refused.
_LARGEST: Final = "16m"
#: Behind whatever speaks TLS.
_PLAIN_PORT: Final = 8080


def configurations(config: Config) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each configuration's name and values: one that serves the output folder, one for a bucket if there is one."""
    yield LOCAL, _values(config) | {"name": LOCAL, "bucket": None}
    if bucket := _bucket(config):
        yield BUCKET, _values(config) | {"name": BUCKET, "bucket": bucket}


def _values(config: Config) -> dict[str, Any]:
    output = config.output.absolute()
    return {
        "output": str(output),
        "folder": str(output / "edge" / FOLDER),
        "listen": _listen(config.base_url),
        "requests": config.rate_limit.requests,
        "window": responses.window_seconds(config),
        "rate_per_minute": rate_per_minute(config.rate_limit.requests, responses.window_seconds(config)),
        "immutable_keys": f"~^{re.escape(keys.LISTS)}/[^/]+/[^/]+/(?!{keys.FIRST}/|{re.escape(keys.HEAD)}$)",
        "objects": OBJECTS,
        "largest": _LARGEST,
        "immutable": keys.IMMUTABLE,
        "mutable": keys.MUTABLE,
        "cors": responses.CORS,
        "errors": dict(_errors(config)),
    }


def rate_per_minute(requests: int, seconds: int) -> int:
    """The smallest of nginx's rates that grants so many requests; nginx counts thousandths a second, rounded down."""
    thousandths = -(-requests * 1000 // seconds)
    return -(-thousandths * 60 // 1000)


def _errors(config: Config) -> Iterator[tuple[int, Mapping[str, Any]]]:
    bodies = {HTTPStatus.BAD_REQUEST.value: contract.encode(contract.invalid()).decode()} | responses.error_bodies()
    for status, body in bodies.items():
        headers = responses.error_headers(status, config) | responses.CORS
        del headers["content-type"]  # nginx's default_type and charset make the same
        yield status, {"headers": headers, "body": body}


def _listen(base_url: str) -> str:
    url = urlsplit(base_url)
    if url.scheme == "https":
        return str(_PLAIN_PORT)
    port = url.port or 80
    return f"127.0.0.1:{port}" if url.hostname in _LOOPBACK else str(port)


def _bucket(config: Config) -> dict[str, str] | None:
    target, endpoint = config.publish.bucket(), config.publish.endpoint_url
    if not target or not endpoint:
        return None
    url = urlsplit(endpoint)
    host = f"[{url.hostname}]" if ":" in str(url.hostname) else str(url.hostname)
    return {
        "url": str(config.publish.target),
        "scheme": url.scheme,
        "host": url.netloc,
        "server": f"{host}:{url.port or (443 if url.scheme == 'https' else 80)}",
        "path": url.path + "/" + quote("/".join(target).rstrip("/")),
    }
