"""What stands where, how old it is, and what needs a person: the lines of `status` and of `status.html`. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from generator.api import forms
from generator.findings import CLOCK_TOLERANCE
from generator.tree import blocklist
from generator.tree.blocklist import Hold
from generator.tree.manifest import minutes_between
from generator.tree.stored import Instant, StoredModel
from generator.wording import counted, distance

#: A build older than this many schedules means that cron has stalled.
STALE_AFTER: Final = 3
AHEAD: Final = (
    "the clock of a machine that built was ahead; set it, then run `public-markets rebuild --accept older` once"
)
AHEAD_HERE: Final = "this machine's clock was ahead when it built; set it, then run `public-markets build`"
#: Exit codes: all is well, something needs a person, and it cannot be told.
WELL, NEEDS_A_PERSON, UNKNOWN = 0, 1, 5
#: Exit codes of runs after which the next one does the work: done, another run is at work, the outcome is unknown.
_PASSING: Final = frozenset({0, 4, 5})


def age(as_of: str, now: str) -> float:
    """The age of a build in minutes."""
    return minutes_between(as_of, now)


def is_ahead(as_of: str, now: str) -> bool:
    """Whether the build is of the future. It would not look stale until then, and newer builds are refused."""
    return age(as_of, now) < -CLOCK_TOLERANCE / timedelta(minutes=1)


class LastRun(StoredModel):
    """How the last build, publish, takedown or hold from a folder ended, and when, by this machine's clock."""

    command: str
    at: Instant
    exit_code: int

    def unmended(self, before: "LastRun | None") -> "LastRun | None":
        """The failure that is left after this run, where `before` was left: only the same work, done, mends one."""
        if self.exit_code not in _PASSING:
            return self
        is_mend = self.exit_code == WELL and before and self.command in (before.command, "rebuild")
        return None if is_mend else before


@dataclass(frozen=True)
class PlaceStatus:
    """What the output folder or the target holds: `as_of` is empty if that is nothing whole.

    `publisher` is who is at work there, `faults` are what a person should see to, and `unread` is why nobody can tell.
    A target that was not asked is known by what was published from the folder.
    """

    name: str
    as_of: str = ""
    markets: int = 0
    publisher: str = ""
    faults: tuple[str, ...] = ()
    unread: str = ""
    is_asked: bool = True

    @property
    def is_known(self) -> bool:
        """Whether it was asked, and answered."""
        return self.is_asked and not self.unread

    def __str__(self) -> str:
        if not self.is_known:
            return f"{self.name}, which cannot be read" if self.unread else self.name
        markets = counted(self.markets, "market", ",")
        return f"{self.name}, {markets} as of {self.as_of}" if self.as_of else f"{self.name}, which holds nothing whole"


class Standing(NamedTuple):
    """A place, the hold on it, and the time by its clock; empty if nobody asked for it."""

    place: PlaceStatus
    hold: Hold | None = None
    now: str = ""


@dataclass(frozen=True)
class Noted:
    """How many rows the last build quarantined, and how many remarks it made; `new…` within a day, None if unknown.

    `damage` is why nobody can tell until the next build, `fault` is what a person should see to.
    """

    quarantined: int = 0
    new_quarantined: int | None = None
    remarks: int = 0
    new_remarks: int | None = None
    damage: str = ""
    fault: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the numbers are those of the last build."""
        return not (self.damage or self.fault)


@dataclass(frozen=True)
class Status:
    """All that is known at the instant `now`, by the clock of the place that is published.

    `target` is None without `publish.target`; `published_before` is the as-of of the last publish from the folder.
    `failed` is a run from there that no other has made up for.
    """

    schedule: int
    now: str
    folder: PlaceStatus
    target: PlaceStatus | None
    published_before: str = ""
    hold: Hold | None = None
    noted: Noted | None = None
    last_run: LastRun | None = None
    failed: LastRun | None = None

    @property
    def exit_code(self) -> int:
        """0 if all is well, 1 if something needs a person, 5 if that cannot be told."""
        if self.target and self.target.unread:
            return UNKNOWN
        return NEEDS_A_PERSON if self.needs() else WELL

    @property
    def as_of(self) -> str:
        """Of what readers are shown, as far as it is known; empty if they are shown nothing."""
        if self.target is None:
            return self.folder.as_of
        return self.target.as_of if self.target.is_known else self.published_before

    @property
    def goes_stale(self) -> bool:
        """Whether what is published should be replaced before long: during a hold, nobody expects it."""
        return bool(self.as_of) and not self.hold

    @property
    def ran(self) -> str:
        """When the last run here ended; empty if that is not known, as by a clock that was ahead."""
        return self.last_run.at if self.last_run and not is_ahead(self.last_run.at, self.now) else ""

    @property
    def due(self) -> str:
        """When the next run is: a schedule after the newest build or run; empty if there is none, and during a hold."""
        newest = "" if self.hold else max(self.as_of, self.folder.as_of, self.ran)
        return forms.instant(datetime.fromisoformat(newest) + timedelta(minutes=self.schedule)) if newest else ""

    def lines(self, *, has_ages: bool = True) -> Iterator[str]:
        """A line for each thing, as `name: what`. The page computes ages itself."""
        yield f"published: {self._published(has_ages=has_ages)}"
        is_known = self.target is None or self.target.is_known
        yield f"next run: {self._next(has_ages=has_ages)}"
        held = str(self.hold or ("none" if is_known else "none known here"))
        yield f"hold: {held.removeprefix('on hold ')}"
        if self.noted and self.noted.damage:
            yield f"quarantined: not known; {self.noted.damage}"
        elif self.noted and self.noted.is_known:
            rows, remarks = counted(self.noted.quarantined, "row", ","), counted(self.noted.remarks, "remark", ",")
            yield f"quarantined: {rows}{_new(self.noted.quarantined, self.noted.new_quarantined)}"
            yield f"remarks: {remarks}{_new(self.noted.remarks, self.noted.new_remarks)}"
        if self.last_run:
            run = self.last_run
            end = "well" if run.exit_code == 0 else f"with exit code {run.exit_code}"
            yield f"last run here: {run.command} ended {end} {run.at}{self._distance(run.at) if has_ages else ''}"
        yield f"output folder: {self.folder}"
        yield f"target: {self.target or 'none, readers are served from the folder'}"
        if self.target and self.target.publisher:
            yield f"at work: {self.target.publisher}"

    def needs(self, *, has_ages: bool = True) -> list[str]:
        """What needs a person, each with what to do."""
        return [*self._needs_of_places(), *(self._needs_of_age() if has_ages else ()), *self._needs_of_runs()]

    def _needs_of_places(self) -> Iterator[str]:
        yield from self.folder.faults
        if self.noted and self.noted.fault:
            yield self.noted.fault
        if self.target is None:
            if not self.folder.as_of and not self.folder.faults:
                yield f"{self.folder.name}: nothing is built there yet; run `public-markets build`"
            return
        yield from self.target.faults
        if self.target.is_known and not (self.target.as_of or self.target.faults or self.target.publisher):
            if self.published_before:
                yield (
                    f"{self.target.name}: nothing is published there any more, though this folder published as of "
                    f"{self.published_before}; run `public-markets rebuild --verify`"
                )
            else:
                command = "publish" if self.folder.as_of else "rebuild"
                yield f"{self.target.name}: nothing is published there; run `public-markets {command}`"

    def _needs_of_age(self) -> Iterator[str]:
        """Of a target that cannot be read, nobody knows it: others may have published since."""
        place = self.target or self.folder
        if not self.as_of or not place.is_known:
            return
        if is_ahead(self.as_of, self.now):
            yield f"{place.name}: {AHEAD if self.target else AHEAD_HERE}"
        elif age(self.as_of, self.now) > STALE_AFTER * self.schedule and self.goes_stale:
            has_run = bool(self.ran) and age(self.ran, self.now) <= STALE_AFTER * self.schedule
            yield self.stale(has_run=has_run, has_ages=True)

    def stale(self, *, has_run: bool, has_ages: bool) -> str:
        """That what is published is too old, and what to do; `has_run` says that a run ended here in that time."""
        command = "rebuild" if self.target else "build"
        advice = (
            "runs end here, so see what the last one said"
            if has_run
            else f"check that cron runs, and how `{command}` ended"
        )
        return (
            f"{(self.target or self.folder).name}: what is published as of {self.as_of}"
            f"{f'{self._distance(self.as_of)},' if has_ages else ''} is older than {STALE_AFTER} schedules of "
            f"{counted(self.schedule, 'minute')}; {advice}"
        )

    def _needs_of_runs(self) -> Iterator[str]:
        if self.hold:
            yield blocklist.sentence(self.hold, has_target=self.target is not None)
        failed = self.failed
        # What another machine has published since makes up for it.
        if failed and (not self.as_of or minutes_between(self.as_of, failed.at) > 0):
            yield (
                f"a `{failed.command}` here ended with exit code {failed.exit_code} at {failed.at}; see what it "
                "said, or run it again"
            )
        if self.noted and self.noted.new_quarantined:
            rows = counted(self.noted.new_quarantined, "row", ",")
            yield f"{rows} newly quarantined within a day; report.json names each, and what is wrong with it"

    def content(self) -> dict[str, Any]:
        """The same as JSON values."""
        noted, shown = self.noted if self.noted and self.noted.is_known else None, self.target or self.folder
        return {
            "exitCode": self.exit_code,
            "now": self.now,
            "published": {
                "place": shown.name,
                "asOf": self.as_of or None,
                "ageMinutes": round(age(self.as_of, self.now), 1) if self.as_of else None,
                "markets": shown.markets if shown.as_of else None,
            },
            "next": {"due": self.due or None, "schedule": self.schedule},
            "hold": self.hold.model_dump() if self.hold else None,
            "quarantined": {"total": noted.quarantined, "new": noted.new_quarantined} if noted else None,
            "remarks": {"total": noted.remarks, "new": noted.new_remarks} if noted else None,
            "lastRun": self.last_run.model_dump(by_alias=True) if self.last_run else None,
            "folder": {"place": self.folder.name, "asOf": self.folder.as_of or None},
            "target": {"place": self.target.name, "asOf": self.target.as_of or None, "publisher": self.target.publisher}
            if self.target
            else None,
            "unread": self.target.unread if self.target else "",
            "needs": self.needs(),
        }

    def _next(self, *, has_ages: bool) -> str:
        if self.hold:
            return f"none is {'published' if self.target else 'made'} during the hold"
        if self.due:
            return f"due {self.due}{self._distance(self.due) if has_ages else ''}"
        return "none was yet" if self.target is None or self.target.is_known else "not known"

    def _published(self, *, has_ages: bool) -> str:
        place = self.target or self.folder
        said = f"as of {self.as_of}{self._distance(self.as_of) if has_ages else ''}" if self.as_of else "nothing"
        if not place.is_known and not self.as_of:
            return f"not known, as no publish from this folder to {place.name} is on record"
        if not place.is_known:
            return f"{said}, by the last publish from this folder to {place.name}"
        markets = f"{counted(place.markets, 'market', ',')} " if self.as_of else ""
        return f"{markets}{said}, at {place.name}"

    def verdict(self) -> list[str]:
        """What needs a person, a line each, and whether all that is known."""
        needs = [f"needs a person: {need}" for need in self.needs()]
        if self.target and self.target.unread:
            return [*needs, f"cannot be told: {self.target.unread}"]
        return needs or ["needs a person: nothing"]

    def _distance(self, moment: str) -> str:
        return f", {distance(age(moment, self.now))}"


def _new(total: int, number: int | None) -> str:
    return f", {number:,} of them new within a day" if total and number is not None else ""
