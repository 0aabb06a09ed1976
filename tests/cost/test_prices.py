"""Prices: dated data, shipped or the owner's, and which prices apply to a target."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from generator.cost import prices
from generator.errors import ConfigError
from tests.support.sites.builds import make_config


def shipped() -> dict[str, Any]:
    """The shipped prices, for tests to modify."""
    found: dict[str, Any] = json.loads((Path(prices.__file__).parent / "prices.json").read_bytes())
    return found


def test_the_shipped_prices_cover_s3_and_r2(tmp_path: Path) -> None:
    known = prices.load(make_config(tmp_path))
    amazon, cloudflare = known.places
    assert (amazon.name, amazon.per_million_puts, amazon.per_gb_month) == ("S3 + CloudFront", 5.0, 0.023)
    assert (cloudflare.name, cloudflare.per_million_puts, cloudflare.per_gb_month) == ("R2", 4.5, 0.015)
    assert amazon.egress == {"through CloudFront": 0.085, "straight from S3": 0.09}
    assert cloudflare.egress == {"through a custom domain": 0.0}
    assert date.fromisoformat(known.as_of) > date(2026, 1, 1)
    assert all(place.sources and place.note for place in known.places)


def test_an_owner_can_have_other_prices(tmp_path: Path) -> None:
    changed = shipped()
    changed["places"][0]["per_million_puts"] = 1.25
    assert all(place.pop("egress") for place in changed["places"])  # which it need not mention
    (tmp_path / "mine.json").write_text(json.dumps(changed))
    known = prices.load(make_config(tmp_path, prices=tmp_path / "mine.json"))
    assert known.places[0].per_million_puts == 1.25
    assert [place.egress for place in known.places] == [{}, {}]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "no such file or directory; name an existing file, or omit the setting"),
        ("{", ": invalid json"),
        ("[]", ": input should be an object"),
        ({"as_of": "yesterday"}, "as_of: value error"),
        ({"places": [{}]}, "places.0.name: field required"),
        *(
            ({"places": [shipped()["places"][0] | {"per_gb_month": wrong}]}, "places.0.per_gb_month: input should be")
            for wrong in (-1, "Infinity")
        ),
        ({"discount": 1}, "discount: extra inputs are not permitted"),
    ],
)
def test_a_file_in_another_format_is_refused_in_a_sentence(tmp_path: Path, content: Any, sentence: str) -> None:
    file = tmp_path / "mine.json"
    if content is not None:
        file.write_text(content if isinstance(content, str) else json.dumps(shipped() | content))
    with pytest.raises(ConfigError) as refusal:
        prices.load(make_config(tmp_path, prices=file))
    assert str(refusal.value).startswith(f"prices: {file}: ")
    assert sentence in str(refusal.value)


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
    place = prices.load(config).of(prices.host(config))
    assert (place and place.name) == name
