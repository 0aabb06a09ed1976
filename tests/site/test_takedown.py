"""A takedown gives, byte for byte, what a build of the same as-of gives from the same state with the markets blocked.

So of every kind of object, in the output folder and in the store; only the change feed begins a new session.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import Phase, assume, given, seed, settings

from generator.tree.layouts import COMPACT, LAYOUTS
from tests.site.random_sites import NEXT_DAY, RandomSite, random_sites, rich_site
from tests.site.taken_down import (
    Workplace,
    changes,
    check,
    differences,
    family,
    faults_of_feed,
    keys_told,
    traces,
    workplace,
)
from tests.support.sites.builds import VARIANTS

#: Shrinking runs all commands again for each try; sites are small as they are.
_PHASES: Final = (Phase.explicit, Phase.reuse, Phase.generate)
SORTS_OF_SITES: Final[list[tuple[str, str]]] = [(layout, variant) for layout in LAYOUTS for variant in VARIANTS]
of_every_sort: Final = pytest.mark.parametrize(("layout", "variant"), SORTS_OF_SITES)


@pytest.mark.campaign(short=1)
@of_every_sort
def test_a_takedown_leaves_what_a_build_without_the_markets_makes(layout: str, variant: str) -> None:
    compare(rich_site(layout, variant))


#: Sites by what is special about them.
SPECIAL: Final[dict[str, Callable[[RandomSite], RandomSite]]] = {
    "every market goes": lambda site: replace(site, gone=tuple(site.second)),
    "only a member of a family goes": lambda site: replace(site, gone=(7,)),
    "the last build changed nothing": lambda site: replace(site, second=site.first),
    "Parquet is of the same build": lambda site: replace(site, as_of=NEXT_DAY),
    "keys are private": lambda site: replace(site, settings={**site.settings, "market_url": None}),
    "there are no dumps": lambda site: replace(site, settings={**site.settings, "dumps": {"ndjson": False}}),
}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("name", SPECIAL)
def test_a_takedown_leaves_what_a_build_without_the_markets_makes_where(name: str) -> None:
    compare(SPECIAL[name](rich_site(COMPACT, "extended")))


def test_a_takedown_refills_feeds_from_the_whole_list() -> None:
    """Feeds have fifty entries, so a smaller site does not show it."""
    compare(rich_site(COMPACT, "core", count=60, size=6))


@pytest.mark.campaign(short=0)
@of_every_sort
def test_a_takedown_leaves_what_a_build_without_the_markets_makes_of_any_site(layout: str, variant: str) -> None:
    # The same sites in every run, so that no change fails by chance, and others for each sort.
    @seed(SORTS_OF_SITES.index((layout, variant)))
    @settings(max_examples=2, phases=_PHASES, database=None)
    @given(random_sites(layout, variant))
    def play(site: RandomSite) -> None:
        assume(site.first != site.second)  # or the first one is the least of all
        compare(site)

    play()


def compare(site: RandomSite) -> None:
    """Compare a build with a takedown in a folder, and with one in a directory and its folder."""
    with workplace(site) as place:
        place.build_both()
        for name in ("blocked", "alone", "publishing"):
            place.copy("output", name)
        place.block("blocked", site.ids)
        # Nothing but what it makes may be left, so that every object is compared.
        place.build(site.as_of, "--purge-retired", output="blocked")
        place.done("takedown", *site.ids, output="alone")
        place.publish(output="publishing", target="store")
        place.done("takedown", *site.ids, output="publishing", target="store")
        expected, before = place.objects("blocked"), place.objects("output")
        is_in_lists = any(rows.is_in_lists for rows in site.removed().values())
        faults = {}
        for name in ("alone", "publishing", "store"):
            found = place.objects(name)
            feed = faults_of_feed(expected, found, before, is_in_lists=is_in_lists)
            faults[name] = [*differences(expected, found), *feed, *place.traces(name)]
        # Pages for people name what was left out.
        told = {f"keys in {name}": keys_told(site, place.objects(name)) for name in ("output", "blocked", "store")}
        check({**faults, **told, "blocked": traces(site, expected), **faults_of_the_next_run(place)})


def faults_of_the_next_run(place: Workplace) -> dict[str, list[str]]:
    """The next build and publish change nothing but the change feed, and there is nothing to repair."""
    faults = {}
    for name in ("alone", "publishing"):
        before = place.objects(name)
        place.build(place.site.as_of, output=name)
        faults[f"{name}, after the next build"] = changes(before, place.objects(name))
    before = place.objects("store")
    place.publish(output="publishing", target="store")
    published = place.objects("store")
    place.publish("--verify", output="publishing", target="store")
    faults["store, after the next publish"] = changes(before, published)
    verified = place.objects("store")
    repaired = sorted(key for key in published.keys() | verified.keys() if published.get(key) != verified.get(key))
    faults["store, verified"] = [f"{family(key)}: {key} was repaired" for key in repaired]
    return faults
