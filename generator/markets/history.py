"""A market's probability history: its points oldest first, thinned evenly in time. Pure.

Points arrive as a stream in any order; what is kept of them is bounded, so memory does not grow with a market's past.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from generator.markets import batch_validation, row_validation
from generator.markets.batch_validation import UnusualError
from generator.markets.quarantine import Quarantine

#: A history up to this long is thinned exactly; a longer one is brought down to a grid of so many cells first.
GRID: Final = 10_000

#: RFC 3339 UTC time in milliseconds, probability.
Point: TypeAlias = tuple[str, float]
#: A market's id, then time and probability, as the database has them.
Row: TypeAlias = Sequence[Any]


def history(market_id: str, points: Iterable[Row], limit: int, quarantine: Quarantine) -> list[Point]:
    """The probability history, oldest first, thinned evenly in time to `limit` points; the result ignores row order."""
    if limit == 0:
        return []
    grid = _Grid()
    kept: list[Point] = []
    for batch in batch_validation.batches(points):
        kept += _read(market_id, batch, quarantine)
        if len(kept) >= 2 * GRID:
            kept = grid.reduce(kept)
    kept.sort()
    return thin(grid.reduce(kept) if len(kept) > GRID or grid.used else kept, limit)


def _read(market_id: str, batch: Sequence[Row], quarantine: Quarantine) -> Iterable[Point]:
    _, times, probs = zip(*batch, strict=True)
    try:
        return zip(batch_validation.timestamps(times), batch_validation.numbers(probs, 0, 1), strict=True)
    except UnusualError:
        return _read_one_by_one(market_id, batch, quarantine)


def _read_one_by_one(market_id: str, batch: Sequence[Row], quarantine: Quarantine) -> list[Point]:
    found = []
    for _, recorded_at, prob in batch:
        try:
            point = row_validation.PointRow.model_validate({"timestamp": recorded_at, "prob": prob})
        except ValidationError as error:
            quarantine.reject("probabilities", market_id, row_validation.reason(error))
        else:
            found.append((point.timestamp, point.prob))
    return found


class _Grid:
    """Bounds a long history: the latest point of each cell of time, and the first point of all.

    Cells are a power of two milliseconds wide, the narrowest that leaves at most GRID of them. Wider cells are made of
    whole narrower ones, so reducing in steps, in whatever order rows arrive, ends in the same points as at once.
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

    They are the first of all, and the last one in each of `limit - 1` equal spans.
    """
    if len(points) <= limit:
        return points
    start, end = _milliseconds(points[0][0]), _milliseconds(points[-1][0])
    spans = limit - 1
    length = max(end - start, 1)
    # Rounded up in whole numbers: floats would now and then open a span too many.
    chosen = {-((start - _milliseconds(point[0])) * spans // length): point for point in points}
    chosen[0] = points[0]
    chosen[spans] = points[-1]
    return [chosen[span] for span in sorted(chosen)]


def _milliseconds(time: str) -> int:
    moment = datetime.fromisoformat(time)
    return (moment.toordinal() * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second) * 1000 + (
        moment.microsecond // 1000
    )
