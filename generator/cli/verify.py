"""`verify`: whether a live site answers as it must."""

import json

import click

from generator.cli import logs
from generator.cli.command import ReaderCommand
from generator.cli.progress_bar import progress_bar
from generator.errors import VerifyError
from generator.verify.mismatches import MEANINGS, Mismatch
from generator.verify.reader import SiteReader
from generator.verify.run import PATIENCE_S, Verification, verify
from generator.wording import are, counted

#: The most mismatches that are shown for people.
_SHOWN = 50


@click.command(cls=ReaderCommand, name="verify")
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
def verify_command(  # noqa: PLR0913 - one for each option
    url: str, sample: int, rate: float, patience_s: float, *, is_whole: bool, is_json: bool
) -> None:
    """Check a live site through its edge, as a reader sees it: every answer against the dump that it publishes.

    Needs no configuration, no database and no key. Exit code 6 means stale answers, 7 withdrawn markets that are still
    shown, 8 answers that contradict the dump, and 9 answers that break the contract.
    """
    with progress_bar("verify") as progress:
        found = verify(SiteReader(url, rate, logs.notice), None if is_whole else sample, progress, patience_s)
    if is_json:
        click.echo(json.dumps(_as_json(url, found)))
    else:
        for mismatch in found.mismatches[:_SHOWN]:
            logs.result(str(mismatch), **_fields(mismatch))
        more = len(found.mismatches) - _SHOWN
        if more > 0:
            logs.result(f"{more} more {are(more)} not shown; --json names all")
    if found.mismatches:
        raise _MismatchError(url, found)
    if not is_json:
        logs.result(
            f"{url} answers as it must, as of {found.site.build.as_of}: {counted(found.checks, 'check', ',')} in "
            f"{counted(found.requests, 'request', ',')}"
        )


class _MismatchError(VerifyError):
    """The site differs from its dump; the worst mismatch makes the exit code."""

    def __init__(self, url: str, found: Verification) -> None:
        worst = found.mismatches[0].verdict
        count = counted(len(found.mismatches), "mismatch", ",")
        super().__init__(f"{url}: {count} in {counted(found.requests, 'request', ',')}: {MEANINGS[worst]}")
        self.exit_code = int(worst)  # type: ignore[misc]  # of this error alone


def _fields(mismatch: Mismatch) -> dict[str, object]:
    return {"verdict": mismatch.verdict.name.lower(), "target": mismatch.target}


def _as_json(url: str, found: Verification) -> dict[str, object]:
    return {
        "url": url,
        "asOf": found.site.build.as_of,
        "checks": found.checks,
        "requests": found.requests,
        "mismatches": [{**_fields(mismatch), "text": mismatch.text} for mismatch in found.mismatches],
    }
