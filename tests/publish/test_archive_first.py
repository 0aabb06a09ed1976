"""Archived days that may show a withdrawn market are gone with its detail, and come back without it in the same run."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from generator.api import keys
from tests.publish.archived_site import INDEX, LISTED, date, dates, day, days_of, head_in
from tests.support.deaths import Kill, dying_before
from tests.support.sites.builds import files
from tests.support.sites.publishing import PREFIX, PublishedSite
from tests.support.sites.rows import market_id
from tests.support.stores.s3.wire import Request

DETAIL = keys.detail(market_id(1))
ALL = {date(1), date(2), date(3)}


def days_in(objects: Mapping[str, bytes]) -> set[str]:
    """The dates of the objects of days, whatever the head says."""
    return {key[-15:-5] for key in objects if keys.is_archived_day(key)}


def is_first_put(request: Request) -> bool:
    """Whether an object is put after the days were deleted, for which their index is put before."""
    return request.operation == "PutObject" and request.key.startswith(f"{PREFIX}v1/") and INDEX not in request.key


@contextmanager
def at_first_put(site: PublishedSite) -> Iterator[list[dict[str, bytes]]]:
    """What readers find when the first object is put."""
    found: list[dict[str, bytes]] = []

    def look(request: Request) -> None:
        if is_first_put(request) and not found:
            found.append(site.objects())

    site.server.before = look
    try:
        yield found
    finally:
        site.server.before = None
    assert found


@pytest.mark.parametrize("has_output", [True, False])
def test_a_takedown_deletes_days_with_the_detail_and_puts_them_back(
    archived: PublishedSite, *, has_output: bool
) -> None:
    before = archived.objects()
    if not has_output:
        archived.forget_output()
    with at_first_put(archived) as found:
        result = archived.done("takedown", market_id(1))
    assert DETAIL not in found[0]
    assert days_in(found[0]) == {date(3)}, "the day that is not over shows what the dump shows"
    assert dates(found[0]) == ([], date(3))
    of_days = {file.key for one in head_in(before).days for file in one.files("")}
    assert len(of_days) == 4
    assert of_days <= found[0].keys(), "nothing is lost if the run is killed"
    assert "deleted 2 archived days with the details, and put 2 back" in result.stderr
    assert days_in(archived.objects()) == days_of(archived.objects()).keys() == ALL
    for markets in days_of(archived.objects()).values():
        assert {market["id"] for market in markets} == LISTED - {market_id(1)}
    assert archived.traces(1, output=has_output) == []
    if has_output:
        archived.check()


# ── a run that is killed once it has deleted days ────────────────────────────────────────────────────────────────────


def again(site: PublishedSite) -> None:
    site.done("takedown", market_id(1))


def of_another(site: PublishedSite) -> None:
    site.done("takedown", market_id(2))


def publish(site: PublishedSite) -> None:
    site.done("publish")


def undo(site: PublishedSite) -> None:
    site.done("takedown", "--undo", market_id(1))
    site.done("rebuild", "--as-of", day(3, 13))


def verify(site: PublishedSite) -> None:
    site.done("rebuild", "--verify", "--as-of", day(3, 13))


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize(
    ("next_run", "shown"),
    [
        (again, set()),
        (of_another, set()),
        (publish, set()),
        (verify, set()),
        # The undo itself finishes what was begun, and the next build shows the market again.
        (undo, {date(3)}),
    ],
)
def test_a_takedown_that_was_killed_after_it_deleted_days_loses_none(
    archived: PublishedSite, next_run: Callable[[PublishedSite], None], shown: set[str]
) -> None:
    """The next run is on a machine that has no folder, unless it needs one."""
    if next_run is publish:
        shutil.copytree("output", "copy")
    with dying_before(archived.server, is_first_put):
        assert archived.run("takedown", market_id(1)).exit_code == 1
    assert days_in(archived.objects()) == {date(3)}
    archived.server.behaviour.clock_offset_s += 600
    shutil.rmtree("output")
    if next_run is publish:
        Path("copy").rename("output")
    next_run(archived)
    found = days_of(archived.objects())
    assert all(market_id(3) in str(markets) for markets in found.values())
    assert {date for date, markets in found.items() if market_id(1) in str(markets)} == shown
    assert dates(archived.objects()) == ([date(1), date(2)], date(3))


def test_a_takedown_in_a_folder_deletes_days_before_it_makes_them(archived: PublishedSite) -> None:
    archived.target = ""
    with Kill(22).over(archived.server):
        archived.run("takedown", market_id(1))
    output = files(Path("output"))
    assert days_in(output) == {date(3)}
    assert dates(output) == ([], date(3))
    archived.done("takedown", market_id(1))
    found = files(Path("output"))
    assert days_in(found) == days_of(found).keys() == ALL
    assert [place for place in archived.traces(1) if place.startswith("output ")] == []
