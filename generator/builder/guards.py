"""What `build` refuses because the database looks broken: too many bad rows, too many markets gone. Pure."""

from dataclasses import dataclass

from generator.errors import GuardError
from generator.markets.catalog import Catalog
from generator.markets.quarantine import Quarantine
from generator.tree import shrink
from generator.tree.manifest import Manifest

#: How many bad markets a refusal names with their reasons.
_NAMED = 10


@dataclass(frozen=True)
class BuildOverrides:
    """The guards of a build that the operator overrides with `--allow-…` options.

    `demo` accepts made-up markets, which only a build that is to be published refuses.
    """

    shrink: bool = False
    invalid: bool = False
    demo: bool = True


def refuse_invalid(catalog: Catalog, quarantine: Quarantine, blocked: frozenset[str], limit: float) -> None:
    """Raise GuardError when too large a share of the markets breaks the contract."""
    bad, good = quarantine.total("markets"), len(catalog.markets)
    if bad > limit * (bad + good):
        reasons = "".join(f"\n  {row.key}: {row.reason}" for row in quarantine.named("markets")[:_NAMED])
        raise GuardError(
            f"{bad} of {bad + good} markets break the contract, more than guards.max_invalid ({limit:g}) allows; "
            f"nothing was replaced. Fix them, or pass --allow-invalid:{reasons}",
            _visible(catalog, quarantine, blocked),
        )


def refuse_shrink(catalog: Catalog, previous: Manifest | None, blocked: frozenset[str], limit: float) -> None:
    """Raise GuardError when too large a share of the markets of the previous build would disappear."""
    shrink.refuse(previous.markets.keys() - blocked if previous else frozenset[str](), catalog.ids(), limit)


def _visible(catalog: Catalog, quarantine: Quarantine, blocked: frozenset[str]) -> frozenset[str] | None:
    """The markets that the database shows, bad ones included; None when there are too many to name."""
    bad = {row.key.lower() for row in quarantine.named("markets")}
    return None if quarantine.unnamed() else frozenset(catalog.ids() | bad | blocked)
