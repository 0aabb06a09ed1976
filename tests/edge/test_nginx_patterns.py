"""The patterns that nginx tries before it counts a request: their steps grow with the length of what was sent."""

from functools import partial
from itertools import product
from typing import Final

import pytest

from generator.config.downloads import Dumps
from generator.config.settings import Config, Publish
from generator.edge import deployment, nginx
from tests.support.edges import patterns
from tests.support.edges.growth import grows_no_faster

#: What the patterns look for, over and over.
_HOSTILE: Final = (
    "/v1/dumps/", "/v1/changes/", "/v1/feeds/", "/v1/llms.txt", "/api/v1/", "/", ".", ".json", ".ndjson.gz",
    "?q", "&q", "&", "GET /v1/changes/", "1.3 ", "1", "a", "[",
)  # fmt: skip
_STARTS: Final = ("", "/v1/feeds/", "GET /v1/changes/", "1.3 ")
_SITES: Final = {
    "files": Config(dumps=Dumps(parquet=True)),
    "full histories": Config(dumps=Dumps(parquet=True, histories="full")),
    "searches": Config(variant="extended", dumps=Dumps(parquet=True)),
    "below a path": Config(base_url="https://example.com/a.p+i/(x", dumps=Dumps(parquet=True)),
    "bucket": Config(
        variant="extended",
        dumps=Dumps(parquet=True),
        publish=Publish(target="s3://markets-example", endpoint_url="https://s3.example.com"),
    ),
}


def patterns_of(config: Config) -> list[str]:
    """The patterns in everything that a build renders for nginx."""
    texts = [file.text for file in deployment.render(config) if f"/{nginx.FOLDER}/" in file.name]
    return sorted({pattern for text in texts for pattern in patterns.of_configuration(text)})


@pytest.mark.parametrize("site", _SITES)
def test_nginx_tries_patterns_that_are_anchored_and_have_one_unbounded_part_at_most(site: str) -> None:
    found = patterns_of(_SITES[site])
    assert len(found) >= 3
    assert [one for one in found if not one.startswith("^")] == []
    assert [one for one in found if patterns.unbounded_parts(one) > 1] == []


@pytest.mark.parametrize("site", _SITES)
def test_nginx_tries_patterns_in_steps_in_proportion_to_the_length_of_what_was_sent(site: str) -> None:
    for pattern, start, text in product(patterns_of(_SITES[site]), _STARTS, _HOSTILE):
        assert grows_no_faster(partial(patterns.steps, pattern, start), text), pattern
