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
from generator.builder.comparison import Comparison
from generator.builder.content_guards import LEAST, ContentGuards
from generator.builder.guards import BuildOverrides
from generator.cli.build import overrides_of
from generator.config.settings import Config
from generator.config.shape import shaping
from generator.demo.database import seed
from generator.errors import GuardError
from generator.markets import detail, row_validation
from generator.markets.detail import Book, Detail, Level
from generator.markets.fills import Fill
from generator.markets.row_validation import ExtendedFields
from generator.progress import SILENT
from tests.builder.test_part_staging import QUICK as OF_DETAILS
from tests.support import limits
from tests.support.campaigns import rounds
from tests.support.commands import run
from tests.support.sites import replay
from tests.support.sites.builds import AS_OF, NOW, build_now, make_config
from tests.support.sites.builds import files as every_file
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

# ── views that break ──────────────────────────────────────────────────────────────────────────────────────────────

OPTIONS: Final = ("shrink", "jumps", "questions", "growth")
GONE: Final = r"would disappear, more than guards\.max_shrink \(0\.2\) allows"
MOVED: Final = r"moved by more than 30 points, more than guards\.max_jumps \(0\.1\) allows"
MIRRORED: Final = {"prob": "1 - prob"}
#: What breaks, by its view: the rows that it still shows and the columns that it replaces; the refusal; the option.
BROKEN: Final = {
    "fills": ("0", {}, rf"([\d,]+) of \1 recent fills {GONE}", "shrink"),
    "probabilities": ("0", {}, rf"([\d,]+) of \1 points {GONE}", "shrink"),
    "fx_members": ("0", {}, r"(\d+) of \1 FX members would leave their families, and so", "shrink"),
    "market_categories": ("0", {}, r"(\d+) of \1 categorised markets would have no category any more, more", "shrink"),
    "orders": ("0", {}, r"all [\d,]+ order levels of open markets would disappear", "shrink"),
    "markets": ("1", MIRRORED, rf"\d+ of \d+ open markets {MOVED}", "jumps"),
    "probabilities mirrored": ("1", MIRRORED, rf"the newest points of \d+ of \d+ open markets {MOVED}", "jumps"),
    "questions": ("1", {"question": "question || '!'"}, r"(\d+) of \1 questions changed, more than half", "questions"),
}  # fmt: skip
RELATIONS: Final = {"questions": "markets", "probabilities mirrored": "probabilities"}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of views, and the build of it."""
    folder = tmp_path_factory.mktemp("published")
    seed(folder / "markets.db", as_of=AS_OF, markets=MARKETS)
    with closing(sqlite3.connect(folder / "markets.db")) as database:
        for relation in {RELATIONS.get(case, case) for case in BROKEN}:
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
        show(database, RELATIONS.get(case, case), where, **replaced)


def files_of(folder: Path) -> dict[str, bytes]:
    """The output folder without its lock."""
    return {name: body for name, body in every_file(folder / "output", "").items() if name != ".lock"}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("case", BROKEN)
def test_a_view_that_breaks_is_refused_with_three_examples_unless_its_own_option_lets_it_through(
    folder: Path, case: str
) -> None:
    *_, sentence, option = BROKEN[case]
    break_view(folder, case)
    before = files_of(folder)
    with pytest.raises(GuardError) as caught:
        build_now(make_config(folder, **QUICK), AS_OF, progress=SILENT, **{name: name != option for name in OPTIONS})
    sentence = (
        rf"{sentence}.*; nothing was replaced\. Correct the database or its views or, if .* right, pass "
        rf"--allow-{option}\. Such as:(\n  market [0-9a-f-]{{36}}.* → .*){{3}}"
    )
    assert re.fullmatch(sentence, str(caught.value)), caught.value
    assert files_of(folder) == before
    build_now(make_config(folder, **QUICK), AS_OF, progress=SILENT, **{option: True})
    assert files_of(folder) != before


def command(folder: Path, *words: str) -> tuple[int, str]:
    """Run it; return its exit code and what it says."""
    done = run(*words, *SETTINGS, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def test_the_options_of_the_command_line_let_it_through(folder: Path) -> None:
    break_view(folder, "fills")
    with closing(sqlite3.connect(folder / "markets.db")) as database:
        show(database, "markets", **MIRRORED, question="question || '!'")
    assert command(folder, "build", "--as-of", NOW)[0] == 3
    assert command(folder, "build", "--as-of", NOW, *(f"--allow-{name}" for name in OPTIONS))[0] == 0
    names = ("allow_invalid", "full", "purge_retired", *(f"allow_{name}" for name in OPTIONS))
    for name in OPTIONS:
        given = dict.fromkeys(names, False) | {f"allow_{name}": True}
        assert overrides_of(given) == BuildOverrides(**{name: True})


def test_dry_runs_say_the_same_as_the_build(folder: Path) -> None:
    break_view(folder, "markets")
    _, refusal = command(folder, "build", "--as-of", NOW)
    refusal = refusal.removeprefix("error: ")
    assert refusal.count("\n") == 4
    code, said = command(folder, "rebuild", "--dry-run", "--as-of", NOW, "--set=publish.target=./store", "--allow-demo")
    assert (code, said.endswith(f"error: {refusal}")) == (3, True), said
    code, said = command(folder, "plan", "--as-of", NOW)
    assert (code, f"`public-markets build` would refuse: {refusal}" in said) == (0, True), said
    code, said = command(folder, "check", "--allow-demo")
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
        fills.append(b"".join(every_file(tmp_path / "output", keys.DETAILS).values()).count(b'"shares"'))
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
    thinned: bool = False,
    last: Config | None = None,
    now: Config | None = None,
    **overrides: bool,
) -> list[str]:
    """What the guards say of details before and after, among others that are unchanged; `last` are former settings."""
    found = Comparison()
    for before, after in pairs:
        found.compare(before, after, is_thinned=thinned)
    bodies = {market_id(number): one for number, one in enumerate(unchanged, 1000)}
    status = ("closed", "open")
    markets = [public_market(n, status=status[b'"open"' in one]) for n, one in enumerate(bodies.values(), 1000)]
    guards = ContentGuards(now or Config(), shaping(last or Config()), found, markets, bodies.__getitem__)
    return [*guards.refusals(BuildOverrides(**overrides))]


def test_up_to_the_limit_fills_and_points_may_go_whatever_comes_elsewhere() -> None:
    more = body(2), body(2, fills=50, points=50)
    for noun, name in (("recent fills", "fills"), ("points", "points")):
        full = body(**{name: 50})
        assert refusals((full, body(**{name: 40})), more) == []
        (refusal,) = refusals((full, body(**{name: 39})), more)
        assert refusal.startswith(f"11 of 50 {noun} would disappear")
        assert refusal.endswith(f"Such as:\n  market {market_id(1)} (Question 1?): 50 → 39 {name}")
        assert refusals((full, body(**{name: 39})), shrink=True) == []


def test_kept_details_count_only_as_far_as_they_matter() -> None:
    loss = body(fills=5, points=5), body(points=5)
    kept = [body(number, fills=5) for number in range(10, 14)]
    assert refusals(loss, unchanged=kept) == []
    assert refusals(loss, unchanged=kept[1:])[0].startswith("5 of 20 recent fills would disappear")
    reads = list[str]()
    found, markets = Comparison(), [public_market(number) for number in range(10, 30)]

    def read(key: str) -> bytes:
        reads.append(key)
        return kept[0]

    guards = ContentGuards(Config(), shaping(Config()), found, markets, read)
    found.compare(loss[1], loss[0])
    assert ([*guards.refusals(BuildOverrides())], len(reads)) == ([], 0), "nothing was lost"
    found.compare(*loss)
    assert [*guards.refusals(BuildOverrides())] == []
    assert len(reads) == 5, "of twenty: five of thirty fills are no more than 20 %"


def test_fewer_than_twenty_open_markets_may_all_jump() -> None:
    def moved(number: int, by: float = 0.31, **columns: Any) -> tuple[bytes, bytes]:
        return body(number, prob=0.1, **columns), body(number, prob=0.1 + by, **columns)

    jumps = [moved(number) for number in range(LEAST)]
    others = [body(number) for number in range(LEAST, 40)]
    assert refusals(*jumps[1:]) == []
    assert refusals(*jumps)[0].startswith("20 of 20 open markets moved by more than 30 points, more than guards.max_ju")
    assert refusals(*jumps, jumps=True) == []
    assert refusals(*jumps[:2], unchanged=others[:18]) == [], "a tenth is no more than a tenth"
    assert refusals(*jumps[:3], unchanged=others[:18])[0].startswith("3 of 21 open markets")
    assert refusals(*(moved(number, by=0.3) for number in range(LEAST))) == [], "30 points are not more than 30 points"
    assert refusals(*(moved(number, status="closed") for number in range(LEAST))) == []
    settled = [(before, body(number, prob=1, status="closed")) for number, (before, _) in enumerate(jumps)]
    assert refusals(*settled) == [], "the outcome of a market is no jump"


def test_the_newest_points_of_fewer_than_twenty_histories_may_all_jump() -> None:
    jumps = [(body(number, points=3, newest=0.1), body(number, points=4, newest=0.9)) for number in range(LEAST)]
    silent, traded = ([body(number, points=points) for number in range(180)] for points in (0, 1))
    assert refusals(*jumps[1:], unchanged=silent) == []
    (refusal,) = refusals(*jumps, unchanged=silent)
    assert refusal.startswith("the newest points of 20 of 20 open markets moved by more than 30 points")
    assert refusals(*jumps, jumps=True) == []
    assert refusals(*jumps, unchanged=traded) == []
    assert refusals(*jumps, unchanged=traded[1:])[0].startswith("the newest points of 20 of 199 open markets")


def test_order_levels_are_gone_only_if_none_is_left_of_at_least_twenty() -> None:
    gone = body(1, levels=12), body(1)
    more = body(2, levels=8), body(2)
    assert refusals(gone, more)[0].startswith("all 20 order levels of open markets would disappear")
    assert refusals(gone, more, shrink=True) == []
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
        assert refusals(*gone, *kept[1:], last=extended, now=extended, shrink=True) == []
        come = [(after, before) for before, after in gone]
        assert refusals(*come, *kept[1:], *gone[:1], last=extended, now=extended) == []
        changed = refusals(*gone, last=Config(), now=extended)
        assert len(changed) == (noun == "FX members"), "another variant says nothing about categories"


def test_half_of_the_questions_may_change() -> None:
    edits = [(body(number), body(number, question=f"{number}?")) for number in range(LEAST)]
    kept = [body(number) for number in range(LEAST, 40)]
    assert refusals(*edits[1:]) == []
    assert refusals(*edits, unchanged=kept) == []
    assert refusals(*edits, unchanged=kept[1:])[0].startswith("20 of 39 questions changed, more than half; nothing was")
    assert refusals(*edits, questions=True) == []


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
        whole.compare(*pair)
        parts[number % 2].compare(*pair)
    parts[1].add(parts[0])
    assert parts[1] == whole


def test_a_setting_that_changed_how_many_rows_details_show_makes_their_numbers_say_nothing() -> None:
    before, after = body(levels=20, fills=50, points=500), body()
    assert len(refusals((before, after))) == 3
    for name, value in (("recent_fills", 10), ("history_points", 10), ("order_book", False)):
        last = Config.model_validate({"detail": {name: value}})
        assert len(refusals((before, after), last=last)) == 2


def test_a_history_that_is_thinned_anew_may_show_fewer_points() -> None:
    pair = body(points=500), body(points=200)
    assert refusals(pair, thinned=True) == []
    assert refusals(pair) != []


def test_a_detail_that_is_damaged_or_new_is_not_compared() -> None:
    after = body(prob=0.9, question="Other?")
    found = Comparison()
    for before in (None, b"", b"{}", body(fills=50)[:300], contract.encode({"market": {}})):
        found.compare(before, after)
    assert found == Comparison()
    found.compare(body(), after)
    assert found != Comparison()
