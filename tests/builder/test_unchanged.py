"""A build that finds nothing to do and ends early leaves what an ordinary build of the same moment leaves."""

import json
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import chain, count, islice, repeat
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator import program
from generator.api import keys
from generator.builder.guards import BuildOverrides, Clock
from generator.builder.last_details import Sample
from generator.builder.notices import Topic
from generator.builder.report import Report
from generator.builder.run import build_into
from generator.edge import deployment
from generator.errors import GuardError, OutputError
from generator.progress import SILENT
from generator.publish import withdrawal
from generator.tree import files, manifest
from generator.tree.folder import Output, locked
from tests.builder.test_incremental_builds import SITES, History
from tests.builder.test_part_staging import MARKETS, VersionedSite
from tests.source.native import Postgres
from tests.support import limits
from tests.support.campaigns import rounds
from tests.support.deaths import dead_at_each_call, dying
from tests.support.postgres import Server
from tests.support.sites.builds import AS_OF, block, build_now, manifest_in
from tests.support.sites.builds import files as every_file
from tests.support.sites.question_tables import create_questions, insert_member, insert_question
from tests.support.sites.rows import create_database, insert_market, insert_order, market_id, tell_row_versions

#: What stays as it is if nothing but the instant differs, and what only a build that can end early needs.
_APART: Final = {files.INSPECTION, files.UNCHANGED}
GUARDS: Final[dict[str, Any]] = {"guards.max_invalid": 1, "guards.max_shrink": 1}
#: Sites of all kinds of objects, in both layouts and variants.
KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{name: {**settings, "dumps.ndjson": True, "feeds.enabled": True} for name, settings in SITES.items()},
    "lists only": {},
    "parquet": {"dumps.ndjson": True, "dumps.parquet": True, "layout": "chunks"},
}


def is_early(report: Report) -> bool:
    return "render" not in report.stages


def left(output: Path) -> dict[str, Any]:
    """Everything in a folder but what tells of the run alone."""
    found: dict[str, Any] = {name: body for name, body in every_file(output, "").items() if name not in _APART}
    found[files.REPORT] = json.loads(found[files.REPORT])
    del found[files.REPORT]["run"]["seconds"]
    return found


def said(report: Report) -> list[Any]:
    """What a command says of a build, and counts."""
    return [report.samples(), report.findings(), report.summary().rpartition(",")[0], report.details, report.markets]


@contextmanager
def same_samples(seed: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secrets.randbelow", lambda _: seed)
        yield


class Chain(History):
    """A random sequence of changes, after each of which a build that ends early is compared with an ordinary one."""

    def __init__(self, site: VersionedSite, chance: random.Random, kind: str) -> None:
        super().__init__(site, 0, tells_rows=True)
        self.chance = chance
        self.settings |= {**KINDS[kind], **GUARDS}
        self.early = 0
        self.earlier = b""

    def build(self) -> None:
        later, share = self.chance.choice((0, 1, 5, 5, 30, 70, -60, 1500, 11_000)), self.chance.choice((0, 0, 0.1, 1))
        full, output = self.chance.random() < 0.03, self.site.output
        before, early = output.with_name("before"), output.with_name("early")
        shutil.copytree(output, before)
        with same_samples(self.chance.getrandbits(32)), limits.on_one_processor():
            report = self.site.build(later=later, full=full, source__audit=share, **self.written())
            if (before / files.UNCHANGED).exists():
                # It also tells a build that has work what it need not look for again.
                self.early += is_early(report)
                output.rename(early)
                shutil.copytree(before, output)
                (output / files.UNCHANGED).unlink()
                ordinary = self.site.build(later=0, full=full, source__audit=share, **self.written())
                assert not is_early(ordinary)
                assert said(report) == said(ordinary)
                assert left(early) == left(output)
                shutil.rmtree(output)
                early.rename(output)
        shutil.rmtree(before)

    def nothing(self) -> None:
        """Nobody did anything."""

    def kill(self) -> None:
        last, calls = self.chance.choice((self.chance.randrange(12), self.chance.randrange(300))), count()
        with dying(lambda *_: next(calls) == last), limits.on_one_processor():
            self.site.build(later=5, **self.written())

    def close(self) -> None:
        """A market will close soon, or closed a while ago."""
        time = self.chance.choice(("2026-01-31 12:10", "2026-01-31 11:20", "2026-01-31 13:00", "2026-02-02 08:00"))
        self.site.edit(self.number(), close_time=f"{time}:00.000000", status="open")

    def decide(self) -> None:
        """A market gets an outcome before its time."""
        self.site.edit(self.number(), status="open", resolution=self.chance.choice(("YES", None)))

    def lose_beside(self) -> None:
        """Lose anything, or have it there when it should not be."""
        places = [path for path in self.site.output.rglob("*") if path.is_file() and path.name != ".lock"]
        chosen = self.chance.choice(sorted(places))
        if chosen.name not in {files.MANIFEST, files.BLOCKED}:  # without them, a build is refused, or of another site
            chosen.unlink()

    def leave_something(self) -> None:
        place = self.chance.choice(("", f"{keys.DETAILS}/00/", f"{keys.LISTS}/open/new/", "v1/"))
        (self.site.output / place).mkdir(parents=True, exist_ok=True)
        (self.site.output / place / "stranger.json").write_bytes(b"{}")

    def tear(self) -> None:
        """Tear the file that builds end early by, or replace it by that of an earlier build."""
        place = self.site.output / files.UNCHANGED
        if place.exists():
            body, self.earlier = place.read_bytes(), self.earlier or place.read_bytes()
            changed = body.replace(b"0", b"1", self.chance.randrange(1, 9))
            place.write_bytes(self.chance.choice((body[: len(body) // 2], b"{}", self.earlier, changed)))

    def say_otherwise(self) -> None:
        """Somebody edits the report, or what the dump or the details are known by."""
        name = self.chance.choice((files.REPORT, files.DUMP_PARTS, files.FINGERPRINTS, keys.BUILD, deployment.ROUTER))
        place = self.site.output / name
        if place.exists():
            place.write_bytes(place.read_bytes().replace(b"1", b"2", 1))

    def upgrade(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("zlib.ZLIB_RUNTIME_VERSION", str(self.chance.random()))
            program.maker.cache_clear()
            self.build()
        program.maker.cache_clear()

    def hide_another(self) -> None:
        """There is another market that nobody sees."""
        insert_market(self.site.database, 1000 + self.chance.randrange(10**6), approval="pending", detail_version=1)

    def mend_silently(self) -> None:
        """Bad rows go, and nobody says so: their markets are read all the same."""
        self.site.database.execute("DELETE FROM fills WHERE amount < 0 OR created_at = 'no time'")
        self.site.database.execute("DELETE FROM orders WHERE price > 1")

    def decide_silently(self) -> None:
        number, told = self.number(), "SELECT market_version FROM markets WHERE id = ?"
        (version,) = self.site.database.execute(told, [market_id(number)]).fetchone()
        self.site.edit(number, resolution=self.chance.choice(("YES", "NO")))
        self.site.edit(number, market_version=version)

    def ask(self) -> None:
        """There is another question, or one whose id another has, of one market or two."""
        if self.has_questions:
            number = self.chance.randrange(1, 9)
            insert_question(self.site.database, number, *{self.number(), self.number()}, slug=f"slug-{number}")

    def regroup(self) -> None:
        """A market joins a question, or leaves one; its payout may come too early."""
        if self.has_questions:
            number, question = self.number(), self.chance.randrange(1, 9)
            self.site.database.execute("DELETE FROM question_members WHERE market_id = ?", [market_id(number)])
            insert_member(self.site.database, question, number, payout=self.chance.choice((None, 0.5, 2)))

    def rename(self) -> None:
        if self.has_questions:
            label = self.chance.choice(("", "Yes", None, "No"))
            self.site.database.execute("UPDATE question_members SET label = ? WHERE position % 3 = 0", [label])

    def hush(self) -> None:
        if self.has_questions:
            self.site.database.execute("UPDATE questions SET is_listed = 1 - is_listed WHERE slug = 'slug-1'")

    @property
    def has_questions(self) -> bool:
        found = self.site.database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'questions'").fetchone()
        return bool(found[0])

    def set_report(self) -> None:
        """Change a setting that shapes the report alone."""
        self.settings["schedule"] = self.chance.choice((5, 10))


ACTS: Final[dict[str, Callable[[Chain], None]]] = {
    act.__name__: act
    for act in (
        Chain.trade, Chain.order, Chain.point, Chain.mend, Chain.edit, Chain.hide, Chain.forget, Chain.family,
        Chain.category, Chain.block, Chain.lose, Chain.damage, Chain.lose_all, Chain.set, Chain.switch, Chain.lie,
        Chain.kill, Chain.close, Chain.decide, Chain.lose_beside, Chain.leave_something, Chain.tear,
        Chain.say_otherwise, Chain.upgrade, Chain.set_report, Chain.hide_another, Chain.mend_silently,
        Chain.decide_silently, Chain.ask, Chain.regroup, Chain.rename, Chain.hush,
    )
}  # fmt: skip
#: Between two builds, mostly one thing happens, and often nothing.
STEPS: Final = st.lists(st.just("") | st.just("") | st.sampled_from(sorted(ACTS)), min_size=2, max_size=8)
EARLY: Final = [0, 0]


@settings(max_examples=rounds(3, 60), deadline=None, print_blob=True, suppress_health_check=[*HealthCheck])
@given(kind=st.sampled_from(sorted(KINDS)), steps=STEPS, chance=st.integers(0, 2**32))
def check_chain(kind: str, steps: list[str], chance: int) -> None:
    with tempfile.TemporaryDirectory() as folder, limits.only(limits.FEW):
        database = create_database(Path(folder) / "markets.db")
        site = VersionedSite(database, Path(folder))
        for number in range(MARKETS, 40):
            site.add(number)
        if chance % 2:
            create_questions(database)
            for number in range(1, 4):
                insert_question(database, number, 2 * number, 2 * number + 1, slug=f"slug-{number}")
        chain = Chain(site, random.Random(chance), kind)  # noqa: S311 - nothing here is secret
        chain.site.build(**chain.written())
        for step in steps:
            if step:
                ACTS[step](chain)
            chain.build()
        EARLY[0] += chain.early
        EARLY[1] += len(steps)
        database.close()


@pytest.mark.campaign
def test_a_build_that_ends_early_leaves_what_an_ordinary_one_leaves() -> None:
    check_chain()
    assert EARLY[1] > 0
    assert EARLY[0] > 0


# ── each reason for an ordinary build ─────────────────────────────────────────────────────────────────────────────

#: A market that the sample of the tests has, and one that it has not.
SEED: Final = 7
SHARE: Final = 0.08
LONG: Final[Mapping[str, Any]] = {"cursor__lifetime": "14 d"}
DUMPS: Final[Mapping[str, Any]] = {"dumps__ndjson": True, **LONG}


def sampled() -> int:
    """A market that the sample of these tests has."""
    return next(number for number in range(40) if Sample(SHARE, SEED).has(market_id(number)))


@pytest.mark.parametrize("payout", [None, 0.5])
def test_a_site_with_questions_ends_early_until_one_of_their_rows_changes(
    site: VersionedSite, payout: float | None
) -> None:
    """What is paid early is told with each build, and is no reason to look at the market."""
    create_questions(site.database)
    insert_question(site.database, 1, 2)
    insert_member(site.database, 1, 3, payout=payout)
    site.edit(3, detail_version=None)
    site.build()
    assert is_early(site.build())
    for change in (
        "UPDATE question_members SET label = 'Another' WHERE position = 3",
        "UPDATE questions SET title = 'Another?'",
        "DELETE FROM question_members WHERE position = 3",
        "DELETE FROM questions",
        "DROP TABLE questions",
    ):
        site.database.execute(change)
        if change.startswith("DROP"):
            site.database.execute("DROP TABLE question_members")
        assert not is_early(build_now(site.config(), AS_OF + timedelta(hours=1), shrink=True)), change
        assert is_early(build_now(site.config(), AS_OF + timedelta(hours=1), shrink=True)), change


@pytest.fixture
def site(database: sqlite3.Connection, tmp_path: Path) -> Iterator[VersionedSite]:
    site = VersionedSite(database, tmp_path)
    for number in range(MARKETS, 40):
        site.add(number)
    tell_row_versions(database)
    with same_samples(SEED), limits.on_one_processor():
        yield site


def silently(site: VersionedSite, number: int, **columns: Any) -> None:
    """Edit a row without another version."""
    site.edit(number, **columns, market_version=None)
    site.database.execute("UPDATE markets SET market_version = 1")


def add_bad_order(site: VersionedSite) -> None:
    insert_order(site.database, market_id=market_id(3), price=7)
    site.tell(3)


@dataclass(frozen=True)
class Case:
    """What happens before the last build, `later` minutes after one that ended early, and what was so `before` that."""

    act: Callable[[VersionedSite], object] = lambda _: None
    later: int = 5
    before: Callable[[VersionedSite], object] = lambda _: None
    settings: Mapping[str, Any] = field(default_factory=dict)
    changed: Mapping[str, Any] = field(default_factory=dict)


CASES: Final[Mapping[str, Case]] = {
    "a market closes": Case(
        later=30, before=lambda site: site.edit(3, close_time="2026-01-31 12:22:00.000000"), settings=LONG
    ),
    "a market is overdue": Case(
        later=30, before=lambda site: site.edit(3, close_time="2026-01-31 11:30:00.000000"), settings=LONG
    ),
    "a fill leaves the window": Case(
        later=30, before=lambda site: site.trade(3, created_at="2026-01-30 12:22:00.000000"),
        settings={"fills_window_step": "0 s", **LONG},
    ),
    "a generation is due": Case(later=400, before=lambda site: site.edit(3, prob=0.1)),
    "a step is due": Case(later=7 * 1440 + 20, before=lambda site: site.edit(3, prob=0.1), settings=DUMPS),
    "a day is over": Case(later=800, settings={"dumps__parquet": True, **DUMPS}),
    "an earlier clock": Case(later=-3),
    "all is to be read": Case(changed={"full": True}),
    "a setting of the report": Case(changed={"schedule": 7}),
    "a market was blocked": Case(lambda site: block(site.output, market_id(3))),
    "a market changed": Case(lambda site: site.edit(3, prob=0.1)),
    "a market was traded": Case(lambda site: site.trade(3)),
    "a hidden market came": Case(lambda site: insert_market(site.database, 99, approval="pending")),
    "nobody can tell whether a market is listed": Case(
        lambda site: site.database.execute("UPDATE markets SET is_listed = 2 WHERE is_listed = 0"),
        before=lambda site: insert_market(site.database, 99, is_listed=0),
    ),
    "a detail is lost": Case(lambda site: site.path(3).unlink()),
    "a page for people is lost": Case(lambda site: (site.output / files.INSPECTION).unlink()),
    "a file of an edge was altered": Case(lambda site: (site.output / deployment.ROUTER).write_text("")),
    "a stranger came": Case(lambda site: (site.output / "v1/stranger.json").write_bytes(b"")),
    "the report says otherwise": Case(lambda site: (site.output / files.REPORT).write_bytes(b"{}")),
    "another program wrote build.json": Case(lambda site: (site.output / keys.BUILD).write_bytes(b"{}")),
    "the file is altered": Case(
        lambda site: (site.output / files.UNCHANGED).write_bytes(
            (site.output / files.UNCHANGED).read_bytes().replace(b'"hidden":0', b'"hidden":1')
        )
    ),
    "the sample has another detail": Case(lambda site: site.trade(sampled(), is_told=False)),
    "the sample has an outcome that is not shown": Case(lambda site: silently(site, sampled(), resolution="YES")),
    "a bad row is gone": Case(
        lambda site: site.database.execute("DELETE FROM orders WHERE price > 1"),
        before=add_bad_order,
    ),
}  # fmt: skip


@pytest.mark.parametrize("reason", CASES)
def test_whatever_may_have_to_be_done_has_an_ordinary_build(site: VersionedSite, reason: str) -> None:
    case = CASES[reason]
    settings = {"source__audit": SHARE, "guards__max_invalid": 1, **case.settings}
    site.build(**settings)
    case.before(site)
    site.build(**settings)
    assert is_early(site.build(**settings))
    case.act(site)
    assert not is_early(site.build(later=case.later, **{**settings, **case.changed}))


def kill(site: VersionedSite, call: int) -> None:
    """Have a build of another change die at a call that changes files."""
    site.edit(5, prob=0.3)
    calls = count()
    with dying(lambda *_: next(calls) == call):
        site.build(layout="chunks")


#: What happens to a folder of which the last build said that all is in place.
MEANWHILE: Final[Mapping[str, Callable[[VersionedSite], object]]] = {
    "nothing": lambda _: None,
    "a stranger came": lambda site: (site.output / "v1/stranger.json").write_bytes(b""),
    "a detail is lost": lambda site: site.path(3).unlink(),
    "a file of an edge is altered": lambda site: (site.output / deployment.ROUTER).write_bytes(b""),
    **{f"a build was killed at call {call}": partial(kill, call=call) for call in (2, 9, 20, 30, 40)},
}


@pytest.mark.parametrize("full", [False, True], ids=["ordinary", "full"])
@pytest.mark.parametrize("event", MEANWHILE)
def test_a_build_that_has_work_leaves_what_its_manifest_names_and_nothing_else(
    site: VersionedSite, event: str, *, full: bool
) -> None:
    site.build(layout="chunks")
    site.edit(4, prob=0.1)
    site.build(layout="chunks")
    edge = (site.output / deployment.ROUTER).read_bytes()
    MEANWHILE[event](site)
    site.edit(4, prob=0.2)
    site.build(layout="chunks", later=400, full=full)  # former generations are due
    folder = Output(site.output, site.output)
    built = folder.manifest()
    assert built is not None
    assert files.tally(folder.placed()) == files.tally(files.expected(built.objects, built.generations()))
    assert (site.output / deployment.ROUTER).read_bytes() == edge


@pytest.mark.parametrize("later", sorted({case.later for case in CASES.values() if 0 < case.later <= 100}))
def test_time_alone_is_no_reason(site: VersionedSite, later: int) -> None:
    site.build(**LONG)
    assert is_early(site.build(later=later, **LONG))


@pytest.mark.parametrize(
    "tell",
    [
        lambda site: site.trade(3, created_at="2026-02-03 00:00:00.000000"),
        lambda site: site.edit(3, created_at="2026-02-03 00:00:00.000000"),
    ],
)
def test_after_a_remark_that_passes_with_time_no_build_ends_early(
    site: VersionedSite, tell: Callable[[VersionedSite], object]
) -> None:
    tell(site)
    assert site.build().remarks
    assert not is_early(site.build())


def test_what_the_first_look_finds_in_its_sample_the_build_that_follows_finds_too(
    site: VersionedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.build(source__audit=SHARE)
    site.trade(sampled(), is_told=False)
    without = next(seed for seed in range(99) if not Sample(SHARE, seed).has(market_id(sampled())))
    seeds = chain([SEED], repeat(without))
    monkeypatch.setattr("secrets.randbelow", lambda _: next(seeds))
    assert [remark.topic for remark in site.build(source__audit=SHARE).remarks] == [Topic.FALSE_VERSION]


def test_a_takedown_leaves_nothing_by_which_a_build_ends_early(site: VersionedSite) -> None:
    site.build()
    assert (site.output / files.UNCHANGED).exists()
    with locked(site.output) as folder:
        withdrawal.from_folder(folder, [market_id(3)], timedelta(hours=6))
    assert not (site.output / files.UNCHANGED).exists()


def test_the_report_of_a_build_that_ends_early_has_the_seconds_of_both_stages(site: VersionedSite) -> None:
    site.build()
    assert is_early(site.build())
    assert json.loads((site.output / files.REPORT).read_bytes())["run"]["seconds"].keys() == {"read", "place"}


@pytest.mark.parametrize("full", [False, True], ids=["ordinary", "full"])
def test_an_id_that_is_no_text_ends_no_build(site: VersionedSite, *, full: bool) -> None:
    site.database.execute("UPDATE markets SET id = CAST(x'61ff62' AS TEXT) WHERE id = ?", [market_id(3)])
    for _ in range(3):
        report = site.build(guards__max_invalid=1, guards__max_shrink=1, source__audit=SHARE, full=full)
        assert not is_early(report)
        assert report.quarantine.total("markets") == 1


@pytest.mark.parametrize("place", ["v1", "details", "state"])
def test_a_file_name_that_is_no_text_ends_no_build(site: VersionedSite, place: str) -> None:
    site.build()
    stranger = os.path.join(os.fsencode(site.output), place.encode(), b"x\xff")  # noqa: PTH118 - of bytes
    os.makedirs(os.path.dirname(stranger), exist_ok=True)  # noqa: PTH103, PTH120
    with open(stranger, "wb"):  # noqa: PTH123
        pass
    for full in (False, True, False):
        site.build(full=full)
    assert os.path.exists(stranger) is (place != "v1")  # noqa: PTH110


def test_a_build_again_in_full_looks_at_everything(site: VersionedSite) -> None:
    """As `rebuild` does that meets damage: both builds are of one run."""
    site.build()
    site.edit(4, prob=0.2)
    stranger, edge = site.output / "v1/stranger.json", site.output / deployment.ROUTER
    with locked(site.output) as folder:
        for full in (False, True):
            clock, overrides = Clock(AS_OF + timedelta(minutes=10), is_set=True), BuildOverrides(full=full)
            build_into(folder, site.config(), clock, overrides=overrides, progress=SILENT)
            assert (stranger.exists(), edge.read_bytes() == b"") == (False, False)
            stranger.write_bytes(b"")
            edge.write_bytes(b"")


def test_a_remark_about_a_false_version_is_not_carried_on(site: VersionedSite) -> None:
    site.build()
    site.trade(sampled(), is_told=False)
    assert site.build(source__audit=SHARE).remarks
    assert not site.build(source__audit=SHARE).remarks


def test_what_was_accepted_once_is_refused_by_the_next_build(site: VersionedSite) -> None:
    site.edit(3, prob=7)
    build_now(site.config(), invalid=True)
    with pytest.raises(GuardError, match="break the contract"):
        site.build()


def test_a_large_site_ends_early_and_keeps_its_manifest_in_two_files(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    site = VersionedSite(database, tmp_path)
    for number in range(MARKETS, 1_010):
        insert_market(database, number, detail_version=1)
    tell_row_versions(database)
    with same_samples(SEED):
        site.build()
        shutil.copytree(site.output, tmp_path / "before")
        assert is_early(site.build())
        site.output.rename(tmp_path / "early")
        (tmp_path / "before").rename(site.output)
        (site.output / files.UNCHANGED).unlink()
        assert not is_early(site.build(later=0))
    assert left(tmp_path / "early") == left(site.output)
    assert json.loads((site.output / files.MANIFEST).read_bytes())["state"]
    next((site.output / files.STATES).iterdir()).unlink()
    with pytest.raises(OutputError, match="missing"):
        site.build()


@pytest.mark.campaign
def test_a_build_that_ends_early_may_die_at_any_call(site: VersionedSite, tmp_path: Path) -> None:
    def content() -> dict[str, Any]:
        found = left(site.output)
        # The build after a death may have had nothing left to write, and nobody learns of costs from one that died.
        del found[files.REPORT]["run"], found[files.REPORT]["cost"]
        return found

    site.build()
    shutil.copytree(site.output, tmp_path / "before")
    assert is_early(site.build())
    whole, ends = content(), list[bool]()
    deaths = dead_at_each_call(tmp_path / "before", site.output, lambda: site.build(later=0))
    for _ in islice(deaths, 0, None, rounds(5, 1)):
        built, body = manifest_in(site.output), (site.output / keys.BUILD).read_bytes()
        assert built.objects[keys.BUILD] == manifest.digest(keys.BUILD, body) or not built.complete
        ends.append(is_early(site.build(later=0)))
        assert content() == whole
        assert is_early(site.build(later=0))
    assert {*ends} == {False, True}


def test_postgresql_is_compared_in_the_same_way(site: VersionedSite, postgres: Server) -> None:
    database = Postgres(postgres)
    with closing(database.connection):
        for column in ("detail_version", "market_version"):
            database.connection.execute(f"ALTER TABLE markets ADD COLUMN {column} integer DEFAULT 1")
        database.copy(site.folder / "markets.db")
        settings: dict[str, Any] = {"source__url": database.url, "source__audit": SHARE}
        assert [is_early(site.build(**settings)) for _ in range(3)] == [False, True, True]
        database.connection.execute("UPDATE markets SET prob = 0.1, market_version = 2 WHERE id = %s", [market_id(3)])
        assert [is_early(site.build(**settings)) for _ in range(2)] == [False, True]
        assert site.detail(3)["market"]["prob"] == 0.1
