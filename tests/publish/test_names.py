"""A name of a market means the same before and after a takedown, in `find` and in `takedown`, with a record or without.

Published and blocked markets are one namespace.
"""

import shutil
from typing import Final

import pytest

from generator.api import keys
from generator.tree import blocklist
from tests.support.sites.publishing import PublishedSite, hour, slug
from tests.support.sites.rows import market_id

A, B = market_id(1), market_id(2)
HOME: Final = "https://home.example.org"
ADDRESS: Final = f"http://127.0.0.1:8000/{keys.MARKETS}/{slug(1)}"
#: What two markets are called, by their numbers: the beginning of an id, one without hyphens, a slug, two keys.
SHARED: Final = {
    market_id(1)[:8]: (1, 2),
    market_id(3).replace("-", ""): (3, 4),
    slug(5): (5, 6),
    "100 ": (7, 8),
    f"{HOME}/1e3": (9, 10),
}


@pytest.fixture
def site(published_site: PublishedSite) -> PublishedSite:
    """A site whose markets have slugs and keys."""
    published_site.settings |= {"variant": "extended", "market_url": f"{HOME}/{{key}}"}
    published_site.database.execute("ALTER TABLE markets ADD COLUMN key TEXT")
    return published_site


def rebuild(site: PublishedSite, number: int = 1, *options: str) -> None:
    site.done("rebuild", "--as-of", hour(number), *options)


def lose(site: PublishedSite, *, record: bool = True) -> None:
    shutil.rmtree(site.folder / "output", ignore_errors=True)
    if record:
        site.remove("manifest.json")


@pytest.mark.parametrize("place", ["target", "folder"])
def test_no_name_means_another_market_after_a_takedown(site: PublishedSite, place: str) -> None:
    site.edit(2, slug=market_id(1)[:8])
    site.edit(4, slug=market_id(3).replace("-", ""))
    for number, key in {6: slug(5), 7: "100", 8: "100 ", 9: "1e3"}.items():
        site.edit(number, key=key)
    rebuild(site)
    if place == "folder":
        site.target, site.settings["publish.endpoint_url"] = "", ""
    for name, numbers in [*SHARED.items()][:-1]:
        first, second = map(market_id, numbers)
        assert site.refused(1, "takedown", name).endswith(
            f"may mean 2 markets: {first}, {second}; name the one by its id"
        )
    site.done("takedown", *(market_id(first) for first, _ in SHARED.values()))
    site.edit(9, key=None)
    site.edit(10, key="1e3")
    if place == "target":
        lose(site)
        rebuild(site, 2, "--verify")
        lose(site, record=False)
    else:
        site.done("build", "--as-of", hour(2))
    for name, numbers in SHARED.items():
        first, second = map(market_id, numbers)
        told = f"may mean 2 markets: {first} (taken down), {second}; name the one by its id"
        assert site.refused(1, "takedown", name).endswith(told)
        assert site.refused(1, "takedown", "--undo", name).endswith(told)


def test_a_market_that_is_gone_keeps_all_its_names(site: PublishedSite) -> None:
    site.edit(1, key="100")
    rebuild(site)
    site.done("takedown", A)
    lose(site, record=False)
    before = site.objects()
    names = [slug(1), slug(1).upper(), "\u3000100\n", A[:8], f"{HOME}/100", ADDRESS]
    told = site.done("takedown", *names)
    assert f"{A}: has been blocked since" in told.stderr
    assert "already taken down" in told.stderr
    for name in names:
        assert site.done("takedown", "--undo", name).stdout == "0 markets are blocked\n"
        site.done("takedown", A)
    assert site.objects() == before
    assert slug(1) not in site.stored()["blocked.json"].decode(), "which only a digest tells"


def test_a_market_that_came_back_has_the_names_that_it_has_now(site: PublishedSite) -> None:
    rebuild(site)
    site.done("takedown", slug(1))
    site.done("takedown", "--undo", slug(1))
    assert site.refused(1, "takedown", "--undo", slug(1)).endswith("; `public-markets takedown` lists the ids")
    site.edit(2, slug=None)
    site.edit(1, slug="renamed")
    rebuild(site, 2)
    site.edit(2, slug=slug(1))
    rebuild(site, 3)
    assert f"{B} blocked since" in site.done("takedown", slug(1)).stdout


def test_both_commands_refuse_what_can_be_no_name(published_site: PublishedSite) -> None:
    for text in ("", " ", "\u3000", "a\0b", "a\x1b[2J", "x" * 5_000):
        for command in ("find", "takedown"):
            result = published_site.run(command, text)
            assert (result.exit_code, "names no market" in result.stderr) == (2, True)


def test_without_a_record_markets_are_found_and_removed_by_what_their_objects_say(site: PublishedSite) -> None:
    site.edit(3, key="100")
    rebuild(site)
    lose(site)
    for damage in (None, b"{}{"):
        if damage:
            site.put("manifest.json", damage)
        for name in (slug(1), A[:8], ADDRESS):
            line, end = site.done("find", name).stdout.splitlines()
            assert line.startswith(f"{A}  open       Question 1?")
            assert end.startswith(
                "1 market in s3://markets/api, whose record is missing, damaged or of another version, as of "
            )
    assert site.done("find", "question", "11").stdout.startswith(market_id(11))
    assert "manifest.json: damaged" in site.refused(1, "takedown", "100")
    site.remove("manifest.json")
    assert "holds v1/ but no manifest.json, so nobody knows all names" in site.refused(1, "takedown", "100")
    for number, name in ((1, slug(1)), (1, slug(1)), (4, market_id(4)[:8]), (5, ADDRESS.replace(slug(1), slug(5)))):
        result = site.run("takedown", name)
        assert result.exit_code == 1
        assert f"{market_id(number)}: " in result.stderr
        assert "the details of blocked markets were deleted, but lists may still show them" in result.stderr
        assert not {keys.detail(market_id(number)), keys.detail_by_slug(slug(number))} & site.objects().keys()
    assert "blocked in every later publish" in site.run("takedown", market_id(6), "snow").stderr
    assert blocklist.decode(site.stored()["blocked.json"]).markets[market_id(6)].names, "as its detail says"
    for key in site.objects().keys() - {keys.BUILD}:
        site.remove(key)
    assert "holds v1/ but no manifest.json" in site.refused(1, "find", slug(2))
    site.remove(keys.BUILD)
    assert "nothing is published there yet" in site.refused(1, "find", slug(2))
    assert "nothing is published here yet" in site.refused(1, "takedown", slug(2))
