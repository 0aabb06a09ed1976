"""What a takedown cannot read it makes again, without a database: lists, documents, and the dump."""

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract, keys
from tests.support.faults import Reader
from tests.support.sites.builds import files
from tests.support.sites.publishing import EVERY, FIRST, PublishedSite, hour, tamper
from tests.support.sites.rows import market_id

LEFT_OUT: Final = "left out 1 market, whose details are missing or damaged; run `public-markets rebuild --verify`"
#: What may have become of a dump: it is missing, torn, or another one that can be read.
DAMAGES: Final[Mapping[str, Callable[[bytes], bytes | None]]] = {
    "missing": lambda _: None,
    "torn": lambda body: body[:-20],
    "another": lambda body: gzip.compress(gzip.decompress(body).replace(b"Question 2?", b"Forged?")),
}


def dump_of(objects: Mapping[str, bytes]) -> str:
    """The key of the only dump."""
    (key,) = (key for key in objects if key.startswith("v1/dumps/markets/"))
    return key


def check_as_built_without(site: PublishedSite, number: int) -> None:
    """The site is what a build without the market makes."""
    site.check()
    site.database.execute("DELETE FROM markets WHERE id = ?", [market_id(number)])
    site.done("build", "--as-of", FIRST, output="fresh")
    assert site.objects() == site.built("fresh")


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_dump_that_cannot_be_read_in_the_store_is_made_again_by_a_takedown(
    published_site: PublishedSite, damage: Callable[[bytes], bytes | None]
) -> None:
    key = dump_of(published_site.objects())
    body = damage(published_site.objects()[key])
    published_site.remove(key) if body is None else published_site.put(key, body)
    result = published_site.done("takedown", market_id(1))
    assert "left out" not in result.stderr
    check_as_built_without(published_site, 1)


def test_what_neither_the_dump_nor_a_detail_tells_is_left_out_and_the_takedown_says_so(
    published_site: PublishedSite,
) -> None:
    published_site.remove(dump_of(published_site.objects()))
    published_site.put(keys.detail(market_id(2)), published_site.objects()[keys.detail(market_id(3))])
    published_site.forget_output()
    assert LEFT_OUT in published_site.done("takedown", market_id(1)).stderr
    assert published_site.traces(1, output=False) == published_site.traces(2, output=False) == []
    assert len(Reader(published_site.read).walk("all/new", 100)) == len(EVERY) - 3, "one of them is in no list anyway"
    published_site.done("rebuild", "--as-of", hour(2), "--verify")
    assert len(Reader(published_site.read).walk("all/new", 100)) == len(EVERY) - 2
    published_site.check()


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("damage", [None, b"", b'{"items":[{}]}'], ids=["missing", "empty", "damaged"])
def test_without_a_dump_lists_that_cannot_be_read_are_made_again(
    published_site: PublishedSite, damage: bytes | None
) -> None:
    published_site.settings["dumps.ndjson"] = "false"
    published_site.done("rebuild", "--as-of", FIRST)
    for sort in contract.SORTS:
        key = keys.first_page(keys.list_name("all", sort), 100)
        published_site.remove(key) if damage is None else published_site.put(key, damage)
    assert "left out" not in published_site.done("takedown", market_id(1)).stderr
    check_as_built_without(published_site, 1)


def without_feed(objects: Mapping[str, bytes]) -> dict[str, bytes]:
    """The objects but those of the session of the change feed."""
    return {key: body for key, body in objects.items() if not key.startswith("v1/changes/")}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("harm", ["missing", "damaged"])
@pytest.mark.parametrize(
    "key",
    [
        keys.first_page("open/new", 100),
        keys.first_page("closed/new", 100),
        keys.BUILD,
        keys.feed("new", "json"),
        keys.head(keys.DUMPS),
    ],
)
def test_what_cannot_be_read_is_made_again(published_site: PublishedSite, harm: str, key: str) -> None:
    published_site.target = ""
    if harm == "missing":
        Path("output", key).unlink()
    else:
        tamper(Path("output", key), b'{"items":[{')
    published_site.done("takedown", market_id(1))
    published_site.database.execute("DELETE FROM markets WHERE id = ?", [market_id(1)])
    published_site.done("build", "--as-of", FIRST, output="fresh")
    assert without_feed(files(Path("output"))) == without_feed(published_site.built("fresh"))
