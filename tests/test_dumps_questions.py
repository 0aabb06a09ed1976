"""The five questions of docs/dumps.md, answered by its programs over nginx, and by a plain computation."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.config.settings import Config
from tests.support.edges.servers import folder_for_anybody, free_port, nginx
from tests.support.project import ROOT
from tests.support.readers.pages import section
from tests.support.sites.builds import AS_OF, CHUNKED, NO_LIMITS, build_now, make_config

#: The longest program.
LINES: Final = 10
#: What the page has in place of the site, and of the day.
ADDRESS: Final = "https://api.example.org"
DAY: Final = "2026-10-31"
LIBRARIES: Final = ("DuckDB", "polars", "pandas")
_PARTS: Final = re.compile(r"^### ([^\n]+)\n(.*?)(?=^### |\Z)", re.DOTALL | re.MULTILINE)
QUESTIONS: Final = dict(_PARTS.findall(section("docs/dumps.md", "Five questions")))
#: With what the page shows of full histories.
PARTS: Final = QUESTIONS | dict(_PARTS.findall(section("docs/dumps.md", "Full histories")))

Rows = list[list[Any]]


@pytest.fixture(scope="module")
def site(demo_folder: Path) -> Iterator[Config]:
    """A site behind nginx, built on two days, with other prices."""
    with folder_for_anybody() as folder:
        (folder / "markets.db").write_bytes((demo_folder / "markets.db").read_bytes())
        port = free_port()
        config = make_config(
            folder, base_url=f"http://127.0.0.1:{port}", variant="extended", dumps__parquet=True,
            dumps__histories="full", archive__days=3, publish__target="",
            **CHUNKED, **NO_LIMITS,
        )  # fmt: skip
        build_now(config, AS_OF - timedelta(days=1))
        with closing(sqlite3.connect(folder / "markets.db")) as database, database:
            database.execute("UPDATE markets SET prob = prob * 0.9")
        build_now(config, AS_OF)
        with nginx(config.output, port):
            yield config


def programs(question: str) -> list[str]:
    return re.findall(r"^```\w+\n(.*?)^```$", PARTS[question], re.DOTALL | re.MULTILINE)


def answers(question: str, config: Config, day: str = DAY) -> list[Rows]:
    """What these programs find, as JSON values, far from UTC, in a process of their own: they start threads."""
    shown = [text.replace(ADDRESS, config.base_url).replace(DAY, day) for text in programs(question)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.readers.dump_answers"], cwd=ROOT, input=json.dumps(shown),
        env={**os.environ, "TZ": "America/New_York"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[Rows] = json.loads(done.stdout)
    return found


def listed(config: Config) -> list[dict[str, Any]]:
    """The market objects of the details of listed markets, by id."""
    found = [json.loads(path.read_bytes())["market"] for path in config.output.glob(f"{keys.DETAILS}/*/*.json")]
    return sorted((market for market in found if market["fxFamilyMember"] is None), key=lambda market: market["id"])


def points(config: Config) -> dict[str, list[tuple[str, float]]]:
    """All points of each market in the database, by time."""
    found = dict[str, list[tuple[str, float]]]()
    with closing(sqlite3.connect(config.output.parent / "markets.db")) as database:
        for market, time, prob in database.execute("SELECT lower(market_id), recorded_at, prob FROM probabilities"):
            found.setdefault(market, []).append((moment(time), prob))
    return {market: sorted(rows) for market, rows in found.items()}


def moment(text: str) -> str:
    """A time in UTC with milliseconds; one without a zone is in UTC."""
    at = datetime.fromisoformat(text)
    return f"{at.astimezone(UTC) if at.tzinfo else at:%Y-%m-%dT%H:%M:%S.%f}"[:-3]


def last_before(rows: list[tuple[str, float]], text: str, **ago: float) -> float | None:
    """The probability at an instant so long before another."""
    at = moment((datetime.fromisoformat(text) - timedelta(**ago)).isoformat())
    return next((prob for time, prob in reversed(rows) if time <= at), None)


def test_each_question_is_answered_by_three_short_programs() -> None:
    assert len(QUESTIONS) == 5
    for question in QUESTIONS:
        found = programs(question)
        assert len(found) == len(LIBRARIES), question
        for program in found:
            assert len([line for line in program.splitlines() if line.strip()]) <= LINES, program


@pytest.mark.campaign(short=0)
def test_open_markets_are_those_of_the_site(site: Config) -> None:
    expected = [
        [market[name] for name in ("id", "question", "prob", "volume")]
        for market in listed(site)
        if market["status"] == "open"
    ]
    assert len(expected) > 50
    assert answers("Which markets are open?", site) == [expected] * 3


@pytest.mark.campaign(short=0)
def test_the_prices_of_a_category_are_all_points_of_its_markets(site: Config) -> None:
    ids, all_points = {market["id"] for market in listed(site) if "politics" in market["categories"]}, points(site)
    expected = [[market, time, prob] for market in sorted(ids) for time, prob in all_points.get(market, ())]
    assert len(expected) > 500
    for rows in answers("How did the prices of a category move?", site):
        assert [[market, moment(time), prob] for market, time, prob in rows] == expected


@pytest.mark.campaign(short=0)
def test_calibration_counts_each_market_by_its_price_a_week_before_its_end(site: Config) -> None:
    ends = {market["id"]: market["resolvedAt"] or market["closeTime"] for market in listed(site)}
    expected = calibration(site, ends)
    assert sum(count for count, _ in expected.values()) > 20
    for rows in answers("Were prices right a week before the end?", site):
        assert {row[0]: row[1:] for row in rows} == {bucket: pytest.approx(row) for bucket, row in expected.items()}


@pytest.mark.campaign(short=0)
def test_prices_at_the_close_show_calibration_without_histories(site: Config) -> None:
    closes = {market["id"]: min(market["resolvedAt"] or "~", market["closeTime"]) for market in listed(site)}
    expected = calibration(site, closes)
    assert sum(count for count, _ in expected.values()) == 20
    (rows,) = answers("Prices at the close", site)
    assert {row[0]: row[1:] for row in rows} == {bucket: pytest.approx(row) for bucket, row in expected.items()}


def calibration(site: Config, ends: dict[str, str]) -> dict[float, list[float]]:
    """The number of markets in each bucket by the price a week before these ends, by id, and the share of YES."""
    all_points, buckets = points(site), dict[float, list[bool]]()
    for market in listed(site):
        prob = last_before(all_points.get(market["id"], []), ends[market["id"]], days=7)
        if market["resolution"] in {"YES", "NO"} and prob is not None:
            buckets.setdefault(prob * 10 // 1 / 10, []).append(market["resolution"] == "YES")
    return {bucket: [len(found), sum(found) / len(found)] for bucket, found in buckets.items()}


@pytest.mark.campaign(short=0)
def test_movers_are_the_open_markets_that_moved_most_in_24_hours(site: Config) -> None:
    all_points, moves = points(site), dict[str, float]()
    as_of = json.loads((site.output / keys.head(keys.DUMPS)).read_bytes())["asOf"]
    for market in listed(site):
        before = last_before(all_points.get(market["id"], []), as_of, days=1)
        if market["status"] == "open" and before is not None:
            moves[market["id"]] = abs(market["prob"] - before)
    most = sorted(moves.values(), reverse=True)[:10]
    assert most[-1] > 0
    for rows in answers("What moved most in 24 hours?", site):
        assert sorted((abs(after - before) for *_, before, after in rows), reverse=True) == pytest.approx(most)
        assert [moves[market] for market, *_ in rows] == pytest.approx([abs(row[3] - row[2]) for row in rows])


@pytest.mark.campaign(short=0)
def test_a_day_of_the_archive_is_read_as_it_was(site: Config) -> None:
    day = (AS_OF - timedelta(days=1)).date().isoformat()
    found = [sorted(rows) for rows in answers("What was known on a day?", site, day)]
    now = {market["id"]: market["prob"] for market in listed(site)}
    assert found == [found[0]] * 3
    assert {market: prob * 0.9 for market, prob in found[0]} == pytest.approx(now)
    assert len(now) > 100
