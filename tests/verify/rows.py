"""Rows for a server of the read API: varied markets with many ties, some of them hidden."""

import random
import uuid
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

#: The columns of a market by name: the contract's fields, and `approval` and `is_listed`.
Row: TypeAlias = dict[str, Any]

#: Membership of a public FX family.
FAMILY: Final = {
    "title": "EUR/USD over 1.10", "instrument": "EURUSD", "source": "ECB", "weekStart": "2026-01-05",
    "weekEnd": "2026-01-09", "thresholdValue": 1.1, "direction": "gte",
}  # fmt: skip


def instant(moment: datetime) -> str:
    """A time on the wire; text order is time order."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def demo_rows(count: int, as_of: datetime, seed: int = 1) -> list[Row]:
    """Varied markets: all statuses, many ties, the second and third and others hidden, some in an FX family."""
    draws = random.Random(seed)  # noqa: S311 - no secret
    return [_demo_row(number, draws, as_of) for number in range(count)]


def _demo_row(number: int, draws: random.Random, as_of: datetime) -> Row:
    status = ("open", {1: "closed", 5: "cancelled"}.get(number % 10, "resolved"))[number % 10 in (1, 3, 5, 7)]
    prob = round(draws.uniform(0.05, 0.95), 3)
    ago = timedelta(hours=draws.choice((24, 48, 96))) if status != "open" or number % 15 == 4 else None
    close = as_of - ago if ago else as_of + timedelta(hours=draws.choice((6, 24, 168, 720)))
    active = min(close, as_of - timedelta(hours=draws.choice((1, 2, 5, 30, 100))))
    created = as_of - timedelta(days=draws.choice((10, 12, 20, 40)), milliseconds=draws.choice((0, 0, 250)))
    outcome = {"resolved": draws.choice(("YES", "NO")), "cancelled": "CANCEL"}.get(status)
    fills = [_fill(draws, prob, active - timedelta(hours=3 * back)) for back in range(number % 5)]
    pause = "maintenance" if number % 17 == 3 else None
    return {
        "approval": ("pending", "rejected")[number // 24 % 2] if number % 24 == 1 else "approved",
        "is_listed": number % 24 != 2,
        "id": _uuid(draws),
        "question": f"Wird Frage {number} bis zum Jahresende mit „Ja“ beantwortet? 質問 {number}",
        "status": status,
        "prob": prob,
        "volume": draws.choice((0, 12.5, 100, 100.25, 2500.0)),
        "closeTime": instant(close),
        "resolution": outcome,
        "createdAt": instant(created),
        "resolvedAt": instant(close + timedelta(hours=draws.choice((2, 20)))) if outcome else None,
        "lastActivityAt": instant(active),
        "traderCount": draws.choice((1, 3, 3, 8, 21)),
        "fills24h": sum(fill["timestamp"] > instant(as_of - timedelta(hours=24)) for fill in fills),
        "acceptingBets": status == "open" and close > as_of and pause is None,
        "description": f"Règles du marché {number}." if number % 4 else None,
        "poolYes": round(1000 * (1 - prob), 2),
        "poolNo": round(1000 * prob, 2),
        "tradingPauseReason": pause,
        "fxFamilyMember": FAMILY if number % 24 == 6 else None,
        "orderBook": {"bids": [{"price": 0.01, "amount": 7.5}], "asks": [{"price": prob, "amount": 5}]},
        "recentFills": fills,
        "probHistory": [{"timestamp": instant(created), "prob": 0.5}, {"timestamp": instant(active), "prob": prob}],
    }


def _uuid(draws: random.Random) -> str:
    return str(uuid.UUID(int=draws.getrandbits(128), version=4))


def _fill(draws: random.Random, price: float, moment: datetime) -> Row:
    shown = price if draws.random() < 0.8 else None
    return {"id": _uuid(draws), "amount": 10 * price, "shares": 10, "price": shown, "timestamp": instant(moment)}
