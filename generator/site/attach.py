"""`v1/dumps/attach.sql`: gives DuckDB every table of a dump by name, as views over the files of one head. Pure.

Only the types of NDJSON are told, in place of what DuckDB would guess of its first lines: Parquet has its own. The
views have the same columns with either.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from generator.api import columns, downloads, keys
from generator.api.columns import ColumnType, DumpTable, TableColumn
from generator.api.downloads import DefinitionsFile, DumpFile, DumpHead
from generator.config.settings import Config
from generator.site.family import Ingredients
from generator.tree.generation import Artifact

_TYPES: Final[dict[ColumnType, str]] = {
    "string": "VARCHAR", "double": "DOUBLE", "int64": "BIGINT", "boolean": "BOOLEAN", "timestamp": "TIMESTAMPTZ",
    "list<string>": "VARCHAR[]",
}  # fmt: skip
#: The columns of questions that a line of NDJSON says of each of its members, by their names there.
_OF_MEMBERS: Final = {"marketId": "id", "label": "label", "position": "position", "payout": "payout"}
_FILE: Final = re.compile(rb"/(%b/[^']+)'" % keys.list_prefix(keys.DUMPS).encode())
_NEXT: Final = ",\n  "


def made(site: Ingredients) -> Iterator[Artifact]:
    """The document for the head of the dump."""
    if site.dump is not None:
        yield Artifact(keys.ATTACH, script(site.dump, site.config).encode())


def script(head: DumpHead, config: Config) -> str:
    """The statements for the files of a head."""
    tables = columns.of_head(
        head,
        config.variant,
        linked=config.market_url is not None,
        questions_linked=config.question_url is not None,
    )
    views = (statement for table, files in tables for statement in _statements(table, files))
    return "\n".join([*_introduction(head, config), "", *_session(head), "", *views])


def named_by(body: bytes) -> list[bytes]:
    """The keys of the files that the document names, in order."""
    return _FILE.findall(body)


def _introduction(head: DumpHead, config: Config) -> Iterator[str]:
    histories = f", its other tables as of {head.history_as_of}" if head.history_as_of else ""
    yield f"-- The tables of {config.base_url} for DuckDB: views over the files of one state of its dump,"
    yield f"-- as of {head.as_of}{histories}."
    yield f"-- The SHA-256 digest of its markets as NDJSON is {head.state}."
    yield "-- A session that runs this stays in that state, whatever the site does, until some hours after newer files"
    yield "-- replaced these, or until a market in them is withdrawn."
    yield "-- Then fetch this file again, and run it. From here on, the session's times are shown in UTC."


def _session(head: DumpHead) -> Iterator[str]:
    yield "SET TimeZone = 'UTC';"
    yield f"SET VARIABLE \"asOf\" = TIMESTAMPTZ '{head.as_of}';"


def _statements(table: DumpTable, files: Sequence[DumpFile | DefinitionsFile]) -> Iterator[str]:
    """The statements that make a view and say what it and its columns are."""
    yield f"CREATE OR REPLACE VIEW {_name(table.name)} AS {_rows(table, [_address(file.url) for file in files])};"
    yield f"COMMENT ON VIEW {_name(table.name)} IS {_text(table.sentence)};"
    for column in table.columns:
        yield f"COMMENT ON COLUMN {_name(table.name)}.{_name(column.name)} IS {_text(column.told())};"
    yield ""


def _rows(table: DumpTable, urls: Sequence[str]) -> str:
    """The query for all rows of the files with these addresses."""
    listed = f"[{', '.join(urls)}]" if len(urls) == 1 else f"[\n  {_NEXT.join(urls)}\n]"
    if not urls:
        nothing = ", ".join(f"NULL::{_TYPES[one.type]} AS {_name(one.name)}" for one in table.columns)
        return f"SELECT {nothing} WHERE false"
    if urls[0].endswith(f".{downloads.PARQUET}'"):
        return f"FROM read_parquet({listed}, hive_partitioning = false)"
    if table.name == columns.QUESTIONS:
        return _members(table.columns, listed)
    return f"FROM {_lines(listed, [(one.name, _TYPES[one.type]) for one in table.columns])}"


def _members(all_columns: Sequence[TableColumn], urls: str) -> str:
    """The query for a row for each member, in the order of the columns, of lines of questions."""
    types = {one.name: _TYPES[one.type] for one in all_columns}
    named = ", ".join(f"{_name(said)} {types[name]}" for name, said in _OF_MEMBERS.items())
    own = {"questionId": "id"}
    of_questions = [(own.get(name, name), found) for name, found in types.items() if name not in _OF_MEMBERS]
    chosen = (
        f"member.{_name(_OF_MEMBERS[name])} AS {_name(name)}" if name in _OF_MEMBERS
        else f"{_name(own.get(name, name))} AS {_name(name)}"
        for name in types
    )  # fmt: skip
    lines = _lines(urls, [*of_questions, ("members", f"STRUCT({named})[]")])
    return f"FROM (FROM {lines} SELECT *, unnest(members) AS member) SELECT {', '.join(chosen)}"


def _lines(urls: str, types: Sequence[tuple[str, str]]) -> str:
    """The rows of files of lines with values of these names and types; others are left out."""
    named = ", ".join(f"{_name(name)}: {_text(of_type)}" for name, of_type in types)
    return f"read_json({urls}, format = 'newline_delimited', columns = {{{named}}})"


def _name(name: str) -> str:
    return f'"{name}"'


def _address(url: str) -> str:
    # An asterisk would stand for any name.
    return _text(url.replace("*", "%2A"))


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
