"""`attach.sql` of a build makes each table a view over exactly the files of the head, and DuckDB takes it as it is."""

import re
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest

from generator.api import columns, downloads, keys
from generator.api.downloads import DumpHead, MarketsFile
from generator.config.settings import Config
from generator.site import attach
from tests.support.sites.builds import AS_OF, build_now, dump_head, make_config
from tests.support.sites.question_tables import create_questions, insert_question
from tests.support.sites.rows import insert_fill, insert_market, insert_point, market_id

#: Every layout and variant once, with what it may publish and lack.
SITES: Final[list[dict[str, object]]] = [
    {"layout": "pages", "variant": "core"},
    {"layout": "chunks", "variant": "extended", "dumps__parquet": True, "dumps__fills": True},
    {"layout": "chunks", "variant": "core", "dumps__parquet": True, "market_url": "https://e.example/m/{id}"},
    {
        "layout": "pages",
        "variant": "extended",
        "questions__enabled": False,
        "dumps__base_url": "https://f.example/it's",
    },
]
#: An address in SQL.
_ADDRESS: Final = re.compile(r"'(https?://(?:[^']|'')*)'")


def fill(database: sqlite3.Connection) -> None:
    """Two markets in a question, of which one has a history and a trade, and one in none."""
    create_questions(database)
    for number in (1, 2, 3):
        insert_market(database, number)
    insert_question(database, 1, 1, 2)
    insert_point(database, "2025-12-05 12:00:00.000000", 0.25, market_id=market_id(1))
    insert_fill(database, 1, market_id=market_id(1), created_at="2025-12-05 12:00:00.000000")


def sql(config: Config) -> str:
    """The text of the document."""
    return (config.output / keys.ATTACH).read_text("utf-8")


def files_named(text: str) -> list[str]:
    """The addresses in a text, which stand in quotes."""
    return [address.replace("''", "'") for address in _ADDRESS.findall(text)]


def files_of(head: DumpHead) -> list[str]:
    """The files with all tables of a head, in its best form."""
    of_questions = [file.url for file in head.questions.files[-1:]] if head.questions else []
    return [(head.parquet or head.ndjson).url, *of_questions, *(file.url for file in head.tables())]


def attached(text: str, config: Config) -> duckdb.DuckDBPyConnection:
    """A session that ran the text, with the files in the output folder."""
    connection = duckdb.connect()
    local = text.replace(config.files_url.replace("'", "''"), str(config.output).replace("'", "''"))
    connection.execute(local)
    return connection


@pytest.mark.parametrize("settings", SITES)
def test_the_views_are_those_of_the_head_with_its_columns_and_their_meaning(
    settings: dict[str, object], tmp_path: Path, database: sqlite3.Connection
) -> None:
    fill(database)
    config = make_config(tmp_path, base_url="https://api.example/a%20b", **settings)
    build_now(config)
    head = dump_head(config.output)
    assert files_named(sql(config)) == files_of(head)
    assert f"as of {head.as_of}" in sql(config)
    assert head.state in sql(config)
    session = attached(sql(config), config)
    linked = head.parquet is not None and config.market_url is not None
    views = dict(session.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal").fetchall())
    names = [name for name in columns.NAMES if name in head.model_dump(by_alias=True, exclude_none=True)]
    assert views == {name: columns.table(name, fills=head.has_fills).sentence for name in names}
    for name in names:
        known = columns.table(name, config.variant, linked=linked and name == "markets", fills=head.has_fills).columns
        told = session.execute(
            "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index", [name]
        ).fetchall()
        assert [column for column, _ in told] == [column.name for column in known]
        for (_, comment), column in zip(told, known, strict=True):
            assert comment.startswith(column.meaning)
            assert column.unit is None or column.unit in comment
    (count,) = session.execute("SELECT count(*) FROM markets").fetchone() or ()
    assert count == head.count == 3


def test_with_parquet_or_without_it_views_have_the_same_columns_types_and_rows(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    fill(database)
    found = list[Any]()
    for parquet in (True, False):
        config = make_config(tmp_path, variant="extended", dumps__parquet=parquet)
        build_now(config)
        session = attached(sql(config), config)
        for name in ("markets", "questions"):
            rows = session.sql(f"FROM {name} ORDER BY ALL")
            columns_of = [*zip(rows.columns, map(str, rows.types), strict=True)]
            found.append((columns_of, session.sql(f"SELECT {name}::TEXT FROM {name} ORDER BY ALL").fetchall()))
    assert found[:2] == found[2:]
    assert [len(rows) for _, rows in found[:2]] == [3, 2]


def test_a_table_without_rows_is_a_view_without_rows(tmp_path: Path, database: sqlite3.Connection) -> None:
    create_questions(database)
    config = make_config(tmp_path, dumps__parquet=True, dumps__fills=True)
    build_now(config)
    session = attached(sql(config), config)
    for name in columns.NAMES:
        assert session.execute(f'SELECT count(*) FROM "{name}"').fetchone() == (0,)
        kinds = {str(kind) for kind in session.sql(f'FROM "{name}"').types}
        assert {"VARCHAR", "TIMESTAMP WITH TIME ZONE"} <= kinds, name


def test_it_changes_with_the_head_and_only_then(tmp_path: Path, database: sqlite3.Connection) -> None:
    fill(database)
    config = make_config(tmp_path, dumps__parquet=True)
    build_now(config)
    first = sql(config)
    build_now(config, AS_OF + timedelta(hours=1))
    assert sql(config) == first
    database.execute("UPDATE markets SET volume = 4711")
    build_now(config, AS_OF + timedelta(hours=2))
    assert sql(config) != first
    assert files_named(sql(config)) == files_of(dump_head(config.output))


def test_a_site_without_dumps_has_none(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert_market(database)
    build_now(make_config(tmp_path))
    assert (tmp_path / "output" / keys.ATTACH).exists()
    build_now(make_config(tmp_path, dumps__ndjson=False, changes__enabled=False))
    assert not (tmp_path / "output" / keys.ATTACH).exists()


@pytest.mark.parametrize("folder", ["it's", "a%27b", "a*b", "a;--b"])
def test_no_address_ends_its_text_or_stands_for_others(folder: str, tmp_path: Path) -> None:
    digest = "ab" * 32
    name = downloads.name(digest, downloads.NDJSON, downloads.MARKETS_FOLDER)
    url = downloads.url(f"https://e.example/{folder}", keys.DUMPS, name)
    file = MarketsFile(name=name, url=url, sha256=digest, size=1, format="ndjson")
    head = DumpHead(as_of="2026-01-31T12:00:00.000Z", count=0, state=digest, markets=[file])
    text = attach.script(head, make_config(tmp_path))
    assert files_named(text) == [url.replace("*", "%2A")]
    assert len(duckdb.extract_statements(text)) == text.count(";\n")
