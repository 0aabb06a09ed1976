"""The shrink guard: refuses a state that would lose too many markets at once. Shared by build, publish and takedown."""

from collections.abc import Set as AbstractSet

from generator.errors import GuardError
from generator.wording import counted


def is_excessive(lost: int, known: int, limit: float) -> bool:
    """Whether losing `lost` of `known` markets exceeds `limit`, a share between 0 and 1."""
    return lost > limit * known


def refuse(before: AbstractSet[str], after: AbstractSet[str], limit: float) -> None:
    """Raise GuardError when `after` lacks too many of the markets (ids) in `before`; leave blocked ones out of both."""
    lost = len(before - after)
    if is_excessive(lost, len(before), limit):
        raise GuardError(
            f"{lost} of {counted(len(before), 'market')} would disappear, more than guards.max_shrink ({limit:g}) "
            "allows; nothing was replaced. If the database is complete, pass --allow-shrink"
        )
