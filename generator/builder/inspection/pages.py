"""The pages for people, beside `v1/` in the output folder: what was built and why, and the API documentation.

Each opens from disk without a server, and loads nothing from other hosts. Market texts come from strangers: they reach
the pages escaped, or as JSON that scripts put into text nodes. Each page's policy limits what its scripts may do.

A report may hold `cost`, an estimate in this shape:

    {"layouts": {"pages": {"objects": 1, "bytes": 1, "putsPerMonth": 1, "usdPerMonth": {"S3 + CloudFront": 0.1}}},
     "pricesAsOf": "2026-01-01"}
"""

import hashlib
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from generator.api import contract, feeds, keys
from generator.api.changes import ChangesHead
from generator.api.downloads import DumpHead
from generator.api.history import FEWEST, CalibrationBucket
from generator.builder.inspection.excerpts import Excerpts
from generator.builder.inspection.history import SHOWN_DAYS, HistoryFigures
from generator.config.settings import Config
from generator.edge import router, templates
from generator.site.families import FAMILIES, openapi
from generator.site.family import ROOT
from generator.source.relations import QUESTION_RELATIONS
from generator.tree import files, generations

#: The most rows that tables and lists show at once.
SHOWN: Final = 200
#: Markets shown without scripts.
_FIRST: Final = 20
#: Limits whose first pages are linked.
_LINKED: Final = (contract.LIMIT_MIN, 5, contract.LIMIT_DEFAULT, 50, contract.LIMIT_MAX)
_SCRIPTS: Final = ("start", "find", "chart", "market", "calls")
_RELATIONS: Final = ("markets", "fx_members", "orders", "fills", "probabilities", *QUESTION_RELATIONS)


_FORMATS: Final = {"ndjson": "NDJSON, gzip", "parquet": "Parquet"}


class _File(NamedTuple):
    """A file of a download: what it holds, its address relative to the page, and its size in bytes."""

    label: str
    href: str
    size: int


class PublishedDownloads(NamedTuple):
    """The heads as they are published; None for what is not. `documents` are the keys of all others that are."""

    dump: DumpHead | None
    changes: ChangesHead | None
    documents: Sequence[str] = ()

    @classmethod
    def read(cls, read: Callable[[str], bytes | None]) -> "PublishedDownloads":
        """Read them from an output folder."""
        dump, changes = (read(keys.head(name)) for name in keys.DOWNLOADS)
        return cls(
            dump=DumpHead.model_validate_json(dump) if dump else None,
            changes=ChangesHead.model_validate_json(changes) if changes else None,
            documents=[key for key in _documents() if read(key) is not None],
        )

    def texts(self, config: Config) -> dict[str, Any]:
        """The values of the page's template."""
        return {
            "dump": self.dump,
            "change_feed": self.changes,
            "files_of_markets": [*self._markets()],
            "files_of_tables": [*self._tables()],
            "steps": [*self._steps()][::-1],
            "heads": {name: keys.head(name) for name, head in zip(keys.DOWNLOADS, self[:2], strict=True) if head},
            "documents": [(key.removeprefix(ROOT), key) for key in self.documents],
            "feeds": [*_feeds()] if config.feeds.enabled else [],
        }

    def _markets(self) -> Iterable[_File]:
        for file in self.dump.markets if self.dump else ():
            yield _File(f"All markets, {_FORMATS[file.format]}", file.key, file.size)
        for named in self.dump.questions.files if self.dump and self.dump.questions else ():
            yield _File(f"Definitions of all questions, {_FORMATS[named.format]}", named.key, named.size)

    def _tables(self) -> Iterable[_File]:
        for table, title in {"history": "Histories", "fills": "Fills"}.items():
            for file in self.dump.table(table) if self.dump else ():
                yield _File(f"{title} of {file.period}", file.key, file.size)

    def _steps(self) -> Iterable[tuple[int, int, str, str, int]]:
        for serial, step in self.changes.numbered() if self.changes else ():
            yield serial, serial + 1, step.as_of, step.key, step.size


def _documents() -> list[str]:
    """The keys of all documents but heads and feeds, of which the page says more."""
    return [key for family in FAMILIES if family.path is not None and not family.immutable for key in family.keys]


def _feeds() -> Iterable[tuple[str, list[tuple[str, str]]]]:
    forms = {"JSON Feed": "json", "Atom": "atom"}
    for name in feeds.FEED_NAMES:
        yield name, [(form, keys.feed(name, extension)) for form, extension in forms.items()]


def render(
    config: Config,
    report: Mapping[str, Any],
    excerpts: Excerpts,
    downloads: PublishedDownloads,
    figures: HistoryFigures | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Every file with its bytes; `report` is the content of report.json, `figures` are of histories."""
    made = {files.HISTORY: _history(report, figures, is_public=config.history.public)} if figures else {}
    made |= {
        files.INSPECTION: _page(config, report, excerpts, downloads),
        files.DOCUMENTATION: _documentation(config),
    }
    for page, text in made.items():
        yield page, text.encode()
        for name in files.LOADED_BY[page]:
            yield name, templates.plain(name).encode()


def _page(config: Config, report: Mapping[str, Any], excerpts: Excerpts, downloads: PublishedDownloads) -> str:
    style, script = templates.plain("inspection/page.css"), _script()
    policy = _policy(
        f"script-src {_hash(script)}", f"style-src {_hash(style)}", "connect-src 'self'", "frame-src 'self' file:"
    )
    code = {"policy": policy, "style": style, "script": script}
    data = {"settings": _json(_settings(config, report)), "data": excerpts.encoded().decode()}
    return templates.rendered(
        "inspection/page.html.j2", code | data | _texts(config, report, excerpts) | downloads.texts(config)
    )


def _texts(config: Config, report: Mapping[str, Any], excerpts: Excerpts) -> dict[str, Any]:
    """The values of the page's template."""
    lists, relations = list(_lists(report)), Counter(row["relation"] for row in report["quarantined"])
    cost = report.get("cost") or {}
    estimates = [layout["usdPerMonth"] for layout in cost.get("layouts", {}).values()]
    in_use = cost.get("layouts", {}).get(config.layout, {})
    return {
        "report": report,
        "shown": SHOWN,
        "taken_down": report.get("takenDown", []),
        "shares": list(_shares(excerpts.per_status())),
        "objects": report["run"]["written"] + report["run"]["unchanged"],
        "size": in_use.get("bytes"),
        "stored_bytes": in_use.get("storedBytes"),
        "generation_bytes": sum(counts["generationBytes"] for counts in lists),
        "fx": excerpts.fx(),
        "first": excerpts.first(_FIRST),
        "list_groups": list(_by_status(lists)),
        "question_groups": list(_by_status(lists, keys.OF_QUESTIONS)),
        "question_counts": report.get("questions"),
        "questions": excerpts.questions,
        "question_detail": keys.question,
        "relations": {name: relations[name] for name in _RELATIONS if relations[name]},
        "documentation": files.DOCUMENTATION,
        "status": files.STATUS,
        "history": files.HISTORY if config.has_parquet else None,
        "detail": keys.detail,
        "details_folder": keys.DETAILS,
        "questions_folder": keys.QUESTION_DETAILS,
        "statuses": contract.STATUS_FILTERS,
        "sorts": contract.SORTS,
        "limit_default": contract.LIMIT_DEFAULT,
        "calls": _calls(config),
        "texts": [*(["category"] if config.variant == "extended" else []), *(["q"] if config.can_search else [])],
        "cost": cost,
        "places": sorted({place for usd_by_place in estimates for place in usd_by_place}),
        "layout_in_use": config.layout,
        "schedule": config.schedule,
    }


def _lists(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    new = set(report["run"]["newLists"]) if report["run"]["since"] else set()
    for name, counts in sorted(report["lists"].items()):
        first_pages = generations.first_pages(name, counts["generation"], _LINKED)
        yield {**counts, "name": name, "is_new": name in new, "first_pages": first_pages}


def _by_status(lists: Iterable[Mapping[str, Any]], of: str = "") -> Iterator[dict[str, Any]]:
    """Each status with its own lists, and with the lists of each of its categories; their names begin with `of`."""
    named: dict[str, list[Mapping[str, Any]]] = {}
    for one in lists:
        named.setdefault(one["name"].rsplit("/", 1)[0], []).append(one)
    groups = {name: _group(name, ones) for name, ones in named.items()}
    for status in contract.STATUS_FILTERS:
        if own := groups.get(of + status):
            categories = [group for name, group in groups.items() if name.startswith(f"{of}{status}.")]
            yield {"own": own, "categories": categories, "new": sum(group["new"] for group in [own, *categories])}


def _group(name: str, lists: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Lists of the same markets, in several sorts."""
    return {
        "name": name,
        "lists": lists,
        "count": max(one["count"] for one in lists),
        "bytes": sum(one["generationBytes"] for one in lists),
        "new": sum(one["is_new"] for one in lists),
    }


def _shares(per_status: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Each status with its count, and its segment of a bar of length 1000."""
    whole, before = sum(per_status.values()) or 1, 0
    for status, count in per_status.items():
        yield {"status": status, "count": count, "start": 1000 * before / whole, "width": 1000 * count / whole}
        before += count


def _calls(config: Config) -> list[dict[str, str]]:
    """The API calls to offer: a name, a path, and which fields it takes."""
    markets, documents = router.public_paths(config)
    root = f"{markets.removesuffix(keys.MARKETS)}{contract.API_VERSION}/"
    named = [
        {"name": path.removeprefix(f"{markets}/").removeprefix(root) or "index", "path": path, "takes": ""}
        for path in documents
    ]
    return [
        {"name": "list of markets", "path": markets, "takes": "list"},
        {"name": "one market", "path": markets, "takes": "market"},
        *_calls_of_questions(config, root),
        *named,
    ]


def _calls_of_questions(config: Config, root: str) -> Iterator[dict[str, str]]:
    path = root + keys.QUESTIONS.removeprefix(ROOT)
    if config.has_question_lists:
        yield {"name": "list of questions", "path": path, "takes": "list"}
    if config.has_questions:
        yield {"name": "one question", "path": path, "takes": "question"}


def _settings(config: Config, report: Mapping[str, Any]) -> dict[str, Any]:
    """The data for the page's scripts, besides the markets."""
    return {
        "report": report,
        "takenDown": report.get("takenDown", []),
        "details": keys.DETAILS,
        "statesOfFilter": contract.STATES_OF_FILTER,
        "shown": SHOWN,
        "api": {"markets": router.public_paths(config)[0]},
    }


def _buckets(figures: HistoryFigures) -> tuple[list[CalibrationBucket], list[CalibrationBucket]]:
    """The ranges of probabilities of enough markets to say something, and those of few."""
    found = figures.accuracy.horizons[0].calibration if figures.accuracy else []
    known = [bucket for bucket in found if bucket.markets]
    return [one for one in known if one.markets >= FEWEST], [one for one in known if one.markets < FEWEST]


def _history(report: Mapping[str, Any], figures: HistoryFigures, *, is_public: bool) -> str:
    style = "".join(templates.plain(f"inspection/{name}.css") for name in ("page", "history"))
    script = templates.plain("inspection/history.js")
    drawn, few = _buckets(figures)
    values = {
        "policy": _policy_of_renderer(script),
        "style": style,
        "script": script,
        "source": report["source"],
        "version": report["generator"],
        "figures": figures,
        "candles": figures.candles.encoded().decode(),
        "data": _json({"calibration": drawn, "questions": figures.questions}),
        "drawn": drawn,
        "few": few,
        "fewest": FEWEST,
        "public": keys.HISTORY if is_public else None,
        "days": SHOWN_DAYS,
        "page": files.INSPECTION,
        "documentation": files.DOCUMENTATION,
        "plotters": files.PLOTTERS,
    }
    return templates.rendered("inspection/history.html.j2", values)


def _documentation(config: Config) -> str:
    style, script = templates.plain("inspection/api.css"), templates.plain("inspection/api.js")
    document = _readable(openapi(config))
    policy = _policy_of_renderer(script, "img-src data:")
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
    """The document with parameter schemas inlined: the renderer mistakes a reference there for a loop."""
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


def _policy_of_renderer(script: str, *allowed: str) -> str:
    """The policy of a page whose renderer sets inline styles, and is loaded from a file beside it."""
    return _policy(f"script-src 'self' file: {_hash(script)}", "style-src 'unsafe-inline'", *allowed)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    """JSON that is safe inside an element: no text in it can end that element or begin another."""
    return contract.encode(value).decode().replace("<", "\\u003c")
