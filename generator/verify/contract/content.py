"""Whether lists, details and snapshot say the same of the same markets: everything that is seen at about one time."""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Final

from generator.api import keys
from generator.api.contract import PublicMarketDetail, PublicMarketSnapshot
from generator.verify.contract import answers, walks
from generator.verify.contract.subject import LIST, Subject, broken, wrong
from generator.verify.contract.walks import ContractWalk, WalkedItem, WalkPlan
from generator.verify.mismatches import Mismatch
from generator.verify.request_table import spread

#: How many markets' details are looked at.
_DETAILS: Final = 6


def compared(asked: Subject) -> Iterator[Mismatch]:
    """Everything that is wrong with walks, details and snapshot, alone and beside each other."""
    made = [walks.walk(asked, plan) for plan in walks.PLANS]
    hidden = {market_id.lower() for market_id in asked.hidden}
    for one in made:
        yield from one.found
        yield from (
            broken(one.plan.target, f"shows market {found}, which is hidden")
            for found in sorted({one_id for one_id in one.ids if one_id.lower() in hidden})
        )
    yield from walks.differences(made)
    shown = {item["id"]: (item, one.plan) for one in reversed(made) for item in one.items}
    for item, plan in _chosen(made):
        yield from _detail(asked, item, plan)
    yield from _snapshot(asked, shown)


def _chosen(made: Sequence[ContractWalk]) -> list[tuple[WalkedItem, WalkPlan]]:
    """Markets in every state, from first and later pages."""
    ended = [(one.items[-1], one.plan) for one in made if one.items]
    chosen = {item["id"]: (item, plan) for item, plan in ended}
    return spread([*chosen.values()], _DETAILS)


def _detail(asked: Subject, item: WalkedItem, plan: WalkPlan) -> Iterator[Mismatch]:
    """A market's detail, by its id in both cases, and its item in a list."""
    answer = asked.ask(f"{LIST}/{item['id']}")
    detail, faults = answers.content(answer, PublicMarketDetail)
    yield from (broken(answer.target, text) for text in faults)
    if detail is None:
        return
    text = walks.unlike(detail["market"], item)
    if text:
        yield wrong(answer.target, f"its market has {text} in {plan}")
    if detail["market"]["fxFamilyMember"] is not None:
        yield wrong(answer.target, f"is a member of an FX family, which no list may show, yet {plan} does")
    if item["id"] != item["id"].upper():
        upper = asked.ask(f"{LIST}/{item['id'].upper()}")
        if upper.status != HTTPStatus.OK:
            yield broken(upper.target, f"is answered {upper.status}, though a UUID may be in either case")


def _snapshot(asked: Subject, shown: Mapping[str, tuple[WalkedItem, WalkPlan]]) -> Iterator[Mismatch]:
    """The groups of the landing page."""
    answer = asked.ask(f"/{keys.SNAPSHOT.removesuffix('.json')}")
    groups, faults = answers.content(answer, PublicMarketSnapshot)
    yield from (broken(answer.target, text) for text in faults)
    hidden = {market_id.lower() for market_id in asked.hidden}
    for group, signals in (groups or {}).items():
        for signal in signals:
            if signal["id"].lower() in hidden:
                yield broken(answer.target, f"{group} shows market {signal['id']}, which is hidden")
            item, plan = shown.get(signal["id"], (None, None))
            if item is None:
                continue
            text = walks.unlike(signal, item)
            if item["status"] != "open":
                yield wrong(answer.target, f"{group} shows market {signal['id']}, which is {item['status']} in {plan}")
            elif text:
                yield wrong(answer.target, f"{group}: market {signal['id']} has {text} in {plan}")
