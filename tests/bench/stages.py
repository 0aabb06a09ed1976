"""Single stages of the product as processes: the only benchmark module that imports its internals.

    python -m tests.bench.stages lists AS_OF URL OUTPUT      database → every list page, moved into place
    python -m tests.bench.stages details AS_OF URL FILE      database → every detail, one per line of a file

Prints as JSON, without the start of Python: wall seconds, CPU seconds, the number of pages or details.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from generator.api import keys
from generator.config import loader
from generator.config.settings import Config
from generator.markets import detail
from generator.markets.quarantine import Quarantine
from generator.site import documents, worker_pool
from generator.source.queries import EVERYTHING
from generator.source.reader import open_reader
from generator.tree import staging
from generator.tree.folder import Output, locked
from generator.tree.generation import ItemList
from generator.tree.pages import LIMITS, page_count
from tests.support.sites.catalogs import catalog_of


def lists(settings: Config, as_of: datetime) -> int:
    """Read the catalog, stage every list page in forked workers, move all into place, and return their number."""
    with open_reader(settings, Quarantine()) as reader:
        catalog = catalog_of(reader, as_of)
    items = documents.lists(catalog, ())
    pages = 0
    with locked(settings.output) as folder:
        stage_list = partial(staging.stage_list, folder, settings.layout, {})
        with worker_pool.WorkerPool(stage_list, items, _files, worker_pool.available()) as pool:
            for staged in pool.results():
                pages += len(staged.first_pages.changed) + page_count(staged.current.count)
                _move(folder, staged)
    return pages


def _files(items: ItemList) -> int:
    return page_count(len(items.items)) + len(LIMITS)


def _move(folder: Output, staged: staging.StagedFamily) -> None:
    folder.move(keys.generation_prefix(staged.name, staged.current.generation))
    for key in staged.first_pages.changed:
        folder.move(key)


def details(settings: Config, as_of: datetime) -> Iterator[bytes]:
    """The detail of every market, encoded; first an empty body, once the markets are read."""
    quarantine = Quarantine()
    with open_reader(settings, quarantine) as reader:
        survey = reader.survey()
        found = reader.read(EVERYTHING, survey.facts, as_of)
        yield b""
        for shown in reader.details(found, dict(found.public()), EVERYTHING):
            yield detail.from_rows(shown, settings, quarantine).body()


def write_details(settings: Config, as_of: datetime, file: Path) -> dict[str, Any]:
    """Write one detail per line; the catalog is timed separately."""
    with file.open("wb") as lines, _taken() as catalog:
        bodies = details(settings, as_of)
        next(bodies)
        catalog.end()
        with _taken() as took:
            made = sum(lines.write(body + b"\n") > 0 for body in bodies)
        return {"made": made, "catalog_cpu_s": catalog.cpu_s, "wall_s": took.wall_s, "cpu_s": took.cpu_s}


class _Stopwatch:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), _cpu_s()
        self.wall_s = self.cpu_s = 0.0

    def end(self) -> None:
        self.wall_s, self.cpu_s = time.perf_counter() - self._wall, _cpu_s() - self._cpu


def _cpu_s() -> float:
    """CPU seconds of this process and of the workers it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@contextmanager
def _taken() -> Iterator[_Stopwatch]:
    watch = _Stopwatch()
    yield watch
    if not watch.wall_s:
        watch.end()


def _settings(url: str, folder: Path) -> Config:
    with tempfile.NamedTemporaryFile(suffix=".yaml") as file:
        return loader.load(Path(file.name), overrides=[f"output={folder}", f"source.url={url}"], environ={})


def main() -> None:
    """Run one stage and print its times."""
    stage, as_of, url, place = sys.argv[1:]
    moment = datetime.fromisoformat(as_of)
    if stage == "lists":
        with _taken() as took:
            made = lists(_settings(url, Path(place)), moment)
        times = {"made": made, "wall_s": took.wall_s, "cpu_s": took.cpu_s}
    else:
        times = write_details(_settings(url, Path(place).parent), moment, Path(place))
    sys.stdout.write(json.dumps(times))


if __name__ == "__main__":
    main()
