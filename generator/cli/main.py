"""The commands. Results go to stdout, logs and progress to stderr.

A command's module is imported when the command is used: a build needs no web server, `--version` no database.
"""

import gc
import io
import platform
import sys
from importlib import import_module
from typing import Any, Final

import click

from generator import __version__, filesystem
from generator.commit import this_commit

#: The commands. The module of each has its name, and defines it as `<name>_command`.
_COMMANDS: Final = (
    "build", "check", "demo", "docs", "find", "hold", "init", "plan", "publish", "rebuild", "serve", "status",
    "takedown", "verify",
)  # fmt: skip


class Commands(click.Group):
    """A group that imports a command only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all commands."""
        return [*_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of that name."""
        if cmd_name not in _COMMANDS:
            return None
        name = f"generator.cli.{cmd_name}"
        if name not in sys.modules:
            # Modules live to the end. Collecting garbage among their objects costs a tenth of the start-up time, again
            # at every later collection, and copies their memory into every worker.
            gc.disable()
            import_module(name)
            gc.freeze()
            gc.enable()
        module: Any = sys.modules[name]
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names; raises UsageError with the one that another word resembles."""
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            import difflib  # noqa: PLC0415 - only who mistypes waits for it

            similar = difflib.get_close_matches(name, _COMMANDS, n=1)
            ctx.fail(f"no such command {name!r}" + (f"; did you mean {similar[0]}?" if similar else ""))
        return super().resolve_command(ctx, args)


def _tell_version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:  # noqa: FBT001 - click's signature
    if is_asked and not context.resilient_parsing:
        click.echo(
            f"public-markets {__version__}, commit {this_commit() or 'unknown'}, Python {platform.python_version()}"
        )
        context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_tell_version,
    help="Show version, commit and Python, and exit.",
)  # fmt: skip
def main() -> None:
    """Render a prediction market's public read API as static files."""
    filesystem.let_others_read()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack letters that questions have
            stream.reconfigure(errors="backslashreplace")
