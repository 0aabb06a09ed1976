"""The CDN side of a deployment: Jinja2 templates and settings → the router and each edge's configuration, as text.

It decides nothing about requests (templates/router.js.j2 does) and knows neither catalog nor disk, beside templates.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import jinja2

from generator import contract, cursor, keys, pages
from generator.config import Config

#: The folder, beside `v1/` in the output folder, of what is rendered here. It is never served.
FOLDER: Final = "edge"

METHODS: Final = "GET, HEAD, OPTIONS"
#: The API is public and without credentials, so any page may read it, and these headers of its answers.
CORS: Final = {"access-control-allow-origin": "*", "access-control-expose-headers": "ETag, Retry-After"}
#: A market may become public at any moment, so nobody keeps its 404 for long.
_KEPT_ERRORS: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)
_ERROR_CACHE: Final = "public, max-age=10"
_PREFLIGHT: Final = {
    "allow": METHODS,
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": "*",
    "access-control-max-age": "86400",
}
#: Filters of the extended variant, which the core variant refuses.
_NOT_OFFERED: Final = ("category", "q")

_SOURCE_TREE: Final = Path(__file__).parent.parent / "templates"
_INSTALLED: Final = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class EdgeFile:
    """A rendered file: its name within the output folder, and its text."""

    name: str
    text: str


def render(config: Config) -> Iterator[EdgeFile]:
    """Every file of every edge."""
    yield EdgeFile(f"{FOLDER}/router.js", router(config))


def router(config: Config) -> str:
    """The router core, which every edge's adapter includes; its header says how to call it."""
    return _rendered("router.js.j2", router_values(config))


def router_values(config: Config) -> dict[str, Any]:
    """What the router core is told: the constants of contract, keys, cursor and layout, and where the API lies."""
    base = urlsplit(config.base_url).path
    return {
        "markets": f"{base}/{keys.MARKETS}",
        "documents": {
            f"{base}/{keys.SNAPSHOT.removesuffix('.json')}": keys.SNAPSHOT,
            f"{base}/{keys.OPENAPI}": keys.OPENAPI,
            f"{base}/{keys.BUILD}": keys.BUILD,
        },
        "lists": keys.LISTS,
        "details": keys.DETAILS,
        "first": keys.FIRST,
        "pages_per_folder": keys.PAGES_PER_FOLDER,
        "parameters": ["status", "sort", "limit", "cursor", *_NOT_OFFERED],
        "not_offered": _NOT_OFFERED,
        "statuses": contract.STATUS_FILTERS,
        "default_status": contract.DEFAULT_STATUS,
        "sorts": contract.SORTS,
        "default_sorts": contract.DEFAULT_SORT,
        "limit_min": contract.LIMIT_MIN,
        "limit_max": contract.LIMIT_MAX,
        "limit_default": contract.LIMIT_DEFAULT,
        "check_length": cursor.CHECK_LENGTH,
        "generation_length": cursor.GENERATION_LENGTH,
        "position_length": cursor.POSITION_LENGTH,
        "layout_letter": pages.LETTER,
        "cors": CORS,
        "sentences": contract.PARAMETER_ERRORS,
        "invalid": contract.invalid().error,
        "invalid_headers": error_headers(HTTPStatus.BAD_REQUEST, config),
        "fixed_headers": {204: _PREFLIGHT} | {status: error_headers(status, config) for status in error_bodies()},
        "fixed_bodies": {204: ""} | error_bodies(),
    }


def error_headers(status: int, config: Config) -> dict[str, str]:
    """The headers of an error, the same on every edge; CORS comes on top."""
    headers = {"content-type": keys.CONTENT_TYPE, "cache-control": "no-store"}
    if status in _KEPT_ERRORS:
        headers["cache-control"] = _ERROR_CACHE
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["allow"] = METHODS
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        # After a whole window an address may again do all that it is granted.
        headers["retry-after"] = str(int(config.rate_limit.window.total_seconds()))
    return headers


def error_bodies() -> dict[int, str]:
    """The bodies of the errors that do not depend on the request, by status."""
    return {status: contract.encode(body).decode() for status, body in contract.FIXED_ERRORS.items()}


def _rendered(template: str, values: Mapping[str, Any]) -> str:
    return _ENVIRONMENT.get_template(template).render(values)


def _environment() -> jinja2.Environment:
    # No HTML escaping: `tojson` and `quoted` write literals of the language at hand, and nothing else is injected.
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_SOURCE_TREE, _INSTALLED]),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Compact, as CloudFront counts bytes, and in the contract's order.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment


_ENVIRONMENT: Final = _environment()
