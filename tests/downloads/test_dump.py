"""A dump made from the previous one is the dump that would be made from nothing."""

import gzip
import zlib
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.downloads import dump, segments
from tests.downloads import states
from tests.downloads.states import IDS, State
from tests.support.campaigns import rounds


@pytest.mark.campaign
@settings(max_examples=rounds(12, 400))
@given(states.histories, st.frozensets(st.sampled_from(IDS), max_size=3))
def test_it_is_the_dump_made_from_nothing_and_reports_each_change(history: list[State], also: frozenset[str]) -> None:
    made = states.make(history[0])
    assert (made.is_compared, made.reported) == (False, [])
    for before, after in pairwise(history):
        expected = states.changes(before, after)
        changed = frozenset(change.id for change in expected if change.before is not None) | also
        last, made = made, states.make(after, made.previous, changed)
        assert (made.body, made.written) == (states.make(after).body, states.make(after).written)
        assert made.is_compared
        assert made.reported == expected
        assert [*dump.changes(dump.lines([last.body]), dump.lines([made.body]))] == expected
        new = {change.id for change in expected if change.before is None}
        assert made.asked == [one for one in after if one in changed | new], "only those are asked for"
        assert last.written.state != made.written.state or not expected


@pytest.mark.campaign
@settings(max_examples=rounds(12, 400))
@given(states.states, states.states, st.data())
def test_a_damaged_previous_dump_does_not_show(before: State, after: State, data: st.DataObject) -> None:
    made = states.make(before)
    at = data.draw(st.integers(0, len(made.body) - 1))
    flipped = bytes([made.body[at] ^ data.draw(st.integers(1, 255))])
    body = data.draw(st.sampled_from([made.body[:at] + flipped + made.body[at + 1 :], made.body[:at], b""]))
    changed = frozenset(before.keys() & after.keys())
    found = states.make(after, replace(made, body=body).previous, changed)
    assert (found.body, found.written) == (states.make(after).body, states.make(after).written)
    if found.is_compared:
        assert found.reported == states.changes(before, after)


def test_a_segment_that_is_not_what_is_said_of_it_is_made_again() -> None:
    """Its bytes are right, but its ids or lines are not: as after an error in what is kept beside the file."""
    before = states.state({one: [] for one in IDS})
    made = states.make(before)
    first, *others = made.written.segments
    for wrong in (first._replace(lines=first.lines + 1), first._replace(ids="0" * 32)):
        found = states.make(before, replace(made.previous, segments=(wrong, *others)))
        assert found.body == made.body
        assert not found.is_compared


@pytest.mark.campaign
@settings(max_examples=rounds(12, 400))
@given(states.states)
def test_its_parts_are_found_in_it(state: State) -> None:
    made = states.make(state)
    found = [*dump.parts(made.body)]
    assert tuple(part for part, _ in found) == made.written.segments
    assert [line for _, lines in found for line in lines] == [*state.values()]


def test_a_flush_is_not_taken_for_the_end_of_a_part_within_a_line() -> None:
    flushing = segments.compressor()
    lines = [f'{{"id":"{market_id}","prob":0.5}}\n'.encode() for market_id in IDS[:2]]
    text = b"".join(lines)
    pieces = [flushing.compress(piece) + flushing.flush(zlib.Z_FULL_FLUSH) for piece in (text[:60], text[60:])]
    body = segments.HEADER + b"".join(pieces) + segments.compress(lines[0]) + segments.END + bytes(8)
    assert [text for _, text in segments.found(body)] == [text, lines[0]]


@pytest.mark.parametrize(
    "body",
    [gzip.compress(states.line(IDS[0], []) + b"\n", mtime=0), b"no gzip, but long enough"],
    ids=["gzip", "another"],
)
def test_another_file_has_no_parts(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        [*dump.parts(body)]
