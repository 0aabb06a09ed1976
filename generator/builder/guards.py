"""What `build` refuses because the database looks broken: too many bad rows, too many markets gone. Pure."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nsmallest
from operator import attrgetter
from typing import Final

from generator.api import forms, keys
from generator.builder.report import Excused
from generator.errors import GuardError
from generator.findings import CHECK_NAMES_EACH
from generator.markets.quarantine import Quarantine, printable
from generator.site.catalog import Catalog
from generator.wording import counted

#: How old a market may be, at the time of the last build, to be expected in the next.
_NEW: Final = timedelta(days=7)
#: How many older ones may appear, and which share of what is public; how many are named.
_FEW: Final = 20
_SHARE: Final = 0.02
_NAMED: Final = 3


@dataclass(frozen=True)
class Clock:
    """The instant to build for, an aware time; `is_set` when the operator chose it."""

    as_of: datetime
    is_set: bool


@dataclass(frozen=True)
class BuildOverrides:
    """What the operator overrides with options: guards, which details are read, and what is kept.

    The guards that are `accepted` refuse nothing. `demo` accepts made-up markets, which only a build that is to be
    published refuses. `full` reads every detail, not only those that changed and a sample; then it also `compares`
    every file in place. `purge` keeps no retired generation, and no step of the change feed. `anew` replaces what
    another version built and this one cannot read.
    """

    accepted: frozenset[str] = frozenset()
    demo: bool = True
    full: bool = False
    compares: bool = True
    purge: bool = False
    anew: bool = False

    @property
    def mends(self) -> bool:
        """Whether every file in place is compared with the one that belongs there."""
        return self.full and self.compares


def refuse_invalid(
    catalog: Catalog, quarantine: Quarantine, others: frozenset[str], limit: float, *, names_faults: bool = True
) -> None:
    """Raise GuardError if too large a share of the markets breaks the contract; `names_faults` adds the faults.

    `others` are those of `visible`.
    """
    bad, good = quarantine.total("markets"), len(catalog.markets)
    if bad > limit * (bad + good):
        lines = [*quarantine.lines("markets"), CHECK_NAMES_EACH] if names_faults else []
        faults = "".join(f"\n  {line}" for line in lines)
        raise GuardError(
            f"{bad} of {counted(bad + good, 'market')} break the contract, more than guards.max_invalid ({limit:g}) "
            f"allows; nothing was replaced. Fix them, or pass --accept invalid{faults and ':'}{faults}",
            visible(catalog, quarantine, others),
        )


def refuse_growth(
    catalog: Catalog, public: AbstractSet[str], built_at: str, excused: Excused, shown: frozenset[str] | None = None
) -> None:
    """Raise GuardError when many markets appear that are not new, and not among those that a build made `public`.

    That was as of `built_at`. `shown` are the markets that the database shows. A queue of moderated markets has waited
    for days, not for weeks.
    """
    if not public:
        return
    since = forms.instant(datetime.fromisoformat(built_at) - _NEW)
    known = public | excused.ids
    appeared = [market for market in catalog.markets if market.created_at < since and market.id not in known]
    number = len(appeared) - excused.others
    if number > _FEW and number > _SHARE * len(public):
        oldest = nsmallest(_NAMED, appeared, key=attrgetter("created_at", "id"))
        named = "".join(f"\n  market {market.id} ({printable(market.item.question)})" for market in oldest)
        raise GuardError(
            f"{counted(number, 'market', ',')} would appear that were created more than {_NEW.days} days before the "
            f"last build (as of {built_at}) and were not public then, more than {_FEW} and more than "
            f"{_SHARE:.0%} of {counted(len(public), 'market', ',')}; nothing was replaced. A view may have lost a "
            "condition, such as `deleted_at IS NULL`; if they may all be public, pass --accept growth. Such as:"
            f"{named}",
            shown,
        )


def visible(catalog: Catalog, quarantine: Quarantine, others: frozenset[str]) -> frozenset[str] | None:
    """What the database shows, bad rows included; None when there are too many to name.

    `others` are blocked markets, and all questions but bad ones.
    """
    bad = {row.key.lower() for row in quarantine.named("markets")}
    bad.update(keys.question_reference(row.key.lower()) for row in quarantine.named("questions"))
    return None if quarantine.unnamed("markets", "questions") else frozenset(catalog.ids() | bad | others)
