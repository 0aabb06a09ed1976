"""The live server with questions: the same rows, some of which answer one thing together."""

import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from tests.verify.dynamic import ITEM_FIELDS, SORTS, STATUSES, Answer, Dynamic, InvalidError, Query, is_listed, only
from tests.verify.rows import Row

QUESTIONS: Final = "/v1/public/questions"
#: What a row of a question shows of a market.
SHOWN: Final = ("id", "prob", "status", "resolution")
_NUMBER: Final = re.compile(r"Frage (\d+)")
_MOST: Final = 10
_KINDS: Final = ("exclusive", "independent")


@dataclass
class Grouped(Dynamic):
    """The server, with a question of more than ten markets, many of three or fewer, and markets in none.

    `spoil` changes all questions, with their markets, before anything is answered of them; `forge` changes an answer to
    a path, parsed.
    """

    spoil: Callable[[list[Row]], object] = lambda _: None
    forge: Callable[[str, Any], object] = lambda _, __: None
    accepts: frozenset[str] = frozenset()
    _places: dict[str, tuple[str, str, int]] = field(default_factory=dict, init=False)

    def _found(self, path: str, query: str) -> Answer:
        if path == QUESTIONS:
            return self._page(query)
        if path.startswith(f"{QUESTIONS}/"):
            return self._question(path.removeprefix(f"{QUESTIONS}/"))
        return super()._found(path, query)

    def _page(self, text: str) -> Answer:
        cursor = re.search(r"&cursor=([0-9a-z.-]+)$", text)
        query = self._asked(text if not cursor or cursor[1] not in self._places else text[: cursor.start()])
        start = 0
        if cursor and cursor[1] in self._places:
            status, sort, start = self._places[cursor[1]]
            if (status, sort) != (query.status, query.sort):
                raise InvalidError({"cursor": "is none of this list"})
        elif cursor and "cursor" not in self.accepts:
            raise InvalidError({"cursor": "is none of this list"})
        rows = [row for row in self._rows() if row["status"] in STATUSES[query.status]]
        ordered = sorted(sorted(rows, key=itemgetter("id")), key=lambda row: _compared(query.sort, row), reverse=True)
        end, following = start + query.limit, None
        if end < len(ordered):
            following = f"of-rows.{query.status}.{query.sort}.{end}"
            self._places[following] = query.status, query.sort, end
        page = {"items": [_cut(row) for row in ordered[start:end]], "nextCursor": following}
        return self._answered(f"{QUESTIONS}?{text}", page)

    def _asked(self, text: str) -> Query:
        return self._query(text.replace("q=", "x=") if "q" in self.accepts else text)

    def _question(self, reference: str) -> Answer:
        for row in self._rows():
            if row["id"] == reference.lower() and (row["kind"] != "single" or "single" in self.accepts):
                own = {name: value for name, value in row.items() if name != "markets"}
                question = {**own, "description": None}
                return self._answered(f"{QUESTIONS}/{reference}", {"question": question, "markets": _members(row)})
        return self.error(404, "not found")

    def _answered(self, target: str, content: Any) -> Answer:
        content = json.loads(json.dumps(content))
        self.forge(target, content)
        return Answer(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _rows(self) -> list[Row]:
        groups = dict[str, list[Row]]()
        for row in sorted(filter(is_listed, self._now), key=itemgetter("id")):
            groups.setdefault(_group(row), []).append(row)
        rows = [_row(name, members) for name, members in groups.items()]
        self.spoil(rows)
        return rows


def _group(row: Row) -> str:
    """The question of a market, or its own id."""
    found = _NUMBER.search(row["question"])
    number = int(found[1]) if found else 1
    if number % 4 == 0 and number < 100:
        return "large"
    return f"group {number // 12}" if number % 3 == 0 else str(row["id"])


def _row(name: str, members: list[Row]) -> Row:
    first = members[0]
    is_single = name == first["id"]
    states = [one["status"] for one in members]
    status = next(one for one in ("open", "closed", "resolved", "cancelled") if one in states)
    ended = [one["resolvedAt"] for one in members if one["resolvedAt"]]
    closing = [one["closeTime"] for one in members if status != "open" or one["status"] == "open"]
    return {
        "id": first["id"] if is_single else str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
        "title": first["question"] if is_single else name,
        "kind": "single" if is_single else _KINDS[len(members) % 2],
        "status": status,
        "volume": sum(one["volume"] for one in members),  # exact with these values
        "traderCount": sum(one["traderCount"] for one in members),
        "fills24h": sum(one["fills24h"] for one in members),
        "acceptingBets": any(one["acceptingBets"] for one in members),
        "closeTime": max(closing),
        "createdAt": first["createdAt"] if is_single else f"2026-01-{sum(map(ord, name)) % 28 + 1:02}T03:04:05.000Z",
        "resolvedAt": max(ended, default=None) if status in ("resolved", "cancelled") else None,
        "lastActivityAt": max(one["lastActivityAt"] for one in members),
        "size": len(members),
        "markets": [
            {
                "label": None if is_single else one["question"],
                "position": int(one["id"][:2], 16) % 5 or None,
                "market": one,
            }
            for one in members
        ],
    }


def _position(market: Row) -> int | None:
    return int(market["id"][:2], 16) % 5 or None


def _cut(row: Row) -> Row:
    """A row as lists show it."""
    ordered = sorted(row["markets"], key=lambda one: (_rank(one["market"]), -one["market"]["prob"], *_place(one)))
    shown = [{**only(SHOWN, one["market"]), "label": one["label"]} for one in ordered[:_MOST]]
    return {**row, "markets": shown}


def _members(row: Row) -> list[Row]:
    return [
        {**one, "payout": _payout(one["market"]), "market": only(ITEM_FIELDS, one["market"])}
        for one in sorted(row["markets"], key=_place)
    ]


def _payout(market: Row) -> float | None:
    return None if market["status"] in ("open", "closed") else float(market["resolution"] == "YES")


def _rank(market: Row) -> int:
    return 0 if market["status"] == "open" else 1 if market["resolution"] == "YES" else 2


def _place(member: Row) -> tuple[bool, int, str]:
    return member["position"] is None, member["position"] or 0, member["market"]["id"]


def _compared(sort: str, row: Row) -> list[Any]:
    return [row["resolvedAt"] or row["closeTime"] if name == "ended" else row[name] for name in SORTS[sort]]
