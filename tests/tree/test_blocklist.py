"""The blocked list: the latest decision on each market counts, whichever copy it was made on."""

import json
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.errors import OutputError
from generator.tree.blocklist import KEY, BlockedList, Decision, Hold, aside_name, decode, load, settle
from generator.tree.folder import Output, locked

T1, T2, T3 = (f"2026-01-31T12:00:0{second}.000Z" for second in (1, 2, 3))
DECISIONS = st.one_of(
    st.builds(
        lambda at, is_blocked: Decision(at=at, is_blocked=is_blocked), st.sampled_from([T1, T2, T3]), st.booleans()
    ),
    st.just(Decision(at=T1, is_blocked=True, repeated_at=T2)),
    st.just(Decision(at=T2, is_blocked=True, repeated_at=T3)),
)
TIMES = st.sampled_from([T1, T2, T3])
#: What may be known of a market, of whichever of two questions.
MARKETS = st.one_of(
    DECISIONS,
    st.builds(
        lambda at, is_blocked, own, questions: Decision(at=at, is_blocked=is_blocked, own=own, questions=questions),
        TIMES, st.booleans(), st.booleans(), st.dictionaries(st.sampled_from("qr"), TIMES),
    ),
)  # fmt: skip
QUESTIONS = st.builds(
    lambda at, is_blocked, undone_at: Decision(at=at, is_blocked=is_blocked, undone_at=undone_at),
    TIMES, st.booleans(), st.one_of(TIMES, st.just("")),
)  # fmt: skip
#: As they are written.
LISTS = st.builds(
    lambda markets, questions: BlockedList(markets={**markets, **questions}).merged(BlockedList()),
    st.dictionaries(st.sampled_from("abc"), MARKETS),
    st.dictionaries(st.sampled_from(["questions/q", "questions/r"]), QUESTIONS),
)
Q = "questions/q"


def decided(at: str, *ids: str, is_blocked: bool = True) -> BlockedList:
    return BlockedList().decided(ids, is_blocked=is_blocked, now=at)


def test_a_repetition_keeps_the_time_and_outranks_an_undo_that_another_copy_knows() -> None:
    first = decided(T1, "a")
    repeated = first.decided(["a"], is_blocked=True, now=T3)
    assert repeated.markets["a"].at == first.markets["a"].at
    assert repeated.merged(first.decided(["a"], is_blocked=False, now=T2)).ids() == {"a"}
    assert repeated.decided(["a"], is_blocked=False, now=T3).ids() == frozenset()
    assert b"repeatedAt" not in first.encoded()


def test_the_latest_decision_counts_in_whatever_order_copies_are_merged() -> None:
    copies = [
        decided(T1, "a"), decided(T2, "a", is_blocked=False), decided(T3, "b"), decided(T2, "b", is_blocked=False),
    ]  # fmt: skip
    for first, second, third, fourth in permutations(copies):
        assert first.merged(second).merged(third).merged(fourth).ids() == {"b"}


def test_of_two_decisions_at_the_same_instant_the_one_that_blocks_wins() -> None:
    off, on = decided(T1, "a", is_blocked=False), decided(T1, "a")
    assert off.merged(on).ids() == on.merged(off).ids() == {"a"}


def test_a_decision_counts_although_the_clock_was_set_back() -> None:
    before = decided(T3, "a")
    after = before.decided(["a"], is_blocked=False, now=T1)
    assert after.ids() == frozenset()
    assert after.merged(before).ids() == frozenset()
    assert after.markets["a"].at > T3


@given(LISTS, LISTS, LISTS)
def test_merging_gives_the_same_in_any_order(one: BlockedList, two: BlockedList, three: BlockedList) -> None:
    assert one.merged(two) == two.merged(one)
    assert one.merged(two).merged(three) == one.merged(two.merged(three))
    assert one.merged(one) == one


@given(LISTS)
def test_it_is_read_back_as_it_was_written(blocked: BlockedList) -> None:
    assert decode(blocked.encoded()) == blocked
    assert blocked.encoded() == BlockedList(markets=dict(reversed([*blocked.markets.items()]))).encoded()


def test_a_market_is_blocked_through_its_question_until_that_is_undone() -> None:
    blocked = decided(T1, Q).joined({"a": ["q"], "b": ["q"]}, now=T2).decided(["b"], is_blocked=True, now=T3)
    assert blocked.ids() == {Q, "a", "b"}
    assert blocked.question_ids() == {"q"}
    assert (blocked.through("a"), blocked.is_own("a"), blocked.is_own("b")) == (("q",), False, True)
    undone = blocked.decided([Q], is_blocked=False, now=T3)
    assert undone.ids() == {"b"}
    again = undone.decided([Q], is_blocked=True, now=T3)
    assert again.ids() == {Q, "b"}, "what left the question in between is no part of it"
    assert again.joined({"a": ["q"]}, now=T3).ids() == {Q, "a", "b"}
    assert blocked.joined({"a": ["q"]}, now=T3) == blocked


def test_what_is_blocked_by_itself_is_so_whenever_its_question_was() -> None:
    own, through = decided(T1, "a"), decided(T1, Q).joined({"a": ["q"]}, now=T3)
    merged = own.merged(through)
    assert merged.decided([Q], is_blocked=False, now=T3).ids() == {"a"}
    assert merged.decided(["a"], is_blocked=False, now=T3).ids() == {Q, "a"}
    both = merged.decided(["a", Q], is_blocked=False, now=T3)
    assert both.ids() == frozenset()


def test_an_undo_of_a_question_frees_what_another_copy_added() -> None:
    ours = decided(T1, Q).joined({"a": ["q"]}, now=T1)
    undone, added = ours.decided([Q], is_blocked=False, now=T3), ours.joined({"b": ["q"]}, now=T2)
    for merged in (undone.merged(added), added.merged(undone)):
        assert merged.ids() == frozenset()
        assert merged.decided([Q], is_blocked=True, now=T3).ids() == {Q}


def test_a_market_of_two_questions_is_blocked_while_one_is() -> None:
    both = decided(T1, Q, "questions/r").joined({"a": ["q", "r"]}, now=T2)
    assert both.decided([Q], is_blocked=False, now=T3).ids() == {"questions/r", "a"}
    assert both.decided([Q, "questions/r"], is_blocked=False, now=T3).ids() == frozenset()


def test_programs_that_know_no_questions_read_what_is_blocked() -> None:
    """They see markets alone: `isBlocked` says all of it."""
    blocked = decided(T1, Q).joined({"a": ["q"], "b": ["q"]}, now=T2)
    assert {key for key, one in blocked.markets.items() if one.is_blocked} == blocked.ids()
    undone = blocked.decided([Q], is_blocked=False, now=T3)
    assert not any(one.is_blocked for one in undone.markets.values())


def test_they_do_so_after_an_undo_of_the_market_itself_whichever_was_first() -> None:
    undone = decided(T1, "a").decided(["a"], is_blocked=False, now=T2)
    question = decided(T1, Q)
    held = undone.merged(question).joined({"a": ["q"]}, now=T3)
    through = question.joined({"a": ["q"]}, now=T3)
    for found in (held, undone.merged(through), through.merged(undone), held.merged(decided(T1, "a"))):
        assert (found.markets["a"].is_blocked, found.markets["a"].at) == (True, T3)
        assert (found.is_own("a"), found.through("a")) == (False, ("q",))
        assert found.decided([Q], is_blocked=False, now=T3).ids() == frozenset()
    kept = held.decided(["a"], is_blocked=False, now=T3)
    assert kept.markets["a"].is_blocked
    assert kept.markets["a"].at > T3
    again = kept.decided(["a"], is_blocked=True, now=T3).decided([Q], is_blocked=False, now=T3)
    assert again.merged(held).ids() == {"a"}


def test_a_takedown_that_such_a_program_repeats_is_of_the_market_itself() -> None:
    """It adds the time to what it read, and keeps what it does not know."""
    held = decided(T1, Q).joined({"a": ["q"]}, now=T2)
    repeated = held.encoded().replace(
        b'"isBlocked": true,\n   "questions"', b'"isBlocked":true,"repeatedAt":"%b","questions"' % T3.encode()
    )
    for found in (decode(repeated), decode(repeated).merged(held)):
        assert found.is_own("a")
        assert found.decided([Q], is_blocked=False, now=T3).ids() == {"a"}
        assert found.decided(["a", Q], is_blocked=False, now=T3).ids() == frozenset()


def test_the_keys_of_the_file_are_a_stored_format() -> None:
    stored = b'{"format":2,"markets":{"a":{"at":"2026-01-31T12:00:01.000Z","isBlocked":true}}}'
    blocked = BlockedList(markets={"a": Decision(at=T1, is_blocked=True)})
    assert decode(stored) == blocked
    assert b"".join(blocked.encoded().split()) == stored
    assert decode(stored.replace(b'"format":2', b'"format":1')) == blocked
    held = blocked.model_copy(
        update={"hold": Hold(reason="why", who="me", since=T1), "aside": ("blocked-0123456789abcdef.json",)}
    )
    beside = (
        b',"hold":{"reason":"why","who":"me","since":"2026-01-31T12:00:01.000Z"},'
        b'"aside":["blocked-0123456789abcdef.json"]}'
    )
    assert decode(stored[:-1] + beside) == held
    assert b"".join(held.encoded().split()) == stored[:-1] + beside


@pytest.mark.parametrize("content", ["", "{}{", "[]", '{"format": 1, "markets": {"a": true}}'])
def test_a_damaged_list_in_a_folder_is_an_error(content: str, tmp_path: Path) -> None:
    (tmp_path / KEY).write_text(content, "utf-8")
    with locked(tmp_path) as folder, pytest.raises(OutputError, match="markets that were taken down would come back"):
        load(folder)


def test_a_list_kept_aside_is_deleted_only_after_what_it_says_is_written(tmp_path: Path) -> None:
    class DyingBefore(Output):
        def discard_key(self, key: str) -> None:
            raise KeyboardInterrupt(key)

    root, staging = tmp_path / "output", tmp_path / "staging"
    staging.mkdir()
    with locked(root) as folder:
        name = aside_name(b"{")
        folder.save(KEY, BlockedList(aside=(name,)).encoded())
        folder.save(name, decided(T1, "a").encoded())
        with pytest.raises(KeyboardInterrupt, match=name):
            settle(DyingBefore(root, staging))
        assert decode(folder.read(KEY) or b"").ids() == {"a"}
        assert settle(folder).ids() == {"a"}


def test_what_another_version_added_is_kept_whichever_copies_are_merged() -> None:
    theirs = decode(
        b'{"format": 1, "markets": {"a": {"at": "%b", "isBlocked": true, "by": "ops"}}, "reasons": {}}' % T1.encode()
    )
    own = decided(T1, "b")
    for merged in (theirs.merged(own), own.merged(theirs)):
        content = json.loads(merged.decided(["a", "c"], is_blocked=True, now=T2).encoded())
        assert content["reasons"] == {}
        assert content["markets"]["a"]["by"] == "ops"
        assert content["markets"].keys() == {"a", "b", "c"}
