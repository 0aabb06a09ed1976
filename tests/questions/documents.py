"""The checker's part beside the API: definitions below the dump, the heads that name them, and the feed `new`."""

import gzip
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import polars as pl

from tests.questions.asking import QUESTIONS, Site
from tests.questions.oracle import Oracle, Row, Setting
from tests.support.readers import parquet

DUMP: Final = "/v1/dumps/head.json"
CHANGES: Final = "/v1/changes/head.json"
NEW: Final = "/v1/feeds/new.json"
ENTRIES: Final = 50
_NAMED: Final = {"asOf", "count", "state", "files"}
_SAID: Final = {"resolved": "Resolved. ", "cancelled": "Cancelled. "}


def text_of(path: str, body: bytes) -> bytes:
    """What a reader of a body sees; of compressed files what they hold."""
    if path.endswith(".gz"):
        return gzip.decompress(body)
    return repr(parquet.rows(body)).encode() if body.startswith(b"PAR1") else body


def absent(site: Site) -> Iterator[str]:
    """Without the relations nothing names questions."""
    for path in (DUMP, CHANGES):
        status, _, body = site.ask(path)
        if status == 200 and "questions" in json.loads(body):
            yield f"{path} names questions, but the database has none"
    for path in ("/v1/", "/v1/build.json", "/v1/llms.txt", "/v1/openapi.json"):
        if QUESTIONS.encode() in site.ask(path)[2]:
            yield f"{path} names {QUESTIONS}, but the database has no questions"


def definitions(site: Site, oracle: Oracle) -> Iterator[str]:
    """The files of definitions, and what both heads say of them. A head that the site does not have says nothing."""
    heads = [site.ask(path) for path in (DUMP, CHANGES)]
    named = [json.loads(body).get("questions") if status == 200 else None for status, _, body in heads]
    for path, (status, _, _), found in zip((DUMP, CHANGES), heads, named, strict=True):
        if status == 200 and found is None:
            yield f"{path} names no questions"
        elif found is not None:
            yield from (f"{path}: {sentence}" for sentence in _head(oracle, found, path))
    dump, changes = named
    if dump and changes and {name: changes[name] for name in dump} != dump:
        yield f"{CHANGES} says {changes} of questions, {DUMP} {dump}"
    for file in (dump or changes or {}).get("files", ()):
        yield from (f"{file['url']}: {sentence}" for sentence in _file(site, oracle, file))


def _head(oracle: Oracle, found: Mapping[str, Any], path: str) -> Iterator[str]:
    expected = _NAMED | ({"serial"} if path == CHANGES else set())
    if {*found} != expected:
        yield f"has the properties {sorted(found)}, not {sorted(expected)}"
    if found.get("count") != len(oracle.questions):
        yield f"count is {found.get('count')}, not {len(oracle.questions)}"
    if found.get("state") != hashlib.sha256(oracle.definitions).hexdigest():
        yield f"state is {found.get('state')}, not the SHA-256 of the definitions"
    if "serial" in expected and not (isinstance(found.get("serial"), int) and found["serial"] >= 1):
        yield f"serial is {found.get('serial')}"
    formats = [file.get("format") for file in found.get("files", ())]
    if "ndjson" not in formats or len({*formats}) != len(formats) or not {*formats} <= {"ndjson", "parquet"}:
        yield f"names files of the formats {formats}"


def _file(site: Site, oracle: Oracle, file: Mapping[str, Any]) -> Iterator[str]:
    path = urlsplit(file["url"]).path.removeprefix(urlsplit(oracle.setting.base_url).path.rstrip("/"))
    body = site.body(path)
    if (len(body), hashlib.sha256(body).hexdigest()) != (file.get("size"), file.get("sha256")):
        yield f"has {len(body)} bytes, and not the digest and size that the head names"
    if file["format"] == "ndjson":
        yield from _lines(gzip.decompress(body), oracle.definitions)
    else:
        schema, expected = dict(pl.read_parquet_schema(io.BytesIO(body))), columns(oracle.setting)
        if [*schema.items()] != [*expected.items()]:
            yield f"has the columns {schema}, not {expected}"
        yield from _rows(parquet.rows(body), [dict(row) for row in oracle.table])


def columns(setting: Setting) -> dict[str, pl.DataType]:
    """The columns of the table, in order, with their types."""
    text, slug = pl.String(), ["slug"] if setting.is_extended else []
    found: dict[str, pl.DataType] = dict.fromkeys(["questionId", "kind", *slug, "title", "description"], text)
    found |= {"createdAt": pl.Datetime("ms", "UTC"), "marketId": text, "label": text}
    found |= {"position": pl.Int64(), "payout": pl.Float64()}
    return found | ({"url": text} if setting.question_url else {})


def _lines(found: bytes, expected: bytes) -> Iterator[str]:
    if found == expected:
        return
    one, other = found.splitlines(keepends=True), expected.splitlines(keepends=True)
    if len(one) != len(other):
        yield f"has {len(one)} definitions, not {len(other)}"
    for at, (line, wanted) in enumerate(zip(one, other, strict=False)):
        if line != wanted:
            yield f"definition {at} is {line[:1000].decode()}, not {wanted[:1000].decode()}"


def _rows(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> Iterator[str]:
    if len(found) != len(expected):
        yield f"has {len(found)} rows, not {len(expected)}"
    for at, (row, wanted) in enumerate(zip(found, expected, strict=False)):
        shown = {name: _on_the_wire(value) for name, value in row.items()}
        if [*shown.items()] != [*wanted.items()]:
            yield f"row {at} is {shown}, not {wanted}"


def _on_the_wire(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def feed(site: Site, oracle: Oracle) -> Iterator[str]:
    """The JSON Feed `new`, where the site has feeds, and that Atom has the same entries."""
    status, _, body = site.ask(NEW)
    if status != 200:
        return
    rows, entries = oracle.listed("all", "new")[:ENTRIES], json.loads(body)["items"]
    if [entry["id"] for entry in entries] != [f"urn:uuid:{row.id}" for row in rows]:
        yield f"{NEW} has not the first {ENTRIES} rows of all/new in their order"
        return
    for row, entry in zip(rows, entries, strict=True):
        yield from (f"{NEW}: entry {row.id}: {sentence}" for sentence in _entry(oracle, row, entry))
    _, _, atom = site.ask(NEW.replace(".json", ".atom"))
    at = [atom.find(f"<id>urn:uuid:{row.id}</id>".encode()) for row in rows]
    if at != sorted(at) or -1 in at:
        yield f"{NEW.replace('.json', '.atom')} has not the entries of {NEW} in their order"


def feed_of_markets(site: Site, oracle: Oracle) -> Iterator[str]:
    """Without lists of questions the feed stays that of markets, which the oracle got newest first."""
    status, _, body = site.ask(NEW)
    expected = [f"urn:uuid:{name}" for name in oracle.markets][:ENTRIES]
    if status == 200 and [entry["id"] for entry in json.loads(body)["items"]] != expected:
        yield f"{NEW} has not the first {ENTRIES} markets of all/new in their order"


def _entry(oracle: Oracle, row: Row, entry: Mapping[str, Any]) -> Iterator[str]:
    item = row.value
    expected = {"title": item["title"], "date_published": item["createdAt"]}
    if item.get("categories"):
        expected["tags"] = item["categories"]
    elif "tags" in entry:
        yield f"has tags {entry['tags']}"
    if row.id in oracle.questions:
        closes = item["closeTime"][:16].replace("T", " ")
        expected["content_text"] = f"{_SAID.get(item['status'], '')}Closing time: {closes} UTC."
        own = oracle.questions[row.id].url
        expected["url"] = own or f"{oracle.setting.base_url}{QUESTIONS}/{row.id}"
    for name, value in expected.items():
        if entry.get(name) != value:
            yield f"{name} is {entry.get(name)}, not {value}"
