"""Made-up databases with questions, good and bad, by a seed; and what operators change between two builds."""

import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.questions.maker import Maker, making

_AT: Final = tuple(f"2026-01-0{day} 00:00:00" for day in range(1, 6))
_LABELS: Final = (None, " ", "Yes", "No", "x" * 100, "x" * 101, "é\N{PARTY POPPER}")


def random_site(path: Path, seed: int, markets: int = 60) -> None:
    """Made-up rows, good and bad, with many ties."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    with making(path) as make:
        made = [_random_market(make, draw) for _ in range(markets)]
        for _ in range(markets // 3):
            _random_question(make, draw, made)
        make.question(*(_random_market(make, draw) for _ in range(14)), title="Has more members than a row shows")


def edit(database: sqlite3.Connection, draw: random.Random) -> str:
    """Change something, as operators do between two builds; returns the statement."""
    change = draw.choice((
        "UPDATE questions SET is_listed = 1 - is_listed WHERE id = {question} AND is_listed IN (0, 1)",
        "UPDATE questions SET title = title || '!' WHERE id = {question}",
        "UPDATE questions SET slug = 'slug-{number}' WHERE id = {question}",
        "UPDATE questions SET kind = 'bad' WHERE id = {question}",
        "UPDATE questions SET kind = 'exclusive', approval = 'approved', is_listed = 1 WHERE id = {question}",
        "DELETE FROM question_members WHERE market_id = {market}",
        "UPDATE question_members SET question_id = {question} WHERE market_id = {market}",
        "INSERT INTO question_members VALUES ({question}, {market}, 'Joined', 1, NULL)",
        "UPDATE question_members SET label = 'Label {number}' WHERE market_id = {market}",
        "UPDATE markets SET approval = 'pending' WHERE id = {market}",
        "UPDATE markets SET approval = 'approved', is_listed = 1 WHERE id = {market}",
        "UPDATE markets SET status = 'resolved', resolution = 'YES', resolved_at = created_at WHERE id = {market}",
        "UPDATE markets SET volume = volume + 1.5, prob = 0.75 WHERE id = {market}",
        "DELETE FROM questions WHERE id = {question}",
    ))  # fmt: skip
    picks: dict[str, object] = {"number": draw.randrange(9)}
    for name, relation in (("question", "questions"), ("market", "markets")):
        ids = [row[0] for row in database.execute(f"SELECT id FROM {relation} ORDER BY id")]
        picks[name] = f"'{draw.choice(ids)}'" if ids else "NULL"
    statement = change.format(**picks)
    database.execute(statement)
    return statement


def _random_market(make: Maker, draw: random.Random) -> str:
    if draw.random() < 0.05:
        return make.fx_member()
    status = draw.choice(("open", "open", "open", "closed", "resolved", "resolved", "cancelled"))
    columns: dict[str, Any] = {
        "status": status,
        "approval": draw.choice(("approved",) * 12 + ("pending",)),
        "resolution": draw.choice(("YES", "NO", None)) if status == "resolved" else None,
        "resolved_at": draw.choice((*_AT, None)) if status in {"resolved", "cancelled"} else None,
        "prob": draw.choice((0.0, 0.1, 0.5, 0.5, 1.0, round(draw.random(), 3))),
        "volume": draw.choice((0.0, 0.1, 0.2, 1e16, 1.0, round(draw.random() * 1000, 3))),
        "trader_count": draw.choice((0, 1, 5)),
        "close_time": draw.choice((*_AT, "2026-03-01 00:00:00", "2046-01-01 00:00:00")),
        "created_at": draw.choice(_AT),
        "last_activity_at": draw.choice(_AT),
    }
    if columns["approval"] != "approved":
        columns["question"] = make.canary()
    return make.market(*draw.sample(("a", "b", "weather", "Zürich"), draw.randrange(4)), **columns)


def _random_question(make: Maker, draw: random.Random, markets: Sequence[str]) -> None:
    columns: dict[str, Any] = {
        "kind": draw.choice(("exclusive", "independent")),
        "slug": draw.choice((None, f"slug-{draw.randrange(9)}", f"SLUG-{draw.randrange(9)}")),
        "created_at": draw.choice(_AT),
        "description": draw.choice((None, "", "Some rules.")),
    }
    bad = draw.choice(({},) * 8 + ({"approval": "pending"}, {"is_listed": 0}, {"kind": "bad"}, {"title": "x" * 501}))
    name = make.hidden(created_at=columns["created_at"], **bad) if bad else make.question(**columns)
    for market in draw.choices(markets, k=draw.choice((0, 1, 2, 3, 3, 4, 14))):
        # A market of few questions, or nearly all would be in several and so in none.
        taken = make.database.execute("SELECT 1 FROM question_members WHERE market_id = ?", [market]).fetchone()
        if taken and draw.random() < 0.8:
            continue
        label = make.canary() if bad else draw.choice(_LABELS)
        payout = draw.choice((None, 0, 1, 0.5, 1.5))
        status = make.database.execute("SELECT status FROM markets WHERE id = ?", [market]).fetchone()[0]
        payout = make.early_payout() if payout is not None and status in {"open", "closed"} else payout
        make.member(name, market, label=label, position=draw.choice((None, 0, 1, 2, 2**53)), payout=payout)
