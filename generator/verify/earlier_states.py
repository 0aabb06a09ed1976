"""Tells stale from wrong: whether a page was right in a state from which the change feed still leads here. Pure.

Steps only say what values became. So of the state before a step, a property is known if an earlier step set it, or if
no step has set it since; if a later step was the first to do so, it may have had any value.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from generator.api.contract import PublicMarketListItem

#: Stands for a value that nobody can know any more.
_UNKNOWN: Final = object()
#: A line with all of these is that of a new market.
_OF_NEW: Final = frozenset(
    field.alias or name for name, field in PublicMarketListItem.model_fields.items() if field.is_required()
)
_GONE: Final = "gone"

#: A line of a step, parsed.
StepLine: TypeAlias = Mapping[str, Any]


class EarlierStates:
    """The states before each of these `steps`, oldest first, whose as-of `times` are.

    `markets` are those of now, by id. Raises ValueError for a line that is none of a step.
    """

    def __init__(
        self, times: Sequence[str], steps: Sequence[Sequence[StepLine]], markets: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._times = times
        self._markets = markets
        self._lines: dict[str, list[tuple[int, StepLine]]] = defaultdict(list)
        for number, step in enumerate(steps):
            for line in step:
                known = self._lines[_subject(line)]
                if len(known) > 1 and known[-2][0] == number:  # one is gone and then new at most
                    raise ValueError("a step tells of a market more than twice")
                known.append((number, line))

    def since(self, shown: Sequence[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]]) -> str | None:
        """Since when a page that shows these items, in order, in place of those that are wanted is out of date.

        None if no state that is known of had them all, or if what has changed since does not explain the page.
        """
        ids = [str(item.get("id")) for item in shown]
        needed = [str(item["id"]) for item in wanted]
        for number in reversed(range(len(self._times))):
            if all(map(self._had, [number] * len(shown), shown)) and self._explains(number, ids, needed):
                return self._times[number]
        return None

    def changed_since(self, ids: Iterable[str], names: Collection[str]) -> str | None:
        """The as-of of the newest step such that it or later ones set one of these properties of each of these markets.

        None if there is none.
        """
        found = [
            [number for number, line in self._of(market_id) if _GONE in line or not line.keys().isdisjoint(names)]
            for market_id in ids
        ]
        number = min((max(numbers, default=-1) for numbers in found), default=-1)
        return self._times[number] if number >= 0 else None

    def contradiction(self) -> str | None:
        """What is wrong with the state that all steps lead to, as a sentence's end; None if nothing is."""
        digests = {_digest(market_id): market for market_id, market in self._markets.items()}
        for subject, lines in self._lines.items():
            now, reached = digests.get(subject), dict[str, Any]()
            for _, line in lines:
                reached = {} if _GONE in line else {**reached, **line}
            if now is None and reached:
                return f"to market {reached['id']}, which is not there"
            if now is not None and not reached:
                return f"to a state without market {now['id']}"
            unlike = next((name for name in reached if reached[name] != (now or {}).get(name)), None)
            if unlike:
                return f"to market {reached['id']} with {unlike} {reached[unlike]!r:.80}"
        return None

    def _explains(self, number: int, shown: Collection[str], wanted: Collection[str]) -> bool:
        """Whether what changed since the step of this number explains why other markets are shown than are wanted.

        Something must have changed. A market that did not change can be missing only where another took its place.
        """
        changed = {one for one in (*shown, *wanted) if any(step >= number for step, _ in self._of(one))}
        displaced = len({*shown} - {*wanted})
        return bool(changed) and len({*wanted} - {*shown} - changed) <= displaced

    def _had(self, number: int, item: Mapping[str, Any]) -> bool:
        """Whether a market may have had these values before the step of this number."""
        market_id = str(item.get("id"))
        lines = self._of(market_id)
        later = [line for step, line in lines if step >= number]
        if later and later[0].keys() >= _OF_NEW:
            return False
        was_gone = any(_GONE in line for line in later)  # and is maybe new again, with other properties
        known = {} if was_gone else {**self._markets.get(market_id, {})}
        for line in later:
            known |= dict.fromkeys(line, _UNKNOWN)
        for step, line in lines:
            if step < number:
                known |= line
        return all(known[name] in (value, _UNKNOWN) if name in known else was_gone for name, value in item.items())

    def _of(self, market_id: str) -> Sequence[tuple[int, StepLine]]:
        return self._lines.get(_digest(market_id), ())


def _subject(line: Any) -> str:
    """The digest of the id of the market that a line is about."""
    if isinstance(line, dict):
        for name, found in ((_GONE, line.get(_GONE)), ("id", line.get("id"))):
            if isinstance(found, str):
                return found if name == _GONE else _digest(found)
    raise ValueError("a line of a step names no market")


def _digest(market_id: str) -> str:
    return hashlib.sha256(market_id.encode("utf-8", "surrogatepass")).hexdigest()
