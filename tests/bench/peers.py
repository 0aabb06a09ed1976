"""The same list pages from other generators: Hugo, Eleventy, plain Node, a naive Python script.

`python -m tests.bench.peers`. The peers start from one JSON file with every list sorted and its items encoded. They
join items, compute cursors and write files. The product starts at the database.
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
from generator.config import loader
from generator.markets.quarantine import Quarantine
from generator.site import documents
from generator.source.reader import open_reader
from generator.tree.pages import Generation
from tests.bench import databases, parts
from tests.bench.build import listing, worked
from tests.bench.runner import Command, Competitor, Runner, same_files, say
from tests.bench.tables import TOOK, Goal, Results, figures, ratio, shown, table, walls
from tests.support.sites.builds import AS_OF, ROOT
from tests.support.sites.catalogs import catalog_of

MARKETS: Final = 1_000
_OURS: Final = "product, from SQLite"
_SCRIPT: Final = "naive Python script"
_NODE: Final = "plain Node"
_ELEVENTY: Final = "Eleventy"
_HUGO: Final = "Hugo, content adapter"
_HUGO_RESOURCES: Final = "Hugo, resources of one template"
_HERE: Final = Path(__file__).parent
_MODULES: Final = _HERE / "node" / "node_modules"
#: How many times faster the product should be.
_GOALS: Final = {_HUGO: 10.0, _ELEVENTY: 10.0, _SCRIPT: 5.0}


def run(runner: Runner) -> Iterator[str]:
    """Measure every generator; all must write the same bytes."""
    markets = runner.options.markets(MARKETS)
    path = databases.realistic(runner, markets)
    data = written_lists(runner, path)
    reference = runner.new("reference")
    say(f"list pages of {markets} markets from other generators")
    runner.measured(listing(databases.url(path), reference))
    competitors = [*_competitors(runner, databases.url(path), data)]
    results = runner.race(competitors, partial(_check, reference / LISTS))
    files = sum(1 for path in (reference / LISTS).rglob("*") if path.is_file())
    yield f"## The list pages of {markets:,} markets from other generators: {files:,} files"
    yield ""
    yield from _table(results)
    yield ""
    for name, limit in _GOALS.items():
        if name in results:
            runs, ours = results[name], results[_OURS]
            yield Goal(f"{name} ÷ product", ratio(walls(runs), walls(ours)), limit, is_least=True).line()
            found = ratio(walls(runs), walls(worked(ours)))
            yield Goal(f"{name} ÷ product without the start of Python", found, limit, is_least=True).line()
    yield "- all wrote the same bytes, checked file by file"


def written_lists(runner: Runner, path: Path) -> Path:
    """A file with every list: its name, its generation, and its encoded items as texts."""
    settings = loader.load(runner.root / "config.yaml", overrides=[f"source.url={databases.url(path)}"], environ={})
    with open_reader(settings, Quarantine()) as reader:
        item_lists = documents.lists(catalog_of(reader, AS_OF), ())
    lists = [
        {"name": found.name, "generation": Generation(found).name, "items": [item.decode() for item in found.items]}
        for found in item_lists
    ]
    data = runner.root / "lists.json"
    data.write_text(json.dumps(lists), "utf-8")
    return data


def scripted(data: Path, output: Path) -> Command:
    """The naive script."""
    return Command([sys.executable, _HERE / "naive.py", data, output])


def _competitors(runner: Runner, url: str, data: Path) -> Iterator[Competitor]:
    yield Competitor(_OURS, lambda output: listing(url, output))
    yield Competitor(_SCRIPT, partial(scripted, data))
    if node := runner.program("node", "plain Node and Eleventy; `make test-deps` installs it"):
        yield Competitor(_NODE, lambda output: Command([node, _HERE / "node" / "plain.js", data, output]))
        if (eleventy := _MODULES / "@11ty" / "eleventy" / "cmd.cjs").exists():
            yield Competitor(_ELEVENTY, lambda output: _eleventy(node, eleventy, data, output))
        else:
            runner.not_measured("Eleventy", "`make tests/bench/node/node_modules/ready` installs it")
    if hugo := _hugo_program():
        # Hugo's usual way, and the least work that makes the files.
        yield Competitor(_HUGO, lambda output: _hugo(hugo, "hugo-adapter", data, output))
        yield Competitor(_HUGO_RESOURCES, lambda output: _hugo(hugo, "hugo-resources", data, output))
    else:
        runner.not_measured("Hugo", "`make .venv-bench/ready` installs it")


def _hugo_program() -> Path | None:
    """The binary itself, not the Python script that starts it."""
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
        # The product creates a folder for the later pages of every list, even without any.
        subprocess.run(["find", tree, "-type", "d", "-empty", "-delete"], check=True)
    same_files(reference, written)


def _table(results: Results) -> Iterator[str]:
    ours, work = results[_OURS], worked(results[_OURS])
    rows = []
    for name, runs in results.items():
        relative = [ratio(walls(runs), walls(base)) for base in (ours, work)]
        rows.append([name, *map(shown, relative), *figures(runs)])
    yield from table(["", "x product", "x product without the start of Python", *TOOK], rows)


if __name__ == "__main__":
    parts.main(run)
