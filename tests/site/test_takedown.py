"""A takedown gives, byte for byte, what a build of the same as-of gives from the same state with the markets blocked.

So of every kind of object, in the output folder and in the store; only the change feed begins a new session.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, Final

import pytest

from generator.api import keys
from generator.tree.files import MANIFEST
from generator.tree.layouts import COMPACT, LAYOUTS
from tests.site import chosen_sites
from tests.site.chosen_sites import NEXT_DAY, ChosenSite, State, rich_site
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
from tests.support.sites.builds import VARIANTS, block
from tests.support.sites.publishing import tamper
from tests.support.sites.rows import market_id

CLOSED_AT: Final = "2026-01-20 00:00:00.000000"


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("layout", "variant"), [*product(LAYOUTS, VARIANTS)])
def test_a_takedown_leaves_what_a_build_without_the_markets_makes(layout: str, variant: str) -> None:
    compare(rich_site(layout, variant))


#: Without dumps, there is nothing that is made of them.
NO_DUMPS: Final = {"dumps": {"ndjson": False}, "history": {"public": False}}
#: Sites by what is special about them.
SPECIAL: Final[dict[str, Callable[[ChosenSite], ChosenSite]]] = {
    "every market goes": lambda site: replace(site, gone=tuple(site.second)),
    "only a member of a family goes": lambda site: replace(site, gone=(7,)),
    "only listed markets go": lambda site: replace(site, gone=(2, 3)),
    "a category ends": lambda site: replace(site, gone=(5,)),
    "the last build changed nothing": lambda site: replace(site, second=site.first),
    "Parquet is of the same build": lambda site: replace(site, as_of=NEXT_DAY),
    "keys are private": lambda site: replace(site, settings={**site.settings, "market_url": None}),
    "there are no dumps": lambda site: replace(site, settings={**site.settings, **NO_DUMPS}),
    "little is published": lambda site: replace(site, settings={**site.settings, **LITTLE}),
    "markets share names": lambda site: replace(site, first=odd(site.first), second=odd(site.second)),
    "markets came and went": lambda site: replace(
        site, first=some(site.first, *range(1, 9)), second=some(site.second, 1, 2, 3, 4, 7, 9, 10)
    ),
}
#: Settings that leave out what may be left out.
LITTLE: Final[Mapping[str, Any]] = {
    "snapshot": {"size": 0}, "prices_file": False, "dumps": {"parquet": True}, "changes": {"enabled": False},
    "feeds": {"enabled": False}, "search": "title", "categories": ["obskura"],
}  # fmt: skip
#: Columns that differ from those of most markets, by number.
ODD: Final[Mapping[int, Mapping[str, Any]]] = {
    1: {"slug": "Ours", "key": "ours"},
    2: {"slug": "ours", "key": None},
    3: {"slug": None, "key": "ours"},
    4: {"key": 7_004, "description": None},
    6: {"approval": "pending"},
}


def odd(state: State) -> State:
    return {number: replace(rows, columns={**rows.columns, **ODD.get(number, {})}) for number, rows in state.items()}


def some(state: State, *numbers: int) -> State:
    return {number: state[number] for number in numbers}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("name", SPECIAL)
def test_a_takedown_leaves_what_a_build_without_the_markets_makes_where(name: str) -> None:
    compare(SPECIAL[name](rich_site(COMPACT, "extended")))


def test_a_takedown_refills_feeds_from_the_whole_list() -> None:
    """Feeds have fifty entries, so a smaller site does not show it."""
    compare(rich_site(COMPACT, "core", count=60, size=6))


def test_a_takedown_makes_the_chunks_around_the_markets_as_a_build_makes_them() -> None:
    """Lists of ten markets are one chunk; of these some are several."""
    compare(rich_site(COMPACT, "core", count=320))


def test_a_list_that_begins_as_in_an_earlier_build_shows_no_market_any_more() -> None:
    """Its head came back, as from a partial restore of a backup, and the market was closed then."""
    site = rich_site(COMPACT, "core")
    closed = replace(site.first[4], columns={**site.first[4].columns, "status": "closed", "close_time": CLOSED_AT})
    with workplace(replace(site, first={**site.first, 4: closed}, gone=(4,))) as place:
        head = place.folder / "output" / keys.head("closed/new")
        chosen_sites.fill(place.folder, place.site.first)
        place.build(chosen_sites.FIRST)
        earlier = head.read_bytes()
        chosen_sites.fill(place.folder, place.site.second)
        place.build(place.site.as_of)
        tamper(head, earlier)
        assert place.traces("output") != []
        place.done("takedown", *place.site.ids)
        assert place.traces("output") == []
        assert head.read_bytes() != earlier


@pytest.mark.parametrize("key", [keys.head("closed/new"), keys.head("all/new"), keys.head(keys.SEARCH)])
def test_a_head_that_was_lost_is_made_again(key: str) -> None:
    with workplace(replace(rich_site(COMPACT, "extended"), gone=(4,))) as place:
        place.build_both()
        (place.folder / "output" / key).unlink()
        place.done("takedown", *place.site.ids)
        assert key in place.objects("output")


def test_a_member_of_a_family_whose_detail_was_lost_is_left_out_with_a_warning() -> None:
    with workplace(replace(rich_site(COMPACT, "core"), gone=(4,))) as place:
        place.build_both()
        (place.folder / "output" / keys.detail(market_id(7))).unlink()
        assert "left out 1 market" in place.done("takedown", *place.site.ids).output
        assert market_id(7).encode() not in (place.folder / "output" / MANIFEST).read_bytes()


def compare(site: ChosenSite) -> None:
    """Compare a build with a takedown in a folder, and with one in a directory and its folder."""
    with workplace(site) as place:
        place.build_both()
        for name in ("blocked", "alone", "publishing"):
            place.copy("output", name)
        block(place.folder / "blocked", *site.ids)
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
