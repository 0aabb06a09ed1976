"""`hold` stops builds from being published, from every machine, until it is released; takedowns pass."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from generator.publish import blocklist as holds
from generator.publish import record
from generator.publish.lease import Lease
from generator.publish.record import Published
from generator.stores.store import Store
from generator.tree import blocklist
from generator.tree.blocklist import HeldError, Hold
from tests.support.sites.builds import manifest_of
from tests.support.sites.publishing import FX, PublishedSite, hour
from tests.support.sites.rows import market_id
from tests.support.stores.places import Place, place
from tests.support.stores.s3.behaviour import APPLIED_BUT_FAILED

NAME = "s3://markets/api"
LEASE = timedelta(minutes=5)
RECORD = Published(sequence=0, built=manifest_of(), etags={})
REASON = "prices <b>of yesterday</b>"
RELEASE = "no build is published until `public-markets hold --release`"


def hold(site: PublishedSite) -> Hold:
    """Put the site on hold, in front of a newer build in its folder."""
    site.edit(1, question="Wrong?")
    site.done("hold", REASON)
    found = site.hold()
    assert found
    return found


def sentence(found: Hold) -> str:
    return f"{NAME}: {found}; {RELEASE}"


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_hold_says_who_holds_since_when_why_and_what_stays(published_site: PublishedSite) -> None:
    result = published_site.done("hold", f"  {REASON} ")
    found = published_site.hold()
    assert found
    assert found.reason == REASON
    assert re.fullmatch(r"\S+@\S+", found.who)
    assert result.stdout == (
        f"{NAME}: on hold since {found.since}, by {found.who}: {REASON}; what is published as of "
        "2024-01-31T12:00:00.000Z stays\n"
    )
    assert published_site.done("hold").stdout == result.stdout
    told = json.loads(published_site.done("hold", "--log-format", "json").stdout)
    assert told.items() >= {
        "on_hold": True, "who": found.who, "since": found.since, "reason": REASON, "as_of": "2024-01-31T12:00:00.000Z",
    }.items()  # fmt: skip


def test_a_hold_takes_five_requests_and_a_release_three_and_they_change_nothing_else(
    published_site: PublishedSite,
) -> None:
    before, objects = published_site.record(), published_site.objects()
    assert published_site.requests("hold", REASON) == [
        "GetObject manifest.json",
        *(of_list := ["GetObject blocked.json", "PutObject blocked.json"]),
        "GetObject manifest.json", "PutObject manifest.json",
    ]  # fmt: skip
    fenced = before.model_copy(update={"sequence": before.sequence + 1, "is_held": True})
    assert published_site.record() == fenced
    assert not any(REASON.encode() in body for body in published_site.objects().values())
    assert published_site.requests("hold", "--release") == [*of_list, "GetObject manifest.json"]
    assert published_site.record() == fenced
    assert published_site.objects() == objects


def test_the_same_hold_set_again_is_as_old_as_it_was(published_site: PublishedSite) -> None:
    first = published_site.done("hold", REASON)
    again = published_site.done("hold", REASON)
    assert (again.stdout, again.stderr) == (first.stdout, "")


def test_a_release_says_what_it_ends_or_that_nothing_holds(published_site: PublishedSite) -> None:
    assert published_site.done("hold", "--release").stdout == f"{NAME}: is not on hold\n"
    found = hold(published_site)
    assert published_site.done("hold", "--release").stdout == (
        f"{NAME}: released, builds can be published again; it was {found}\n"
    )
    assert published_site.hold() is None
    assert published_site.done("hold").stdout == f"{NAME}: is not on hold\n"


def test_a_store_where_nothing_is_published_cannot_be_held(empty: PublishedSite) -> None:
    assert empty.refused(1, "hold", REASON) == (
        f"{NAME}: nothing is published there, so there is nothing to put on hold; as long as nobody runs "
        "`public-markets publish` or `rebuild`, nothing will be"
    )
    assert empty.stored() == {}
    assert empty.done("hold", "--release").stdout == f"{NAME}: is not on hold\n"


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("", "is empty"),
        (" \t", "is empty"),
        ("x" * 201, "has 201 characters, 200 are allowed"),
        ("one\ntwo", "must be one line of printable characters"),
        ("\x1b[2J", "must be one line of printable characters"),
        ("\u202etxt", "must be one line of printable characters"),
        ("\udcff", "must be one line of printable characters"),
    ],
)
def test_a_reason_is_one_short_printable_line(published_site: PublishedSite, reason: str, says: str) -> None:
    result = published_site.run("hold", reason)
    assert result.exit_code == 2
    assert says in result.stderr
    assert published_site.hold() is None


# ── what it stops, and what passes ────────────────────────────────────────────────────────────────────────────────


def test_a_reason_and_a_release_exclude_each_other(published_site: PublishedSite) -> None:
    result = published_site.run("hold", REASON, "--release")
    assert (result.exit_code, "give a REASON or --release, not both" in result.stderr) == (2, True)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    "command",
    [("publish", "--accept=older"), ("publish", "--verify"), ("rebuild", "--as-of", hour(2))],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_run_is_refused_with_who_holds_since_when_and_why(
    published_site: PublishedSite, command: tuple[str, ...]
) -> None:
    found = hold(published_site)
    published_site.done("build", "--as-of", hour(1))
    assert published_site.refused(3, *command) == sentence(found)
    assert published_site.hold() == found
    published_site.done("hold", "--release")
    published_site.done(*command)
    published_site.check()
    assert published_site.hold() is None


def test_a_dry_run_shows_what_a_release_would_publish(published_site: PublishedSite) -> None:
    found = hold(published_site)
    before = published_site.stored()
    result = published_site.done("rebuild", "--dry-run", "--as-of", hour(1))
    assert f"{NAME}: {found}; without --dry-run, this run would be refused until" in result.stderr
    assert "upload v1/build.json: changed" in result.stdout
    assert published_site.stored() == before


def test_a_takedown_passes_and_keeps_the_hold(published_site: PublishedSite) -> None:
    found = hold(published_site)
    published_site.done("takedown", market_id(FX), market_id(1))
    assert published_site.traces(1, output=False) == published_site.traces(FX, output=False) == []
    published_site.done("takedown", "--undo", market_id(1))
    assert published_site.hold() == found
    assert published_site.refused(3, "publish") == sentence(found)


def test_a_refused_rebuild_believes_the_blocked_list_and_not_the_database(published_site: PublishedSite) -> None:
    """A wrong database must not empty, run by run, what the operator brought back."""
    found = hold(published_site)
    published_site.edit(2, is_listed=0)
    published_site.edit(3, prob=7.5)
    before = published_site.objects()
    published_site.refused(3, "rebuild", "--as-of", hour(1), "--accept=invalid")
    assert published_site.objects() == before
    published_site.block(4)
    result = published_site.run("rebuild", "--as-of", hour(1), "--accept=invalid")
    assert result.exit_code == 3
    assert "hidden markets were still withdrawn" in result.stderr
    assert published_site.traces(4) == []
    assert published_site.traces(2, output=False)
    assert published_site.traces(3, output=False)
    assert published_site.hold() == found


def test_a_hold_belongs_to_its_place_and_is_never_merged(published_site: PublishedSite) -> None:
    found = hold(published_site)
    published_site.done("takedown", market_id(1))
    published_site.refused(3, "publish")
    copy = Path("output", blocklist.KEY)
    assert published_site.hold() == found
    assert (blocklist.decode(copy.read_bytes()).hold, market_id(1) in copy.read_text("utf-8")) == (None, True)
    published_site.done("hold", "--release")
    target, published_site.target = published_site.target, ""
    published_site.done("hold", "of the folder")
    published_site.target = target
    published_site.done("rebuild")
    assert published_site.hold() is None
    published_site.target = ""
    assert "of the folder" in published_site.refused(3, "build")


# ── each kind of target ───────────────────────────────────────────────────────────────────────────────────────────


#: A place of each kind to publish to; that conditions hold on every server, the tests of stores show.
target = pytest.fixture(name="target", params=[("directory", "", ""), ("s3", "obstore", "")], ids="-".join)(place)


def test_a_hold_is_set_and_ended_on_either_kind_of_target(target: Place) -> None:
    begun = Lease(target.open(), LEASE)
    begun.read()
    begun.take(RECORD, ())
    begun.release(RECORD)
    before = json.loads(body(target.open()))
    fenced = {**before, "sequence": before["sequence"] + 1, "isHeld": True}
    change = holds.set_hold(target.open(), REASON, "me@here", never)
    assert change.before is None
    assert change.after == holds.held(target.open()).after
    assert change.as_of == RECORD.built.as_of
    with pytest.raises(HeldError, match="by me@here: prices"), holds.explaining_hold(target.open()):
        begun.take(RECORD, ())
    assert holds.release_hold(target.open(), never).before == change.after
    assert json.loads(body(target.open())) == fenced


def body(store: Store) -> bytes:
    found = store.get(record.KEY)
    assert found
    return found.body


def never(line: str) -> None:
    raise AssertionError(line)


@pytest.mark.usefixtures("impatient")
def test_a_hold_without_an_answer_says_that_it_may_be_set(published_site: PublishedSite) -> None:
    for key in (blocklist.KEY, record.KEY):
        published_site.server.before = lambda request, key=key: (
            APPLIED_BUT_FAILED if request.operation == "PutObject" and request.key.endswith(key) else None
        )
        message = published_site.refused(5, "hold", f"{REASON}: {key}")
        assert f"no answer, so it is unknown whether {key} was replaced" in message
        assert message.endswith("`public-markets hold` says whether the target is on hold")


# ── who says so ───────────────────────────────────────────────────────────────────────────────────────────────────


def clock(site: PublishedSite, minutes: int) -> None:
    moment = datetime(2024, 1, 31, 12, tzinfo=UTC) + timedelta(minutes=minutes)
    site.server.clock = moment.timestamp


def test_check_warns_of_a_hold_and_blames_no_schedule(published_site: PublishedSite) -> None:
    clock(published_site, 10)
    found = hold(published_site)
    assert f"warning: {sentence(found)}" in published_site.done("check").stdout.splitlines()
    clock(published_site, 300)
    lines = published_site.done("check").stdout.splitlines()
    assert f"warning: {sentence(found)}" in lines
    assert not any("check that cron runs" in line for line in lines)


def test_the_monitor_s_check_says_that_a_store_is_on_hold_and_fails_when_it_is_stale(
    published_site: PublishedSite,
) -> None:
    clock(published_site, 10)
    found = hold(published_site)
    assert published_site.done("check", "--published").stdout == (
        f"{NAME}: 11 markets are published as of 2024-01-31T12:00:00.000Z, 10 minutes ago; {found}\n"
    )
    clock(published_site, 300)
    message = published_site.refused(1, "check", "--published")
    assert message.endswith(f"more than 3 schedules of 60 minutes; {found}; {RELEASE}")


def metric(site: PublishedSite) -> list[tuple[dict[str, str], float]]:
    text = (site.folder / "run.prom").read_text("utf-8")
    return [
        (dict(found.labels), found.value)
        for family in text_string_to_metric_families(text)
        for found in family.samples
        if found.name == "public_markets_hold_since_timestamp_seconds"
    ]


def test_metrics_say_who_holds_since_when_and_why(published_site: PublishedSite) -> None:
    published_site.settings["metrics"] = "run.prom"
    published_site.done("rebuild", "--as-of", hour(1))
    assert metric(published_site) == [({}, 0)]
    published_site.done("hold", 'quotes " and \\ in it')
    found = published_site.hold()
    assert found
    for _ in range(2):
        published_site.refused(3, "rebuild", "--as-of", hour(2))
        since = datetime.fromisoformat(found.since).timestamp()
        assert metric(published_site) == [({"who": found.who, "reason": found.reason}, since)]
    published_site.done("hold", "--release")
    published_site.done("rebuild", "--as-of", hour(2))
    assert metric(published_site) == [({}, 0)]


def test_a_hold_in_a_damaged_record_still_holds_and_can_be_released(published_site: PublishedSite) -> None:
    found = hold(published_site)
    content = json.loads(published_site.stored()[record.KEY])
    published_site.put(record.KEY, json.dumps({**content, "etags": "nonsense"}).encode())
    assert "damaged or not this program's" in published_site.refused(1, "publish")
    assert published_site.refused(3, "publish", "--verify") == sentence(found)
    assert str(found) in published_site.done("hold").stdout
    published_site.done("hold", "--release")
    published_site.done("publish", "--verify")
    published_site.check()
