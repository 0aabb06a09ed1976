"""`output/status.html`: what is published and what needs a person, in a frame of the inspection page.

A build, publish, takedown or hold leaves it at its end, however it ends, without asking the target anything. It is also
where the folder keeps how the last run ended, and what is known of a hold on the target. It quotes no market.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html import escape
from string import Template
from typing import Final

from pydantic import ValidationError

from generator import filesystem
from generator.api import forms
from generator.builder import reported
from generator.cli.command import now
from generator.cli.logs import LOG
from generator.config.settings import Config
from generator.errors import OutputError, PublicMarketsError
from generator.models import replaced
from generator.site import standing
from generator.tree import files
from generator.tree.blocklist import HeldError, Hold
from generator.tree.folder import read_only
from generator.tree.status import STALE_AFTER, LastRun, Noted, PlaceStatus, Status
from generator.tree.stored import StoredModel

_STYLE: Final = """\
:root { color-scheme: light dark; font: 0.9rem/1.5 system-ui, sans-serif; }
body { margin: 0; }
ul { list-style: none; margin: 0; padding: 0; }
.needs { font-weight: 600; }
"""
#: Ages, which a file cannot know.
_SCRIPT: Final = """\
const minutes = (time) => (Date.now() - Date.parse(time)) / 60000;
const words = (n) =>
  Math.round(n) < 120 ? [n, "minute"] : Math.round(n / 60) < 48 ? [n / 60, "hour"] : [n / 1440, "day"];
for (const time of document.querySelectorAll("time")) {
  const age = minutes(time.dateTime);
  const [n, unit] = words(Math.abs(age)).map((part) => (typeof part === "number" ? Math.round(part) : part));
  time.after(` (${n} ${unit}${n === 1 ? "" : "s"} ${age < 0 ? "from now" : "ago"})`);
}
for (const line of document.querySelectorAll("[data-as-of]")) {
  const isOld = (time) => minutes(time) > Number(line.dataset.minutes);
  line.hidden = !isOld(line.dataset.asOf) || (line.dataset.ran !== undefined && isOld(line.dataset.ran));
}
"""
_PAGE: Final = Template("""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Status</title>
<style>$style</style>
<main>
<ul class="needs">
$needs
</ul>
<ul class="lines">
$lines
</ul>
</main>
<script type="application/json" id="known">$known</script>
<script>$script</script>
</html>
""")
_KNOWN: Final = re.compile(rb'<script type="application/json" id="known">(.*?)</script>', re.DOTALL)
#: The commands that schedules run.
_RUNS: Final = frozenset({"build", "publish", "rebuild"})
_INSTANT: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


class Remembered(StoredModel, extra="ignore"):
    """What the page keeps for later runs: of a target's hold, what the last run that knew found."""

    hold: Hold | None = None
    last_run: LastRun | None = None
    failed: LastRun | None = None


def remembered(config: Config) -> Remembered:
    """What the folder's page keeps; nothing if it is lost or damaged."""
    with suppress(OSError, ValidationError):
        if found := _KNOWN.search((config.output / files.STATUS).read_bytes()):
            return Remembered.model_validate_json(found[1])
    return Remembered()


@dataclass
class Left:
    """What a command found of the hold on the place that readers are served from, and how it ended.

    It `is_run` if the schedule may have begun it, and if no hold refused it: whoever begins another sees how it ends.
    """

    is_run: bool
    is_hold_known: bool = False
    hold: Hold | None = None
    exit_code: int = 1

    def found(self, hold: Hold | None) -> None:
        """There is this hold, or none."""
        self.is_hold_known, self.hold = True, hold

    def after(self, before: Remembered, command: str, at: str) -> Remembered:
        """What to keep from now on."""
        hold = self.hold if self.is_hold_known else before.hold
        if not self.is_run:
            return replaced(before, hold=hold)
        run = LastRun(command=command, at=at, exit_code=self.exit_code)
        return Remembered(hold=hold, last_run=run, failed=run.unmended(before.failed))


@contextmanager
def left(config: Config, command: str, *, is_dry: bool = False) -> Iterator[Left]:
    """Leave the page at the end of a command, however it ends; nothing in a dry run."""
    found = Left(is_run=command in _RUNS)
    try:
        yield found
        found.exit_code = 0
    except HeldError as error:
        found.found(error.hold)
        found.is_run = False
        raise
    except PublicMarketsError as error:
        found.exit_code = error.exit_code
        raise
    finally:
        if not is_dry:
            _leave(config, found, command)


def _leave(config: Config, found: Left, command: str) -> None:
    """Write the page, if there is a build; whatever hinders that, the run is over."""
    path = config.output / files.STATUS
    try:
        if (config.output / files.MANIFEST).exists():
            at = forms.instant(now())
            known = found.after(remembered(config), command, at)
            filesystem.replace(path, _page(_status(config, known, at), known).encode(), filesystem.PRIVATE)
    except (OSError, PublicMarketsError) as error:
        LOG.info("%s: not written (%s)", path, error)


def _status(config: Config, known: Remembered, at: str) -> Status:
    """What the folder knows; of the target, what was published from here."""
    here, published = standing.in_folder(config, is_brief=True)
    target = config.publish.target
    return Status(
        schedule=config.schedule,
        now=at,
        folder=here.place,
        target=PlaceStatus(target, is_asked=False) if target else None,
        published_before=published,
        hold=known.hold if target else here.hold,
        noted=noted(config),
        last_run=known.last_run,
        failed=known.failed,
    )


def noted(config: Config) -> Noted | None:
    """What the last build noted, by its report."""
    try:
        with read_only(config.output) as folder:
            return reported.noted(folder.read(files.REPORT))
    except OutputError as error:
        return Noted(fault=str(error))


def _page(status: Status, known: Remembered) -> str:
    lines = [f"<li>{_marked(line)}</li>" for line in status.lines(has_ages=False)]
    needs = [f"<li>needs a person: {_marked(need)}</li>" for need in status.needs(has_ages=False)]
    if status.goes_stale:
        needs += _needs_of_age(status)
    style, script = _hash(_STYLE), _hash(_SCRIPT)
    closed = ("default-src 'none'", "base-uri 'none'", "form-action 'none'")
    policy = "; ".join([*closed, f"style-src {style}", f"script-src {script}"])
    return _PAGE.substitute(
        policy=policy,
        style=_STYLE,
        script=_SCRIPT,
        needs="\n".join(needs),
        lines="\n".join(lines),
        known=_json(known),
    )


def _needs_of_age(status: Status) -> Iterator[str]:
    """What the script shows once it is true: runs end here but publish nothing, or none has ended for long either."""
    newest = max(status.as_of, status.ran)
    places = {True: f'data-as-of="{status.as_of}" data-ran="{newest}"', False: f'data-as-of="{newest}"'}
    for has_run, place in places.items():
        need = _marked(status.stale(has_run=has_run, has_ages=False))
        yield f'<li {place} data-minutes="{STALE_AFTER * status.schedule}" hidden>needs a person: {need}</li>'


def _marked(line: str) -> str:
    """The text of a line, of which strangers wrote parts, with its times marked."""
    return _INSTANT.sub(lambda found: f'<time datetime="{found[0]}">{found[0]}</time>', escape(line))


def _json(known: Remembered) -> str:
    """JSON that no text in it can end."""
    return json.dumps(known.model_dump(by_alias=True)).replace("<", "\\u003c")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
