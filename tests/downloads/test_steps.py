"""Steps of the change feed lead from each state that is kept to the newest, and tell nothing else."""

import gzip
import hashlib
import json
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings

from generator.api.downloads import ENTRY_SIZE
from generator.downloads import segments, steps
from generator.downloads.dump import Changed
from tests.downloads import states
from tests.downloads.states import IDS, Feed, State
from tests.support.campaigns import rounds

ONE, TWO = IDS[:2]


@pytest.mark.campaign
@settings(max_examples=rounds(12, 400))
@given(states.histories)
def test_dump_and_steps_make_the_newest_dump_from_every_serial(history: list[State]) -> None:
    feed = Feed(history[0])
    for state in history[1:]:
        feed.move(state)
        for position, (begin, _) in enumerate(feed.steps):
            found = begin
            for _, body in feed.steps[position:]:
                found = states.applied(found, body)
            assert states.text(found) == states.text(state)


@pytest.mark.campaign
@settings(max_examples=rounds(12, 400))
@given(states.histories)
def test_kept_steps_name_no_market_that_is_withdrawn(history: list[State]) -> None:
    feed = Feed(history[0])
    for state in history[1:]:
        feed.move(state)
        named = {one for one in IDS for _, body in feed.steps if one.encode() in gzip.decompress(body)}
        assert named <= state.keys()


@pytest.mark.campaign
@settings(max_examples=rounds(12, 400))
@given(states.histories)
def test_a_step_says_only_what_the_next_state_says(history: list[State]) -> None:
    for before, after in pairwise(history):
        body = states.step(states.changes(before, after))
        assert (body is None) == (before == after)
        for line in gzip.decompress(body or gzip.compress(b"")).splitlines():
            said = json.loads(line)
            if "gone" in said:
                assert said["gone"] in {hashlib.sha256(one.encode()).hexdigest() for one in before}
            else:
                assert said.items() <= _parsed(after[said["id"]]).items() or before.get(said["id"]) is None


def _parsed(line: bytes) -> dict[str, object]:
    return json.loads(line)  # type: ignore[no-any-return]


def test_a_changed_market_has_its_new_values_alone() -> None:
    before = [("question", '"Snow?"'), ("prob", "0.1"), ("volume", "1e22"), ("tags", '["a","b"]')]
    after = [("question", '"Snow?"'), ("prob", "1e-7"), ("volume", "1e22"), ("tags", '["a"]')]
    body = states.step([Changed(ONE, states.line(ONE, before), states.line(ONE, after))])
    assert _lines(body) == [f'{{"id":"{ONE}","prob":1e-7,"tags":["a"]}}']


def test_new_markets_come_in_full_and_those_gone_by_digest_first() -> None:
    new = states.line(TWO, [("prob", "0.5")])
    gone = [one for one in IDS if one != TWO]
    changes = [Changed(one, states.line(one, []), None) for one in gone] + [Changed(TWO, None, new)]
    body = states.step(sorted(changes))
    digests = sorted(hashlib.sha256(one.encode()).hexdigest() for one in gone)
    assert _lines(body) == [*(f'{{"gone":"{digest}"}}' for digest in digests), new.decode()]


@pytest.mark.parametrize(
    "after",
    [
        [("prob", "0.5")],
        [("prob", "0.5"), ("volume", "1"), ("tags", "[]")],
        [("volume", "1"), ("prob", "0.5")],
        [("prob", "0.5"), ("volume", "[[1],2]")],
    ],
    ids=["fewer", "more", "another order", "too deep to compare"],
)
def test_a_market_with_other_properties_is_gone_and_new(after: list[tuple[str, str]]) -> None:
    before = states.line(ONE, [("prob", "0.5"), ("volume", "1")])
    body = states.step([Changed(ONE, before, states.line(ONE, after))])
    digest = hashlib.sha256(ONE.encode()).hexdigest()
    assert _lines(body) == [f'{{"gone":"{digest}"}}', states.line(ONE, after).decode()]
    assert states.applied({ONE: before}, body or b"") == {ONE: states.line(ONE, after)}


def test_a_step_larger_than_the_dump_is_discarded() -> None:
    state = states.state({f"{number:036}": [("question", f'"{number * 7919}"')] for number in range(6_000)})
    changes = states.changes({}, state)
    size = len(states.step(changes) or b"")
    assert size > 40_000
    assert states.step(changes, limit=size) is not None
    assert states.step(changes, limit=size - 1) is None
    pieces = list[bytes]()
    writer = steps.StepWriter(limit=10_000)
    for change in changes:
        writer.add(change)
    assert writer.is_too_large, "before it is complete, so that it does not fill the memory"
    assert (writer.close(pieces.append), pieces) == (None, [])


def test_a_step_without_what_is_withdrawn_is_unchanged_where_it_has_none_of_it() -> None:
    body = states.step([Changed(ONE, None, states.line(ONE, [])), Changed(TWO, states.line(TWO, []), None)])
    assert body
    assert states.without(body, {ONE}) is body
    emptied = states.without(body, ())
    assert [*segments.lines([emptied])] == [f'{{"gone":"{hashlib.sha256(TWO.encode()).hexdigest()}"}}'.encode()]
    only = states.step([Changed(ONE, None, states.line(ONE, []))])
    assert [*segments.lines([states.without(only or b"", ())])] == []


def test_a_damaged_step_and_what_is_none_is_refused() -> None:
    body = states.step([Changed(ONE, None, states.line(ONE, []))]) or b""
    for use in (lambda damaged: states.applied({}, damaged), lambda damaged: states.without(damaged, ())):
        with pytest.raises(ValueError, match="gzip"):
            use(body[:-1])
    with pytest.raises(ValueError, match="id of a market"):
        states.without(gzip.compress(b'{"question":"Snow?"}\n'), IDS)


# ── retention ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Kept:
    as_of: str
    size: int


def kept(day: int, size: int) -> Kept:
    return Kept(f"2026-01-{day:02}T12:00:00.000Z", size)


NOW = "2026-01-31T12:00:00.000Z"


def test_steps_are_kept_for_seven_days() -> None:
    found = [kept(day, 1) for day in range(20, 32)]
    assert steps.retained(found, 10_000, NOW) == found[-8:]
    assert steps.retained(found, 10_000, "2026-01-31T12:00:00.001Z") == found[-7:]


def test_the_newest_steps_are_kept_that_do_not_outweigh_the_dump() -> None:
    """Each counts with its entry in the head."""
    found = [kept(30, 10), kept(30, 40), kept(31, 30), kept(31, 30)]
    assert steps.retained(found, 1_000, NOW) == found
    assert steps.retained(found, 100 + 3 * ENTRY_SIZE, NOW) == found[1:]
    left = steps.retained(found, 99 + 3 * ENTRY_SIZE, NOW)
    assert left == found[2:], "without gaps: a lighter, older one does not take its place"
    assert steps.retained([kept(30, 1), kept(31, 901)], 900 + ENTRY_SIZE, NOW) == [], "one is heavier than the dump"


def _lines(body: bytes | None) -> list[str]:
    return [line.decode() for line in segments.lines([body or b""])]
