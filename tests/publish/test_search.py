"""The search index takes part in what happens to a published site: builds, publishes, withdrawals and takedowns."""

import json
from collections.abc import Mapping
from urllib.parse import quote

import pytest

from generator.api import keys
from generator.config.settings import Config
from generator.edge import router
from generator.tree.layouts import LAYOUTS
from tests.support.publishing import FIRST, FX, OPEN, Site, hour
from tests.support.rows import market_id
from tests.support.search import InQuickjs

#: Settings of a site that offers search.
SEARCH = {"variant": "extended", "search": "title+description"}


class Reads(Mapping[str, str]):
    """The objects of a site, as an edge reads them."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def __getitem__(self, key: str) -> str:
        body = self._site.read(key)
        if body is None:
            raise KeyError(key)
        return body.decode()

    def __iter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204
        return iter(self._site.objects())

    def __len__(self) -> int:
        return len(self._site.objects())


@pytest.fixture(params=LAYOUTS)
def searched(site: Site, request: pytest.FixtureRequest) -> Site:
    """The site with an index, of a market with a rare word in its description, published twice."""
    site.settings = {**SEARCH, "layout": str(request.param)}
    site.edit(1, description="Resolves by the zyzzyva committee.")
    site.edit(2, description="Resolves by another committee.")
    site.done("rebuild", "--as-of", FIRST)
    site.edit(3, description="Committee of three.", volume=1000.0)
    site.done("rebuild", "--as-of", hour(1))
    return site


def engine(site: Site) -> InQuickjs:
    return InQuickjs(router.render(Config.model_validate(site.settings)))


def found(site: Site, q: str, more: str = "") -> list[str]:
    """The ids that a search finds."""
    answers = engine(site).walk(Reads(site), f"q={quote(q)}&status=all{more}")
    assert [answer["status"] for answer in answers] == [200] * len(answers), answers[-1]
    return [item["id"] for answer in answers for item in json.loads(answer["body"])["items"]]


def test_a_published_site_can_be_searched(searched: Site) -> None:
    searched.check()
    assert found(searched, "zyzz") == [market_id(1)]
    assert sorted(found(searched, "COMMITTEE", "&limit=1")) == [market_id(number) for number in (1, 2, 3)]
    assert found(searched, "committee", "&sort=volume") == [market_id(number) for number in (3, 2, 1)]
    assert market_id(FX) not in found(searched, "question"), "no list has it"


def test_an_unchanged_rebuild_writes_nothing(searched: Site) -> None:
    before = searched.objects()
    searched.done("rebuild", "--as-of", hour(1))
    assert searched.objects() == before


def test_a_walk_goes_on_while_the_site_is_published(searched: Site) -> None:
    edge, query = engine(searched), "q=committee&status=all&limit=1&sort=volume"
    first = edge.walk(Reads(searched), query)[0]
    searched.edit(2, description="Nobody decides.", volume=5000.0)
    searched.done("rebuild", "--as-of", hour(2))
    rest = edge.walk(Reads(searched), f"{query}&cursor={json.loads(first['body'])['nextCursor']}")
    assert [item["id"] for item in json.loads(rest[0]["body"])["items"]] == [market_id(2)]
    assert found(searched, "committee", "&sort=volume") == [market_id(3), market_id(1)]


def test_no_object_has_a_word_of_a_market_that_was_taken_down(searched: Site) -> None:
    assert any(b"zyva" in body for body in searched.objects().values())
    searched.database.execute("DROP TABLE markets")
    searched.forget_output()
    searched.done("takedown", market_id(1))
    assert [key for key, body in searched.objects().items() if b"zyva" in body or b"zyzzyva" in body] == []
    assert found(searched, "zyzzyva") == []
    assert found(searched, "committee", "&sort=volume") == [market_id(3), market_id(2)]


def test_a_takedown_makes_the_index_of_a_build_without_the_market(searched: Site) -> None:
    searched.done("takedown", market_id(1), market_id(OPEN[-1]))
    index = {key: body for key, body in searched.objects().items() if keys.SEARCH in key}
    for number in (1, OPEN[-1]):
        searched.database.execute("DELETE FROM markets WHERE id = ?", [market_id(number)])
    searched.done("build", "--as-of", hour(1), output="fresh")
    assert index == {key: body for key, body in searched.built("fresh").items() if keys.SEARCH in key}


def test_a_takedown_ends_walks_in_earlier_indexes(searched: Site) -> None:
    edge, query = engine(searched), "q=committee&status=all&limit=1"
    cursor = json.loads(edge.walk(Reads(searched), query)[0]["body"])["nextCursor"]
    searched.done("takedown", market_id(1))
    (answer,) = edge.walk(Reads(searched), f"{query}&cursor={cursor}")
    assert answer["status"] == 400
    assert json.loads(answer["body"])["details"][0]["path"] == ["cursor"]


@pytest.mark.parametrize("damage", [None, b"[\n]", b"<Error/>"])
def test_an_index_that_cannot_be_read_ends_with_a_takedown(searched: Site, damage: bytes | None) -> None:
    for key, body in searched.objects().items():
        if keys.SEARCH in key and b"zyva" in body:
            searched.remove(key) if damage is None else searched.put(key, damage)
    searched.done("takedown", market_id(1))
    assert [key for key in searched.objects() if keys.SEARCH in key] == []
    assert searched.record().built.search is None
    searched.done("rebuild", "--as-of", hour(2))
    assert sorted(found(searched, "committee")) == [market_id(number) for number in (2, 3)]


def test_a_site_that_ends_search_has_no_index(searched: Site) -> None:
    searched.done("rebuild", "--as-of", hour(2), search="off")
    searched.done("rebuild", "--as-of", hour(12), search="off")
    assert [key for key in searched.objects() if keys.SEARCH in key] == []
