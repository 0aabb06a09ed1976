"""A site that moves from one layout to the other, on every edge that can read objects."""

import json
from collections.abc import Iterator
from http import HTTPStatus
from itertools import cycle, product, repeat
from typing import Final

import pytest

from generator.api import keys
from generator.tree import chunks, pages
from generator.tree.generation import ItemList
from generator.tree.layouts import LAYOUTS
from tests.support.edges.edge_sites import EDGES, EdgeSite, edge_site, target
from tests.support.edges.windows import made_up, walk
from tests.support.readers import lists
from tests.support.readers.search_walks import AFTER, BEFORE, LATER, QUERIES, Walk, objects
from tests.support.waiting import wait_until

#: In the short tier each edge is rendered for one layout.
SHORT: Final = [*zip(EDGES, cycle(LAYOUTS), strict=False)]
#: The other layout of each.
BEYOND: Final = [
    pytest.param(case, marks=pytest.mark.campaign(short=0)) for case in product(EDGES, LAYOUTS) if case not in SHORT
]


@pytest.fixture(scope="module", params=[*SHORT, *BEYOND], ids="-".join)
def moving(request: pytest.FixtureRequest) -> Iterator[EdgeSite]:
    """An edge that was rendered for either layout and searches, with an empty store."""
    with edge_site(*request.param, variant="extended", search="title") as running:
        yield running


def in_pages(at: EdgeSite, one: ItemList, limit: int, page: bytes) -> None:
    """Walk what is in the layout `pages`, from a page on."""
    generation, position = pages.PagedList(one).name, 0
    while following := json.loads(page)["nextCursor"]:
        position += limit
        page = at.ask(one.name, limit, following).body
        assert page == lists.page(one, generation, position, limit)
    assert position + limit >= len(one.items)


def test_a_site_may_move_to_the_other_layout_and_back_and_no_walk_breaks(moving: EdgeSite) -> None:
    name, limit = "all/new", 20
    paged, cut, again = (made_up(name, 150, seed) for seed in ("paged", "cut", "paged again"))
    first = {one: pages.PagedList(one).first(limit) for one in (paged, again)}
    first[cut] = lists.page(cut, chunks.ChunkedList(cut).name, 0, limit)

    def shows(one: ItemList) -> bool:
        return moving.ask(name, limit).body == first[one]

    moving.put_pages(paged, limit)
    assert shows(paged)
    moving.put(cut)
    assert shows(paged if moving.layout == "pages" else cut), "of two pointers that of the edge's own layout counts"
    moving.change(keys.first_page(name, limit), None)
    wait_until(lambda: shows(cut))
    in_pages(moving, paged, limit, first[paged])
    moving.put_pages(again, limit)
    moving.change(keys.head(name), None)
    wait_until(lambda: shows(again))
    assert walk(moving, cut, repeat(limit), json.loads(first[cut])["nextCursor"]) == 7
    in_pages(moving, again, limit, first[again])
    in_pages(moving, paged, limit, first[paged])


def test_a_pointer_of_the_other_layout_is_as_good(moving: EdgeSite) -> None:
    one = made_up("all/volume", 30)
    moving.put_pages(one, 20)
    found = moving.ask(one.name, 20)
    assert found.headers["cache-control"] == keys.MUTABLE
    assert found.headers["content-type"] == keys.CONTENT_TYPE
    assert moving.ask(one.name, 20, If_None_Match=found.headers["etag"]).status == HTTPStatus.NOT_MODIFIED
    assert moving.client.send("HEAD", target(one.name, 20)).body == b""
    assert moving.ask(one.name, 21).status == HTTPStatus.SERVICE_UNAVAILABLE, "no pointer of either kind"


@pytest.mark.campaign(short=1)
def test_a_search_goes_on_while_the_site_is_republished_and_when_it_moves(moving: EdgeSite) -> None:
    other = next(layout for layout in LAYOUTS if layout != moving.layout)
    moving.put_objects(objects(BEFORE, moving.layout))
    begun = [Walk(query) for query in QUERIES]
    for published, layout in ((AFTER, moving.layout), (LATER, other)):
        for one in begun:
            one.read(moving.client)
        moving.put_objects(objects(published, layout))
    query = QUERIES[0]
    assert query.items(LATER) != query.items(BEFORE)
    wait_until(lambda: Walk(query).finish(moving.client).items() == query.items(LATER))
    for one in begun:
        assert one.finish(moving.client).items() == one.query.items(BEFORE), one.query
