"""The manifest: what exists, what was retired when, and what a withdrawal deletes."""

import json
from datetime import timedelta

import pytest
from pydantic import ValidationError

from generator.api import keys
from generator.api.contract import MARKET_STATUSES
from generator.tree import manifest, membership, stored
from generator.tree.manifest import Current, Manifest
from generator.tree.membership import Memberships
from generator.tree.stored import FormatError
from tests.support.sites.builds import manifest_of

LIFETIME = timedelta(hours=6)
OPEN = "open/popular"
ALL = "all/popular"
RESOLVED = "resolved/ended"


def current(name: str) -> Current:
    return Current(generation=name, count=3, bytes=100)


def built(as_of: str = "2026-01-31T12:00:00.000Z", **lists: str) -> Manifest:
    """The manifest of a build; `lists` are generations by the words OPEN, ALL and RESOLVED."""
    names = {"OPEN": OPEN, "ALL": ALL, "RESOLVED": RESOLVED}
    found = {names[word]: current(generation) for word, generation in lists.items()}
    return manifest_of(as_of=as_of, current=found, objects={"v1/build.json": "digest"})


def settled(record: Manifest, states: Memberships, previous: Manifest | None = None) -> Manifest:
    return manifest.settle(previous or record.emptied(), record, states, LIFETIME, record.as_of)


def in_turn(*builds: str, record: Manifest | None = None) -> Manifest:
    """The state after builds of one open market, each at a time with a generation of OPEN."""
    for time, generation in map(str.split, builds):
        record = settled(built(at(time), OPEN=generation), {"a": ("open",)}, record)
    assert record
    return record


def retired(manifest: Manifest) -> list[tuple[str, str, str]]:
    return [(old.list, old.generation, old.retired_at[11:16]) for old in manifest.retired]


def at(time: str) -> str:
    return f"2026-01-31T{time}:00.000Z"


def test_a_replaced_generation_is_retired_at_the_time_of_the_build_that_replaces_it() -> None:
    first = settled(built(at("10:00"), OPEN="p1", ALL="p2"), {"a": ("open",)})
    second = settled(built(at("11:00"), OPEN="p3", ALL="p2"), {"a": ("open",)}, first)
    assert retired(second) == [(OPEN, "p1", "11:00")]
    assert second.generations().keys() == {(OPEN, "p1"), (OPEN, "p3"), (ALL, "p2")}


def test_a_retired_generation_goes_when_its_cursors_are_older_than_their_lifetime() -> None:
    kept = in_turn("10:00 p1", "11:00 p2", "17:00 p2")
    assert retired(kept) == [(OPEN, "p1", "11:00")]
    assert retired(in_turn("17:01 p2", record=kept)) == []


def test_a_generation_that_is_current_again_is_no_longer_retired() -> None:
    record = in_turn("10:00 p1", "11:00 p2", "12:00 p1")
    assert retired(record) == [(OPEN, "p2", "12:00")]
    assert record.current[OPEN].generation == "p1"


def test_a_withdrawal_deletes_every_retired_generation_that_may_hold_the_market() -> None:
    first = settled(built(at("10:00"), OPEN="p1", RESOLVED="p2", ALL="p3"), {"a": ("open",), "b": ("resolved",)})
    second = settled(built(at("11:00"), OPEN="p4", RESOLVED="p5", ALL="p6"), {"b": ("resolved",)}, first)
    assert retired(second) == [(RESOLVED, "p2", "11:00")]
    assert "a" not in second.markets


def test_a_withdrawal_covers_the_earlier_states_of_a_market() -> None:
    record = settled(built(at("10:00"), OPEN="p1", RESOLVED="p2"), {"a": ("open",), "b": ("open",)})
    record = settled(built(at("11:00"), OPEN="p3", RESOLVED="p4"), {"a": ("resolved",), "b": ("open",)}, record)
    assert retired(record) == [(OPEN, "p1", "11:00"), (RESOLVED, "p2", "11:00")]
    assert record.markets == {"a": ("open", "resolved"), "b": ("open",)}
    record = settled(built(at("12:00"), OPEN="p3", RESOLVED="p5"), {"b": ("open",)}, record)
    assert retired(record) == []


def test_states_are_forgotten_with_the_generations_that_held_them() -> None:
    record = settled(built(at("00:00"), OPEN="p1", RESOLVED="p2"), {"a": ("open",)})
    record = settled(built(at("01:00"), OPEN="p3", RESOLVED="p4"), {"a": ("resolved",)}, record)
    record = settled(built(at("09:00"), OPEN="p3", RESOLVED="p4"), {"a": ("resolved",)}, record)
    assert (retired(record), record.markets) == ([], {"a": ("resolved",)})


def test_the_withdrawal_of_a_market_that_no_list_held_deletes_no_generation() -> None:
    first = settled(built(at("10:00"), OPEN="p1"), {"a": ("open",), "fx": ()})
    second = settled(built(at("11:00"), OPEN="p2"), {"a": ("open",)}, first)
    assert retired(second) == [(OPEN, "p1", "11:00")]


def test_a_market_of_a_category_is_withdrawn_from_the_lists_of_that_category_too() -> None:
    names = {name: f"p{number}" for number, name in enumerate(("open/new", "open.rain/new", "open.snow/new"))}
    lists = {name: current(generation) for name, generation in names.items()}
    first = built().model_copy(update={"current": lists})
    first = settled(first, {"a": ("open", "open.rain"), "b": ("open", "open.snow")})
    moved = built(at("13:00")).model_copy(update={"current": {name: current("q") for name in names}})
    second = settled(moved, {"a": ("open", "open.snow"), "b": ("open", "open.snow")}, first)
    assert second.markets["a"] == ("open", "open.rain", "open.snow")
    assert {old.list for old in second.retired} == {*names}
    without_b = built(at("13:01")).model_copy(update={"current": moved.current})
    assert {old.list for old in settled(without_b, {"a": ("open", "open.snow")}, second).retired} == {"open.rain/new"}
    without_a = built(at("13:01")).model_copy(update={"current": moved.current})
    assert settled(without_a, {"b": ("open", "open.snow")}, second).retired == ()


def test_the_intent_already_names_every_slug_of_a_market() -> None:
    first = settled(built(OPEN="p1").model_copy(update={"slugs": {"a": ("one",)}}), {"a": ("open",)})
    second = built(OPEN="p1").model_copy(update={"slugs": {"a": ("two",), "b": ("three",)}})
    intent = manifest.intend(first, {}, {"a": ("open",), "b": ("open",)}, at("13:00"), second)
    assert intent.slugs == {"a": ("one", "two"), "b": ("three",)}
    assert list(intent.details("a")) == [keys.detail("a"), keys.detail_by_slug("one"), keys.detail_by_slug("two")]
    assert list(intent.details("unknown")) == [keys.detail("unknown")]
    now = built(at("13:00"), OPEN="p1").model_copy(update={"slugs": {"a": ("two",)}})
    assert settled(now, {"a": ("open",)}, intent).slugs == {"a": ("two",)}


def test_a_shelf_of_no_state_is_damage() -> None:
    content = json.loads(settled(built(OPEN="p1"), {"a": ("open", "open.rain")}).encoded())
    assert Manifest.model_validate_json(json.dumps(content)).markets == {"a": ("open", "open.rain")}
    for unknown in ("ajar", "open.", "open.Rain", "open/rain", ".rain"):
        with pytest.raises(ValidationError):
            Manifest.model_validate_json(json.dumps({**content, "markets": {"a": [unknown]}}))


def test_an_intent_records_what_will_be_reachable_before_it_is() -> None:
    first = settled(built(at("10:00"), OPEN="p1", ALL="p2"), {"a": ("open",)})
    intent = manifest.intend(
        first, {OPEN: current("p3"), ALL: current("p2")}, {"a": ("closed",), "b": ("open",)}, at("11:00")
    )
    assert not intent.complete
    assert intent.current == first.current
    assert retired(intent) == [(OPEN, "p3", "11:00")]
    assert intent.markets == {"a": ("closed", "open"), "b": ("open",)}


def test_the_build_after_a_killed_one_makes_the_intended_generation_current() -> None:
    first = in_turn("10:00 p1")
    intent = manifest.intend(first, {OPEN: current("p2")}, {"a": ("open",)}, at("11:00"))
    assert in_turn("11:00 p2", record=intent) == in_turn("11:00 p2", record=first)
    # If the database has changed meanwhile, walks in the killed build's generations go on; readers may have started
    # them until now, so the lifetime begins now.
    assert retired(in_turn("12:00 p3", record=intent)) == [(OPEN, "p2", "12:00"), (OPEN, "p1", "12:00")]


def by_hand(record: Manifest) -> Manifest:
    return record.model_copy(update={"is_clock_set": True})


def test_ages_by_a_clock_set_by_hand_and_by_the_real_one_are_not_compared() -> None:
    record = settled(by_hand(built(at("01:00"), OPEN="p1")), {"a": ("open",)})
    record = settled(by_hand(built(at("02:00"), OPEN="p2")), {"a": ("open",)}, record)
    assert retired(in_turn("20:00 p3", record=record)) == [(OPEN, "p1", "20:00"), (OPEN, "p2", "20:00")]


def test_ages_stay_with_the_real_clock_although_one_set_by_hand_takes_turns_with_it() -> None:
    record = settled(by_hand(built(at("01:00"), OPEN="p1")), {"a": ("open",)})
    record = in_turn("20:00 p2", record=record)
    for hour in range(21, 24):
        record = settled(by_hand(built(at(f"{hour}:00"), OPEN="p2")), {"a": ("open",)}, record)
        assert (record.is_clock_set, retired(record)) == (False, [(OPEN, "p1", "20:00")])
        record = in_turn(f"{hour}:30 p2", record=record)
        assert (record.is_clock_set, retired(record)) == (False, [(OPEN, "p1", "20:00")])


def test_what_a_run_intends_is_partial_until_it_has_ended() -> None:
    intent = manifest.intend(in_turn("10:00 p1"), {OPEN: current("p2")}, {"a": ("open",)}, at("11:00"))
    assert [(old.generation, old.partial) for old in intent.retired] == [("p2", True)]
    finished = in_turn("11:00 p2", record=intent)
    assert [(old.generation, old.partial) for old in finished.retired] == [("p1", False)]
    moved_on = in_turn("12:00 p3", record=intent)
    assert [(old.generation, old.partial) for old in moved_on.retired] == [("p2", True), ("p1", False)]
    assert Manifest.model_validate_json(moved_on.encoded()) == moved_on


def test_a_generation_that_exists_already_is_not_intended_again() -> None:
    second = in_turn("10:00 p1", "11:00 p2")
    assert retired(manifest.intend(second, {OPEN: current("p1")}, {}, at("12:00"))) == retired(second)


def test_a_killed_run_makes_no_age_new_but_of_what_it_began_or_made_current_again() -> None:
    record = in_turn("10:00 p1", "11:00 p2", "11:01 p3", "11:02 p4")
    killed = manifest.intend(record, {OPEN: current("p2")}, {}, at("12:00"))
    killed = manifest.intend(Manifest.model_validate_json(killed.encoded()), {OPEN: current("p5")}, {}, at("12:30"))
    after = in_turn("13:00 p6", record=killed)
    assert retired(after) == [
        (OPEN, "p1", "11:00"), (OPEN, "p2", "13:00"), (OPEN, "p3", "11:02"), (OPEN, "p5", "13:00"),
        (OPEN, "p4", "13:00"),
    ]  # fmt: skip
    again = in_turn("14:00 p7", record=manifest.intend(after, {}, {}, at("13:30")))
    assert {(OPEN, "p2", "13:00"), (OPEN, "p5", "13:00")} <= {*retired(again)}


def test_the_age_of_what_a_clock_that_was_ahead_retired_counts_from_now() -> None:
    ahead = settled(built("2026-05-01T12:00:00.000Z", OPEN="p2"), {}, settled(built(at("01:00"), OPEN="p1"), {}))
    right = settled(built(at("02:00"), OPEN="p2"), {}, ahead)
    assert retired(right) == [(OPEN, "p1", "02:00")]
    assert retired(settled(built(at("08:00"), OPEN="p2"), {}, right)) == [(OPEN, "p1", "02:00")]
    assert retired(settled(built(at("08:01"), OPEN="p2"), {}, right)) == []


# ── which lists hold a market ───────────────────────────────────────────────────────────────────────────────────────


#: What holds every market that a list has.
WHOLE = {keys.SEARCH, *keys.DOWNLOADS}


def test_a_market_is_listed_by_its_state_with_and_without_categories() -> None:
    assert membership.memberships_of("open", []) == ("open",)
    assert membership.memberships_of("closed", ["snow", "rain"]) == ("closed", "closed.rain", "closed.snow")
    lists = membership.lists_of(["closed.rain"])
    assert {name.partition("/")[0] for name in lists - WHOLE} == {"closed.rain", "archive.rain", "all.rain"}
    assert len(lists - WHOLE) == 15
    assert membership.lists_of(["closed.rain", "closed"]) == lists | membership.lists_of(["closed"])


def test_a_state_is_held_by_the_lists_that_select_it() -> None:
    assert {name.split("/")[0] for name in membership.lists_of(["open"]) - WHOLE} == {"open", "all"}
    for state in ("closed", "resolved", "cancelled"):
        assert {name.split("/")[0] for name in membership.lists_of([state]) - WHOLE} == {state, "archive", "all"}
    assert len(membership.lists_of(["open"]) - WHOLE) == 10
    assert membership.lists_of(["open"]) >= WHOLE, "search index and downloads have every market that a list has"
    assert membership.lists_of([]) == frozenset()
    assert len(membership.lists_of(MARKET_STATUSES) - WHOLE) == 30


# ── its format ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_format_of_a_file_is_read_whatever_else_it_holds() -> None:
    stored.require_format(b'{"format": 7, "else": []}', 7)
    stored.require_format(b'{"format": 7, "else": []}', 8, 6)
    with pytest.raises(FormatError, match=r"^format 7, this program knows 9$"):
        stored.require_format(b'{"format": 7, "else": []}', 9, 8)
    with pytest.raises(FormatError, match=r"^format 7, this program knows 1$"):
        stored.require_format(b'{"format": 7, "else": []}', 1)
    for content in (b"{}", b"[]", b"", b'{"format": null}'):
        with pytest.raises(ValidationError):
            stored.require_format(content, 1)
