"""The pages for people, beside `v1/` in the output folder: what was built and why, and the API's documentation.

Each opens from disk with no server, and asks nobody else for anything. Market texts come from strangers: they reach the
pages escaped, or as JSON that scripts put into text nodes. What the scripts may do stands in each page's policy.

A report may hold `cost`, an estimate in this shape:

    {"layouts": {"pages": {"objects": 1, "bytes": 1, "putsPerMonth": 1, "usdPerMonth": {"S3 + CloudFront": 0.1}}},
     "pricesAsOf": "2026-01-01"}
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from generator.api import contract, keys
from generator.api.openapi import document as openapi
from generator.builder.inspection.excerpts import Excerpts
from generator.config.settings import Config
from generator.edge import router, templates
from generator.tree import chunks, files
from generator.tree.pages import LIMITS

#: Rows that long tables and lists show at a time.
SHOWN: Final = 200
#: Markets that are readable without scripts.
_FIRST: Final = 20
#: First pages that are linked.
_LINKED: Final = (contract.LIMIT_MIN, 5, contract.LIMIT_DEFAULT, 50, contract.LIMIT_MAX)
_SCRIPTS: Final = ("start", "find", "chart", "market", "calls")
_RELATIONS: Final = ("markets", "fx_members", "orders", "fills", "probabilities")


def render(config: Config, report: Mapping[str, Any], excerpts: Excerpts) -> Iterator[tuple[str, bytes]]:
    """Every file with its bytes; `report` is what report.json says."""
    yield files.INSPECTION, _page(config, report, excerpts).encode()
    yield files.DOCUMENTATION, _documentation(config).encode()
    for name in files.PAGES:
        if name.startswith(files.VENDOR):
            yield name, templates.plain(name).encode()


def _page(config: Config, report: Mapping[str, Any], excerpts: Excerpts) -> str:
    style, script = templates.plain("inspection/page.css"), _script()
    policy = _policy(f"script-src {_hash(script)}", f"style-src {_hash(style)}", "connect-src 'self'")
    code = {"policy": policy, "style": style, "script": script}
    data = {"settings": _json(_settings(config, report)), "data": excerpts.encoded().decode()}
    return templates.rendered("inspection/page.html.j2", code | data | _texts(config, report, excerpts))


def _texts(config: Config, report: Mapping[str, Any], excerpts: Excerpts) -> dict[str, Any]:
    """What the page says without scripts."""
    lists = list(_lists(report))
    cost = report.get("cost") or {}
    estimates = [layout["usdPerMonth"] for layout in cost.get("layouts", {}).values()]
    return {
        "report": report,
        "shown": SHOWN,
        "taken_down": report.get("takenDown", []),
        "shares": list(_shares(excerpts.per_status())),
        "objects": report["run"]["written"] + report["run"]["unchanged"],
        "bytes": sum(one["generationBytes"] for one in lists),
        "first": excerpts.first(_FIRST),
        "lists": lists,
        "relations": [one for one in _RELATIONS if any(row["relation"] == one for row in report["quarantined"])],
        "documents": {"openapi.json": keys.OPENAPI, "build.json": keys.BUILD, "snapshot": keys.SNAPSHOT}.items(),
        "documentation": files.DOCUMENTATION,
        "detail": keys.detail,
        "details_folder": keys.DETAILS,
        "statuses": contract.STATUS_FILTERS,
        "sorts": contract.SORTS,
        "limit_default": contract.LIMIT_DEFAULT,
        "calls": _calls(config),
        "cost": cost,
        "places": sorted({place for one in estimates for place in one}),
        "layout_in_use": config.layout,
        "schedule": config.schedule,
    }


def _lists(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    new = set(report["run"]["newLists"]) if report["run"]["since"] else set()
    for name, one in sorted(report["lists"].items()):
        yield {**one, "name": name, "is_new": name in new, "first_pages": _first_pages(name, one["generation"])}


def _first_pages(list_name: str, generation: str) -> list[tuple[str, str]]:
    """What walks of a list begin with, each with a name: first pages of some limits, or the head."""
    if generation.startswith(chunks.LETTER):
        return [("head", keys.head(list_name))]
    return [(str(limit), keys.first_page(list_name, limit)) for limit in _LINKED if limit in LIMITS]


def _shares(per_status: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Each status with its count, and its part of a bar of a thousand."""
    whole, before = sum(per_status.values()) or 1, 0
    for status, count in per_status.items():
        yield {"status": status, "count": count, "start": 1000 * before / whole, "width": 1000 * count / whole}
        before += count


def _calls(config: Config) -> list[dict[str, str]]:
    """What can be asked of the API: a name, a path, and which fields go with it."""
    markets, documents = router.public_paths(config)
    named = [{"name": path.rsplit("/", 1)[-1], "path": path, "takes": ""} for path in documents]
    return [
        {"name": "list of markets", "path": markets, "takes": "list"},
        {"name": "one market", "path": markets, "takes": "market"},
        *named,
    ]


def _settings(config: Config, report: Mapping[str, Any]) -> dict[str, Any]:
    """What the page's scripts are told, beside the markets."""
    return {
        "report": report,
        "takenDown": report.get("takenDown", []),
        "details": keys.DETAILS,
        "statesOfFilter": contract.STATES_OF_FILTER,
        "shown": SHOWN,
        "api": {"markets": router.public_paths(config)[0]},
    }


def _documentation(config: Config) -> str:
    style, script = templates.plain("inspection/api.css"), templates.plain("inspection/api.js")
    document = _readable(openapi.document(config))
    # The renderer sets styles on its elements, and from disk it is a file beside the page.
    policy = _policy(f"script-src 'self' file: {_hash(script)}", "style-src 'unsafe-inline'", "img-src data:")
    values = {
        "policy": policy,
        "style": style,
        "script": script,
        "title": f"{document['info']['title']} {document['info']['version']}",
        "content": _json(document),
        "page": files.INSPECTION,
        "document": keys.OPENAPI,
        "renderer": files.RENDERER,
    }
    return templates.rendered("inspection/api.html.j2", values)


def _readable(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the schemas of parameters in their places: the renderer takes a reference there for a loop."""
    copy: dict[str, Any] = json.loads(contract.encode(document))
    schemas = copy["components"]["schemas"]
    for path in copy["paths"].values():
        for parameter in path["get"].get("parameters", []):
            name = parameter["schema"].pop("$ref", "").rsplit("/", 1)[-1]
            parameter["schema"] = schemas.get(name, {}) | parameter["schema"]
    return copy


@cache
def _script() -> str:
    parts = [templates.plain(f"inspection/{name}.js") for name in _SCRIPTS]
    return "\n".join(["(() => {", *parts, "})();", ""])


def _policy(*allowed: str) -> str:
    return "; ".join(["default-src 'none'", "base-uri 'none'", "form-action 'none'", *allowed])


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    """JSON that can stand in an element: no text in it can end that element or begin another."""
    return contract.encode(value).decode().replace("<", "\\u003c")
