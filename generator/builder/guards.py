"""What `build` refuses because it looks like an accident of the database: bad rows, markets that are gone. Pure."""

from generator.errors import GuardError
from generator.markets.catalog import Catalog
from generator.markets.quarantine import Quarantine
from generator.tree.manifest import Manifest

#: So many bad markets are named with their reasons.
_NAMED = 10


def refuse_invalid(catalog: Catalog, quarantine: Quarantine, barred: frozenset[str], limit: float) -> None:
    """Raise GuardError when too large a share of the markets breaks the contract."""
    bad, good = quarantine.total("markets"), len(catalog.markets)
    if bad > limit * (bad + good):
        reasons = "".join(f"\n  {row.key}: {row.reason}" for row in quarantine.named("markets")[:_NAMED])
        raise GuardError(
            f"{bad} of {bad + good} markets break the contract, more than guards.max_invalid "
            f"({limit:g}) allows; nothing was replaced. mend them, or use --allow-invalid:{reasons}",
            _visible(catalog, quarantine, barred),
        )


def refuse_shrink(catalog: Catalog, previous: Manifest | None, barred: frozenset[str], limit: float) -> None:
    """Raise GuardError when too large a share of the markets would disappear."""
    before = previous.markets.keys() - barred if previous else set[str]()
    lost = len(before - catalog.ids())
    if lost > limit * len(before):
        raise GuardError(
            f"{lost} of {len(before)} markets would disappear, more than guards.max_shrink "
            f"({limit:g}) allows; nothing was replaced. is the database whole? then use --allow-shrink"
        )


def _visible(catalog: Catalog, quarantine: Quarantine, barred: frozenset[str]) -> frozenset[str] | None:
    """The markets that the database shows, broken ones included; None when there are too many to name."""
    broken = {row.key.lower() for row in quarantine.named("markets")}
    return None if quarantine.unnamed() else frozenset(catalog.ids() | broken | barred)
