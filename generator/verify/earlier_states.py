"""Tells stale from wrong: whether a page was right in a state from which the change feed still leads here. Pure.

Steps only say what values became. So of the state before a step, a property is known if an earlier step set it, or if
no step has set it since; if a later step was the first to do so, it may have had any value.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from generator.api.contract import PublicMarketListItem

#: Stands for a value that nobody can know any more.
_UNKNOWN: Final = object()
#: A line with all of these is that of a new market.
_OF_NEW: Final = frozenset(
    field.alias or name for name, field in PublicMarketListItem.model_fields.items() if field.is_required()
)


class EarlierStates:
    """The states before each of these `steps`, oldest first, whose as-of `times` are.

    A step has the lines of its file, parsed. `markets` are those of now, by id.
    """

    def __init__(
        self,
        times: Sequence[str],
        steps: Sequence[Sequence[Mapping[str, Any]]],
        markets: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._times = times
        self._markets = markets
        self._lines: dict[str, list[tuple[int, Mapping[str, Any]]]] = defaultdict(list)
        for number, step in enumerate(steps):
            for line in step:
                self._lines[line["gone"] if "gone" in line else _digest(line["id"])].append((number, line))

    def since(self, items: Sequence[Mapping[str, Any]]) -> str | None:
        """Since when a page with these items is out of date; None if no state that is known of had them all."""
        for number in reversed(range(len(self._times))):
            if all(self._had(number, item) for item in items):
                return self._times[number]
        return None

    def _had(self, number: int, item: Mapping[str, Any]) -> bool:
        before = self._before(number, str(item.get("id")))
        return before is not None and all(before.get(name, value) in (value, _UNKNOWN) for name, value in item.items())

    def _before(self, number: int, market_id: str) -> Mapping[str, Any] | None:
        """What is known of a market before the step of this number; None if there was none."""
        lines = self._lines.get(_digest(market_id), [])
        later = [line for step, line in lines if step >= number]
        now = self._markets.get(market_id)
        if not later:
            return now
        if later[0].keys() >= _OF_NEW:
            return None
        unknown = {name for line in later for name in line} - {"id"}
        if any("gone" in line for line in later):  # and maybe new again, with other values
            unknown |= (now or {}).keys() - {"id"}
        known = {**(now or {}), **dict.fromkeys(unknown, _UNKNOWN)}
        for step, line in lines:
            if step < number:
                known |= line
        return known


def _digest(market_id: str) -> str:
    return hashlib.sha256(market_id.encode()).hexdigest()
