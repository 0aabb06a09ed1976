"""What docs/dumps.md shows reads a site over nginx: to the end of what it began, while that is republished.

Its four questions are answered by its programs, and by a plain computation.
"""

import gzip
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import contract, keys
from generator.api.downloads import MarketsFile
from generator.config.settings import Config
from generator.downloads.segments import Written
from tests.support.edges.servers import folder_for_anybody, free_port, nginx
from tests.support.programs import require
from tests.support.project import ROOT
from tests.support.readers.pages import PAGES, section
from tests.support.sites.builds import AS_OF, CHUNKED, NO_LIMITS, build_now, make_config

PAGE: Final = PAGES["docs/dumps.md"]
ADDRESS: Final = "https://api.example.org"
#: The day whose prices the page reads.
DAY: Final = "2026-10-31"


def shown(heading: str) -> str:
    """The blocks in a section of the page."""
    return "".join(_blocks(section("docs/dumps.md", heading)))


def _blocks(text: str) -> list[str]:
    return re.findall(r"^```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@contextmanager
def behind_nginx(demo_folder: Path, **settings: object) -> Iterator[Config]:
    """A site of the demo, to be built, with Parquet files."""
    with folder_for_anybody() as folder:
        (folder / "markets.db").write_bytes((demo_folder / "markets.db").read_bytes())
        port = free_port()
        config = make_config(
            folder, base_url=f"http://127.0.0.1:{port}", dumps__parquet=True, publish__target="",
            **CHUNKED, **NO_LIMITS, **settings,
        )  # fmt: skip
        build_now(config, AS_OF - timedelta(days=1))
        with nginx(config.output, port):
            yield config


@pytest.fixture(scope="module")
def settings(demo_folder: Path) -> Iterator[Config]:
    """A site behind nginx."""
    with behind_nginx(demo_folder) as made:
        build_now(made)
        yield made


def details(settings: Config) -> list[dict[str, Any]]:
    """The details of the markets that lists show, by id."""
    found = [json.loads(path.read_bytes()) for path in sorted(settings.output.glob(f"{keys.DETAILS}/*/*.json"))]
    return [detail for detail in found if detail["market"]["fxFamilyMember"] is None]


def change_prices(settings: Config) -> None:
    with closing(sqlite3.connect(settings.output.parent / "markets.db")) as database, database:
        database.execute("UPDATE markets SET prob = prob * 0.9, trader_count = trader_count + 1")


def republish(settings: Config) -> None:
    """Build again with other prices and volumes, a day later, so that all files are others."""
    before = (settings.output / keys.head(keys.DUMPS)).read_bytes()
    change_prices(settings)
    build_now(settings, AS_OF + timedelta(days=1))
    after = json.loads((settings.output / keys.head(keys.DUMPS)).read_bytes())
    assert {file["url"] for file in after["markets"]}.isdisjoint(file["url"] for file in json.loads(before)["markets"])


@pytest.mark.campaign(short=0)
def test_all_libraries_read_the_state_that_they_began_with(settings: Config, tmp_path: Path) -> None:
    expected, all_points = details(settings), points(settings)
    of = {detail["market"]["id"]: all_points.get(detail["market"]["id"], []) for detail in expected}
    head, address = tmp_path / "head.json", f"{ADDRESS}/{keys.head(keys.DUMPS)}"
    head.write_bytes((settings.output / keys.head(keys.DUMPS)).read_bytes())
    republish(settings)
    begin, statements = _blocks(section("docs/dumps.md", "DuckDB"))
    by_status, by_month, by_resolution, by_polars, by_pandas = ran(
        *((begin + one).replace(address, str(head)) for one in statements.split(";\n\n")),
        shown("polars").replace(address, head.as_uri()) + "answer = found.sort('id')",
        shown("pandas").replace(address, head.as_uri())
        + "answer = found.sort_index().reset_index()[['id', 'volume', 'probCount']]",
    )
    statuses = Counter(detail["market"]["status"] for detail in expected)
    assert [(status, count) for status, count, _ in by_status] == sorted(statuses.items())
    volumes = dict.fromkeys(statuses, 0.0)
    for detail in expected:
        volumes[detail["market"]["status"]] += detail["market"]["volume"]
    assert {status: volume for status, _, volume in by_status} == pytest.approx(volumes)
    months = Counter(time[:7] for rows in of.values() for time, _ in rows)
    assert {month: count for month, count, _ in by_month} == {m: n for m, n in months.items() if m >= "2025-06"}
    assert sum(number for *_, number in by_resolution) == sum(map(len, of.values()))
    markets = [detail["market"] for detail in expected]
    of_open = [market for market in markets if market["status"] == "open" and of[market["id"]]]
    assert [row[:3] for row in by_polars] == [
        [market["id"], market["volume"], len(of[market["id"]])] for market in of_open
    ]
    assert [row[3] for row in by_polars] == [of[market["id"]][-1][1] for market in of_open]
    assert [row for row in by_pandas if row[2] > 0] == [row[:3] for row in by_polars]


def test_the_command_line_reads_the_state_that_it_began_with(settings: Config) -> None:
    for program in ("curl", "jq", "zcat"):
        require(program, reason="the page's command line is not run")
    expected = [detail["market"] for detail in details(settings) if detail["market"]["status"] == "open"]
    find, read = shown("On the command line").replace(ADDRESS, settings.base_url).splitlines()
    url = subprocess.run(["bash", "-c", f'{find}; echo "$url"'], capture_output=True, text=True, check=True).stdout
    republish(settings)
    found = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {read}"], env={"url": url.strip(), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert [line.split("\t")[0] for line in found.split("\n")[:-1]] == [market["id"] for market in expected]


def test_each_library_reads_ndjson_in_one_line_whatever_the_first_lines_lack(settings: Config) -> None:
    """In a process of their own: they start threads."""
    lines = dict(re.findall(r"^\| (DuckDB|polars|pandas) \| `(.+)` \|$", PAGE, re.MULTILINE))
    market, dice = details(settings)[0]["market"], random.Random(1)  # noqa: S311 - the same markets every time
    markets = [
        {**market, "id": f"{number:08x}{market['id'][8:]}", "question": f"{number:06}", "prob": dice.random()}
        for number in range(MARKETS)
    ]
    markets.append({**market, "id": "f" * 8 + market["id"][8:], "question": "007", "sponsor": "Only the last has one"})
    file = put(settings, map(contract.encode, markets))
    sql, polars, pandas = (lines[name].replace("URL", file.url) for name in ("DuckDB", "polars", "pandas"))
    program = f"""
import gzip, json, sys
from urllib.request import urlopen
import pandas as pd
import polars as pl
from tests.support.readers.dump_readers import connected
names = ["id", "question", "prob", "sponsor"]
for found in connected().execute({sql!r}).pl().with_columns(pl.col("id").cast(str)), {polars}, {pandas}:
    rows = found[names].to_numpy(dtype=object) if isinstance(found, pd.DataFrame) else found[names].rows()
    print(json.dumps([[None if value != value else value for value in row] for row in rows]))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = [[one["id"], one["question"], one["prob"], one.get("sponsor")] for one in markets]
    for library, printed in zip(LIBRARIES, done.stdout.splitlines(), strict=True):
        assert sorted(json.loads(printed)) == expected, library


#: More markets than DuckDB looks at (20,480 lines), unless it is told to look at all.
MARKETS: Final = 21_000


def put(settings: Config, lines: Iterable[bytes]) -> MarketsFile:
    """Put a file of markets into the site, as a build would."""
    body = gzip.compress(b"".join(line + b"\n" for line in lines))
    written = Written(sha256=sha256(body).hexdigest(), size=len(body), state="", count=0, segments=())
    file = MarketsFile.of(written, settings.base_url)
    (settings.output / file.key).write_bytes(body)
    return file


# ── four questions ────────────────────────────────────────────────────────────────────────────────────────────────

#: The longest program.
LINES: Final = 10
LIBRARIES: Final = ("DuckDB", "polars", "pandas")
_PARTS: Final = re.compile(r"^### ([^\n]+)\n(.*?)(?=^### |\Z)", re.DOTALL | re.MULTILINE)
QUESTIONS: Final = dict(_PARTS.findall(section("docs/dumps.md", "Four questions")))
#: With what is shown of histories.
PARTS: Final = QUESTIONS | dict(_PARTS.findall(section("docs/dumps.md", "Histories")))
Rows = list[list[Any]]


@pytest.fixture(scope="module")
def site(demo_folder: Path) -> Iterator[Config]:
    """A site behind nginx, built on two days, with other prices."""
    with behind_nginx(demo_folder, variant="extended") as config:
        change_prices(config)
        build_now(config, AS_OF)
        yield config


def programs(question: str) -> list[str]:
    """The programs as readers run them: after the first blocks of their libraries, unless they begin anew."""
    found, begun = (
        _blocks(PARTS[question]),
        [_blocks(section("docs/dumps.md", library))[0] for library in LIBRARIES],
    )
    return [
        program if "https://" in program else before + program for before, program in zip(begun, found, strict=False)
    ]


def answers(question: str, config: Config, day: str = DAY) -> list[Rows]:
    """What these programs find."""
    return ran(*(text.replace(ADDRESS, config.base_url).replace(DAY, day) for text in programs(question)))


def ran(*programs: str) -> list[Rows]:
    """What programs find, as JSON values, far from UTC, in a process of its own: they start threads."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.readers.dump_readers"], cwd=ROOT, input=json.dumps(programs),
        env={**os.environ, "TZ": "America/New_York"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[Rows] = json.loads(done.stdout)
    return found


def listed(config: Config) -> list[dict[str, Any]]:
    """The market objects of the details of listed markets, by id."""
    return [detail["market"] for detail in details(config)]


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
    assert len(QUESTIONS) == 4
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


def test_calibration_counts_each_market_by_its_price_a_week_before_its_close(site: Config) -> None:
    closes = {market["id"]: min(market["resolvedAt"] or "~", market["closeTime"]) for market in listed(site)}
    expected = calibration(site, closes)
    assert sum(count for count, _ in expected.values()) == 20
    for rows in answers("Were prices right a week before the close?", site):
        assert {row[0]: row[1:] for row in rows} == {bucket: pytest.approx(row) for bucket, row in expected.items()}


def calibration(site: Config, ends: dict[str, str]) -> dict[float, list[float]]:
    """The number of markets in each bucket by the price a week before these ends, by id, and the share of YES."""
    all_points, buckets = points(site), dict[float, list[bool]]()
    for market in listed(site):
        prob = last_before(all_points.get(market["id"], []), ends[market["id"]], days=7)
        if market["resolution"] in {"YES", "NO"} and prob is not None:
            buckets.setdefault(prob * 10 // 1 / 10, []).append(market["resolution"] == "YES")
    return {bucket: [len(found), sum(found) / len(found)] for bucket, found in buckets.items()}


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


@pytest.mark.parametrize("days_ago", [1, 40, 400])
def test_the_prices_on_any_day_are_those_of_the_last_points_until_its_end(site: Config, days_ago: int) -> None:
    day = (AS_OF - timedelta(days=days_ago)).replace(hour=0, minute=0, second=0, microsecond=0)
    all_points, end = points(site), day + timedelta(days=1) - timedelta(milliseconds=1)
    prices = {
        market["id"]: price
        for market in listed(site)
        if (price := last_before(all_points.get(market["id"], []), end.isoformat())) is not None
    }
    (rows,) = answers("Prices on any day", site, day.date().isoformat())
    assert [market for market, _ in rows] == sorted(prices)
    assert dict(rows) == pytest.approx(prices)
    assert len(prices) > 5
