"""The oracle's first half: which rows of `questions` and `question_members` are good, by SQL and plain Python.

Written from the rules alone; nothing of the product is used. A row that breaks a rule is told with its reason.
"""

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from tests.questions.raw_json import is_uuid

LONGEST_TITLE: Final = 500
LONGEST_DESCRIPTION: Final = 100_000
LONGEST_LABEL: Final = 100
LARGEST_INTEGER: Final = 2**53 - 1
KINDS: Final = ("exclusive", "independent")
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "questions": ("id", "slug", "title", "description", "kind", "is_listed", "created_at", "key"),
    "question_members": ("question_id", "market_id", "label", "position", "payout"),
}
_SLUG: Final = re.compile(r"[A-Za-z0-9_-]{1,255}")
#: All control characters but tabs and line breaks.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class BadValueError(ValueError):
    """A column whose value breaks a rule."""


@dataclass(frozen=True)
class QuestionRow:
    """A public question's own columns, as they are published."""

    id: str
    slug: str | None
    key: str | None
    title: str
    description: str | None
    kind: str
    created_at: str


@dataclass(frozen=True)
class MemberRow:
    """A membership; `label` is null where it is blank."""

    market_id: str
    label: str | None
    position: int | None
    payout: float | None


@dataclass
class Found:
    """What the relations say after rule 1, but for sums: questions with their members, and all that was left out."""

    questions: list[tuple[QuestionRow, list[MemberRow]]] = field(default_factory=list)
    #: Questions that are quarantined, and memberships, by `question/market`; each with its reason.
    quarantined: dict[str, str] = field(default_factory=dict)


def exist(database: sqlite3.Connection) -> bool:
    """Whether the database has both relations, as tables or views."""
    names = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    return {*_COLUMNS} <= {name.decode() if isinstance(name, bytes) else name for name in names}


def read(
    database: sqlite3.Connection, listed: Collection[str], is_market: Callable[[str], bool], blocked: Collection[str]
) -> Found:
    """Apply rule 1 up to the bound of members.

    `listed` has the ids of `status=all`, in lower case; `is_market` tells whether a market has a published detail;
    `blocked` are ids of questions.
    """
    found = Found()
    good = dict(_questions(database, is_market, blocked, found))
    members = list(_members(database, good, _ids_of_listed(database, listed), found))
    pairs = Counter((question, member.market_id) for question, member in members)
    for (question, market), times in pairs.items():
        if times > 1:
            found.quarantined[f"{question}/{market}"] = "stands twice"
    single = [(question, member) for question, member in members if pairs[question, member.market_id] == 1]
    memberships = Counter(member.market_id for _, member in single)
    for row in good.values():
        own = [one for question, one in single if question == row.id and memberships[one.market_id] == 1]
        if len(own) > 1000:
            found.quarantined[row.id] = "has more than 1,000 members"
        elif own:
            found.questions.append((row, sorted(own, key=lambda one: one.market_id)))
    return found


def _questions(
    database: sqlite3.Connection, is_market: Callable[[str], bool], blocked: Collection[str], found: Found
) -> Iterator[tuple[str, QuestionRow]]:
    """The good questions by their id as the database spells it."""
    fetched = _select(database, "questions", "approval = 'approved' AND is_listed IS NOT NULL")
    rows = [row for row in fetched if row["is_listed"] != 0]  # neither true nor false is bad, not hidden
    spelled = Counter(_spelled(row["id"]).lower() for row in rows)
    for row in rows:
        name = _spelled(row["id"])
        if name.lower() in blocked:
            continue
        try:
            good = _question(row)
        except BadValueError as error:
            found.quarantined[name.lower()] = str(error)
            continue
        if spelled[good.id] > 1:
            found.quarantined[good.id] = "id: stands twice"
        elif is_market(good.id):
            found.quarantined[good.id] = "id: is a market's"
        else:
            yield name, good


def _question(row: Mapping[str, Any]) -> QuestionRow:
    if row["is_listed"] != 1 or isinstance(row["is_listed"], bytes):
        raise BadValueError("is_listed: neither true nor false")
    name = _text("id", row["id"], 36)
    if name is None or not is_uuid(name):
        raise BadValueError("id: no UUID")
    title, kind = _text("title", row["title"], LONGEST_TITLE), _text("kind", row["kind"], 100)
    if title is None:
        raise BadValueError("title: null")
    if kind not in KINDS:
        raise BadValueError(f"kind: {kind}")
    description = _text("description", row["description"], LONGEST_DESCRIPTION)
    created_at = instant(row["created_at"])
    return QuestionRow(name.lower(), _slug(row["slug"]), _key(row["key"]), title, description, kind, created_at)


def _members(
    database: sqlite3.Connection, questions: Mapping[str, QuestionRow], listed: Mapping[str, str], found: Found
) -> Iterator[tuple[str, MemberRow]]:
    for row in _select(database, "question_members", "question_id IS NOT NULL AND market_id IS NOT NULL"):
        question, market = questions.get(_spelled(row["question_id"])), listed.get(_spelled(row["market_id"]))
        if question is None or market is None:
            continue
        try:
            label = _text("label", row["label"], LONGEST_LABEL)
            shown = None if label is None or not label.strip() else label
            yield question.id, MemberRow(market, shown, _position(row["position"]), _payout(row["payout"]))
        except BadValueError as error:
            found.quarantined[f"{question.id}/{market}"] = str(error)


def _ids_of_listed(database: sqlite3.Connection, listed: Collection[str]) -> Mapping[str, str]:
    """The ids of public markets as the database spells them, and in lower case."""
    rows = database.execute("SELECT id FROM markets WHERE approval = 'approved' AND is_listed = 1 AND id IS NOT NULL")
    spelled = [_spelled(row[0]) for row in rows]
    return {name: name.lower() for name in spelled if name.lower() in listed}


def blocked_markets(database: sqlite3.Connection, questions: Collection[str]) -> set[str]:
    """The markets that blocked questions block: all with a row of one, whatever else is said of the two (rule 23)."""
    rows = database.execute("SELECT question_id, market_id FROM question_members WHERE market_id IS NOT NULL")
    return {_spelled(market).lower() for question, market in rows if _spelled(question).lower() in questions}


def ids(database: sqlite3.Connection) -> set[str]:
    """The ids of all rows of questions and of markets, public or not, in lower case."""
    rows = database.execute("SELECT id FROM questions UNION SELECT id FROM markets")
    return {_spelled(row[0]).lower() for row in rows if row[0] is not None}


def _select(database: sqlite3.Connection, relation: str, where: str) -> Sequence[Mapping[str, Any]]:
    """Rows with texts as bytes. A `key` may have no column."""
    given = {row[1].decode() for row in _raw(database, f"PRAGMA table_info({relation})")}
    names = [name if name in given else f"NULL AS {name}" for name in _COLUMNS[relation]]
    # The type tells a text from a blob, which are both bytes here.
    types = [f"typeof({name})" if name in given else "'null'" for name in _COLUMNS[relation]]
    rows = _raw(database, f"SELECT {', '.join([*names, *types])} FROM {relation} WHERE {where}")
    width = len(names)
    return [dict(zip(_COLUMNS[relation], map(_typed, row[:width], row[width:]), strict=True)) for row in rows]


@dataclass(frozen=True)
class _Blob:
    """What is in no column of ours."""


def _typed(value: Any, kind: bytes) -> Any:
    return _Blob() if kind == b"blob" else value


def _raw(database: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    before, database.text_factory = database.text_factory, bytes
    try:
        return database.execute(query).fetchall()
    finally:
        database.text_factory = before


def _spelled(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _text(column: str, value: Any, longest: int) -> str | None:
    if value is None:
        return None
    if not isinstance(value, bytes):
        raise BadValueError(f"{column}: no text")
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadValueError(f"{column}: cannot be decoded") from error
    if _CONTROL.search(text):
        raise BadValueError(f"{column}: has a control character")
    if len(text) > longest:
        raise BadValueError(f"{column}: longer than {longest}")
    return text


def _slug(value: Any) -> str | None:
    """A slug that may be usable; only itself is lost if it is bad."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
    is_usable = _SLUG.fullmatch(text) and not is_uuid(text) and text.lower() != "snapshot"
    return text if is_usable else None


def _key(value: Any) -> str | None:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)
    bad = not text.strip() or len(text) > 200 or text in {".", ".."} or "\N{REPLACEMENT CHARACTER}" in text
    return None if bad or re.search(r"[\x00-\x1f\x7f-\x9f]", text) else text


def _position(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or abs(value) > LARGEST_INTEGER:
        raise BadValueError("position: no integer within 2^53 - 1")
    return value


def _payout(value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or not math.isfinite(value) or not -1e-9 <= value <= 1 + 1e-9:
        raise BadValueError("payout: not within 0 to 1")
    return min(max(float(value), 0.0), 1.0)


def instant(value: Any) -> str:
    """A time on the wire: UTC, cut to milliseconds."""
    try:
        moment = datetime.fromisoformat(_text("created_at", value, 100) or "")
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadValueError("created_at: no time") from error
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
