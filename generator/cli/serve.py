"""`serve`: the API from the output folder, on this machine."""

import shlex

import click

from generator.cli import logs
from generator.cli.command import Subcommand
from generator.cli.parameters import host_option, port_option
from generator.config.settings import Config
from generator.config.shape import following
from generator.edge.local import server
from generator.tree import manifest_file


@click.command(cls=Subcommand, name="serve")
@port_option
@host_option
def serve_command(settings: Config, host: str, port: int) -> None:
    """Serve the output folder through the router that is deployed, until Ctrl-C."""
    serve(settings, host, port)


def serve(settings: Config, host: str, port: int) -> None:
    """Serve until Ctrl-C, and say at which address."""

    def announce(address: str) -> None:
        logs.result(f"serving {settings.output}/ at {address}")
        logs.result(f"try: curl {shlex.quote(f'{address}?limit=5')}")

    settings = following(settings, manifest_file.recorded_settings(settings.output))
    server.serve(settings, host=host, port=port, announce=announce)
    logs.result("stopped")
