"""`takedown`: removes markets from everything published, and blocks them in later builds."""

import click

from generator.api import times
from generator.builder import after_takedown
from generator.cli import logs
from generator.cli.command import Subcommand, now
from generator.cli.logs import LOG
from generator.cli.parameters import Reference, Slug
from generator.cli.progress_bar import progress_bar
from generator.cli.target import open_target
from generator.config.settings import Config
from generator.publish import takedown
from generator.publish.decisions import Change, Request
from generator.publish.protocol import Target
from generator.tree.blocklist import BlockedList
from generator.wording import are, counted


@click.command(cls=Subcommand, name="takedown")
@click.argument("markets", metavar="REF...", nargs=-1, type=Reference())
@click.option("--undo", is_flag=True, help="Let the markets come back with the next build.")
def takedown_command(settings: Config, markets: tuple[str, ...], *, undo: bool) -> None:
    """Remove markets from everything that is published, now, and block them in later builds.

    REF is a market's id, or its slug where slugs are published. Without REF, list the blocked markets.
    """
    request = Request(
        ids=tuple(market for market in markets if not isinstance(market, Slug)),
        slugs=tuple(market for market in markets if isinstance(market, Slug)),
        is_blocked=not undo,
        at=times.instant(now()),
    )
    blocked = _take_down(settings, request)
    for market_id in sorted(blocked.ids()):
        logs.result(f"{market_id} blocked since {blocked.markets[market_id].at}")
    count = len(blocked.ids())
    logs.result(f"{counted(count, 'market')} {are(count)} blocked")


def _take_down(settings: Config, request: Request) -> BlockedList:
    """Carry out the request in the store, if there is one, and in the output folder; say what it means."""
    target = Target.of(open_target(settings), settings) if settings.publish.target else None
    try:
        known = takedown.known(settings, target, request)
    except Exception:
        if target:
            takedown.block(target.store, request)
        raise
    request = request.resolved(known)
    change = _take_down_everywhere(target, settings, request) if target else _take_down_built(settings, request)
    for sentence in request.consequences(change, has_target=target is not None):
        logs.notice(sentence)
    for sentence in request.doubts(change, known):
        LOG.warning("%s", sentence)
    return change.after


def _take_down_everywhere(target: Target, settings: Config, request: Request) -> Change:
    change = takedown.blocked_by_store(target.store, request)
    try:
        _take_down_published(target, change.after, request.ids)
    except Exception:
        # Whatever is wrong with the store, the folder must not publish the markets again.
        if settings.output.exists():
            _take_down_built(settings, request, change)
        raise
    return _take_down_built(settings, request, change) if settings.output.exists() else change


def _take_down_built(settings: Config, request: Request, stored: Change | None = None) -> Change:
    change = takedown.from_folder(settings, request, logs.notice, stored)
    logs.notice(f"{settings.output}: holds no blocked markets")
    after_takedown.remake_page(settings, logs.notice)
    return change


def _take_down_published(target: Target, blocked: BlockedList, named: tuple[str, ...]) -> None:
    with progress_bar("publishing") as bar:
        tally = takedown.from_store(target, blocked, named, bar, logs.notice)
    for warning in tally.warnings:
        LOG.warning("%s", warning)
    deleted = counted(tally.deleted, "object")
    logs.notice(f"{target.store.name}: holds no blocked markets ({deleted} deleted, {tally.uploaded} replaced)")
