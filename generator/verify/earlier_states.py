"""Tells stale from wrong: whether a page was right in a state from which the change feed still leads here. Pure.

Steps only say what values became. So of the state before a step, a property is known if an earlier step set it, or if
no step has set it since. If a later step was the first to do so, nobody knows what it was: of a number or a time any
value is believed, as these change all the time, but no text, which somebody may have forged.

No step tells what becomes of questions. What follows from markets, such as sums, is known if theirs was; what does
not, such as titles, is believed to have been as it is.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import BaseModel, ValidationError, create_model
from pydantic.fields import FieldInfo

from generator.api.contract import PublicMarketDetailMarket, PublicMarketListItem, Wire
from generator.api.questions import SINGLE
from generator.verify import question_values
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
#: What of a question does not follow from its markets.
_OF_QUESTION: Final = frozenset({"id", "title", "kind", "createdAt", "slug", "description"})
#: What one has that has any category.
_PRIMARY: Final = frozenset({"category"})
#: What the row of a market has that the market has not.
_OF_ROW: Final = frozenset({"title", "kind", "size", "markets"})
_GONE: Final = "gone"
_ABSENT: Final = object()

#: A line of a step, parsed.
StepLine: TypeAlias = Mapping[str, Any]


class PresentQuestion(NamedTuple):
    """A question as it is now: its row, and the labels of all its markets by their ids."""

    row: Mapping[str, Any]
    labels: Mapping[str, str]


class EarlierStates:
    """The states before each of these `steps`, oldest first, whose as-of `times` are.

    `markets` are those of now, by id, and `questions` likewise. Raises ValueError for a line that is none of a step.
    """

    def __init__(
        self,
        times: Sequence[str],
        steps: Sequence[Sequence[StepLine]],
        markets: Mapping[str, Mapping[str, Any]],
        questions: Mapping[str, PresentQuestion] = MappingProxyType({}),
    ) -> None:
        self._times = times
        self._markets = markets
        self._questions = questions
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

    def since_detail(self, shown: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
        """The same of the detail of a question."""
        question_id, others = wanted["question"]["id"], {one["market"]["id"]: one for one in wanted["markets"]}
        members = [(one, others.get(one["market"]["id"], {})) for one in shown["markets"]]
        are_told = all(
            (one.get("label"), one.get("position")) == (other.get("label"), other.get("position"))
            and one.get("payout") in (None, other.get("payout"))
            for one, other in members
        )

        def can_be(number: int) -> bool:
            is_own = self._had_values(number, shown["question"], wanted["question"])
            return are_told and is_own and all(self._had(number, one["market"]) for one, _ in members)

        return self.newest([question_id], [question_id], can_be)

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

    def is_as_now(self, number: int, question_id: str, names: Iterable[str]) -> bool:
        """Whether these properties of all markets of a question are known to be those before the step of a number."""
        for market_id in self._questions[question_id].labels:
            before, now = self.before(number, market_id), self._markets[market_id]
            if before is None or any(before.get(name) != now.get(name) for name in names):
                return False
        return True

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
        changed = {one for one in (*shown, *wanted) if self._has_changed(number, one)}
        displaced = len({*shown} - {*wanted})
        return bool(changed) and len({*wanted} - {*shown} - changed) <= displaced

    def _has_changed(self, number: int, one: str) -> bool:
        """Whether a step from this number on changed a market, or one of a question."""
        ids = self._questions[one].labels if one in self._questions else (one,)
        return any(step >= number for market_id in ids for step, _ in self._of(market_id))

    def _had(self, number: int, item: Mapping[str, Any]) -> bool:
        """Whether a market, or a row of questions, may have had these values before the step of this number."""
        if "kind" in item:
            return self._had_row(number, item)
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

    def _had_row(self, number: int, row: Mapping[str, Any]) -> bool:
        now = self._questions.get(row["id"])
        if now is None:
            return row["kind"] == SINGLE and row["size"] == 1 and self._had(number, _alone(row))
        if not self._has_changed(number, row["id"]):
            return row == now.row
        shown = {one["id"]: one["label"] for one in row["markets"]}
        markets = ({name: value for name, value in one.items() if name != "label"} for one in row["markets"])
        return (
            shown.items() <= now.labels.items()
            and all(self._had(number, market) for market in markets)
            and not [*question_values.misplaced(row["markets"])]
            and self._had_values(number, row, now.row)
        )

    def _had_values(self, number: int, shown: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        """Whether a question may have had these values, the markets that are shown beside them apart."""
        if not self._has_changed(number, now["id"]):
            return shown == now
        markets = [self.before(number, market_id) for market_id in self._questions[now["id"]].labels]
        made = question_values.made([one for one in markets if one is not None], lambda value: value is not UNKNOWN)
        wanted = {**{name: now[name] for name in _OF_QUESTION & now.keys()}, **made}
        are_alike = shown.keys() | _PRIMARY == now.keys() | _PRIMARY
        return are_alike and all(shown.get(name) == wanted[name] for name in wanted.keys() & (now.keys() | _PRIMARY))

    def _of(self, market_id: str) -> Sequence[tuple[int, StepLine]]:
        return self._lines.get(_digest(market_id), ())


def _alone(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The market whose row this is; none that there can be if the row shows it otherwise."""
    (shown,) = row["markets"]
    is_same = (shown["id"], shown["status"], shown["label"]) == (row["id"], row["status"], None)
    market = {name: value for name, value in row.items() if name not in _OF_ROW}
    own = {"question": row["title"], "prob": shown["prob"], "resolution": shown["resolution"]}
    return {**market, **(own if is_same else {"id": ""})}


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
