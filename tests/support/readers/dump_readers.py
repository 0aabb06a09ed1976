"""Runs what docs/dumps.md shows for DuckDB, polars and pandas, in a process of its own: they start threads.

    python -m tests.support.readers.dump_readers [answers]

Takes a line of JSON, the three programs. It runs each until the head was read, writes a line, and waits for one. Then
it runs the rest, and writes what was found as JSON. For `answers`, it writes the rows that each one finds: of the last
statement, or of the variable `answer`.
"""

import ast
import json
import sys
from datetime import datetime
from pathlib import Path
from types import CodeType
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


def halves(program: str) -> tuple[CodeType, CodeType]:
    """What a program does until it has read the head, and the rest."""
    lines = ast.parse(program).body
    first = 1 + next(at for at, line in enumerate(lines) if ast.unparse(line).startswith("head ="))
    begun, rest = (compile(ast.Module(part, []), "<page>", "exec") for part in (lines[:first], lines[first:]))
    return begun, rest


def main() -> None:
    """Run the programs."""
    sql, *programs = json.loads(sys.stdin.readline())
    connection = connected()
    statements = [statement for statement in sql.split(";\n") if statement.strip()]
    settings = [statement for statement in statements if statement.lstrip().startswith("SET")]
    for statement in settings:
        connection.execute(statement)
    parts, states = [halves(program) for program in programs], [dict[str, Any](), dict[str, Any]()]
    for (begun, _), state in zip(parts, states, strict=True):
        exec(begun, state)  # noqa: S102 - the page's
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    found = [connection.execute(statement).fetchall() for statement in statements[len(settings) :]]
    for (_, rest), state in zip(parts, states, strict=True):
        exec(rest, state)  # noqa: S102
    by_polars, by_pandas = (state["found"] for state in states)
    found.append(by_polars.sort("id").rows())
    found.append(by_pandas.sort_index().reset_index()[["id", "volume", "probCount"]].to_numpy().tolist())
    sys.stdout.write(json.dumps(found))


def answer() -> None:
    """Run programs of a question."""
    sql, *programs = json.load(sys.stdin)
    answers = [connected().execute(sql).pl(), *map(_answer, programs)]
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
    answer() if sys.argv[1:] else main()
