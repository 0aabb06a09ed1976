"""Times without a zone are UTC wherever the server is, and `check` asks which zone they are in."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from generator.builder.preflight import BuildCheck
from generator.progress import SILENT
from tests.source.native import Postgres, detail
from tests.support.commands import run
from tests.support.sites.builds import build_now, make_config
from tests.support.sites.rows import market_id

pytestmark = pytest.mark.usefixtures("few_limits")

SUMMER, WINTER = "2025-07-01 12:00:00", "2026-01-15 12:00:00"


@pytest.fixture
def local(make_postgres: Callable[..., Postgres]) -> Postgres:
    """A market whose times have no zone, on a server in Berlin."""
    database = make_postgres(timestamp="timestamp")
    database.connection.execute(f"ALTER DATABASE {database.name} SET TimeZone = 'Europe/Berlin'")
    database.insert_market(created_at=SUMMER, last_activity_at=WINTER)
    database.insert("probabilities", market_id=market_id(1), recorded_at=WINTER, prob=0.5)
    return database


def published(folder: Path, database: Postgres) -> Any:
    build_now(make_config(folder, source__url=database.url))
    shown = detail(folder / "output", 1)
    market = shown["market"]
    return market["createdAt"], market["lastActivityAt"], shown["probHistory"][0]["timestamp"]


def warnings(folder: Path, database: Postgres) -> list[str]:
    (folder / "config.yaml").touch()
    done = run("check", cwd=folder, PUBLIC_MARKETS_SOURCE__URL=database.url)
    assert done.returncode == 0, done.stdout
    found = [line for line in done.stdout.splitlines() if line.startswith("warning: ")]
    (superuser,) = (line for line in found if "the database user admin is a superuser" in line)
    return [line for line in found if line != superuser and ": has no row, although " not in line]


def test_times_without_a_zone_are_utc_whatever_zone_the_server_is_in(local: Postgres, tmp_path: Path) -> None:
    assert published(tmp_path, local) == (
        "2025-07-01T12:00:00.000Z", "2026-01-15T12:00:00.000Z", "2026-01-15T12:00:00.000Z",
    )  # fmt: skip
    [warning] = warnings(tmp_path, local)
    columns, _, remedy = warning.partition(": their type has no time zone, so they are read as UTC; ")
    assert columns == (
        "warning: markets.close_time, markets.created_at, markets.resolved_at, markets.last_activity_at, "
        "fills.created_at, probabilities.recorded_at"
    )
    assert remedy.endswith("such as close_time AT TIME ZONE 'UTC' or 'Europe/Berlin'")


def test_a_view_that_says_the_zone_is_read_by_it_in_summer_and_winter(local: Postgres, tmp_path: Path) -> None:
    local.connection.execute(
        """
        CREATE DOMAIN moment AS timestamptz;
        ALTER TABLE markets ALTER created_at TYPE timestamptz USING created_at AT TIME ZONE 'Europe/Berlin',
            ALTER close_time TYPE timestamptz, ALTER resolved_at TYPE timestamptz;
        ALTER TABLE markets RENAME last_activity_at TO local;
        ALTER TABLE markets ADD last_activity_at moment;
        UPDATE markets SET last_activity_at = local AT TIME ZONE 'Europe/Berlin';
        ALTER TABLE fills ALTER created_at TYPE timestamptz;
        ALTER TABLE probabilities RENAME TO points;
        CREATE VIEW probabilities AS
        SELECT market_id, recorded_at AT TIME ZONE 'Europe/Berlin' AS recorded_at, prob FROM points
        """
    )
    assert published(tmp_path, local) == (
        "2025-07-01T10:00:00.000Z", "2026-01-15T11:00:00.000Z", "2026-01-15T11:00:00.000Z",
    )  # fmt: skip
    assert warnings(tmp_path, local) == []


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("minutes", "says"), [(-15, "behind"), (15, "ahead of"), (0, "")])
def test_a_clock_that_differs_from_the_databases_is_a_warning(
    local: Postgres, tmp_path: Path, minutes: int, says: str
) -> None:
    config = make_config(tmp_path, source__url=local.url)
    check = BuildCheck(config, datetime.now(UTC) + timedelta(minutes=minutes), SILENT)
    told = [finding.text for finding in check.database() if "clock" in finding.text]
    assert len(told) == bool(says)
    assert all(
        re.search(rf"this machine's clock is (8[5-9]|9[0-4])\d s {says} the database's; set it", text) for text in told
    )


def test_a_cast_in_a_view_that_names_no_zone_means_utc(local: Postgres, tmp_path: Path) -> None:
    local.connection.execute(
        """
        ALTER TABLE probabilities RENAME TO points;
        CREATE VIEW probabilities AS SELECT market_id, recorded_at::timestamptz AS recorded_at, prob FROM points
        """
    )
    assert published(tmp_path, local)[2] == "2026-01-15T12:00:00.000Z"
