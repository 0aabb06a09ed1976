"""What all commands share: options, exit codes, how a time and a market are written, the progress bar.

This is the only place that reads the clock.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from generator import metrics
from generator.api import ids, slugs
from generator.cli import logs
from generator.cli.logs import LOG
from generator.config import loader
from generator.errors import PublicMarketsError
from generator.metrics import sample

_FORM: Final = "public_markets.log_format"
_SAMPLES: Final = "public_markets.samples"


def now() -> datetime:
    """This machine's clock."""
    return datetime.now(UTC)


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


class Reference(click.ParamType[str]):
    """What names a market: its id, a UUID in either case, or its slug."""

    name = "market"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read an id as it is published, in lower case; leave a slug as it is."""
        text = str(value)
        with suppress(ValueError):
            return ids.uuid(text)
        if not slugs.can_be_reference(text):
            self.fail(f"{value!r} is no market's id or slug; write a UUID, as the market's page has it", param, ctx)
        return text


as_of_option = click.option(
    "--as-of", type=Instant(), default=None, metavar="TIME", help="The instant to build for, instead of now."
)


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
            click.Option(
                ["--log-format"], type=click.Choice(["text", "json"]), default="text", show_default=True,
                help="How to write to stderr; json is a line per stage.",
            ),
        ]  # fmt: skip

    def invoke(self, ctx: click.Context) -> Any:
        """Load the configuration, run, and turn errors into exit codes."""
        verbose, form = ctx.params.pop("verbose"), ctx.params.pop("log_format")
        ctx.meta[_FORM] = form
        logs.configure(form, verbose=verbose)
        path, overrides = ctx.params.pop("config_path"), ctx.params.pop("overrides")
        try:
            ctx.params["settings"] = loader.load(path, overrides=self.overrides(ctx, overrides), environ=os.environ)
            return self.run(ctx)
        except PublicMarketsError as error:
            if verbose:
                LOG.exception("where it happened:")
            _complain(form, str(error), error.exit_code)
            ctx.exit(error.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if verbose:
                raise
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            _complain(form, f"{reason}; this is a bug: please report it with what -v prints", 1)
            ctx.exit(1)

    def overrides(self, ctx: click.Context, given: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002 - for subclasses
        """The settings that the command line overrides."""
        return given

    def run(self, ctx: click.Context) -> Any:
        """Do what the command is for."""
        return super().invoke(ctx)


class MeasuredJob(Job):
    """A command whose last run Prometheus can be told of."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(
            click.Option(["--metrics", "metrics_path"], metavar="PATH", help="Like --set metrics=PATH."),
        )

    def overrides(self, ctx: click.Context, given: tuple[str, ...]) -> tuple[str, ...]:
        """With the option that has its own name."""
        path = ctx.params.pop("metrics_path")
        return given if path is None else (*given, f"metrics={path}")

    def run(self, ctx: click.Context) -> Any:
        """Run, and note how it went."""
        settings = ctx.params["settings"]
        begin, code = time.monotonic(), 1
        try:
            result = super().run(ctx)
            code = 0
        except PublicMarketsError as error:
            code = error.exit_code
            raise
        finally:
            if settings.metrics:
                self._note_run(settings.metrics, ctx, time.monotonic() - begin, code)
        return result

    def _note_run(self, path: Path, ctx: click.Context, seconds: float, code: int) -> None:
        command = self.name or ""
        at = now().timestamp()
        samples = {
            sample("last_run_timestamp_seconds", command=command): at,
            sample("last_run_duration_seconds", command=command): seconds,
            sample("last_run_exit_code", command=command): code,
            **ctx.meta.get(_SAMPLES, {}),
        }
        if code == 0:
            samples[sample("last_success_timestamp_seconds", command=command)] = at
        try:
            metrics.update(path, samples)
        except OSError as error:
            LOG.warning("metrics: %s: %s; the run itself is over", path, (error.strerror or str(error)).lower())


def note(samples: metrics.Samples) -> None:
    """Have Prometheus told of these, should it want to know."""
    click.get_current_context().meta.setdefault(_SAMPLES, {}).update(samples)


def _complain(form: logs.Form, sentence: str, code: int) -> None:
    if form == "json":
        LOG.error("%s", sentence, extra={"fields": {"exit_code": code}})
    else:
        click.echo(f"error: {sentence}", err=True)


class Bar:
    """A progress bar, on a terminal only; until the number of steps is known, the name of what is going on."""

    def __init__(self, label: str, *, is_visible: bool) -> None:
        self._label = label
        self._is_visible = is_visible
        self._bar: Any = None
        if is_visible:
            click.echo(f"{label} …", nl=False, err=True)

    def start(self, steps: int) -> None:
        """Show an empty bar of so many steps."""
        if self._is_visible:
            self._bar = click.progressbar(length=steps, label=self._label, file=sys.stderr)
            self._bar.render_progress()

    def advance(self) -> None:
        """Move on by one step."""
        if self._bar:
            self._bar.update(1)

    def finish(self) -> None:
        """Leave the line to what comes next."""
        if self._bar:
            self._bar.render_finish()
        elif self._is_visible:
            click.echo("\r\033[K", nl=False, err=True)


@contextmanager
def shown(label: str) -> Iterator[Bar]:
    """A bar for as long as the work lasts."""
    is_visible = sys.stderr.isatty() and click.get_current_context().meta.get(_FORM) != "json"
    bar = Bar(label, is_visible=is_visible)
    try:
        yield bar
    finally:
        bar.finish()
