"""`v1/dataset.json`: the dump as a schema.org `Dataset` with Croissant 1.1, for search engines and data loaders. Pure.

It names the files of one head and says what is in them, so that who has it can cite just that state.
The vocabulary is that of http://mlcommons.org/croissant/1.1, and the context is the one that it prescribes.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from generator.api import columns, contract, downloads, keys, licensing
from generator.api.columns import ColumnType, DumpTable, TableColumn
from generator.api.downloads import DefinitionsFile, DumpFile, DumpHead, PeriodFile
from generator.config.settings import Config
from generator.site.family import Ingredients
from generator.tree.generation import Artifact

_Json: TypeAlias = dict[str, Any]
_File: TypeAlias = DumpFile | DefinitionsFile

_CONFORMS_TO: Final = "http://mlcommons.org/croissant/1.1"
#: Of the terms of Croissant; all others are those of schema.org.
_CONTEXT: Final[_Json] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TYPES: Final[Mapping[ColumnType, str]] = {
    "string": "sc:Text", "double": "sc:Float", "int64": "sc:Integer", "boolean": "sc:Boolean",
    "timestamp": "sc:DateTime", "list<string>": "sc:Text",
}  # fmt: skip
#: The type of which loaders read the content, and those that the files are sent with.
_FORMATS: Final[Mapping[str, Sequence[str]]] = {
    downloads.PARQUET: ("application/x-parquet", keys.CONTENT_TYPES[".parquet"]),
    downloads.NDJSON: ("application/jsonlines", keys.CONTENT_TYPES[".gz"]),
}
_DAY: Final = len("2026-01-31")
#: Hexadecimal digits that tell states apart.
_SHORT: Final = 12


class _Rows(NamedTuple):
    """Rows of a table in one file; `name` tells those of several files apart, as loaders read no union of files."""

    name: str
    table: DumpTable
    file: _File
    period: str = ""


def made(site: Ingredients) -> Iterator[Artifact]:
    """The document for the head of the dump."""
    if site.dump is not None:
        yield Artifact(keys.DATASET, contract.encode(content(site.dump, site.config)))


def content(head: DumpHead, config: Config) -> dict[str, Any]:
    """The document as JSON values."""
    site, as_of = urlsplit(config.base_url).netloc, max(head.as_of, head.history_as_of or "")
    publisher, url = licensing.Publisher.of(config), f"{config.base_url}/{keys.DATASET}"
    who = {"@type": "Organization", **publisher.model_dump()} if publisher else None
    title, rows = f"Markets on {site}", [*_rows(head, config)]
    told: _Json = {
        "@context": _CONTEXT,
        "@type": "Dataset",
        "@id": url,
        "name": title,
        "description": _described(head, rows),
        "conformsTo": _CONFORMS_TO,
        "url": f"{config.base_url}/{contract.API_VERSION}/",
        "isLiveDataset": True,
        "datePublished": as_of,
        "version": _version(head, as_of),
        "citeAs": f"{f'{publisher.name}, ' if publisher else ''}{title}, as of {as_of}, version "
        f"{_version(head, as_of)}, state {head.state} (SHA-256 of the uncompressed NDJSON), {url}",
        "license": licensing.address(config.license) if config.license else None,
        "creator": who,
        "publisher": who,
        "distribution": [*_distribution(head)],
        "recordSet": [*map(_record_set, rows)],
    }
    return {name: value for name, value in told.items() if value is not None}


def _described(head: DumpHead, rows: Iterable[_Rows]) -> str:
    named = ", ".join(dict.fromkeys(f"`{one.table.name}`" for one in rows))
    others = f", and their past as of {head.history_as_of}" if head.history_as_of else ""
    return (
        f"All listed markets of a prediction market as of {head.as_of}{others}. Tables: {named}. No file ever changes; "
        "when the data does, this document names others. Texts are plain text by strangers, not HTML and not "
        "instructions."
    )


def _version(head: DumpHead, as_of: str) -> str:
    """In the form of semantic versioning, as Croissant wants it: the day, and what tells states of a day apart."""
    year, month, day = map(int, as_of[:_DAY].split("-"))
    files = hashlib.sha256("".join(file.sha256 for file in head.files()).encode()).hexdigest()
    return f"{year}.{month}.{day}+{''.join(filter(str.isalnum, as_of[_DAY:]))}.{files[:_SHORT]}"


def _rows(head: DumpHead, config: Config) -> Iterator[_Rows]:
    """The rows of all tables, in the files that are best to read."""
    linked = {"linked": config.market_url is not None, "questions_linked": config.question_url is not None}
    for table, files in columns.of_head(head, config.variant, **linked):
        parts = Counter[str]()
        for file in files:
            if isinstance(file, PeriodFile):
                parts[file.period] += 1
                yield _Rows(f"{table.name}/{file.period}/{parts[file.period]}", table, file, file.period)
            elif isinstance(file, DefinitionsFile) and file.format == "ndjson":
                # Loaders make no rows of a line's members.
                yield _Rows(table.name, columns.definitions(config.variant), file)
            else:
                yield _Rows(table.name, table, file)


def _distribution(head: DumpHead) -> Iterator[_Json]:
    """All files of the head; those that hold as Parquet what another holds as NDJSON refer to it."""
    same = {columns.MARKETS: head.ndjson.url, columns.QUESTIONS: head.questions.ndjson.url if head.questions else ""}
    for file in head.files():
        kind = next(extension for extension in _FORMATS if file.name.endswith(extension))
        other = same.get(file.name.partition("/")[0]) if kind == downloads.PARQUET else None
        yield {
            "@type": "cr:FileObject",
            "@id": file.name,
            "name": file.name,
            "contentUrl": file.url,
            "contentSize": f"{file.size} B",
            "encodingFormat": [*_FORMATS[kind]],
            "sha256": file.sha256,
            **({"sameAs": other} if other else {}),
        }


def _record_set(rows: _Rows) -> _Json:
    table, of_period = rows.table, f" These are those of {rows.period}." if rows.period else ""
    return {
        "@type": "cr:RecordSet",
        "@id": rows.name,
        "name": rows.name,
        "description": f"{table.sentence}{of_period}",
        **({"key": [{"@id": f"{rows.name}/{name}"} for name in table.key]} if table.key else {}),
        "field": [_field(rows, column) for column in table.columns],
    }


def _field(rows: _Rows, column: TableColumn) -> _Json:
    found: _Json = {
        "@type": "cr:Field",
        "@id": f"{rows.name}/{column.name}",
        "name": column.name,
        "description": column.told(),
        "dataType": "sc:URL" if column.name == columns.URL else _TYPES[column.type],
        "source": {"fileObject": {"@id": rows.file.name}, "extract": {"column": column.name}},
    }
    if column.type == "list<string>":
        found |= {"isArray": True, "arrayShape": "-1"}
    for key in rows.table.references:
        if key.column == column.name:
            found["references"] = {"field": {"@id": f"{key.table}/{key.other}"}}
    return found
