"""`find`: which published market or question is meant."""

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

#: The most markets that are shown, and the most questions.
_SHOWN = 50


@click.command(cls=Subcommand, name="find")
@click.argument("words", metavar="WORDS|ADDRESS|ID...", nargs=-1, required=True, type=Reference())
def find_command(settings: Config, words: tuple[str, ...]) -> None:
    """Find published markets and questions: by words, an address, an id or its first 8 characters, a slug or a key.

    It searches the target, or the output folder if publish.target is not set; never the database.
    """
    text = " ".join(words)
    target = Target.of(open_target(settings), settings) if settings.publish.target else None
    found = look_up(settings, target, text)
    if not (found.markets or found.questions):
        raise PublicMarketsError(
            f"{printable(text)}: no market or question in {found.place} has this id, slug, key or address, "
            "or all these words in its text; write fewer words, or beginnings of them"
        )
    for question in found.questions[:_SHOWN]:
        slug = {"slug": question.slug} if question.slug else {}
        line = f"{question.id}  question   {printable(question.title)} ({counted(question.size, 'market')})"
        logs.result(line, id=question.id, kind=question.kind, title=question.title, size=question.size, **slug)
    for market in found.markets[:_SHOWN]:
        slug = {"slug": market.slug} if market.slug else {}
        line = f"{market.id}  {market.status:<9}  {printable(market.question)}"
        logs.result(line, id=market.id, status=market.status, question=market.question, **slug)
    more = max(len(found.markets) - _SHOWN, 0) + max(len(found.questions) - _SHOWN, 0)
    questions = f" and {counted(len(found.questions), 'question')}" if found.questions else ""
    logs.result(
        f"{counted(len(found.markets), 'market')}{questions} in {found.place}, as of {found.as_of}"
        + (f"; {more} more {are(more)} not shown: add words" if more > 0 else "")
    )
