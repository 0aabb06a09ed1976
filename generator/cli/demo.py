"""The `demo` command: made-up markets and their build, and what of it to look at first."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Any, Final

import click

from generator import documentation
from generator.api import contract, keys
from generator.builder.guards import BuildOverrides
from generator.cli import logs, status_file
from generator.cli.build import built, clock, log_report, log_stages, tell_built
from generator.cli.command import Subcommand
from generator.cli.parameters import as_of_option, host_option, port_option
from generator.cli.progress_bar import progress_bar
from generator.config import demo
from generator.config.settings import Config
from generator.demo.database import seed
from generator.errors import SourceError
from generator.source.address import display_url, sqlite_path
from generator.tree import files
from generator.tree.folder import read_only
from generator.tree.generation import Read
from generator.tree.manifest import Manifest
from generator.wording import counted

#: How many details are read to find the examples: one in 25 is a member of a public FX family.
_LOOKED_AT: Final = 1_000
#: The examples, in the order in which they are shown.
_EXAMPLES: Final = (*contract.MARKET_STATUSES, "FX family", "question")
#: Questions that every terminal shows as they are, and most in a line.
_PLAIN: Final = re.compile(r"[\w ,.'/?-]{1,80}", re.ASCII)


@click.command(cls=Subcommand, name="demo", can_do_without_file=True)
@as_of_option
@click.option("--markets", type=click.IntRange(1), default=400, show_default=True, help="Number of markets to make up.")
@click.option("--serve", "is_served", is_flag=True, help="Serve what was built on this machine, until Ctrl-C.")
@host_option
@port_option
def demo_command(settings: Config, as_of: datetime | None, markets: int, *, is_served: bool, **address: Any) -> None:
    """Create a database of made-up markets if there is none, then build it."""
    instant = clock(as_of)
    _make_up(settings, instant.as_of, markets)
    with status_file.left(settings, "build"):
        report = built(settings, instant, BuildOverrides(), lambda _: None)
    with read_only(settings.output) as folder:
        manifest = folder.manifest()
        examples = _examples(folder.read, manifest) if manifest else {}
    if manifest and manifest.is_demo:  # what is odd was made up, too
        log_stages(report)
    else:
        log_report(settings, report)
    tell_built(report)
    _tell_examples(settings, examples)
    page = settings.output / files.INSPECTION
    if is_served:
        from generator.cli.serve import serve  # noqa: PLC0415 - a build needs no web server

        logs.result(f"now: open {page}, or ask the server")
        serve(settings, **address)
    else:
        server = "make serve" if documentation.is_here() else "public-markets serve"
        logs.result(f"now: {server}, or open {page}")


def _make_up(settings: Config, as_of: datetime, markets: int) -> None:
    """Create the database, unless it is there already."""
    path = sqlite_path(settings)
    if path is None:
        raise SourceError(
            f"demo creates only SQLite databases, not {display_url(settings)}; pass --set source.url=sqlite:///demo.db"
        )
    if path.exists():
        logs.notice(f"{path} exists already; delete it to create a new one")
        return
    with progress_bar("making up markets"):
        seed(
            path,
            as_of=as_of,
            markets=markets,
            application_id=demo.APPLICATION_ID,
            questions=settings.questions.enabled is not False,
        )
    logs.notice(f"created {path} with {counted(markets, 'made-up market')}")


def _examples(read: Read, manifest: Manifest) -> dict[str, tuple[str, str]]:
    """A market of each status, a member of an FX family, and a question: the key and the text of each."""
    shown: dict[str, tuple[str, str]] = {}
    for market_id in islice(sorted(manifest.ids()), _LOOKED_AT):
        market = json.loads(read(keys.detail(market_id)) or b"{}").get("market", {})
        if _PLAIN.fullmatch(market.get("question", "")):
            name = "FX family" if market["fxFamilyMember"] else market["status"]
            shown.setdefault(name, (keys.detail(market_id), market["question"]))
    for reference in islice(sorted(manifest.questions()), 1):
        question = json.loads(read(keys.detail(reference)) or b"{}").get("question", {})
        shown["question"] = (keys.detail(reference), question.get("title", ""))
    return shown


def _tell_examples(settings: Config, examples: Mapping[str, tuple[str, str]]) -> None:
    """Write a line for each example, and the command that finds one of them."""
    width, words = max(map(len, _EXAMPLES)) + 2, list[str]()
    for name in filter(examples.__contains__, _EXAMPLES):
        key, text = examples[name]
        logs.result(f"{name + ':':<{width}}{settings.output / key}  {text}")
        words = words or re.findall(r"\b[A-Za-z]+\b", text)
    if words:
        logs.result(f"{'search:':<{width}}public-markets find {max(words, key=len)}")
