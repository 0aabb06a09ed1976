"""What `takedown` says about each market: that nobody knows it, since when it is blocked, and when it comes back."""

import pytest

from generator.api import keys
from tests.support.sites.publishing import FX, LONG_AGO, PublishedSite
from tests.support.sites.rows import market_id

MISTYPED = market_id(4_711)
UNKNOWN = "it was never published here, or is gone already, so nothing was removed; check the id"


def warnings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("WARNING: ") and "no CDN" not in line]


def test_an_id_that_was_never_published_is_blocked_with_a_warning(published_site: PublishedSite) -> None:
    result = published_site.done("takedown", MISTYPED, market_id(FX))
    (line,) = warnings(result.stderr)
    assert line == (
        f"WARNING: {MISTYPED}: neither the record of s3://markets/api nor output/manifest.json names this market: "
        f"{UNKNOWN}. It is blocked now; `public-markets takedown --undo {MISTYPED}` ends that"
    )
    assert f"{MISTYPED} blocked since " in result.stdout


def test_without_a_target_the_folder_is_what_is_known_and_an_undo_names_the_build(
    published_site: PublishedSite,
) -> None:
    published_site.target, published_site.settings["publish.endpoint_url"] = "", ""
    (line,) = warnings(published_site.done("takedown", MISTYPED).stderr)
    assert line.startswith(f"WARNING: {MISTYPED}: output/manifest.json does not name this market: {UNKNOWN}. ")
    undone = published_site.done("takedown", "--undo", MISTYPED)
    assert "no longer blocked; the next `public-markets build` shows it again" in undone.stderr


def test_a_repeated_takedown_keeps_the_time_and_says_so(published_site: PublishedSite) -> None:
    published_site.block(FX)
    result = published_site.done("takedown", market_id(FX))
    assert f"{market_id(FX)}: has been blocked since {LONG_AGO}; this takedown repeats that one" in result.stderr
    assert result.stdout.splitlines()[0] == f"{market_id(FX)} blocked since {LONG_AGO}"
    again = published_site.done("takedown", market_id(FX))
    assert warnings(again.stderr) == [], "that its traces are gone is no reason to doubt the id"
    told, told_again = result.stdout.splitlines(), again.stdout.splitlines()
    assert told_again[:-1] == told[:-1] == published_site.done("takedown").stdout.splitlines()
    assert told[-1].startswith("gone from s3://markets/api and output: 1 market; ")
    assert told_again[-1].startswith("s3://markets/api and output had nothing left of what was named; ")


def test_an_undo_names_the_market_and_the_run_that_brings_it_back(published_site: PublishedSite) -> None:
    published_site.block(FX)
    result = published_site.done("takedown", "--undo", market_id(FX))
    assert (
        f"{market_id(FX)}: no longer blocked; the next `public-markets rebuild` publishes it again, if it is public in "
        "the database then\n"
    ) in result.stderr
    assert result.stdout == "0 markets are blocked\n"


@pytest.mark.parametrize("number", [FX, 4_711])
def test_an_undo_of_what_is_not_blocked_says_so_and_changes_nothing(published_site: PublishedSite, number: int) -> None:
    before = published_site.stored()
    result = published_site.done("takedown", "--undo", market_id(number))
    (line,) = warnings(result.stderr)
    assert line == (
        f"WARNING: {market_id(number)}: was not blocked, so nothing changes; check the id, and list the blocked "
        "markets with `public-markets takedown`"
    )
    assert published_site.stored() == before


@pytest.mark.parametrize("reference", [MISTYPED[:-1], f"{MISTYPED}0", "snow", "snapshot", "open/popular", "1"])
def test_a_name_that_no_market_has_is_refused_with_the_way_to_find_it(
    published_site: PublishedSite, reference: str
) -> None:
    assert published_site.refused(1, "takedown", market_id(1), reference) == (
        f"{reference}: no published market has this slug or key, or an id that begins so (write at least 8 "
        "characters), and a key that several have finds none: output/report.json names them; `public-markets find` "
        "looks for words of its question"
    )
    assert "blocked.json" not in published_site.stored()


def test_an_address_of_another_site_is_refused_with_the_forms_of_this_one(published_site: PublishedSite) -> None:
    address = f"https://other.example.org/{market_id(FX)}"
    found = published_site.refused(1, "takedown", address)
    assert found.startswith(f"{address}: is not the address of a published market, which is http")
    assert found.endswith("/v1/public/markets/ID; give its id instead")


def test_a_market_that_no_record_names_is_gone_if_its_detail_was_there(published_site: PublishedSite) -> None:
    """A publisher that was killed may have left it."""
    stray = market_id(40)
    published_site.put(keys.detail(stray), published_site.stored()[keys.detail(market_id(1))])
    result = published_site.done("takedown", stray)
    assert warnings(result.stderr) == []
    assert result.stdout.splitlines()[-1].startswith("gone from s3://markets/api: 1 market; ")
    assert keys.detail(stray) not in published_site.stored()


def test_a_market_whose_detail_is_damaged_is_not_called_unpublished(published_site: PublishedSite) -> None:
    published_site.put(keys.detail(market_id(FX)), b"{")
    (published_site.folder / "output" / keys.detail(market_id(FX))).unlink()
    assert f"{market_id(FX)}: its question cannot be read" in published_site.done("takedown", market_id(FX)).stderr


def test_a_folder_that_cannot_be_read_knows_no_name_and_says_so(published_site: PublishedSite) -> None:
    published_site.target, published_site.settings["publish.endpoint_url"] = "", ""
    place = published_site.folder / "output" / "manifest.json"
    place.unlink()
    place.write_text("{")
    assert "manifest.json: damaged" in published_site.refused(1, "takedown", market_id(FX)[:8])
