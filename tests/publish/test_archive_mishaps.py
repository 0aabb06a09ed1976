"""What befalls an archive: late requests, lost files, several machines, clocks, and settings that are changed."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest

from generator.api import keys
from generator.api.downloads import DumpHead
from generator.downloads import parquet
from tests.publish.archived_site import INDEX, date, dates, day, days_of, head_in, volumes
from tests.support.kills import Kill, dying_before
from tests.support.sites.builds import files, text_of
from tests.support.sites.publishing import PREFIX, PublishedSite
from tests.support.sites.rows import insert_fx_member, market_id
from tests.support.stores.s3.wire import Request

pytestmark = pytest.mark.campaign(short=0)


# ── takedowns ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_day_whose_file_a_store_lost_ends_and_stops_no_takedown(archived: PublishedSite) -> None:
    head = head_in(archived.objects())
    archived.remove(head.days[0].files(head.base_url)[0].key)
    archived.forget_output()
    assert f"ended {date(1)} in the archive" in archived.done("takedown", market_id(1)).stderr
    assert dates(archived.objects()) == ([date(2)], date(3))
    assert archived.traces(1, output=False) == []


@pytest.mark.parametrize("has_files", [True, False])
def test_an_older_head_that_comes_late_brings_no_market_back(archived: PublishedSite, *, has_files: bool) -> None:
    before, head = archived.objects(), head_in(archived.objects())
    archived.done("takedown", market_id(1))
    archived.put(INDEX, before[INDEX])
    for file in [file for one in head.days for file in one.files(head.base_url)] if has_files else []:
        archived.put(file.key, before[file.key])
    archived.forget_output()
    archived.done("takedown", market_id(2))
    assert dates(archived.objects()) == ([date(1), date(2)], date(3)), "its object tells of the day that is not over"
    assert len(head_in(archived.objects()).days) == 2
    assert market_id(1) not in str(days_of(archived.objects()))


@pytest.mark.parametrize("has_output", [True, False])
def test_a_market_that_only_the_newest_dump_has_leaves_the_day_that_is_not_over(
    archived: PublishedSite, *, has_output: bool
) -> None:
    before = archived.record().built.current[keys.ARCHIVE]
    archived.edit(99, approval="approved")
    archived.done("rebuild", "--as-of", day(3, 13))
    if not has_output:
        archived.forget_output()
    assert "archived day" not in archived.done("takedown", market_id(99)).stderr
    assert volumes(archived.objects()).keys() == {date(1), date(2), date(3)}
    assert archived.traces(99, output=has_output) == []
    assert archived.record().built.current[keys.ARCHIVE] == before


@pytest.mark.parametrize("has_output", [True, False])
def test_old_days_show_a_market_no_longer_when_the_first_list_is_put_without_it(
    archived: PublishedSite, *, has_output: bool
) -> None:
    if not has_output:
        archived.forget_output()
    with looking_at_files(archived, market_id(1)) as showing:
        archived.done("takedown", market_id(1))
    assert showing == set()
    assert archived.traces(1, output=has_output) == []


def test_old_days_show_a_market_that_the_database_hides_no_longer_when_the_first_list_is_put(
    archived: PublishedSite,
) -> None:
    archived.edit(1, approval="pending")
    with looking_at_files(archived, market_id(1)) as showing:
        archived.done("rebuild", "--as-of", day(4))
    assert showing == set()


def test_old_days_show_an_old_text_no_longer_when_the_first_list_of_a_purge_is_put(archived: PublishedSite) -> None:
    archived.edit(1, question="Redacted?")
    with looking_at_files(archived, "On day") as showing:
        archived.done("rebuild", "--as-of", day(3, 13), "--purge-retired")
    assert showing == set()


def test_a_takedown_in_a_folder_deletes_the_detail_before_it_makes_days(archived: PublishedSite) -> None:
    archived.target = ""
    detail = Path("output", keys.detail(market_id(1)))
    assert detail.exists()
    with Kill(20).over(archived.server):
        archived.run("takedown", market_id(1))
    assert not detail.exists()
    assert len(archived.traces(1)) > 20, "nothing else was done"
    archived.done("takedown", market_id(1))
    assert [place for place in archived.traces(1) if place.startswith("output ")] == []
    assert {one.date for one in head_in(files(Path("output"))).all_days()} == {date(1), date(2), date(3)}


def test_an_archive_that_is_switched_off_shows_a_hidden_market_no_longer_when_the_first_list_is_put(
    archived: PublishedSite,
) -> None:
    archived.edit(1, approval="pending")
    with looking_at_files(archived, market_id(1), days=0) as showing:
        archived.done("rebuild", "--as-of", day(4), archive__days="0")
    assert showing == set()
    archived.settings["archive.days"] = "0"
    archived.check()


def test_an_archive_stays_off_after_the_run_that_switched_it_off_was_killed(archived: PublishedSite) -> None:
    archived.edit(1, approval="pending")
    with dying_before(archived.server, is_deletion_of_files):
        archived.run("rebuild", "--as-of", day(4), archive__days="0")
    assert INDEX not in archived.objects()
    archived.server.behaviour.clock_offset_s += 600
    archived.done("takedown", market_id(2))
    assert not [*filter(keys.is_archived_day, archived.objects())]
    assert archived.traces(2) == archived.traces(1) == []
    archived.settings["archive.days"] = "0"
    archived.done("rebuild", "--as-of", day(4, 13))
    archived.check()


def is_deletion_of_files(request: Request) -> bool:
    return request.operation == "DeleteObjects" and f"/{keys.DUMPS}/markets/".encode() in request.body


@contextmanager
def looking_at_files(site: PublishedSite, text: str, days: int = 3) -> Iterator[set[str]]:
    """Note which files show a text when a command puts the first object of a list, except those of the dump."""
    found, looks = set[str](), list[Request]()

    def look(request: Request) -> None:
        if request.operation == "PutObject" and request.key.startswith(f"{PREFIX}{keys.LISTS}/") and not looks:
            looks.append(request)
            objects = site.objects()
            dumped = DumpHead.found_by(objects.get)
            assert dumped
            own = {file.key for file in dumped.files()}
            in_files = {key for key in objects if f"/{keys.DUMPS}/" in key}
            found.update(key for key in in_files - own if text.encode() in text_of(key, objects[key]))
            assert len([*filter(keys.is_archived_day, objects)]) >= days
            assert days or INDEX not in objects

    site.server.before = look
    try:
        yield found
    finally:
        site.server.before = None
    assert looks


# ── several machines ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_day_that_is_over_stays_as_the_last_machine_left_it(archived: PublishedSite, *, is_followed: bool) -> None:
    shutil.copytree("output", "other")
    archived.edit(1, volume=300.0)
    archived.done("rebuild", "--as-of", day(3, 20))
    if is_followed:
        archived.edit(1, volume=4.0)
        archived.done("rebuild", "--as-of", day(4))
    archived.edit(1, volume=5.0)
    archived.done("rebuild", "--as-of", day(5), output="other")
    assert volumes(archived.objects())[date(3)] == 300


def test_an_undone_takedown_brings_a_market_back_to_no_day_that_is_over(archived: PublishedSite) -> None:
    shutil.copytree("output", "other")
    shutil.rmtree("output")
    archived.done("takedown", market_id(1))
    archived.done("takedown", "--undo", market_id(1))
    archived.done("rebuild", "--as-of", day(3, 14), output="other")
    assert volumes(archived.objects()).keys() == {date(3)}


def test_a_market_that_another_machine_hid_comes_back_to_no_day_that_is_over(archived: PublishedSite) -> None:
    shutil.copytree("output", "other")
    archived.edit(1, approval="pending")
    archived.done("rebuild", "--as-of", day(4))
    archived.edit(1, approval="approved")
    archived.done("rebuild", "--as-of", day(5), output="other")
    assert volumes(archived.objects()).keys() == {date(5)}


# ── purges ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_purge_takes_texts_from_what_is_whole(archived: PublishedSite) -> None:
    archived.edit(1, question="Redacted?")
    archived.done("rebuild", "--as-of", day(3, 13))
    dump = Path("output", head_in(archived.objects()).today.files("")[0].key)  # type: ignore[union-attr]
    body = dump.read_bytes()
    dump.write_bytes(body[:-6] + bytes([body[-6] ^ 1]) + body[-5:])
    archived.run("publish", "--purge-retired")
    assert len(head_in(archived.objects()).days) == 2


def test_a_build_that_purges_says_which_day_it_ends(archived: PublishedSite) -> None:
    day_file = Path("output", head_in(archived.objects()).days[0].files("")[0].key)
    day_file.write_bytes(b"torn")
    result = archived.done("build", "--purge-retired", "--as-of", day(3, 14))
    assert f"{date(1)}.json" in result.stderr
    assert "missing or damaged" in result.stderr
    assert dates(files(Path("output"))) == ([date(2)], date(3))


def test_a_purge_leaves_markets_of_fx_families_in_earlier_days(archived: PublishedSite) -> None:
    insert_fx_member(archived.database)
    archived.done("rebuild", "--as-of", day(4))
    archived.done("publish", "--purge-retired")
    assert volumes(archived.objects()).keys() == {date(1), date(2), date(3)}


def test_a_purge_in_a_new_folder_reaches_the_days_that_only_the_store_has(archived: PublishedSite) -> None:
    archived.forget_output()
    archived.edit(1, question="Redacted?")
    archived.done("build", "--purge-retired", "--as-of", day(4))
    archived.done("publish")
    assert len(head_in(archived.objects()).days) == 3
    assert "On day" not in str(days_of(archived.objects()))


def test_a_purge_renews_addresses_too(published_site: PublishedSite) -> None:
    site = published_site
    site.database.execute("ALTER TABLE markets ADD COLUMN key TEXT")
    site.settings |= {"archive.days": "5", "dumps.parquet": "true", "market_url": "https://example.org/m/{key}"}
    site.edit(1, key="a-name")
    for number in (1, 2):
        site.edit(2, volume=float(number))
        site.done("rebuild", "--as-of", day(number))
    site.edit(1, key="another")
    site.edit(2, volume=7.0)
    site.done("rebuild", "--as-of", day(3))
    site.done("publish", "--purge-retired")
    bodies = [site.objects()[one.files("")[1].key] for one in head_in(site.objects()).all_days()]
    urls = [[json.loads(row).get("url") for row in parquet.rows(BytesIO(body))] for body in bodies]
    assert [[url for url in of_day if url] for of_day in urls] == [["https://example.org/m/another"]] * 3


# ── clocks and settings ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_build_of_an_earlier_day_changes_none_that_is_over(archived: PublishedSite) -> None:
    for number in (5, 6, 4):
        archived.edit(1, volume=float(number))
        archived.done("rebuild", "--allow-older", "--as-of", day(number))
    archived.edit(1, volume=55.0)
    archived.done("rebuild", "--allow-older", "--as-of", day(5))
    assert volumes(archived.objects())[date(5)] == 5


def test_an_archive_that_was_switched_off_begins_anew(archived: PublishedSite) -> None:
    archived.settings["archive.days"] = "0"
    archived.done("rebuild", "--as-of", day(4))
    assert not [key for key in archived.objects() if keys.is_archived_day(key)]
    archived.settings["archive.days"] = "5"
    archived.done("rebuild", "--as-of", day(4, 13))
    assert dates(archived.objects()) == ([], date(4))


def test_a_day_keeps_its_parquet_beside_an_equal_one_that_has_none(published_site: PublishedSite) -> None:
    published_site.settings |= {"archive.days": "5"}
    published_site.done("rebuild", "--as-of", day(1))
    published_site.settings |= {"dumps.parquet": "true"}
    published_site.done("rebuild", "--as-of", day(2))
    published_site.edit(1, volume=5.0)
    published_site.done("rebuild", "--as-of", day(3))
    assert [one.parquet is not None for one in head_in(published_site.objects()).all_days()] == [False, True, True]
