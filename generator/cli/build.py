"""The `build` and `demo` commands and their output."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from generator.api import contract, keys
from generator.builder import notices
from generator.builder.guards import BuildOverrides
from generator.builder.preparation import Clock
from generator.builder.report import Report
from generator.builder.run import build
from generator.cli import logs
from generator.cli.command import MeasuredCommand, Subcommand, add_metrics, now
from generator.cli.logs import LOG
from generator.cli.parameters import (
    accepted,
    accepting,
    as_of_option,
    full_option,
    host_option,
    port_option,
    purge_retired_option,
)
from generator.cli.progress_bar import progress_bar
from generator.config import demo
from generator.config.settings import Config
from generator.demo.database import seed
from generator.errors import BUILD_GUARDS, SourceError
from generator.source.address import display_url, sqlite_path
from generator.tree import files, layouts
from generator.wording import counted


def overrides_of(given: Mapping[str, Any]) -> BuildOverrides:
    """What the command line overrides."""
    return BuildOverrides(accepted(given), full=given["full"], purge=given["purge_retired"], anew=given["full"])


@click.command(cls=MeasuredCommand, name="build")
@as_of_option
@full_option
@accepting(*BUILD_GUARDS)
@purge_retired_option
def build_command(settings: Config, as_of: datetime | None, **options: Any) -> None:
    """Render the database into the output folder."""
    _build(settings, clock(as_of), overrides_of(options))


@click.command(cls=Subcommand, name="demo", can_do_without_file=True)
@as_of_option
@click.option("--markets", type=click.IntRange(1), default=400, show_default=True, help="Number of markets to make up.")
@click.option("--serve", "is_served", is_flag=True, help="Serve what was built on this machine, until Ctrl-C.")
@host_option
@port_option
def demo_command(settings: Config, as_of: datetime | None, markets: int, *, is_served: bool, **address: Any) -> None:
    """Create a database of made-up markets if there is none, then build it."""
    instant = clock(as_of)
    path = sqlite_path(settings)
    if path is None:
        raise SourceError(
            f"demo creates only SQLite databases, not {display_url(settings)}; pass --set source.url=sqlite:///demo.db"
        )
    if path.exists():
        logs.notice(f"{path} exists already; delete it to create a new one")
    else:
        with progress_bar("making up markets"):
            seed(path, as_of=instant.as_of, markets=markets, application_id=demo.APPLICATION_ID)
        logs.notice(f"created {path} with {counted(markets, 'made-up market')}")
    _build(settings, instant, BuildOverrides())
    first = layouts.first_page(settings.layout, keys.list_name("open", "popular"), contract.LIMIT_DEFAULT)
    logs.result(f"look at {settings.output / first}: the default request is answered from it")
    logs.result(f"open {settings.output / files.INSPECTION} in a browser: what was built, what was left out and why")
    if is_served:
        from generator.cli.serve import serve  # noqa: PLC0415 - a build needs no web server

        serve(settings, **address)


def _build(settings: Config, clock: Clock, overrides: BuildOverrides) -> None:
    with progress_bar("rendering") as bar:
        report = build(settings, clock, overrides=overrides, progress=bar)
    log_report(report, report_names_each(settings))
    tell_built(report)


def tell_built(report: Report, *, is_dry: bool = False) -> None:
    """Write the line that ends a build."""
    logs.result(
        report.forecast() if is_dry else report.summary(), as_of=report.as_of, markets=report.built,
        **report.counts("place"), unchanged=report.unchanged, quarantined=report.quarantine.total(),
    )  # fmt: skip


def clock(as_of: datetime | None) -> Clock:
    """The as-of time given on the command line, or now."""
    return Clock(as_of or now(), is_set=as_of is not None)


def report_names_each(settings: Config) -> str:
    """Where a build names each bad row, for `log_report`."""
    return f"{settings.output / files.REPORT} names each"


def log_report(report: Report, details: str) -> None:
    """Log what a build did, equal faults as one line; `details` says where each row is named."""
    add_metrics(report.samples())
    for name, span in report.stages.items():
        logs.stage(name, span, **report.counts(name))
    found = report.findings()
    for line in found:
        LOG.warning("%s", line)
    if report.empty:
        logs.notice(notices.empty_relations(report.empty))
    if report.quarantine.faults() + len(report.remarks) + len(report.markets.withdrawn) > len(found):
        logs.notice(details)
