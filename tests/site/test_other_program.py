"""Files of downloads that another program made are made again; all that is in them decides, not when it was made."""

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from generator import program
from generator.config.settings import Config
from generator.downloads import side_file
from generator.tree import files as names
from tests.support.sites.builds import AS_OF, build_now, files, make_config
from tests.support.sites.rows import insert_fill, insert_market, insert_point, market_id

DUMPS: Final = "v1/dumps/"


def site(tmp_path: Path, database: sqlite3.Connection, histories: str) -> Config:
    for number in range(3):
        insert_market(database, number)
        insert_fill(database, number, market_id=market_id(number))
        insert_point(database, "2026-01-15 00:00:00.000000", market_id=market_id(number))
    return make_config(tmp_path, layout="chunks", dumps__parquet=True, dumps__histories=histories)


@pytest.mark.parametrize("histories", ["thinned", "full"])
def test_a_build_after_an_upgrade_makes_what_an_older_program_had_made(
    tmp_path: Path, database: sqlite3.Connection, histories: str
) -> None:
    settings = site(tmp_path, database, histories)
    build_now(settings)
    fresh = files(settings.output)
    # An older program made other files of the same rows: these have other names, and their parts say the same.
    parquet = [key for key in fresh if key.startswith(DUMPS) and key.endswith(".parquet")]
    assert len(parquet) > 2
    made_by_another(settings)
    for key in parquet:
        (settings.output / key).write_bytes(b"made by another program".ljust(len(fresh[key])))
    build_now(settings, AS_OF + timedelta(minutes=1))
    assert {key: files(settings.output)[key] for key in parquet} == {key: fresh[key] for key in parquet}
    idle = build_now(settings, AS_OF + timedelta(minutes=2))
    assert idle.written == 1, "build.json alone"


def made_by_another(settings: Config) -> None:
    """Have the folder say that another program made its downloads."""
    place = settings.output / names.DUMP_PARTS
    found = side_file.decoded(place.read_bytes())
    assert found.maker == program.maker()
    place.write_bytes(found.model_copy(update={"maker": "another"}).encoded())
