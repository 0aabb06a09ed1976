"""Whether lists, details and snapshot say the same of the same markets: everything that is seen at about one time."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from generator.api import keys
from generator.api.contract import PublicMarketDetail, PublicMarketSnapshot
from generator.verify.contract import answers, walks
from generator.verify.contract.plans import LIST, PLANS, ContractWalk, WalkedItem, WalkPlan
from generator.verify.contract.subject import Subject
from generator.verify.mismatches import Mismatch, broken, wrong
from generator.verify.request_table import spread

#: What the extended variant may leave out of details: of these, the contract says both (§4.3).
_MAY_LACK: Final = frozenset({"orderBook", "recentFills"})


def compared(asked: Subject) -> Iterator[Mismatch]:
    """Everything that is wrong with walks and snapshot, alone and beside each other."""
    made = [walks.walk(asked, plan) for plan in PLANS]
    for one in made:
        yield from one.found
        yield from (
            broken(one.plan.target, f"shows market {shown}, which is hidden")
            for shown in sorted({one_id for one_id in one.ids if one_id.lower() in asked.hidden})
        )
    yield from walks.differences(made)
    yield from _snapshot(asked, listed(asked))


def listed(asked: Subject) -> dict[str, tuple[WalkedItem, WalkPlan]]:
    """The markets that were walked past, by id, with the first walk that shows them."""
    return {item["id"]: (item, made.plan) for made in reversed(_of_markets(asked)) for item in made.items}


def _of_markets(asked: Subject) -> list[ContractWalk]:
    """The walks through lists of markets."""
    return [made for made in asked.walked.values() if made.plan.resource == LIST]


def _snapshot(asked: Subject, shown: Mapping[str, tuple[WalkedItem, WalkPlan]]) -> Iterator[Mismatch]:
    """The groups of the landing page."""
    answer = asked.ask(f"/{keys.SNAPSHOT.removesuffix('.json')}")
    groups, faults = answers.content(answer, PublicMarketSnapshot)
    yield from faults
    for group, signals in (groups or {}).items():
        counts = Counter(signal["id"].lower() for signal in signals)
        for repeated in sorted(one_id for one_id, count in counts.items() if count > 1):
            yield wrong(answer.target, f"{group} shows market {repeated} {counts[repeated]} times")
        for signal in signals:
            if signal["id"].lower() in asked.hidden:
                yield broken(answer.target, f"{group} shows market {signal['id']}, which is hidden")
            item, plan = shown.get(signal["id"], (None, None))
            if item is None:
                continue
            text = walks.unlike(signal, item)
            if item["status"] != "open":
                yield wrong(answer.target, f"{group} shows market {signal['id']}, which is {item['status']} in {plan}")
            elif text:
                yield wrong(answer.target, f"{group}: market {signal['id']} has {text} in {plan}")


# ── details ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ListedMarketCheck:
    """The detail of a market that a walk shows, beside its item."""

    market_id: str
    plan: WalkPlan

    def __call__(self, asked: Subject) -> Iterator[Mismatch]:
        """Look for the market in the walk again, if this look has not made it yet."""
        item = next((item for item in walks.walk(asked, self.plan).items if item["id"] == self.market_id), None)
        if item is None:  # it has left the list
            return
        answer = asked.ask(f"{LIST}/{self.market_id}")
        may_lack = () if asked.variant == "core" else _MAY_LACK
        detail, faults = answers.content(answer, PublicMarketDetail, may_lack)
        yield from faults
        if detail is None:
            return
        text = walks.unlike(detail["market"], item)
        if text:
            yield wrong(answer.target, f"its market has {text} in {self.plan}")
        if detail["market"]["fxFamilyMember"] is not None:
            yield wrong(answer.target, f"is a member of an FX family, which no list may show, yet {self.plan} does")


def details(asked: Subject, most: int) -> list[ListedMarketCheck]:
    """Those of so many markets in every state, from first and later pages, the ends of walks first."""
    ends = {made.items[-1]["id"]: made.plan for made in _of_markets(asked) if made.items}
    others = {market_id: plan for market_id, (_, plan) in listed(asked).items() if market_id not in ends}
    chosen = [*ends.items(), *spread([*others.items()], max(most - len(ends), 2))]
    return [ListedMarketCheck(market_id, plan) for market_id, plan in chosen[: max(most, 0)]]
