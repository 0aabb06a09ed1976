"""What the archive costs: arithmetic, and estimates compared with a real build."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from generator.cost import estimate, prices
from generator.cost.estimate import Basis, Terms
from generator.cost.sizes import ArchiveSize, ListSize, Site
from generator.tree.generation import Weight
from generator.tree.layouts import LAYOUTS
from tests.support.sites.builds import make_config

SIZES = Site((ListSize("all/new", 250, 75_000),), objects=55, bytes=500_000)
#: Two days that are over, of 30 that there will be, with an index for them; each one more has two files and an object.
ARCHIVED = replace(SIZES, archive=ArchiveSize(Weight(5, 40_000, 4, 3_000), 2, 30, Weight(2, 20_000, 1, 0)))


@pytest.fixture
def terms(tmp_path: Path) -> Terms:
    return Terms(60, timedelta(hours=6), prices.load(make_config(tmp_path)))


def test_all_days_that_the_archive_will_have_are_stored(terms: Terms) -> None:
    without, archived = (estimate.cost(site, Basis(), terms).layouts for site in (SIZES, ARCHIVED))
    for layout in LAYOUTS:
        assert archived[layout].objects - without[layout].objects == 9
        assert archived[layout].bytes - without[layout].bytes == 43_000
        assert archived[layout].stored_objects - without[layout].stored_objects == 9 + 28 * 3
        assert archived[layout].stored_bytes - without[layout].stored_bytes == 43_000 + 28 * 20_000


def test_a_build_puts_the_index_and_its_day_and_no_other_day(terms: Terms) -> None:
    without, archived = (estimate.cost(site, Basis(), terms).layouts for site in (SIZES, ARCHIVED))
    for layout in LAYOUTS:
        assert archived[layout].puts_per_publish - without[layout].puts_per_publish == 2
