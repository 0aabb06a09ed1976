"""The `rebuild` command: a build, then a publish. It is a module of its own so that `publish` imports no builder."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import click

from generator.builder.guards import BuildOverrides, Clock
from generator.builder.run import build_into
from generator.cli import status_file
from generator.cli.build import clock, log_report, overrides_of, tell_built
from generator.cli.command import MeasuredCommand
from generator.cli.logs import LOG
from generator.cli.parameters import accepting, as_of_option, full_option
from generator.cli.progress_bar import progress_bar
from generator.cli.publish import carry_out, options_of, publish_options, withdraw_hidden
from generator.cli.target import both_ends
from generator.config.settings import Config
from generator.errors import BUILD_GUARDS, PUBLISH_GUARDS, DamageError, PublicMarketsError, UnfitFilesError
from generator.publish.guards import Options
from generator.publish.publication import Publication, refuse_other_site
from generator.publish.withdrawal import sync_blocked
from generator.source.address import shape
from generator.stores.requests import explaining_outage


@click.command(cls=MeasuredCommand, name="rebuild")
@as_of_option
@full_option
@publish_options
@accepting(*{*BUILD_GUARDS, *PUBLISH_GUARDS})
def rebuild_command(settings: Config, as_of: datetime | None, **options: Any) -> None:
    """Build, then publish: the one line that cron runs."""
    chosen = options_of(options)
    anew = options["full"] or options["verify"]
    overrides = replace(overrides_of(options), demo=chosen.lifted.demo, anew=anew)
    with status_file.left(settings, "rebuild", is_dry=chosen.is_dry) as left:
        _rebuild(settings, clock(as_of), overrides, chosen)
        left.found(None)


def _rebuild(settings: Config, at: Clock, overrides: BuildOverrides, chosen: Options) -> None:
    with both_ends(settings, is_dry=chosen.is_dry) as (folder, target):
        refuse_other_site(folder, target, settings, chosen.lifted)
        with explaining_outage(target):
            blocked = sync_blocked(folder, target)
        publication = Publication(folder, target, settings, shape(settings), chosen, blocked)
        _build(publication, at, overrides)
        try:
            carry_out(publication)
        except (DamageError, UnfitFilesError) as damage:
            LOG.warning("%s: missing or altered since it was built; building again with --full", damage.place)
            _build(publication, at, replace(overrides, full=True))
            carry_out(publication)


def _build(publication: Publication, clock: Clock, overrides: BuildOverrides) -> None:
    settings, is_dry = publication.config, publication.options.is_dry
    try:
        with progress_bar("rendering") as bar:
            tell = bar.before(partial(log_report, settings, is_dry=is_dry))
            report = build_into(publication.folder, settings, clock, overrides=overrides, progress=bar, tell=tell)
    except PublicMarketsError as error:
        withdraw_hidden(publication, error)
        raise
    tell_built(report, is_dry=is_dry)
