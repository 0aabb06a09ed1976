"""`status`: what is published and how old it is, when the next run is due, and what needs a person."""

import json

import click

from generator.api import forms
from generator.cli import logs, status_file
from generator.cli.command import Subcommand, now
from generator.config.settings import Config
from generator.publish import standing as of_target
from generator.site import standing
from generator.tree.status import Status


@click.command(cls=Subcommand, name="status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def status_command(ctx: click.Context, settings: Config, *, as_json: bool) -> None:
    """Say what is published and how old it is, when the next run is due, and what needs a person.

    Exit code 0 if all is well, 1 if something needs a person, 5 if the target cannot be read. It changes nothing.
    """
    status = _status(settings)
    if as_json:
        click.echo(json.dumps(status.content(), indent=1, ensure_ascii=False))
    else:
        for line in status.lines():
            logs.result(line)
        for line in status.verdict():
            logs.result(line)
    ctx.exit(status.exit_code)


def _status(settings: Config) -> Status:
    here, published = standing.in_folder(settings, is_brief=False)
    there = of_target.at_target(settings) if settings.publish.target else None
    remembered = status_file.remembered(settings)
    hold = here.hold
    if there:
        # Nobody knows whether the target is still on hold; the folder knows whether it was.
        hold = remembered.hold if there.place.unread else there.hold
    return Status(
        schedule=settings.schedule,
        now=there.now if there and there.now else forms.instant(now()),
        folder=here.place,
        target=there.place if there else None,
        published_before=published,
        hold=hold,
        noted=status_file.noted(settings),
        last_run=remembered.last_run,
        failed=remembered.failed,
    )
