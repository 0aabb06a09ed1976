"""What search index, dump and change feed cost: arithmetic, and estimates compared with real builds and publishes."""

import json
from dataclasses import replace
from datetime import datetime

import pytest

from generator.api import keys
from generator.cost import estimate, readers, sizes
from generator.cost.estimate import Basis, Cost, Terms
from generator.cost.sizes import Change, Downloads, ListSize, Site
from generator.search.generation import MOST_OBJECTS
from generator.tree.generation import Weight
from generator.tree.layouts import LAYOUTS
from tests.support.sites.builds import dry_run_of, make_config
from tests.support.sites.publishing import FIRST, PREFIX, PublishedSite, hour

SIZES = Site((ListSize("all/new", 250, 75_000),), objects=55, bytes=500_000)
SEARCHED = replace(SIZES, index=Weight(9, 60_000, 1, 1_000))
#: A dump of 20,000 bytes and its index, the index of the change feed and two steps of 1,000 bytes; two heads.
DOWNLOADS = Downloads(Weight(5, 23_000, 2, 1_000), dump_bytes=20_000, steps=2, steps_bytes=2_000)
OFFERED = replace(SIZES, downloads=DOWNLOADS)
NONE = frozenset[str]()
OF_DOWNLOADS = ("v1/dumps/", "v1/changes/")


# ── arithmetic ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("site", "whole", "puts", "retired"),
    [
        (SEARCHED, (10, 61_000), 10, (9, 60_000)),
        # Where everything changes, a step would outweigh the dump, so none is made.
        (OFFERED, (7, 24_000), 5, (3, 21_000)),
    ],
    ids=["index", "downloads"],
)
def test_index_and_downloads_add_the_same_objects_and_bytes_to_both_layouts(
    terms: Terms, site: Site, whole: tuple[int, int], puts: int, retired: tuple[int, int]
) -> None:
    """Every publish retires an index and a dump, which are stored for the lifetime of cursors, as seven others are."""
    without, found = (estimate.cost(one, Basis(), terms).layouts for one in (SIZES, site))
    for layout in LAYOUTS:
        made, plain = found[layout], without[layout]
        assert (made.objects - plain.objects, made.bytes - plain.bytes) == whole
        assert made.puts_per_publish - plain.puts_per_publish == puts
        assert made.stored_objects - plain.stored_objects == whole[0] + 7 * retired[0]
        assert made.stored_bytes - plain.stored_bytes == whole[1] + 7 * retired[1]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("site", "new", "step_bytes"),
    [(SEARCHED, {"index": Weight(3, 5_000, 1, 1_000)}, 0), (OFFERED, {"downloads": Weight(4, 21_600, 2, 1_000)}, 600)],
    ids=["index", "downloads"],
)
def test_only_what_is_new_of_them_is_put_and_retired(
    layout: str, site: Site, new: dict[str, Weight], step_bytes: int
) -> None:
    change = Change(NONE, NONE, 2, 60, step_bytes=step_bytes, **new)  # type: ignore[arg-type]
    load = estimate.learned(Basis(), site, change, schedule=60).loads[layout]
    (weight,) = new.values()
    assert load.puts == 2 + weight.immutable + weight.mutable + 3
    assert (load.retired_objects, load.retired_bytes) == (weight.immutable, weight.immutable_bytes)
    assert load.step_bytes == step_bytes
    assert sizes.new_part(site, change, layout) == weight


@pytest.mark.parametrize(
    ("schedule", "step_bytes", "steps", "steps_bytes"),
    [
        (60, 15, 168, 2_520),  # a week of them
        (60, 600, 28, 16_800),  # until they outweigh the dump, with 100 bytes in the head for each
        (720, 100, 14, 2_000),  # fewer bytes than are retained already
        (60, 30_000, 2, 2_000),  # a step that outweighs the dump is not kept
        (60, 0, 2, 2_000),
    ],
)
def test_the_change_feed_grows_until_its_steps_outweigh_the_dump_or_are_a_week_old(
    terms: Terms, schedule: int, step_bytes: int, steps: int, steps_bytes: int
) -> None:
    terms = replace(terms, schedule=schedule)
    change = Change(frozenset(), frozenset(), 0, schedule, downloads=Weight(4, 0, 2, 0), step_bytes=step_bytes)
    basis = estimate.learned(Basis(), OFFERED, change, schedule)
    made = estimate.cost(OFFERED, basis, terms).layouts["chunks"]
    assert made.stored_objects == made.objects + terms.kept * 4 + steps - 2
    assert made.stored_bytes == made.bytes + steps_bytes - 2_000


def test_a_download_is_charged_by_the_bytes_of_the_dump() -> None:
    assert readers.egress_cost(OFFERED, 1_000_000, 0.085) == pytest.approx(20 * 0.085)
    assert readers.egress_cost(OFFERED, 1_000_000, 0.0) == 0
    assert readers.egress_cost(SIZES, 1_000_000, 0.085) == 0


# ── against real builds and publishes ─────────────────────────────────────────────────────────────────────────────


def uploads(site: PublishedSite) -> list[str]:
    """The keys under v1/ that the last command uploaded."""
    found = [entry.key.removeprefix(PREFIX) for entry in site.server.log if entry.operation == "PutObject"]
    return [key for key in found if key.startswith("v1/")]


def figure(lines: list[str], start: str) -> int:
    """A figure of `plan`."""
    (line,) = [line for line in lines if line.startswith(start)]
    return int(line.split()[-1].replace(",", ""))


@pytest.fixture(params=LAYOUTS)
def searched(empty: PublishedSite, request: pytest.FixtureRequest) -> PublishedSite:
    """The site with an index, built and not published."""
    empty.forget_output()
    empty.settings |= {"variant": "extended", "search": "title+description", "layout": str(request.param)}
    empty.done("build", "--as-of", FIRST)
    return empty


def test_plan_predicts_what_the_next_publish_puts_and_the_bytes_of_downloads_and_writes_nothing(
    published_site: PublishedSite,
) -> None:
    lines = published_site.done("plan", "--all", "--as-of", FIRST).stdout.splitlines()
    assert figure(lines, "objects changed in its dump and change feed") == 0
    published_site.edit(1, question="Else?")
    published_site.edit(2, is_listed=0)
    before = {path: path.stat().st_mtime_ns for path in published_site.folder.rglob("*")}
    lines = published_site.done("plan", "--all", "--as-of", hour(1)).stdout.splitlines()
    assert {path: path.stat().st_mtime_ns for path in published_site.folder.rglob("*")} == before
    (all_changed,) = [line for line in lines if line.startswith("objects changed since 2024-01-31T12:00:00.000Z")]
    published_site.server.log.clear()
    published_site.done("rebuild", "--as-of", hour(1))
    assert int(all_changed.split()[-2].replace(",", "")) == len(uploads(published_site)) > 50
    stored = {key: body for key, body in published_site.built().items() if key != keys.ATTACH}
    puts = [key for key in uploads(published_site) if key.startswith(OF_DOWNLOADS) and key in stored]
    assert figure(lines, "objects changed in its dump and change feed") == len(puts) == 6
    retired = {key for key in stored if key.startswith("v1/dumps/")} - {*puts}
    made = [body for key, body in stored.items() if key.startswith(OF_DOWNLOADS) and key not in retired]
    assert figure(lines, "bytes of its dump and change feed") == sum(map(len, made))


def test_a_build_learns_how_large_steps_are(published_site: PublishedSite) -> None:
    published_site.edit(1, question="Else?")
    published_site.done("build", "--as-of", hour(1))
    (step,) = [
        body for key, body in published_site.built().items() if key.startswith("v1/changes/") and key.endswith(".gz")
    ]
    found = estimate.of_report((published_site.folder / "output" / "report.json").read_bytes())
    assert found
    assert {load.step_bytes for load in found.basis.loads.values()} == {len(step)}


@pytest.mark.campaign(short=1)
def test_the_first_publish_puts_the_index_as_measured_and_estimated(searched: PublishedSite) -> None:
    config = make_config(searched.folder, **searched.settings)
    report = json.loads((searched.folder / "output" / "report.json").read_bytes())
    cost = Cost.model_validate(report["cost"])
    assert cost.basis.builds == 0
    dry = dry_run_of(config, datetime.fromisoformat(FIRST), output=searched.folder / "none")
    made = {key: len(body) for key, body in searched.built().items() if keys.SEARCH in key}
    head = made.pop(keys.head(keys.SEARCH))
    assert dry.site.index == dry.prepared.change.index == Weight(len(made), sum(made.values()), 1, head)
    searched.done("publish")
    estimated = cost.layouts[searched.settings["layout"]]
    assert estimated.objects == len(searched.built()) == len(uploads(searched))
    assert estimated.bytes == pytest.approx(sum(map(len, searched.built().values())), rel=0.01)


def test_plan_prices_searches_by_the_most_objects_that_one_reads(published_site: PublishedSite) -> None:
    output = published_site.done("plan", "--all", "--reads", "10M", variant="extended").stdout
    figures = {line.rpartition("  ")[0].split("  ")[0]: line.split()[-2:] for line in output.splitlines()}
    # A month of Workers, then each request and the reads of 24 objects for it, in USD per million.
    assert figures["plus 10,000,000 searches at R2, at most"] == [f"{5 + 10 * (0.30 + MOST_OBJECTS * 0.36):.2f}"] * 2
    # One in ten of a reader's 13.14 million requests may be a search; the others take two reads, in chunks three.
    usd = [13.14 * 0.30 + 1.314 * MOST_OBJECTS * 0.36 + 11.826 * reads * 0.36 for reads in (2, 3)]
    assert figures["plus one reader at the rate limit at R2"] == [f"{most:.2f}" for most in usd]
    assert "makes 13,140,000 requests a month, 1,314,000 of them searches;" in output
    assert "a search reads 24 objects at most; CloudFront cannot search in layout pages" in output
    for settings in ({"variant": "extended", "search": "off"}, {}):
        assert "search" not in published_site.done("plan", "--all", "--reads", "10M", **settings).stdout
