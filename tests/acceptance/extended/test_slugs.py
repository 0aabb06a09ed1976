"""Markets are found by their slugs."""

import json
from pathlib import Path

import pytest

from generator.api import keys
from tests.acceptance.extended.site import ExtendedSite
from tests.support.sites.builds import files
from tests.support.sites.rows import insert_market, market_id


@pytest.mark.campaign(short=0)
def test_id_and_slug_give_the_same_bytes(extended_output: Path) -> None:
    published = files(extended_output)
    by_slug = {key: body for key, body in published.items() if key.startswith(keys.SLUGS)}
    assert len(by_slug) > 100
    for key, body in by_slug.items():
        market = json.loads(body)["market"]
        assert body == published[keys.detail(market["id"])]
        assert key == keys.detail_by_slug(market["slug"]) == keys.detail_by_slug(market["slug"].upper())
    with_slug = [body for key, body in published.items() if key.startswith(keys.DETAILS) and b'"slug":' in body]
    assert len(with_slug) == len(by_slug)


def test_a_slug_of_unusual_form_leads_to_its_market(extended_site: ExtendedSite) -> None:
    unusual = ["Upper-CASE", "-leading", "s" * 223, "S" * 255, "_", "lists"]
    for number, slug in enumerate(unusual):
        insert_market(extended_site.connection, number, slug=slug)
    assert extended_site.build().remarks == []
    for number, slug in enumerate(unusual):
        assert extended_site.item(number)["slug"] == slug
        assert extended_site.by_slug(slug) == (extended_site.output / keys.detail(market_id(number))).read_bytes()


def test_a_market_with_an_unusable_slug_is_found_by_its_id_only_and_the_report_says_so(
    extended_site: ExtendedSite,
) -> None:
    unusable = ["s" * 256, market_id(1), market_id(99), "snapshot", "Snapshot", "a b", "ü", b"blob"]
    for number, slug in enumerate(unusable):
        insert_market(extended_site.connection, number, slug=slug)
    report = extended_site.build()
    assert (report.quarantine.total(), len(report.remarks)) == (0, len(unusable))
    assert not (extended_site.output / keys.SLUGS).exists()
    for number, remark in enumerate(sorted(report.remarks, key=lambda remark: remark.key)):
        assert not {"slug"} & {*extended_site.item(number), *extended_site.market(number)}
        assert remark.sentence().startswith(f"market {market_id(number)}: slug cannot be used: ")
        assert remark.sentence().endswith("; it is found by its id only")


def test_a_slug_of_two_markets_leads_to_neither_until_one_gives_it_up(extended_site: ExtendedSite) -> None:
    insert_market(extended_site.connection, 1, slug="same")
    insert_market(extended_site.connection, 2, slug="SAME")
    assert len(extended_site.build().remarks) == 2
    assert (extended_site.by_slug("same"), "slug" in extended_site.item(1), "slug" in extended_site.item(2)) == (
        None,
        False,
        False,
    )
    extended_site.set(2, slug="other")
    assert extended_site.build().remarks == []
    assert (extended_site.item(1)["slug"], extended_site.item(2)["slug"]) == ("same", "other")
