"""Which markets belong to which public question, by each rule alone and by all together."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import inf, nextafter
from typing import Any, Final

import pytest
from hypothesis import example
from hypothesis import given as examples
from hypothesis import strategies as st
from pydantic import ValidationError

from generator.api import contract
from generator.findings import Finding
from generator.markets import question_rows, questions
from generator.markets.market import Market
from generator.markets.quarantine import Quarantine
from generator.markets.questions import GatheredQuestions, Member, PublishedMarkets
from tests.support.sites.question_tables import member_row, question_id, question_row
from tests.support.sites.rows import FX_MEMBER, market_id, public_market

#: The last one has a letter in its id.
MARKETS: Final = {market_id(number): public_market(number) for number in (*range(1, 8), 10)}
#: A member of a public FX family: it has a detail and is in no list.
FX: Final = public_market(250, fx=FX_MEMBER)
MAX: Final = nextafter(inf, 0)


def gather(
    rows: Iterable[Mapping[str, Any]],
    members: Iterable[Mapping[str, Any]],
    quarantine: Quarantine,
    listed: Mapping[str, Market] = MARKETS,
    blocked: frozenset[str] = frozenset(),
) -> GatheredQuestions:
    """What is made of these rows, as the reader gives them."""
    valid = question_rows.valid([*rows], [], quarantine)
    found = (
        (row["question_id"].lower(), row["market_id"].lower(), row["label"], row["position"], row["payout"])
        for row in members
    )
    shown = {key: market for key, market in listed.items() if key not in blocked}
    known = PublishedMarkets(shown, {*listed, FX.id} - blocked)
    return questions.gather(valid, found, known, quarantine)


def shape(found: GatheredQuestions) -> dict[int, list[int]]:
    """The numbers of the markets of each question, by its number."""
    return {
        int(question.id[:8], 16): [int(member.market_id[:8], 16) for member in question.members]
        for question in found.questions
    }


def reasons(quarantine: Quarantine) -> list[tuple[str, str]]:
    return [(row.relation, row.reason) for row in quarantine]


def remarks(found: GatheredQuestions) -> list[tuple[str, str]]:
    return [(remark.key, remark.what()) for remark in found.remarks]


def test_a_question_is_what_its_rows_say(quarantine: Quarantine) -> None:
    columns: dict[str, Any] = {
        "id": question_id(1).upper(),
        "slug": "cup",
        "key": "k1",
        "description": " ",
        "title": "",
    }
    rows = [
        member_row(1, 10, market_id=market_id(10).upper(), label=" Two ", position=-3.0, payout=1 + 1e-10),
        member_row(1, 1, label="Two", position=None, payout=-0.0),
    ]
    settled = {key: public_market(int(key[:8], 16), status="resolved", resolution="NO") for key in MARKETS}
    found = gather([question_row(**columns)], rows, quarantine, settled)
    (question,) = found.questions
    assert tuple(question) == (
        question_id(1), "cup", "k1", "", " ", "exclusive", "2026-01-01T00:00:00.000Z",
        (Member(market_id(1), "Two", None, 0.0), Member(market_id(10), " Two ", -3, 1.0)),
    )  # fmt: skip
    assert isinstance(question.members[1].position, int)
    assert (found.remarks, [*quarantine]) == ([], [])


def test_questions_and_members_are_in_the_order_of_their_ids(quarantine: Quarantine) -> None:
    rows = [member_row(3, 2), member_row(3, 1, position=9), member_row(1, 5), member_row(1, 4)]
    found = gather([question_row(3), question_row(1)], rows, quarantine)
    assert [*shape(found).items()] == [(1, [4, 5]), (3, [1, 2])]


OTHER_ROWS: Final = [
    member_row(2, 2), member_row(1, 40), member_row(1, 250), member_row(9, 2, label="x" * 101),
    member_row(1, 40, payout=7), member_row(1, 1, market_id="x"), member_row(1, 1, question_id=""),
]  # fmt: skip


@pytest.mark.parametrize("row", OTHER_ROWS)
def test_rows_of_other_markets_and_questions_are_ignored_silently(row: dict[str, Any], quarantine: Quarantine) -> None:
    found = gather([question_row(1)], [member_row(1, 1), row], quarantine)
    assert (shape(found), [*quarantine], found.remarks) == ({1: [1]}, [], [])


def test_a_question_without_public_members_is_not_public_and_gets_no_remark(quarantine: Quarantine) -> None:
    found = gather([question_row(1, slug="?", key=" ")], [member_row(1, 40)], quarantine)
    assert (found, [*quarantine]) == (((), []), [])


# ── rule 2 ────────────────────────────────────────────────────────────────────────────────────────────────────────

BAD_QUESTIONS: Final = [
    ("id", "7", "not a UUID"), ("id", None, "must not be NULL"), ("id", question_id(1).replace("-", ""), "not a UUID"),
    ("title", None, "must not be NULL"), ("title", "x" * 501, "string should have at most 500"),
    ("title", b"x", "not a text"), ("title", "\x1b[2J", "holds a control character"), ("title", "\ud800", "not valid"),
    ("description", "x" * 100_001, "string should have at most 100000"), ("description", 7, "not a text"),
    ("kind", "Exclusive", "input should be 'exclusive' or 'independent'"), ("kind", None, "must not be NULL"),
    ("kind", "", "input should be"), ("created_at", "infinity", "not a time"), ("created_at", None, "must not be NULL"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value", "reason"), BAD_QUESTIONS)
def test_a_bad_column_costs_the_question_and_its_markets_may_be_in_another(
    column: str, value: Any, reason: str, quarantine: Quarantine
) -> None:
    rows = [member_row(1, 1), member_row(1, 2), member_row(2, 2)]
    found = gather([question_row(1, **{column: value}), question_row(2)], rows, quarantine)
    assert (shape(found), found.remarks) == ({2: [2]}, [])
    assert [found for found in reasons(quarantine) if found[1].startswith(f"{column}: {reason}")]
    assert quarantine.total() == quarantine.total("questions") == 1


@pytest.mark.parametrize("columns", [{"title": "🙂" * 500}, {"description": "🙂" * 100_000}, {"description": ""}])
def test_the_longest_texts_are_taken(columns: dict[str, str], quarantine: Quarantine) -> None:
    assert shape(gather([question_row(1, **columns)], [member_row(1, 1)], quarantine)) == {1: [1]}


BAD_MEMBERS: Final = [
    ("label", "x" * 101, "string should have at most 100"), ("label", 7, "not a text"), ("label", "a\x00", "holds a c"),
    ("position", 2**53, "input should be less"), ("position", -(2**53), "input should be greater"),
    ("position", 1.5, "not a whole number"), ("position", "1", "not a whole number"), ("position", inf, "not a whole"),
    ("payout", 1.1, "input should be less"), ("payout", -1e-8, "input should be greater"), ("payout", "1", "not a num"),
    ("payout", float("nan"), "input should be"), ("payout", True, "not a number"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value", "reason"), BAD_MEMBERS)
def test_a_bad_membership_costs_itself_only(column: str, value: Any, reason: str, quarantine: Quarantine) -> None:
    rows = [member_row(1, 1), member_row(1, 2, **{column: value}), member_row(1, 3, **{column: value})]
    found = gather([question_row(1), question_row(2)], [*rows, member_row(2, 3)], quarantine)
    assert (shape(found), found.remarks) == ({1: [1], 2: [3]}, [])
    assert [relation for relation, text in reasons(quarantine) if text.startswith(f"{column}: {reason}")] == [
        "question_members"
    ] * 2
    assert [row.key for row in quarantine] == [market_id(2), market_id(3)]


@pytest.mark.parametrize("position", [2**53 - 1, -(2**53) + 1, 0, None])
def test_any_exact_position_is_taken_and_shown_as_it_is(position: int | None, quarantine: Quarantine) -> None:
    (question,) = gather([question_row(1)], [member_row(1, 1, position=position)], quarantine).questions
    assert question.members[0].position == position


@examples(
    st.one_of(
        st.none(), st.text(max_size=4), st.sampled_from(["x" * 100, "x" * 101, "\xa0", " a", b"a", "\u200b", "é"])
    ),
    st.one_of(st.none(), st.integers(-(2**53), 2**53), st.floats(), st.booleans(), st.decimals()),
    st.one_of(st.none(), st.floats(-2, 2), st.sampled_from([0, 1, -0.0, 1 + 1e-10, True, "1"]), st.decimals(0, 1)),
)
def test_what_is_usual_is_taken_as_the_model_takes_it(label: Any, position: Any, payout: Any) -> None:
    found = question_rows.member((label, position, payout), market_id(1), Quarantine())
    try:
        row = question_rows.MemberRow.model_validate({"label": label, "position": position, "payout": payout})
    except ValidationError:
        assert found is None
    else:
        assert repr(found) == repr(question_rows.ValidMember(row.label, row.position, row.payout))


# ── the other rules ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("label", [None, "", " ", "\n\u3000\t", " " * 101])
def test_a_blank_label_is_none_with_a_remark(label: str | None, quarantine: Quarantine) -> None:
    found = gather([question_row(1)], [member_row(1, 1, label=label)], quarantine)
    assert [member.label for member in found.questions[0].members] == [None]
    assert remarks(found) == [(market_id(1), "label in its question is blank")]
    assert [*quarantine] == []


def test_of_equal_pairs_none_counts(quarantine: Quarantine) -> None:
    again = member_row(1, 10, question_id=question_id(1).upper(), market_id=market_id(10).upper(), label="Other")
    rows = [member_row(1, 1), member_row(1, 10), again, again, member_row(1, 3), member_row(1, 3, payout=9)]
    found = gather([question_row(1)], rows, quarantine)
    assert shape(found) == {1: [1, 3]}, "a bad row is no pair"
    assert quarantine.total("question_members") == 4
    assert f"market_id: the question has it more than once ({question_id(1)})" in {
        text for _, text in reasons(quarantine)
    }


def test_a_market_of_several_questions_stands_alone(quarantine: Quarantine) -> None:
    rows = [member_row(1, 1), member_row(1, 2), member_row(2, 2), member_row(2, 3), member_row(3, 3)]
    found = gather([question_row(number) for number in (1, 2, 3)], rows, quarantine)
    assert (shape(found), [*quarantine]) == ({1: [1]}, [])
    assert remarks(found) == [(market_id(number), "is in several questions") for number in (2, 3)]


def test_what_is_left_out_does_not_come_back_through_a_later_step(quarantine: Quarantine) -> None:
    """Question 2 is quarantined in the end; the market that it shared with question 1 stays alone."""
    large = {key: public_market(int(key[:8], 16), volume=MAX) for key in MARKETS}
    rows = [member_row(1, 1), member_row(1, 2), *(member_row(2, number) for number in (2, 3, 4))]
    found = gather([question_row(1), question_row(2)], rows, quarantine, large)
    assert shape(found) == {1: [1]}
    assert reasons(quarantine) == [("questions", "volume: the sum over its members is too large a number")]
    pairs = [*rows, member_row(1, 2)]
    assert shape(gather([question_row(1), question_row(2)], pairs, Quarantine())) == {1: [1], 2: [2, 3, 4]}


@pytest.mark.parametrize("columns", [{"trader_count": 2**52}, {"fills24h": 2**52}])
def test_a_count_that_json_does_not_hold_exactly_costs_the_question(
    columns: dict[str, Any], quarantine: Quarantine
) -> None:
    listed = {key: public_market(int(key[:8], 16), **columns) for key in MARKETS}
    rows = [member_row(1, 1), member_row(1, 2), member_row(2, 3)]
    (name,) = columns
    assert shape(gather([question_row(1), question_row(2)], rows, quarantine, listed)) == {2: [3]}
    assert reasons(quarantine) == [("questions", f"{name}: the sum over its members is too large a number")]


@pytest.mark.parametrize("number", [1_000, 1_001])
def test_a_question_has_a_thousand_public_members_at_most(number: int, quarantine: Quarantine) -> None:
    is_public = number <= 1_000
    one = public_market(1)
    listed = {market_id(each): one for each in range(number)}
    rows = [member_row(1, each) for each in range(number + 5)]
    found = gather([question_row(1)], rows, quarantine, listed)
    assert bool(found.questions) is is_public
    many = ("questions", "id: the question has more than 1,000 public members (1,001)")
    assert reasons(quarantine) == ([] if is_public else [many])


@pytest.mark.parametrize("market", [10, 250])
def test_a_question_with_the_id_of_a_published_market_is_quarantined(market: int, quarantine: Quarantine) -> None:
    taken = question_row(1, id=market_id(market).upper())
    rows = [member_row(1, 1, question_id=market_id(market)), member_row(1, 2, question_id=market_id(market))]
    found = gather([taken, question_row(2)], [*rows, member_row(2, 2)], quarantine)
    assert shape(found) == {2: [2]}
    assert reasons(quarantine) == [("questions", "id: a market has the same")]


def test_an_id_of_a_market_that_is_not_published_may_be_a_question_s(quarantine: Quarantine) -> None:
    for hidden, blocked in ((40, ()), (10, (10,))):
        row = question_row(1, id=market_id(hidden))
        members = [member_row(1, 1, question_id=market_id(hidden))]
        found = gather([row], members, quarantine, blocked=frozenset(map(market_id, blocked)))
        assert shape(found) == {hidden: [1]}


def test_questions_that_share_an_id_are_all_quarantined_and_so_is_one_that_shares_it_with_a_bad_row(
    quarantine: Quarantine,
) -> None:
    rows = [question_row(1), question_row(1, id=question_id(1).upper()), question_row(2), question_row(2, kind="?")]
    members = [member_row(number, number) for number in (1, 2, 3)]
    assert shape(gather([*rows, question_row(3)], members, quarantine)) == {3: [3]}
    assert quarantine.total("questions") == 4
    assert [text for _, text in reasons(quarantine)].count("id: several questions have the same (2)") == 3


SLUGS: Final[list[tuple[Sequence[Any], Sequence[str | None], int]]] = [
    (["a", "A"], [None, None], 2), (["a", "b"], ["a", "b"], 0), (["Snapshot", None], [None, None], 1),
    ([market_id(1), "x" * 255], [None, "x" * 255], 1), (["x" * 256, "é"], [None, None], 2), (["", 7], [None, None], 1),
    (["a", "a", "a"], [None, None, None], 3), (["question", market_id(1)[:-1]], ["question", market_id(1)[:-1]], 0),
]  # fmt: skip


@pytest.mark.parametrize(("given", "shown", "refused"), SLUGS)
def test_a_slug_that_cannot_be_used_costs_only_itself(
    given: Sequence[Any], shown: Sequence[str | None], refused: int, quarantine: Quarantine
) -> None:
    rows = [question_row(number, slug=slug) for number, slug in enumerate(given, start=1)]
    members = [member_row(number, number) for number in range(1, len(given) + 1)]
    found = gather(rows, members, quarantine)
    assert [question.slug for question in found.questions] == [*shown]
    assert [remark.topic for remark in found.remarks] == ["unusable_slug"] * refused
    assert [*quarantine] == []


def test_a_slug_is_compared_with_those_of_public_questions_only(quarantine: Quarantine) -> None:
    rows = [question_row(1, slug="cup"), question_row(2, slug="CUP"), question_row(3, slug="cup", kind="?")]
    listed = MARKETS | {market_id(1): public_market(1)}
    found = gather(rows, [member_row(1, 1), member_row(2, 40), member_row(3, 3)], quarantine, listed)
    assert [question.slug for question in found.questions] == ["cup"]
    assert found.remarks == []


def test_a_key_that_cannot_be_used_costs_only_itself(quarantine: Quarantine) -> None:
    rows = [question_row(number, key=key) for number, key in enumerate(["k", "k", " ", "1", None], start=1)]
    found = gather(rows, [member_row(number, number) for number in range(1, 6)], quarantine)
    assert [question.key for question in found.questions] == [None, None, None, "1", None]
    assert [text for _, text in remarks(found)][:2] == ["key cannot be used: another question has the same"] * 2
    assert [remark.topic for remark in found.remarks] == ["unusable_key"] * 3


def outcomes(*words: str, kind: str = "exclusive") -> list[Finding]:
    """The remarks about a question whose members have these resolutions or states."""
    listed = {}
    for number, word in enumerate(words, start=1):
        is_settled = word in contract.RESOLUTIONS
        columns: dict[str, Any] = {"status": "resolved", "resolution": word} if is_settled else {"status": word}
        listed[market_id(number)] = public_market(number, **columns)
    rows = [member_row(1, number) for number in range(1, len(words) + 1)]
    return gather([question_row(1, kind=kind)], rows, Quarantine(), listed).remarks


@pytest.mark.parametrize(
    "words", [("YES", "YES"), ("YES", "YES", "open", "NO"), ("YES", "open"), ("NO", "YES", "open")]
)
def test_an_exclusive_question_that_is_not_gets_a_remark(words: tuple[str, ...]) -> None:
    (remark,) = outcomes(*words)
    several = words.count("YES") > 1
    assert remark.what().endswith("several of its markets are resolved YES" if several else "while others are open")
    assert outcomes(*words, kind="independent") == []


@pytest.mark.parametrize("words", [("YES", "closed", "NO", "CANCEL", "cancelled"), ("NO", "open"), ("open", "open")])
def test_an_exclusive_question_that_may_be_gets_none(words: tuple[str, ...]) -> None:
    assert outcomes(*words) == []


@pytest.mark.parametrize("status", contract.MARKET_STATUSES)
def test_a_payout_before_its_time_gets_a_remark_that_does_not_quote_it(status: str, quarantine: Quarantine) -> None:
    listed = {market_id(1): public_market(1, status=status)}
    found = gather([question_row(1)], [member_row(1, 1, payout=0.375)], quarantine, listed)
    assert [remark.topic for remark in found.remarks] == ["early_payout"] * (status in {"open", "closed"})
    assert "0.375" not in str(found.remarks)


def test_what_a_blocked_question_blocks_counts_nowhere(quarantine: Quarantine) -> None:
    rows = [(question_id(9), market_id(10).upper()), (question_id(8), market_id(10)), (question_id(9), market_id(10)),
            (question_id(9), "x"), (question_id(9), None), (question_id(9), market_id(40))]  # fmt: skip
    blocked = question_rows.blocked_markets(rows)
    assert blocked == {market_id(10): [question_id(8), question_id(9)], market_id(40): [question_id(9)]}
    found = gather([question_row(1)], [member_row(1, 10, payout=9), member_row(1, 2)], quarantine,
                   blocked=frozenset(blocked))  # fmt: skip
    assert (shape(found), [*quarantine]) == ({1: [2]}, [])


#: Rounded, the first two are half a unit of the last place of MAX, where `fsum` gives up.
@example([nextafter(2.0**970, 0), nextafter(2.0**917, 0), MAX])
@examples(st.lists(st.one_of(
    st.floats(0, MAX), st.sampled_from([MAX, MAX / 2, 2.0**970, 2.0**969, nextafter(2.0**970, 0), 5e-324])
), max_size=6))  # fmt: skip
def test_sums_are_exact_and_rounded_once(volumes: list[float]) -> None:
    total = sum(map(Fraction, volumes), Fraction())
    # From halfway to the next power of two on, the nearest double is infinity: MAX is odd.
    overflows = total >= Fraction(2) ** 1024 - Fraction(2) ** 970
    assert questions.exact_sum(volumes) == (inf if overflows else float(total))


# ── all together ──────────────────────────────────────────────────────────────────────────────────────────────────


def expected(rows: Sequence[dict[str, Any]], members: Sequence[dict[str, Any]], blocked: set[str]) -> dict[str, Any]:
    """The members of each public question by id, step by step as the rules say, in the plainest way."""
    shared = Counter(row["id"].lower() for row in rows)
    good = {row["id"].lower() for row in rows if row["kind"] == "exclusive" and shared[row["id"].lower()] == 1}
    good -= {*MARKETS, FX.id} - blocked
    kept = [(row["question_id"].lower(), row["market_id"].lower()) for row in members if (row["payout"] or 0) <= 1]
    kept = [pair for pair in kept if pair[0] in good and pair[1] in MARKETS and pair[1] not in blocked]
    kept = [pair for pair in kept if kept.count(pair) == 1]
    owners = Counter(market for _, market in kept)
    kept = [pair for pair in kept if owners[pair[1]] == 1]
    return {key: sorted(market for owner, market in kept if owner == key) for key, _ in sorted(kept)}


IDS: Final = st.sampled_from([question_id(1), question_id(2), question_id(2).upper(), question_id(3), market_id(3)])
QUESTIONS: Final = st.builds(
    question_row, id=IDS, kind=st.sampled_from(["exclusive", "exclusive", "exclusive", "?"]),
    slug=st.sampled_from([None, "a", "A", "b"]),
)  # fmt: skip
MEMBERS: Final = st.builds(
    member_row, st.just(1), st.integers(1, 8), question_id=IDS, payout=st.sampled_from([None, 0.5, 2]),
    label=st.sampled_from(["x", " "]),
)  # fmt: skip


@examples(
    st.lists(QUESTIONS, max_size=5), st.lists(MEMBERS, max_size=12),
    st.sets(st.sampled_from([market_id(number) for number in (1, 2, 3)])), st.randoms(),
)  # fmt: skip
def test_every_market_is_in_one_question_at_most_whatever_the_order_of_the_rows(
    rows: list[dict[str, Any]], members: list[dict[str, Any]], blocked: set[str], random: Any
) -> None:
    first, second = Quarantine(), Quarantine()
    found = gather(rows, members, first, blocked=frozenset(blocked))
    shown = {question.id: [member.market_id for member in question.members] for question in found.questions}
    assert shown == expected(rows, members, blocked)
    assert [*shown] == sorted(shown)
    every = [market for markets in shown.values() for market in markets]
    assert len(every) == len({*every})
    random.shuffle(rows)
    random.shuffle(members)
    again = gather(rows, members, second, blocked=frozenset(blocked))
    assert again == found
    assert [*second] == [*first]
