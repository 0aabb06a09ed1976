"""Tells stale from wrong: whether a page was right in a state from which the change feed still leads here. Pure.

Steps only say what values became. So of the state before a step, a property is known if an earlier step set it, or if
no step has set it since. If a later step was the first to do so, nobody knows what it was: of a number or a time any
value is believed, as these change all the time, but no text, which somebody may have forged.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ValidationError, create_model
from pydantic.fields import FieldInfo

from generator.api.contract import PublicMarketDetailMarket, PublicMarketListItem, Wire
from generator.verify.mismatches import place_of

#: Stands for a value that nobody can know any more.
UNKNOWN: Final = object()
#: Properties that people write or decide. What was unknown of them may have been null, and nothing else is believed.
_WRITTEN: Final = frozenset({
    "question", "description", "resolution", "slug", "category", "categories", "tradingPauseReason", "creationSource",
    "sponsor", "fxFamilyMember",
})  # fmt: skip
#: A line with all of these is that of a new market.
_OF_NEW: Final = frozenset(
    field.alias or name for name, field in PublicMarketListItem.model_fields.items() if field.is_required()
)
_PROPERTIES: Final = frozenset(field.alias or name for name, field in PublicMarketDetailMarket.model_fields.items())
_GONE: Final = "gone"
_ABSENT: Final = object()

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
                _require_values(line)
                if len(known) > 1 and known[-2][0] == number:  # one is gone and then new at most
                    raise ValueError("a step tells of a market more than twice")
                known.append((number, line))

    def since(self, shown: Sequence[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]]) -> str | None:
        """Since when a page that shows these items, in order, in place of those that are wanted is out of date.

        None if no state that is known of had them all, or if what has changed since does not explain the page.
        """
        ids, needed = ([str(item.get("id")) for item in items] for items in (shown, wanted))
        return self.newest(ids, needed, lambda number: all(map(self._had, [number] * len(shown), shown)))

    def newest(self, shown: Sequence[str], wanted: Sequence[str], can_be: Callable[[int], bool]) -> str | None:
        """Since when what shows these markets, by id, in place of those that are wanted is out of date.

        `can_be` tells whether all that is shown of them may have been so before the step of a number.
        """
        for number in reversed(range(len(self._times))):
            if can_be(number) and self._explains(number, shown, wanted):
                return self._times[number]
        return None

    def before(self, number: int, market_id: str) -> Mapping[str, Any] | None:
        """The values that a market had before the step of a number, or UNKNOWN; None if it was not there."""
        lines = self._of(market_id)
        later = [line for step, line in lines if step >= number]
        if not later:
            return self._markets.get(market_id)
        if later[0].keys() >= _OF_NEW:
            return None
        was_gone = any(_GONE in line for line in later)  # and is maybe new again, with other properties
        values: dict[str, Any] = (
            dict.fromkeys(_PROPERTIES, UNKNOWN) if was_gone else {**self._markets.get(market_id, {})}
        )
        for line in later:
            values |= dict.fromkeys(line, UNKNOWN)
        for step, line in lines:
            if step < number:
                values |= line
        return {**values, "id": market_id}

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
        values = self.before(number, market_id)
        if values is None:
            return False
        now = self._markets.get(market_id)
        return all(
            (now is None or name not in _WRITTEN or value in (None, now.get(name)))
            if values.get(name, _ABSENT) is UNKNOWN
            else values.get(name, _ABSENT) == value
            for name, value in item.items()
        )

    def _of(self, market_id: str) -> Sequence[tuple[int, StepLine]]:
        return self._lines.get(_digest(market_id), ())


def _subject(line: Any) -> str:
    """The digest of the id of the market that a line is about."""
    if isinstance(line, dict):
        for name, found in ((_GONE, line.get(_GONE)), ("id", line.get("id"))):
            if isinstance(found, str):
                return found if name == _GONE else _digest(found)
    raise ValueError("a line of a step names no market")


def _require_values(line: StepLine) -> None:
    """Raise ValueError for a line with a value that no market can have."""
    try:
        _VALUES.model_validate(line, by_alias=True, by_name=False)
    except ValidationError as error:
        text = f"a line of a step tells what no market can be ({place_of(error.errors(include_url=False)[0])})"
        raise ValueError(text) from error


def _optional(field: FieldInfo) -> Any:
    """A field that may be absent, for create_model."""
    made = copy(field)
    made.default = None
    return field.annotation, made


#: What the properties of a market must be that a line has.
_VALUES: Final[type[BaseModel]] = create_model(
    "_Values", __base__=Wire, **{name: _optional(one) for name, one in PublicMarketDetailMarket.model_fields.items()}
)


def _digest(market_id: str) -> str:
    return hashlib.sha256(market_id.encode("utf-8", "surrogatepass")).hexdigest()
