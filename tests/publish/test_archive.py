"""The archive keeps the last dump of each day, through builds, publishes, takedowns and purges."""

import shutil
from collections import Counter

import pytest

from generator.api import keys
from generator.tree import shards
from tests.publish.archived_site import LISTED, date, dates, day, days_of, head_in, volumes
from tests.support.deaths import dying_before
from tests.support.sites.publishing import PublishedSite
from tests.support.sites.rows import market_id
from tests.support.stores.s3.wire import Request


def test_what_was_known_on_each_day_can_be_read(archived: PublishedSite) -> None:
    assert dates(archived.objects()) == ([date(1), date(2)], date(3))
    assert volumes(archived.objects()) == {date(1): 101, date(2): 102, date(3): 103}
    archived.check()


def test_a_day_without_a_build_is_not_in_the_archive_and_old_days_leave_it(archived: PublishedSite) -> None:
    archived.edit(1, volume=7.0)
    archived.done("rebuild", "--as-of", day(6))
    archived.edit(1, volume=8.0)
    archived.done("rebuild", "--as-of", day(7))
    assert dates(archived.objects()) == ([date(2), date(3), date(6)], date(7)), "five days up to the sixth"
    archived.check()


def test_a_market_that_the_database_hides_leaves_every_day(archived: PublishedSite) -> None:
    archived.edit(1, approval="pending")
    archived.done("rebuild", "--as-of", day(4))
    assert {one["id"] for markets in days_of(archived.objects()).values() for one in markets} == LISTED - {market_id(1)}
    assert archived.traces(1) == []
    archived.check()


def test_a_purge_gives_every_day_the_texts_of_now_and_leaves_its_numbers(archived: PublishedSite) -> None:
    archived.edit(1, question="Redacted?")
    archived.done("rebuild", "--as-of", day(3, 13))
    assert "On day 1" in str(days_of(archived.objects()))
    archived.done("publish", "--purge-retired")
    assert volumes(archived.objects()) == {date(1): 101, date(2): 102, date(3): 103}
    questions = {one["question"] for markets in days_of(archived.objects()).values() for one in markets}
    assert "Redacted?" in questions
    assert not [text for text in questions if "On day" in text]
    assert not [key for key in archived.traces(1) if "On day" in str(archived.objects().get(key.split()[-1]))]
    archived.check()


def test_a_day_whose_file_is_damaged_ends_with_a_takedown_that_says_so(archived: PublishedSite) -> None:
    head = head_in(archived.objects())
    (file, _) = head.days[0].files(head.base_url)
    archived.put(file.key, b"torn")
    archived.forget_output()
    result = archived.done("takedown", market_id(1))
    assert f"ended {date(1)} in the archive: its file is missing or damaged" in result.stderr
    assert dates(archived.objects()) == ([date(2)], date(3))
    assert archived.traces(1, output=False) == []


def test_a_new_folder_ends_no_day_that_the_store_has(archived: PublishedSite) -> None:
    archived.forget_output()
    archived.edit(1, volume=4.0)
    archived.done("rebuild", "--as-of", day(4))
    assert volumes(archived.objects()) == {date(1): 101, date(2): 102, date(3): 103, date(4): 4}
    archived.check()


def is_of_archive(request: Request) -> bool:
    return request.operation == "PutObject" and "dumps/archive/" in request.key


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("command", ["rebuild", "takedown"])
def test_a_run_that_is_killed_as_it_puts_a_day_loses_none(archived: PublishedSite, command: str) -> None:
    before = volumes(archived.objects())
    archived.edit(1, volume=4.0)
    arguments = [market_id(2)] if command == "takedown" else ["--as-of", day(4)]
    with dying_before(archived.server, is_of_archive):
        assert archived.run(command, *arguments).exit_code == 1
    archived.server.behaviour.clock_offset_s += 600
    archived.forget_output()
    archived.done("takedown", market_id(3))
    found = volumes(archived.objects())
    assert before.items() <= found.items()
    assert archived.traces(3, output=False) == []
    assert command == "rebuild" or archived.traces(2, output=False) == []
    archived.done("rebuild", "--as-of", day(4))
    assert volumes(archived.objects()) == {**before, date(4): 4}
    archived.check()


def test_old_texts_that_were_purged_do_not_come_back_with_another_machine(archived: PublishedSite) -> None:
    shutil.copytree("output", "other")
    archived.edit(1, question="Redacted?")
    archived.done("rebuild", "--as-of", day(3, 13), "--purge-retired")
    assert "On day" not in str(days_of(archived.objects()))
    archived.done("rebuild", "--as-of", day(4), output="other")
    assert dates(archived.objects()) == ([date(1), date(2), date(3)], date(4))
    assert "On day" not in str(days_of(archived.objects()))
    archived.check("other")


def test_ten_years_of_days_are_spread_over_the_shards_of_the_record() -> None:
    days = [keys.archived_day(f"{year}-{month:02}-{number:02}")
            for year in range(2024, 2034) for month in range(1, 13) for number in range(1, 29)]  # fmt: skip
    found = Counter(shards.place(key, 64) for key in days)
    assert found.keys() == {*range(64)}, "none is in the shard of all that is neither a detail nor a first page"
    assert max(found.values()) < 2 * len(days) / 64


def test_dumps_that_are_off_have_no_archive(published_site: PublishedSite) -> None:
    result = published_site.run("build", archive__days="3", dumps__ndjson="false")
    assert (result.exit_code, "archive.days: needs dumps.ndjson" in result.stderr) == (1, True)
