"""`publish` and `rebuild`."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import click

from generator.builder.guards import BuildOverrides
from generator.builder.render import shape
from generator.builder.run import build_into
from generator.cli import logs
from generator.cli.build import allow_invalid_option, allow_shrink_option, clock, log_report
from generator.cli.command import MeasuredCommand, add_metrics
from generator.cli.logs import LOG
from generator.cli.parameters import as_of_option
from generator.cli.progress_bar import progress_bar
from generator.config.settings import Config
from generator.errors import CostError, GuardError, PublicMarketsError
from generator.publish import takedown
from generator.publish.guards import LiftedGuards
from generator.publish.plan import Plan
from generator.publish.run import Options, Publication, foretell, recall
from generator.publish.stores.factory import open_store
from generator.publish.stores.store import Store
from generator.tree import files
from generator.tree.blocklist import KEY
from generator.tree.folder import Output, locked

_PUBLISH_OPTIONS: Final = (
    click.option("--dry-run", is_flag=True, help="Tell what would be done, and change nothing."),
    allow_shrink_option,
    click.option("--allow-older", is_flag=True, help="Publish a build older than what is published."),
    click.option("--allow-other-site", is_flag=True, help="Publish over a site of another base_url."),
    click.option("--allow-cost", is_flag=True, help="Publish though it costs more than guards.max_monthly_cost."),
    click.option("--purge-retired", is_flag=True, help="Delete retired generations now: after a text was edited."),
    click.option("--verify", is_flag=True, help="List the store, compare it with its record, repair it."),
)


def publish_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that `publish` and `rebuild` share."""
    for option in reversed(_PUBLISH_OPTIONS):
        command = option(command)
    return command


@click.command(cls=MeasuredCommand, name="publish")
@publish_options
def publish_command(settings: Config, **options: bool) -> None:
    """Bring the store to the state of the output folder."""
    target = open_store(settings)
    with locked(settings.output) as folder:
        _publish(folder, target, settings, options)


@click.command(cls=MeasuredCommand, name="rebuild")
@as_of_option
@allow_invalid_option
@publish_options
def rebuild_command(settings: Config, as_of: datetime | None, *, allow_invalid: bool, **options: bool) -> None:
    """Build, then publish: the one line that cron runs."""
    target = open_store(settings)
    overrides = BuildOverrides(shrink=options["allow_shrink"], invalid=allow_invalid)
    with _workplace(settings, target, is_dry=options["dry_run"]) as (folder, barred):
        try:
            with progress_bar("rendering") as bar:
                report = build_into(folder, settings, clock(as_of), overrides=overrides, progress=bar)
        except PublicMarketsError as error:
            if not options["dry_run"]:
                _withdraw_all_the_same(target, settings, barred, error)
            raise
        log_report(report)
        click.echo(report.summary())
        _publish(folder, target, settings, options, barred)


@contextmanager
def _workplace(settings: Config, target: Store, *, is_dry: bool) -> Iterator[tuple[Output, frozenset[str]]]:
    """The folder to build in, and the markets to leave out; a dry run builds in a folder that is thrown away."""
    with locked(settings.output) as folder:
        if not is_dry:
            yield folder, recall(folder, target).ids()
            return
        words = foretell(folder, target)
        with locked(folder.scratch()) as scratch:
            scratch.save(KEY, words.encoded())
            # What is known of earlier builds is what this one is estimated by.
            if report := folder.read(files.REPORT):
                scratch.save(files.REPORT, report)
            yield scratch, words.ids()


def _withdraw_all_the_same(
    target: Store, settings: Config, barred: frozenset[str], refusal: PublicMarketsError
) -> None:
    """Take out what must not be public, though a build was refused for other reasons."""
    visible = refusal.visible if isinstance(refusal, GuardError) else None
    try:
        with progress_bar("withdrawing") as bar:
            tally = takedown.hidden_from_store(target, settings, barred, visible, bar)
    except PublicMarketsError as error:
        # Why there is no build is what the run ends with.
        LOG.warning("and nothing could be withdrawn: %s", error)
    else:
        if tally.deleted:
            LOG.warning("what must not be public was withdrawn all the same: %d objects deleted", tally.deleted)


def _publish(
    folder: Output,
    target: Store,
    settings: Config,
    options: dict[str, bool],
    barred: frozenset[str] | None = None,
) -> None:
    allowed = LiftedGuards(
        options["allow_shrink"], options["allow_older"], options["allow_other_site"], options["allow_cost"]
    )
    wanted = Options(allowed, options["dry_run"], options["verify"], options["purge_retired"])
    publication = Publication(folder, target, settings, shape(settings), wanted, barred)

    def show(plan: Plan) -> None:
        for line in plan.lines() if wanted.is_dry else ():
            click.echo(line)

    begin = time.monotonic()
    try:
        with progress_bar("publishing") as bar:
            outcome = publication.run(bar, show)
    except CostError as error:
        if not wanted.is_dry:
            _withdraw_all_the_same(target, settings, barred or frozenset(), error)
        raise
    tally = outcome.tally
    for warning in tally.warnings:
        LOG.warning("%s", warning)
    logs.stage(
        "upload", time.monotonic() - begin, uploaded=tally.uploaded, uploaded_bytes=tally.uploaded_bytes,
        deleted=tally.deleted, retained=tally.retained, requests=outcome.requests,
    )  # fmt: skip
    if not wanted.is_dry:
        add_metrics(outcome.samples())
    click.echo(("dry run, nothing was changed; it would have " if wanted.is_dry else "") + outcome.summary())
