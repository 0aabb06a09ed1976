"""The commands. Results go to stdout, logs and progress to stderr; this is the only place that reads the clock."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from generator import __version__, build, check, config, demo, inspector, output, preview, source
from generator.config import Config
from generator.errors import PublicMarketsError, SourceError
from generator.quarantine import Quarantine
from generator.report import Report

_LOG: Final = logging.getLogger("public_markets")
#: So many quarantined rows are named on stderr; the report names them all.
_NAMED_ON_STDERR: Final = 20


class Instant(click.ParamType[datetime]):
    """A time, RFC 3339; without an offset it is UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read the time; years at the very ends of the calendar leave no room for a window before or after."""
        try:
            moment = datetime.fromisoformat(str(value).upper())
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time; write it like 2026-01-31T12:00:00Z", param, ctx)
        if not 1000 <= moment.year <= 9998:  # noqa: PLR2004 - four digits, as in the sentence below
            self.fail(f"{value!r} is not between the years 1000 and 9998", param, ctx)
        return moment


class Job(click.Command):
    """A command with the options all share; the errors we raise end it with one sentence and their exit code."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            click.Option(
                ["--config", "config_path"], type=click.Path(path_type=Path), default=Path("config.yaml"),
                show_default=True, help="The configuration file.",
            ),
            click.Option(["--set", "overrides"], multiple=True, metavar="KEY=VALUE", help="Override a setting."),
            click.Option(["-v", "--verbose"], is_flag=True, help="Log every stage, and show tracebacks."),
        ]  # fmt: skip

    def invoke(self, ctx: click.Context) -> Any:
        """Load the configuration, run, and turn errors into exit codes."""
        verbose = ctx.params.pop("verbose")
        level = logging.INFO if verbose else logging.WARNING
        logging.basicConfig(stream=sys.stderr, format="%(levelname)s: %(message)s", level=level, force=True)
        path, overrides = ctx.params.pop("config_path"), ctx.params.pop("overrides")
        try:
            ctx.params["settings"] = config.load(path, overrides=overrides, environ=os.environ)
            return super().invoke(ctx)
        except PublicMarketsError as error:
            if verbose:
                _LOG.exception("where it happened:")
            click.echo(f"error: {error}", err=True)
            ctx.exit(error.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if verbose:
                raise
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            click.echo(f"error: {reason}; this is a bug: please report it with what -v prints", err=True)
            ctx.exit(1)


class Bar:
    """A progress bar, on a terminal only."""

    def __init__(self) -> None:
        self._bar: Any = None

    def start(self, steps: int) -> None:
        """Show an empty bar of so many steps."""
        if sys.stderr.isatty():
            self._bar = click.progressbar(length=steps, label="rendering", file=sys.stderr)
            self._bar.render_progress()

    def advance(self) -> None:
        """Move on by one step."""
        if self._bar:
            self._bar.update(1)

    def finish(self) -> None:
        """Leave the line to what comes next."""
        if self._bar:
            self._bar.render_finish()


@contextmanager
def _bar() -> Iterator[Bar]:
    bar = Bar()
    try:
        yield bar
    finally:
        bar.finish()


as_of_option = click.option(
    "--as-of", type=Instant(), default=None, metavar="TIME", help="The instant to build for, instead of now."
)
guard_options = (
    click.option("--allow-shrink", is_flag=True, help="Accept the loss of more markets than guards.max_shrink."),
    click.option("--allow-invalid", is_flag=True, help="Accept more bad rows than guards.max_invalid."),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="public-markets")
def main() -> None:
    """Render a prediction market's public read API as static files."""


@main.command(cls=Job, name="check")
def check_command(settings: Config) -> None:
    """Tell whether a build can work, and everything that keeps it from working."""
    with source.reading(settings, Quarantine()) as reading:
        findings = check.findings(reading.columns, reading.refusal)
    for finding in findings:
        click.echo(finding)
    if findings:
        raise SourceError(f"{source.describe(settings)}: {len(findings)} findings; mend them, then check again")
    click.echo(f"{source.describe(settings)}: all relations and columns are there; `public-markets build` can run")


@main.command(cls=Job, name="build")
@as_of_option
@guard_options[0]
@guard_options[1]
def build_command(settings: Config, as_of: datetime | None, *, allow_shrink: bool, allow_invalid: bool) -> None:
    """Bring the output folder to the state of the database."""
    _build(settings, as_of or datetime.now(UTC), build.Allowed(shrink=allow_shrink, invalid=allow_invalid))


@main.command(cls=Job, name="demo")
@as_of_option
@click.option("--markets", type=click.IntRange(1), default=400, show_default=True, help="How many markets to make up.")
def demo_command(settings: Config, as_of: datetime | None, markets: int) -> None:
    """Make up a lifelike database if there is none yet, and build it."""
    moment = as_of or datetime.now(UTC)
    path = source.sqlite_path(settings)
    if path is None:
        raise SourceError(
            f"demo makes SQLite databases, not {source.describe(settings)}; --set source.url=sqlite:///demo.db"
        )
    if path.exists():
        click.echo(f"{path} is there already; delete it to get a new one", err=True)
    else:
        demo.seed(path, as_of=moment, markets=markets)
        click.echo(f"made up {markets} markets in {path}", err=True)
    _build(settings, moment, build.Allowed(shrink=False, invalid=False))
    click.echo(f"look at {settings.output / 'v1'}: public/markets/lists/open/popular/first/20.json is the first page")
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


def _build(settings: Config, as_of: datetime, allowed: build.Allowed) -> None:
    with _bar() as bar:
        report = build.build(settings, as_of, allowed=allowed, progress=bar)
    _tell(report)
    click.echo(report.summary())


def _tell(report: Report) -> None:
    for name, seconds in report.stages.items():
        _LOG.info("stage=%s duration_ms=%d", name, seconds * 1000)
    rejections = list(report.quarantine)
    for row, count in rejections[:_NAMED_ON_STDERR]:
        times = f" ({count} rows)" if count > 1 else ""
        _LOG.warning("left out of %s: %s: %s%s", row.relation, row.key, row.reason, times)
    if len(rejections) > _NAMED_ON_STDERR:
        _LOG.warning("and %d more, all in %s", len(rejections) - _NAMED_ON_STDERR, output.REPORT)
    for market_id in report.withdrawn[:_NAMED_ON_STDERR]:
        _LOG.warning("withdrawn: market %s is not public any more", market_id)
