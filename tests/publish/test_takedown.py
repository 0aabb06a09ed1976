"""Takedown: nothing under v1/ shows the market afterwards, and it stays away."""

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.api import keys
from generator.api.contract import MARKET_STATUSES
from generator.tree.folder import Output
from tests.support.builds import files, text_of
from tests.support.faults import GoneError
from tests.support.publishing import (
    CANCELLED,
    CLOSED,
    EVERY,
    FIRST,
    FX,
    OPEN,
    RESOLVED,
    Site,
    Walk,
    copy_output,
    hour,
    walk,
)
from tests.support.rows import insert_category, market_id
from tests.support.s3.behaviour import SLOW_DOWN

UNKNOWN = market_id(4_711)
QUESTION = re.compile(rb"Question \d+\?")


def retire(site: Site, number: int = 1) -> None:
    """Leave retired generations that hold the market."""
    site.edit(number, question=f"Question {number}?", volume=77.0)
    site.done("rebuild", "--as-of", hour(1))
    assert site.record().built.retired
    assert len(site.traces(number)) > 50


def blocked_ids(site: Site) -> set[str]:
    decisions = json.loads(site.stored()["blocked.json"])["markets"]
    return {market_id for market_id, decision in decisions.items() if decision["isBlocked"]}


def revoke(site: Site) -> None:
    site.edit(1, approval="rejected")


def unlist(site: Site) -> None:
    site.edit(1, is_listed=0)


def drop(site: Site) -> None:
    site.database.execute("DELETE FROM markets WHERE id = ?", [market_id(1)])


# By a rebuild


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("hide", [revoke, unlist, drop])
def test_the_next_rebuild_withdraws_a_market_that_is_no_longer_public(site: Site, hide: Callable[[Site], None]) -> None:
    retire(site)
    hide(site)
    result = site.done("rebuild", "--as-of", hour(2))
    assert site.traces(1) == []
    site.check()
    assert f"withdrawn: market {market_id(1)} is no longer public" in result.stderr
    assert "cached copies of withdrawn markets may remain" in result.stderr
    assert f'"{market_id(1)}"' not in site.stored()["manifest.json"].decode()


def test_its_detail_is_deleted_before_anything_else_changes(site: Site) -> None:
    revoke(site)
    requests = site.requests("rebuild", "--as-of", hour(1))
    assert [request.split()[0] for request in requests[:6]] == [
        # The withdrawal made the folder forget what was published of the change feed, so that is read.
        *("GetObject", "GetObject", "GetObject", "PutObject"),
        *("GetObject", "DeleteObjects"),  # the blocked list is read again under the lease
    ]
    assert [request for request in requests[:6] if "v1/" in request] == [requests[2]]
    assert "v1/changes/d" in requests[2]


def test_a_market_is_withdrawn_from_the_lists_of_every_status_it_had(site: Site) -> None:
    """The record keeps every status, even if each was published by a different machine."""
    site.edit(1, status="closed")
    site.forget_output()
    site.done("rebuild", "--as-of", hour(1))
    site.forget_output()
    site.edit(1, status="resolved", resolution="NO", resolved_at="2026-01-20 00:00:00")
    site.done("rebuild", "--as-of", hour(2))
    site.done("takedown", market_id(1))
    assert site.traces(1) == []
    site.check()
    held = {entry.list.split("/")[0] for entry in site.record().built.retired}
    assert held == set(), "every list except the cancelled ones held it"


def test_a_walk_in_a_withdrawn_generation_ends_and_starts_again(site: Site) -> None:
    walks = {name: Walk(site, name, 2).begin() for name in ("open/new", "all/new")}
    site.done("takedown", market_id(1))
    for begun in walks.values():
        with pytest.raises(GoneError):
            begun.finish()
    assert len(walk(site, "open/new")) == len(OPEN) - 1


def test_walks_in_lists_that_never_held_it_continue(site: Site) -> None:
    for number in (CLOSED, RESOLVED, CANCELLED):
        site.edit(number, status="closed", resolution=None, resolved_at=None)
    site.done("rebuild", "--as-of", hour(1))
    began, before = Walk(site, "closed/new", 2).begin(), walk(site, "closed/new")
    site.edit(CLOSED, question="Else?")
    site.edit(1, approval="rejected")
    site.done("rebuild", "--as-of", hour(2))
    assert began.finish() == before
    assert site.traces(1) == []


# By the command


def test_the_command_needs_no_database_and_no_build(site: Site) -> None:
    retire(site)
    Path("markets.db").unlink()
    result = site.done("takedown", market_id(1))
    assert site.traces(1) == []
    site.check()
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{market_id(1)} blocked since 20")
    assert lines[1:] == ["1 market is blocked"]
    assert "s3://markets/api: holds no blocked markets (" in result.stderr
    assert "output: holds no blocked markets" in result.stderr
    assert blocked_ids(site) == {market_id(1)}


def test_the_command_gives_the_same_objects_as_a_build_without_the_market(site: Site) -> None:
    site.done("takedown", market_id(2))
    site.database.execute("DELETE FROM markets WHERE id = ?", [market_id(2)])
    site.done("build", "--as-of", FIRST, output="fresh")
    assert site.objects() == site.built() == site.built("fresh")


def test_the_command_works_where_there_is_no_output_folder(site: Site) -> None:
    retire(site)
    copy_output(site.folder / "output", site.folder / "kept")
    site.forget_output()
    site.done("takedown", market_id(1).upper())
    assert site.traces(1, output=False) == []
    assert not (site.folder / "output").exists()
    # The old build still has it; publishing that build must not bring it back.
    shutil.move(site.folder / "kept", site.folder / "output")
    site.done("publish")
    assert site.traces(1) == []
    site.check()


def test_taking_down_a_member_of_an_fx_family_deletes_only_its_detail(site: Site) -> None:
    assert site.traces(FX)
    before = site.objects()
    site.done("takedown", market_id(FX))
    assert site.traces(FX) == []
    after = site.objects()
    assert {key for key in before | after if before.get(key) != after.get(key)} == {
        keys.detail(market_id(FX)),
        keys.BUILD,
    }
    site.check()


def groups(site: Site) -> dict[str, list[str]]:
    """The ids of the snapshot's groups."""
    return {
        name: [market["id"] for market in group] for name, group in json.loads(site.objects()[keys.SNAPSHOT]).items()
    }


def test_a_market_disappears_from_the_snapshot_and_the_next_one_takes_its_place(site: Site) -> None:
    names, ids = ("freshMarkets", "closingSoonMarkets"), [market_id(number) for number in OPEN]
    before, after = ids[:6], [ids[0], *ids[2:]]
    assert groups(site) == dict.fromkeys(names, before)
    site.done("takedown", ids[1])
    assert groups(site) == dict.fromkeys(names, after)
    assert site.traces(OPEN[1]) == []


def test_a_market_disappears_from_the_feeds_and_their_other_entries_stay(site: Site) -> None:
    before = {key: body for key, body in site.objects().items() if key.startswith(f"{keys.FEEDS}/")}
    assert len([key for key, body in before.items() if b"Question 1?" in body]) == 2, "as JSON Feed and as Atom"
    site.done("takedown", market_id(1))
    after = site.objects()
    assert before.keys() <= after.keys()
    for key, body in before.items():
        is_changed = b"Question 1?" in body
        assert (after[key] != body) == is_changed
        assert len(QUESTION.findall(after[key])) == len(QUESTION.findall(body)) - is_changed
    assert site.traces(1) == []


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    ("kept_by", "broken"),
    [
        ("generator.site.documents._feeds", lambda *_: ()),
        ("generator.site.documents.FEED_NAMES", ("resolved",)),
    ],
)
def test_a_takedown_that_forgets_a_feed_is_noticed(
    site: Site, monkeypatch: pytest.MonkeyPatch, kept_by: str, broken: object
) -> None:
    monkeypatch.setattr(kept_by, broken)
    with pytest.raises(AssertionError):
        test_a_market_disappears_from_the_feeds_and_their_other_entries_stay(site)


def test_guards_do_not_apply(site: Site) -> None:
    gone = [market_id(number) for number in (1, 2, 3, CLOSED, FX)]
    site.done("takedown", *gone, guards__max_shrink="0")
    for number in (1, 2, 3, CLOSED, FX):
        assert site.traces(number) == []
    site.check()
    # Nor do they count the markets as lost later.
    site.done("rebuild", "--as-of", hour(1), guards__max_shrink="0")
    assert len(site.record().built.markets) == len(EVERY) - 5


def test_every_market_can_be_taken_down(site: Site) -> None:
    site.done("takedown", *map(market_id, EVERY))
    assert [number for number in EVERY if site.traces(number)] == []
    assert walk(site, "all/new") == []
    site.check()


def test_old_versions_in_the_bucket_are_deleted_too(site: Site) -> None:
    site.server.bucket.versioning = "Enabled"
    site.edit(FX, question=f"Question {FX}?", volume=5.0)
    site.done("rebuild", "--as-of", hour(1))
    site.done("takedown", market_id(FX))
    versions, _ = site.server.bucket.list_versions("api/v1/", ("", ""), 100_000)
    assert versions
    assert not [
        version.key for version in versions if market_id(FX).encode() in version.body or market_id(FX) in version.key
    ]


def test_an_unknown_id_is_blocked_and_changes_nothing_else(site: Site) -> None:
    before = site.objects()
    result = site.done("takedown", UNKNOWN)
    assert site.objects() == before
    assert "(0 objects deleted, 0 replaced)" in result.stderr
    assert blocked_ids(site) == {UNKNOWN}


@pytest.mark.parametrize("reference", ["open/popular", "a b", ""])
def test_a_reference_that_is_neither_id_nor_slug_is_a_usage_error(site: Site, reference: str) -> None:
    result = site.run("takedown", market_id(1), reference)
    assert result.exit_code == 2
    assert "is not a market's id or slug; write a UUID" in result.stderr
    assert site.traces(1)


@pytest.mark.parametrize("reference", ["snapshot", "1", "00000001000040008000000000000000"])
def test_an_unknown_slug_is_refused_and_nothing_is_blocked(site: Site, reference: str) -> None:
    result = site.run("takedown", market_id(1), reference)
    assert result.exit_code == 1
    assert (
        f"{reference}: is not the id of a market, and no slugs are published; name the market by its id"
        in result.stderr
    )
    assert site.traces(1)
    assert not site.run("takedown").stdout.startswith(market_id(1))


def test_without_an_id_it_lists_blocked_markets(site: Site) -> None:
    assert site.done("takedown").stdout == "0 markets are blocked\n"
    site.done("takedown", market_id(FX), UNKNOWN)
    before = site.stored()
    lines = site.done("takedown").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [market_id(FX), UNKNOWN, "2"]
    assert site.stored() == before


def test_a_takedown_can_be_repeated(site: Site) -> None:
    for _ in range(2):
        site.done("takedown", market_id(FX))
        assert site.traces(FX) == []
        site.check()


@pytest.mark.parametrize("command", [("takedown",), ("publish",), ("rebuild", "--as-of", hour(1))])
def test_every_takedown_and_publish_deletes_the_details_of_blocked_markets_again(
    site: Site, command: tuple[str, ...]
) -> None:
    key = keys.detail(market_id(FX))
    body = site.objects()[key]
    site.done("takedown", market_id(FX))
    site.put(key, body)
    result = site.done(*command)
    assert site.traces(FX) == []
    if command[0] != "rebuild":  # it deletes without looking, and so need not learn that there was anything
        assert "cached copies of withdrawn markets may remain" in result.stderr
    site.check()


def test_an_unchanged_publish_asks_once_for_each_blocked_market(site: Site) -> None:
    site.done("takedown", market_id(FX))
    site.done("publish")
    assert site.requests("publish") == [
        "GetObject manifest.json",
        "GetObject blocked.json",
        f"HeadObject {keys.detail(market_id(FX))}",
    ]


def test_a_takedown_that_was_killed_at_its_end_leaves_nothing_in_the_folder_once_it_runs_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest has forgotten the market, but the generations that showed it are deleted last."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    site.target = ""
    with monkeypatch.context() as patch:
        patch.setattr(Output, "unknown", killed)
        assert site.run("takedown", market_id(1)).exit_code == 1
    assert [trace for trace in site.traces(1) if trace.startswith("output v1/dumps/markets/")]
    assert "output: holds no blocked markets" in site.done("takedown").stderr
    assert [trace for trace in site.traces(1) if trace.startswith("output")] == []


def test_a_takedown_before_the_first_publish_succeeds(empty: Site) -> None:
    empty.done("takedown", market_id(FX))
    empty.done("publish")
    assert empty.traces(FX) == []
    empty.check()


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"items":[', b'{"items":[],"nextCursor":"p1"}'])
def test_a_damaged_list_is_made_again(site: Site, body: bytes) -> None:
    site.put(keys.first_page("open/new", 100), body)
    site.done("takedown", market_id(1))
    assert site.traces(1) == []
    site.check()
    assert len(walk(site, "open/new", 100)) == len(OPEN) - 1


def test_an_unresponsive_store_is_an_error(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    site.server.before = lambda _: SLOW_DOWN
    for command in (["takedown", market_id(1)], ["takedown"], ["publish"], ["rebuild"]):
        sentence = site.refused(1, *command)
        assert sentence.startswith("s3://markets/api: does not answer (")


# Concurrent publishers


def test_a_publish_respects_a_takedown_that_happens_meanwhile(site: Site) -> None:
    done: list[int] = []

    def take_down(_: object, __: object) -> None:
        if not done and site.server.count("PutObject") > 50:
            done.append(1)
            decisions = {"format": 1, "markets": {market_id(1): {"at": "2024-01-01T00:00:00.000Z", "isBlocked": True}}}
            site.put("blocked.json", json.dumps(decisions).encode())

    site.edit(1, volume=1_000.0)
    site.server.after = take_down
    result = site.done("rebuild", "--as-of", hour(1))
    assert done
    assert site.traces(1) == []
    site.check()
    assert "published 10 markets" in result.stdout


def test_a_takedown_waits_for_a_publisher_and_says_so_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    held = json.loads(site.stored()["manifest.json"])
    deadline = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + 3600))
    held["work"] = {
        "owner": "x", "process": "elsewhere 1 2", "who": "process 7 on another", "since": deadline,
        "deadline": deadline, "touched": [],
    }  # fmt: skip
    site.put("manifest.json", json.dumps(held).encode())
    assert site.refused(4, "publish").startswith("s3://markets/api: process 7 on another has been publishing since ")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        site.server.behaviour.clock_offset_s += 1500

    monkeypatch.setattr("time.sleep", wait)
    result = site.done("takedown", market_id(FX))
    assert len(waits) == 3
    waiting = [line for line in result.stderr.splitlines() if "waiting" in line]
    assert len(waiting) == 1
    assert waiting[0].startswith("blocked in every later publish; waiting: s3://markets/api: process 7 on another ")
    assert site.traces(FX) == []
    site.check()


# Directories


def test_a_directory_is_cleared_too(site: Site) -> None:
    site.target = "./www"
    site.done("publish")
    site.edit(1, volume=77.0)
    site.done("rebuild", "--as-of", hour(1))
    site.done("takedown", market_id(1))
    published = files(Path("www"))
    assert published == site.built()
    assert not [key for key, body in published.items() if market_id(1).encode() in body or b"Question 1?" in body]
    assert not [path for path in Path("www").rglob("*") if market_id(1) in path.name]


# Without a build


def test_a_revoked_market_is_withdrawn_even_if_the_build_is_refused(site: Site) -> None:
    site.edit(1, approval="rejected")
    for number in (2, 3, 4):
        site.edit(number, prob=7.0)
    result = site.run("rebuild", "--as-of", hour(1))
    assert result.exit_code == 3
    assert "more than guards.max_invalid" in result.stderr
    assert [key for key in site.traces(1) if key.startswith("store")] == []
    assert all(site.traces(number) for number in (2, 3, 4))
    assert site.record().work is None


def test_a_market_blocked_on_another_machine_is_withdrawn_even_without_the_database(site: Site) -> None:
    decisions = {"format": 1, "markets": {market_id(1): {"at": "2024-01-01T00:00:00.000Z", "isBlocked": True}}}
    site.put("blocked.json", json.dumps(decisions).encode())
    Path("markets.db").rename("away.db")
    result = site.run("rebuild")
    assert result.exit_code == 1
    assert "hidden markets were still withdrawn" in result.stderr
    assert [key for key in site.traces(1) if key.startswith("store")] == []
    Path("away.db").rename("markets.db")
    site.done("rebuild")
    assert site.traces(1) == []
    site.check()


def test_the_site_has_markets_of_every_status(site: Site) -> None:
    states = {state for held in site.record().built.markets.values() for state in held}
    assert states == {*MARKET_STATUSES}
    assert len(site.record().built.markets) == len(EVERY)
    assert CANCELLED in EVERY


# Whatever else is broken


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("body", [None, b"{}{"])
def test_without_a_record_details_go_and_the_takedown_says_what_remains(site: Site, body: bytes | None) -> None:
    retire(site)
    site.remove("manifest.json")
    if body is not None:
        site.put("manifest.json", body)
    result = site.run("takedown", market_id(1))
    assert result.exit_code == 1
    assert "s3://markets/api: holds no blocked markets" not in result.stderr
    assert (
        "error: s3://markets/api: holds v1/ but manifest.json is missing or damaged, so nobody knows what is "
        "published; the details of blocked markets were deleted, but lists may still show them; run `public-markets "
        "rebuild --verify`, which writes the record anew\n"
    ) in result.stderr
    assert site.read(keys.detail(market_id(1))) is None
    assert blocked_ids(site) == {market_id(1)}
    assert site.run("takedown").exit_code == 1, "as long as there is no record"
    result = site.done("rebuild", "--as-of", hour(2), "--verify")
    assert "cached copies of withdrawn markets may remain" in result.stderr
    assert site.traces(1) == []
    site.check()
    assert "s3://markets/api: holds no blocked markets (" in site.done("takedown").stderr


def test_without_a_record_nothing_of_an_unblocked_market_is_deleted(site: Site) -> None:
    site.remove("manifest.json")
    before = site.objects()
    assert site.done("takedown").stdout == "0 markets are blocked\n"
    assert site.objects() == before


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("key", [keys.first_page("open/new", 100), keys.SNAPSHOT, keys.feed("new", "json"), keys.BUILD])
def test_what_is_missing_is_made_again(site: Site, key: str) -> None:
    retire(site)
    site.remove(key)
    site.done("takedown", market_id(1))
    assert site.traces(1) == []
    site.check()


def test_what_is_missing_elsewhere_stops_no_takedown(site: Site) -> None:
    """No list of cancelled markets shows it, so none of them is put."""
    retire(site)
    missing = keys.first_page("cancelled/new", 100)
    site.remove(missing)
    site.done("takedown", market_id(1))
    assert site.traces(1) == []
    site.done("rebuild", "--as-of", hour(2), "--verify")
    assert missing in site.objects()
    site.check()


def test_a_category_goes_with_its_last_market(site: Site) -> None:
    insert_category(site.database, "Zyzzyvas", market_id=market_id(1))
    site.done("rebuild", "--as-of", hour(1), variant="extended")
    assert b"Zyzzyvas" in site.objects()[keys.BUILD]
    site.forget_output()
    assert site.run("takedown", market_id(1), variant="extended").exit_code == 0
    assert not [key for key, body in site.objects().items() if b"zyzzyva" in key.encode() + text_of(key, body).lower()]
