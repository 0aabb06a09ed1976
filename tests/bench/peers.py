"""The same list pages by other generators: Hugo, Eleventy, plain Node, a naive Python script.

`python -m tests.bench.peers`. The peers get what costs the product its time for nothing: every list in its order with
its items encoded, in one JSON file. They have to join items, mint cursors and write files. The product starts at the
database.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from generator.api.keys import LISTS
from generator.builder import artifacts
from generator.config import loader
from generator.markets.quarantine import Quarantine
from generator.source.reader import open_reader
from generator.tree.pages import Generation
from tests.bench import databases, parts
from tests.bench.build import listing, worked
from tests.bench.tables import TOOK, Goal, Results, figures, ratio, shown, table, walls
from tests.bench.workshop import Command, Competitor, Workshop, same_files, say
from tests.support.builds import AS_OF, ROOT

MARKETS: Final = 1_000
_OURS: Final = "product, from SQLite"
_SCRIPT: Final = "naive Python script"
_NODE: Final = "plain Node"
_ELEVENTY: Final = "Eleventy"
_HUGO: Final = "Hugo, content adapter"
_HUGO_RESOURCES: Final = "Hugo, resources of one template"
_HERE: Final = Path(__file__).parent
_MODULES: Final = _HERE / "node" / "node_modules"
#: What the product is to be faster by.
_GOALS: Final = {_HUGO: 10.0, _ELEVENTY: 10.0, _SCRIPT: 5.0}


def run(workshop: Workshop) -> Iterator[str]:
    """Measure, with the same bytes asked of everybody."""
    markets = workshop.options.markets(MARKETS)
    path = databases.lifelike(workshop, markets)
    data = written_lists(workshop, path)
    reference = workshop.new("reference")
    say(f"list pages of {markets} markets by other generators")
    workshop.measured(listing(databases.url(path), reference))
    competitors = [*_competitors(workshop, databases.url(path), data)]
    results = workshop.race(competitors, partial(_check, reference / LISTS))
    files = sum(1 for one in (reference / LISTS).rglob("*") if one.is_file())
    yield f"## The list pages of {markets:,} markets by other generators: {files:,} files"
    yield ""
    yield from _table(results)
    yield ""
    for name, limit in _GOALS.items():
        if name in results:
            runs, ours = results[name], results[_OURS]
            yield Goal(f"{name} ÷ product", ratio(walls(runs), walls(ours)), limit, is_least=True).line()
            found = ratio(walls(runs), walls(worked(ours)))
            yield Goal(f"{name} ÷ product without the start of Python", found, limit, is_least=True).line()
    yield "- all wrote the same bytes, which was checked file by file"


def written_lists(workshop: Workshop, path: Path) -> Path:
    """A file with every list: its name, its generation, and its encoded items as texts."""
    settings = loader.load(workshop.root / "config.yaml", overrides=[f"source.url={databases.url(path)}"], environ={})
    with open_reader(settings, Quarantine()) as reader:
        found = artifacts.lists(reader.catalog(AS_OF), ())
    lists = [
        {"name": one.name, "generation": Generation(one).name, "items": [item.decode() for item in one.items]}
        for one in found
    ]
    data = workshop.root / "lists.json"
    data.write_text(json.dumps(lists), "utf-8")
    return data


def scripted(data: Path, output: Path) -> Command:
    """The naive script."""
    return Command([sys.executable, _HERE / "naive.py", data, output])


def _competitors(workshop: Workshop, url: str, data: Path) -> Iterator[Competitor]:
    yield Competitor(_OURS, lambda output: listing(url, output))
    yield Competitor(_SCRIPT, partial(scripted, data))
    if node := workshop.program("node", "plain Node and Eleventy; `make test-deps` installs it"):
        yield Competitor(_NODE, lambda output: Command([node, _HERE / "node" / "plain.js", data, output]))
        if (eleventy := _MODULES / "@11ty" / "eleventy" / "cmd.cjs").exists():
            yield Competitor(_ELEVENTY, lambda output: _eleventy(node, eleventy, data, output))
        else:
            workshop.lacks("Eleventy", "`make tests/bench/node/node_modules/ready` installs it")
    if hugo := _hugo_program():
        # Its own way, and the least it can be asked, which nobody would call a site.
        yield Competitor(_HUGO, lambda output: _hugo(hugo, "hugo-adapter", data, output))
        yield Competitor(_HUGO_RESOURCES, lambda output: _hugo(hugo, "hugo-resources", data, output))
    else:
        workshop.lacks("Hugo", "`make .venv-bench/ready` installs it")


def _hugo_program() -> Path | None:
    """The program itself, not the Python script that starts it."""
    return next((ROOT / ".venv-bench" / "lib").glob("python*/site-packages/hugo/binaries/hugo"), None)


def _hugo(program: Path, way: str, data: Path, output: Path) -> Command:
    site = output.parent / "site"
    shutil.copytree(_HERE / way, site)
    site.joinpath("data").mkdir()
    shutil.copyfile(data, site / "data" / "lists.json")
    return Command([program, "--quiet", "--source", site, "--destination", output], cwd=site)


def _eleventy(node: str, program: Path, data: Path, output: Path) -> Command:
    site = output.parent / "site"
    shutil.copytree(_HERE / "node" / "eleventy", site)
    site.joinpath("node_modules").symlink_to(_MODULES)
    arguments: list[str | Path] = [node, program, "--quiet", "--input", "pages", "--output", output]
    return Command(arguments, cwd=site, environ={"LISTS": str(data), "PAGES": str(_HERE / "node" / "pages.js")})


def _check(reference: Path, name: str, output: Path) -> None:
    written = output / LISTS if name == _OURS else output
    for tree in (reference, written):
        # The product makes a folder for the later pages of a list even if it has none.
        subprocess.run(["find", tree, "-type", "d", "-empty", "-delete"], check=True)
    same_files(reference, written)


def _table(results: Results) -> Iterator[str]:
    ours, work = results[_OURS], worked(results[_OURS])
    rows = []
    for name, runs in results.items():
        relative = [ratio(walls(runs), walls(one)) for one in (ours, work)]
        rows.append([name, *map(shown, relative), *figures(runs)])
    yield from table(["", "x product", "x product without the start of Python", *TOOK], rows)


if __name__ == "__main__":
    parts.main(run)
