"""`verify`: whether a live site answers as it must."""

import json
from collections.abc import Mapping, Sequence

import click
from click.core import ParameterSource

from generator.cli import logs
from generator.cli.command import CommandWithoutSettings
from generator.cli.progress_bar import progress_bar
from generator.errors import VerifyError
from generator.verify.contract.run import MOST_REQUESTS, ContractVerification, verify_contract
from generator.verify.mismatches import CONTRACT_MEANINGS, MEANINGS, Mismatch, Verdict
from generator.verify.reader import SiteReader
from generator.verify.run import PATIENCE_S, Verification, verify
from generator.wording import are, counted

#: The most mismatches that are shown for people.
_SHOWN = 50


@click.command(cls=CommandWithoutSettings, name="verify")
@click.argument("url", metavar="URL")
@click.option(
    "--sample", type=click.IntRange(min=1), default=50, show_default=True, metavar="N",
    help="Ask for this many walks, details and, a fifth as many, searches.",
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
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object with everything that was found.")
@click.option(
    "--contract", "is_contract", is_flag=True,
    help=f"Hold any server of the read API to its contract instead, in at most {counted(MOST_REQUESTS, 'request')}.",
)  # fmt: skip
@click.option(
    "--hidden", multiple=True, metavar="ID",
    help="With --contract: the id of a market that exists and must not be shown; repeatable.",
)  # fmt: skip
def verify_command(url: str, sample: int, rate: float, patience_s: float, hidden: Sequence[str], **flags: bool) -> None:
    """Check a live site through its edge, as a reader sees it: every answer against the dump that it publishes.

    Needs no configuration, no database and no key. Exit code 6 means stale answers, 7 withdrawn markets that are still
    shown, 8 answers that contradict the dump, and 9 answers that break the contract.
    """
    is_json = flags["is_json"]
    if flags["is_contract"]:
        source = click.get_current_context().get_parameter_source
        if any(source(name) != ParameterSource.DEFAULT for name in ("is_whole", "sample", "patience_s")):
            raise click.UsageError("--contract asks what it must; leave out --all, --sample and --wait")
        _hold_to_contract(url, rate, hidden, is_json=is_json)
        return
    if hidden:
        raise click.UsageError("--hidden needs --contract")
    with progress_bar("verify") as progress:
        chosen = None if flags["is_whole"] else sample
        found = verify(SiteReader(url, rate, logs.notice), chosen, progress, patience_s)
    as_of = found.site.build.as_of
    facts = {"url": url, "asOf": as_of, "checks": found.checks, "requests": found.requests}
    _conclude(found, facts, f"answers as it must, as of {as_of}", MEANINGS, is_json=is_json)


def _hold_to_contract(url: str, rate: float, hidden: Sequence[str], *, is_json: bool) -> None:
    with progress_bar("verify") as progress:
        found = verify_contract(SiteReader(url, rate, logs.notice, MOST_REQUESTS), hidden, progress)
    if not is_json:
        for text in found.left_out:
            logs.notice(text)
    facts = {"url": url, "checks": found.checks, "requests": found.requests, "leftOut": found.left_out}
    _conclude(found, facts, "keeps the contract", CONTRACT_MEANINGS, is_json=is_json)


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
