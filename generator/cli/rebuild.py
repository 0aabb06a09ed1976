"""The `rebuild` command: a build, then a publish. It is a module of its own so that `publish` imports no builder."""

from dataclasses import replace
from datetime import datetime

import click

from generator.builder.guards import BuildOverrides
from generator.builder.preparation import Clock
from generator.builder.run import build_into
from generator.cli.build import build_options, clock, log_report, overrides_of, report_names_each, tell_built
from generator.cli.command import MeasuredCommand
from generator.cli.logs import LOG
from generator.cli.parameters import as_of_option
from generator.cli.progress_bar import progress_bar
from generator.cli.publish import carry_out, options_of, publish_options, withdraw_hidden
from generator.cli.target import both_ends
from generator.config.settings import Config
from generator.errors import DamageError, PublicMarketsError, UnfitFilesError
from generator.findings import CHECK_NAMES_EACH
from generator.publish.content import sync_blocked
from generator.publish.run import Publication, refuse_other_site
from generator.source.address import shape
from generator.stores.requests import explaining_outage


@click.command(cls=MeasuredCommand, name="rebuild")
@as_of_option
@build_options
@publish_options
def rebuild_command(settings: Config, as_of: datetime | None, **options: bool) -> None:
    """Build, then publish: the one line that cron runs."""
    overrides = replace(overrides_of(options), demo=options["allow_demo"], anew=options["full"] or options["verify"])
    chosen = options_of(options)
    is_dry = chosen.extras.is_dry
    with both_ends(settings, is_dry=is_dry) as (folder, target):
        refuse_other_site(folder, target, settings, chosen.lifted)
        with explaining_outage(target):
            blocked = sync_blocked(folder, target).ids()
        publication = Publication(folder, target, settings, shape(settings), chosen, blocked)
        _build(publication, clock(as_of), overrides)
        try:
            carry_out(publication)
        except (DamageError, UnfitFilesError) as damage:
            LOG.warning("%s: missing or altered since it was built; building again with --full", damage.place)
            _build(publication, clock(as_of), replace(overrides, full=True))
            carry_out(publication)


def _build(publication: Publication, clock: Clock, overrides: BuildOverrides) -> None:
    settings, is_dry = publication.config, publication.options.extras.is_dry
    try:
        with progress_bar("rendering") as bar:
            report = build_into(publication.folder, settings, clock, overrides=overrides, progress=bar)
    except PublicMarketsError as error:
        withdraw_hidden(publication, error)
        raise
    # The report of a dry run is not kept.
    log_report(report, CHECK_NAMES_EACH if is_dry else report_names_each(settings))
    tell_built(report, is_dry=is_dry)
