"""Runs what docs/dumps.md shows for DuckDB, polars and pandas, in a process of its own: they start threads.

    python -W error -m tests.support.readers.dump_readers

Takes pairs of programs as JSON, of which the first attaches the tables of a dump. Writes the rows, by column, that each
second one finds: a query of DuckDB, or Python that leaves them in `answer`.
"""

import json
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_httpfs
import polars as pl


def main() -> None:
    """Run the programs."""
    # Elsewhere DuckDB fetches what it needs to read over HTTP by itself.
    (extension,) = Path(duckdb_extension_httpfs.__file__).parent.rglob("*.duckdb_extension")
    duckdb.execute(f"LOAD '{extension}'")
    json.dump([_rows(*programs) for programs in json.load(sys.stdin)], sys.stdout, default=_text)


def _rows(attach: str, task: str) -> list[dict[str, Any]]:
    variables = dict[str, Any]()
    exec(attach, variables)  # noqa: S102 - the page's
    if "import duckdb" in attach:
        found = duckdb.sql(task)
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    exec(task, variables)  # noqa: S102
    answer = variables["answer"]
    if isinstance(answer, pl.DataFrame):
        return answer.rows(named=True)
    # Where rows are grouped, pandas has the groups in its index.
    shown = answer if answer.index.name is None else answer.reset_index()
    return [dict(zip(shown.columns, row, strict=True)) for row in shown.astype(object).itertuples(index=False)]


def _text(value: object) -> Any:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


if __name__ == "__main__":
    main()
