"""`serve`: the API from the output folder, on this machine."""

import shlex

import click

from generator.cli import logs
from generator.cli.command import Subcommand
from generator.config.settings import Config
from generator.edge.local import server


@click.command(cls=Subcommand, name="serve")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="0 picks a free port.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
def serve_command(settings: Config, host: str, port: int) -> None:
    """Serve the output folder through the router that is deployed, until Ctrl-C."""

    def announce(address: str) -> None:
        logs.result(f"serving {settings.output}/ at {address}")
        logs.result(f"try: curl {shlex.quote(f'{address}?limit=5')}")

    server.serve(settings, host=host, port=port, announce=announce)
    logs.result("stopped")
