"""Runs what docs/dumps.md shows for DuckDB, polars and pandas, in a process of its own: they start threads.

    python -m tests.support.readers.dump_readers

Takes the programs as JSON, and writes the rows that each one finds: of the last statement, or of the variable `answer`.
"""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_httpfs
import polars as pl


def connected() -> duckdb.DuckDBPyConnection:
    """A connection that can read over HTTP; elsewhere DuckDB fetches what it needs for that by itself."""
    connection = duckdb.connect()
    (extension,) = Path(duckdb_extension_httpfs.__file__).parent.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    return connection


def main() -> None:
    """Run the programs."""
    answers = map(_answer, json.load(sys.stdin))
    json.dump([*map(_rows, answers)], sys.stdout, default=_text)


def _answer(program: str) -> Any:
    if program.startswith("SET "):
        return connected().execute(program).pl()
    variables = dict[str, Any]()
    exec(program, variables)  # noqa: S102 - the page's
    return variables["answer"]


def _rows(answer: Any) -> list[list[Any]]:
    if isinstance(answer, pl.DataFrame):
        return [list(row) for row in answer.rows()]
    # Where rows are grouped, pandas has the groups in its index.
    shown = answer if answer.index.name is None else answer.reset_index()
    return [list(row) for row in shown.astype(object).itertuples(index=False)]


def _text(value: object) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()


if __name__ == "__main__":
    main()
