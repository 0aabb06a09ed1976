"""The `publish` command, and what `rebuild` shares with it: options, carrying out a publish, reporting its outcome."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from generator.cli import logs, status_file
from generator.cli.command import MeasuredCommand, add_metrics
from generator.cli.logs import LOG
from generator.cli.parameters import accepted, accepting, purge_retired_option
from generator.cli.progress_bar import progress_bar
from generator.cli.target import both_ends
from generator.config.settings import Config
from generator.errors import PUBLISH_GUARDS, GuardError, OtherSiteError, OutputError, PublicMarketsError
from generator.progress import Span
from generator.publish import takedown
from generator.publish.guards import LiftedGuards, Options
from generator.publish.publication import Outcome, Publication
from generator.publish.withdrawal import sync_blocked
from generator.source.address import shape
from generator.stores.requests import explaining_outage
from generator.tree.blocklist import HeldError
from generator.tree.hold_metrics import hold_samples
from generator.wording import counted

_PUBLISH_OPTIONS: Final = (
    click.option("--dry-run", is_flag=True, help="List what would be done, and change nothing."),
    purge_retired_option,
    click.option("--verify", is_flag=True, help="List the store, compare it with its record, and repair it."),
)


def publish_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that `publish` and `rebuild` share, but for the guards that they accept."""
    for option in reversed(_PUBLISH_OPTIONS):
        command = option(command)
    return command


@click.command(cls=MeasuredCommand, name="publish")
@publish_options
@accepting(*PUBLISH_GUARDS)
def publish_command(settings: Config, **options: Any) -> None:
    """Bring the store to the state of the output folder."""
    is_dry = options["dry_run"]
    with status_file.left(settings, "publish", is_dry=is_dry) as left:
        with both_ends(settings, is_dry=is_dry) as (folder, target):
            carry_out(Publication(folder, target, settings, shape(settings), options_of(options)))
        left.found(None)


def options_of(given: Mapping[str, Any]) -> Options:
    """The options of a run, from those of the command line."""
    return Options(LiftedGuards.of(accepted(given)), given["verify"], given["purge_retired"], given["dry_run"])


def carry_out(publication: Publication) -> None:
    """Publish and report the outcome; withdraw what must not be public even if a guard or the folder stops the rest."""
    begin = time.perf_counter()
    if publication.options.is_dry:
        with progress_bar("publishing") as bar:
            run = publication.plan(bar)
            for line in run.plan.lines():
                logs.result(line)
            outcome = publication.publish(run)
        _tell_published(outcome, begin)
        _tell_outcome(outcome.forecast(), outcome, is_dry=True)
        return
    try:
        with progress_bar("publishing") as bar:
            outcome = publication.publish(publication.plan(bar))
    except OtherSiteError:
        raise
    except (GuardError, OutputError) as error:
        if isinstance(error, HeldError):
            add_metrics(hold_samples(error.hold))
        withdraw_hidden(publication, error)
        raise
    _tell_published(outcome, begin)
    add_metrics(outcome.samples())
    _tell_outcome(outcome.summary(), outcome, is_dry=False)


def _tell_outcome(sentence: str, outcome: Outcome, *, is_dry: bool) -> None:
    """Write the line that ends a publish."""
    tally = outcome.tally
    logs.result(
        sentence, as_of=outcome.as_of, markets=outcome.markets, target=outcome.target, dry_run=is_dry,
        uploaded=tally.uploaded, uploaded_bytes=tally.uploaded_bytes, deleted=tally.deleted, retained=outcome.retained,
        requests=outcome.requests,
    )  # fmt: skip


def _tell_published(outcome: Outcome, begin: float) -> None:
    """What a publish did, on stderr."""
    tally = outcome.tally
    for warning in tally.warnings:
        LOG.warning("%s", warning)
    end = time.perf_counter()
    logs.stage(
        "upload", Span(end - begin, end), uploaded=tally.uploaded, uploaded_bytes=tally.uploaded_bytes,
        deleted=tally.deleted, retained=outcome.retained, requests=outcome.requests,
    )  # fmt: skip


def withdraw_hidden(publication: Publication, refusal: PublicMarketsError) -> None:
    """Withdraw what must not be public, although a guard or the database prevented the rest; not in a dry run."""
    if publication.options.is_dry:
        return
    visible = refusal.visible if isinstance(refusal, GuardError) else None
    try:
        with explaining_outage(publication.store):
            # Read again: a takedown may have come since the run began.
            blocked = sync_blocked(publication.folder, publication.store)
        with progress_bar("withdrawing") as bar:
            tally = takedown.withdraw_hidden(publication.store, publication.config, blocked, visible, bar)
    except PublicMarketsError as error:
        # The run ends with the refusal; this comes on top.
        LOG.warning("hidden markets could not be withdrawn either: %s", error)
    else:
        for warning in tally.warnings:
            LOG.warning("%s", warning)
        if tally.deleted:
            LOG.warning("hidden markets were still withdrawn: %s deleted", counted(tally.deleted, "object"))
