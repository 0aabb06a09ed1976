"""Puts the pages for people into the output folder, after a build or a takedown. They show the report that is saved."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from pydantic_core import from_json

from generator import program
from generator.api import keys
from generator.api.downloads import DumpHead
from generator.builder.inspection import history, pages
from generator.builder.inspection.downloads import Downloads
from generator.builder.inspection.excerpts import (
    CANDLED,
    Excerpts,
    Json,
    candle_files,
    encoded,
    on_page,
    short_candles,
)
from generator.builder.inspection.history import HistoryFigures
from generator.config.settings import Config
from generator.downloads import parquet
from generator.errors import ConfigError
from generator.site.catalog import Catalog
from generator.tree import files, manifest
from generator.tree.folder import Output


def excerpts_of(
    folder: Output, catalog: Catalog, market_url: str | None, digests: Mapping[str, str], *, is_full: bool = False
) -> Excerpts:
    """The excerpts of a catalog's details, as they are staged or in place; `digests` are those of all, by key.

    `market_url` is the setting. `is_full`: none is taken over from the page in place.
    """
    maker = program.this_program().digest
    found = Excerpts(catalog, market_url, maker)
    known = on_page(None if is_full else folder.read(files.INSPECTION), maker)
    wanted = found.wanted()
    candles = _Candles(folder, frozenset(wanted[:CANDLED]), known)
    for market_id in wanted:
        key = keys.detail(market_id)
        digest = digests.get(key, "")
        source = digest + candles.digest if market_id in candles.ids else digest
        if source in known:
            found.keep(market_id, known[source])
        elif (body := folder.newest(key)) is not None and manifest.digest(key, body) == digest:
            found.keep(market_id, encoded(body, source, candles.of(market_id)))
    return found


class _Candles:
    """The newest daily candles of these markets, short as in excerpts.

    They are those of the `known` excerpts if these are of the same files, which are staged or in place. If one of the
    markets has none yet, the files are read.
    """

    def __init__(self, folder: Output, ids: frozenset[str], known: Mapping[str, bytes]) -> None:
        self._folder, self._shown = folder, dict[str, Sequence[Any]]()
        head = DumpHead.found_by(folder.newest)
        self._keys = candle_files(head) if head else []
        self.ids = ids if self._keys else frozenset[str]()
        self.digest = hashlib.sha256(" ".join(self._keys).encode()).hexdigest()
        for excerpt in (from_json(body) for source, body in known.items() if source.endswith(self.digest)):
            self._shown[excerpt["id"]] = excerpt.get("candles", ())

    def of(self, market_id: str) -> Sequence[Any]:
        """Those of one market; nothing if it has none."""
        if market_id in self.ids and market_id not in self._shown:
            self._shown = dict.fromkeys(self.ids, ()) | self._read()
        return self._shown.get(market_id, ())

    def _read(self) -> dict[str, Sequence[Any]]:
        rows: dict[str, list[Json]] = {}
        try:
            for key in self._keys:
                with self._folder.open_newest(key) as file:
                    for row in map(from_json, parquet.rows(file, self.ids)):
                        rows.setdefault(row[parquet.OWNER], []).append(row)
        except (OSError, ValueError, ConfigError):
            return {}  # the page shows the history without them; whoever reads the files says what is wrong with them
        return {market_id: short_candles(sorted(days, key=itemgetter("start"))) for market_id, days in rows.items()}


def place(folder: Output, config: Config, catalog: Catalog, excerpts: Excerpts) -> None:
    """Update the pages of a catalog's markets; `config` has the settings that the site was built with."""
    report = json.loads(folder.read(files.REPORT) or b"{}")
    downloads, figures = Downloads.read(folder.read), None
    if config.has_parquet and downloads.dump:
        figures = _figures(folder, downloads.dump, catalog)
    placed = set()
    for name, body in pages.render(config, report, excerpts, downloads, figures):
        placed.add(name)
        if folder.put(name, body):
            folder.move(name)
    for name in files.PAGES:
        if name not in placed:
            folder.discard_key(name)


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


def is_in_place(folder: Output, config: Config) -> bool:
    """Whether the page in place shows the report that is saved."""
    page = folder.read(files.INSPECTION)
    return page is not None and pages.shows(page, config, json.loads(folder.read(files.REPORT) or b"{}"))
