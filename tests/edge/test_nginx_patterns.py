"""The patterns that nginx tries before it counts a request: their steps grow with the length of what was sent."""

from typing import Final

import pytest

from generator.config.downloads import Dumps
from generator.config.settings import Config, Publish
from generator.edge import deployment, nginx
from tests.support.edges import patterns

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
