"""A market's probability history: points oldest first, thinned evenly in time. Pure.

Points arrive as a stream in any order; a bounded number is kept, so memory does not grow with a market's past.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from generator.markets import batch_validation, faults, row_validation
from generator.markets.batch_validation import CollectRows, RelationRows, SlowPathError, Valid, ignored
from generator.markets.quarantine import Quarantine

#: Longer histories are first reduced to a grid of at most this many cells.
GRID: Final = 10_000

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
#: Days count from 1, in milliseconds: the grid depends on where times begin.
_DAY: Final = 86_400_000

#: RFC 3339 UTC time in milliseconds, probability.
Point: TypeAlias = tuple[str, float]
#: A market's id, then time and probability, as the driver delivers them.
RawPoint: TypeAlias = Sequence[Any]


def history(
    market_id: str, points: RelationRows, limit: int, quarantine: Quarantine, collect: CollectRows = ignored
) -> tuple[list[Point], bool]:
    """The history, oldest first, thinned evenly in time to `limit` points; independent of row order.

    Also returns whether there are more points than that. Then it may have fewer than before, though there are more.
    `collect` is given every valid point, in batches of any order.
    """
    if limit == 0:
        return [], False
    if isinstance(points, Valid):
        found = sorted(zip(*points.columns, strict=True))
        collect(found)
        return thin(found, limit), len(found) > limit
    grid = _Grid()
    kept: list[Point] = []
    for batch in batch_validation.batches(points):
        read = [*_read(market_id, batch, quarantine)]
        collect(read)
        kept += read
        if len(kept) >= 2 * GRID:
            kept = grid.reduce(kept)
    kept.sort()
    is_thinned = grid.used or len(kept) > limit
    return thin(grid.reduce(kept) if len(kept) > GRID or grid.used else kept, limit), is_thinned


def converted(batch: Sequence[RawPoint]) -> Valid:
    """Convert points of one or several markets at once: columns of `Point`. Raises SlowPathError if one is odd."""
    _, times, probs = zip(*batch, strict=True)
    return Valid((batch_validation.timestamps(times), batch_validation.numbers(probs, 0, 1)))


def _read(market_id: str, batch: Sequence[RawPoint], quarantine: Quarantine) -> Iterable[Point]:
    try:
        return zip(*converted(batch).columns, strict=True)
    except SlowPathError:
        return _read_one_by_one(market_id, batch, quarantine)


def _read_one_by_one(market_id: str, batch: Sequence[RawPoint], quarantine: Quarantine) -> list[Point]:
    found = []
    for _, recorded_at, prob in batch:
        try:
            point = row_validation.PointRow.model_validate({"timestamp": recorded_at, "prob": prob})
        except ValidationError as error:
            quarantine.reject("probabilities", market_id, *faults.of(error))
        else:
            found.append((point.timestamp, point.prob))
    return found


class _Grid:
    """Bounds a long history: keeps the latest point of each time cell, and the first point of all.

    Cells are 2ⁿ milliseconds wide, with the smallest n that leaves at most GRID of them. Wider cells consist of whole
    narrower ones, so the result does not depend on the number of steps or the order of rows.
    """

    def __init__(self) -> None:
        self.used = False
        self._shift = 0

    def reduce(self, points: list[Point]) -> list[Point]:
        self.used = True
        points.sort()
        times = [_milliseconds(time) for time, _ in points]
        while len({time >> self._shift for time in times}) > GRID:
            self._shift += 1
        latest = {time >> self._shift: point for time, point in zip(times, points, strict=True)}
        kept = list(latest.values())
        return kept if kept[0] == points[0] else [points[0], *kept]


def thin(points: list[Point], limit: int) -> list[Point]:
    """Choose at most `limit` (2 or more) of the sorted `points`, evenly in time.

    These are the first point, and the last point in each of `limit - 1` equal time spans.
    """
    if len(points) <= limit:
        return points
    start, end = _milliseconds(points[0][0]), _milliseconds(points[-1][0])
    spans = limit - 1
    length = max(end - start, 1)
    # Round up with integers: rounding errors of floats would sometimes open an extra span.
    chosen = {-((start - _milliseconds(point[0])) * spans // length): point for point in points}
    chosen[0] = points[0]
    chosen[spans] = points[-1]
    return [chosen[span] for span in sorted(chosen)]


def _milliseconds(time: str) -> int:
    return (datetime.fromisoformat(time) - _FIRST) // _MILLISECOND + _DAY
