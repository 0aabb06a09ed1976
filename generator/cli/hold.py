"""`hold`: stops builds from being published, from every machine, until it is released."""

import getpass
import os
import socket

import click

from generator.cli import logs
from generator.cli.command import Subcommand
from generator.cli.parameters import open_target
from generator.config.settings import Config
from generator.publish import hold as holds
from generator.publish import record
from generator.publish.hold import HoldChange


class HoldReason(click.ParamType[str]):
    """Why builds are not to be published, in one line."""

    name = "reason"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the line without blanks around it."""
        try:
            return record.line(str(value))
        except ValueError as error:
            self.fail(f"{error!s}; say in one line of at most {record.LONGEST_LINE} characters why", param, ctx)


@click.command(cls=Subcommand, name="hold")
@click.argument("reason", required=False, type=HoldReason())
@click.option("--release", is_flag=True, help="Let builds be published again.")
def hold_command(settings: Config, reason: str | None, *, release: bool) -> None:
    """Stop builds from being published, from every machine; takedowns pass.

    Without REASON, say whether the target is on hold.
    """
    if reason and release:
        raise click.UsageError("give a REASON or --release, not both")
    if settings.publish.target is None and not reason and not release:
        logs.result("publish.target is not set, so nothing is published, and nothing is on hold", on_hold=False)
        return
    store = open_target(settings)
    if release:
        _tell_released(store.name, holds.end(store, logs.notice))
    elif reason:
        _tell_held(store.name, holds.begin(store, reason, _who(), logs.notice))
    else:
        _tell(store.name, holds.current(store))


def _tell_held(name: str, change: HoldChange) -> None:
    if change.before and change.before != change.after:
        logs.notice(f"{name}: this replaces an earlier hold: {change.before}")
    _tell(name, change)


def _tell_released(name: str, change: HoldChange) -> None:
    if change.before is None:
        _tell(name, change)
        return
    logs.result(f"{name}: released, builds can be published again; it was {change.before}", on_hold=False)


def _tell(name: str, change: HoldChange) -> None:
    """Say whether the target is on hold, and with what build."""
    hold = change.after
    if hold is None:
        logs.result(f"{name}: is not on hold", on_hold=False)
        return
    as_of = "" if change.is_first else change.as_of
    stays = f"what is published as of {as_of} stays" if as_of else "the first publish did not end; what it put stays"
    fields = {"who": hold.who, "since": hold.since, "reason": hold.reason, "as_of": as_of}
    logs.result(f"{name}: {hold}; {stays}", on_hold=True, **fields)


def _who() -> str:
    """The user and the machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in a container
        user = f"user {os.getuid()}"
    name = f"{user}@{socket.gethostname()}"
    return "".join(sign if sign.isprintable() else "?" for sign in name).strip()[: record.LONGEST_LINE]
