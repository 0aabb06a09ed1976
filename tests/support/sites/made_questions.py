"""Catalogs with questions, made up by hypothesis, and what is published of them by the rules, computed naively."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cmp_to_key
from math import inf
from typing import Any, Final

from hypothesis import strategies as st
from pydantic_core import from_json

from generator.api import contract, slugs
from generator.api.contract import PublicMarketListItem, Variant
from generator.markets.market import Market
from generator.markets.questions import Member, Question, exact_sum
from generator.site.catalog import Catalog
from tests.support.sites.builds import NOW
from tests.support.sites.rows import FX_MEMBER, market_id, public_market

#: Items and rows as JSON values.
Values = Mapping[str, Any]

TIMES: Final = [f"2026-01-0{day}T00:00:00.00{ms}Z" for day in (1, 2) for ms in (0, 1)]
#: Texts that look like the JSON around them, and some that need escapes.
TEXTS: Final = [
    "",
    "Rain?",
    ',"status":',
    '"',
    'x,","status":"open",',
    "\\",
    "é\u2028\U0001f327",
    "{}[]\n\t",
    "a" * 300,
]
CATEGORIES: Final = ["rain", "Sun, moon", "F 1", 'of "note"', "Ünder"]
VOLUMES: Final = [0.0, 0.1, 0.2, 0.3, 1e16, 1.0, 5e-324, 1e-300, 1.7e308]


def question_id(number: int) -> str:
    """A UUID that lies between those of two markets."""
    return f"{number:08x}-8000-4000-8000-000000000000"


def item(number: int, variant: Variant = "core", **fields: Any) -> Market:
    """A listed market, an open one, with these fields of its item."""
    extended: dict[str, Any] = {"categories": []} if variant == "extended" else {}
    values = {
        "id": market_id(number),
        "question": f"Question {number}?",
        "status": "open",
        "prob": 0.5,
        "volume": 1.0,
        "close_time": TIMES[3],
        "resolution": None,
        "created_at": TIMES[0],
        "resolved_at": None,
        "last_activity_at": TIMES[1],
        "trader_count": 1,
        "fills24h": 0,
        "accepting_bets": False,
        **extended,
        **fields,
    }
    if values.get("categories"):
        values["category"] = values["categories"][0]
    return Market.of_item(contract.encode(PublicMarketListItem(**values)))


def question(number: int, *members: Member, **fields: Any) -> Question:
    """An independent question with these members."""
    made = Question(
        question_id(number), None, None, f"Title {number}", None, "independent", TIMES[0],
        tuple(sorted(members, key=lambda member: member.market_id)),
    )  # fmt: skip
    return made._replace(**fields)


def member(number: int, label: str | None = None, position: int | None = None, payout: float | None = None) -> Member:
    """The membership of a market."""
    return Member(market_id(number), label, position, payout)


@st.composite
def _markets(draw: st.DrawFn, variant: Variant, least: int) -> list[Market]:
    numbers = draw(st.lists(st.integers(1, 40), unique=True, min_size=least, max_size=16))
    made = []
    for number in numbers:
        fields = {
            "question": draw(st.sampled_from(TEXTS)),
            "status": draw(st.sampled_from(contract.MARKET_STATUSES)),
            "prob": draw(st.sampled_from([0.0, 0.5, 0.25, 1e-7, 1.0])),
            "volume": draw(st.sampled_from(VOLUMES)),
            "close_time": draw(st.sampled_from(TIMES)),
            "created_at": draw(st.sampled_from(TIMES)),
            "resolved_at": draw(st.sampled_from([None, *TIMES])),
            "last_activity_at": draw(st.sampled_from(TIMES)),
            "trader_count": draw(st.integers(0, 3)),
            "fills24h": draw(st.integers(0, 2)),
            "accepting_bets": draw(st.booleans()),
        }
        if fields["status"] not in contract.UNSETTLED:
            fields["resolution"] = draw(st.sampled_from([None, *contract.RESOLUTIONS]))
        if variant == "extended":
            fields["categories"] = draw(st.lists(st.sampled_from(CATEGORIES), unique=True, max_size=3))
            fields["slug"] = draw(st.sampled_from([None, f"m-{number}"]))
        made.append(item(number, variant, **fields))
    return made


@st.composite
def sites(draw: st.DrawFn, variant: Variant, *, is_one: bool = False) -> tuple[Catalog, list[Question]]:
    """A catalog, with members of FX families, and its public questions.

    `is_one`: all listed markets are in one question, which has more of them than its row shows.
    """
    markets = draw(_markets(variant, 11 if is_one else 0))
    first, last = (1, 1) if is_one else draw(st.sampled_from([(0, 0), (0, 2), (0, 5)]))
    homes = {market.id: draw(st.integers(first, last)) for market in markets}
    questions = []
    for number in range(1, 6):  # a market with home 0 stands alone
        members = tuple(
            Member(
                market.id,
                draw(st.sampled_from([None, *TEXTS[1:]])),
                draw(st.sampled_from([None, 0, 1, 2, -3, 2**53 - 1])),
                draw(st.sampled_from([None, 0.0, 0.5, 1.0])),
            )
            for market in sorted(markets)
            if homes[market.id] == number
        )
        if members and exact_sum(one.volume for one in markets if homes[one.id] == number) < inf:
            made = question(
                draw(st.sampled_from([number, 50 - number])), *members,
                title=draw(st.sampled_from(TEXTS)), description=draw(st.sampled_from([None, *TEXTS])),
                kind=draw(st.sampled_from(["exclusive", "independent"])), created_at=draw(st.sampled_from(TIMES)),
                slug=draw(st.sampled_from([None, f"q-{number}"])),
            )  # fmt: skip
            questions.append(made)
    families = [public_market(90, fx=FX_MEMBER)]
    return Catalog([*markets, *families], as_of=NOW, hidden=0), draw(st.permutations(questions))


class Naive:
    """What the rules say of a site, computed of JSON values without regard to cost."""

    def __init__(self, catalog: Catalog, questions: Sequence[Question], variant: Variant) -> None:
        self.items = {market.id: from_json(market.body) for market in catalog.markets if market.fx is None}
        self.questions = {one.id: one for one in questions}
        self.variant = variant
        asked = {one.market_id for made in questions for one in made.members}
        self.rows = [self.row(one) for one in questions]
        self.rows += [self.single(found) for key, found in self.items.items() if key not in asked]

    def single(self, found: Values) -> Values:
        """Rule 8."""
        names = ["status", "volume", "traderCount", "fills24h", "acceptingBets", "closeTime", "createdAt"]
        names += ["resolvedAt", "lastActivityAt"]
        shown = {name: found[name] for name in ("prob", "status", "resolution")}
        return {
            "id": found["id"],
            "title": found["question"],
            "kind": "single",
            **{name: found[name] for name in names},
            "size": 1,
            "markets": [{"id": found["id"], "label": None, **shown}],
            **{name: found[name] for name in ("slug", "category", "categories") if name in found},
        }

    def _label(self, one: Member) -> str:
        return str(self.items[one.market_id]["question"] if one.label is None else one.label)

    def _payout(self, one: Member) -> float | None:
        return None if self.items[one.market_id]["status"] in {"open", "closed"} else one.payout

    def _by_position(self, asked: Question) -> list[Member]:
        placed = [one for one in asked.members if one.position is not None]
        others = [one for one in asked.members if one.position is None]
        placed.sort(key=lambda one: (one.position, one.market_id))
        return placed + sorted(others, key=lambda one: one.market_id)

    def _ten(self, asked: Question) -> Iterator[Values]:
        """Rule 10."""

        def rank(one: Member) -> Any:
            found = self.items[one.market_id]
            first = 0 if found["status"] == "open" else 1 if found["resolution"] == "YES" else 2
            return first, -found["prob"], self._by_position(asked).index(one)

        for one in sorted(asked.members, key=rank)[:10]:
            found = self.items[one.market_id]
            shown = {name: found[name] for name in ("prob", "status", "resolution")}
            yield {"id": one.market_id, "label": self._label(one), **shown}

    def row(self, asked: Question) -> Values:
        """Rules 5 to 7, and 9."""
        found = [self.items[one.market_id] for one in asked.members]
        held = {one["status"] for one in found}
        status = next(one for one in ("open", "closed", "resolved", "cancelled") if one in held)
        opened = [one for one in found if one["status"] == "open"]
        ended = [one["resolvedAt"] for one in found if one["resolvedAt"]]
        return {
            "id": asked.id,
            "title": asked.title,
            "kind": asked.kind,
            "status": status,
            "volume": float(sum((Fraction(one["volume"]) for one in found), Fraction(0))),
            "traderCount": sum(one["traderCount"] for one in found),
            "fills24h": sum(one["fills24h"] for one in found),
            "acceptingBets": any(one["acceptingBets"] for one in found),
            "closeTime": max(one["closeTime"] for one in opened or found),
            "createdAt": asked.created_at,
            "resolvedAt": max(ended) if ended and not held & {"open", "closed"} else None,
            "lastActivityAt": max(one["lastActivityAt"] for one in found),
            "size": len(found),
            "markets": [*self._ten(asked)],
            **self._extras(asked, found),
        }

    def _extras(self, asked: Question, found: Sequence[Values]) -> Values:
        if self.variant == "core":
            return {}
        shown = [name for one in found for name in one["categories"]]
        names = sorted(sorted({*shown}), key=shown.count, reverse=True)
        slug = {} if asked.slug is None else {"slug": asked.slug}
        return {**slug, **({"category": names[0]} if names else {}), "categories": names}

    def detail(self, asked: Question) -> Values:
        """Rule 9."""
        row = {name: value for name, value in self.row(asked).items() if name != "markets"}
        last = {name: row.pop(name) for name in ("slug", "category", "categories") if name in row}
        markets = [
            {
                "label": self._label(one),
                "position": one.position,
                "payout": self._payout(one),
                "market": self.items[one.market_id],
            }
            for one in self._by_position(asked)
        ]
        return {"question": {**row, "description": asked.description, **last}, "markets": markets}

    def definition(self, asked: Question) -> Values:
        """Rule 18."""
        members = [
            {
                "id": one.market_id,
                "label": self._label(one),
                "position": one.position,
                "payout": self._payout(one),
            }
            for one in self._by_position(asked)
        ]
        return {
            "id": asked.id,
            "kind": asked.kind,
            **({"slug": asked.slug} if asked.slug is not None and self.variant == "extended" else {}),
            "title": asked.title,
            "description": asked.description,
            "createdAt": asked.created_at,
            "members": members,
        }

    def listed(self, status: str, sort: str, category: str | None) -> list[Values]:
        """The rows of a list in order."""
        states = {"all": {"open", "closed", "resolved", "cancelled"}, "archive": {"closed", "resolved", "cancelled"}}
        chosen = [row for row in self.rows if row["status"] in states.get(status, {status})]
        if category is not None:
            chosen = [row for row in chosen if category in map(slugs.of_category, row["categories"])]

        def key(row: Values) -> Any:
            return {
                "popular": (row["traderCount"], row["volume"]),
                "activity": row["lastActivityAt"],
                "volume": row["volume"],
                "new": row["createdAt"],
                "ended": row["resolvedAt"] or row["closeTime"],
            }[sort]

        def compared(one: Values, other: Values) -> int:
            if key(one) != key(other):
                return -1 if key(one) > key(other) else 1
            return -1 if one["id"] < other["id"] else 1

        return sorted(chosen, key=cmp_to_key(compared))
