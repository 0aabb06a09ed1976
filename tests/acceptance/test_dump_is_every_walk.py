"""The dump has just the markets that readers find by walking the lists, and says the same of each."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from generator.api import keys, slugs
from generator.api.contract import SORTS, STATUS_FILTERS, Variant
from tests.support.faults import Reader
from tests.support.sites.builds import EXTENDED, Outputs

_VARIANTS: Final[tuple[Variant, ...]] = ("core", "extended")
#: What an item and a market have in common, at least.
_SHARED: Final = 10
Dump: TypeAlias = dict[str, dict[str, Any]]


def dumped(output: Path) -> Dump:
    """The markets of the dump by id, from the file that its head names."""
    head = json.loads((output / keys.head(keys.DUMPS)).read_bytes())
    file = head["markets"][0]
    body = (output / keys.chunk(keys.DUMPS, file["name"])).read_bytes()
    assert (len(body), hashlib.sha256(body).hexdigest()) == (file["size"], file["sha256"])
    text = gzip.decompress(body)
    assert hashlib.sha256(text).hexdigest() == head["state"]
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["id"] for line in lines] == sorted({line["id"] for line in lines})
    assert len(lines) == head["count"]
    return {line["id"]: line for line in lines}


def names(variant: Variant) -> list[str]:
    """All lists of the build."""
    categories = EXTENDED["categories"].split(",") if variant == "extended" else []
    found = [None, *map(slugs.of_category, categories)]
    return [keys.list_name(status, sort, category) for category in found for status in STATUS_FILTERS for sort in SORTS]


def differences(output: Path, dump: Dump, variant: Variant, limit: int = 20) -> list[str]:
    """What the dump and the walks of all lists do not agree in: markets, and values of what both say."""
    walked, found = set[str](), set[str]()
    for name in names(variant):
        for item in Reader.of_folder(output).items(name, limit):
            walked.add(item["id"])
            line = dump.get(item["id"], {})
            shared = item.keys() & line.keys()
            if len(shared) < _SHARED or any(json.dumps(item[field]) != json.dumps(line[field]) for field in shared):
                found.add(item["id"])
    return sorted(found | (walked ^ dump.keys()))


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("layout", ["pages", "chunks"])
@pytest.mark.parametrize("variant", _VARIANTS)
def test_the_union_of_all_walks_is_the_dump(outputs: Outputs, variant: Variant, layout: str) -> None:
    output = outputs(variant, layout)
    dump = dumped(output)
    assert len(dump) > 100
    assert differences(output, dump, variant) == []


def test_a_market_that_the_dump_lacks_has_too_many_or_tells_otherwise_is_noticed(demo_output: Path) -> None:
    dump = dumped(demo_output)
    one, other, *_ = dump
    assert differences(demo_output, {**dump, "another": dump[one]}, "core", 100) == ["another"]
    assert differences(demo_output, {**dump, one: {**dump[one], "volume": 0.125}}, "core", 100) == [one]
    del dump[other]
    assert differences(demo_output, dump, "core", 100) == [other]
