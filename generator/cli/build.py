"""The `build` command, and what other commands that build share with it."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

import click

from generator.builder import notices
from generator.builder.guards import BuildOverrides, Clock
from generator.builder.report import Report, Tell
from generator.builder.run import build
from generator.cli import logs, status_file
from generator.cli.command import MeasuredCommand, add_metrics, now
from generator.cli.logs import LOG
from generator.cli.parameters import (
    accepted,
    accepting,
    as_of_option,
    full_option,
    purge_retired_option,
)
from generator.cli.progress_bar import progress_bar
from generator.config.settings import Config
from generator.errors import BUILD_GUARDS
from generator.findings import CHECK_NAMES_EACH
from generator.tree import files
from generator.tree.blocklist import HeldError
from generator.tree.hold_metrics import NO_HOLD, hold_samples


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
    with status_file.left(settings, "build") as left:
        try:
            report = built(settings, clock(as_of), overrides_of(options), partial(log_report, settings))
        except HeldError as error:
            add_metrics(hold_samples(error.hold))
            raise
        if settings.publish.target is None:
            add_metrics(NO_HOLD)
            left.found(None)
        tell_built(report)


def built(settings: Config, clock: Clock, overrides: BuildOverrides, tell: Tell) -> Report:
    """Build into the output folder, behind a progress bar."""
    with progress_bar("rendering") as bar:
        return build(settings, clock, overrides=overrides, progress=bar, tell=bar.before(tell))


def tell_built(report: Report, *, is_dry: bool = False) -> None:
    """Write the line that ends a build."""
    add_metrics(report.samples())
    logs.result(
        report.forecast() if is_dry else report.summary(), as_of=report.as_of, markets=report.built,
        **report.counts("place"), unchanged=report.unchanged, quarantined=report.quarantine.total(),
    )  # fmt: skip


def clock(as_of: datetime | None) -> Clock:
    """The as-of time given on the command line, or now."""
    return Clock(as_of or now(), is_set=as_of is not None)


def log_report(settings: Config, report: Report, *, is_dry: bool = False) -> None:
    """Log what a build did, and what it found that the last one had not, equal faults as one line.

    A dry run names no row elsewhere: its report is not kept.
    """
    log_stages(report)
    found = report.findings()
    for line in found:
        LOG.warning("%s", line)
    if report.is_shortened(found):  # it names none of those that are gone
        logs.notice(CHECK_NAMES_EACH if is_dry else f"{settings.output / files.REPORT} names each")
    for line in report.news.gone():
        logs.notice(line)
    if known := report.news.sentence():
        LOG.info("%s", known)
    if report.empty:
        logs.notice(notices.empty_relations(report.empty))


def log_stages(report: Report) -> None:
    """Log what each stage of a build did."""
    for name, span in report.stages.items():
        logs.stage(name, span, **report.counts(name))
