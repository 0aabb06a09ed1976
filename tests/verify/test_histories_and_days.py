"""`verify` compares histories with details; and what is withdrawn."""

import io
import re
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from generator.api.columns import OWNER
from generator.downloads import records
from generator.downloads.records import Records
from generator.verify import period_files
from generator.verify.mismatches import Verdict
from tests.bench import databases
from tests.support.sites.builds import AS_OF, NO_LIMITS, build_now, make_config
from tests.verify.altering import Proxy, Upstream, asked_once, in_process, proxied
from tests.verify.rows import instant
from tests.verify.test_verify import dump_head, edit, in_parquet, mismatches, put_in_place

SETTINGS: Final[dict[str, Any]] = {"layout": "chunks", "dumps__parquet": True, "dumps__fills": True}


@pytest.fixture(scope="module")
def folder(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with histories of the day before, and of today."""
    folder = tmp_path_factory.mktemp("full")
    databases.copy_first(demo_folder / "markets.db", 60, folder / "markets.db")
    build_now(make_config(folder, **SETTINGS), AS_OF - timedelta(days=1))
    edit(folder, "UPDATE probabilities SET prob = 0.5 WHERE rowid = 1")
    build_now(make_config(folder, **SETTINGS))
    return folder


@pytest.fixture(scope="module")
def upstream(folder: Path) -> Upstream:
    """The site; nothing is wrong with its files."""
    site = asked_once(in_process(make_config(folder, **SETTINGS, **NO_LIMITS)))
    with proxied(site) as proxy:
        assert in_parquet(proxy.url) == []
    return site


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[Proxy]:
    with proxied(upstream) as found:
        yield found


def time_of(rows: Records) -> str:
    """The column with the time of a row."""
    return next(name for name in records.TIMES.values() if name in (rows.dtype.names or ()))


def without_newest(rows: Records) -> Records:
    times = rows[time_of(rows)]
    return np.delete(rows, int(np.argmax(times)))


def other_value(rows: Records) -> Records:
    (name,) = {"prob", "shares", "low"}.intersection(rows.dtype.names or ())
    rows[name][-1:] = 0.123
    return rows


def twice(rows: Records) -> Records:
    return np.concatenate([rows[:1], rows])


def withdrawn(rows: Records) -> Records:
    first = rows[:1].copy()
    first[records.OWNER] = b"00000000-0000-4000-8000-000000000000"
    return np.concatenate([first, rows])


def other_month(rows: Records) -> Records:
    rows[time_of(rows)][:1] = records.milliseconds(["2019-01-01T00:00:00.000Z"])
    return rows


FLAWS: Final[dict[str, tuple[str, Callable[[Records], Records], str, Verdict]]] = {
    "a point is missing": ("history", without_newest, "in history differ", Verdict.WRONG),
    "a trade is missing": ("fills", without_newest, "in fills differ", Verdict.WRONG),
    "points differ": ("history", other_value, "is missing or differs", Verdict.WRONG),
    "trades differ": ("fills", other_value, "is missing or differs", Verdict.WRONG),
    "a trade is there twice": ("fills", twice, "a trade is there twice", Verdict.WRONG),
    "a market is withdrawn": ("history", withdrawn, "which the dump does not have", Verdict.WITHDRAWN),
    "another month": ("fills", other_month, "which is not in 20", Verdict.WRONG),
    "a candle is missing": ("candles/day", without_newest, "not what its points and trades make", Verdict.WRONG),
    "an hour differs": ("candles/hour", other_value, "not what its points and trades make", Verdict.WRONG),
    "a candle is there twice": ("candles/hour", twice, "one is there twice", Verdict.WRONG),
    "a close differs": ("closes", other_value, "not what its points and trades make", Verdict.WRONG),
}


@pytest.mark.campaign(short=0)
def test_a_whole_site_passes_and_so_does_one_that_has_traded_since(folder: Path, proxy: Proxy) -> None:
    assert mismatches(proxy.url, None) == []
    assert sum("/dumps/history/period=" in target for target in proxy.asked) >= 4
    assert len({target for target in proxy.asked if re.search(r"markets/[0-9a-f-]{36}$", target)}) > 40
    assert dump_head(folder).history_as_of == instant(AS_OF)


def spoil(folder: Path, proxy: Proxy, flaw: str) -> Callable[[], bool]:
    """Put a file with the flaw in place; returns whether that is what is found in files."""
    table, change, text, verdict = FLAWS[flaw]
    file, body = dump_head(folder).table(table)[-1], io.BytesIO()
    rows = np.concatenate([*records.read(io.BytesIO((folder / "output" / file.key).read_bytes()), table)])
    records.written(body.write, [change(rows)], table, fills=dump_head(folder).has_fills)
    put_in_place(proxy, file, body.getvalue())
    return lambda: any(text in one.text and one.verdict == verdict for one in in_parquet(proxy.url))


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("flaw", FLAWS)
def test_rows_that_are_not_those_of_details_or_of_other_tables_are_named(folder: Path, proxy: Proxy, flaw: str) -> None:
    assert spoil(folder, proxy, flaw)()


def test_without_numpy_files_are_compared_by_their_digests_and_markets(
    folder: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = proxy.alter
    is_found, wrong = spoil(folder, proxy, "a market is withdrawn"), proxy.alter
    monkeypatch.setitem(sys.modules, "numpy", None)
    proxy.alter = right
    assert in_parquet(proxy.url) == []
    proxy.alter = wrong
    assert is_found()


def held(numbers: list[int]) -> period_files.ComparedRows:
    """What is collected of these markets, in this order, by a row of each."""
    found = period_files.ComparedRows(map(str, range(3)), most=5)
    for number in numbers:
        found.add({OWNER: str(number), "timestamp": "2026-01-01T00:00:00Z"})
    return found


def test_the_last_markets_are_not_compared_if_there_are_too_many_rows_nor_one_that_has_most_of_them() -> None:
    assert {key: len(rows) for key, rows in held([0, 1, 1, 1, 2, 9]).rows.items()} == {"0": 1, "1": 3, "2": 1}
    assert {key: len(rows) for key, rows in held([0, 1, 1, 2, 2, 2]).rows.items()} == {"0": 1, "1": 2}
    assert {key: len(rows) for key, rows in held([0, 1, 1, 1, 1, 1, 2]).rows.items()} == {"0": 1, "2": 1}


@pytest.mark.parametrize("flaw", ["a point is missing", "a candle is missing", "an hour differs", "a close differs"])
def test_where_trades_are_not_published_candles_are_those_of_points(
    demo_folder: Path, tmp_path: Path, flaw: str
) -> None:
    settings = {**SETTINGS, "dumps__fills": False}
    databases.copy_first(demo_folder / "markets.db", 30, tmp_path / "markets.db")
    build_now(make_config(tmp_path, **settings))
    with proxied(in_process(make_config(tmp_path, **settings, **NO_LIMITS))) as proxy:
        assert in_parquet(proxy.url) == []
        assert spoil(tmp_path, proxy, flaw)()
