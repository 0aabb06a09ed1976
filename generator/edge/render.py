"""The CDN side of a deployment: Jinja2 templates and settings → the router and each edge's configuration, as text.

It decides nothing about requests (templates/edge/router.js.j2 does) and knows neither the catalog nor where files go.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from generator.api import contract, cursors, keys, slugs
from generator.config.settings import Config
from generator.edge import cloudflare, cloudfront, nginx, responses, templates
from generator.tree import chunks, pages

#: The folder, beside `v1/` in the output folder, of what is rendered here. It is never served.
FOLDER: Final = "edge"
#: The router core alone: what `serve` runs, the same text that every edge's script includes.
ROUTER: Final = f"{FOLDER}/router.js"
#: Every file that some settings give; what the present ones do not give must not stay.
NAMES: Final = (
    ROUTER,
    *(f"{FOLDER}/{nginx.FOLDER}/{name}" for name in (nginx.SCRIPT, nginx.LOCAL, nginx.BUCKET)),
    *(f"{FOLDER}/{cloudfront.FOLDER}/{name}" for name in cloudfront.NAMES),
    *(f"{FOLDER}/{cloudflare.FOLDER}/{name}" for name in cloudflare.NAMES),
)

#: Of both layouts: a site that moves from one to the other has cursors of either.
_LETTERS: Final = pages.LETTER + chunks.LETTER
#: What `encodeURIComponent` leaves alone besides letters, digits, `-` and `_` (ECMA-262).
_UNRESERVED: Final = ".!~*'()"


@dataclass(frozen=True, slots=True)
class EdgeFile:
    """A rendered file: its name within the output folder, and its text."""

    name: str
    text: str


def render(config: Config) -> Iterator[EdgeFile]:
    """Every file of every edge."""
    yield EdgeFile(ROUTER, router(config))
    yield from _nginx(config)
    yield from _cloudfront(config)
    yield from _cloudflare(config)


def router(config: Config) -> str:
    """The router core alone; its template says how to call it."""
    return templates.rendered("edge/router.js.j2", _reader_values(config))


def _nginx(config: Config) -> Iterator[EdgeFile]:
    folder = f"{FOLDER}/{nginx.FOLDER}"
    yield EdgeFile(
        f"{folder}/{nginx.SCRIPT}",
        templates.rendered("edge/nginx/nginx.js.j2", _reader_values(config) | {"objects": nginx.OBJECTS}),
    )
    for name, values in nginx.configurations(config):
        yield EdgeFile(f"{folder}/{name}", templates.rendered("edge/nginx/nginx.conf.j2", values))


def _cloudfront(config: Config) -> Iterator[EdgeFile]:
    is_cut = config.layout == chunks.LAYOUT
    values = _router_values(config) | cloudfront.function_values(config)
    if is_cut:
        values |= {"names_windows": True, "letters": _LETTERS}
    responding = cloudfront.origin_response_values(config)
    functions = {
        cloudfront.FUNCTION: templates.rendered("edge/cloudfront/function.js.j2", values),
        cloudfront.ORIGIN_RESPONSE: templates.rendered("edge/cloudfront/origin-response.js.j2", responding),
    }
    if is_cut:
        cutting = _window_values() | cloudfront.origin_request_values(config)
        functions[cloudfront.ORIGIN_REQUEST] = templates.rendered("edge/cloudfront/origin-request.js.j2", cutting)
    stack = templates.rendered("edge/cloudfront/template.yaml.j2", cloudfront.stack_values(config, functions))
    for name, text in {**functions, cloudfront.STACK: stack}.items():
        yield EdgeFile(f"{FOLDER}/{cloudfront.FOLDER}/{name}", text)


def _cloudflare(config: Config) -> Iterator[EdgeFile]:
    worker = templates.rendered(
        "edge/cloudflare/worker.js.j2", cloudflare.worker_values(config, _reader_values(config))
    )
    wrangler = templates.rendered("edge/cloudflare/wrangler.jsonc.j2", cloudflare.wrangler_values(config))
    for name, text in zip(cloudflare.NAMES, (worker, wrangler), strict=True):
        yield EdgeFile(f"{FOLDER}/{cloudflare.FOLDER}/{name}", text)


def public_paths(config: Config) -> tuple[str, dict[str, str]]:
    """Where readers of `base_url` find the list, and each document by its path with its key."""
    base = urlsplit(config.base_url).path
    named = {keys.SNAPSHOT.removesuffix(".json"): keys.SNAPSHOT, keys.OPENAPI: keys.OPENAPI, keys.BUILD: keys.BUILD}
    return f"{base}/{keys.MARKETS}", {f"{base}/{name}": key for name, key in named.items()}


def _router_values(config: Config) -> dict[str, Any]:
    """What the router core is told: constants of contract, keys, cursor and layout, and where the API lies."""
    markets, documents = public_paths(config)
    errors, sentences = responses.error_bodies(), contract.parameter_errors(config.variant)
    return {
        "is_extended": config.variant == "extended",
        "slugs": keys.SLUGS,
        "slug_digest_length": keys.SLUG_DIGEST_LENGTH,
        "of_category": keys.OF_CATEGORY,
        "category_length": contract.CATEGORY_LENGTH,
        "reference_length": slugs.REFERENCE_LENGTH,
        "unreserved": _UNRESERVED,
        "markets": markets,
        "documents": documents,
        "lists": keys.LISTS,
        "details": keys.DETAILS,
        "first": keys.FIRST,
        "pages_per_folder": keys.PAGES_PER_FOLDER,
        "parameters": [name for name in sentences if name != contract.market_parameter(config.variant)],
        "statuses": contract.STATUS_FILTERS,
        "default_status": contract.DEFAULT_STATUS,
        "sorts": contract.SORTS,
        "default_sorts": contract.DEFAULT_SORT,
        "limit_min": contract.LIMIT_MIN,
        "limit_max": contract.LIMIT_MAX,
        "limit_default": contract.LIMIT_DEFAULT,
        "check_length": cursors.CHECK_LENGTH,
        "generation_length": cursors.GENERATION_LENGTH,
        "position_length": cursors.POSITION_LENGTH,
        "can_read": False,
        "names_windows": False,
        "letters": pages.LETTER,
        "page_letter": pages.LETTER,
        "cors": responses.CORS,
        "sentences": sentences,
        "invalid": contract.invalid().error,
        "invalid_headers": responses.error_headers(HTTPStatus.BAD_REQUEST, config),
        "fixed_headers": {204: responses.PREFLIGHT} | {code: responses.error_headers(code, config) for code in errors},
        "fixed_bodies": {204: ""} | errors,
    }


def _reader_values(config: Config) -> dict[str, Any]:
    """What the router core is told where objects can be read: of both layouts, and which one to ask for first."""
    values, unavailable = _router_values(config), HTTPStatus.SERVICE_UNAVAILABLE
    return (
        values
        | _window_values()
        | {
            "can_read": True,
            "is_cut": config.layout == chunks.LAYOUT,
            "letters": _LETTERS,
            "fixed_headers": values["fixed_headers"] | {unavailable: responses.error_headers(unavailable, config)},
            "fixed_bodies": values["fixed_bodies"] | {unavailable: responses.UNAVAILABLE},
        }
    )


def _window_values() -> dict[str, Any]:
    """What is told to whatever cuts pages out of chunks."""
    return {
        "lists": keys.LISTS,
        "head": keys.HEAD,
        "index": keys.INDEX,
        "chunks": keys.CHUNKS,
        "chunk_size": chunks.SIZE,
        "check_length": cursors.CHECK_LENGTH,
        "first_headers": {"content-type": keys.CONTENT_TYPE, "cache-control": keys.MUTABLE},
        "later_headers": {"content-type": keys.CONTENT_TYPE, "cache-control": keys.IMMUTABLE},
    }
