"""How long shared caches may keep pages: a year where withdrawals reach them, minutes where nothing can purge them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.api import keys
from generator.edge import deployment
from generator.tree.layouts import LAYOUTS
from tests.support.sites.builds import make_config
from tests.support.sites.publishing import PublishedSite, hour
from tests.support.sites.rows import market_id

YEAR, MINUTES = 31_536_000, 300
PURGED = ({"publish__cloudfront_distribution": "E123"}, {"publish__purge_command": "purge"})


def shared_ages(text: str) -> set[int]:
    """Every s-maxage but the half minute of mutable objects, in seconds."""
    return {int(age) for age in re.findall(r"s-maxage=([0-9]+)", text)} - {30}


def put_ages(site: PublishedSite) -> set[int]:
    objects = site.server.objects().items()
    return {age for key, (_, headers) in objects if keys.LISTS in key for age in shared_ages(headers["cache-control"])}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_edge_sends_the_age_that_the_configured_cdn_allows(layout: str, tmp_path: Path) -> None:
    def ages(**settings: str) -> Iterator[tuple[str, set[int]]]:
        config = make_config(tmp_path, layout=layout, **settings)
        for file in deployment.render(config):
            if found := shared_ages(file.text):
                yield file.name, found

    bucket = {"publish__target": "s3://markets/api", "publish__endpoint_url": "http://127.0.0.1:9"}
    unpurged = dict(ages(**bucket))
    assert {"edge/router.js", "edge/nginx/nginx.js", "edge/nginx/bucket.conf", "edge/cloudflare/worker.js"} <= {
        *unpurged
    }
    assert ("edge/cloudfront/origin-request.js" in unpurged) == (layout == "chunks")
    assert set().union(*unpurged.values()) == {MINUTES}
    for purged in ({}, {"publish__target": str(tmp_path / "www")}, *({**bucket, **purge} for purge in PURGED)):
        assert set().union(*dict(ages(**purged)).values()) == {YEAR}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pages_that_were_put_while_a_cdn_was_set_are_not_promised_to_end_within_minutes(
    empty: PublishedSite, layout: str
) -> None:
    empty.settings["layout"] = layout
    empty.done("rebuild", "--as-of", hour(1), publish__purge_command="true")
    empty.edit(1, volume=50.0)
    empty.done("rebuild", "--as-of", hour(2))
    for result in (empty.done("check"), empty.done("takedown", market_id(2))):
        said = f"{result.stdout}{result.stderr}"
        assert "for a year, until `public-markets publish --verify` puts them again" in said
        assert "for 5 minutes only" not in said
    assert put_ages(empty) == {YEAR, MINUTES}
