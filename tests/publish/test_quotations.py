"""After a takedown no page quotes the markets and the report is counts, until the next build makes both again."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from generator.tree.files import HISTORY, INSPECTION, MANIFEST, QUOTING, REPORT
from generator.tree.layouts import COMPACT
from tests.site.chosen_sites import rich_site
from tests.site.taken_down import Workplace, traces, workplace
from tests.support.deaths import dying
from tests.support.sites.publishing import tamper
from tests.support.sites.rows import market_id


@pytest.fixture(scope="module")
def made() -> Iterator[Workplace]:
    """A site with both pages, and remarks about spellings of categories."""
    with workplace(rich_site(COMPACT, "extended")) as place:
        place.build_both()
        place.copy("output", "built")
        yield place


@pytest.fixture
def place(made: Workplace) -> Workplace:
    """The same with the output folder as it was built."""
    shutil.rmtree(made.folder / "output")
    made.copy("built", "output")
    return made


def report_in(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / REPORT).read_bytes())
    return content


def quoting(place: Workplace) -> dict[str, bytes]:
    """What is there of pages and report."""
    names = [name for name in (*QUOTING, REPORT) if (place.folder / "output" / name).exists()]
    return {name: (place.folder / "output" / name).read_bytes() for name in names}


def test_the_pages_go_and_the_report_keeps_counts_until_the_next_build(place: Workplace) -> None:
    output, before = place.folder / "output", report_in(place.folder / "output")
    assert quoting(place).keys() == {INSPECTION, HISTORY, REPORT}
    assert traces(place.site, quoting(place)) != []
    place.done("takedown", *place.site.ids)
    assert quoting(place).keys() == {REPORT}
    assert traces(place.site, quoting(place)) == []
    after = report_in(output)
    rows = sum(row["rows"] for row in before["quarantined"])
    assert (after["markets"], after["cost"]) == (before["markets"], before["cost"])
    # Guards go by the ids of what was never public.
    assert {(row["relation"], row["title"], row["reason"]) for row in after["quarantined"]} <= {("markets", "", "")}
    named = sum(row["rows"] for row in after["quarantined"])
    assert after["quarantinedUnnamed"] + named == before["quarantinedUnnamed"] + rows
    assert after["takenDown"] == sorted(place.site.ids)
    assert (after["remarks"], after["lists"]) == ([], {})
    assert after["remarksUnnamed"] == len(before["remarks"]) > 0
    assert (after["run"]["written"], after["run"]["added"]) == (before["run"]["written"], [])
    place.build(place.site.as_of)
    assert quoting(place).keys() == {INSPECTION, HISTORY, REPORT}
    assert traces(place.site, quoting(place)) == []
    assert report_in(output)["takenDown"] == [*place.site.ids]
    assert report_in(output)["lists"]


@pytest.mark.parametrize("last", [*QUOTING, REPORT, MANIFEST])
def test_a_takedown_that_was_killed_is_finished_by_the_next_one(place: Workplace, last: str) -> None:
    with dying(lambda _, path: path.name == last):
        assert place.run("takedown", *place.site.ids).exit_code == 1
    place.done("takedown")
    assert quoting(place).keys() == {REPORT}
    assert traces(place.site, quoting(place)) == []


def test_a_market_that_was_quarantined_is_not_quoted_either(place: Workplace) -> None:
    with closing(sqlite3.connect(place.folder / "markets.db", isolation_level=None)) as database:
        database.execute("UPDATE markets SET prob = 7, question = 'Said?' WHERE id = ?", [market_id(4)])
    place.build(place.site.as_of)
    assert b"Said?" in b"".join(quoting(place).values())
    place.done("takedown", market_id(4))
    assert b"Said?" not in b"".join(quoting(place).values())
    assert market_id(4) not in {row["key"] for row in report_in(place.folder / "output")["quarantined"]}


@pytest.mark.parametrize("content", [b"", b"{}", b"no report", b"[]"])
def test_of_a_report_that_nobody_can_read_nothing_stays(place: Workplace, content: bytes) -> None:
    tamper(place.folder / "output" / REPORT, content)
    place.done("takedown", market_id(3))
    assert report_in(place.folder / "output") == {}


def test_a_takedown_makes_no_folder_look_built(place: Workplace) -> None:
    place.done("takedown", market_id(3), output="elsewhere")
    assert {path.name for path in (place.folder / "elsewhere").iterdir()} == {"blocked.json", ".lock"}
