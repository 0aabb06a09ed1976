"""Histories: the files hold every public point, candle, close and fill, through whatever happens to rows."""

import random
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api.downloads import CANDLES, RAW, TABLES, PeriodFile
from generator.builder import collector
from generator.config.settings import Config
from generator.downloads.pipes import WrittenTable
from generator.errors import GuardError
from generator.models import replaced
from generator.site import parquet_files
from tests.site.test_parquet_files import LOSSES, lose
from tests.support.readers import parquet
from tests.support.readers.candles import DAY, HOUR, History, hours_since
from tests.support.sites.builds import build_now, dump_head, make_config
from tests.support.sites.rows import (
    fill_id,
    insert_fill,
    insert_fx_member,
    insert_market,
    insert_point,
    market_id,
    tell_row_versions,
)

Row = tuple[Any, ...]
#: Something that happens to the rows of a site, with unused numbers of fills.
Change = Callable[[sqlite3.Connection, Iterator[int]], None]

FIRST: Final = datetime(2025, 11, 20, 6, tzinfo=UTC)
MINUTE: Final = timedelta(minutes=1)
VERSIONED: Final = ("fills", "probabilities", "orders")
pytestmark = pytest.mark.usefixtures("one_processor")


@pytest.fixture
def settings(tmp_path: Path, database: sqlite3.Connection) -> Config:
    return make_config(tmp_path, dumps__parquet=True, dumps__fills=True, layout="chunks")


def with_fills(settings: Config, *, fills: bool) -> Config:
    return replaced(settings, dumps=replaced(settings.dumps, fills=fills))


def audited(settings: Config, share: float) -> Config:
    return replaced(settings, source=replaced(settings.source, audit=share))


def tell_versions(database: sqlite3.Connection) -> None:
    """Give markets a `detail_version` that counts changes of their rows."""
    database.execute("ALTER TABLE markets ADD COLUMN detail_version INTEGER DEFAULT 1")
    renewed = "UPDATE markets SET detail_version = detail_version + 1 WHERE id = {}.market_id"
    for relation in VERSIONED:
        for act, row in (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old")):
            database.execute(
                f"CREATE TRIGGER {relation}_{act} AFTER {act} ON {relation} BEGIN {renewed.format(row)}; END"
            )


def periods(settings: Config, table: str) -> list[str]:
    return [file.period for file in dump_head(settings.output).table(table)]


def stored(settings: Config, table: str) -> dict[str, list[Row]]:
    """The rows of each file of a table, by name."""
    found = {}
    for file in dump_head(settings.output).table(table):
        body = (settings.output / file.key).read_bytes()
        assert (sha256(body).hexdigest(), len(body)) == (file.sha256, file.size)
        found[file.name] = [tuple(row.values()) for row in parquet.rows(body)]
        assert found[file.name]
        assert all(time_of(row, table).startswith(file.period) for row in found[file.name])
        assert found[file.name] == sorted(found[file.name], key=partial(place, table=table))
    return found


def time_of(row: Row, table: str) -> str:
    return str(row[-1 if table == "fills" else 1])


def place(row: Row, table: str) -> Row:
    """Where a row belongs in its file."""
    time = time_of(row, table)
    return time[: len("2026-10")], row[0], time, *(row[1:3] if table in RAW else ())


def expected(
    database: sqlite3.Connection, table: str, as_of: datetime, blocked: tuple[str, ...] = (), *, fills: bool = True
) -> list[Row]:
    """The same rows by a plain computation."""
    rows = {name: raw(database, name, blocked) if fills or name != "fills" else [] for name in RAW}
    if table in rows:
        return rows[table]
    found = list[Row]()
    for market, *closing in database.execute("SELECT id, close_time, resolved_at FROM markets").fetchall():
        history = History(
            sorted(row[1:] for row in rows["history"] if row[0] == market),
            sorted((row[-1], *row[1:3]) for row in rows["fills"] if row[0] == market),
        )
        (closed_at,) = typed((min(filter(None, closing)),))
        made = {
            "candles/day": history.candles(DAY, as_of),
            "candles/hour": (row for row in history.candles(HOUR, as_of) if row[0] >= hours_since(as_of)),
            "closes": history.closes(closed_at, as_of),
        }
        found += [(market, *row) for row in made[table]]
    if table in CANDLES and not fills:
        found = [row[:-2] for row in found]
    return sorted(found, key=lambda row: row[:2])


def raw(database: sqlite3.Connection, table: str, blocked: tuple[str, ...]) -> list[Row]:
    columns = "p.recorded_at, p.prob" if table == "history" else "p.id, p.amount, p.shares, p.price, p.created_at"
    relation = "probabilities" if table == "history" else "fills"
    rows = database.execute(
        f"SELECT m.id, {columns} FROM {relation} p JOIN markets m ON m.id = p.market_id "
        "WHERE m.approval = 'approved' AND m.is_listed AND m.id NOT IN (SELECT market_id FROM fx_members)"
    ).fetchall()
    return sorted(typed(row) for row in rows if row[0] not in blocked)


def typed(row: Row) -> Row:
    return tuple(
        datetime.fromisoformat(value).replace(tzinfo=UTC) if isinstance(value, str) and value[4:5] == "-" else value
        for value in row
    )


def check(
    settings: Config, database: sqlite3.Connection, as_of: datetime | None = None, blocked: tuple[str, ...] = ()
) -> None:
    """Compare all tables; `as_of` that instant, or that of which the files are.

    They stay as of an earlier one if nothing was added, so only an instant shows that something should have been.
    """
    since = as_of or datetime.fromisoformat(dump_head(settings.output).history_as_of or "")
    for table in TABLES:
        found = sorted((row for rows in stored(settings, table).values() for row in rows), key=order_in(table))
        assert found == expected(database, table, since, blocked, fills=settings.dumps.fills), table
    assert dump_head(settings.output).has_fills == settings.dumps.fills


def order_in(table: str) -> Callable[[Row], Any]:
    return lambda row: row if table in RAW else row[:2]


def traded(database: sqlite3.Connection, number: int, at: datetime, fill: int) -> None:
    insert_point(database, text_of(at), round(fill % 97 / 97, 3), market_id=market_id(number))
    insert_fill(database, fill, market_id=market_id(number), created_at=text_of(at))


def text_of(time: datetime) -> str:
    """A time as the database has it."""
    return time.replace(tzinfo=None).isoformat(" ", "microseconds")


def site(database: sqlite3.Connection, markets: int = 5) -> Iterator[int]:
    """Markets with a trade in each of the last months, of which the last has closed; yields unused numbers of fills."""
    numbers = iter(range(1, 10**6))
    for number in range(1, markets + 1):
        closing = {"close_time": f"{FIRST - timedelta(days=10):%Y-%m-%d %H:%M:%S.%f}"} if number == markets else {}
        insert_market(database, number, **closing)
        for days in (400, 90, 20, 1):
            traded(database, number, FIRST - timedelta(days=days, minutes=number), next(numbers))
    return numbers


@pytest.mark.parametrize("has_versions", [True, False])
def test_the_files_hold_every_row_of_the_database_and_new_rows_follow_once_a_day(
    settings: Config, database: sqlite3.Connection, *, has_versions: bool
) -> None:
    if has_versions:
        tell_versions(database)
    fills = site(database)
    build_now(settings, FIRST)
    check(settings, database)
    assert periods(settings, "history") == ["2024", "2025-08", "2025-10", "2025-11"]
    before = dump_head(settings.output)
    traded(database, 2, FIRST, next(fills))
    build_now(settings, FIRST + timedelta(hours=3))
    assert dump_head(settings.output).history == before.history
    build_now(settings, FIRST + DAY)
    check(settings, database)
    assert periods(settings, "history") == ["2024", "2025-08", "2025-10", "2025-11", "2025-11"]
    assert [*map(len, stored(settings, "history").values())][-2:] == [5, 1]
    assert {*map(str, before.table("history"))} < {*map(str, dump_head(settings.output).table("history"))}


def test_a_month_is_put_together_at_its_end_and_a_year_when_it_is_over(
    settings: Config, database: sqlite3.Connection
) -> None:
    tell_versions(database)
    fills = site(database)
    for day in range(4):
        traded(database, 1 + day, FIRST + day * DAY - timedelta(hours=1), next(fills))
        build_now(settings, FIRST + day * DAY)
    assert periods(settings, "fills")[-4:] == ["2025-11"] * 4
    traded(database, 1, FIRST + timedelta(days=12), next(fills))
    build_now(settings, FIRST + timedelta(days=12))
    check(settings, database)
    assert periods(settings, "fills")[-2:] == ["2025-11", "2025-12"]
    build_now(settings, FIRST + timedelta(days=60))
    check(settings, database)
    assert periods(settings, "fills") == ["2024", "2025"]


def test_a_month_is_put_together_even_if_nothing_is_read(settings: Config, database: sqlite3.Connection) -> None:
    tell_versions(database)
    tell_row_versions(database)
    settings = audited(settings, 0.0)
    fills = site(database)
    build_now(settings, FIRST)
    traded(database, 1, FIRST + timedelta(hours=1), next(fills))
    build_now(settings, FIRST + DAY)
    build_now(settings, FIRST + 3 * DAY)  # fills leave the last 24 hours
    report = build_now(settings, FIRST + 30 * DAY)
    assert report.details.read == 0
    assert periods(settings, "fills") == ["2024", "2025-08", "2025-10", "2025-11"]
    check(settings, database)


def test_many_parts_of_a_month_are_put_together(settings: Config, database: sqlite3.Connection) -> None:
    tell_versions(database)
    fills, parts = site(database), []
    start = FIRST.replace(month=12, day=1)
    for day in range(12):
        traded(database, 1 + day % 5, start + day * DAY, next(fills))
        build_now(settings, start + day * DAY)
        parts.append(periods(settings, "fills").count("2025-12"))
    check(settings, database)
    assert parts == [*range(1, parquet_files.MOST_PARTS + 1), 1, 2, 3, 4]


# ── what may happen to rows ───────────────────────────────────────────────────────────────────────────────────────


def said(*statements: str) -> Change:
    def change(database: sqlite3.Connection, _: Iterator[int]) -> None:
        for statement in statements:
            database.execute(statement)

    return change


def trades(*trades: tuple[int, timedelta]) -> Change:
    """Trades in markets at times that are so much later than the first build."""

    def change(database: sqlite3.Connection, fills: Iterator[int]) -> None:
        for number, later in trades:
            traded(database, number, FIRST + later, next(fills))

    return change


def closes(times: Mapping[int, datetime]) -> Change:
    """Other closing times; nothing else happens to the markets."""
    update = "UPDATE markets SET close_time = '{}' WHERE id = '{}'"
    return said(*(update.format(text_of(time), market_id(number)) for number, time in times.items()))


def hidden(database: sqlite3.Connection, _: Iterator[int]) -> None:
    database.execute("UPDATE markets SET approval = 'pending' WHERE id = ?", [market_id(2)])
    insert_fx_member(database, market_id=market_id(4))


def recreated(database: sqlite3.Connection, fills: Iterator[int]) -> None:
    for relation, column in (("fills", "market_id"), ("probabilities", "market_id"), ("markets", "id")):
        database.execute(f"DELETE FROM {relation} WHERE {column} = ?", [market_id(1)])
    number = next(fills)
    insert_market(database, 1, question="Another one?")
    if any(row[1] == "detail_version" for row in database.execute("PRAGMA table_info(markets)")):
        database.execute("UPDATE markets SET detail_version = ? WHERE id = ?", [1000 * number, market_id(1)])
    traded(database, 1, FIRST - timedelta(days=100), next(fills))


def new(days: int) -> Change:
    """A market with a trade so many days before the first build, after all other rows of its month."""

    def change(database: sqlite3.Connection, fills: Iterator[int]) -> None:
        number = next(fills) + 100
        insert_market(database, number)
        traded(database, number, FIRST - timedelta(days=days), next(fills))

    return change


RESOLVED: Final = f"status = 'resolved', resolution = 'YES', resolved_at = '{text_of(FIRST - timedelta(days=3))}'"
CHANGES: Final[Mapping[str, Change]] = {
    "edited": said("UPDATE fills SET amount = 77.5 WHERE rowid IN (SELECT min(rowid) FROM fills)"),
    "deleted": said(
        f"DELETE FROM probabilities WHERE market_id = '{market_id(2)}' AND recorded_at < '2025-09'",
        f"DELETE FROM fills WHERE market_id = '{market_id(3)}'",
    ),
    "late": trades((2, -200 * DAY), (4, -15 * DAY)),
    "in a month that is over": new(25),
    "hidden": hidden,
    "public again": said(
        f"UPDATE markets SET approval = 'approved' WHERE id = '{market_id(2)}'", "DELETE FROM fx_members"
    ),
    "recreated": recreated,
    "ahead": trades((5, 500 * DAY)),
    "new": new(3),
    "closing": closes({1: FIRST + timedelta(hours=5), 2: FIRST + 30 * DAY}),
    "rescheduled": closes({5: FIRST - 30 * DAY, 3: FIRST - 2 * DAY}),
    "resolved": said(f"UPDATE markets SET {RESOLVED} WHERE id = '{market_id(4)}'"),
    # After all others, in an hour that was over at the last build, in its own, and in the next.
    "hours ago": trades((1, -MINUTE), (2, MINUTE), (2, 61 * MINUTE), (3, 0 * MINUTE)),
}


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("seed", range(8))
def test_files_of_random_sites_are_those_of_the_database(
    settings: Config, database: sqlite3.Connection, seed: int
) -> None:
    settings = with_fills(settings, fills=seed % 4 < 2)
    chance = random.Random(seed)  # noqa: S311 - chance, not security
    if seed % 2:
        tell_versions(database)
    fills, at = site(database), FIRST
    for _ in range(8):
        build_now(settings, at, shrink=True, fills=True)
        check(settings, database, at)
        for change in chance.sample([*CHANGES.values()], 3):
            change(database, fills)
        for _ in range(3):
            traded(database, chance.randint(1, 5), at - timedelta(hours=chance.randint(0, 48)), next(fills))
        if chance.random() < 0.5:
            build_now(settings, at + timedelta(hours=2), shrink=True, fills=True)
        at += chance.choice([DAY, 20 * DAY, 300 * DAY, -40 * DAY])


@pytest.mark.parametrize("lost", LOSSES)
def test_what_was_lost_is_made_again(settings: Config, database: sqlite3.Connection, lost: str) -> None:
    tell_versions(database)
    fills = site(database)
    build_now(settings, FIRST)
    path = settings.output / dump_head(settings.output).table("history")[1].key
    lose(settings.output, path, lost)
    if lost == "damaged":  # it is found by who reads it
        traded(database, 2, FIRST - timedelta(days=89), next(fills))
        build_now(settings, FIRST + DAY)
    build_now(settings, FIRST + DAY + timedelta(hours=1))
    check(settings, database)


def test_rows_that_a_false_version_hid_come_in_when_it_is_found_out(
    settings: Config, database: sqlite3.Connection
) -> None:
    fills = site(database)
    database.execute("ALTER TABLE markets ADD COLUMN detail_version INTEGER DEFAULT 1")
    build_now(audited(settings, 0.0), FIRST)
    traded(database, 2, FIRST + timedelta(minutes=1), next(fills))
    build_now(audited(settings, 1.0), FIRST + DAY / 4)
    check(settings, database)


@pytest.mark.campaign(short=0)
def test_a_market_with_very_many_rows_has_all_of_them(settings: Config, database: sqlite3.Connection) -> None:
    fills = site(database)
    many_rows = collector.GROUP + 1_000
    rows = [(market_id(2), text_of(FIRST - timedelta(minutes=minute * 7 % (many_rows + 1))), minute % 97 / 97)
            for minute in range(many_rows)]  # fmt: skip
    database.execute("BEGIN")
    database.executemany("INSERT INTO probabilities (market_id, recorded_at, prob) VALUES (?, ?, ?)", rows)
    for _ in range(5):
        traded(database, 2, FIRST, next(fills))
    many = [(fill_id(next(fills)), market_id(2), 1.0, 1.0, 0.5, time) for _, time, _ in rows[:9_000]]
    # An earlier trade with the id of another does not count.
    doubled = (many[0][0], market_id(2), 9.0, 9.0, 0.9, "2020-01-01 00:00:00.000000")
    columns = "(id, market_id, amount, shares, price, created_at) VALUES (?, ?, ?, ?, ?, ?)"
    database.execute("ALTER TABLE fills RENAME TO others")
    database.execute("CREATE TABLE fills AS SELECT * FROM others")
    database.executemany(f"INSERT INTO fills {columns}", [doubled, *many])
    database.execute("COMMIT")
    build_now(settings, FIRST)
    database.execute("DELETE FROM fills WHERE amount = 9")
    check(settings, database)
    traded(database, 2, FIRST + timedelta(hours=1), next(fills))
    build_now(settings, FIRST + DAY)
    check(settings, database)
    assert [*map(len, stored(settings, "history").values())][-1] == 1


def test_ids_that_the_database_sorts_otherwise_are_in_order(settings: Config, database: sqlite3.Connection) -> None:
    names = [f"{letter}{number:07}-0000-4000-8000-000000000000" for number in range(30) for letter in "1aAbBfF"]
    ids = [name if name[0] not in "ABF" else name.replace("0000-4000", "ABCD-4000") for name in names]
    for number, name in enumerate(ids):
        insert_market(database, number, id=name)
        for days in (3, 2, 1):
            at = f"{FIRST - timedelta(days=days):%Y-%m-%d %H:%M:%S.%f}"
            insert_point(database, at, 0.5, market_id=name)
            insert_fill(database, 10 * number + days, market_id=name, created_at=at)
    build_now(settings, FIRST)
    for table in TABLES:
        found = [row for rows in stored(settings, table).values() for row in rows]
        wanted = [(row[0].lower(), *row[1:]) for row in expected(database, table, FIRST)]
        assert sorted(found, key=order_in(table)) == sorted(wanted, key=order_in(table))
        assert len(found) == (0 if table == "closes" else 3 * len(ids))


def test_trades_come_and_go_with_the_setting(settings: Config, database: sqlite3.Connection) -> None:
    """On whatever day; and without it, nothing of them is in any file that a head names."""
    fills = site(database)
    # A period with a trade and no point has no candle then.
    at = FIRST - timedelta(days=50, minutes=7)
    insert_fill(database, next(fills), market_id=market_id(2), amount=4711.25, shares=815.5, created_at=text_of(at))
    for hours, has_fills in enumerate([False, True, False]):
        now = with_fills(settings, fills=has_fills)
        build_now(now, FIRST + timedelta(hours=hours))
        check(now, database, FIRST + timedelta(hours=hours))
        values = {value for table in TABLES for rows in stored(now, table).values() for row in rows for value in row}
        assert ({4711.25, 815.5} <= values) is has_fills
        assert {4711.25, 815.5}.isdisjoint(values) is not has_fills
        days = [row[1] for rows in stored(now, CANDLES[0]).values() for row in rows if row[0] == market_id(2)]
        assert (at.replace(hour=0, minute=0) in days) is has_fills


def test_a_build_that_would_lose_most_of_the_past_is_refused(settings: Config, database: sqlite3.Connection) -> None:
    """Details show too few rows to tell."""
    tell_versions(database)
    settings = replaced(settings, detail=replaced(settings.detail, history_points=2, recent_fills=1))
    site(database)
    build_now(settings, FIRST)
    database.execute("DELETE FROM probabilities WHERE recorded_at BETWEEN '2025-01' AND '2025-11-18'")
    database.execute("DELETE FROM fills WHERE created_at < '2025-11-18'")
    build_now(settings, FIRST + timedelta(hours=1))
    with pytest.raises(GuardError, match="15 of 20 fills of histories would disappear"):
        build_now(settings, FIRST + DAY)
    build_now(settings, FIRST + DAY, shrink=True)
    check(settings, database)


def test_files_are_not_put_together_beyond_a_size() -> None:
    sizes = (10_000_000, parquet_files.MOST_BYTES - 30_000_000, 20_000_001, 20_000_000)
    places = [("a", f"candles/day/period=2025-0{number}", size) for number, size in enumerate(sizes, 1)]
    files = [PeriodFile.of(WrittenTable(sha256=64 * digit, size=size, rows=1), "https://a.org", folder)
             for digit, folder, size in places]  # fmt: skip
    assert [file.period for file in parquet_files.smallest(files)] == ["2025-01", "2025-04", "2025-03"]
    files[2] = files[2].model_copy(update={"size": 20_000_000})
    assert [file.period for file in parquet_files.smallest(files[:2] + files[3:])] == ["2025-01", "2025-04", "2025-02"]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("name", ["rescheduled", "resolved"])
def test_a_close_that_moved_since_the_last_files_moves_even_if_its_row_need_not_be_read(
    settings: Config, database: sqlite3.Connection, name: str
) -> None:
    tell_versions(database)
    tell_row_versions(database)
    settings = audited(settings, 0.0)
    fills = site(database)
    build_now(settings, FIRST)
    CHANGES[name](database, fills)
    build_now(settings, FIRST + timedelta(hours=1))
    build_now(settings, FIRST + DAY)
    check(settings, database, FIRST + DAY)


def test_candles_of_a_market_that_is_not_read_again_come_in_when_their_periods_are_over(
    settings: Config, database: sqlite3.Connection
) -> None:
    tell_versions(database)
    settings = audited(settings, 0.0)
    fills = site(database)
    traded(database, 2, FIRST + timedelta(minutes=1), next(fills))
    build_now(settings, FIRST + timedelta(minutes=2))
    check(settings, database)
    report = build_now(settings, FIRST + DAY)
    assert report.details.read == 0
    check(settings, database, FIRST + DAY)


def test_a_volume_beyond_the_greatest_number_is_that_number(settings: Config, database: sqlite3.Connection) -> None:
    fills = site(database)
    for _ in range(3):
        insert_fill(database, next(fills), market_id=market_id(2), amount=1e308, created_at=f"{FIRST - 3 * DAY:%F %T}")
    build_now(settings, FIRST)
    check(settings, database)
    volumes = [row[6] for rows in stored(settings, "candles/day").values() for row in rows]
    assert max(volumes) == sys.float_info.max


def test_rows_and_closes_at_the_bounds_of_time_and_of_periods_have_their_places(
    settings: Config, database: sqlite3.Connection
) -> None:
    fills = site(database)
    day, least = FIRST.replace(hour=0), timedelta(milliseconds=1)
    ends = [datetime.min.replace(tzinfo=UTC), datetime.max.replace(microsecond=999_000, tzinfo=UTC)]
    for number, time in enumerate([*ends, datetime(1000, 1, 1, tzinfo=UTC) - least, day, FIRST - least, FIRST]):
        traded(database, 1 + number % 3, time, next(fills))
    closes(dict(enumerate((*ends, FIRST, FIRST + DAY), 1)))(database, fills)
    for days in (0, 1, 2):
        build_now(settings, FIRST + days * DAY)
        check(settings, database, FIRST + days * DAY)
    assert len({row[0] for rows in stored(settings, "closes").values() for row in rows}) == 4
