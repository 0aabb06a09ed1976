"""`v1/dataset.json`: mlcroissant finds nothing and reads every table over nginx; rdflib expands every term."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from rdflib import Graph, URIRef
from rdflib.namespace import DCTERMS, RDF, SDO

from generator.api import columns, contract, downloads, keys
from generator.config.settings import Config
from generator.site import dataset
from tests.support.edges.servers import folder_for_anybody, free_port, nginx
from tests.support.readers.parquet import rows
from tests.support.sites.builds import AS_OF, CHUNKED, NO_LIMITS, VARIANTS, build_now, dump_head, make_config

LICENSED: Final = {"license": "cc-by-4.0", "publisher__name": "Zoë & Co.", "publisher__url": "https://example.org"}
SITES: Final[Mapping[str, Mapping[str, object]]] = {
    "all": {"variant": "extended", "dumps__parquet": True, "dumps__fills": True, **LICENSED},
    "without trades": {"dumps__parquet": True, "questions__enabled": False, **LICENSED},
    "ndjson": {"variant": "extended", **LICENSED},
    "bare": {"questions__enabled": False, "changes__enabled": False},
}

#: All its terms: a library's list, so that no test asks the network.
SCHEMA_ORG: Final[Any] = SDO
CROISSANT: Final = "http://mlcommons.org/croissant/"
#: The terms of the vocabulary (docs.mlcommons.org/croissant/docs/croissant-spec-1.1) that the document uses.
TERMS: Final = frozenset(
    f"{CROISSANT}{name}"
    for name in (
        *("FileObject", "RecordSet", "Field", "arrayShape", "citeAs", "column", "dataType", "extract", "field"),
        *("fileObject", "isArray", "isLiveDataset", "key", "recordSet", "references", "source"),
    )
)
#: Prints what the library finds, and ten rows of each record set.
PROGRAM: Final = """
import itertools, json, sys
import mlcroissant
found = mlcroissant.Dataset(sys.argv[1])
issues = found.metadata.ctx.issues
shown = lambda value: value.decode() if isinstance(value, bytes) else value.isoformat()
print(json.dumps({
    "errors": sorted(map(str, issues.errors)), "warnings": [issues.report()] if issues.warnings else [],
    "rows": {
        one.uuid: [*itertools.islice(found.records(one.uuid), 10)] for one in found.metadata.record_sets
    },
}, default=shown))
"""


class Site(NamedTuple):
    """A built site behind nginx, and its document."""

    config: Config
    content: dict[str, Any]


@pytest.fixture(scope="module")
def site_of(demo_folder: Path) -> Iterator[Callable[[str], Site]]:
    with ExitStack() as stack:
        made = dict[str, Site]()

        def site_of(name: str) -> Site:
            if name not in made:
                folder, port = stack.enter_context(folder_for_anybody()), free_port()
                (folder / "markets.db").write_bytes((demo_folder / "markets.db").read_bytes())
                settings = {**SITES[name], **CHUNKED, **NO_LIMITS}
                config = make_config(folder, base_url=f"http://127.0.0.1:{port}", publish__target="", **settings)
                build_now(config, AS_OF - timedelta(days=1))
                build_now(config)
                stack.enter_context(nginx(config.output, port))
                made[name] = Site(config, json.loads((config.output / keys.DATASET).read_bytes()))
            return made[name]

        yield site_of


@pytest.mark.parametrize("name", SITES)
def test_mlcroissant_finds_nothing_and_reads_ten_rows_of_each_table(
    name: str, site_of: Callable[[str], Site], tmp_path: Path
) -> None:
    site = site_of(name)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"{site.config.base_url}/{keys.DATASET}"],
        env={**os.environ, "CROISSANT_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "@context" not in done.stderr, "it is not the standard one"
    told = json.loads(done.stdout)
    assert told["errors"] == []
    assert ["license" in one for one in told["warnings"]] == [True] * (name == "bare")
    files = {file.name: (site.config.output / file.key).read_bytes() for file in dump_head(site.config.output).files()}
    checked = 0
    for record_set in site.content["recordSet"]:
        read = told["rows"][record_set["@id"]]
        (file,) = {field["source"]["fileObject"]["@id"] for field in record_set["field"]}
        names = {field["@id"]: field["source"]["extract"]["column"] for field in record_set["field"]}
        expected = [{names[key]: None for key in names} | row for row in _rows(file, files[file])[:10]]
        shown = [{names[key]: _plain(value) for key, value in row.items()} for row in read]
        assert shown == [{key: row[key] for key in names.values()} for row in expected]
        checked += len(shown)
    assert checked > (100 if site.config.has_parquet else 9)
    assert {one["@id"].partition("/")[0] for one in site.content["recordSet"]} == {*_tables(site.config)}


def _tables(config: Config) -> Iterator[str]:
    head = json.loads((config.output / keys.head(keys.DUMPS)).read_bytes())
    return (name for name in columns.NAMES if head.get(name))


def _rows(name: str, body: bytes) -> list[dict[str, Any]]:
    if name.endswith(downloads.PARQUET):
        return [{key: _plain(value) for key, value in row.items()} for row in rows(body)]
    lines = map(json.loads, gzip.decompress(body).splitlines())
    return [{key: _plain(value) for key, value in line.items()} for line in lines]


def _plain(value: Any) -> Any:
    """Times in one form: as the libraries write them."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, str) and value[10:11] == "T" and value.endswith("+00:00"):
        return datetime.fromisoformat(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")  # of rdflib, by its own parser
@pytest.mark.parametrize("name", SITES)
def test_every_term_is_one_of_schema_org_or_croissant_and_none_is_dropped(
    name: str, site_of: Callable[[str], Site]
) -> None:
    content = site_of(name).content
    graph = Graph().parse(data=json.dumps(content), format="json-ld")
    values = {key: value for key, value in content.items() if key != "@context"}
    assert len(graph) == sum(_statements(values))
    for subject, term, value in graph:
        names = [term, *([value] if term in (RDF.type, URIRef(f"{CROISSANT}dataType")) else [])]
        for one in names:
            assert one in SCHEMA_ORG or str(one) in TERMS or one in (RDF.type, DCTERMS.conformsTo), (subject, one)


def _statements(part: Any) -> Iterator[int]:
    """One for every value of a property, and the statements within it."""
    for key, values in part.items():
        for value in values if isinstance(values, list) else [values]:
            yield key != "@id"
            if isinstance(value, dict):
                yield from _statements(value)


@pytest.mark.parametrize("name", SITES)
def test_it_names_exactly_the_files_of_the_head_in_place(name: str, site_of: Callable[[str], Site]) -> None:
    site = site_of(name)
    head = dump_head(site.config.output)
    assert [
        (file["@id"], file["contentUrl"], file["sha256"], file["contentSize"]) for file in site.content["distribution"]
    ] == [(file.name, file.url, file.sha256, f"{file.size} B") for file in head.files()]
    used = {field["source"]["fileObject"]["@id"] for one in site.content["recordSet"] for field in one["field"]}
    assert used <= {file.name for file in head.files()}
    assert used >= {file.name for file in head.tables()}
    assert contract.encode(dataset.content(head, site.config)) == (site.config.output / keys.DATASET).read_bytes()


def test_it_tells_columns_keys_licence_and_how_to_cite(site_of: Callable[[str], Site]) -> None:
    site = site_of("all")
    head, content = dump_head(site.config.output), site.content
    assert content["license"] == "https://spdx.org/licenses/CC-BY-4.0"
    assert content["publisher"] == content["creator"] == {
        "@type": "Organization", "name": "Zoë & Co.", "url": "https://example.org"
    }  # fmt: skip
    assert content["datePublished"] == head.as_of
    for part in ("Zoë & Co.", head.as_of, head.state, f"{site.config.base_url}/{keys.DATASET}"):
        assert part in content["citeAs"]
    sets = {one["@id"]: one for one in content["recordSet"]}
    month = next(one for name, one in sets.items() if name.startswith("candlesDay/"))
    told = {one["name"]: one["description"] for one in month["field"]}
    expected = columns.columns("candlesDay")
    assert [*told.values()] == [f"{one.meaning} Unit: {one.unit}." if one.unit else one.meaning for one in expected]
    assert month["key"] == [{"@id": f"{month['@id']}/marketId"}, {"@id": f"{month['@id']}/start"}]
    assert month["field"][0]["references"] == {"field": {"@id": "markets/id"}}
    bare = site_of("bare").content
    assert not {"license", "publisher", "creator"} & bare.keys()


@pytest.mark.parametrize("variant", VARIANTS)
def test_equal_heads_give_equal_bytes_and_another_head_another_version(variant: str, tmp_path: Path) -> None:
    file: dict[str, Any] = {"name": "markets/a.ndjson.gz", "url": "https://a.example/a", "sha256": "0" * 64, "size": 1}
    told = {"asOf": "2026-01-31T12:00:00.000Z", "count": 1, "state": "1" * 64}
    head = downloads.DumpHead.model_validate({**told, "markets": [{**file, "format": "ndjson"}]})
    later = head.model_copy(update={"as_of": "9999-12-31T23:59:59.999Z", "state": "2" * 64})
    config = make_config(tmp_path, variant=variant)
    first, again, other = (dataset.content(one, config) for one in (head, head, later))
    assert contract.encode(first) == contract.encode(again)
    versions = [content["version"] for content in (first, other)]
    digest = sha256(file["sha256"].encode()).hexdigest()[:12]
    assert versions == [f"2026.1.31+T120000000Z.{digest}", f"9999.12.31+T235959999Z.{digest}"]
    new = head.model_copy(update={"markets": [head.markets[0].model_copy(update={"sha256": "1" * 64})]})
    assert dataset.content(new, config)["version"] != versions[0]
