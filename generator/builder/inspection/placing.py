"""Puts the pages for people into the output folder, after a build. They show the report that is saved."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from pydantic_core import from_json

from generator import program
from generator.api import keys
from generator.api.columns import OWNER
from generator.api.downloads import DumpHead
from generator.builder.inspection import history, pages
from generator.builder.inspection.excerpts import Excerpts, Json, candle_files, encoded, short_candles
from generator.builder.inspection.history import HistoryFigures
from generator.builder.inspection.pages import PublishedDownloads
from generator.config.settings import Config
from generator.downloads import parquet
from generator.errors import ConfigError
from generator.site.catalog import Catalog
from generator.tree import files, manifest
from generator.tree.folder import Output


def place(folder: Output, config: Config, catalog: Catalog, digests: Mapping[str, str]) -> None:
    """Update the pages of a catalog's markets, which are in place; `digests` are those of their details, by key."""
    report = json.loads(folder.read(files.REPORT) or b"{}")
    downloads, figures = PublishedDownloads.read(folder.read), None
    if config.has_parquet and downloads.dump:
        figures = _figures(folder, downloads.dump, catalog)
    excerpts = Excerpts(catalog, config.market_url)
    candles = _candles(folder, downloads.dump, frozenset(excerpts.wanted()))
    for market_id in excerpts.wanted():
        key = keys.detail(market_id)
        if (body := folder.read(key)) is not None and manifest.digest(key, body) == digests.get(key):
            excerpts.keep(market_id, encoded(body, candles.get(market_id, ())))
    for question_id in excerpts.wanted_questions():
        key = keys.question(question_id)
        if (body := folder.read(key)) is not None and manifest.digest(key, body) == digests.get(key):
            excerpts.keep_question(body)
    placed = set()
    for name, body in pages.render(config, report, excerpts, downloads, figures):
        placed.add(name)
        if folder.put(name, body):
            folder.move(name)
    for name in files.PAGES:
        if name not in placed:
            folder.discard_key(name)


def _candles(folder: Output, head: DumpHead | None, ids: frozenset[str]) -> dict[str, Sequence[Any]]:
    """The newest daily candles of these markets, short as in excerpts; nothing of a dump that has none."""
    rows: dict[str, list[Json]] = {}
    try:
        for key in candle_files(head) if head else ():
            with folder.path(key).open("rb") as file:
                for row in map(from_json, parquet.rows(file, ids)):
                    rows.setdefault(row[OWNER], []).append(row)
    except (OSError, ValueError, ConfigError):
        return {}  # the page shows the history without them; whoever reads the files says what is wrong with them
    return {market_id: short_candles(sorted(days, key=itemgetter("start"))) for market_id, days in rows.items()}


def _figures(folder: Output, head: DumpHead, catalog: Catalog) -> HistoryFigures:
    """The figures of histories, or why there are none: what is published needs no page."""
    try:
        return history.figures(
            head, catalog, partial(_rows, folder), folder.read(files.HISTORY), program.this_program().digest
        )
    except (OSError, ValueError) as error:
        return HistoryFigures(head.history_as_of or head.as_of, fault=str(error))


def _rows(
    folder: Output, object_keys: Sequence[str], columns: Sequence[str], since: int | None
) -> Iterator[tuple[Any, ...]]:
    for key in object_keys:
        try:
            with folder.path(key).open("rb") as file:
                yield from parquet.values(file, columns, since)
        except ValueError as error:
            raise ValueError(f"{folder.path(key)}: {error}") from error
