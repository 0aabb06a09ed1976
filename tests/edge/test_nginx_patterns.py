"""The patterns that nginx tries before it counts a request: their steps grow with the length of what was sent."""

import re
from typing import Final

import pytest

from generator.config.downloads import Dumps
from generator.config.settings import Config, Publish
from generator.edge import deployment, nginx

#: How nginx writes a string.
_STRING: Final = r'"((?:[^"\\]|\\.)*)"'
_LOCATION: Final = re.compile(rf"^\s*location ~\*? {_STRING} \{{$", re.MULTILINE)
_MAP: Final = re.compile(r"^\s*map (.*?) \$\w+ \{$(.*?)^\s*\}$", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r'^\s*"~\*?((?:[^"\\]|\\.)*)" ', re.MULTILINE)
#: `*`, `+` and `{n,}` behind anything but a backslash, outside sets of characters.
_UNBOUNDED: Final = re.compile(r"[*+]|\{\d+,\}")
_SET_OR_ESCAPE: Final = re.compile(r"\\.|\[(?:[^\]\\]|\\.)+\]")
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


def of_configuration(text: str) -> list[str]:
    """The patterns that nginx tries on what readers send: those of locations, and of maps of the request's target."""
    maps = [entries for source, entries in _MAP.findall(text) if "$request_uri" in source]
    found = _LOCATION.findall(text) + [entry for entries in maps for entry in _ENTRY.findall(entries)]
    return [re.sub(r'\\(["\\])', r"\1", one) for one in found]


def unbounded_parts(pattern: str) -> int:
    """How many parts of the pattern match any number of characters."""
    return len(_UNBOUNDED.findall(_SET_OR_ESCAPE.sub("x", pattern)))


def patterns_of(config: Config) -> list[str]:
    """The patterns in everything that a build renders for nginx."""
    texts = [file.text for file in deployment.render(config) if f"/{nginx.FOLDER}/" in file.name]
    return sorted({pattern for text in texts for pattern in of_configuration(text)})


@pytest.mark.parametrize("site", _SITES)
def test_nginx_tries_patterns_that_are_anchored_and_have_one_unbounded_part_at_most(site: str) -> None:
    found = patterns_of(_SITES[site])
    assert len(found) >= 3
    assert [one for one in found if not one.startswith("^")] == []
    assert [one for one in found if unbounded_parts(one) > 1] == []
