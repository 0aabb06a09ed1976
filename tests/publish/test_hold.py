"""`hold` stops builds from being published, from every machine, until it is released; takedowns pass."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from generator.api.forms import instant
from generator.publish import record
from generator.publish.record import Work
from generator.tree import blocklist
from generator.tree.blocklist import Hold
from generator.tree.folder import locked
from tests.support.sites.publishing import PublishedSite, hour
from tests.support.sites.rows import market_id
from tests.support.stores.s3.behaviour import APPLIED_BUT_FAILED

NAME = "s3://markets/api"
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
    ("words", "says"),
    [
        *((("hold", reason), "is empty") for reason in ("", " \t")),
        (("hold", "x" * 201), "has 201 characters, 200 are allowed"),
        *(
            (("hold", reason), "must be one line of printable characters")
            for reason in ("one\ntwo", "\x1b[2J", "\u202etxt", "\udcff")
        ),
        (("hold", REASON, "--release"), "give a REASON or --release, not both"),
    ],
)
def test_a_reason_is_one_short_printable_line(published_site: PublishedSite, words: tuple[str, ...], says: str) -> None:
    result = published_site.run(*words)
    assert result.exit_code == 2
    assert says in result.stderr
    assert published_site.hold() is None


# ── what it stops, and what passes ────────────────────────────────────────────────────────────────────────────────


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


def test_checks_say_that_a_store_is_on_hold_and_blame_no_schedule(published_site: PublishedSite) -> None:
    clock(published_site, 10)
    found = hold(published_site)
    assert published_site.done("check", "--published").stdout == (
        f"{NAME}: 11 markets are published as of 2024-01-31T12:00:00.000Z, 10 minutes ago; {found}\n"
    )
    assert f"warning: {sentence(found)}" in published_site.done("check").stdout.splitlines()
    clock(published_site, 300)
    message = published_site.refused(1, "check", "--published")
    assert message.endswith(f"more than 3 schedules of 60 minutes; {found}; {RELEASE}")
    lines = published_site.done("check").stdout.splitlines()
    assert f"warning: {sentence(found)}" in lines
    assert not any("check that cron runs" in line for line in lines)


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


# ── meeting another run ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_hold_waits_for_a_run_at_work(published_site: PublishedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(found: Work | None) -> None:
        published_site.put(record.KEY, published_site.record().model_copy(update={"work": found}).encoded())

    who, deadline = "process 1 on elsewhere", instant(datetime.now(UTC) + timedelta(minutes=5))
    work(Work(owner="x", process="y", who=who, since=hour(1), deadline=deadline, touched=()))
    monkeypatch.setattr("time.sleep", lambda _: work(None))
    result = published_site.done("hold", REASON)
    assert "waiting: s3://markets/api: process 1 on elsewhere has been publishing since" in result.stderr
    assert published_site.record().work is None
    assert published_site.hold()


# ── a damaged record, and other versions ──────────────────────────────────────────────────────────────────────────


def test_a_hold_survives_a_damaged_record(published_site: PublishedSite) -> None:
    found = hold(published_site)
    published_site.put(record.KEY, b"{")
    assert published_site.refused(3, "publish", "--verify") == sentence(found)
    assert published_site.done("hold").stdout == f"{NAME}: {found}; what is published stays\n"
    assert published_site.done("hold", "--release").stdout.endswith(f"it was {found}\n")
    assert "damaged" in published_site.refused(1, "hold"), "it may have had the hold of a former program"
    assert "`public-markets publish --verify`" in published_site.refused(1, "publish")
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
    root = json.loads(published_site.stored()[record.KEY])
    published_site.put(record.KEY, json.dumps({**root, "hold": found.model_dump(by_alias=True)}).encode())
    assert published_site.refused(3, command) == sentence(found)
    assert str(found) in published_site.done("hold").stdout
    assert str(found) in published_site.done("check").stdout
    assert published_site.done("hold", "--release").stdout.endswith(f"it was {found}\n")
    assert published_site.done("hold").stdout == f"{NAME}: is not on hold\n"
    published_site.done(command)
    published_site.check()


# ── without a target: it stops builds in the output folder, which is what is served ──────────────────────────────

STOPPED = "no build is made until `public-markets hold --release`"


@pytest.fixture
def folder(published_site: PublishedSite) -> PublishedSite:
    """A build that is served from its folder, and metrics of every run."""
    published_site.target = ""
    published_site.settings["metrics"] = "run.prom"
    return published_site


def hold_here() -> Hold:
    with locked(Path("output")) as output:
        found = blocklist.load(output).hold
    assert found
    return found


def test_a_hold_refuses_builds_until_it_is_released(folder: PublishedSite) -> None:
    assert folder.done("hold").stdout == "output: is not on hold\n"
    assert folder.done("hold", "--release").stdout == "output: is not on hold\n"
    told = folder.done("hold", REASON).stdout
    assert told == f"output: {hold_here()}; what is published as of 2024-01-31T12:00:00.000Z stays\n"
    assert folder.done("hold").stdout == folder.done("hold", REASON).stdout == told
    before = folder.built()
    assert folder.refused(3, "build", "--as-of", hour(1)) == f"output: {hold_here()}; {STOPPED}"
    assert folder.refused(1, "check", "--published").endswith(f"; {hold_here()}; {STOPPED}")
    ((labels, since),) = metric(folder)
    assert (labels, since > 0) == ({"who": hold_here().who, "reason": REASON}, True)
    assert folder.built() == before
    assert f"warning: output: {hold_here()}; {STOPPED}" in folder.done("check").stdout.splitlines()
    released = folder.done("hold", "--release").stdout
    assert released.startswith("output: released, builds can be made again; it was on hold since ")
    folder.done("build", "--as-of", hour(1))
    assert metric(folder) == [({}, 0)]


def test_another_hold_replaces_it_and_says_so(folder: PublishedSite) -> None:
    folder.done("hold", REASON)
    before = hold_here()
    assert folder.done("hold", "Names, too").stderr == f"output: this replaces an earlier hold: {before}\n"
    assert hold_here().reason == "Names, too"


def test_a_takedown_passes_and_keeps_the_hold(folder: PublishedSite) -> None:
    folder.done("hold", REASON)
    before = hold_here()
    folder.done("takedown", market_id(1))
    assert not [key for key in folder.traces(1) if key.startswith("output ")]
    folder.done("takedown", "--undo", market_id(1))
    assert hold_here() == before
    assert REASON in folder.refused(3, "build")


def test_a_folder_without_a_build_cannot_be_held(folder: PublishedSite) -> None:
    folder.forget_output()
    assert folder.refused(1, "hold", REASON) == "output: holds no build yet, so there is nothing to put on hold"
    assert folder.done("hold", "--release").stdout == "output: is not on hold\n"
    folder.done("build")
