"""`docs`: where the docs of this installation lie."""

import click

from generator import documentation
from generator.cli import logs
from generator.cli.command import CommandWithoutSettings


@click.command(cls=CommandWithoutSettings, name="docs")
def docs_command() -> None:
    """Say where the docs of this installation lie."""
    logs.result(str(documentation.folder()))
