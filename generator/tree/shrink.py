"""The shrink guard: refuses a state that would lose too many markets at once, or too much of questions."""

from collections.abc import Set as AbstractSet
from typing import Final

from generator.errors import GuardError
from generator.tree.manifest import Manifest
from generator.wording import counted


def is_excessive(lost: int, known: int, limit: float) -> bool:
    """Whether losing `lost` of `known` things exceeds `limit`, a share between 0 and 1."""
    return lost > limit * known


def refuse(before: AbstractSet[str], after: AbstractSet[str], limit: float, unknown: int = 0) -> None:
    """Raise GuardError when `after` lacks too many of the markets (ids) in `before`; leave blocked ones out of both.

    Before, there were also so many `unknown` ones.
    """
    lost, known = len(before - after) + max(0, unknown - len(after - before)), len(before) + unknown
    if is_excessive(lost, known, limit):
        raise GuardError(
            f"{lost} of {counted(known, 'market')} would disappear, more than guards.max_shrink ({limit:g}) "
            "allows; nothing was replaced. If the database is complete, pass --accept shrink"
        )


def refuse_fewer(
    before: Manifest,
    after: Manifest,
    limit: float,
    blocked: AbstractSet[str],
    shown: frozenset[str] | None = None,
) -> None:
    """Raise GuardError when there are many fewer questions, markets in questions, or labels of these.

    `blocked` markets (ids) and questions (references) are left out; each blocked market counts as one with a label.
    `shown` is what the database shows, for the error.
    """
    gone = {reference for reference, markets in before.members.items() if reference in blocked or blocked >= {*markets}}
    members = {market_id for found in before.members.values() for market_id in found}
    lost = members & {*blocked}.union(*(before.members[reference] for reference in gone))
    left_out = (len(gone), len(lost), len(lost))
    for known, out, now, noun in zip(before.question_counts, left_out, after.question_counts, _COUNTED, strict=True):
        then = known - out
        if then > now and is_excessive(then - now, then, limit):
            raise GuardError(
                f"there would be {counted(now, noun)}, of {then}, which is less than guards.max_shrink ({limit:g}) "
                "allows; nothing was replaced. If the database is complete, pass --accept shrink",
                shown,
            )


_COUNTED: Final = ("question", "question member", "question label")
