"""`find`: which published market is meant."""

import click

from generator.cli import logs
from generator.cli.command import Subcommand
from generator.cli.parameters import Reference
from generator.cli.target import open_target
from generator.config.settings import Config
from generator.errors import PublicMarketsError
from generator.markets.quarantine import printable
from generator.publish.lease import Target
from generator.publish.lookup import look_up
from generator.wording import are, counted

#: The most markets that are shown.
_SHOWN = 50


@click.command(cls=Subcommand, name="find")
@click.argument("words", metavar="WORDS|ADDRESS|ID...", nargs=-1, required=True, type=Reference())
def find_command(settings: Config, words: tuple[str, ...]) -> None:
    """Find published markets: by words of the question, an address, an id or its first 8 characters, a slug or a key.

    It searches the target, or the output folder if publish.target is not set; never the database.
    """
    text = " ".join(words)
    target = Target.of(open_target(settings), settings) if settings.publish.target else None
    found = look_up(settings, target, text)
    if not found.markets:
        raise PublicMarketsError(
            f"{printable(text)}: no market in {found.place} has this id, slug, key or address, "
            "or all these words in its question; write fewer words, or beginnings of them"
        )
    for market in found.markets[:_SHOWN]:
        slug = {"slug": market.slug} if market.slug else {}
        line = f"{market.id}  {market.status:<9}  {printable(market.question)}"
        logs.result(line, id=market.id, status=market.status, question=market.question, **slug)
    more = len(found.markets) - _SHOWN
    logs.result(
        f"{counted(len(found.markets), 'market')} in {found.place}, as of {found.as_of}"
        + (f"; {more} more {are(more)} not shown: add words" if more > 0 else "")
    )
