"""Answers that are not objects, the same on every edge: errors, preflight, and the headers of all answers."""

from http import HTTPStatus
from typing import Final

from generator.api import contract, keys
from generator.config.settings import Config

METHODS: Final = "GET, HEAD, OPTIONS"
#: Browsers take answers for what their type says, and never look for scripts in them.
NO_SNIFFING: Final = {"x-content-type-options": "nosniff"}
#: Of every answer. The API is public and takes no credentials, so any page may read its answers and these headers of
#: them. Programs in browsers that read parts of a file need the last three.
COMMON: Final = {
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "ETag, Link, Retry-After, X-As-Of, Accept-Ranges, Content-Length, Content-Range",
    **NO_SNIFFING,
}
#: Seconds for which a browser that has been here over TLS comes back over nothing else.
TLS_SECONDS: Final = 31_536_000
PREFLIGHT: Final = {
    "allow": METHODS,
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": "*",
    "access-control-max-age": "86400",
}
#: A market may become public at any moment, so its 404 is cached only briefly.
_BRIEFLY: Final = "public, max-age=10"
_CACHED: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)


def error_headers(status: int, config: Config) -> dict[str, str]:
    """The headers of an error, without those of every answer."""
    headers = {"content-type": keys.CONTENT_TYPE, "cache-control": _BRIEFLY if status in _CACHED else "no-store"}
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["allow"] = METHODS
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        # After a whole window an address has its full limit again.
        headers["retry-after"] = str(window_seconds(config))
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["retry-after"] = str(contract.UNAVAILABLE_PAUSE)
    return headers


def error_bodies() -> dict[int, str]:
    """Bodies of the errors that depend on the status only, by status; that of 400 for requests that are not HTTP."""
    bodies = {status: contract.encode(body).decode() for status, body in contract.FIXED_ERRORS.items()}
    return bodies | {HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE: bodies[HTTPStatus.BAD_REQUEST]}


def window_seconds(config: Config) -> int:
    """Length of the rate limit's window in seconds; settings allow whole seconds only."""
    return int(config.rate_limit.window.total_seconds())
