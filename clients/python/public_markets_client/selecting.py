"""Which rows an answer has: conditions on their fields, an order, and how many rows have each value."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from math import fsum
from typing import Any, get_args

from public_markets_client.changes import digest_of
from public_markets_client.decoding import properties
from public_markets_client.models import Sort, Status

#: Fields that are made of others: a status with its outcome, and how near to 0.5 a probability is.
STATE, EVEN = "state", "even"
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
#: The states that a status lists.
_STATES: dict[Status, tuple[str, ...]] = {
    **{one: (one,) for one in ("open", "closed", "resolved", "cancelled")},
    "archive": ("closed", "resolved", "cancelled"),
    "all": ("open", "closed", "resolved", "cancelled"),
}
#: Letters of scripts without spaces between words.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
#: What the sorts of the site compare, the highest first.
_SITE_SORTS: dict[str, Callable[[Any], Any]] = {
    "popular": lambda row: (row.trader_count, row.volume),
    "activity": lambda row: row.last_activity_at,
    "volume": lambda row: row.volume,
    "new": lambda row: row.created_at,
    "ended": lambda row: row.resolved_at or row.close_time,
}
#: The time that these sorts compare.
TIMES = {"activity": "last_activity_at", "new": "created_at", "ended": "resolved_at"}


#: A condition on one of these asks for markets of any status.
_OF_STATUS = {STATE, "status", "resolution", "resolved_at"}


def fields_of(kind: Any) -> dict[str, Any]:
    """The fields of a kind of row that are values or texts, with their types, and those that are made of them."""
    known = {name: _plain_type(hint) for name, _, hint, _ in properties(kind)}
    made = {STATE: str} | ({EVEN: float} if "prob" in known else {})
    return {name: hint for name, hint in known.items() if hint in {str, int, float, bool, datetime, tuple}} | made


def _plain_type(hint: Any) -> Any:
    several = [one for one in get_args(hint) if one is not type(None)]
    if hint == tuple[str, ...] or several == [tuple[str, ...]]:
        return tuple
    return several[0] if several else hint


def field(kind: Any, text: str) -> str:
    """The field of this name, also as JSON spells it; raise ValueError if there is none."""
    name = re.sub("([A-Z])", r"_\1", text).lower()
    if name not in fields_of(kind):
        raise ValueError(f"there is no field {text}; there are {', '.join(fields_of(kind))}")
    return name


def fields(kind: Any, text: str) -> list[str]:
    """The fields that a list with commas names; raise ValueError if one is none."""
    return [field(kind, name) for name in text.split(",")]


def order(kind: Any, text: str) -> str:
    """A sort of the site or a field to sort by; raise ValueError if there is none."""
    return text if text in get_args(Sort) else field(kind, text)


def value_of(row: Any, name: str) -> Any:
    """The value of a field, None if the row has none."""
    if name == STATE:
        outcome = getattr(row, "resolution", None)
        return f"{row.status}:{outcome}" if outcome else row.status
    return -abs(row.prob - 0.5) if name == EVEN else getattr(row, name)


def made(row: Any, name: str) -> Any:
    """The value of a field that JSON does not have."""
    return value_of(row, name) if name in {STATE, EVEN} else None


@dataclass(frozen=True)
class Condition:
    """What a field must be: equal to a value (`is`), or at least (`min`) or at most (`max`) that."""

    name: str
    how: str
    value: Any

    def holds(self, row: Any, as_of: datetime) -> bool:
        """Whether it is so; never for what has no value. A duration counts from `as_of`."""
        found = value_of(row, self.name)
        wanted = as_of + self.value if isinstance(self.value, timedelta) else self.value
        if found is None:
            return False
        if self.how == "is":
            several = found if isinstance(found, tuple) else (found,)
            if self.name == STATE:
                several += (row.status,)  # whatever its outcome
            return any(_folded(one) == _folded(wanted) for one in several)
        return bool(found >= wanted if self.how == "min" else found <= wanted)


def status_for(conditions: Iterable[Condition], usual: Status) -> Status:
    """The status whose rows are read where none is given: all if a condition is about it."""
    return "all" if any(one.name in _OF_STATUS for one in conditions) else usual


def _folded(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


def condition(kind: Any, how: str, text: str) -> Condition:
    """The condition FIELD=VALUE; raise ValueError if it is none."""
    name, _, given = text.partition("=")
    name = field(kind, name)
    hint = fields_of(kind)[name]
    if hint is datetime:
        return Condition(name, how, moment(given))
    if hint is bool:
        if given not in {"true", "false"}:
            raise ValueError(f"{name} is true or false")
        return Condition(name, how, given == "true")
    if hint in {int, float}:
        return Condition(name, how, float(given))
    if how != "is":
        raise ValueError(f"{name} is a text, which has no minimum and no maximum")
    return Condition(name, how, given)


def moment(text: str) -> datetime | timedelta:
    """A time such as 2026-01-31 or 2026-01-31T12:00Z, or how far from as-of it is: now, -24h, +7d."""
    found = re.fullmatch(r"([+-][0-9]{1,4})([mhdw])|now", text)
    if found:
        return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found[1] else timedelta()
    try:
        given = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise ValueError("is no time such as 2026-01-31, now, -24h or +7d") from None
    return given if given.tzinfo else given.replace(tzinfo=timezone.utc)


def in_order(rows: Iterable[Any], by: str | None, status: Status, *, is_reversed: bool) -> list[Any]:
    """The rows by a sort, the highest first; of equal ones, first that which the site would list first.

    Those without a value come last.
    """
    usual = "popular" if status in {"open", "all"} else "ended"
    by = by or usual
    key = _SITE_SORTS.get(by) or (lambda row: value_of(row, by))
    listed = sorted(sorted(rows, key=lambda row: row.id), key=_SITE_SORTS[usual], reverse=True)
    if by in _SITE_SORTS and not is_reversed:
        listed.sort(key=lambda row: row.id)  # as the site does it
    known = sorted((row for row in listed if key(row) is not None), key=key, reverse=not is_reversed)
    return known + [row for row in listed if key(row) is None]


def counts(rows: Iterable[Any], name: str) -> list[dict[str, Any]]:
    """How many rows have each value, of a time each day, and their volume: the most first."""
    volumes = defaultdict[str, list[float]](list)
    for row in rows:
        found = value_of(row, name)
        for value in found if isinstance(found, tuple) else (found,):
            volumes[_label(value)].append(row.volume)
    told = [{"count": len(every), "volume": fsum(every), name: value} for value, every in volumes.items()]
    return sorted(told, key=lambda one: (-one["count"], one[name]))


def _label(value: Any) -> str:
    if value is None:
        return "-"
    return value.date().isoformat() if isinstance(value, datetime) else str(value)


def is_listed(row: Any, status: Status) -> bool:
    """Whether lists of this status have it."""
    return row.status in _STATES[status]


def has_words(text: str, words: str) -> bool:
    """Whether a text has all the words as searches of sites find them: one of three letters or more may go on."""
    folded = _letters(text)
    return all(_has_word(folded, word) for word in _letters(words).split())


def has_letters(words: str) -> bool:
    """Whether there is anything to look for."""
    return bool(_letters(words).split())


def _has_word(folded: str, word: str) -> bool:
    if _UNSPACED.search(word):
        return word in folded
    is_whole = len(word) < 3  # noqa: PLR2004 - as docs/extended-variant.md says
    return any(one == word or (one.startswith(word) and not is_whole) for one in folded.split())


def _letters(text: str) -> str:
    """Its letters and digits without case and accents, with a space for anything else."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    kept = (letter for letter in plain if not unicodedata.combining(letter))
    return "".join(letter if letter.isalnum() else " " for letter in kept)


#: What may become of a market, what most ask for first.
KINDS = ("resolved", "cancelled", "closed", "added", "gone", "changed")


def merged(changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One change for each market, with its kind: the newest values of several."""
    found = dict[str, dict[str, Any]]()
    for change in changes:
        key = change.get("gone") or digest_of(str(change.get("id")))
        before = found.get(key, {})
        if "gone" in change:
            found[key] = {"kind": "gone", **change}
            continue
        # One that is gone and there again has lost or gained a property.
        is_new = "createdAt" in change and not before
        status = change.get("status")
        kind = "added" if is_new else status if status in KINDS and "createdAt" not in change else before.get("kind")
        known = {} if "gone" in before else before
        found[key] = {**known, **change, "kind": "changed" if kind in {None, "gone"} else kind}
    return sorted(found.values(), key=lambda one: (KINDS.index(one["kind"]), str(one.get("id") or one.get("gone"))))
