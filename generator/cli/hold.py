"""`hold`: stops builds from being published, from every machine, until it is released."""

import getpass
import os
import socket

import click

from generator.api import forms
from generator.cli import logs, status_file
from generator.cli.command import Subcommand, now
from generator.cli.target import open_target
from generator.config.settings import Config
from generator.publish import blocklist as store_blocklist
from generator.publish.blocklist import HoldChange
from generator.tree import blocklist


class HoldReason(click.ParamType[str]):
    """Why builds are not to be published, in one line."""

    name = "reason"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the line without blanks around it."""
        try:
            return blocklist.line(str(value))
        except ValueError as error:
            self.fail(f"{error!s}; say in one line of at most {blocklist.LONGEST_LINE} characters why", param, ctx)


@click.command(cls=Subcommand, name="hold")
@click.argument("reason", required=False, type=HoldReason())
@click.option("--release", is_flag=True, help="Let builds be published again.")
def hold_command(settings: Config, reason: str | None, *, release: bool) -> None:
    """Stop builds from being published, from every machine; takedowns pass.

    Without publish.target, stop builds in the output folder. Without REASON, say whether there is a hold.
    """
    if reason and release:
        raise click.UsageError("give a REASON or --release, not both")
    with status_file.left(settings, "hold") as left:
        hold = _hold_here if settings.publish.target is None else _hold_there
        left.found(hold(settings, reason, release=release).after)


def _hold_there(settings: Config, reason: str | None, *, release: bool) -> HoldChange:
    """Set, release or tell the hold of the target."""
    store = open_target(settings)
    if release:
        change = store_blocklist.release_hold(store, logs.notice)
        _tell_released(store.name, change, "released, builds can be published again")
    elif reason:
        change = store_blocklist.set_hold(store, reason, _who(), logs.notice)
        _tell_held(store.name, change)
    else:
        change = store_blocklist.held(store)
        _tell(store.name, change)
    return change


def _hold_here(settings: Config, reason: str | None, *, release: bool) -> HoldChange:
    """The same for the output folder."""
    root = settings.output
    if release:
        change = store_blocklist.release_hold_here(root, logs.notice)
        _tell_released(str(root), change, "released, builds can be made again")
    elif reason:
        change = store_blocklist.set_hold_here(root, reason, _who(), forms.instant(now()), logs.notice)
        _tell_held(str(root), change)
    else:
        change = store_blocklist.held_here(root)
        _tell(str(root), change)
    return change


def _tell_held(name: str, change: HoldChange) -> None:
    if change.before and change.before != change.after:
        logs.notice(f"{name}: this replaces an earlier hold: {change.before}")
    _tell(name, change)


def _tell_released(name: str, change: HoldChange, released: str) -> None:
    if change.before is None:
        _tell(name, change)
        return
    logs.result(f"{name}: {released}; it was {change.before}", on_hold=False)


def _tell(name: str, change: HoldChange) -> None:
    """Say whether the target is on hold, and with what build."""
    hold = change.after
    if hold is None:
        logs.result(f"{name}: is not on hold", on_hold=False)
        return
    as_of = "" if change.is_first else change.as_of
    known = f"what is published as of {as_of} stays" if as_of else "what is published stays"
    stays = "the first publish did not end; what it put stays" if change.is_first else known
    fields = {"who": hold.who, "since": hold.since, "reason": hold.reason, "as_of": as_of}
    logs.result(f"{name}: {hold}; {stays}", on_hold=True, **fields)


def _who() -> str:
    """The user and the machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in a container
        user = f"user {os.getuid()}"
    name = f"{user}@{socket.gethostname()}"
    return "".join(sign if sign.isprintable() else "?" for sign in name).strip()[: blocklist.LONGEST_LINE]
