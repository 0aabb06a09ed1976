"""The oracle: every answer of the endpoints of questions, from the database and the markets' list items alone.

Written from the rules, without a look at the product. `relations.py` says which rows count, this module what they show:
rows of lists in their orders, details and definitions, each as the bytes that a reader must get.
"""

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

from tests.questions import raw_json, relations
from tests.questions.raw_json import write
from tests.questions.relations import LARGEST_INTEGER, MemberRow, QuestionRow

STATES: Final = ("open", "closed", "resolved", "cancelled")
FILTERS: Final[Mapping[str, tuple[str, ...]]] = {
    **{state: (state,) for state in STATES}, "archive": STATES[1:], "all": STATES,
}  # fmt: skip
#: What a sort compares, descending, of an item as it is shown.
SORTS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "popular": lambda item: (item["traderCount"], item["volume"]),
    "activity": lambda item: item["lastActivityAt"],
    "volume": lambda item: item["volume"],
    "new": lambda item: item["createdAt"],
    "ended": lambda item: item["resolvedAt"] or item["closeTime"],
}
DEFAULT_SORTS: Final = {name: "popular" if name in {"open", "all"} else "ended" for name in FILTERS}
MOST_MARKETS: Final = 10
#: What a single shows exactly as its market does, in this order.
_OF_MARKET: Final = (
    "status", "volume", "traderCount", "fills24h", "acceptingBets", "closeTime", "createdAt", "resolvedAt",
    "lastActivityAt",
)  # fmt: skip
_EXTENDED: Final = ("slug", "category", "categories")


@dataclass(frozen=True)
class Setting:
    """What a site is made with. `categories` has those with lists: the slug by the name that items show."""

    variant: str = "core"
    categories: Mapping[str, str] = field(default_factory=dict)
    has_lists: bool = True
    question_url: str | None = None
    base_url: str = "http://127.0.0.1:8000"
    #: What was taken down: ids of markets and of questions, in lower case.
    blocked_markets: frozenset[str] = frozenset()
    blocked_questions: frozenset[str] = frozenset()

    @property
    def is_extended(self) -> bool:
        return self.variant == "extended"


@dataclass(frozen=True)
class Listed:
    """An item of the markets' list: as it is written, its properties as written, and as values."""

    raw: str
    written: Mapping[str, str]
    value: Mapping[str, Any]

    @classmethod
    def of(cls, raw: str) -> "Listed":
        written = raw_json.properties(raw)
        return cls(raw, written, {name: raw_json.read(text) for name, text in written.items()})

    @property
    def is_running(self) -> bool:
        """Whether its outcome is not told yet."""
        return self.value["status"] in {"open", "closed"}


@dataclass(frozen=True)
class Row:
    """A row of the lists of questions: its item as written, and as values."""

    raw: str
    value: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.value["id"])


@dataclass(frozen=True)
class Expected:
    """A public question, in all its forms."""

    question: QuestionRow
    members: Sequence[MemberRow]
    row: Row
    detail: str
    definition: str
    slug: str | None
    url: str | None


class Oracle:
    """What a site must answer; without the relations `exists` is false and there is nothing."""

    def __init__(
        self,
        database: sqlite3.Connection,
        items: Sequence[str],
        setting: Setting,
        is_market: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`items` are all of `status=all` as written; `is_market` tells whether an id has a market's detail."""
        self.setting = setting
        self.markets = {str(item.value["id"]): item for item in map(Listed.of, items)}
        self.exists = relations.exist(database)
        self.quarantined: dict[str, str] = {}
        self.ids_of_rows: set[str] = set()
        self.blocked: frozenset[str] = setting.blocked_markets
        self.questions: dict[str, Expected] = {}
        if self.exists:
            self._read(database, lambda name: name in self.markets or is_market(name))

    def _read(self, database: sqlite3.Connection, is_market: Callable[[str], bool]) -> None:
        blocked = self.setting.blocked_questions
        self.blocked |= relations.blocked_markets(database, blocked)
        listed = self.markets.keys() - self.blocked
        found = relations.read(database, listed, is_market, blocked)
        self.quarantined, self.ids_of_rows = found.quarantined, relations.ids(database)
        public = [pair for pair in found.questions if self._has_sums(*pair)]
        slugs = Counter(question.slug.lower() for question, _ in public if question.slug)
        keys = Counter(question.key for question, _ in public if question.key)
        for question, members in public:
            slug = question.slug if question.slug and slugs[question.slug.lower()] == 1 else None
            key = question.key if question.key and keys[question.key] == 1 else None
            self.questions[question.id] = self._expected(question, members, slug, key)

    def _has_sums(self, question: QuestionRow, members: Sequence[MemberRow]) -> bool:
        items = [self.markets[one.market_id].value for one in members]
        try:
            total([item["volume"] for item in items])
        except OverflowError:
            self.quarantined[question.id] = "volume: not finite"
            return False
        for name in ("traderCount", "fills24h"):
            if sum(item[name] for item in items) > LARGEST_INTEGER:
                self.quarantined[question.id] = f"{name}: above 2^53 - 1"
                return False
        return True

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Each row, ascending by id: questions, and every listed market that is in none."""
        taken = {one.market_id for found in self.questions.values() for one in found.members}
        singles = [self._single(item) for name, item in self.markets.items() if name not in taken | self.blocked]
        return sorted([*(found.row for found in self.questions.values()), *singles], key=lambda row: row.id)

    def listed(self, status: str, sort: str, category: str | None = None) -> Sequence[Row]:
        """The rows of a list, in order. `category` is a name."""
        chosen = [row for row in self.rows if row.value["status"] in FILTERS[status]]
        if category is not None:
            chosen = [row for row in chosen if category in row.value["categories"]]
        return sorted(chosen, key=lambda row: SORTS[sort](row.value), reverse=True)  # stable, also in reverse

    @property
    def public_text(self) -> str:
        """All that is shown of questions, and the markets' items."""
        shown = (text for one in self.questions.values() for text in (one.row.raw, one.detail, one.definition))
        return "".join([*shown, *(item.raw for item in self.markets.values())])

    @property
    def definitions(self) -> bytes:
        """The NDJSON of definitions."""
        return "".join(f"{self.questions[name].definition}\n" for name in sorted(self.questions)).encode()

    @property
    def table(self) -> Sequence[Mapping[str, Any]]:
        """The rows of the Parquet table; `createdAt` as on the wire."""
        found = list[Mapping[str, Any]]()
        for name in sorted(self.questions):
            one = self.questions[name]
            slug = {"slug": one.slug} if self.setting.is_extended else {}
            about = {"questionId": name, "kind": one.question.kind, **slug, "title": one.question.title}
            about |= {"description": one.question.description, "createdAt": one.question.created_at}
            url = {"url": one.url} if self.setting.question_url else {}
            for member in in_order(one.members):
                label, payout = self._label(member), self._payout(member)
                own = {"marketId": member.market_id, "label": label, "position": member.position, "payout": payout}
                found.append({**about, **own, **url})
        return found

    def _label(self, member: MemberRow) -> str:
        return self.markets[member.market_id].value["question"] if member.label is None else member.label

    def _payout(self, member: MemberRow) -> float | None:
        return None if self.markets[member.market_id].is_running else member.payout

    def _single(self, item: Listed) -> Row:
        market = raw_json.join(
            [
                ("id", item.written["id"]),
                ("label", "null"),
                *((name, item.written[name]) for name in ("prob", "status", "resolution")),
            ]
        )
        written = [
            ("id", item.written["id"]),
            ("title", item.written["question"]),
            ("kind", '"single"'),
            *((name, item.written[name]) for name in _OF_MARKET),
            ("size", "1"),
            ("markets", raw_json.array([market])),
            *((name, item.written[name]) for name in _EXTENDED if name in item.written),
        ]
        return _row(written)

    def _expected(
        self, question: QuestionRow, members: Sequence[MemberRow], slug: str | None, key: str | None
    ) -> Expected:
        head = self._head(question, members)
        extended = self._extended(members, slug) if self.setting.is_extended else []
        shown = [self._shown(member) for member in self._ten(members)]
        row = _row([*head, ("markets", raw_json.array(shown)), *extended])
        about = raw_json.join([*head, ("description", write(question.description)), *extended])
        described = [
            raw_json.join([*self._member(member), ("market", self.markets[member.market_id].raw)])
            for member in in_order(members)
        ]
        detail = raw_json.join([("question", about), ("markets", raw_json.array(described))])
        definition = self._definition(question, members, slug)
        return Expected(question, members, row, detail, definition, slug, self._url(question.id, slug, key))

    def _head(self, question: QuestionRow, members: Sequence[MemberRow]) -> list[tuple[str, str]]:
        """What an item and a detail begin with, up to `size`."""
        items = [self.markets[one.market_id].value for one in members]
        status = next(state for state in STATES if any(item["status"] == state for item in items))
        of_open = [item["closeTime"] for item in items if item["status"] == "open"]
        resolved = [item["resolvedAt"] for item in items if item["resolvedAt"] is not None]
        is_over = all(item["status"] in {"resolved", "cancelled"} for item in items)
        values: dict[str, Any] = {
            "id": question.id,
            "title": question.title,
            "kind": question.kind,
            "status": status,
            "volume": total([item["volume"] for item in items]),
            "traderCount": sum(item["traderCount"] for item in items),
            "fills24h": sum(item["fills24h"] for item in items),
            "acceptingBets": any(item["acceptingBets"] for item in items),
            "closeTime": max(of_open or [item["closeTime"] for item in items]),
            "createdAt": question.created_at,
            "resolvedAt": max(resolved, default=None) if is_over else None,
            "lastActivityAt": max(item["lastActivityAt"] for item in items),
            "size": len(items),
        }
        return [(name, write(value)) for name, value in values.items()]

    def _extended(self, members: Sequence[MemberRow], slug: str | None) -> list[tuple[str, str]]:
        items = [self.markets[one.market_id].value for one in members]
        named = Counter(name for item in items for name in {*item.get("categories", ())})
        names = sorted(named, key=lambda name: (-named[name], name))
        first = [("category", write(names[0]))] if names else []
        return [*([("slug", write(slug))] if slug else []), *first, ("categories", write(names))]

    def _ten(self, members: Sequence[MemberRow]) -> Sequence[MemberRow]:
        def place(member: MemberRow) -> tuple[Any, ...]:
            item = self.markets[member.market_id].value
            rank = 0 if item["status"] == "open" else 1 if item["resolution"] == "YES" else 2
            return rank, -item["prob"], _place(member)

        return sorted(members, key=place)[:MOST_MARKETS]

    def _shown(self, member: MemberRow) -> str:
        """A member as a row shows it."""
        item = self.markets[member.market_id]
        told = ((name, item.written[name]) for name in ("prob", "status", "resolution"))
        return raw_json.join([("id", write(member.market_id)), ("label", write(self._label(member))), *told])

    def _member(self, member: MemberRow) -> list[tuple[str, str]]:
        values = {"label": self._label(member), "position": member.position, "payout": self._payout(member)}
        return [(name, write(value)) for name, value in values.items()]

    def _definition(self, question: QuestionRow, members: Sequence[MemberRow], slug: str | None) -> str:
        described = [
            raw_json.join([("id", write(member.market_id)), *self._member(member)]) for member in in_order(members)
        ]
        named = [("slug", write(slug))] if slug and self.setting.is_extended else []
        return raw_json.join(
            [
                ("id", write(question.id)),
                ("kind", write(question.kind)),
                *named,
                ("title", write(question.title)),
                ("description", write(question.description)),
                ("createdAt", write(question.created_at)),
                ("members", raw_json.array(described)),
            ]
        )

    def _url(self, name: str, slug: str | None, key: str | None) -> str | None:
        """The page of the question on the operator's site, if there is one."""
        filled = {"id": name, "slug": slug if self.setting.is_extended else None, "key": key}
        template = self.setting.question_url
        asked = re.search(r"\{(id|slug|key)\}", template or "")
        value = filled[asked[1]] if asked else None
        return None if not template or not asked or value is None else template.replace(asked[0], quote(value, safe=""))


def total(volumes: Sequence[float]) -> float:
    """The exact sum, rounded once; OverflowError if that is infinite."""
    return float(sum((Fraction(volume) for volume in volumes), start=Fraction(0)))


def in_order(members: Sequence[MemberRow]) -> Sequence[MemberRow]:
    """By position, null last, then by market id."""
    return sorted(members, key=_place)


def _place(member: MemberRow) -> tuple[float, int, str]:
    return (math.inf if member.position is None else 0), member.position or 0, member.market_id


def _row(written: Sequence[tuple[str, str]]) -> Row:
    return Row(raw_json.join(written), {name: raw_json.read(text) for name, text in written})
