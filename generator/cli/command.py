"""What all commands share: options, exit codes, metrics of the run. The only module that reads the clock."""

import os
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from generator.cli import logs
from generator.cli.logs import LOG
from generator.config import demo, env_file, loader, passwords
from generator.config.settings import variable
from generator.errors import PublicMarketsError
from generator.metrics import Samples, sample

_URL: Final = "source.url"
_ENV_FILES: Final = "public_markets.env_files"
#: Options that earlier versions had, and what to write instead.
_GONE: Final = {"--metrics": "write --set metrics=PATH"}
_SAMPLES: Final = "public_markets.samples"


def now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def env_files() -> tuple[Path, ...]:
    """The files of variables that the running command has read."""
    found: tuple[Path, ...] = click.get_current_context().meta[_ENV_FILES]
    return found


class Subcommand(click.Command):
    """A command with the common options. An error of ours ends it with one sentence and its exit code.

    One that `can_do_without_file` takes a missing config.yaml for an empty one, unless `--config` names it. In the
    folder of a demo, all do.
    """

    def __init__(self, *args: Any, can_do_without_file: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._can_do_without_file = can_do_without_file
        self.params += [
            click.Option(
                ["--config", "config_path"], type=click.Path(path_type=Path), default=Path("config.yaml"),
                show_default=True, help="The configuration file.",
            ),
            click.Option(
                ["--env-file", "env_files"], type=click.Path(path_type=Path), multiple=True, metavar="FILE",
                help="Read environment variables from a file, as systemd does; they replace those that are set.",
            ),
            click.Option(["--set", "overrides"], multiple=True, metavar="KEY=VALUE", help="Override a setting."),
            click.Option(["-v", "--verbose"], is_flag=True, help="Log every stage, and show tracebacks."),
            click.Option(
                ["--log-format"], type=click.Choice(["text", "json"]), default="text", show_default=True,
                help="Format of logs and results; json writes one object per line.",
            ),
        ]  # fmt: skip

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; report its mistakes in the format it asks for."""
        given = " ".join(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as found:
            error = _explained(found)
            if not re.search(r"(^| )--log-format[= ]json( |$)", given):
                raise error from None
            logs.configure("json", verbose=False)
            logs.failure(error.format_message(), error.exit_code)
            ctx.exit(error.exit_code)

    def invoke(self, ctx: click.Context) -> Any:
        """Load the configuration, run, and turn errors into exit codes."""
        verbose = ctx.params.pop("verbose")
        logs.configure(ctx.params.pop("log_format"), verbose=verbose)
        try:
            self.load_settings(ctx)
            return self.run(ctx)
        except PublicMarketsError as error:
            if verbose:
                LOG.exception("traceback:")
            logs.failure(str(error), error.exit_code)
            ctx.exit(error.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:  # noqa: BLE001 - the last resort
            if verbose:
                LOG.exception("traceback:")
            reason = logs.without_passwords(f"{type(error).__name__}: {error}").splitlines()[0]
            logs.failure(f"{reason}; this is a bug: please report it with the output of -v", 1)
            ctx.exit(1)

    def load_settings(self, ctx: click.Context) -> None:
        """Turn the options about settings into the parameter `settings`."""
        is_named = ctx.get_parameter_source("config_path") != ParameterSource.DEFAULT
        path, overrides = ctx.params.pop("config_path"), ctx.params.pop("overrides")
        files: tuple[Path, ...] = ctx.params.pop("env_files")
        ctx.meta[_ENV_FILES] = files
        for file in files:
            os.environ.update(env_file.load(file))  # all of it: libraries look for credentials there, too
        if not is_named and not path.exists() and (self._can_do_without_file or _is_of_demo()):
            path = Path(os.devnull)
        settings = loader.load(path, overrides=overrides, environ=os.environ)
        logs.hide_passwords(settings)
        _warn_of_passwords(overrides)
        ctx.params["settings"] = settings

    def run(self, ctx: click.Context) -> Any:
        """Run the command itself."""
        return super().invoke(ctx)


def _explained(error: click.UsageError) -> click.UsageError:
    """The error, which says of an option that is gone what to write instead."""
    if isinstance(error, click.NoSuchOption) and error.option_name in _GONE:
        return click.UsageError(f"{error.option_name} is gone; {_GONE[error.option_name]}", error.ctx)
    return error


def _is_of_demo() -> bool:
    """Whether a command in the current folder is about the demo: not if the environment names another database."""
    return demo.is_here() and loader.from_environment(_URL, os.environ) is None


def _warn_of_passwords(overrides: tuple[str, ...]) -> None:
    for override in overrides:
        key, _, value = override.partition("=")
        if key == _URL and passwords.found_in(value):
            LOG.warning(
                "--set %s holds a password, which everybody on this machine can see in `ps`; set %s instead",
                _URL, variable(_URL),
            )  # fmt: skip


class CommandWithoutSettings(Subcommand):
    """A command that needs no settings: it makes some, or knows a site only as its readers do."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [option for option in self.params if option.name not in {"config_path", "env_files", "overrides"}]

    def load_settings(self, ctx: click.Context) -> None:
        """Load none."""


class MeasuredCommand(Subcommand):
    """A command that can write metrics of its run for Prometheus."""

    def run(self, ctx: click.Context) -> Any:
        """Run the command, and write its metrics however it ends."""
        path: Path | None = ctx.params["settings"].metrics
        start, code = time.monotonic(), 1
        try:
            result = super().run(ctx)
            code = 0
        except PublicMarketsError as error:
            code = error.exit_code
            raise
        finally:
            if path:
                self._write_metrics(path, ctx, time.monotonic() - start, code)
        return result

    def _write_metrics(self, path: Path, ctx: click.Context, seconds: float, code: int) -> None:
        # prometheus_client takes a tenth of the start-up time, and most runs write no metrics.
        from generator import metrics_file  # noqa: PLC0415

        command = self.name or ""
        end = now().timestamp()
        samples = {
            sample("last_run_timestamp_seconds", command=command): end,
            sample("last_run_duration_seconds", command=command): seconds,
            sample("last_run_exit_code", command=command): code,
            **ctx.meta.get(_SAMPLES, {}),
        }
        if code == 0:
            samples[sample("last_success_timestamp_seconds", command=command)] = end
        try:
            metrics_file.update(path, samples)
        except OSError as error:
            LOG.warning("metrics: %s: %s; the run itself is over", path, (error.strerror or str(error)).lower())


def add_metrics(samples: Samples) -> None:
    """Write these with the metrics of the run, if it writes any."""
    click.get_current_context().meta.setdefault(_SAMPLES, {}).update(samples)
