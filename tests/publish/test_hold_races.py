"""`hold` and runs that are at work, or begin; a damaged record; and a hold of a former program."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from generator.publish import blocklist as holds
from generator.publish import record
from generator.publish.record import Work
from generator.tree import blocklist
from generator.tree.blocklist import Hold
from tests.publish.test_hold import NAME, REASON, hold, never, sentence
from tests.support.sites.publishing import PREFIX, PublishedSite, hour
from tests.support.stores.s3.wire import Request

# ── meeting another run ───────────────────────────────────────────────────────────────────────────────────────────


def at_work(site: PublishedSite, deadline: datetime) -> Work:
    """Have somebody on another machine at work until the deadline."""
    work = Work(
        owner="x", process="y", who="process 1 on elsewhere", since=hour(1), deadline=deadline.isoformat(), touched=()
    )
    site.put(record.KEY, site.record().model_copy(update={"work": work}).encoded())
    return work


def test_a_hold_waits_for_a_run_at_work(published_site: PublishedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    at_work(published_site, datetime.now(UTC) + timedelta(minutes=5))

    def ends(_: float) -> None:
        published_site.put(record.KEY, published_site.record().model_copy(update={"work": None}).encoded())

    monkeypatch.setattr("time.sleep", ends)
    result = published_site.done("hold", REASON)
    assert "waiting: s3://markets/api: process 1 on elsewhere has been publishing since" in result.stderr
    assert published_site.record().work is None
    assert published_site.hold()


def test_a_hold_leaves_the_work_of_a_dead_publisher_in_the_record(published_site: PublishedSite) -> None:
    work = at_work(published_site, datetime.now(UTC) - timedelta(minutes=5))
    hold(published_site)
    assert published_site.record().work == work
    published_site.refused(3, "publish")
    assert published_site.record().work is None
    published_site.done("hold", "--release")
    published_site.done("publish")
    published_site.check()


@pytest.mark.parametrize("command", ["publish", "rebuild"])
def test_a_hold_that_comes_while_a_run_begins_stops_it(published_site: PublishedSite, command: str) -> None:
    """It has read the record, and is about to put its intent."""
    published_site.edit(1, question="Wrong?")
    published_site.done("build", "--as-of", hour(1))
    store = published_site.store()

    def hold_first(request: Request) -> None:
        if request.operation == "PutObject" and request.key.endswith(record.KEY):
            published_site.server.before = None
            holds.set_hold(store, REASON, "me@here", never)

    published_site.server.before = hold_first
    before = published_site.objects()
    result = published_site.run(command)
    assert result.exit_code == 3, result.output
    found = published_site.hold()
    assert found
    assert sentence(found) in result.stderr
    assert published_site.objects() == before
    assert published_site.record().work is None


def test_a_hold_that_comes_while_a_rebuild_builds_refuses_it(published_site: PublishedSite) -> None:
    """It read the blocked list before it built, and reads the record after that."""
    published_site.edit(1, question="Wrong?")
    store, is_read = published_site.store(), list[bool]()

    def held_when_the_list_was_read(request: Request, _: object) -> None:
        if request.key.endswith(blocklist.KEY) and not is_read:
            is_read.append(True)
            holds.set_hold(store, REASON, "me@here", never)

    published_site.server.after = held_when_the_list_was_read
    before = published_site.objects()
    result = published_site.run("rebuild", "--as-of", hour(1))
    assert result.exit_code == 3, result.output
    found = published_site.hold()
    assert found
    assert sentence(found) in result.stderr
    assert published_site.objects() == before
    written = [entry.key for entry in published_site.server.log if entry.operation == "PutObject"]
    assert written == [f"{PREFIX}{key}" for key in (blocklist.KEY, record.KEY)], "those of the hold"


# ── a damaged record, and other versions ──────────────────────────────────────────────────────────────────────────


def test_a_hold_survives_a_damaged_record(published_site: PublishedSite) -> None:
    found = hold(published_site)
    published_site.put(record.KEY, b"{")
    assert published_site.refused(3, "publish", "--verify") == sentence(found)
    assert published_site.done("hold").stdout == f"{NAME}: {found}; what is published stays\n"
    assert published_site.done("hold", "--release").stdout.endswith(f"it was {found}\n")
    assert "damaged" in published_site.refused(1, "hold"), "it may have had the hold of a former program"
    published_site.done("publish", "--verify")
    assert published_site.hold() is None
    published_site.check()


@pytest.mark.parametrize("command", ["publish", "rebuild"])
def test_a_hold_that_a_former_program_put_in_the_record_is_obeyed_and_can_be_released(
    published_site: PublishedSite, command: str
) -> None:
    found = Hold(reason=REASON, who="me@here", since=hour(1))
    published_site.edit(1, question="Wrong?")
    published_site.done("build", "--as-of", hour(1))
    altered(published_site, hold=found.model_dump(by_alias=True))
    assert published_site.refused(3, command) == sentence(found)
    assert str(found) in published_site.done("hold").stdout
    assert str(found) in published_site.done("check").stdout
    assert published_site.done("hold", "--release").stdout.endswith(f"it was {found}\n")
    assert published_site.done("hold").stdout == f"{NAME}: is not on hold\n"
    published_site.done(command)
    published_site.check()


def test_a_new_hold_replaces_that_of_a_former_program(published_site: PublishedSite) -> None:
    former = Hold(reason="names", who="me@here", since=hour(1))
    altered(published_site, hold=former.model_dump(by_alias=True))
    assert f"this replaces an earlier hold: {former}" in published_site.done("hold", REASON).stderr
    published_site.done("hold", "--release")
    assert published_site.done("hold").stdout == f"{NAME}: is not on hold\n"


def altered(site: PublishedSite, **fields: object) -> None:
    site.put(record.KEY, json.dumps({**json.loads(site.stored()[record.KEY]), **fields}).encode())
