"""Takedown: nothing under v1/ shows the market afterwards, and it stays away."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from generator import filesystem
from generator.api import keys
from generator.tree.files import INSPECTION, REPORT
from tests.support.deaths import Kill
from tests.support.faults import Reader
from tests.support.sites.builds import text_of
from tests.support.sites.publishing import (
    CANCELLED,
    CLOSED,
    EVERY,
    FIRST,
    FX,
    RESOLVED,
    PublishedSite,
    copy_output,
    hour,
)
from tests.support.sites.rows import insert_category, market_id
from tests.support.stores.s3.behaviour import SLOW_DOWN

UNKNOWN = market_id(4_711)


def retire(site: PublishedSite, number: int = 1) -> None:
    """Leave retired generations that hold the market."""
    site.edit(number, question=f"Question {number}?", volume=77.0)
    site.done("rebuild", "--as-of", hour(1))
    assert site.record().built.retired
    assert len(site.traces(number)) > 50


# By a rebuild


def test_its_detail_is_deleted_before_anything_else_changes(published_site: PublishedSite) -> None:
    published_site.edit(1, approval="rejected")
    requests = published_site.requests("rebuild", "--as-of", hour(1))
    assert [request.split()[0] for request in requests[:6]] == [
        # The withdrawal made the folder forget what was published of the change feed, so that is read.
        *("GetObject", "GetObject", "GetObject", "PutObject"),
        *("GetObject", "DeleteObjects"),  # the blocked list is read again under the lease
    ]
    assert [request for request in requests[:6] if "v1/" in request] == [requests[2]]
    assert "v1/changes/d" in requests[2]


def test_a_market_is_withdrawn_from_the_lists_of_every_status_it_had(published_site: PublishedSite) -> None:
    """The record keeps every status, even if each was published by a different machine."""
    published_site.edit(1, status="closed")
    published_site.forget_output()
    published_site.done("rebuild", "--as-of", hour(1))
    published_site.forget_output()
    published_site.edit(1, status="resolved", resolution="NO", resolved_at="2026-01-20 00:00:00")
    published_site.done("rebuild", "--as-of", hour(2))
    published_site.done("takedown", market_id(1))
    assert published_site.traces(1) == []
    published_site.check()
    held = {entry.list.split("/")[0] for entry in published_site.record().built.retired}
    assert held == set(), "every list except the cancelled ones held it"


# By the command


def test_the_command_works_where_there_is_no_output_folder(published_site: PublishedSite) -> None:
    retire(published_site)
    copy_output(published_site.folder / "output", published_site.folder / "kept")
    published_site.forget_output()
    published_site.done("takedown", market_id(1).upper())
    assert published_site.traces(1, output=False) == []
    assert not (published_site.folder / "output").exists()
    # The old build still has it; publishing that build must not bring it back.
    shutil.move(published_site.folder / "kept", published_site.folder / "output")
    published_site.done("publish")
    assert published_site.traces(1) == []
    published_site.check()


@pytest.mark.parametrize(("ndjson", "most"), [("true", 0), ("false", 1)])
def test_it_reads_no_list_that_never_held_the_market_and_other_details_only_where_there_is_no_dump(
    published_site: PublishedSite, ndjson: str, most: int
) -> None:
    compact = {"layout": "chunks", "dumps__ndjson": ndjson, "prices_file": "false"}
    published_site.done("rebuild", "--as-of", hour(1), **compact)
    published_site.forget_output()
    read = Counter(published_site.requests("takedown", market_id(1)))
    details = {key: count for key, count in read.items() if key.startswith(f"GetObject {keys.DETAILS}/")}
    own = f"GetObject {keys.detail(market_id(1))}"
    assert max((count for key, count in details.items() if key != own), default=0) == most
    never = [key for key in read if key.startswith(f"GetObject {keys.LISTS}/cancelled/")]
    assert never == [] or most
    assert published_site.traces(1, output=False) == []


def test_guards_do_not_apply(published_site: PublishedSite) -> None:
    gone = [market_id(number) for number in (1, 2, 3, CLOSED, FX)]
    published_site.done("takedown", *gone, guards__max_shrink="0")
    for number in (1, 2, 3, CLOSED, FX):
        assert published_site.traces(number) == []
    published_site.check()
    # Nor do they count the markets as lost later.
    published_site.done("rebuild", "--as-of", hour(1), guards__max_shrink="0")
    assert len(published_site.record().built.markets) == len(EVERY) - 5


def test_without_an_id_it_lists_blocked_markets(published_site: PublishedSite) -> None:
    assert published_site.done("takedown").stdout == "0 markets are blocked\n"
    published_site.done("takedown", market_id(FX), UNKNOWN)
    before = published_site.stored()
    lines = published_site.done("takedown").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [market_id(FX), UNKNOWN, "2"]
    assert published_site.stored() == before


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("command", [("takedown",), ("publish",), ("rebuild", "--as-of", hour(1))])
def test_every_takedown_and_publish_deletes_the_details_of_blocked_markets_again(
    published_site: PublishedSite, command: tuple[str, ...]
) -> None:
    key = keys.detail(market_id(FX))
    body = published_site.objects()[key]
    published_site.done("takedown", market_id(FX))
    published_site.put(key, body)
    result = published_site.done(*command)
    assert published_site.traces(FX) == []
    if command[0] != "rebuild":  # it deletes without looking, and so need not learn that there was anything
        assert "cached copies of withdrawn markets may remain" in result.stderr
    published_site.check()


def test_an_unchanged_publish_asks_once_for_each_blocked_market(published_site: PublishedSite) -> None:
    published_site.done("takedown", market_id(FX))
    published_site.done("publish")
    assert published_site.requests("publish") == [
        "GetObject manifest.json",
        "GetObject blocked.json",
        f"HeadObject {keys.detail(market_id(FX))}",
    ]


@pytest.mark.parametrize("writes", [1, 5, 30, 120, 200])
def test_a_publish_finishes_a_takedown_that_was_killed_in_the_folder(
    published_site: PublishedSite, writes: int
) -> None:
    with Kill(10 + writes).over(published_site.server):
        published_site.run("takedown", market_id(1))
    published_site.server.behaviour.clock_offset_s += 600
    published_site.done("publish")
    assert published_site.traces(1) == []
    published_site.check()
    assert "0 deleted" in published_site.done("build", "--as-of", FIRST).stdout
    page = Path("output", INSPECTION).read_text("utf-8")
    assert "Question 1?" not in page
    assert "Question 2?" in page


def test_a_publish_says_that_an_undo_elsewhere_needs_a_build(published_site: PublishedSite) -> None:
    published_site.done("takedown", market_id(1))
    copy_output(Path("output"), Path("another"))
    published_site.done("takedown", "--undo", market_id(1))
    published_site.done("build", "--as-of", hour(1), output="another")
    for _ in range(2):
        told = published_site.done("publish", output="another").stderr
        assert f"{market_id(1)}: no longer blocked, but still left out, by a build that did not know it" in told
        assert "`public-markets rebuild` publishes it again" in told
    assert published_site.traces(1, output=False) == []
    assert "no longer blocked" not in published_site.done("rebuild", "--as-of", hour(2), output="another").stderr
    assert published_site.traces(1, output=False)


@pytest.mark.usefixtures("impatient")
def test_an_unresponsive_store_is_an_error(published_site: PublishedSite) -> None:
    published_site.server.before = lambda _: SLOW_DOWN
    for command in (["takedown", market_id(1)], ["takedown"], ["publish"], ["rebuild"]):
        sentence = published_site.refused(1, *command)
        assert sentence.startswith("s3://markets/api: does not answer (")


@pytest.mark.parametrize("was_bad", ["was bad", ""])
def test_a_row_of_what_is_taken_down_is_not_told_when_it_is_bad(
    published_site: PublishedSite, tmp_path: Path, was_bad: str
) -> None:
    canary, metrics, output = "Canary7", tmp_path / "metrics.prom", published_site.folder / "output"
    published_site.settings |= {"metrics": str(metrics), "guards.max_invalid": "1", "guards.max_shrink": "1"}

    def spoil() -> None:
        published_site.edit(1, question=f"{canary} {'x' * 100_000}")

    if was_bad:
        spoil()
        assert canary in published_site.done("rebuild", "--as-of", hour(1)).stderr
        assert 'quarantined_rows{relation="markets"} 1.0' in metrics.read_text()
    published_site.done("takedown", market_id(1))
    spoil()
    for number in (2, 3):
        told = published_site.done("rebuild", "--as-of", hour(number)).stderr
        assert (canary in told, "quarantined" in told) == (False, False)
        assert all(canary not in (output / name).read_text() for name in (REPORT, INSPECTION))
        report = json.loads((output / REPORT).read_bytes())
        assert (report["quarantined"], report["quarantinedUnnamed"], report["markets"]["quarantined"]) == ([], 0, 0)
        assert 'quarantined_rows{relation="markets"} 0.0' in metrics.read_text()
        assert 'quarantined_rows_new{relation="markets"} 0.0' in metrics.read_text()


# Without a build


def test_a_revoked_market_is_withdrawn_even_if_the_build_is_refused(published_site: PublishedSite) -> None:
    published_site.edit(1, approval="rejected")
    for number in (2, 3, 4):
        published_site.edit(number, prob=7.0)
    result = published_site.run("rebuild", "--as-of", hour(1))
    assert result.exit_code == 3
    assert "more than guards.max_invalid" in result.stderr
    assert [key for key in published_site.traces(1) if key.startswith("store")] == []
    assert all(published_site.traces(number) for number in (2, 3, 4))
    assert published_site.record().work is None


def test_a_market_blocked_on_another_machine_is_withdrawn_even_without_the_database(
    published_site: PublishedSite,
) -> None:
    published_site.block(1)
    Path("markets.db").rename("away.db")
    result = published_site.run("rebuild")
    assert result.exit_code == 1
    assert "hidden markets were still withdrawn" in result.stderr
    assert [key for key in published_site.traces(1) if key.startswith("store")] == []
    Path("away.db").rename("markets.db")
    published_site.done("rebuild")
    assert published_site.traces(1) == []
    published_site.check()


# Whatever else is broken


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("body", [None, b"{}{"])
def test_without_a_record_details_go_and_the_takedown_says_what_remains(
    published_site: PublishedSite, body: bytes | None
) -> None:
    retire(published_site)
    published_site.remove("manifest.json")
    if body is not None:
        published_site.put("manifest.json", body)
    result = published_site.run("takedown", market_id(1))
    assert result.exit_code == 1
    assert "s3://markets/api: nothing is left of the blocked markets" not in result.stderr
    fault = "missing or damaged" if body is None else "damaged or not this program's (1 error)"
    assert (
        f"error: s3://markets/api: holds v1/ but manifest.json is {fault}, so nobody knows what is published; the "
        "details of blocked markets were deleted, but lists may still show them; run `public-markets rebuild "
        "--verify`, which writes the record anew\n"
    ) in result.stderr
    assert published_site.read(keys.detail(market_id(1))) is None
    assert published_site.blocked_ids() == {market_id(1)}
    assert published_site.run("takedown").exit_code == 1, "as long as there is no record"
    result = published_site.done("rebuild", "--as-of", hour(2), "--verify")
    assert "cached copies of withdrawn markets may remain" in result.stderr
    assert published_site.traces(1) == []
    published_site.check()
    assert "s3://markets/api: nothing is left of the blocked markets (" in published_site.done("takedown").stderr


def test_a_category_goes_with_its_last_market(published_site: PublishedSite) -> None:
    insert_category(published_site.database, "Zyzzyvas", market_id=market_id(1))
    published_site.done("rebuild", "--as-of", hour(1), variant="extended")
    assert b"Zyzzyvas" in published_site.objects()[keys.BUILD]
    published_site.forget_output()
    assert published_site.run("takedown", market_id(1), variant="extended").exit_code == 0
    assert not [
        key for key, body in published_site.objects().items() if b"zyzzyva" in key.encode() + text_of(key, body).lower()
    ]


def test_a_takedown_before_the_first_publish_succeeds(empty: PublishedSite) -> None:
    empty.done("takedown", market_id(FX))
    empty.done("publish")
    assert empty.traces(FX) == []
    empty.check()


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    "hiding", ["UPDATE markets SET approval = 'rejected'", "UPDATE markets SET is_listed = 0", "DELETE FROM markets"]
)
def test_the_next_rebuild_withdraws_a_market_that_is_no_longer_public(
    published_site: PublishedSite, hiding: str
) -> None:
    retire(published_site)
    published_site.database.execute(f"{hiding} WHERE id = ?", [market_id(1)])
    result = published_site.done("rebuild", "--as-of", hour(2))
    assert published_site.traces(1) == []
    published_site.check()
    assert f"withdrawn: market {market_id(1)} is no longer public" in result.stderr
    assert "cached copies of withdrawn markets may remain" in result.stderr
    assert f'"{market_id(1)}"' not in published_site.stored()["manifest.json"].decode()


def test_walks_in_lists_that_never_held_it_continue(published_site: PublishedSite) -> None:
    for number in (CLOSED, RESOLVED, CANCELLED):
        published_site.edit(number, status="closed", resolution=None, resolved_at=None)
    published_site.done("rebuild", "--as-of", hour(1))
    reader = Reader(published_site.read)
    begun = reader.begin("closed/new", 2)
    published_site.edit(CLOSED, question="Else?")
    published_site.edit(1, approval="rejected")
    published_site.done("rebuild", "--as-of", hour(2))
    reader.finish(begun)
    assert published_site.traces(1) == []


# Folders without a target


def test_no_power_failure_brings_back_what_a_takedown_deleted_from_a_folder(
    published_site: PublishedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, sync = list[list[Path]](), filesystem.sync

    def noted(folder: Path) -> None:
        sync(folder)
        texts = [path for path in Path("output").rglob("*.json") if b"Question 1?" in path.read_bytes()]
        found.append([path for path in texts if path.parts[1] != "report.json"])

    monkeypatch.setattr(filesystem, "sync", noted)
    published_site.target = ""
    published_site.done("takedown", market_id(1))
    assert found[0], "what is staged is flushed before anything is replaced"
    assert not found[-1], "what is deleted is flushed when it is gone"


def test_without_target_and_folder_a_takedown_applies_to_the_first_build(published_site: PublishedSite) -> None:
    published_site.forget_output()
    published_site.target = ""
    published_site.done("takedown", market_id(FX))
    published_site.done("build")
    assert not [key for key, body in published_site.built().items() if market_id(FX).encode() in body]
