"""docs/from-files.md: what its program fetches from a subgraph, and what its view makes of that."""

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pytest

from tests.support.edges.servers import Answer, QuietHandler, serving
from tests.support.readers.pages import PAGES
from tests.support.waiting import PATIENCE_S

PAGE: Final = PAGES["docs/from-files.md"]
(PROGRAM,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
(VIEW,) = re.findall(r"^```sql\n-- [^\n]*\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
CONTRACTS: Final = [
    {"id": f"0x{number:04x}", "title": 'Is "it"?\n', "closesAt": "1767225600", "volume": "1234" + "0" * 17}
    for number in range(2_001)
]


class Subgraph(QuietHandler):
    """Answers as a subgraph does, which knows no block but 7."""

    def do_POST(self) -> None:  # noqa: N802 - the name is the library's
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["query"]
        (last,) = re.findall(r'first: 1000, orderBy: id, where: \{id_gt: "(\w*)"\}', query)
        answer: dict[str, Any] = {"data": {"contracts": [one for one in CONTRACTS if one["id"] > last][:1_000]}}
        if "block: {number: 7}" not in query:
            answer = {"errors": [{"message": "no such block"}]}
        self.reply(Answer(200, {}, json.dumps(answer).encode()))


@pytest.fixture(scope="module")
def subgraph() -> Iterator[str]:
    """The address of a subgraph."""
    with serving(Subgraph) as port:
        yield f"http://127.0.0.1:{port}/"


def exported(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def test_all_markets_of_a_subgraph_become_lines_that_its_view_reads(subgraph: str) -> None:
    done = exported(subgraph, "7")
    assert [json.loads(line) for line in done.stdout.splitlines()] == CONTRACTS, done.stderr
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE c (closesAt TEXT, volume TEXT)")
        connection.execute("INSERT INTO c VALUES (:closesAt, :volume)", CONTRACTS[0])
        assert connection.execute(f"SELECT {VIEW} FROM c").fetchall() == [(123.4, "2026-01-01 00:00:00")]


def test_an_export_that_the_subgraph_refuses_fails_with_its_words(subgraph: str) -> None:
    done = exported(subgraph, "8")
    assert done.returncode == 1
    assert "no such block" in done.stderr
