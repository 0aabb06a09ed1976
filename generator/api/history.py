"""`v1/history.json`: how right probabilities were, of all markets that closed and resolved YES or NO. Pure.

The history page shows the same figures. No market is named, and each figure is that of markets which are published.
"""

from collections.abc import Iterable, Mapping
from math import fsum
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field

from generator.api.contract import Closed
from generator.api.forms import Count, Probability, Timestamp

#: Buckets of probabilities, all of the same width.
BUCKETS: Final = 10
#: Days before the close, each with the column of `closes` that has the probability then.
DAYS_BEFORE: Final[Mapping[int, str]] = {7: "probWeekBefore", 1: "probDayBefore"}
#: Fewer markets than this tell nothing of a bucket.
FEWEST: Final = 10


class CalibrationBucket(Closed):
    """The markets whose probability was in one range."""

    low: Annotated[Probability, Field(description="Where the range begins; it includes this probability.")]
    high: Annotated[Probability, Field(description="Where it ends; only the last range includes this probability.")]
    markets: Annotated[
        Count, Field(description=f"How many markets had such a probability. Fewer than {FEWEST} tell little.")
    ]
    mean_prob: Annotated[
        Probability | None, Field(description="The mean of their probabilities; null if there are no such markets.")
    ]
    resolved_yes: Annotated[Count, Field(description="How many of them resolved YES.")]


class Horizon(Closed):
    """How right the probabilities were so many days before markets closed."""

    days_before: Annotated[int, Field(ge=1, description="How many days, of 24 hours each, before the market closed.")]
    markets: Annotated[
        Count, Field(description="How many of the resolved markets had a probability then; all figures are of these.")
    ]
    brier_score: Annotated[
        Probability | None,
        Field(
            description="The mean of the squares of probability less outcome, which is 1 for YES and 0 for NO: 0 is "
            "perfect, and 0.25 what a probability of 0.5 for every market makes; null without markets."
        ),
    ]
    calibration: Annotated[
        list[CalibrationBucket],
        Field(
            min_length=BUCKETS, max_length=BUCKETS, description="Ten ranges of probabilities, of one width, ascending."
        ),
    ]


class History(Closed):
    """How right the probabilities of this site's markets were."""

    as_of: Annotated[
        Timestamp,
        Field(
            description="Markets count that closed before this instant, the beginning of a day (UTC), by the outcomes "
            "that are published. A market closes at `closeTime`, or at `resolvedAt` if that is earlier."
        ),
    ]
    resolved_yes: Annotated[Count, Field(description="How many of these markets resolved YES.")]
    resolved_no: Annotated[Count, Field(description="How many of these markets resolved NO.")]
    horizons: Annotated[
        list[Horizon],
        Field(description="The same of their probabilities so many days before they closed, the longest time first."),
    ]


class Settled(NamedTuple):
    """How a market resolved, and when it closed."""

    is_yes: bool
    closed_at: str


#: The market (id) of a row of `closes`, then its probability at each of DAYS_BEFORE; None where it had none.
CloseRow = tuple[Any, ...]


def make(outcomes: Mapping[str, Settled], closes: Iterable[CloseRow], as_of: str) -> History:
    """The figures of markets that resolved YES or NO, by id, in whatever order their rows come.

    As of the beginning of the day (UTC) of the instant `as_of`: of the markets that had closed by then, every build of
    that day knows the rows, but those that came late.
    """
    midnight = day_of(as_of)
    counted = {market_id: outcome for market_id, outcome in outcomes.items() if outcome.closed_at < midnight}
    found: list[list[tuple[float, bool]]] = [[] for _ in DAYS_BEFORE]
    for market_id, *probs in closes:
        if market_id in counted:
            for of_horizon, prob in zip(found, probs, strict=True):
                if prob is not None:
                    of_horizon.append((prob, counted[market_id].is_yes))
    yes = sum(outcome.is_yes for outcome in counted.values())
    return History(
        as_of=midnight,
        resolved_yes=yes,
        resolved_no=len(counted) - yes,
        horizons=[_horizon(days, forecasts) for days, forecasts in zip(DAYS_BEFORE, found, strict=True)],
    )


def day_of(as_of: str) -> str:
    """The beginning of the day of an instant, in UTC."""
    return f"{as_of[: len('2026-10-31')]}T00:00:00.000Z"


def _horizon(days: int, forecasts: list[tuple[float, bool]]) -> Horizon:
    buckets: list[list[tuple[float, bool]]] = [[] for _ in range(BUCKETS)]
    for prob, is_yes in forecasts:
        buckets[min(int(prob * BUCKETS), BUCKETS - 1)].append((prob, is_yes))
    return Horizon(
        days_before=days,
        markets=len(forecasts),
        brier_score=_mean([(prob - is_yes) ** 2 for prob, is_yes in forecasts]),
        calibration=[_bucket(place, held) for place, held in enumerate(buckets)],
    )


def _bucket(place: int, held: list[tuple[float, bool]]) -> CalibrationBucket:
    return CalibrationBucket(
        low=place / BUCKETS,
        high=(place + 1) / BUCKETS,
        markets=len(held),
        mean_prob=_mean([prob for prob, _ in held]),
        resolved_yes=sum(is_yes for _, is_yes in held),
    )


def _mean(values: list[float]) -> float | None:
    # The exact sum, rounded once: it is the same in whatever order rows come from the files.
    return fsum(values) / len(values) if values else None
