"""A build whose content changed more than markets do, as if a view broke, is refused; what is ordinary never is."""

import re
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import contract, keys
from generator.builder.comparison import NOT_READ, Comparison, Interval, RowsRead
from generator.builder.content_guards import LEAST, ContentGuards
from generator.config.settings import Config
from generator.config.shape import shaping
from generator.demo.database import seed
from generator.errors import BUILD_GUARDS, GuardError
from generator.markets import detail, row_validation
from generator.markets.detail import Book, Detail, Level
from generator.markets.fills import Fill, TradeCounter, Trades
from generator.markets.row_validation import ExtendedFields
from generator.progress import SILENT
from tests.builder.test_part_staging import QUICK as OF_DETAILS
from tests.support import limits
from tests.support.campaigns import rounds
from tests.support.commands import run
from tests.support.sites import replay
from tests.support.sites.builds import AS_OF, NOW, build_now, files, make_config
from tests.support.sites.rows import (
    FX_MEMBER,
    fill_id,
    insert_market,
    insert_point,
    market_id,
    market_row,
    public_market,
)

#: What has no part in details takes most of a build's time.
QUICK: Final[dict[str, Any]] = {**OF_DETAILS, "variant": "extended", "search": "off", "categories": "crypto"}
SETTINGS: Final = [f"--set={key.replace('__', '.')}={value}" for key, value in QUICK.items()]
MARKETS: Final = 60
#: From an hour ago until now.
PAST: Final = "2026-01-31 11:30:00.000000"
#: Closing times that are an hour and two hours later than usual.
HOURS_LATER: Final = ("2046-07-01 00:59:59.000000", "2046-07-01 01:59:59.000000")
INTERVAL: Final = Interval("2026-01-31T11:00:00.000Z", NOW, 50)

# ── views that break ──────────────────────────────────────────────────────────────────────────────────────────────

GONE: Final = r"would disappear, more than guards\.max_shrink \(0\.2\) allows"
MOVED: Final = r"moved by more than 30 points, more than guards\.max_jumps \(0\.1\) allows"
MIRRORED: Final = {"prob": "1 - prob"}
FEW: Final = r"\(allowed are 5, or 5%\)"
SWAPPED: Final = "CASE resolution WHEN 'YES' THEN 'NO' WHEN 'NO' THEN 'YES' ELSE resolution END"
CLOSED: Final = "CASE status WHEN 'open' THEN 'closed' ELSE status END"
LATER: Final = "strftime('%Y-%m-%d %H:%M:%f000', close_time, '+2 hours')"
EARLIER: Final = "strftime('%Y-%m-%d %H:%M:%f000', created_at, '-2 hours')"
TWICE: Final = (
    "1 UNION ALL SELECT substr(id, 1, 34) || 'ff', market_id, amount, shares, price, created_at, '', '' FROM all_fills"
)
#: What breaks, by its view: the rows that it still shows and the columns that it replaces; the refusal; the option.
BROKEN: Final = {
    "fills": ("0", {}, rf"([\d,]+) of \1 recent fills {GONE}", "shrink"),
    "probabilities": ("0", {}, rf"([\d,]+) of \1 points {GONE}", "shrink"),
    "fx_members": ("0", {}, r"(\d+) of \1 FX members would leave their families, and so", "shrink"),
    "market_categories": ("0", {}, r"(\d+) of \1 categorised markets would have no category any more, more", "shrink"),
    "orders": ("0", {}, r"all [\d,]+ order levels of open markets would disappear", "shrink"),
    "markets": ("1", MIRRORED, rf"\d+ of \d+ open markets {MOVED}", "jumps"),
    "probabilities mirrored": ("1", MIRRORED, rf"the newest points of \d+ of \d+ open markets {MOVED}", "jumps"),
    "markets reworded": ("1", {"question": "question || '!'"}, r"(\d+) of \1 questions changed, more", "questions"),
    "markets swapped": ("1", {"resolution": SWAPPED}, rf"\d+ of \d+ resolved markets have .*{FEW}", "outcomes"),
    "markets closed": ("1", {"status": CLOSED}, r"\d+ of \d+ open markets are no longer open, although", "closed"),
    "markets in cents": ("1", {"volume": "volume * 100"}, rf"the volumes of \d+ of \d+ markets .*{FEW}", "volumes"),
    "markets in another zone": ("1", {"close_time": LATER}, r"the closing times of (\d+) of \1 .* by 2:00:00", "times"),
    "fills in cents": ("1", {"amount": "amount * 100"}, rf"[\d,]+ of [\d,]+ recent fills have another.*{FEW}", "fills"),
    "fills in another zone": ("1", {"created_at": EARLIER}, rf"([\d,]+) of \1 recent fills have .*{FEW}", "fills"),
    "fills doubled": (TWICE, {}, r"[\d,]+ fills from before the last build are new, beside", "fills"),
}  # fmt: skip


def relation_of(case: str) -> str:
    return case.partition(" ")[0]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of views, and the build of it."""
    folder = tmp_path_factory.mktemp("published")
    seed(folder / "markets.db", as_of=AS_OF, markets=MARKETS)
    with closing(sqlite3.connect(folder / "markets.db")) as database:
        for relation in {relation_of(case) for case in BROKEN}:
            database.execute(f"ALTER TABLE {relation} RENAME TO all_{relation}")
            show(database, relation)
    build_now(make_config(folder, **QUICK))
    return folder


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    (tmp_path / "config.yaml").write_text(f"source: {{url: 'sqlite:///{tmp_path}/markets.db'}}\n", "utf-8")
    return tmp_path


def show(database: sqlite3.Connection, relation: str, where: str = "1", **replaced: str) -> None:
    """Have a view show these rows of its table, with some columns replaced."""
    names = [name for _, name, *_ in database.execute(f"PRAGMA table_info(all_{relation})")]
    columns = ", ".join(f"{replaced.get(name, name)} AS {name}" for name in names)
    database.execute(f"DROP VIEW IF EXISTS {relation}")
    database.execute(f"CREATE VIEW {relation} AS SELECT {columns} FROM all_{relation} WHERE {where}")
    database.commit()


def break_view(folder: Path, case: str) -> None:
    where, replaced, *_ = BROKEN[case]
    with closing(sqlite3.connect(folder / "markets.db")) as database:
        show(database, relation_of(case), where, **replaced)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("case", BROKEN)
def test_a_view_that_breaks_is_refused_with_three_examples_unless_its_own_option_lets_it_through(
    folder: Path, case: str
) -> None:
    *_, sentence, option = BROKEN[case]
    break_view(folder, case)
    before = files(folder / "output", "")
    with pytest.raises(GuardError) as caught:
        build_now(
            make_config(folder, **QUICK), AS_OF, progress=SILENT, **{name: name != option for name in BUILD_GUARDS}
        )
    sentence = (
        rf"{sentence}.*; nothing was replaced\. Correct the database or its views or, if .* right, pass "
        rf"--accept {option}\. Such as:(\n  market [0-9a-f-]{{36}}.* → .*){{3}}"
    )
    assert re.fullmatch(sentence, str(caught.value)), caught.value
    assert files(folder / "output", "") == before
    build_now(make_config(folder, **QUICK), AS_OF, progress=SILENT, **{option: True})
    assert files(folder / "output", "") != before


def command(folder: Path, *words: str) -> tuple[int, str]:
    """Run it; return its exit code and what it says."""
    done = run(*words, *SETTINGS, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def test_the_options_of_the_command_line_let_it_through(folder: Path) -> None:
    break_view(folder, "fills")
    with closing(sqlite3.connect(folder / "markets.db")) as database:
        show(database, "markets", **MIRRORED, question="question || '!'")
    assert command(folder, "build", "--as-of", NOW)[0] == 3
    assert command(folder, "build", "--as-of", NOW, "--accept=shrink", "--accept=jumps", "--allow-questions")[0] == 0
    assert command(folder, "build", "--accept=haste")[0] == 2


def test_dry_runs_say_the_same_as_the_build(folder: Path) -> None:
    break_view(folder, "markets")
    _, refusal = command(folder, "build", "--as-of", NOW)
    refusal = refusal.removeprefix("error: ")
    assert refusal.count("\n") == 4
    code, said = command(
        folder, "rebuild", "--dry-run", "--as-of", NOW, "--set=publish.target=./store", "--accept=demo"
    )
    assert (code, said.endswith(f"error: {refusal}")) == (3, True), said
    code, said = command(folder, "plan", "--as-of", NOW)
    assert (code, f"`public-markets build` would refuse: {refusal}" in said) == (0, True), said
    code, said = command(folder, "check", "--accept=demo")
    assert (code, f"error: {refusal}" in said) == (1, True), said


@pytest.mark.campaign
def test_thirty_days_of_trading_are_never_refused(tmp_path: Path) -> None:
    days = rounds(3, 30)
    seed(tmp_path / "markets.db", as_of=AS_OF, markets=rounds(40, 60))
    replay.prepare(tmp_path / "markets.db", AS_OF)
    fills = list[int]()
    for day in range(30 - days, 31):
        now = AS_OF - timedelta(days=30 - day)
        replay.set_clock(tmp_path / "markets.db", now)
        with limits.on_one_processor():
            build_now(make_config(tmp_path, **QUICK), now)
        fills.append(b"".join(files(tmp_path / "output", keys.DETAILS).values()).count(b'"shares"'))
    assert len(fills) == days + 1
    assert fills == sorted(fills)
    assert fills[-1] > fills[0] > 0, "there was trading"


def test_a_build_that_thins_a_history_anew_is_not_refused(database: sqlite3.Connection, tmp_path: Path) -> None:
    insert_market(database)
    for minute in range(10):
        insert_point(database, f"2026-01-01 00:{minute:02}:00.000000")
    config = make_config(tmp_path, **QUICK, detail__history_points=10)
    build_now(config)
    insert_point(database, "2026-01-30 00:00:00.000000")
    build_now(config)
    assert detail.row_counts((tmp_path / "output" / keys.detail(market_id(1))).read_bytes()).points == 3
    database.execute("DELETE FROM probabilities WHERE recorded_at < '2026-01-30'")
    with pytest.raises(GuardError, match="2 of 3 points would disappear"):
        build_now(config)


# ── what is compared, and what is not ─────────────────────────────────────────────────────────────────────────────


def body(
    number: int = 1, levels: int = 0, fills: int = 0, points: int = 0, *, newest: float = 0.5, **columns: Any
) -> bytes:
    """The detail of a market with so many rows, the last point with the probability `newest`."""
    fx, extended = columns.pop("fx", None), columns.pop("extended", None)
    probs = [0.5] * (points - 1) + [newest] * (points > 0)
    return Detail(
        market=row_validation.market(market_row(number, **columns), fx=fx, fills24h=0, as_of=NOW, extended=extended),
        order_book=Book(bids=[Level(0.5 - level / 1000, 1.5) for level in range(levels)], asks=[]),
        recent_fills=[Fill(id=fill_id(at), amount=1.0, shares=2.0, price=None, timestamp=NOW) for at in range(fills)],
        points=[(f"2026-01-{1 + at // 24:02}T{at % 24:02}:00:00.000Z", prob) for at, prob in enumerate(probs)],
    ).body()


def refusals(
    *pairs: tuple[bytes | None, bytes],
    unchanged: Iterable[bytes] = (),
    rows: RowsRead = NOT_READ,
    last: Config | None = None,
    now: Config | None = None,
    accept: str = "",
) -> list[str]:
    """What the guards say of details before and after, of whose `rows` this was read, among others that are unchanged.

    `last` are former settings.
    """
    found = Comparison()
    for before, after in pairs:
        found.compare(before, after, INTERVAL, rows)
    bodies = {market_id(number): one for number, one in enumerate(unchanged, 1000)}
    status = ("closed", "open")
    markets = [public_market(n, status=status[b'"open"' in one]) for n, one in enumerate(bodies.values(), 1000)]
    guards = ContentGuards(now or Config(), shaping(last or Config()), found, markets, bodies.__getitem__)
    return [*guards.refusals({accept})]


def test_up_to_the_limit_fills_and_points_may_go_whatever_comes_elsewhere() -> None:
    more = body(2), body(2, fills=50, points=50)
    for noun, name in (("recent fills", "fills"), ("points", "points")):
        full = body(**{name: 50})
        assert refusals((full, body(**{name: 40})), more) == []
        (refusal,) = refusals((full, body(**{name: 39})), more)
        assert refusal.startswith(f"11 of 50 {noun} would disappear")
        assert refusal.endswith(f"Such as:\n  market {market_id(1)} (Question 1?): 50 → 39 {name}")


def test_kept_details_count_only_as_far_as_they_matter() -> None:
    loss = body(fills=5, points=5), body(points=5)
    kept = [body(number, fills=5) for number in range(10, 14)]
    assert refusals(loss, unchanged=kept) == []
    assert refusals(loss, unchanged=kept[1:])[0].startswith("5 of 20 recent fills would disappear")


def test_fewer_than_twenty_open_markets_may_all_jump() -> None:
    def moved(number: int, by: float = 0.31, **columns: Any) -> tuple[bytes, bytes]:
        return body(number, prob=0.1, **columns), body(number, prob=0.1 + by, **columns)

    jumps = [moved(number) for number in range(LEAST)]
    others = [body(number) for number in range(LEAST, 40)]
    assert refusals(*jumps[1:]) == []
    assert refusals(*jumps)[0].startswith("20 of 20 open markets moved by more than 30 points, more than guards.max_ju")
    assert refusals(*jumps[:2], unchanged=others[:18]) == [], "a tenth is no more than a tenth"
    assert refusals(*jumps[:3], unchanged=others[:18])[0].startswith("3 of 21 open markets")
    assert refusals(*(moved(number, by=0.3) for number in range(LEAST))) == [], "30 points are not more than 30 points"
    assert refusals(*(moved(number, status="closed") for number in range(LEAST))) == []
    settled = [
        (body(number, prob=0.1, close_time=PAST), body(number, prob=1, status="closed", close_time=PAST))
        for number in range(LEAST)
    ]
    assert refusals(*settled) == [], "the outcome of a market is no jump"


def test_the_newest_points_of_fewer_than_twenty_histories_may_all_jump() -> None:
    jumps = [(body(number, points=3, newest=0.1), body(number, points=4, newest=0.9)) for number in range(LEAST)]
    silent, traded = ([body(number, points=points) for number in range(180)] for points in (0, 1))
    assert refusals(*jumps[1:], unchanged=silent) == []
    (refusal,) = refusals(*jumps, unchanged=silent)
    assert refusal.startswith("the newest points of 20 of 20 open markets moved by more than 30 points")
    assert refusals(*jumps, unchanged=traded) == []
    assert refusals(*jumps, unchanged=traded[1:])[0].startswith("the newest points of 20 of 199 open markets")


def test_order_levels_are_gone_only_if_none_is_left_of_at_least_twenty() -> None:
    gone = body(1, levels=12), body(1)
    more = body(2, levels=8), body(2)
    assert refusals(gone, more)[0].startswith("all 20 order levels of open markets would disappear")
    assert refusals(gone, (body(2, levels=7), body(2))) == [], "they are 19"
    assert refusals(gone, more, (None, body(3, levels=1))) == [], "a new market has one"
    assert refusals(gone, more, (body(3), body(3, levels=1))) == [], "another market got one"
    assert refusals(gone, more, unchanged=[body(4, levels=1)]) == [], "a kept market has one"
    assert refusals(gone, more, unchanged=[body(4, levels=1, status="closed")]) != [], "a closed one says nothing"
    assert refusals(gone, (more[0], body(2, status="closed"))) == [], "a market that closed loses its order book"


def test_a_fifth_of_the_markets_may_leave_their_families_or_lose_their_categories() -> None:
    some = ExtendedFields(None, ["Weather", "Europe"])
    extended = Config.model_validate({"variant": "extended"})
    for columns, noun, lost in (
        ({"fx": FX_MEMBER}, "FX members", f"{FX_MEMBER['title']} → no family"),
        ({"extended": some}, "categorised markets", "Weather, Europe → no category"),
    ):
        gone = [(body(number, **columns), body(number, extended=ExtendedFields(None, []))) for number in range(2)]
        kept = [(body(number, **columns), body(number, question="?", **columns)) for number in range(2, 10)]
        assert refusals(*gone, *kept, last=extended, now=extended) == []
        (refusal,) = refusals(*gone, *kept[1:], last=extended, now=extended)
        assert refusal.startswith(f"2 of 9 {noun} would ")
        assert refusal.endswith(f"market {market_id(1)} (Question 1?): {lost}")
        come = [(after, before) for before, after in gone]
        assert refusals(*come, *kept[1:], *gone[:1], last=extended, now=extended) == []
        changed = refusals(*gone, last=Config(), now=extended)
        assert len(changed) == (noun == "FX members"), "another variant says nothing about categories"


def test_of_a_long_question_that_part_is_shown_in_which_it_changed() -> None:
    long = "A very long beginning that nobody has changed for years, and then: "
    edits = [(body(number, question=f"{long}No?"), body(number, question=f"{long}Yes?")) for number in range(LEAST)]
    (refusal,) = refusals(*edits)
    first = refusal.splitlines()[1]
    assert first == f"  market {market_id(0)}: …{long[-40:]}No? → …{long[-40:]}Yes?"


def test_no_text_of_a_market_controls_the_terminal() -> None:
    texts = ("A\nline?", "Another\nline?")
    edits = [[body(number, question=text) for text in texts] for number in range(LEAST)]
    (refusal,) = refusals(*((before, after) for before, after in edits))
    assert refusal.count("\n") == 3
    assert all(map(str.isprintable, refusal.splitlines()))


def test_the_three_that_differ_most_are_named_in_whatever_order_they_come() -> None:
    pairs = [(body(number, fills=50), body(number, fills=40 - number)) for number in range(9)]
    (refusal,) = refusals(*pairs)
    assert re.findall(r"market (\S+)", refusal) == [market_id(number) for number in (8, 7, 6)]
    assert refusals(*reversed(pairs)) == [refusal]
    whole, parts = Comparison(), [Comparison(), Comparison()]
    for number, pair in enumerate(pairs):
        whole.compare(*pair, INTERVAL)
        parts[number % 2].compare(*pair, INTERVAL)
    parts[1].add(parts[0])
    assert parts[1] == whole


# ── jumps and trades ──────────────────────────────────────────────────────────────────────────────────────────────


def traded(*prices: float | None, older: int = 0) -> RowsRead:
    """Trades since the last build at these prices, among older ones."""
    counter = TradeCounter(INTERVAL.since, 100)
    counter.add((NOW, fill_id(number), 1.0, 2.0, price) for number, price in enumerate(prices))
    counter.add((INTERVAL.since, fill_id(number), 1.0, 2.0, 0.5) for number in range(older))
    return RowsRead(counter.trades())


@pytest.mark.parametrize(
    ("then", "now", "prices", "is_explained"),
    [
        (0.5, 0.95, [0.85], True),
        (0.5, 0.95, [0.84], False),
        (0.3, 0.8, [0.99], True),
        (0.05, 0.45, [0.36], True),
        (0.95, 0.05, [0.95, 0.94], False),
        (0.8, 0.45, [0.5], True),
        (0.8, 0.45, [0.51], False),
        (0.95, 0.55, [0.64], True),
        (0.95, 0.55, [], False),
        (0.95, 0.55, [None], False),
    ],
)
def test_a_jump_counts_unless_a_trade_since_was_near_where_it_led(
    then: float, now: float, prices: list[float | None], *, is_explained: bool
) -> None:
    jumps = [(body(number, prob=then), body(number, prob=now)) for number in range(LEAST)]
    assert bool(refusals(*jumps, rows=traded(*prices))) != is_explained
    ends = [(body(n, points=2, newest=then, prob=then), body(n, points=2, newest=now, prob=then)) for n in range(LEAST)]
    assert bool(refusals(*ends, rows=traded(*prices))) != is_explained


def test_trades_that_arrive_late_or_in_batches_explain_a_jump_too() -> None:
    jumps = [
        (with_fills(number, prob=0.5), with_fills(number, FILL._replace(price=0.9), prob=0.9)) for number in range(20)
    ]
    assert refusals(*jumps) == [], "the fill was not shown before, whenever it was made"
    old = FILL._replace(price=0.9)
    assert refusals(*((with_fills(n, old, prob=0.5), with_fills(n, old, prob=0.9)) for n in range(20))) != []
    counter = TradeCounter(INTERVAL.since, 100)
    for price in (0.9, 0.1, None):
        counter.add([(NOW, fill_id(1), 1.0, 2.0, price)])
    assert counter.trades() == Trades(has_newer=True, lowest=0.1, highest=0.9)


def test_a_point_that_follows_its_market_is_no_jump() -> None:
    late = [(body(n, points=1, newest=0.5, prob=0.95), body(n, points=2, newest=0.9, prob=0.95)) for n in range(LEAST)]
    assert refusals(*late) == []
    assert refusals(*((before, body(n, points=2, newest=0.05, prob=0.95)) for n, (before, _) in enumerate(late))) != []


def test_five_probabilities_mirrored_are_too_many_on_a_small_site() -> None:
    mirrored = [(body(number, prob=0.38), body(number, prob=0.61)) for number in range(5)]
    others = [body(number) for number in range(5, 40)]
    (refusal,) = refusals(*mirrored, unchanged=others[:14])
    assert refusal.startswith("the probability of 5 open markets is 1 minus what it was, and no trade explains it")
    assert refusals(*mirrored, unchanged=others[:14], accept="jumps") == []
    assert refusals(*mirrored, unchanged=others[:15]) == [], "they are twenty, so jumps are counted"
    assert refusals(*mirrored[1:]) == []
    assert refusals(*mirrored, rows=traded(0.6)) == []
    assert refusals(*mirrored, rows=traded(0.38)) != []
    near = [(body(number, prob=0.4), body(number, prob=0.6)) for number in range(5)]
    assert refusals(*near) == [], "what is near the middle moves across it"
    ends = [(body(number, points=2, newest=0.9), body(number, points=3, newest=0.1)) for number in range(5)]
    (refusal,) = refusals(*ends)
    assert refusal.startswith("the newest point of 5 open markets is 1 minus what it was")


# ── what never should change ──────────────────────────────────────────────────────────────────────────────────────


def test_five_outcomes_or_a_twentieth_of_them_may_be_corrected() -> None:
    def resolved(number: int, outcome: str, status: str = "resolved") -> bytes:
        return body(number, status=status, resolution=outcome, resolved_at=PAST, close_time=PAST)

    swapped = [(resolved(number, "YES"), resolved(number, "NO")) for number in range(6)]
    kept = [(resolved(number, "YES"), resolved(number, "YES")) for number in range(6, 120)]
    assert refusals(*swapped[:5]) == []
    assert refusals(*swapped)[0].startswith("6 of 6 resolved markets have another outcome than before")
    assert refusals(*swapped, *kept) == [], "a twentieth of them"
    assert refusals(*swapped, *kept[1:]) != []
    settled = [(resolved(number, "YES", "closed"), resolved(number, "NO")) for number in range(6)]
    assert refusals(*settled) == [], "they were not resolved before"
    late = [(body(number, status="resolved", close_time=PAST), resolved(number, "NO")) for number in range(6)]
    assert refusals(*late) == [], "they had no outcome before"
    gone = refusals(*((after, before) for before, after in late))[0]
    assert gone.count("NO → no outcome") == 3


def test_volumes_change_only_with_trades_or_activity() -> None:
    def grown(number: int, **columns: Any) -> tuple[bytes, bytes]:
        return body(number), body(number, volume=10_000.0, **columns)

    cents = [grown(number) for number in range(6)]
    assert refusals(*cents[:5]) == []
    assert refusals(*cents)[0].startswith("the volumes of 6 of 6 markets changed without a trade or other activity")
    assert refusals(*cents, unchanged=[body(number) for number in range(6, 120)]) == []
    assert refusals(*cents, rows=traded(None)) == [], "a trade needs no price"
    assert refusals(*(grown(number, last_activity_at="2026-01-31 11:00:00.000000") for number in range(6))) == []
    sums = [(body(number, volume=0.3), body(number, volume=0.1 + 0.2)) for number in range(6)]
    assert refusals(*sums) == [], "terms of a sum may come in any order"


def test_fills_that_were_shown_stay_as_they_were() -> None:
    def changed(**values: Any) -> list[tuple[bytes, bytes]]:
        return [(with_fills(number, FILL), with_fills(number, FILL._replace(**values))) for number in range(6)]

    for values in ({"amount": 100.0}, {"shares": 3.0}, {"price": 0.6}, {"price": None}, {"timestamp": INTERVAL.since}):
        pairs = changed(**values)
        assert refusals(*pairs[:5]) == []
        assert refusals(*pairs)[0].startswith(
            "6 of 6 recent fills have another price, amount, number of shares or time"
        )
        assert refusals(*pairs, unchanged=[body(10, fills=50), body(11, fills=50), body(12, fills=14)]) == []
    assert refusals(*changed(id=fill_id(2))) == [], "another fill has other values"
    same = [(with_fills(number, fill), with_fills(number, fill)) for number in range(10, 130) for fill in [FILL]]
    assert refusals(*changed(amount=3.0), *same) == [], "a twentieth of them"
    told = f": fill {fill_id(1)[:8]}, 1 for 2 shares at 0.5, {NOW} → 1 for 3 shares at no price, {NOW}"
    assert refusals(*changed(shares=3.0, price=None))[0].count(told) == 3


FILL: Final = Fill(id=fill_id(1), amount=1.0, shares=2.0, price=0.5, timestamp=NOW)


def with_fills(number: int, *fills: Fill, **columns: Any) -> bytes:
    shown = row_validation.market(market_row(number, **columns), fx=None, fills24h=0, as_of=NOW, extended=None)
    return Detail(market=shown, order_book=Book([], []), recent_fills=[*fills], points=[]).body()


def test_a_fifth_more_fills_may_come_late_where_all_were_shown() -> None:
    pair = body(fills=30), body(fills=36)
    assert refusals(pair, rows=traded(older=36)) == []
    (refusal,) = refusals(pair, rows=traded(older=37))
    assert refusal.startswith("7 fills from before the last build are new, beside 30, more")
    assert refusals(pair, rows=traded(older=37), unchanged=[body(2, fills=5)]) == []
    assert refusals(pair, rows=traded(*[0.5] * 9, older=30)) == [], "those are new"
    full = body(fills=50), body(fills=50)
    assert refusals(full, rows=traded(older=90)) == [], "it did not show all of its fills before"
    assert refusals((body(fills=5), body(fills=10)), rows=traded(older=10)) == [], "they are no more than five"
    assert refusals((body(), body(fills=50)), rows=traded(older=90)) == [], "it showed none before"
    other = Config.model_validate({"detail": {"recent_fills": 40}})
    assert refusals(pair, rows=traded(older=37), last=other) == [], "it could not show as many before"
    assert refusals(pair, rows=traded(older=37), unchanged=[body(2, fills=50)]) != [], "nor did that one"


@pytest.mark.parametrize(
    ("option", "columns", "refusal"),
    [
        ("questions", {"question": "?"}, "20 of 39 questions changed, more than half; nothing was"),
        ("closed", {"status": "closed"}, "20 of 39 open markets are no longer open, although"),
        (
            "times",
            {"close_time": HOURS_LATER[1]},
            "the closing times of 20 of 39 markets moved by 2:00:00, more than half",
        ),
    ],
)
def test_half_of_the_markets_may_change_alike(option: str, columns: dict[str, Any], refusal: str) -> None:
    changed = [(body(number), body(number, **columns)) for number in range(LEAST)]
    kept = [body(number) for number in range(LEAST, 40)]
    assert refusals(*changed[1:]) == []
    assert refusals(*changed, unchanged=kept) == []
    assert refusals(*changed, unchanged=kept[1:])[0].startswith(refusal)
    assert refusals(*changed, accept=option) == []


def test_closing_times_that_moved_by_an_hour_more_in_summer_moved_alike() -> None:
    apart = [(body(number), body(number, close_time=f"2046-07-01 01:{number}:00.000000")) for number in range(10, 40)]
    assert refusals(*apart) == [], "each moved by another time"
    summer = [(body(n), body(n, close_time=time)) for time in HOURS_LATER for n in range(LEAST)]
    told = refusals(*summer)[0]
    assert told.startswith("the closing times of 40 of 40 markets moved by 1:00:00, or an hour more")
    assert "2046-06-30 23:59:59 → 2046-07-01 01:59:59" in told
    back = refusals(*((after, before) for before, after in summer))[0]
    assert "moved back by 1:00:00, or an hour more, more than half of them" in back


def test_a_setting_that_changed_how_many_rows_details_show_makes_their_numbers_say_nothing() -> None:
    before, after = body(levels=20, fills=50, points=500), body()
    assert len(refusals((before, after))) == 3
    for name, value in (("recent_fills", 10), ("history_points", 10), ("order_book", False)):
        last = Config.model_validate({"detail": {name: value}})
        assert len(refusals((before, after), last=last)) == 2


def test_a_history_that_is_thinned_anew_may_show_fewer_points() -> None:
    pair = body(points=500), body(points=200)
    assert refusals(pair, rows=RowsRead(is_thinned=True)) == []
    assert refusals(pair) != []


def test_a_detail_that_is_damaged_or_new_is_not_compared() -> None:
    after = body(prob=0.9, question="Other?")
    found = Comparison()
    local = body().replace(b'"closeTime":"2046-06-30T23:59:59.000Z"', b'"closeTime":"2046-06-30T23:59:59.000"')
    for before in (None, b"", b"{}", body(fills=50)[:300], local, contract.encode({"market": {}})):
        found.compare(before, after, INTERVAL)
    assert found == Comparison()
    found.compare(body(), after, INTERVAL)
    assert found != Comparison()
