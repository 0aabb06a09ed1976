"""When the next run is due, whom `status` blames for what is too old, and how it words an age."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from generator.api import forms
from generator.tree.blocklist import Hold
from generator.tree.status import LastRun, Noted, PlaceStatus, Status
from generator.wording import distance

BUILT = datetime(2024, 1, 31, 12, tzinfo=UTC)
CRON = "check that cron runs, and how `rebuild` ended"
SAID = "runs end here, so see what the last one said"


def after(minutes: float) -> str:
    return forms.instant(BUILT + timedelta(minutes=minutes))


def status(minutes: float, ran: float | None) -> Status:
    """The status that many minutes after the build; a guard refused the last run, which ended `ran` after it."""
    folder, target = (PlaceStatus(name, after(0), 11) for name in ("output/", "s3://markets/api"))
    run = None if ran is None else LastRun(command="rebuild", at=after(ran), exit_code=3)
    return Status(60, after(minutes), folder, target, last_run=run)


@pytest.mark.parametrize(
    ("ran", "due", "said"),
    [
        (None, "due 2024-01-31T13:00:00.000Z, 2 days ago", CRON),
        (1, "due 2024-01-31T13:01:00.000Z, 2 days ago", CRON),
        (-5, "due 2024-01-31T13:00:00.000Z, 2 days ago", CRON),
        (2814, "due 2024-02-02T11:54:00.000Z, 2 hours ago", CRON),
        (2816, "due 2024-02-02T11:56:00.000Z, 119 minutes ago", SAID),
        (2995, "due 2024-02-02T14:55:00.000Z, 60 minutes from now", SAID),
        (3100, "due 2024-01-31T13:00:00.000Z, 2 days ago", CRON),
    ],
)
def test_runs_that_end_are_not_blamed_on_cron(ran: float | None, due: str, said: str) -> None:
    """The last is by a clock that is ahead, so it tells nothing."""
    told = status(2995, ran)
    assert f"next run: {due}" in told.lines()
    (need,) = told.needs()
    assert need.endswith(f", 2 days ago, is older than 3 schedules of 60 minutes; {said}")
    assert not replace(told, schedule=1000).needs()


def test_no_run_is_due_during_a_hold() -> None:
    held = replace(status(2995, 2995), hold=Hold(reason="why", who="me", since=after(1)))
    assert {"next run: none is published during the hold", f"hold: since {after(1)}, by me: why"} < {*held.lines()}
    assert held.content()["next"]["due"] is None
    assert "next run: none is made during the hold" in replace(held, target=None).lines()


@pytest.mark.parametrize("noted", [Noted(damage="why"), Noted(fault="why")])
def test_what_a_report_that_cannot_be_read_noted_is_not_known(noted: Noted) -> None:
    told = replace(status(1, 1), noted=noted)
    assert (told.content()["quarantined"], told.content()["remarks"]) == (None, None)
    assert told.needs() == [noted.fault] * bool(noted.fault)
    assert ("quarantined: not known; why" in told.lines()) == bool(noted.damage)


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (0, "0 minutes ago"), (1, "1 minute ago"), (119, "119 minutes ago"), (120, "2 hours ago"),
        (-119.6, "2 hours from now"), (150, "3 hours ago"), (47 * 60, "47 hours ago"),
        (48 * 60 - 1, "2 days ago"), (2935, "2 days ago"), (-2880, "2 days from now"),
    ],
)  # fmt: skip
def test_an_age_is_in_the_largest_unit_of_which_there_are_two(minutes: float, words: str) -> None:
    assert distance(minutes) == words
