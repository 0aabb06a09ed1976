"""What the search index costs: estimates with an index, compared with real builds and publishes, in both layouts."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from generator.api import keys
from generator.cost import estimate, prices, sizes
from generator.cost.estimate import Basis, Cost, Terms
from generator.cost.sizes import Change, ListSize, Site
from generator.search.generation import MOST_OBJECTS
from generator.tree.generation import Weight
from generator.tree.layouts import LAYOUTS
from tests.support.sites.builds import dry_run_of, make_config
from tests.support.sites.publishing import FIRST, PREFIX, PublishedSite

INDEX = Weight(9, 60_000, 1, 1_000)
SIZES = Site((ListSize("all/new", 250, 75_000),), objects=55, bytes=500_000)
SEARCHED = replace(SIZES, index=INDEX)


@pytest.fixture(params=LAYOUTS)
def searched(empty: PublishedSite, request: pytest.FixtureRequest) -> PublishedSite:
    """The site with an index, built and not published."""
    empty.forget_output()
    empty.settings |= {"variant": "extended", "search": "title+description", "layout": str(request.param)}
    empty.done("build", "--as-of", FIRST)
    return empty


def report(site: PublishedSite) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((site.folder / "output" / "report.json").read_bytes())
    return content


def estimated(site: PublishedSite) -> estimate.LayoutCost:
    found = Cost.model_validate(report(site)["cost"])
    return found.layouts[site.settings["layout"]]


def uploads(site: PublishedSite) -> list[str]:
    """The keys under v1/ that the last command uploaded."""
    found = [entry.key.removeprefix(PREFIX) for entry in site.server.log if entry.operation == "PutObject"]
    return [key for key in found if key.startswith("v1/")]


def figure(lines: list[str], start: str, layout: str) -> int:
    """A figure of `plan`."""
    (line,) = [line for line in lines if line.startswith(start)]
    return int(line.split()[-len(LAYOUTS) :][LAYOUTS.index(layout)].replace(",", ""))


# ── arithmetic ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_index_adds_the_same_objects_and_bytes_to_both_layouts(tmp_path: Path) -> None:
    terms = Terms(60, timedelta(hours=6), prices.load(make_config(tmp_path)))
    without, with_index = (estimate.cost(site, Basis(), terms).layouts for site in (SIZES, SEARCHED))
    for layout in LAYOUTS:
        assert with_index[layout].objects - without[layout].objects == 10
        assert with_index[layout].bytes - without[layout].bytes == 61_000
        assert with_index[layout].puts_per_publish - without[layout].puts_per_publish == 10
        # Every publish retires an index, which is stored for the lifetime of cursors, as seven others are.
        assert with_index[layout].stored_objects - without[layout].stored_objects == 10 + 7 * 9
        assert with_index[layout].stored_bytes - without[layout].stored_bytes == 61_000 + 7 * 60_000


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_what_is_new_of_an_index_is_put_and_retired(layout: str) -> None:
    change = Change(frozenset(), frozenset(), 2, 60, index=Weight(3, 5_000, 1, 1_000))
    load = estimate.learned(Basis(), SEARCHED, change, schedule=60).loads[layout]
    assert (load.puts, load.retired_objects, load.retired_bytes) == (2 + 3 + 1 + 3, 3, 5_000)
    assert sizes.new_part(SEARCHED, change, layout) == change.index


# ── against real builds and publishes ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_the_first_publish_puts_the_index_as_measured_and_estimated(searched: PublishedSite) -> None:
    config = make_config(searched.folder, **searched.settings)
    dry = dry_run_of(config, datetime.fromisoformat(FIRST), output=searched.folder / "none")
    made = {key: len(body) for key, body in searched.built().items() if keys.SEARCH in key}
    head = made.pop(keys.head(keys.SEARCH))
    assert dry.site.index == dry.prepared.change.index == Weight(len(made), sum(made.values()), 1, head)
    searched.done("publish")
    assert estimated(searched).objects == len(searched.built()) == len(uploads(searched))
    assert estimated(searched).bytes == pytest.approx(sum(map(len, searched.built().values())), rel=0.01)


def test_plan_prices_searches_by_the_most_objects_that_one_reads(published_site: PublishedSite) -> None:
    output = published_site.done("plan", "--reads", "10M", variant="extended").stdout
    figures = {line.rpartition("  ")[0].split("  ")[0]: line.split()[-2:] for line in output.splitlines()}
    # A month of Workers, then each request and the reads of 24 objects for it, in USD per million.
    assert figures["plus 10,000,000 searches at R2, at most"] == [f"{5 + 10 * (0.30 + MOST_OBJECTS * 0.36):.2f}"] * 2
    # One in ten of a reader's 13.14 million requests may be a search; the others take two reads, in chunks three.
    usd = [13.14 * 0.30 + 1.314 * MOST_OBJECTS * 0.36 + 11.826 * reads * 0.36 for reads in (2, 3)]
    assert figures["plus one reader at the rate limit at R2"] == [f"{most:.2f}" for most in usd]
    assert "makes 13,140,000 requests a month, 1,314,000 of them searches;" in output
    assert "a search reads 24 objects at most; CloudFront cannot search in layout pages" in output
    for settings in ({"variant": "extended", "search": "off"}, {}):
        assert "search" not in published_site.done("plan", "--reads", "10M", **settings).stdout
