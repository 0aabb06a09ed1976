"""Whether the row of a question follows from its markets: sums, states, times, and which markets it shows. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any, Final, NamedTuple

from generator.api import contract
from generator.api.questions import SHOWN_MARKETS, SINGLE
from generator.verify import question_values
from generator.verify.contract import answers
from generator.verify.contract.plans import WalkedItem
from generator.verify.mismatches import Mismatch, note, wrong
from generator.wording import counted

#: What a market that stands alone shows as it is in lists of markets; other values follow from it as from any.
_OF_SINGLE: Final = ("createdAt", "slug", "category", "categories")


class RowMember(NamedTuple):
    """A market of a question, as lists show it, with its label; its `position` in a tuple if a detail told it."""

    label: str | None
    market: WalkedItem
    position: tuple[int | None] | None = None
    payout: float | None = None


def faults(row: WalkedItem, members: Sequence[RowMember]) -> Iterator[Mismatch]:
    """What of a row contradicts its markets, which are all that it has."""
    name = f"row {row['id']}"
    yield from _unlike(name, row, members)
    by_id = {one.market["id"]: one for one in members}
    if row["kind"] == SINGLE:
        yield from (wrong("", f"{name} {text}") for text in _of_single(row, members))
    for one in row["markets"]:
        known = by_id.get(one["id"])
        wanted = {**known.market, "label": known.label} if known else {}
        for field in ("label", "prob", "status", "resolution"):
            if known and one[field] != wanted[field]:
                text = f"shows market {one['id']} with {field} {one[field]!r:.60}, which has {wanted[field]!r:.60}"
                yield wrong("", f"{name} {text}")
    yield from (wrong("", f"{name} {text}") for text in _disorder(row, members))


def detail_faults(question: Mapping[str, Any], members: Sequence[RowMember]) -> Iterator[Mismatch]:
    """What of a detail contradicts itself."""
    yield from _unlike("its question", question, members)
    places = [(place is None, place or 0, one.market["id"].lower()) for one in members for place in one.position or ()]
    if places != sorted(places):
        yield wrong("", "its markets are not in the order of their positions, then ids")
    for one in members:
        if one.payout is not None and one.market["status"] in contract.UNSETTLED:
            yield wrong("", f"shows a payout of market {one.market['id']}, which is {one.market['status']}")


def _unlike(name: str, question: Mapping[str, Any], members: Sequence[RowMember]) -> Iterator[Mismatch]:
    """Values that are not those that markets make."""
    markets = [{name: answers.comparable(value) for name, value in one.market.items()} for one in members]
    for field, wanted in question_values.made(markets).items():
        if field in _OF_SINGLE and question["kind"] == SINGLE:
            continue
        shown = answers.comparable(question.get(field))
        if shown == wanted:
            continue
        if field == "volume" and math.isclose(shown, wanted, rel_tol=1e-9):
            yield note("", "volumes of questions are not the sums of their markets' volumes, rounded once")
            continue
        value = question.get(field)
        yield wrong(
            "", f"{name} has {field} {value!r:.60}; its {counted(len(members), 'market')} make it {wanted!s:.60}"
        )


def _of_single(row: WalkedItem, members: Sequence[RowMember]) -> Iterator[str]:
    """What a row of one market shows otherwise than the list of markets."""
    market = members[0].market
    if [one.market["id"] for one in members] != [row["id"]] or members[0].label is not None:
        yield "is of the kind single, and not of one market with its id and no label"
        return
    shown = {"question": row["title"], **{field: row.get(field) for field in _OF_SINGLE}}
    for field, value in shown.items():
        if (answers.comparable(value) or None) != (answers.comparable(market.get(field)) or None):
            yield f"shows {value!r:.60} of the market, whose {field} is {market.get(field)!r:.60}"


def _disorder(row: WalkedItem, members: Sequence[RowMember]) -> Iterator[str]:
    """Whether a row shows the first markets in their order, as far as that is known."""
    shown, places = [one["id"] for one in row["markets"]], {one.market["id"]: _place(one) for one in members}
    if len({*shown}) != min(row["size"], SHOWN_MARKETS) or len(shown) != len({*shown}):
        yield f"shows {counted(len(shown), 'market')}, and its size is {row['size']}"
    elif all(one.position for one in members):
        first = sorted(places, key=places.__getitem__)[:SHOWN_MARKETS]
        if shown != first:
            pairs = zip_longest(shown, first, fillvalue="none")
            place, (one, other) = next(found for found in enumerate(pairs) if found[1][0] != found[1][1])
            yield f"shows market {one} at place {place + 1}, where {other} must be"
    for before, after in islice(question_values.misplaced(row["markets"]), 1):
        yield f"shows market {after} after {before}: open ones come first, then YES, then by prob"


def _place(member: RowMember) -> tuple[Any, ...]:
    (position,) = member.position or (None,)
    return *question_values.rank(member.market), position is None, position or 0, member.market["id"].lower()
