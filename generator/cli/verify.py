"""`verify`: whether a live site answers as it must."""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from generator.cli import logs
from generator.cli.command import CommandWithoutSettings
from generator.cli.progress_bar import progress_bar
from generator.errors import VerifyError
from generator.progress import Progress
from generator.time_limit import OverdueError, ended_after
from generator.verify.checks import Coverage
from generator.verify.contract.run import MOST_REQUESTS, ContractVerification, verify_contract
from generator.verify.mismatches import CONTRACT_MEANINGS, MEANINGS, Mismatch, Verdict
from generator.verify.reader import NoEndError, SiteReader
from generator.verify.run import PATIENCE_S, Verification, verify
from generator.wording import are, counted

_Found = TypeVar("_Found", Verification, ContractVerification)

#: The most mismatches that are shown for people.
_SHOWN = 50
#: How many seeds there are.
_SEEDS = 1 << 32
#: What `--contract` has no use for.
_NOT_OF_CONTRACT = ("is_whole", "budget", "seed", "patience_s", "files_url")


@click.command(cls=CommandWithoutSettings, name="verify")
@click.argument("url", metavar="URL")
@click.option(
    "--budget", type=click.IntRange(min=50), default=1000, show_default=True, metavar="N",
    help="Make about this many requests, and as many more as it takes to ask again for what differs.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(min=0, max=_SEEDS - 1), metavar="N",
    help="Ask what the run asked that printed this number; without it, a new one is drawn.",
)  # fmt: skip
@click.option("--all", "is_whole", is_flag=True, help="Ask for every page of every list, and for every detail.")
@click.option(
    "--rate", type=click.FloatRange(min=1), default=270.0, show_default=True, metavar="N",
    help="Requests per minute; a site allows 300 unless it was set otherwise.",
)  # fmt: skip
@click.option(
    "--wait", "patience_s", type=click.FloatRange(min=0), default=PATIENCE_S, show_default=True, metavar="SECONDS",
    help="How long copies in caches may be out of date: what differs is asked for again after that.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0, max=10**7, min_open=True), default=3600.0, show_default=True,
    metavar="SECONDS", help="How long all of it may take; a run that takes longer ends as broken.",
)  # fmt: skip
@click.option(
    "--files-url", metavar="URL",
    help="What the site has set as dumps.base_url: ask there for files that it does not have at URL itself.",
)  # fmt: skip
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object with everything that was found.")
@click.option(
    "--contract", "is_contract", is_flag=True,
    help=f"Hold any server of the read API to its contract instead, in at most {counted(MOST_REQUESTS, 'request')}.",
)  # fmt: skip
@click.option(
    "--hidden", multiple=True, type=click.UUID, metavar="ID",
    help="With --contract: the id of a market that exists and must not be shown; repeatable.",
)  # fmt: skip
def verify_command(url: str, rate: float, **options: Any) -> None:
    """Check a live site through its edge, as a reader sees it: every answer against the dump that it publishes.

    Needs no configuration, no database and no key. Exit code 6 means stale answers, 7 withdrawn markets that are still
    shown, 8 answers that contradict the dump, and 9 answers that break the contract.
    """
    is_json, timeout_s = options["is_json"], options["timeout_s"]
    if options["is_contract"]:
        if any(map(_is_given, _NOT_OF_CONTRACT)):
            raise click.UsageError(
                "--contract asks what it must; leave out --all, --budget, --seed, --wait and --files-url"
            )
        reader = SiteReader(url, rate, logs.notice, MOST_REQUESTS)
        _hold_to_contract(url, reader, timeout_s, [*map(str, options["hidden"])], is_json=is_json)
        return
    if options["hidden"]:
        raise click.UsageError("--hidden needs --contract")
    reader = SiteReader(url, rate, logs.notice, files_url=options["files_url"])
    if options["is_whole"] and _is_given("budget"):
        raise click.UsageError("--all asks for everything; leave out --budget")
    budget = None if options["is_whole"] else options["budget"]
    seed = secrets.randbelow(_SEEDS) if options["seed"] is None else options["seed"]
    logs.notice(f"--seed {seed} asks the same again")  # at once, as a run may not come to its end
    found = _in_time(reader, timeout_s, partial(verify, reader, budget, seed, patience_s=options["patience_s"]))
    if isinstance(found, Mismatch):
        found = Verification(None, 0, reader.requests, [found])
    facts = {
        "url": url, "seed": seed, "asOf": found.as_of, "checks": found.checks, "requests": found.requests,
        "lists": found.lists and {
            "whole": found.lists.whole, "sampled": found.lists.sampled, "leftOut": found.lists.left_out,
        },
    }  # fmt: skip
    if found.lists and not is_json:
        logs.notice(_covered(found.lists))
    praise = f"answers as it must, as of {found.as_of}{_left_out(found.lists)}"
    _conclude(found, facts, praise, MEANINGS, is_json=is_json)


def _is_given(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) != ParameterSource.DEFAULT


def _left_out(lists: Coverage | None) -> str:
    """What a praise does not cover."""
    if lists is None or not lists.left_out:
        return ""
    every = lists.whole + lists.sampled + lists.left_out
    return f", though of {lists.left_out} of {counted(every, 'list')} it was asked for a first page at most"


def _covered(lists: Coverage) -> str:
    """How much of lists was looked at, for people."""
    parts = [
        f"{counted(lists.whole, 'list')} walked to the end" if lists.whole else "",
        f"{counted(lists.sampled, 'list')} looked at on random pages" if lists.sampled else "",
        f"{counted(lists.left_out, 'list')} left at a first page, for want of --budget" if lists.left_out else "",
    ]
    return f"without categories, {', '.join(filter(None, parts))}"


def _hold_to_contract(url: str, reader: SiteReader, timeout_s: float, hidden: Sequence[str], *, is_json: bool) -> None:
    found = _in_time(reader, timeout_s, partial(verify_contract, reader, hidden))
    if isinstance(found, Mismatch):
        found = ContractVerification(0, reader.requests, [], [found])
    if not is_json:
        for text in (*found.left_out, *map(str, found.notes)):
            logs.notice(text)
    notes = [{"target": one.target, "text": one.text} for one in found.notes]
    facts = {
        "url": url, "checks": found.checks, "requests": found.requests, "leftOut": found.left_out, "notes": notes,
    }  # fmt: skip
    _conclude(found, facts, "keeps the contract", CONTRACT_MEANINGS, is_json=is_json)


def _in_time(reader: SiteReader, timeout_s: float, run: Callable[[Progress], _Found]) -> _Found | Mismatch:
    """What a run finds; or what it was waiting for when an answer, or all of it, had taken too long."""
    try:
        with ended_after(timeout_s), progress_bar("verify") as progress:
            return run(progress)
    except NoEndError as error:
        return Mismatch(Verdict.BROKEN, error.target, error.reason)
    except OverdueError:
        text = f"the run ended here, after {counted(timeout_s, 'second', ',.10g')}; give a large site more by --timeout"
        return Mismatch(Verdict.BROKEN, reader.target, text)


def _conclude(
    found: Verification | ContractVerification,
    facts: Mapping[str, object],
    praise: str,
    meanings: Mapping[Verdict, str],
    *,
    is_json: bool,
) -> None:
    """Show what was found; raise the error that its worst makes, or end with the praise."""
    if is_json:
        told = [{**_fields(mismatch), "text": mismatch.text} for mismatch in found.mismatches]
        click.echo(json.dumps({**facts, "mismatches": told}))
    else:
        _show(found.mismatches)
    requests = counted(found.requests, "request", ",")
    if found.mismatches:
        count = counted(len(found.mismatches), "mismatch", ",")
        worst = found.mismatches[0].verdict
        raise _MismatchError(f"{facts['url']}: {count} in {requests}: {meanings[worst]}", worst)
    if not is_json:
        logs.result(f"{facts['url']} {praise}: {counted(found.checks, 'check', ',')} in {requests}")


def _show(mismatches: Sequence[Mismatch]) -> None:
    for mismatch in mismatches[:_SHOWN]:
        logs.result(str(mismatch), **_fields(mismatch))
    more = len(mismatches) - _SHOWN
    if more > 0:
        logs.result(f"{more} more {are(more)} not shown; --json names all")


class _MismatchError(VerifyError):
    """The site differs from what it must be; the worst verdict makes the exit code."""

    def __init__(self, text: str, worst: Verdict) -> None:
        super().__init__(text)
        self.exit_code = int(worst)  # type: ignore[misc]  # of this error alone


def _fields(mismatch: Mismatch) -> dict[str, object]:
    return {"verdict": mismatch.verdict.name.lower(), "target": mismatch.target}
