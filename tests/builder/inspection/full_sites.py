"""Sites with histories, whose pages show candles; and pages alone, of a site that was not built."""

from pathlib import Path
from typing import Any, Final

from generator.builder.inspection import pages
from generator.builder.inspection.excerpts import Excerpts
from generator.builder.inspection.history import HistoryFigures
from generator.builder.inspection.pages import PublishedDownloads
from generator.config.settings import Config
from tests.support.sites.builds import build_now, dump_head, make_config

FULL: Final[dict[str, Any]] = {"dumps__parquet": True, "dumps__fills": True}
OPTIONS: Final = tuple(f"--set={name.replace('__', '.')}={value}" for name, value in FULL.items())


def built(folder: Path) -> Config:
    """A site of the database in the folder, and its build."""
    config = make_config(folder, **FULL)
    build_now(config)
    return config


def files_of(site: Config, *tables: str) -> list[Path]:
    """The files of these tables, of which there are some."""
    found = [site.output / file.key for table in tables for file in dump_head(site.output).table(table)]
    assert found
    return found


def write_pages(
    folder: Path, report: dict[str, Any], excerpts: Excerpts, figures: HistoryFigures | None = None, **settings: Any
) -> None:
    """Write the pages of a site without downloads into the folder."""
    nothing = PublishedDownloads(None, None)
    for name, body in pages.render(make_config(folder, **settings), report, excerpts, nothing, figures):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
