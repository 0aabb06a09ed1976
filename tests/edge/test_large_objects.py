"""Objects that are larger than nginx holds in memory: a 503 like any other failure, and never an empty answer."""

import re
from collections.abc import Iterator
from typing import Final

import pytest

from generator.api import contract, cursors, keys
from generator.edge import nginx
from generator.tree.generation import ItemList
from tests.support.edges.cases import is_error
from tests.support.edges.edge_sites import CACHED, EdgeSite, edge_site
from tests.support.readers import lists

LIST: Final = "all/new"


@pytest.fixture(scope="module", params=CACHED)
def edge(request: pytest.FixtureRequest) -> Iterator[EdgeSite]:
    with edge_site(request.param, "chunks") as running:
        yield running


def padded(size: int) -> bytes:
    return contract.encode({"id": "0" * size})


def test_a_later_page_made_of_an_object_that_is_too_large_is_a_503_and_others_are_not(edge: EdgeSite) -> None:
    made = ItemList(LIST, [padded(1)] * 150 + [padded(nginx.LARGEST_OBJECT)] + [padded(1)] * 150)
    generation = edge.put(made)[LIST]
    found = {at: edge.ask(LIST, 1, cursors.mint(LIST, generation, at)) for at in (100, 150, 300)}
    assert is_error(found[150], 503)
    for at in (100, 300):
        assert found[at].body == lists.page(made, generation, at, 1)
    log = (edge.output / "edge" / "nginx" / "error.log").read_text("utf-8")
    assert re.search(rf"{LIST}/{keys.CHUNKS}/\S+: larger than the 16777216 bytes that nginx can hold; shorten", log)
