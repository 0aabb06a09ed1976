"""What all commands share: options, exit codes, how a time and a market are written, the progress bar."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from generator import config, rows, slugs
from generator.errors import PublicMarketsError

LOG: Final = logging.getLogger("public_markets")


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
            return rows.uuid(text)
        if not slugs.can_be_reference(text):
            self.fail(f"{value!r} is no market's id or slug; write a UUID, as the market's page has it", param, ctx)
        return text


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
                LOG.exception("where it happened:")
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

    def __init__(self, label: str) -> None:
        self._label = label
        self._bar: Any = None

    def start(self, steps: int) -> None:
        """Show an empty bar of so many steps."""
        if sys.stderr.isatty():
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


@contextmanager
def shown(label: str) -> Iterator[Bar]:
    """A bar for as long as the work lasts."""
    bar = Bar(label)
    try:
        yield bar
    finally:
        bar.finish()
