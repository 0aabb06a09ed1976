"""What docs/dumps.md shows reads a site over nginx, in the state that it attached, while that is republished.

Its five tasks are done by its programs, where they can be without Parquet or trades, too, and by a plain computation.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import pytest

from generator.api import keys
from generator.config.settings import Config
from tests.support.edges.servers import folder_for_anybody, free_port, nginx
from tests.support.programs import require
from tests.support.project import ROOT
from tests.support.readers.pages import section
from tests.support.sites.builds import AS_OF, CHUNKED, NO_LIMITS, build_now, make_config
from tests.support.sites.question_tables import create_questions, insert_member, insert_question
from tests.support.sites.rows import create_database, insert_market, market_id

ADDRESS: Final = "https://api.example.org"
#: The day whose prices the page reads.
DAY: Final = "2026-10-31"
LIBRARIES: Final = ("DuckDB", "polars", "pandas")
#: The longest program that attaches, and the longest that does a task then.
LINES: Final = (10, 3)
_PARTS: Final = re.compile(r"^### ([^\n]+)\n(.*?)(?=^### |\Z)", re.DOTALL | re.MULTILINE)
TASKS: Final = dict(_PARTS.findall(section("docs/dumps.md", "Five tasks")))
ATTACH: Final = dict(_PARTS.findall(section("docs/dumps.md", "Attach all tables")))
#: What is shown of histories, in DuckDB.
SHOWN: Final = dict(_PARTS.findall(section("docs/dumps.md", "Histories")))
Rows = list[dict[str, Any]]


def blocks(text: str) -> list[str]:
    """The fenced blocks of a text."""
    return re.findall(r"^```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@contextmanager
def behind_nginx(database: Path, *days: datetime, **settings: object) -> Iterator[Config]:
    """A site of the markets in a database, built on these days with other prices, with Parquet files."""
    with folder_for_anybody() as folder:
        (folder / "markets.db").write_bytes(database.read_bytes())
        port = free_port()
        chosen = {"dumps__parquet": True, "variant": "extended", "publish__target": "", **CHUNKED, **NO_LIMITS}
        chosen["publisher__name"] = "Site"
        config = make_config(folder, **chosen | settings | {"base_url": f"http://127.0.0.1:{port}"})
        for number, day in enumerate(days):
            if number:
                change_prices(config)
            build_now(config, day)
        with nginx(config.output, port):
            yield config


SITES: Final[dict[str, dict[str, object]]] = {
    "Parquet": {}, "trades": {"dumps__fills": True}, "NDJSON": {"dumps__parquet": False},
}  # fmt: skip


@pytest.fixture(scope="module", params=SITES)
def site(
    demo_folder: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Config]:
    """A site behind nginx, built on two days, with other prices, and five questions of four markets."""
    path = tmp_path_factory.mktemp("asked") / "markets.db"
    path.write_bytes((demo_folder / "markets.db").read_bytes())
    with closing(sqlite3.connect(path)) as database, database:
        create_questions(database)
        chosen = "SELECT id FROM markets WHERE status = 'open' AND approval = 'approved' AND is_listed LIMIT 20"
        for number, (market,) in enumerate(database.execute(chosen).fetchall()):
            if number % 4 == 0:
                insert_question(database, number)
            insert_member(database, number - number % 4, number, market_id=market)
    with behind_nginx(path, AS_OF - timedelta(days=1), AS_OF, **SITES[request.param]) as config:
        yield config


def details(settings: Config) -> list[dict[str, Any]]:
    """The details of the markets that lists show, by id."""
    found = [json.loads(path.read_bytes()) for path in sorted(settings.output.glob(f"{keys.DETAILS}/*/*.json"))]
    return [detail for detail in found if detail["market"]["fxFamilyMember"] is None]


def change_prices(settings: Config) -> None:
    with closing(sqlite3.connect(settings.output.parent / "markets.db")) as database, database:
        database.execute("UPDATE markets SET prob = prob * 0.9, trader_count = trader_count + 1")


def head_of(settings: Config) -> dict[str, Any]:
    """The head of the dump."""
    found: dict[str, Any] = json.loads((settings.output / keys.head(keys.DUMPS)).read_bytes())
    return found


def republish(settings: Config) -> None:
    """Build again with other prices and volumes, a day later, so that all files are others."""
    before = head_of(settings)
    change_prices(settings)
    build_now(settings, AS_OF + timedelta(days=1))
    after = head_of(settings)
    assert {file["url"] for file in after["markets"]}.isdisjoint(file["url"] for file in before["markets"])


def ran(*programs: tuple[str, str]) -> list[Rows]:
    """What programs find after others that attach the tables, as JSON values, far from UTC; a warning fails them.

    In a process of its own: they start threads.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.support.readers.dump_readers"], cwd=ROOT,
        input=json.dumps(programs), env={**os.environ, "TZ": "America/New_York"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    found: list[Rows] = json.loads(done.stdout)
    return found


def answers(task: str, config: Config) -> list[Rows]:
    """What the programs for a task find, as they are printed but for the address."""
    attached = [blocks(ATTACH[library])[0].replace(ADDRESS, config.base_url) for library in LIBRARIES]
    return ran(*zip(attached, blocks(TASKS[task]), strict=True))


def needs(config: Config, table: str) -> None:
    """Skip a task that this site cannot answer."""
    if table not in head_of(config):
        pytest.skip(f"the site has no {table}")


def test_no_program_is_longer_than_the_page_says() -> None:
    most, most_of_task = LINES
    assert len(TASKS) == 5
    assert [len(blocks(ATTACH[library])) for library in LIBRARIES] == [1] * 3
    programs = [(most, blocks(ATTACH[library])[0]) for library in LIBRARIES]
    programs += [(most_of_task, program) for text in TASKS.values() for program in blocks(text)]
    assert len(programs) == 3 + 3 * 5
    for longest, program in programs:
        assert len([line for line in program.splitlines() if line.strip()]) <= longest, program


def test_no_further_package_gives_times_to_python() -> None:
    assert find_spec("pytz") is None, "DuckDB would take it"


@pytest.mark.campaign(short=0)
def test_a_session_stays_in_the_state_that_it_attached(demo_folder: Path, tmp_path: Path) -> None:
    days = (AS_OF - timedelta(days=1), AS_OF)
    with behind_nginx(demo_folder / "markets.db", *days) as config:
        expected = sorted([one["id"], one["traderCount"]] for one in listed(config))
        before = {}
        for key in (keys.head(keys.DUMPS), keys.ATTACH):
            before[f"{ADDRESS}/{key}"] = (tmp_path / key.replace("/", "-")).as_uri()
            (tmp_path / key.replace("/", "-")).write_bytes((config.output / key).read_bytes())
        republish(config)
        attached = [blocks(ATTACH[library])[0] for library in LIBRARIES]
        for address, old in before.items():
            attached = [program.replace(address, old) for program in attached]
        tasks = (
            "SELECT id, traderCount FROM markets",
            "answer = dump['markets'].select('id', 'traderCount').collect()",
            "answer = dump['markets'][['id', 'traderCount']]",
        )
        for rows in ran(*zip(attached, tasks, strict=True)):
            assert sorted([*row.values()] for row in rows) == expected
        assert expected != sorted([one["id"], one["traderCount"]] for one in listed(config))


@pytest.mark.campaign(short=1)
def test_the_command_line_reads_the_state_that_it_began_with(site: Config) -> None:
    for program in ("curl", "jq", "zcat"):
        require(program, reason="the page's command line is not run")
    expected = [market["id"] for market in listed(site) if market["status"] == "open"]
    (shown,) = blocks(section("docs/dumps.md", "On the command line"))
    found = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shown.replace(ADDRESS, site.base_url)}"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert [line.split("\t")[0] for line in found.split("\n")[:-1]] == expected


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────

#: What an unfit type or a guess would change.
VALUES: Final[dict[str, Any]] = {
    "question": "007", "slug": "2026-01-31", "prob": 5e-324, "volume": 0.1 + 0.2, "poolYes": 1.7976931348623157e308,
    "traderCount": 2**53 + 1, "closeTime": "9999-12-31T23:59:59.999Z", "createdAt": "0001-01-01T00:00:00.000Z",
    "resolvedAt": None,
}  # fmt: skip
_KIND: Final = {str: "VARCHAR", float: "DOUBLE", int: "BIGINT"}


@pytest.mark.parametrize("parquet", [True, False])
def test_values_and_zones_are_the_same_everywhere(tmp_path: Path, *, parquet: bool) -> None:
    with closing(create_database(tmp_path / "markets.db")) as database:
        insert_market(
            database, 1, question="007", slug="2026-01-31", prob=5e-324, volume=0.1 + 0.2,
            pool_yes=1.7976931348623157e308, trader_count=2**53 + 1, close_time="9999-12-31T23:59:59.999Z",
            created_at="0001-01-01T00:00:00Z",
        )  # fmt: skip
        insert_market(database, 2, question="7", prob=1, volume=3, slug="a")
    names = [*VALUES]
    quoted = ", ".join(
        f"strftime({name}, '%Y-%m-%dT%H:%M:%S.%g') || substr({name}::TEXT, -3) AS {name}" if is_time(name) else name
        for name in names
    )
    tasks = (
        f"SELECT {quoted} FROM markets WHERE id = '{market_id(1)}'",
        f"answer = dump['markets'].filter(id='{market_id(1)}').select({names}).collect()",
        f"answer = dump['markets'].query('id == \"{market_id(1)}\"')[{names}]",
    )
    kinds = (
        f"SELECT {', '.join(f'typeof({name}) AS {name}' for name in names)} FROM markets LIMIT 1",
        f"answer = pl.DataFrame([{{n: repr(t) for n, t in dump['markets'].collect_schema().items() if n in {names}}}])",
        f"answer = pd.DataFrame([{{n: str(t) for n, t in dump['markets'].dtypes.items() if n in {names}}}])",
    )
    with behind_nginx(tmp_path / "markets.db", AS_OF, dumps__parquet=parquet) as config:
        attached = [blocks(ATTACH[library])[0].replace(ADDRESS, config.base_url) for library in LIBRARIES]
        found = ran(*zip(attached * 2, tasks + kinds, strict=True))
    for (row,) in found[:3]:
        assert {name: in_words(name, value) for name, value in row.items()} == VALUES
    for (row,), zoned in zip(found[3:], ("WITH TIME ZONE", "time_zone='UTC'", "UTC]"), strict=True):
        assert [name for name in names if zoned in row[name]] == ["closeTime", "createdAt", "resolvedAt"]


def is_time(name: str) -> bool:
    """Whether it is the name of a column of times."""
    return name.endswith(("At", "Time"))


def in_words(name: str, value: Any) -> Any:
    """A value as the API has it; a time says its zone as `+00` or `+00:00`."""
    if not is_time(name) or value in (None, "NaT"):
        return None if value == "NaT" else value
    time, sign, zone = value.partition("+")
    assert (sign, zone.rstrip(":0")) == ("+", ""), value
    return f"{time[:23]}{'' if '.' in time else '.000'}Z"


# ── five tasks ────────────────────────────────────────────────────────────────────────────────────────────────────


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


@pytest.mark.campaign(short=1)
def test_open_markets_are_those_of_the_site(site: Config) -> None:
    expected = [
        {name: market[name] for name in ("id", "question", "prob", "volume")}
        for market in listed(site)
        if market["status"] == "open"
    ]
    assert len(expected) > 50
    assert answers("Which markets are open?", site) == [expected] * 3


@pytest.mark.campaign(short=1)
def test_the_prices_of_a_category_are_the_means_of_those_that_stood_at_the_end_of_each_day(site: Config) -> None:
    needs(site, "candlesDay")
    traded, all_points = trading_days(site), points(site)
    closes = dict[str, list[float]]()
    for market in (one["id"] for one in listed(site) if "politics" in one["categories"]):
        known = all_points.get(market, [])
        for day in {time[:10] for time, _ in known} | traded.get(market, set()):
            price = last_before(known, f"{day}T23:59:59.999")
            if price is not None and day < AS_OF.date().isoformat():
                closes.setdefault(day, []).append(price)
    assert len(closes) > 50
    for rows in answers("How did the prices of a category move?", site):
        # On the days before any price is known, a market may have been traded.
        found = {day: price for day, price in (row.values() for row in rows) if price is not None and not isnan(price)}
        assert found == {day: pytest.approx(fmean(prices)) for day, prices in closes.items()}


def trading_days(config: Config) -> dict[str, set[str]]:
    """The days on which each market was traded, where trades are published: these have candles, too."""
    if "fills" not in head_of(config):
        return {}
    found = dict[str, set[str]]()
    with closing(sqlite3.connect(config.output.parent / "markets.db")) as database:
        for market, time in database.execute("SELECT lower(market_id), created_at FROM fills"):
            found.setdefault(market, set()).add(moment(time)[:10])
    return found


@pytest.mark.campaign(short=1)
def test_calibration_counts_each_market_by_its_price_a_week_before_its_close(site: Config) -> None:
    needs(site, "closes")
    closes = {market["id"]: min(market["resolvedAt"] or "~", market["closeTime"]) for market in listed(site)}
    expected = calibration(site, closes)
    assert sum(count for count, _ in expected.values()) == 20
    for rows in answers("Were prices right a week before the close?", site):
        found = {bucket: counted for bucket, *counted in ([*row.values()] for row in rows)}
        assert found == {bucket: pytest.approx(row) for bucket, row in expected.items()}


def calibration(site: Config, ends: dict[str, str]) -> dict[float, list[float]]:
    """The number of markets in each bucket by the price a week before these ends, by id, and the share of YES."""
    all_points, buckets = points(site), dict[float, list[bool]]()
    for market in listed(site):
        prob = last_before(all_points.get(market["id"], []), ends[market["id"]], days=7)
        if market["resolution"] in {"YES", "NO"} and prob is not None:
            buckets.setdefault(min(prob * 10 // 1, 9) / 10, []).append(market["resolution"] == "YES")
    return {bucket: [len(found), sum(found) / len(found)] for bucket, found in buckets.items()}


@pytest.mark.campaign(short=1)
def test_movers_are_the_open_markets_that_moved_most_in_24_hours(site: Config) -> None:
    needs(site, "history")
    all_points, moves, as_of = points(site), dict[str, float](), head_of(site)["asOf"]
    for market in listed(site):
        before = last_before(all_points.get(market["id"], []), as_of, days=1)
        if market["status"] == "open" and before is not None:
            moves[market["id"]] = abs(market["prob"] - before)
    most = sorted(moves.values(), reverse=True)[:10]
    assert most[-1] > 0
    for rows in answers("What moved most in 24 hours?", site):
        assert [abs(row["prob"] - row["old"]) for row in rows] == pytest.approx(most)
        assert [moves[row["id"]] for row in rows] == pytest.approx(most)


def test_the_leader_of_a_question_is_its_likeliest_open_market(site: Config) -> None:
    expected = []
    for path in sorted(site.output.glob(f"{keys.QUESTION_DETAILS}/*/*.json")):
        found = json.loads(path.read_bytes())
        likely = [
            (one["market"]["prob"], one["label"]) for one in found["markets"] if one["market"]["status"] == "open"
        ]
        if likely:
            prob, label = max(likely)
            expected.append([found["question"]["title"], label, prob])
    assert len(expected) == 5
    for rows in answers("Which market leads each question?", site):
        assert [[*row.values()][-3:] for row in rows] == expected


# ── what is shown of histories ────────────────────────────────────────────────────────────────────────────────────


def shown(site: Config, heading: str, **replaced: str) -> Rows:
    """What the query below a heading finds in DuckDB; the site has other markets and days than the page."""
    (query,) = blocks(SHOWN[heading]) if heading else blocks(section("docs/dumps.md", "Histories"))[:1]
    for name, value in replaced.items():
        assert name in query
        query = query.replace(name, value)
    (rows,) = ran((blocks(ATTACH["DuckDB"])[0].replace(ADDRESS, site.base_url), query))
    return rows


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("days_ago", [1, 40, 400])
def test_the_prices_on_any_day_are_those_of_the_last_points_until_its_end(site: Config, days_ago: int) -> None:
    needs(site, "candlesDay")
    day = (AS_OF - timedelta(days=days_ago)).replace(hour=0, minute=0, second=0, microsecond=0)
    all_points, end = points(site), day + timedelta(days=1) - timedelta(milliseconds=1)
    prices = {
        market["id"]: price
        for market in listed(site)
        if (price := last_before(all_points.get(market["id"], []), end.isoformat())) is not None
    }
    rows = shown(site, "Prices on any day", **{DAY: day.date().isoformat()})
    assert [row["id"] for row in rows] == sorted(prices)
    assert {row["id"]: row["prob"] for row in rows} == pytest.approx(prices)
    assert len(prices) > 5


@pytest.mark.campaign(short=1)
def test_a_week_of_a_market_is_all_its_points(site: Config) -> None:
    needs(site, "history")
    counted = Counter({market["id"]: len(points(site).get(market["id"], [])) for market in listed(site)})
    ((market, _),) = counted.most_common(1)
    rows = points(site)[market]
    begin, end = rows[0][0][:10], (datetime.fromisoformat(rows[0][0]) + timedelta(days=7)).date().isoformat()
    expected = [[f"{time[:10]} {time[11:16]}", prob] for time, prob in rows if begin <= time < end]
    ids = {"5f0c9c0e-6a55-4c5e-9f0a-0d9f4c1f2b7a": market, "2026-10-05": begin, "2026-10-12": end}
    assert sorted([*row.values()] for row in shown(site, "", **ids)) == sorted(expected)
    assert expected
