"""Which paths lead to documents and files of downloads: the router's rule, and the pattern that nginx matches."""

import re
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import keys
from generator.api.downloads import TABLES, THINNED
from generator.config.downloads import Archive, Changes, Dumps, Feeds
from generator.config.settings import Config
from generator.edge import paths, router
from tests.support.edges.engines import NOWHERE, in_quickjs

EVERYTHING: Final = Config(dumps=Dumps(parquet=True))
FULL: Final = Config(dumps=Dumps(parquet=True, histories="full"), archive=Archive(days=3))
#: Names of files and documents below the API's root, with all their parts, and others that are nearly the same.
_FOLDERS: Final = [
    "dumps/", "dumps/markets/", "changes/", "history/", "dumps/history/", "dumps/fills/", "state=archive/",
    "dumps/candles/", "candles/", "day/", "hour/", "closes/", "dumps/archive/", "state=open/", "period=2026-10/",
    "period=2026/", "period=202/", "period=2026-1/", "month=2026-10/", "month=0000-99/", "month=2026-1/",
    "part=07/", "part=7/", "part=007/", "part=0a/", "feeds/", "v1/", "/", "../", "%2f", "*", "0",
]  # fmt: skip
_FILES: Final = [
    *("0123456789abcdef" * 2, "0" * 31, "0" * 33, "A" * 32, "g" * 32, "*"),
    *("new", "head", "index", "llms", "changelog", "openapi", "build"),
    *("2026-10-31", "2026-10-3", "2026-10-311", "20261031", "2026-1a-31"),
]
_NAMES: Final = st.builds(
    lambda folders, file, end: "".join([*folders, file, end]),
    st.lists(st.sampled_from(_FOLDERS), max_size=4),
    st.sampled_from(_FILES),
    st.sampled_from([".ndjson.gz", ".parquet", ".atom", ".json", ".txt", ".gz", ".ndjson", "", "/", ".parquet/", "\n"]),
)


#: The folders of tables, by how much these have of histories.
PARTITIONS: Final = (
    (EVERYTHING, THINNED, ("state=archive/month=2026-10", "state=open/part=07")),
    (FULL, TABLES, ("period=2026-10", "period=2025")),
)


@pytest.mark.parametrize("which", [0, 1], ids=["thinned", "full"])
@settings(deadline=None, max_examples=12)
@given(names=st.lists(_NAMES, min_size=50, max_size=50))
def test_the_router_takes_the_names_of_files_that_the_pattern_takes(which: int, names: list[str]) -> None:
    config, tables, folders = PARTITIONS[which]
    whole = [f"dumps/{table}/{one}/{'0a' * 16}.parquet" for table in tables for one in folders]
    names = [*names, *whole, f"dumps/markets/{'0a' * 16}.parquet", f"changes/{'0a' * 16}.ndjson.gz"]
    names += ["dumps/archive/2026-10-31.json", "dumps/archive/2026-10-31.json\n", f"{whole[0]}\n"]
    results = in_quickjs(router.render(config), [("GET", f"/v1/{name}", "") for name in names], NOWHERE)
    documents = paths.documents(config)
    for name, result in zip(names, results, strict=True):
        is_file = re.fullmatch(paths.pattern(config), name) is not None
        is_day = config.archive.days and re.fullmatch("dumps/archive/[0-9]{4}-[0-9]{2}-[0-9]{2}.json", name)
        wanted = f"v1/{name}" if is_file or is_day else documents.get(name)
        assert result.get("key") == wanted, name
        assert not is_file or keys.is_download(f"v1/{name}")
    assert sum("key" in result for result in results) >= len(whole)


@pytest.mark.parametrize(
    ("config", "routed"),
    [
        (EVERYTHING, "head steps dump parquet feed"),
        (FULL, "head steps dump period candles day feed"),
        (Config(), "head steps dump feed"),
        (Config(changes=Changes(enabled=False)), "dump feed"),
        (Config(dumps=Dumps(ndjson=False, parquet=True)), "feed"),
        (Config(feeds=Feeds(enabled=False)), "head steps dump"),
    ],
)
def test_only_what_the_settings_switch_on_is_routed(config: Config, routed: str) -> None:
    name = "0" * 32
    named = {
        "head": keys.head(keys.CHANGES),
        "steps": f"v1/changes/{name}.ndjson.gz",
        "dump": f"v1/dumps/markets/{name}.ndjson.gz",
        "parquet": f"v1/dumps/fills/state=open/part=00/{name}.parquet",
        "period": f"v1/dumps/fills/period=2026-01/{name}.parquet",
        "candles": f"v1/dumps/candles/hour/period=2026-01/{name}.parquet",
        "day": keys.archived_day("2026-01-31"),
        "feed": keys.feed("resolved", "json"),
    }
    results = in_quickjs(router.render(config), [("GET", f"/{key}", "") for key in named.values()], NOWHERE)
    found = [what for what, result in zip(named, results, strict=True) if "key" in result]
    assert " ".join(found) == routed
    assert {result.get("status", 404) for result in results} == {404}
