"""`takedown`: removes markets from everything that is published."""

from collections.abc import Callable

import click

from generator.api import times
from generator.cli import logs
from generator.cli.command import Command, now
from generator.cli.logs import LOG
from generator.cli.parameters import Reference
from generator.cli.progress_bar import progress_bar
from generator.config.settings import Config
from generator.publish import blocklist, takedown
from generator.publish.run import answering
from generator.publish.stores.factory import open_store
from generator.tree.blocklist import BlockedList
from generator.tree.manifest import Slugs


@click.command(cls=Command, name="takedown")
@click.argument("markets", metavar="REF...", nargs=-1, type=Reference())
@click.option("--undo", is_flag=True, help="Let the markets come back with the next build.")
def takedown_command(settings: Config, markets: tuple[str, ...], *, undo: bool) -> None:
    """Remove markets from everything that is published, now, and keep them out of later builds.

    REF is a market's id, or its slug where slugs are published. Without any, tell which markets are kept out.
    """
    instant = times.instant(now())

    def told(words: BlockedList, slugs: Callable[[], Slugs]) -> BlockedList:
        ids = takedown.named(markets, slugs)
        return words.decided(ids, is_blocked=not undo, now=instant) if ids else words

    words = _take_down_published(settings, told) if settings.publish.target else None
    if words is None or settings.output.exists():
        # The store's last word is the folder's, too.
        told_last = told if words is None else lambda held, _: held.merged(words)
        words = takedown.from_folder(settings, told_last, logs.notice)
        logs.notice(f"{settings.output}: holds none of the markets that are kept out")
    for market_id in sorted(words.ids()):
        click.echo(f"{market_id} kept out since {words.markets[market_id].at}")
    click.echo(f"{len(words.ids())} markets are kept out of every build")


def _take_down_published(
    settings: Config, told: Callable[[BlockedList, Callable[[], Slugs]], BlockedList]
) -> BlockedList:
    target = open_store(settings)
    with answering(target):
        words = told(blocklist.read(target), lambda: takedown.published_slugs(target, settings))
    with progress_bar("publishing") as bar:
        tally = takedown.from_store(target, settings, words, bar, logs.notice)
    for warning in tally.warnings:
        LOG.warning("%s", warning)
    logs.notice(
        f"{target.name}: holds none of the markets that are kept out "
        f"({tally.deleted} objects deleted, {tally.uploaded} replaced)"
    )
    return words
