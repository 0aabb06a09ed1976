"""The CDN side of a deployment: settings → the router and each edge's configuration, as text.

It knows neither the catalog nor where files are written.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from generator.config.settings import Config
from generator.edge import cloudflare, cloudfront, nginx, router, templates
from generator.tree import layouts

#: The folder beside `v1/` in the output folder that holds these files. It is never served.
FOLDER: Final = "edge"
#: The router core alone, as `serve` runs it. Every edge's script includes the same text.
ROUTER: Final = f"{FOLDER}/router.js"
#: All files that any settings produce. A build deletes those that the current settings do not.
NAMES: Final = (
    ROUTER,
    *(f"{FOLDER}/{nginx.FOLDER}/{name}" for name in nginx.NAMES),
    *(f"{FOLDER}/{cloudfront.FOLDER}/{name}" for name in cloudfront.NAMES),
    *(f"{FOLDER}/{cloudflare.FOLDER}/{name}" for name in cloudflare.NAMES),
)


@dataclass(frozen=True, slots=True)
class EdgeFile:
    """A rendered file: its name relative to the output folder, and its text."""

    name: str
    text: str


def render(config: Config) -> Iterator[EdgeFile]:
    """Every file of every edge."""
    yield EdgeFile(ROUTER, router.render(config))
    yield from _nginx(config)
    yield from _cloudfront(config)
    yield from _cloudflare(config)


def _nginx(config: Config) -> Iterator[EdgeFile]:
    folder = f"{FOLDER}/{nginx.FOLDER}"
    yield EdgeFile(
        f"{folder}/{nginx.SCRIPT}",
        templates.rendered("edge/nginx/nginx.js.j2", router.reader_values(config) | nginx.script_values(config)),
    )
    for name, template, values in nginx.configurations(config):
        yield EdgeFile(f"{folder}/{name}", templates.rendered(f"edge/nginx/{template}", values))


def _cloudfront(config: Config) -> Iterator[EdgeFile]:
    function = router.rewriter_values(config) | cloudfront.function_values(config)
    response = cloudfront.origin_response_values(config)
    functions = {
        cloudfront.FUNCTION: templates.rendered("edge/cloudfront/function.js.j2", function),
        cloudfront.ORIGIN_RESPONSE: templates.rendered("edge/cloudfront/origin-response.js.j2", response),
    }
    if layouts.is_cut(config.layout):
        request = router.cutter_values(config) | cloudfront.origin_request_values(config)
        functions[cloudfront.ORIGIN_REQUEST] = templates.rendered("edge/cloudfront/origin-request.js.j2", request)
    stack = templates.rendered("edge/cloudfront/template.yaml.j2", cloudfront.stack_values(config, functions))
    for name, text in {**functions, cloudfront.STACK: stack}.items():
        yield EdgeFile(f"{FOLDER}/{cloudfront.FOLDER}/{name}", text)


def _cloudflare(config: Config) -> Iterator[EdgeFile]:
    values = cloudflare.worker_values(config, router.counter_values(config))
    worker = templates.rendered("edge/cloudflare/worker.js.j2", values)
    wrangler = templates.rendered("edge/cloudflare/wrangler.jsonc.j2", cloudflare.wrangler_values(config))
    for name, text in zip(cloudflare.NAMES, (worker, wrangler), strict=True):
        yield EdgeFile(f"{FOLDER}/{cloudflare.FOLDER}/{name}", text)
