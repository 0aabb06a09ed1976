"""What dump and change feed cost: arithmetic, and estimates compared with real builds and publishes."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from generator.cost import estimate, prices, readers, sizes
from generator.cost.estimate import Basis, Terms
from generator.cost.sizes import Change, Downloads, ListSize, Site
from generator.tree.generation import Weight
from generator.tree.layouts import LAYOUTS
from tests.support.sites.builds import make_config
from tests.support.sites.publishing import FIRST, PREFIX, PublishedSite, hour

SIZES = Site((ListSize("all/new", 250, 75_000),), objects=55, bytes=500_000)
#: A dump of 20,000 bytes and its index, the index of the change feed and two steps of 1,000 bytes; two heads.
DOWNLOADS = Downloads(Weight(5, 23_000, 2, 1_000), dump_bytes=20_000, steps=2, steps_bytes=2_000)
OFFERED = replace(SIZES, downloads=DOWNLOADS)


@pytest.fixture
def terms(tmp_path: Path) -> Terms:
    return Terms(60, timedelta(hours=6), prices.load(make_config(tmp_path)))


def test_dump_and_change_feed_add_the_same_objects_and_bytes_to_both_layouts(terms: Terms) -> None:
    without, with_downloads = (estimate.cost(site, Basis(), terms).layouts for site in (SIZES, OFFERED))
    for layout in LAYOUTS:
        assert with_downloads[layout].objects - without[layout].objects == 7
        assert with_downloads[layout].bytes - without[layout].bytes == 24_000
        # Where everything changes, a step would outweigh the dump, so none is made.
        assert with_downloads[layout].puts_per_publish - without[layout].puts_per_publish == 5
        # Every publish retires a dump, which is stored for the lifetime of cursors, as seven others are.
        assert with_downloads[layout].stored_objects - without[layout].stored_objects == 7 + 7 * 3
        assert with_downloads[layout].stored_bytes - without[layout].stored_bytes == 24_000 + 7 * 21_000


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_new_of_them_is_put_and_retired(layout: str) -> None:
    change = Change(frozenset(), frozenset(), 2, 60, downloads=Weight(4, 21_600, 2, 1_000), step_bytes=600)
    load = estimate.learned(Basis(), OFFERED, change, schedule=60).loads[layout]
    assert (load.puts, load.retired_objects, load.retired_bytes) == (2 + 6 + 3, 4, 21_600)
    assert load.step_bytes == 600
    assert sizes.new_part(OFFERED, change, layout) == change.downloads


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


def test_the_shipped_prices_say_what_egress_costs(tmp_path: Path) -> None:
    amazon, cloudflare = prices.load(make_config(tmp_path)).places
    assert amazon.egress == {"through CloudFront": 0.085, "straight from S3": 0.09}
    assert cloudflare.egress == {"through a custom domain": 0.0}


# ── against real builds and publishes ─────────────────────────────────────────────────────────────────────────────


def figure(lines: list[str], start: str) -> int:
    """A figure of `plan`."""
    (line,) = [line for line in lines if line.startswith(start)]
    return int(line.split()[-1].replace(",", ""))


def of_downloads(site: PublishedSite) -> list[str]:
    """The keys of dump and change feed that the last command uploaded."""
    puts = [entry.key.removeprefix(PREFIX) for entry in site.server.log if entry.operation == "PutObject"]
    return [key for key in puts if key.startswith(("v1/dumps/", "v1/changes/"))]


def test_plan_predicts_which_downloads_the_next_publish_puts_and_their_bytes(published_site: PublishedSite) -> None:
    assert (
        figure(
            published_site.done("plan", "--as-of", FIRST).stdout.splitlines(), "of these, in the dump and change feed"
        )
        == 0
    )
    published_site.edit(1, question="Else?")
    published_site.edit(2, is_listed=0)
    lines = published_site.done("plan", "--as-of", hour(1)).stdout.splitlines()
    published_site.server.log.clear()
    published_site.done("rebuild", "--as-of", hour(1))
    puts, stored = of_downloads(published_site), published_site.built()
    assert figure(lines, "of these, in the dump and change feed") == len(puts) == 6
    retired = {key for key in stored if key.startswith("v1/dumps/")} - {*puts}
    made = [body for key, body in stored.items() if key.startswith(("v1/dumps/", "v1/changes/")) and key not in retired]
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
