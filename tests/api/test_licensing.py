"""Licence and publisher: told wherever the data is, by all files of a build, and by none of a site without them."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from lxml import etree

from generator.api import keys, licensing
from generator.api.downloads import DumpHead
from generator.config.settings import Config
from tests.support import commands
from tests.support.sites.builds import build_now, dump_head, files, make_config
from tests.support.sites.rows import insert_market, insert_point, market_id

TOLD: Final = {"license": "CC-BY-4.0", "publisher__name": "Zoë & <Co.>", "publisher__url": "https://example.org"}
PUBLISHER: Final = {"name": "Zoë & <Co.>", "url": "https://example.org"}
STATED: Final = {"license": "CC-BY-4.0", "publisher": PUBLISHER}
ATOM: Final = {"atom": "http://www.w3.org/2005/Atom"}


@pytest.fixture
def folder(tmp_path: Path, database: sqlite3.Connection) -> Path:
    for number in (1, 2, 3):
        insert_market(database, number)
        insert_point(database, "2025-12-01 12:00:00.000000", market_id=market_id(number))
        insert_point(database, "2026-01-02 12:00:00.000000", market_id=market_id(number))
    return tmp_path


def built(folder: Path, output: str = "output", **settings: object) -> Config:
    config = make_config(folder, dumps__parquet=True, layout="chunks", output=str(folder / output), **settings)
    build_now(config)
    return config


def parquet_of(config: Config) -> Iterator[tuple[str, Any]]:
    """The name and what each Parquet file states, in the head in place."""
    pyarrow = pytest.importorskip("pyarrow.parquet")
    for file in dump_head(config.output).files():
        if file.name.endswith(".parquet"):
            metadata = pyarrow.read_metadata(config.output / file.key).metadata
            yield file.name, json.loads(metadata.get(b"dataset", b"null"))


def document(config: Config, key: str) -> Any:
    return json.loads((config.output / key).read_bytes())


def test_a_site_tells_both_wherever_its_data_is(folder: Path) -> None:
    config = built(folder, **TOLD)
    for key in (keys.SITE_INDEX, keys.head(keys.DUMPS)):
        found = document(config, key)
        assert {name: found[name] for name in STATED} == STATED
    info = document(config, keys.OPENAPI)["info"]
    assert info["license"] == {"name": "CC-BY-4.0", "identifier": "CC-BY-4.0"}
    assert info["contact"] == PUBLISHER
    feed = document(config, keys.feed("new", "json"))
    assert (feed["authors"], feed["_rights"]) == ([PUBLISHER], {"license": "CC-BY-4.0"})
    atom = etree.fromstring((config.output / keys.feed("new", "atom")).read_bytes())
    for path, text in {
        "atom:rights": "CC-BY-4.0 (https://spdx.org/licenses/CC-BY-4.0)",
        "atom:author/atom:name": "Zoë & <Co.>", "atom:author/atom:uri": "https://example.org",
    }.items():  # fmt: skip
        assert [one.text for one in atom.findall(path, ATOM)] == [text]
    stated = dict(parquet_of(config))
    assert len(stated) > 4
    assert all(one == STATED for one in stated.values())


def test_a_site_without_them_tells_nothing(folder: Path) -> None:
    config = built(folder)
    for key, body in files(config.output).items():
        if key != keys.CHANGELOG and not key.endswith((".parquet", ".gz")):
            assert not any(one in body for one in (b'license"', b'publisher"', b"_rights", b"<rights>")), key
    assert not {"license", "contact"} & document(config, keys.OPENAPI)["info"].keys()
    assert {stated for _, stated in parquet_of(config)} == {None}


def test_another_licence_makes_all_parquet_files_anew_as_a_build_from_nothing_does(folder: Path) -> None:
    before = dict(parquet_of(built(folder)))
    config = built(folder, **TOLD)
    after = dict(parquet_of(config))
    assert before.keys().isdisjoint(after)
    assert len(after) == len(before)
    anew = built(folder, "anew", **TOLD)
    heads = [_head(one) for one in (config, anew)]
    assert heads[0] == heads[1]
    assert document(config, keys.DATASET) == document(anew, keys.DATASET)
    again = built(folder, **TOLD)
    assert dict(parquet_of(again)) == after
    back = built(folder)
    assert dict(parquet_of(back)) == before


def _head(config: Config) -> DumpHead:
    return dump_head(config.output)


def test_a_takedown_tells_what_was_published_whatever_the_settings_say_now(folder: Path) -> None:
    config = built(folder, **TOLD)
    before = document(config, keys.DATASET)
    done = commands.run("takedown", market_id(2), "--yes", cwd=folder, PUBLIC_MARKETS_LAYOUT="chunks")
    assert done.returncode == 0, done.stderr
    stated, content = dict(parquet_of(config)), document(config, keys.DATASET)
    assert all(one == STATED for one in stated.values())
    assert [file["@id"] for file in content["distribution"]] == [file.name for file in _head(config).files()]
    assert {name: content[name] for name in ("license", "publisher", "name")} == {
        name: before[name] for name in ("license", "publisher", "name")
    }
    assert content["version"] != before["version"]
    left = {path.name for path in (config.output / "v1/dumps").rglob("*.parquet")}
    assert not {file["@id"].rpartition("/")[2] for file in before["distribution"]} & left


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("CC0-1.0", ("https://spdx.org/licenses/CC0-1.0", "CC0-1.0 (https://spdx.org/licenses/CC0-1.0)")),
        ("https://example.org/a/", ("https://example.org/a/", "https://example.org/a/")),
    ],
)
def test_a_licence_has_an_address(text: str, shown: tuple[str, str]) -> None:
    assert (licensing.address(text), licensing.told(text)) == shown
