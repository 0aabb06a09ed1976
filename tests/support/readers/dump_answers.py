"""Runs the programs of a question of docs/dumps.md, in a process of its own: the libraries start threads.

    python -m tests.support.readers.dump_answers

Takes the programs for DuckDB, polars and pandas as JSON, and writes the rows that each one finds as JSON: of the last
statement, or of the variable `answer`.
"""

import json
import sys
from datetime import datetime
from typing import Any

import polars as pl

from tests.support.readers.dump_readers import connected


def main() -> None:
    """Run the programs."""
    sql, *programs = json.load(sys.stdin)
    connection = connected()
    answers = [connection.execute(sql).pl(), *map(_answer, programs)]
    json.dump([*map(_rows, answers)], sys.stdout, default=_text)


def _answer(program: str) -> Any:
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
