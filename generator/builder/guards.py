"""What `build` refuses because the database looks broken: too many bad rows, too many markets gone. Pure."""

from dataclasses import dataclass

from generator.errors import GuardError
from generator.findings import CHECK_NAMES_EACH
from generator.markets.quarantine import Quarantine
from generator.site.catalog import Catalog
from generator.tree import shrink
from generator.tree.manifest import Manifest
from generator.wording import counted


@dataclass(frozen=True)
class BuildOverrides:
    """What the operator overrides with options: guards, with `--allow-…`, which details are read, and what is kept.

    `demo` accepts made-up markets, which only a build that is to be published refuses. `full` reads every detail, not
    only those that changed and a sample; then it also `compares` every file in place. `purge` keeps no retired
    generation, and no step of the change feed.
    """

    shrink: bool = False
    invalid: bool = False
    jumps: bool = False
    questions: bool = False
    demo: bool = True
    full: bool = False
    compares: bool = True
    purge: bool = False

    @property
    def mends(self) -> bool:
        """Whether every file in place is compared with the one that belongs there."""
        return self.full and self.compares


def refuse_invalid(
    catalog: Catalog, quarantine: Quarantine, blocked: frozenset[str], limit: float, *, names_faults: bool = True
) -> None:
    """Raise GuardError if too large a share of the markets breaks the contract; `names_faults` adds the faults."""
    bad, good = quarantine.total("markets"), len(catalog.markets)
    if bad > limit * (bad + good):
        lines = [*quarantine.lines("markets"), CHECK_NAMES_EACH] if names_faults else []
        faults = "".join(f"\n  {line}" for line in lines)
        raise GuardError(
            f"{bad} of {counted(bad + good, 'market')} break the contract, more than guards.max_invalid ({limit:g}) "
            f"allows; nothing was replaced. Fix them, or pass --allow-invalid{faults and ':'}{faults}",
            visible(catalog, quarantine, blocked),
        )


def refuse_shrink(catalog: Catalog, previous: Manifest | None, blocked: frozenset[str], limit: float) -> None:
    """Raise GuardError when too large a share of the markets of the previous build would disappear."""
    shrink.refuse(previous.markets.keys() - blocked if previous else frozenset[str](), catalog.ids(), limit)


def visible(catalog: Catalog, quarantine: Quarantine, blocked: frozenset[str]) -> frozenset[str] | None:
    """The markets that the database shows, bad ones included; None when there are too many to name."""
    bad = {row.key.lower() for row in quarantine.named("markets")}
    return None if quarantine.unnamed() else frozenset(catalog.ids() | bad | blocked)
