"""Databases with questions: a small one that a reader can compute, one with a case for each rule, a large one."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.questions.maker import CANARY, EARLY_PAYOUT, Maker, making, question_id
from tests.support.sites import rows
from tests.support.sites.rows import market_id

if TYPE_CHECKING:
    from collections.abc import Sequence


def small(path: Path) -> None:
    """Two questions, a market of none and a hidden one: what test_oracle.py computes by hand."""
    with making(path) as make:
        open_, late = (make.market("a", volume=volume, prob=0.25, trader_count=3) for volume in (0.1, 0.2))
        yes = make.market(
            "b", "a", status="resolved", resolution="YES", resolved_at="2026-01-20 00:00:00", prob=1.0, volume=0.3
        )
        off = make.market(status="cancelled", volume=0.0, prob=0.5, resolved_at="2026-01-25 00:00:00")
        single = make.market("b", volume=7.5, slug="single", question="Alone?")
        first = make.question(slug="First", title="Which?", description=" ", created_at="2026-01-02 03:04:05.678901")
        make.member(first, open_, label="Open", position=2, payout=EARLY_PAYOUT)
        make.member(first, late, label=" ", position=None)
        make.member(first, yes, label="Yes", position=-1, payout=1)
        over = make.question(kind="independent", title="Over?", created_at="2026-01-03 00:00:00")
        make.member(over, off, label="Off", payout=0.5)
        make.hidden(single, approval="pending")


def empty(path: Path) -> None:
    """Relations without a row, and three markets."""
    with making(path) as make:
        make.markets(3)


def troubled(path: Path) -> None:
    """A case for each rule, as far as a few markets allow it."""
    with making(path) as make:
        for add in (
            _hidden,
            _bad_columns,
            _ids,
            _memberships,
            _labels,
            _positions,
            _payouts,
            _sums,
            _slugs,
            _states,
            _many,
        ):
            add(make)
        _categories(make)
        make.markets(5, close_time="2026-02-01 00:00:00", created_at="2026-01-05 10:00:00")


def _hidden(make: Maker) -> None:
    for columns in ({"approval": "pending"}, {"approval": "rejected"}, {"approval": None}, {"is_listed": 0}):
        make.hidden(make.market(), **columns)
    make.hidden(make.market(), is_listed=None)
    make.question(make.market(), make.market(), slug="plain", key="1", description="A text\nof <b>two</b> lines \"'&")
    hidden = {"approval": "pending", "question": CANARY}
    shown = make.question(make.market(), title="Some members are hidden")
    make.bad_member(shown, make.market(**hidden))
    make.bad_member(shown, make.fx_member())
    make.bad_member(shown, make.market(is_listed=0, question=CANARY))
    make.hidden(make.market(**hidden))  # none of whose members is public
    make.hidden(make.fx_member())
    make.hidden()


def _bad_columns(make: Maker) -> None:
    bad: Sequence[dict[str, Any]] = (
        {"title": None}, {"title": "x" * 501}, {"title": f"{CANARY}\x07"}, {"is_listed": "t"}, {"is_listed": 2},
        {"description": CANARY + "x" * 100_000}, {"description": f"{CANARY}\x1b"}, {"kind": "Exclusive"},
        {"kind": None},
        {"kind": "single"}, {"kind": " exclusive"}, {"created_at": None}, {"created_at": "soon"}, {"created_at": ""},
        {"created_at": "0001-01-01T00:00:00+01:00"}, {"id": "no-uuid"}, {"id": "x" * 36},
    )  # fmt: skip
    for columns in bad:
        make.hidden(make.market(), **columns)
    for column in ("title", "description"):
        make.spoil(make.hidden(make.market()), column, CANARY.encode() + b"\xff")
    good: Sequence[dict[str, Any]] = (
        {"title": ""}, {"title": "\N{PARTY POPPER}" * 500}, {"title": "tab\tand\r\nlines"}, {"description": "\n \t"},
        {"description": "x" * 100_000}, {"description": ""}, {"kind": "independent"}, {"slug": "a b"},
        {"slug": "snapshot"}, {"created_at": "2026-01-05T11:59:59.9999+02:00"}, {"created_at": "9999-12-31T23:59:59Z"},
        {"created_at": "0001-01-01 00:00:00"},
    )  # fmt: skip
    for columns in good:
        make.question(make.market(), **columns)
    make.spoil(make.question(make.market(), title="A slug that cannot be decoded"), "slug")


def _ids(make: Maker) -> None:
    make.question(make.market(), id="ABCDEF00-0000-4000-A000-00000000ABCD", title="In upper case", slug="Upper-Case")
    upper = make.market(id="ABCDEF01-0000-4000-8000-00000000ABCD")
    make.question(upper, title="A member in upper case")
    for name in ("abcdef02-0000-4000-a000-00000000abcd", "ABCDEF02-0000-4000-A000-00000000ABCD"):
        make.hidden(make.market(), id=name)
    make.hidden(make.market(), id=make.market())
    make.hidden(make.market(), id=upper.lower())
    make.hidden(make.market(), id=make.fx_member())
    own = make.market()
    make.hidden(own, id=own)
    of_hidden = make.market(approval="pending", question=CANARY)
    make.question(make.market(), id=of_hidden, title="Has the id of a market that is hidden")
    twin = "abcdef03-0000-4000-a000-00000000abcd"
    make.question(make.market(), id=twin, title="Its twin is hidden")
    make.hidden(id=twin.upper(), approval="pending")


def _memberships(make: Maker) -> None:
    # One step once: a pair that stands twice counts for none, and then not against another question either.
    twice, other = make.market(), make.market()
    losing = make.question(other, title="A pair stands twice")
    for label in (f"{CANARY} 1", f"{CANARY} 2"):
        make.member(losing, twice, label=label)
    make.question(twice, title="The other question of that pair")
    both = make.market()
    for number in (1, 2):
        name = make.question(make.market(), title=f"Shares a market {number}")
        make.bad_member(name, both)
    shared = make.market()
    for _ in range(2):
        make.hidden(shared)  # without another member it is no question
    # What does not count by an earlier step takes nothing along.
    market = make.market()
    make.question(market, title="Of this and of a hidden one")
    make.hidden(market, approval="pending")
    market = make.market()
    make.question(market, title="Of this and of a quarantined one")
    make.hidden(market, kind="none")
    market = make.market()
    make.question(market, title="Of this, and badly of another")
    make.bad_member(make.question(make.market(), title="That other"), market, label=CANARY * 6)
    market = make.market()
    name = make.question(market, title="A pair of which one is bad")
    make.bad_member(name, market, payout=2)
    make.bad_member("0badc0de-0000-4000-8000-000000000001", make.market())
    name = make.question(make.market(), title="With rows of nothing")
    make.bad_member(name, "0badc0de-0000-4000-8000-000000000002")
    rows.insert(make.database, "question_members", question_id=None, market_id=make.market(), label=CANARY)
    rows.insert(make.database, "question_members", question_id=name, market_id=None, label=CANARY)


def _labels(make: Maker) -> None:
    name = make.question(title="Labels")
    for label in (
        None,
        "",
        " ",
        "\t\n",
        "\N{IDEOGRAPHIC SPACE}",
        "\N{NO-BREAK SPACE}",
        "Same",
        "Same",
        " kept ",
        "a\tb",
    ):
        make.member(name, make.market(question=f"Question for the label {label!r}"), label=label, position=1)
    make.member(name, make.market(question="x" * 2000), label=None)
    make.member(name, make.market(), label="\N{PARTY POPPER}" * 100)
    make.bad_member(name, make.market(), label=CANARY + "x" * 82)
    make.bad_member(name, make.market(), label=f"{CANARY}\x7f")
    market = make.market()
    make.member(name, market)
    spoilt = [CANARY.encode() + b"\xff", market]
    make.database.execute("UPDATE question_members SET label = CAST(? AS TEXT) WHERE market_id = ?", spoilt)


def _positions(make: Maker) -> None:
    name = make.question(title="Positions", kind="independent")
    for position in (3, None, 1, -5, 1, None, 2**53 - 1, 1 - 2**53, 0):
        make.member(name, make.market(prob=0.5), label=f"At {position}", position=position)
    for bad in (2**53, -(2**53), 1.5, "first", b"1"):
        make.bad_member(name, make.market(), position=bad)


def _payouts(make: Maker) -> None:
    name = make.question(title="Payouts", kind="independent")
    over: dict[str, Any] = {"status": "resolved", "resolution": "NO", "resolved_at": "2026-01-20 00:00:00"}
    for payout in (None, 0, 1, 0.25, 1 / 3, -1e-10, 1 + 1e-10, 5e-324):
        make.member(name, make.market(**over), label=f"Pays {payout}", payout=payout)
    make.member(name, make.market(status="cancelled"), label="Cancelled", payout=0.5)
    make.member(name, make.market(status="closed"), label="Closed", payout=EARLY_PAYOUT)
    make.member(name, make.market(), label="Open", payout=EARLY_PAYOUT)
    for bad in (-1e-8, 1.00000001, 2, "x", float("inf"), b"1"):
        make.bad_member(name, make.market(**over), payout=bad)


def _sums(make: Maker) -> None:
    def question(title: str, *values: Any, column: str = "volume") -> None:
        make.question(*(make.market(**{column: value}) for value in values), title=title)

    question("A naive sum loses the small ones", 1e16, 1.0, 1.0, 1.0)
    question("A naive sum of tenths is another", *[0.1] * 10)
    question("Ties go to even", 2.0**53, 1.0)
    question("Just above a tie", 2.0**53, 1.0, 2.0**-40)
    question("The largest of all, and half of nothing", 1.7976931348623157e308, 1.0)
    question("Nothing", 0.0, 0.0)
    question("The smallest of all", 5e-324, 5e-324)
    question("The largest count", 2**53 - 2, 1, column="trader_count")
    infinite = [make.market(volume=1e308) for _ in range(2)]
    make.hidden(*infinite)
    make.hidden(*(make.market(trader_count=count) for count in (2**53 - 1, 1)))
    traded = make.market()
    for number in range(1, 4):
        rows.insert_fill(make.database, 0x500 + number, market_id=traded, created_at="2026-01-31 11:00:00.000000")
    make.question(traded, make.market(trading_pause_reason="Paused"), title="With trades")
    make.question(make.market(trading_pause_reason="Paused"), title="Takes no bets")


def _slugs(make: Maker) -> None:
    slugs = ("Double", "dOUBLE", "of-a-market", "of-a-hidden-one", "A_b-9", "x" * 255, "y" * 256, "", "ä", "a.b")
    for slug in slugs:
        make.question(make.market(), slug=slug, title="Has a slug")
    make.market(slug="of-a-market")
    make.market(slug="only-a-market")
    make.hidden(make.market(), approval="pending", slug="of-a-hidden-one")
    make.hidden(make.market(), kind="bad", slug=f"{CANARY}-quarantined")
    make.question(make.market(), slug="0badc0de-0000-4000-8000-000000000003", title="Its slug is a UUID")
    for key in ("same", "same", " ", ".", "a/b ü", "x" * 201, "7"):
        make.question(make.market(), key=key, title="Has a key")


def _states(make: Maker) -> None:
    def at(day: int | None) -> str | None:
        return None if day is None else f"2026-01-{day:02} 00:00:00"

    mixes: Sequence[Sequence[tuple[str, str | None, int | None]]] = (
        [("open", None, None), ("closed", None, None), ("resolved", "YES", 20), ("cancelled", "CANCEL", 21)],
        [("closed", None, None), ("resolved", "NO", 20), ("cancelled", None, 25)],
        [("resolved", "NO", 20), ("resolved", "YES", 10), ("cancelled", "CANCEL", 25)],
        [("resolved", "NO", None), ("resolved", "YES", 10)],
        [("resolved", None, None), ("cancelled", None, None)],
        [("cancelled", None, 5), ("cancelled", "CANCEL", None)],
        [("resolved", "YES", 7), ("resolved", "YES", 7)],  # a remark
        [("resolved", "YES", 7), ("open", None, None)],  # a remark
        [("open", "YES", 8), ("closed", "NO", 9)],  # outcomes before their time
    )
    for number, mix in enumerate(mixes):
        members = [
            make.market(
                status=status,
                resolution=resolution,
                resolved_at=at(day),
                close_time=f"2026-0{1 + place}-0{1 + number} 00:00:00",
                last_activity_at=f"2026-01-1{(number + place) % 10} 00:00:00.5",
            )
            for place, (status, resolution, day) in enumerate(mix)
        ]
        make.question(*members, title=f"States {number}")


def _many(make: Maker) -> None:
    """More than ten members, of all ranks, with ties."""
    name = make.question(title="Many")
    for place in range(24):
        status = ("open", "resolved", "closed", "cancelled")[place % 4]
        resolution = ("YES" if place % 8 == 1 else "NO") if status == "resolved" else None
        market = make.market(status=status, resolution=resolution, prob=(place % 3) / 4)
        make.member(name, market, label=f"Member {place}", position=None if place % 5 == 0 else -place)
    open_ = make.question(title="Many open ones")
    for place in range(12):
        make.member(open_, make.market(prob=(place % 5) / 7), label=f"Open {place}", position=place % 2)
    make.member(open_, make.market(status="resolved", resolution="YES", prob=1.0), label="Has no place")


def _categories(make: Maker) -> None:
    make.question(make.market("weather", "b"), make.market("b"), make.market("a"), title="Most frequent first")
    make.question(make.market("b", "weather"), make.market("weather"), make.market("a", "b"), title="Ties by name")
    make.question(make.market("Zürich"), make.market("a"), make.market("Z"), make.market("é"), title="By code point")
    make.question(make.market(), make.market("weather"), title="One has none")
    make.question(*(make.market(*(f"c{20 * half + place}" for place in range(20))) for half in (0, 1)), title="No cap")
    make.question(make.market(" weather "), make.market("WEATHER"), title="Other spellings")
    make.market("weather")


def large(path: Path) -> None:
    """A question with a thousand members, the most of all, and one with a member more."""
    with making(path) as make:
        make.question(*make.markets(1000), title="The most members of all")
        make.hidden(*make.markets(1001))
        short = make.markets(1001)
        rows.insert(make.database, "fx_members", **{"market_id": short[0], **rows.FX_MEMBER, "is_public": 1})
        make.question(*short, title="One of its members is in a family")


def ids_of_small() -> tuple[list[str], list[str]]:
    """The markets and questions of `small`, in the order in which they were made."""
    return [market_id(0x101 + at) for at in range(5)], [question_id(1 + at) for at in range(2)]
