"""Prices: dated data, shipped or the owner's, and which prices apply to a target."""

from datetime import date
from pathlib import Path

import pytest

from generator.cost import prices
from tests.support.sites.builds import make_config


def test_the_shipped_prices_cover_s3_and_r2(tmp_path: Path) -> None:
    known = prices.load()
    amazon, cloudflare = known.places
    assert (amazon.name, amazon.per_million_puts, amazon.per_gb_month) == ("S3 + CloudFront", 5.0, 0.023)
    assert (cloudflare.name, cloudflare.per_million_puts, cloudflare.per_gb_month) == ("R2", 4.5, 0.015)
    assert amazon.egress == {"through CloudFront": 0.085, "straight from S3": 0.09}
    assert cloudflare.egress == {"through a custom domain": 0.0}
    assert date.fromisoformat(known.as_of) > date(2026, 1, 1)
    assert all(place.sources and place.note for place in known.places)


@pytest.mark.parametrize(
    ("target", "endpoint", "name"),
    [
        ("s3://bucket/api", None, "S3 + CloudFront"),
        ("s3://bucket", "https://s3.eu-central-1.amazonaws.com", "S3 + CloudFront"),
        ("s3://bucket", "https://0123.r2.cloudflarestorage.com", "R2"),
        ("s3://bucket", "https://notamazonaws.com", None),
        ("s3://bucket", "http://127.0.0.1:9000", None),
        ("site", None, None),
        ("", None, None),
    ],
)
def test_the_endpoint_decides_which_prices_apply(
    tmp_path: Path, target: str, endpoint: str | None, name: str | None
) -> None:
    settings = {"publish__target": target} | ({"publish__endpoint_url": endpoint} if endpoint else {})
    config = make_config(tmp_path, **settings)
    place = prices.load().of(prices.host(config))
    assert (place and place.name) == name
