"""A made-up SocialPredict site: markets in every state with plausible bets, and what is to be published of them.

What is expected is computed here from the bets in plain Python, without a look at the SQL. Every name of a user, and
every text that must not be published, has CANARY in it.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import cycle
from typing import Any, Final
from uuid import UUID

from generator.markets.questions import Member, Question
from tests.support.project import ROOT
from tests.support.sites.builds import AS_OF

SCHEMA: Final = ROOT / "tests" / "support" / "socialpredict_schema.sql"
CANARY: Final = "CANARY"
MARKETS: Final = 300
#: Those of setup.yaml.
PROBABILITY: Final = 0.5
SUBSIDY: Final = 10
#: What a column holds where Go's program had no time.
NO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)
_PAST: Final = AS_OF - timedelta(days=2)
_FUTURE: Final = datetime(2199, 12, 31, tzinfo=UTC)
_NEVER_PUBLIC: Final = (None, None)

#: By kind of market: its lifecycle, whether it is resolved, the result; and what is published, status and resolution.
_KINDS: Final[dict[str, tuple[str | None, bool | None, str | None, tuple[str | None, str | None]]]] = {
    "open": ("published", False, "", ("open", None)),
    "past its end": ("published", False, "", ("closed", None)),
    "closed": ("closed", False, "", ("closed", None)),
    "with an early result": ("published", False, "YES", ("open", None)),
    "resolved YES": ("resolved", True, "YES", ("resolved", "YES")),
    "resolved NO": ("resolved", True, "NO", ("resolved", "NO")),
    "annulled": ("resolved", True, "N/A", ("cancelled", "CANCEL")),
    "cancelled": ("cancelled", False, "", ("cancelled", "CANCEL")),
    "old and resolved": ("", True, "NO", ("resolved", "NO")),
    "older": (None, None, None, ("open", None)),
    "proposed": ("proposed", False, "", _NEVER_PUBLIC),
    "rejected": ("rejected", False, "", _NEVER_PUBLIC),
    "of a kind to come": ("secret", False, "", _NEVER_PUBLIC),
    "deleted": ("published", False, "", _NEVER_PUBLIC),
}


@dataclass(frozen=True)
class Bet:
    """A row of `bets`."""

    id: int
    username: str
    amount: int
    outcome: str
    placed_at: datetime
    is_deleted: bool


@dataclass
class MadeMarket:
    """A row of `markets`, and the rows that belong to it."""

    id: int
    kind: str
    created_at: datetime
    closes_at: datetime
    resolved_at: datetime
    labels: tuple[str, str] = ("YES", "NO")
    amendments: list[tuple[int, str, str, bool]] = field(default_factory=list)
    tags: list[int] = field(default_factory=list)
    #: Its group, its label there, and its place.
    group: tuple[int, str, int | None] | None = None
    bets: list[Bet] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Its own title."""
        return f"{CANARY} {self.id}" if _KINDS[self.kind][-1] == _NEVER_PUBLIC else f"Will it rain on day {self.id}?"


class MadeSite:
    """The site: `rows` of each table, and what is `expected` of it, by the market's number."""

    #: By number: the name, its place, and whether it is active and deleted.
    tags: Final = {1: ("Weather", 2, True, False), 2: ("Sports", 1, True, False), 3: (f"{CANARY} off", 0, False, False),
                   4: (f"{CANARY} gone", 0, True, True)}  # fmt: skip
    #: By number: the question, its description, its lifecycle, and whether it is deleted; no market is in the fifth,
    #: and no public one in the sixth.
    groups: Final = {1: ("Who wins the cup?", "The winner of the final.", "published", False),
                     2: ("G" * 160, "", None, False), 3: (f"{CANARY} group", CANARY, "proposed", False),
                     4: (f"{CANARY} former", CANARY, "published", True),
                     5: (f"{CANARY} empty", CANARY, "published", False),
                     6: (f"{CANARY} unseen", CANARY, "published", False)}  # fmt: skip
    #: When all of them were asked.
    asked_at: Final = AS_OF - timedelta(days=301, microseconds=1)

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)  # noqa: S311 - the same site every time
        self._bets = 0
        kinds = cycle(_KINDS)
        self.markets = [self._market(number, next(kinds)) for number in range(1, MARKETS + 1)]

    def _market(self, number: int, kind: str) -> MadeMarket:
        rng = self._random
        created = AS_OF - timedelta(days=rng.uniform(30, 300))
        is_over = kind not in {"open", "closed", "with an early result", "older"}
        resolved = _PAST + timedelta(hours=5) if _KINDS[kind][1] or kind == "with an early result" else NO_TIME
        market = MadeMarket(number, kind, created, _PAST if is_over else _FUTURE, resolved)
        if rng.random() < 0.1:
            market.labels = ("Over", "Under") if rng.random() < 0.5 else ("YES", "Never")
        if rng.random() < 0.2:
            status = rng.choice(["approved", "approved", "rejected"])
            market.amendments = [
                (2, f"Second text of {number}", "approved", False),
                (3, f"Third text of {number}" if status == "approved" else CANARY, status, False),
                (4, f"{CANARY} asked for", "pending", False),
                (5, f"{CANARY} gone", "approved", True),
            ]
        market.tags = [tag for tag in self.tags if rng.random() < 0.3]
        if rng.random() < 0.25:
            market.group = self._place(market, rng.choice([1, 2, 3, 4]))
        elif kind == "rejected":
            market.group = self._place(market, 6)
        market.bets = sorted(self._play(market), key=lambda bet: bet.id)
        return market

    def _place(self, market: MadeMarket, group: int) -> tuple[int, str, int | None]:
        """A place in a group: labels of some lengths, and some without an order."""
        is_public = _KINDS[market.kind][-1] != _NEVER_PUBLIC
        label = (f"Team {market.id}" if is_public else CANARY) + (" of the north" * 9 if market.id % 5 == 0 else "")
        return group, label, None if market.id % 4 == 0 else -market.id % 10

    def _play(self, market: MadeMarket) -> Iterator[Bet]:
        """Purchases, and sales of what a user holds; some at the same time, some undone, their ids in no order."""
        rng = self._random
        count = 0 if rng.random() < 0.1 else min(250, int(rng.lognormvariate(2.8, 1.1)))
        latest = min(market.closes_at, AS_OF)
        whole = (latest - market.created_at) / timedelta(microseconds=1)
        times = [market.created_at + timedelta(microseconds=int(whole * rng.random() ** 0.3)) for _ in range(count)]
        times = sorted(times[place - 1] if place and rng.random() < 0.05 else time for place, time in enumerate(times))
        ids = [self._bets + number for number in range(1, count + 1)]
        rng.shuffle(ids)
        self._bets += count
        held = defaultdict[tuple[str, str], int](int)
        before = None
        for number, time in zip(ids, times, strict=True):
            who, outcome = f"{CANARY}-user-{rng.randrange(40)}", rng.choice(["YES", "YES", "NO"])
            is_sale = held[who, outcome] > 1 and time != before and rng.random() < 0.4
            amount = -rng.randint(1, held[who, outcome]) if is_sale else rng.choice([1, 5, 10, 20, 50, 100, 1_000])
            is_deleted, before = rng.random() < 0.03, time
            held[who, outcome] += 0 if is_deleted else amount
            yield Bet(number, who, amount, outcome, time, is_deleted)

    def played(self) -> int:
        """The number of a public market with some bets."""
        return next(market.id for market in self.markets if self._is_public(market) and len(market.bets) > 5)

    def insert(self, connection: Any) -> None:
        """Write the rows of all tables."""
        for table, rows in self._rows().items():
            with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)

    def _rows(self) -> dict[str, list[Sequence[Any]]]:
        gone = AS_OF - timedelta(hours=1)
        groups = [(key, self.asked_at, *group[:3], gone if group[3] else None) for key, group in self.groups.items()]
        return {
            "users (username, display_name, email, password, api_key, balance)": [
                (f"{CANARY}-user-{n}", CANARY, f"{CANARY}{n}@example.org", CANARY, CANARY, 777000777) for n in range(40)
            ],
            "markets (id, created_at, updated_at, deleted_at, question_title, description, outcome_type, "
            "resolution_date_time, final_resolution_date_time, is_resolved, resolution_result, initial_probability, "
            "yes_label, no_label, lifecycle_status, approved_by, rejected_by, rejection_reason, creator_username, "
            "steward_username)": [self._market_row(market) for market in self.markets],
            "bets (id, deleted_at, action, username, market_id, amount, placed_at, outcome)": [
                (bet.id, gone if bet.is_deleted else None, CANARY, bet.username, market.id, bet.amount, bet.placed_at,
                 bet.outcome)
                for market in self.markets for bet in market.bets
            ],
            "market_groups (id, created_at, question_title, description, lifecycle_status, deleted_at)": [*groups],
            "market_group_members (group_id, answer_label, display_order, market_id)": [
                (*market.group, market.id) for market in self.markets if market.group
            ],
            "market_tags (id, slug, display_name, description, sort_order, is_active, deleted_at)": [
                (key, f"tag-{key}", name, CANARY, place, active, gone if deleted else None)
                for key, (name, place, active, deleted) in self.tags.items()
            ],
            "market_tag_assignments (market_id, tag_id, assigned_by, source)": [
                (market.id, tag, CANARY, CANARY) for market in self.markets for tag in market.tags
            ],
            "market_description_amendments (market_id, version, body, status, deleted_at)": [
                (market.id, version, body, status, gone if deleted else None)
                for market in self.markets for version, body, status, deleted in market.amendments
            ],
        }  # fmt: skip

    def _market_row(self, market: MadeMarket) -> Sequence[Any]:
        lifecycle, is_resolved, result, _ = _KINDS[market.kind]
        deleted = AS_OF if market.kind == "deleted" else None
        return (
            market.id, market.created_at, AS_OF, deleted, market.title, self._description(market), "BINARY",
            market.closes_at, market.resolved_at, is_resolved, result, 0.25, *market.labels, lifecycle, CANARY, CANARY,
            CANARY, f"{CANARY}-user-1", f"{CANARY}-user-2",
        )  # fmt: skip

    def _description(self, market: MadeMarket) -> str | None:
        return None if market.id % 7 == 0 else f"Rules of {market.id}."

    # ── what is to be published ──────────────────────────────────────────────────────────────────────────────────

    def expected(self, key: bytes) -> dict[str, dict[str, Any]]:
        """What a detail says of each public market, by id; `key` is the secret of ids."""
        public = [market for market in self.markets if self._is_public(market)]
        return {uuid(key, f"market {market.id}"): self._detail(market, key) for market in public}

    def expected_questions(self, key: bytes) -> list[Question]:
        """The public questions, ascending by id."""
        found = []
        for number in (1, 2):
            title, description, *_ = self.groups[number]
            placed = [market for market in self.markets if self._is_public(market) and market.group]
            members = [
                Member(uuid(key, f"market {market.id}"), shortened(market.group[1]), market.group[2], None)
                for market in placed
                if market.group and market.group[0] == number
            ]
            found.append(
                Question(uuid(key, f"question:{number}"), None, None, title, description or None, "independent",
                         wire(self.asked_at), tuple(sorted(members)))
            )  # fmt: skip
        return sorted(found)

    def _is_public(self, market: MadeMarket) -> bool:
        return _KINDS[market.kind][-1] != _NEVER_PUBLIC and not (market.group and market.group[0] == 3)

    def _detail(self, market: MadeMarket, key: bytes) -> dict[str, Any]:
        bets = sorted((bet for bet in market.bets if not bet.is_deleted), key=lambda bet: (bet.placed_at, bet.id))
        probs = [*probabilities(bets)]
        points = [
            (market.created_at, PROBABILITY),
            *((bet.placed_at, prob) for bet, prob in zip(bets, probs, strict=True)),
        ]
        fills = [
            {"id": uuid(key, f"bet {bet.id}"), "amount": abs(bet.amount), "shares": 0, "price": None,
             "timestamp": wire(bet.placed_at)}
            for bet in bets
        ]  # fmt: skip
        return {
            "market": self._shown(market, uuid(key, f"market {market.id}"), bets, [PROBABILITY, *probs][-1]),
            "orderBook": {"bids": [], "asks": []},
            "recentFills": sorted(fills, key=lambda fill: (fill["timestamp"], fill["id"])),
            "probHistory": [
                {"timestamp": time, "prob": prob} for time, prob in sorted((wire(t), p) for t, p in points)
            ],
        }

    def _shown(self, market: MadeMarket, market_id: str, bets: Sequence[Bet], prob: float) -> dict[str, Any]:
        status, resolution = _KINDS[market.kind][-1]
        group = self.groups[market.group[0]][0] if market.group and market.group[0] in {1, 2} else None
        resolved = market.resolved_at if status in {"resolved", "cancelled"} and market.resolved_at != NO_TIME else None
        named = [(self.tags[tag][1], self.tags[tag][0]) for tag in market.tags if tag in {1, 2}]
        categories = [name for _, name in sorted(named)]
        shown = {
            "id": market_id,
            "question": f"{group} – {market.group[1]}" if group and market.group else market.title,
            "status": status,
            "prob": prob,
            "volume": max(0, sum(bet.amount for bet in bets)),
            "closeTime": wire(market.closes_at),
            "resolution": resolution,
            "createdAt": wire(market.created_at),
            "resolvedAt": wire(resolved) if resolved else None,
            "lastActivityAt": wire(
                max([market.created_at, *(bet.placed_at for bet in bets), *([resolved] if resolved else [])])
            ),
            "traderCount": len({bet.username for bet in bets}),
            "fills24h": sum(AS_OF - timedelta(days=1) < bet.placed_at <= AS_OF for bet in bets),
            "acceptingBets": status == "open",
            "categories": categories,
            "description": self._shown_description(market),
            "poolYes": 0, "poolNo": 0, "tradingPauseReason": None, "fxFamilyMember": None,
        }  # fmt: skip
        return shown | ({"category": categories[0]} if categories else {})

    def _shown_description(self, market: MadeMarket) -> str | None:
        own = [self._description(market)]
        approved = [body for _, body, status, deleted in market.amendments if status == "approved" and not deleted]
        said = [text for text in (own + approved)[-1:] if text]
        yes, no = market.labels
        return "\n\n".join([*said, *([f"YES: {yes}. NO: {no}."] if market.labels != ("YES", "NO") else [])]) or None


def probabilities(bets: Sequence[Bet]) -> Iterator[float]:
    """The probability after each of the bets, which are in order."""
    for end in range(1, len(bets) + 1):
        yes = sum(bet.amount for bet in bets[:end] if bet.outcome == "YES")
        no = sum(bet.amount for bet in bets[:end] if bet.outcome == "NO")
        yield (PROBABILITY * SUBSIDY + yes) / (SUBSIDY + yes + no)


def uuid(key: bytes, name: str) -> str:
    """The id that is made of a number."""
    digits = [*sha256(key + name.encode()).hexdigest()[:32]]
    digits[12], digits[16] = "8", "a"
    return str(UUID("".join(digits)))


def shortened(label: str) -> str:
    """A label as it is shown."""
    return label if len(label) <= 100 else f"{label[:99]}…"


def wire(time: datetime) -> str:
    """A time as it is published."""
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
