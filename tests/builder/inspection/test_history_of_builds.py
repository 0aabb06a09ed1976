"""Builds place the history page where Parquet is published, and it shows what the files say; takedowns delete it."""

import json
import re
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from generator.cli.main import main
from generator.config.settings import Config
from generator.tree import files
from tests.builder.inspection.full_sites import OPTIONS, built, files_of
from tests.support.sites.builds import AS_OF, build_now, make_config
from tests.support.sites.rows import insert_fill, insert_market, insert_point, market_id

RANGES: Final = (("30 to 40%", "1", "37.5%", "100.0%"), ("50 to 60%", "1", "50.0%", "0.0%"))
_JSON: Final = re.compile(r'<script type="application/json" id="(candles|history)"[^>]*>(.*?)</script>')


@pytest.fixture
def site(tmp_path: Path, database: sqlite3.Connection) -> Config:
    """Two open markets that moved, and markets that closed: one resolved YES, one NO, one cancelled, one not yet."""
    insert_market(database, 1, question="Mover?")
    insert_market(database, 2, question="SECRET mover?")
    for number, before, after in ((1, 0.25, 0.75), (2, 0.125, 0.875)):
        for time, prob in (("10 00:00", before), ("31 03:10", 0.5), ("31 11:20", after), ("31 12:00", 0.0)):
            insert_point(database, f"2026-01-{time}:00.000000", prob, market_id=market_id(number))
    for number, resolution in enumerate(("YES", "NO", "CANCEL", None), 3):
        status = "closed" if resolution is None else "cancelled" if resolution == "CANCEL" else "resolved"
        ended = {"close_time": "2026-01-20 12:00:00.000000", "resolution": resolution}
        resolved = "2026-01-21 12:00:00.000000" if resolution else None
        insert_market(database, number, status=status, resolved_at=resolved, **ended)
        for time, prob in (("2026-01-13 12:00:00.000000", number / 8), ("2026-01-13 12:00:01.000000", 0.99)):
            insert_point(database, time, prob, market_id=market_id(number))
    trades = (("28 23:59", 10.0, 1), ("30 00:00", 2.5, 1), ("30 23:59", 4.0, 2), ("31 00:00", 99.0, 1))
    for number, (time, amount, market) in enumerate(trades):
        created = f"2026-01-{time}:59.000000"
        insert_fill(database, number, created_at=created, amount=amount, market_id=market_id(market))
    return built(tmp_path)


def page(site: Config) -> str:
    return (site.output / files.HISTORY).read_text("utf-8")


def shown(site: Config) -> dict[str, Any]:
    """The data of the page's charts."""
    found = dict(_JSON.findall(page(site)))
    assert len(found) == 2
    return {**json.loads(found["candles"]), **json.loads(found["history"])}


def ranges(site: Config) -> list[tuple[str, ...]]:
    """The ranges of probabilities that the page shows, here all of few markets: with count, mean, and share of YES."""
    return [tuple(re.findall(r">([^<]+)</t[hd]>", row)) for row in re.findall(r"<tr>.* to .*</tr>", page(site))]


def takedown(site: Config, *ids: str) -> str:
    config = site.output.parent / "config.yaml"
    ran = CliRunner().invoke(main, ["takedown", *ids, f"--config={config}", f"--set=output={site.output}", *OPTIONS])
    assert ran.exit_code == 0, ran.output
    return ran.output


def test_the_page_shows_what_the_database_says(site: Config) -> None:
    assert shown(site) == {
        "calibration": [],
        "volume": [["2026-01-28", 10.0, 1], ["2026-01-29", 0.0, 0], ["2026-01-30", 6.5, 2]],
        "moves": [[market_id(2), 0.125, 0.875], [market_id(1), 0.25, 0.75]],
        "questions": {market_id(1): "Mover?", market_id(2): "SECRET mover?"},
    }
    assert (site.output / files.HISTORY).stat().st_mode & 0o777 == 0o600
    assert 'href="history.html"' in (site.output / files.INSPECTION).read_text("utf-8")


def test_a_market_that_resolves_and_a_question_that_changes_show_at_once(
    site: Config, database: sqlite3.Connection
) -> None:
    resolved = "status = 'resolved', resolution = 'YES', resolved_at = '2026-01-31 12:01:00.000000'"
    database.execute(f"UPDATE markets SET {resolved} WHERE id = ?", [market_id(6)])
    database.execute("UPDATE markets SET question = 'Renamed?' WHERE id = ?", [market_id(1)])
    before = shown(site)
    assert ranges(site) == [*RANGES]
    build_now(site, AS_OF + timedelta(minutes=5))
    after = shown(site)
    assert ranges(site) == [*RANGES, ("70 to 80%", "1", "75.0%", "100.0%")]
    assert after["questions"] == {**before["questions"], market_id(1): "Renamed?"}
    assert (after["volume"], after["moves"]) == (before["volume"], before["moves"])


# ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("damage", ["gone", "altered", "of another program"])
def test_a_page_that_is_not_as_this_program_left_it_is_made_again(site: Config, damage: str) -> None:
    place, before = site.output / files.HISTORY, page(site)
    if damage == "gone":
        place.unlink()
    elif damage == "altered":
        place.write_text(before.replace('"2026-01-28",10.0', '"2026-01-28",11.0'), "utf-8")
    else:
        place.write_text(re.sub(r'data-seal="\w+"', f'data-seal="{"0" * 64}"', before), "utf-8")
    assert not place.exists() or page(site) != before
    build_now(site)
    assert page(site) == before


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("table", ["candles/day", "candles/hour", "closes"])
def test_a_file_that_cannot_be_read_is_told_on_the_page_and_fails_no_build(site: Config, table: str) -> None:
    file = files_of(site, table)[-1]
    file.write_bytes(bytes(file.stat().st_size))
    (site.output / files.HISTORY).unlink()
    build_now(site)
    assert "The histories cannot be read" in page(site)
    assert str(file) in page(site)
    assert "SECRET" not in page(site)
    file.unlink()
    build_now(site, full=True)
    assert shown(site)["moves"]


# ── when it goes ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_market_that_is_taken_down_is_no_mover_any_more_and_what_it_traded_is_not_counted(site: Config) -> None:
    assert "SECRET" in page(site)
    takedown(site, market_id(2))
    assert [name for name in files.QUOTING if (site.output / name).exists()] == []
    build_now(site)
    assert "SECRET" not in page(site)
    assert market_id(2) not in page(site)
    after = shown(site)
    assert after["moves"] == [[market_id(1), 0.25, 0.75]]
    assert after["volume"] == [["2026-01-28", 10.0, 1], ["2026-01-29", 0.0, 0], ["2026-01-30", 2.5, 1]]
    assert (site.output / files.HISTORY).stat().st_mode & 0o777 == 0o600


def test_where_trades_are_not_published_the_page_has_all_but_their_volume(site: Config) -> None:
    assert 'id="volume"' in page(site)
    assert "Every trade and probability" in page(site)
    before = shown(site)
    build_now(make_config(site.output.parent, dumps__parquet=True), AS_OF + timedelta(minutes=5))
    assert shown(site) == {**before, "volume": []}
    shown_text = re.sub(r"<script.*?</script>|<style.*?</style>|<code>.*?</code>", "", page(site), flags=re.DOTALL)
    assert not re.search(r"volume|Every trade|Trades", shown_text, re.IGNORECASE)
    assert "Every probability" in shown_text


def test_a_site_without_parquet_has_neither_page_nor_its_files(site: Config) -> None:
    assert (site.output / files.PLOTTERS[0]).is_file()
    build_now(make_config(site.output.parent), AS_OF + timedelta(days=1))
    assert not (site.output / files.HISTORY).exists()
    assert not (site.output / "vendor/plot").exists()
    assert (site.output / files.RENDERER).is_file()
    assert files.HISTORY not in (site.output / files.INSPECTION).read_text("utf-8")
