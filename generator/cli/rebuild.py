"""The `rebuild` command: a build, then a publish. It is a module of its own so that `publish` imports no builder."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import click

from generator.builder.guards import BuildOverrides
from generator.builder.run import build_into
from generator.cli.build import clock, log_report, report_names_each, tell_built
from generator.cli.command import MeasuredCommand
from generator.cli.parameters import allow_invalid_option, as_of_option, full_option
from generator.cli.progress_bar import progress_bar
from generator.cli.publish import carry_out, options_of, publish_options, withdraw_hidden
from generator.cli.target import open_target
from generator.config.settings import Config
from generator.errors import PublicMarketsError
from generator.findings import CHECK_NAMES_EACH
from generator.publish.content import merge_blocked, sync_blocked
from generator.publish.guards import LiftedGuards
from generator.publish.run import Publication, refuse_other_site
from generator.source.address import shape
from generator.stores.requests import explaining_outage
from generator.stores.store import DryRun, Store
from generator.tree import download, files
from generator.tree.blocklist import KEY
from generator.tree.folder import Output, locked


@click.command(cls=MeasuredCommand, name="rebuild")
@as_of_option
@full_option
@allow_invalid_option
@publish_options
def rebuild_command(
    settings: Config, as_of: datetime | None, *, full: bool, allow_invalid: bool, **options: bool
) -> None:
    """Build, then publish: the one line that cron runs."""
    target = open_target(settings)
    overrides = BuildOverrides(
        shrink=options["allow_shrink"], invalid=allow_invalid, demo=options["allow_demo"], full=full,
        purge=options["purge_retired"],
    )  # fmt: skip
    workplace = _scratch_folder if options["dry_run"] else _output_folder
    chosen = options_of(options)
    with workplace(settings, target, chosen.lifted) as (folder, blocked):
        publication = Publication(folder, target, settings, shape(settings), chosen, blocked)
        try:
            with progress_bar("rendering") as bar:
                report = build_into(folder, settings, clock(as_of), overrides=overrides, progress=bar)
        except PublicMarketsError as error:
            withdraw_hidden(publication, error)
            raise
        # The report of a dry run is deleted with its folder.
        log_report(report, CHECK_NAMES_EACH if options["dry_run"] else report_names_each(settings))
        tell_built(report)
        carry_out(publication)


@contextmanager
def _output_folder(settings: Config, target: Store, lifted: LiftedGuards) -> Iterator[tuple[Output, frozenset[str]]]:
    """The folder to build in, and the blocked markets."""
    with locked(settings.output) as folder:
        refuse_other_site(folder, target, settings, lifted)
        with explaining_outage(target):
            blocked = sync_blocked(folder, target)
        yield folder, blocked.ids()


@contextmanager
def _scratch_folder(settings: Config, target: Store, lifted: LiftedGuards) -> Iterator[tuple[Output, frozenset[str]]]:
    """A folder that is deleted afterwards, for a dry run to build in, and the blocked markets."""
    with locked(settings.output) as folder:
        refuse_other_site(folder, target, settings, lifted)
        with explaining_outage(target):
            blocked = merge_blocked(folder, DryRun(target))
        with locked(folder.scratch()) as scratch:
            scratch.save(KEY, blocked.encoded())
            # The estimate of a build starts from the last report.
            if report := folder.read(files.REPORT):
                scratch.save(files.REPORT, report)
            download.begin_with(folder, scratch)
            yield scratch, blocked.ids()
