"""The answers that are no objects, the same on every edge: errors, the preflight, and the headers all answers have."""

from http import HTTPStatus
from typing import Final

from generator.api import contract, keys
from generator.config.settings import Config

METHODS: Final = "GET, HEAD, OPTIONS"
#: The API is public and without credentials, so any page may read it, and these headers of its answers.
CORS: Final = {"access-control-allow-origin": "*", "access-control-expose-headers": "ETag, Retry-After"}
PREFLIGHT: Final = {
    "allow": METHODS,
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": "*",
    "access-control-max-age": "86400",
}
#: Where a store failed, or an object in it is damaged.
UNAVAILABLE: Final = contract.encode(contract.ErrorResponse(error="temporarily unavailable")).decode()
#: A market may become public at any moment, so nobody keeps its 404 for long.
_BRIEFLY: Final = "public, max-age=10"
_KEPT: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)


def error_headers(status: int, config: Config) -> dict[str, str]:
    """The headers of an error; CORS comes on top."""
    headers = {"content-type": keys.CONTENT_TYPE, "cache-control": _BRIEFLY if status in _KEPT else "no-store"}
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["allow"] = METHODS
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        # After a whole window an address may again do all that it is granted.
        headers["retry-after"] = str(window_seconds(config))
    return headers


def error_bodies() -> dict[int, str]:
    """The bodies of the errors that do not depend on the request, by status."""
    return {status: contract.encode(body).decode() for status, body in contract.FIXED_ERRORS.items()}


def window_seconds(config: Config) -> int:
    """The length of the rate limit's window; settings have whole seconds."""
    return int(config.rate_limit.window.total_seconds())
