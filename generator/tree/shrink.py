"""The shrink guard: refuses a state that would lose too many markets at once. Shared by build, publish and takedown."""

from collections.abc import Set as AbstractSet

from generator.errors import GuardError
from generator.wording import counted


def is_excessive(lost: int, known: int, limit: float) -> bool:
    """Whether losing `lost` of `known` markets exceeds `limit`, a share between 0 and 1."""
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
