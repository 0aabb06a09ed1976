"""The commands. Results go to stdout, logs and progress to stderr."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import click

from generator import (
    __version__,
    blocked,
    build,
    contract,
    demo,
    generations,
    inspector,
    keys,
    logs,
    output,
    preview,
    publish,
    record,
    source,
    takedown,
)
from generator.blocked import Blocked
from generator.cli_check import check_command
from generator.cli_job import Job, MeasuredJob, Reference, as_of_option, note, now, shown
from generator.cli_plan import plan_command
from generator.config import Config
from generator.errors import CostError, GuardError, PublicMarketsError, SourceError
from generator.logs import LOG
from generator.manifest import Slugs
from generator.output import Output
from generator.planning import Plan
from generator.refusals import Permissions
from generator.report import Report
from generator.store import Store
from generator.stores import open_store

#: So many quarantined rows are named on stderr; the report names them all.
_NAMED_ON_STDERR: Final = 20


allow_shrink_option = click.option(
    "--allow-shrink", is_flag=True, help="Accept the loss of more markets than guards.max_shrink."
)
allow_invalid_option = click.option(
    "--allow-invalid", is_flag=True, help="Accept more bad rows than guards.max_invalid."
)
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


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="public-markets")
def main() -> None:
    """Render a prediction market's public read API as static files."""


main.add_command(check_command)
main.add_command(plan_command)


@main.command(cls=MeasuredJob, name="build")
@as_of_option
@allow_shrink_option
@allow_invalid_option
def build_command(settings: Config, as_of: datetime | None, *, allow_shrink: bool, allow_invalid: bool) -> None:
    """Bring the output folder to the state of the database."""
    _build(settings, _clock(as_of), build.Allowed(shrink=allow_shrink, invalid=allow_invalid))


@main.command(cls=MeasuredJob, name="publish")
@publish_options
def publish_command(settings: Config, **options: bool) -> None:
    """Bring the store to the state of the output folder."""
    target = open_store(settings)
    with output.locked(settings.output) as folder:
        _publish(folder, target, settings, options)


@main.command(cls=MeasuredJob, name="rebuild")
@as_of_option
@allow_invalid_option
@publish_options
def rebuild_command(settings: Config, as_of: datetime | None, *, allow_invalid: bool, **options: bool) -> None:
    """Build, then publish: the one line that cron runs."""
    target = open_store(settings)
    allowed = build.Allowed(shrink=options["allow_shrink"], invalid=allow_invalid)
    with _workplace(settings, target, is_dry=options["dry_run"]) as (folder, barred):
        try:
            with shown("rendering") as bar:
                report = build.build_into(folder, settings, _clock(as_of), allowed=allowed, progress=bar)
        except PublicMarketsError as error:
            if not options["dry_run"]:
                _withdraw_all_the_same(target, settings, barred, error)
            raise
        _tell(report)
        click.echo(report.summary())
        _publish(folder, target, settings, options, barred)


@contextmanager
def _workplace(settings: Config, target: Store, *, is_dry: bool) -> Iterator[tuple[Output, frozenset[str]]]:
    """The folder to build in, and the markets to leave out; a dry run builds in a folder that is thrown away."""
    with output.locked(settings.output) as folder:
        if not is_dry:
            yield folder, publish.recall(folder, target).ids()
            return
        words = publish.foretell(folder, target)
        with output.locked(folder.scratch()) as scratch:
            scratch.save(blocked.KEY, words.encoded())
            # What is known of earlier builds is what this one is estimated by.
            if report := folder.read(output.REPORT):
                scratch.save(output.REPORT, report)
            yield scratch, words.ids()


def _withdraw_all_the_same(
    target: Store, settings: Config, barred: frozenset[str], refusal: PublicMarketsError
) -> None:
    """Take out what must not be public, though a build was refused for other reasons."""
    visible = refusal.visible if isinstance(refusal, GuardError) else None
    try:
        with shown("withdrawing") as bar:
            tally = takedown.hidden_from_store(target, settings, barred, visible, bar)
    except PublicMarketsError as error:
        # Why there is no build is what the run ends with.
        LOG.warning("and nothing could be withdrawn: %s", error)
    else:
        if tally.deleted:
            LOG.warning("what must not be public was withdrawn all the same: %d objects deleted", tally.deleted)


@main.command(cls=Job, name="takedown")
@click.argument("markets", metavar="REF...", nargs=-1, type=Reference())
@click.option("--undo", is_flag=True, help="Let the markets come back with the next build.")
def takedown_command(settings: Config, markets: tuple[str, ...], *, undo: bool) -> None:
    """Remove markets from everything that is published, now, and keep them out of later builds.

    REF is a market's id, or its slug where slugs are published. Without any, tell which markets are kept out.
    """
    instant = record.instant(now())

    def told(words: Blocked, slugs: Callable[[], Slugs]) -> Blocked:
        ids = takedown.named(markets, slugs)
        return words.told(ids, is_blocked=not undo, now=instant) if ids else words

    words = _take_down_published(settings, told) if settings.publish.target else None
    if words is None or settings.output.exists():
        # The store's last word is the folder's, too.
        told_last = told if words is None else lambda held, _: held.merged(words)
        words = takedown.from_folder(settings, told_last, logs.notice)
        logs.notice(f"{settings.output}: holds none of the markets that are kept out")
    for market_id in sorted(words.ids()):
        click.echo(f"{market_id} kept out since {words.markets[market_id].at}")
    click.echo(f"{len(words.ids())} markets are kept out of every build")


@main.command(cls=Job, name="demo")
@as_of_option
@click.option("--markets", type=click.IntRange(1), default=400, show_default=True, help="How many markets to make up.")
def demo_command(settings: Config, as_of: datetime | None, markets: int) -> None:
    """Make up a lifelike database if there is none yet, and build it."""
    clock = _clock(as_of)
    path = source.sqlite_path(settings)
    if path is None:
        raise SourceError(
            f"demo makes SQLite databases, not {source.describe(settings)}; --set source.url=sqlite:///demo.db"
        )
    if path.exists():
        logs.notice(f"{path} is there already; delete it to get a new one")
    else:
        with shown("making up markets"):
            demo.seed(path, as_of=clock.as_of, markets=markets)
        logs.notice(f"made up {markets} markets in {path}")
    _build(settings, clock, build.Allowed(shrink=False, invalid=False))
    first = generations.entrance(settings.layout, keys.list_name("open", "popular"), contract.LIMIT_DEFAULT)
    click.echo(f"look at {settings.output / first}: the default request is answered from it")
    click.echo(f"open {settings.output / inspector.PAGE} in a browser: what was built, what was left out and why")


@main.command(cls=Job, name="serve")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes any free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
def serve_command(settings: Config, host: str, port: int) -> None:
    """Serve the output folder through the very router that is deployed, until Ctrl-C."""

    def announce(address: str) -> None:
        click.echo(f"serving {settings.output}/ at {address}")
        click.echo(f"try: curl '{address}?limit=5'")

    preview.serve(settings, host=host, port=port, announce=announce)
    click.echo("stopped")


def _take_down_published(settings: Config, told: Callable[[Blocked, Callable[[], Slugs]], Blocked]) -> Blocked:
    target = open_store(settings)
    with publish.answering(target):
        words = told(blocked.read(target), lambda: takedown.published_slugs(target, settings))
    with shown("publishing") as bar:
        tally = takedown.from_store(target, settings, words, bar, logs.notice)
    for warning in tally.warnings:
        LOG.warning("%s", warning)
    logs.notice(
        f"{target.name}: holds none of the markets that are kept out "
        f"({tally.deleted} objects deleted, {tally.uploaded} replaced)"
    )
    return words


def _build(settings: Config, clock: build.Clock, allowed: build.Allowed) -> None:
    with shown("rendering") as bar:
        report = build.build(settings, clock, allowed=allowed, progress=bar)
    _tell(report)
    click.echo(report.summary())


def _clock(as_of: datetime | None) -> build.Clock:
    return build.Clock(as_of or now(), is_set=as_of is not None)


def _publish(
    folder: Output,
    target: Store,
    settings: Config,
    options: dict[str, bool],
    barred: frozenset[str] | None = None,
) -> None:
    allowed = Permissions(
        options["allow_shrink"], options["allow_older"], options["allow_other_site"], options["allow_cost"]
    )
    wanted = publish.Options(allowed, options["dry_run"], options["verify"], options["purge_retired"])
    publication = publish.Publication(folder, target, settings, build.shape(settings), wanted, barred)

    def show(plan: Plan) -> None:
        for line in plan.lines() if wanted.is_dry else ():
            click.echo(line)

    begin = time.monotonic()
    try:
        with shown("publishing") as bar:
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
        note(outcome.samples())
    click.echo(("dry run, nothing was changed; it would have " if wanted.is_dry else "") + outcome.summary())


def _tell(report: Report) -> None:
    note(report.samples())
    for name, seconds in report.stages.items():
        logs.stage(name, seconds, **report.counts(name))
    rejections = list(report.quarantine)
    for row, count in rejections[:_NAMED_ON_STDERR]:
        times = f" ({count} rows)" if count > 1 else ""
        LOG.warning("left out of %s: %s: %s%s", row.relation, row.key, row.reason, times)
    if len(rejections) > _NAMED_ON_STDERR:
        LOG.warning("and %d more, all in %s", len(rejections) - _NAMED_ON_STDERR, output.REPORT)
    for remark in report.remarks[:_NAMED_ON_STDERR]:
        LOG.warning("%s", remark)
    if len(report.remarks) > _NAMED_ON_STDERR:
        LOG.warning("and %d more such remarks, all in %s", len(report.remarks) - _NAMED_ON_STDERR, output.REPORT)
    for market_id in report.withdrawn[:_NAMED_ON_STDERR]:
        LOG.warning("withdrawn: market %s is not public any more", market_id)
