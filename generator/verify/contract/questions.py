"""Questions, where a server has them: rows, details and markets beside each other.

The contract does not know them, so whoever answers that there are none is asked no more.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from generator.api.questions import SHOWN_MARKETS, SINGLE, QuestionDetail
from generator.verify.contract import answers, rows, walks
from generator.verify.contract.plans import ALL_MARKETS, QUESTION_PLANS, QUESTIONS, ContractWalk, WalkedItem, WalkPlan
from generator.verify.contract.rows import RowMember
from generator.verify.contract.subject import Subject
from generator.verify.mismatches import Mismatch, broken, wrong
from generator.verify.request_table import spread

#: The most details: first of questions that do not show all their markets in lists.
_MOST_DETAILS: Final = 10

#: The markets of rows that are known, by the row's id.
_Members = dict[str, Sequence[RowMember]]


def compared(asked: Subject) -> Iterator[Mismatch]:
    """Everything that is wrong with questions."""
    if asked.ask(QUESTION_PLANS[0].target).status == HTTPStatus.NOT_FOUND:
        return
    made = [walks.walk(asked, plan) for plan in QUESTION_PLANS]
    for one in made:
        yield from one.found
        yield from _hidden(asked, one)
    yield from walks.differences(made)
    shown = {row["id"]: (row, one.plan) for one in reversed(made) for row in one.items}
    markets = walks.walk(asked, ALL_MARKETS)
    members = _as_shown(shown, {item["id"]: item for item in markets.items})
    for question_id in _chosen(shown):
        row, plan = shown[question_id]
        found, faults = _detail(asked, row, plan, markets)
        yield from faults
        if found is not None:
            members[question_id] = found
    yield from _shared(made[0], members)
    yield from _unlike_markets(asked, made[0], markets, members)
    for row_id, (row, plan) in shown.items():
        if row_id in members:
            yield from (one._replace(target=plan.target) for one in rows.faults(row, members[row_id]))
    yield from _refusals(asked, [row for row, _ in shown.values()])


def _hidden(asked: Subject, made: ContractWalk) -> Iterator[Mismatch]:
    ids = {one_id for row in made.items for one_id in (row["id"], *(market["id"] for market in row["markets"]))}
    for one_id in sorted(ids):
        if one_id.lower() in asked.hidden:
            yield broken(made.plan.target, f"shows market {one_id}, which is hidden")


def _as_shown(shown: Mapping[str, tuple[WalkedItem, WalkPlan]], items: Mapping[str, WalkedItem]) -> _Members:
    """The markets of rows that show all of them, where the walk through all markets came past these."""
    return {
        row_id: [RowMember(one["label"], items[one["id"]]) for one in row["markets"]]
        for row_id, (row, _) in shown.items()
        if row["size"] == len(row["markets"]) and all(one["id"] in items for one in row["markets"])
    }


def _chosen(shown: Mapping[str, tuple[WalkedItem, WalkPlan]]) -> list[str]:
    """The questions whose details are asked for."""
    ids = [row_id for row_id, (row, _) in shown.items() if row["kind"] != SINGLE]
    large = [row_id for row_id in ids if shown[row_id][0]["size"] > SHOWN_MARKETS][:_MOST_DETAILS]
    others = [row_id for row_id in ids if row_id not in large]
    return [*large, *spread(others, max(2, _MOST_DETAILS - len(large)))][:_MOST_DETAILS]


def _detail(
    asked: Subject, row: WalkedItem, plan: WalkPlan, markets: ContractWalk
) -> tuple[Sequence[RowMember] | None, list[Mismatch]]:
    """The markets of a question as its detail tells them, and what is wrong with it."""
    answer = asked.ask(f"{QUESTIONS}/{row['id']}")
    detail, faults = answers.content(answer, QuestionDetail)
    if detail is None:
        return None, faults
    found = [RowMember(one["label"], one["market"], (one["position"],), one["payout"]) for one in detail["markets"]]
    text = walks.unlike(detail["question"], row)
    if text:
        faults.append(wrong(answer.target, f"its question has {text} in {plan}"))
    items = {item["id"]: item for item in markets.items}
    for one in found:
        text = walks.unlike(one.market, items.get(one.market["id"], {}))
        if text:
            faults.append(wrong(answer.target, f"its market {one.market['id']} has {text} in {markets.plan}"))
    faults += (one._replace(target=answer.target) for one in rows.detail_faults(detail["question"], found))
    return found, faults


def _shared(made: ContractWalk, members: _Members) -> Iterator[Mismatch]:
    """Markets in two rows."""
    owners = dict[str, str]()
    for row in made.items:
        ids = {one.market["id"] for one in members.get(row["id"], ())} | {one["id"] for one in row["markets"]}
        for market_id in sorted(ids):
            if market_id in owners:
                yield wrong(
                    made.plan.target, f"has market {market_id} in two rows, {owners[market_id]} and {row['id']}"
                )
            owners[market_id] = row["id"]


def _unlike_markets(asked: Subject, made: ContractWalk, markets: ContractWalk, members: _Members) -> Iterator[Mismatch]:
    """Markets in no row, and rows of markets that no list shows, where both walks came to their ends."""
    if not all(one.is_whole and one.is_comparable for one in (made, markets)):
        asked.leave_out("there are more questions or markets than were walked past, so none could be missed")
        return
    rows_of = Counter(one["id"] for row in made.items for one in row["markets"])
    rows_of.update(one.market["id"] for found in members.values() for one in found)
    for market_id in sorted(rows_of.keys() - markets.ids):
        yield wrong(made.plan.target, f"shows market {market_id}, and {markets.plan} does not")
    if all(row["id"] in members for row in made.items):
        for market_id in sorted(markets.ids - rows_of.keys()):
            yield wrong(made.plan.target, f"has market {market_id} in no row, and {markets.plan} shows it")


def _refusals(asked: Subject, shown: Sequence[WalkedItem]) -> Iterator[Mismatch]:
    """What is no question, no cursor of questions, and no parameter."""
    single = next((row["id"] for row in shown if row["kind"] == SINGLE), None)
    if single:
        answer = asked.ask(f"{QUESTIONS}/{single}")
        if answer.status != HTTPStatus.NOT_FOUND:
            yield broken(answer.target, f"is answered {answer.status}, not 404: this market is in no question")
    given = {
        "q": "q=a",
        **({"cursor": f"status=all&sort=popular&cursor={quote(asked.cursor)}"} if asked.cursor else {}),
    }
    for name, query in given.items():
        answer = asked.ask(f"{QUESTIONS}?{query}")
        if answer.status != HTTPStatus.BAD_REQUEST or name not in answers.parameters(answer):
            yield broken(answer.target, f"is answered {answer.status}, not 400 with details that name {name}")
