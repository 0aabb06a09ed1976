"""Sites with full histories, whose pages show candles."""

from pathlib import Path
from typing import Any, Final

from generator.api import keys
from generator.api.downloads import DumpHead
from generator.config.settings import Config
from tests.support.sites.builds import build_now, make_config

FULL: Final[dict[str, Any]] = {"dumps__parquet": True, "dumps__histories": "full"}
OPTIONS: Final = tuple(f"--set={name.replace('__', '.')}={value}" for name, value in FULL.items())


def built(folder: Path) -> Config:
    """A site of the database in the folder, and its build."""
    config = make_config(folder, **FULL)
    build_now(config)
    return config


def files_of(site: Config, *tables: str) -> list[Path]:
    """The files of these tables, of which there are some."""
    head = DumpHead.model_validate_json((site.output / keys.head(keys.DUMPS)).read_bytes())
    found = [site.output / file.key for table in tables for file in head.periods(table)]
    assert found
    return found
