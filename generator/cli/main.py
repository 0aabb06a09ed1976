"""The commands. Results go to stdout, logs and progress to stderr.

A command's module is imported when the command is used: a build needs no web server, and `--version` no database.
"""

import gc
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

import click

from generator import __version__

#: Where each command is; it is called `<name>_command` there.
_PLACES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "build": "build",
        "check": "check",
        "demo": "build",
        "plan": "plan",
        "publish": "publish",
        "rebuild": "publish",
        "serve": "serve",
        "takedown": "takedown",
    }
)


class Commands(click.Group):
    """A group that looks for its commands when it is asked for them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click has it
        """The names of all commands."""
        return list(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as click has it
        """The command of that name."""
        if cmd_name not in _PLACES:
            return None
        # What modules are made of stays to the end: looking for garbage in it costs a tenth of the start, and again
        # at every later collection, which would also copy it into every worker.
        gc.disable()
        module: Any = import_module(f"generator.cli.{_PLACES[cmd_name]}")
        gc.freeze()
        gc.enable()
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="public-markets")
def main() -> None:
    """Render a prediction market's public read API as static files."""
