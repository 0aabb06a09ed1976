"""The search index of a build is a function of the data alone, whatever was built before in the same folder."""
# ruff: noqa: S311 - nothing here is secret, and every run must make the same choices

import json
import random
import shutil
from collections.abc import Callable
from typing import Final, TypeAlias

import pytest

from generator.api import keys
from generator.tree.generations import object_keys
from generator.tree.layouts import LAYOUTS
from generator.tree.manifest import Current, Manifest
from tests.support.campaigns import rounds
from tests.support.sites.builds import lasting, tells_of_earlier_builds
from tests.support.sites.publishing import PublishedSite, hour
from tests.support.sites.rows import insert_category, insert_market, market_id
from tests.support.sites.searchable_site import SEARCH

WORDS: Final = ("rain", "Raïn", "Zürich", "東京都", "election", "of", "42", "Ǆ", "raincoat")
#: Something to do to a site.
Change: TypeAlias = Callable[[], object]
pytestmark = pytest.mark.usefixtures("one_processor")


def text(rng: random.Random) -> str:
    return " ".join(rng.sample(WORDS, rng.randint(1, 4)))


def change(site: PublishedSite, rng: random.Random, step: int) -> None:
    """Edit, add, hide or show a market, or change the settings of search and layout."""
    number = rng.randint(1, 10)
    changes: list[Change] = [
        lambda: site.edit(number, question=text(rng)),
        lambda: site.edit(number, description=text(rng)),
        lambda: site.edit(number, volume=float(rng.randint(1, 99)), trader_count=rng.randint(1, 9)),
        lambda: site.edit(number, approval=rng.choice(("approved", "rejected"))),
        lambda: insert_market(site.database, 100 + step, question=text(rng), description=text(rng)),
        lambda: insert_category(site.database, rng.choice(WORDS), step, market_id=market_id(number)),
        lambda: site.settings.update(search=rng.choice(("off", "title", "title+description"))),
        lambda: site.settings.update(layout=rng.choice(LAYOUTS)),
    ]
    for made in rng.sample(changes, 3):
        made()


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(rounds(1, 3)))
def test_builds_one_after_the_other_leave_what_a_fresh_build_makes(published_site: PublishedSite, seed: int) -> None:
    rng = random.Random(seed)
    published_site.settings = {**SEARCH, "layout": rng.choice(LAYOUTS)}
    names = set[str]()
    for step in range(1, rounds(4, 9)):
        change(published_site, rng, step)
        published_site.done("build", "--as-of", hour(step), "--accept=shrink")
        published_site.done("build", "--as-of", hour(step), output="fresh")
        made, fresh = manifest_of(published_site, "output"), manifest_of(published_site, "fresh")
        assert without_downloads(made) == without_downloads(fresh)
        theirs = {key: found for key, found in fresh.objects.items() if not tells_of_earlier_builds(key)}
        assert {key: made.objects.get(key) for key in theirs} == theirs
        assert (keys.SEARCH not in made.current) == (published_site.settings["search"] == "off")
        built, expected = lasting(published_site.built()), lasting(published_site.built("fresh"))
        retired = {key for entry in made.retired for key in object_keys(entry.list, entry)}
        assert {key: built.get(key) for key in expected} == expected
        assert built.keys() - expected.keys() <= retired
        shutil.rmtree(published_site.folder / "fresh")
        names |= {entry.generation for name, entry in made.current.items() if name == keys.SEARCH}
    assert len(names) > 1, "the index never changed"


def without_downloads(built: Manifest) -> dict[str, Current]:
    return {name: current for name, current in built.current.items() if name not in keys.DOWNLOADS}


def manifest_of(site: PublishedSite, output: str) -> Manifest:
    return Manifest.model_validate(json.loads((site.folder / output / "manifest.json").read_bytes()))
