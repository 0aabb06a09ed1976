"""The report, and the summary line, whose wording is a contract."""

import json
import re
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from generator.api import keys
from generator.builder.report import MarketChanges, Report, Withdrawal, of_list
from generator.findings import CHECK_NAMES_EACH, Finding
from generator.metrics import sample
from generator.progress import Span
from generator.tree import files
from generator.tree.manifest import Current
from tests.support.commands import run
from tests.support.sites.builds import AS_OF, NOW, build_now, make_config
from tests.support.sites.builds import files as built_files
from tests.support.sites.rows import insert_fill, insert_market, market_id


def report() -> Report:
    made = Report(as_of=NOW, source="sqlite:///markets.db", built=7, hidden=2)
    made.lists = {"open/new": of_list("open/new", Current(generation="p0123456789abcdef012", count=3, bytes=1_000))}
    made.written, made.written_bytes, made.unchanged, made.deleted = 4_321, 98_765, 12, 3
    made.stages = {"read": Span(1.0, 0.0), "render": Span(2.25, 0.0)}
    made.quarantine.reject("markets", market_id(1), Finding(column="prob", text="bad"), title="One?")
    made.quarantine.reject("fills", "x", Finding(column="amount", text="bad"))
    made.quarantine.reject("fills", "x", Finding(column="amount", text="bad"))
    return made


def test_the_summary_line_reads_exactly_so() -> None:
    assert report().summary() == (
        "built 7 markets as of 2026-01-31T12:00:00.000Z: 4321 files written (98765 bytes), 12 unchanged, 3 deleted, "
        "3 rows quarantined, 3.2 s"
    )


def test_a_first_build_names_relations_without_rows_and_else_the_summary_line_is_all_that_is_printed(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_market(database)
    arguments = ("--config", tmp_path / "config.yaml", "--as-of", "2026-01-31T12:00:00Z")
    (tmp_path / "config.yaml").write_text("source:\n  url: sqlite:///markets.db\n")
    first = run("build", *arguments, cwd=tmp_path)
    assert (first.returncode, first.stderr.partition(": this")[0]) == (0, "fx_members, orders, fills, probabilities")
    # A detail, snapshot, prices, 3 errors, a hundred first pages of thirty lists and build.json; no list has a second
    # page. Four feeds, the index of the site, llms.txt and changelog.json. The dump, and index and head of it and of
    # the change feed.
    assert re.fullmatch(
        r"built 1 market as of 2026-01-31T12:00:00\.000Z: 3024 files written \([0-9]+ bytes\), "
        r"0 unchanged, 0 deleted, 0 rows quarantined, [0-9]+\.[0-9] s\n",
        first.stdout,
    )
    second = run("build", *arguments, cwd=tmp_path)
    assert (second.returncode, second.stderr) == (0, "")
    assert re.fullmatch(
        r"built 1 market as of 2026-01-31T12:00:00\.000Z: 0 files written \(0 bytes\), 3024 unchanged, 0 deleted, "
        r"0 rows quarantined, [0-9]+\.[0-9] s\n",
        second.stdout,
    )


def test_the_report_names_added_changed_and_withdrawn_markets() -> None:
    made = report()
    made.markets = MarketChanges.between({"gone", "edited", "kept"}, {"edited", "kept", "new"}, {"edited", "new"}, NOW)
    run_ = json.loads(made.encoded())["run"]
    assert (run_["since"], run_["added"], run_["changed"], run_["withdrawn"]) == (NOW, ["new"], ["edited"], ["gone"])


def test_withdrawals_are_remembered_with_their_builds_until_the_market_returns() -> None:
    made = report()
    made.markets = MarketChanges.between({"a", "b"}, set(), set(), "")
    later = report()
    later.as_of = "2026-02-01T00:00:00.000Z"
    later.markets = MarketChanges.between({"c"}, {"b"}, set(), NOW).after(made.encoded(), {"b"})
    assert later.markets.withdrawn == ["c"]
    assert later.markets.withdrawn_earlier == [Withdrawal(id="a", as_of=NOW)]
    last = MarketChanges().after(later.encoded(), {"d"})
    assert last.withdrawn_earlier == [Withdrawal(id="c", as_of=later.as_of), Withdrawal(id="a", as_of=NOW)]


@pytest.mark.parametrize("previous", [None, b"damaged", b"[]", b"{}", b'{"asOf":"x","run":{"withdrawn":["a"]}}'])
def test_an_unreadable_report_counts_as_empty(previous: bytes | None) -> None:
    assert MarketChanges().after(previous, set()).withdrawn_earlier == []


def unwritten() -> Report:
    made = report()
    made.written = made.deleted = 0
    return made


def test_only_a_run_with_changes_or_new_findings_rewrites_the_report() -> None:
    later = unwritten()
    later.stages = {"read": Span(9.0, 0.0)}
    assert not later.says_more_than(report().encoded())
    assert all(map(unwritten().says_more_than, (None, b"damaged", b"[]")))
    assert report().says_more_than(report().encoded())
    other = unwritten()
    other.quarantine.reject("orders", "y", Finding(column="price", text="bad"))
    assert other.says_more_than(report().encoded())
    deleting = unwritten()
    deleting.deleted = 1
    assert deleting.says_more_than(report().encoded())


def test_a_build_reports_its_counts_and_every_bad_row(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert_market(database, 1)
    insert_market(database, 2, approval="pending")
    insert_market(database, 3, is_listed=0)
    insert_market(database, 4, prob=1.2)
    insert_fill(database, 1, amount=-1.0)
    made = build_now(make_config(tmp_path), AS_OF, invalid=True)
    content = json.loads((tmp_path / "output" / "report.json").read_bytes())
    assert content == json.loads(made.encoded())
    assert content["markets"] == {"published": 1, "hidden": 2, "quarantined": 1}
    assert [(row["relation"], row["reason"].partition(":")[0]) for row in content["quarantined"]] == [
        ("fills", "amount"),
        ("markets", "prob"),
    ]
    assert {name: entry["count"] for name, entry in content["lists"].items()} == {
        name: int(name.split("/")[0] in ("open", "all")) for name in content["lists"]
    }
    assert len(content["lists"]) == 30
    assert content["run"]["written"] == 3_024
    published = [path for path in (tmp_path / "output" / "v1").rglob("*") if path.is_file()]
    assert content["run"]["writtenBytes"] == sum(path.stat().st_size for path in published)
    assert len(published) == 3_024


def test_a_build_reports_dump_and_change_feed_and_the_step_that_it_made(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    config = make_config(tmp_path)
    for number in range(3):
        insert_market(database, number)
    first = build_now(config).content()
    assert (first["run"]["stepLines"], first["downloads"]["serial"], first["downloads"]["steps"]) == (0, 1, 0)
    database.execute("UPDATE markets SET trader_count = trader_count + 1 WHERE id <> ?", [market_id(0)])
    made = build_now(config, AS_OF + timedelta(hours=1))
    stored = {keys.DUMPS: 0, keys.CHANGES: 0}
    for key, body in built_files(tmp_path / "output").items():
        if key.endswith(".gz"):
            stored[key.split("/")[1]] += len(body)
    assert made.content()["downloads"] == first["downloads"] | {
        "asOf": "2026-01-31T13:00:00.000Z",
        "ndjsonBytes": stored[keys.DUMPS] - first["downloads"]["ndjsonBytes"],
        "serial": 2,
        "steps": 1,
        "stepsBytes": stored[keys.CHANGES],
    }
    assert made.content()["run"]["stepLines"] == 2
    samples = made.samples()
    assert samples[sample("dump_bytes", format="ndjson")] == made.content()["downloads"]["ndjsonBytes"]
    assert [samples[sample(f"change_{name}")] for name in ("feed_serial", "feed_steps", "step_lines")] == [2, 1, 2]
    database.execute("UPDATE markets SET trader_count = trader_count + 1")
    without = build_now(make_config(tmp_path, dumps__ndjson=False), AS_OF + timedelta(hours=2))
    assert without.content()["downloads"] is None
    assert without.samples()[sample("dump_bytes", format="ndjson")] == 0


def test_a_build_says_what_names_each_row_even_if_one_has_as_many_faults_as_others_have_rows(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_market(database, 1, prob=7)
    insert_market(database, 2, prob=7)
    insert_market(database, 3, volume=-1, trader_count=-1)
    (tmp_path / "config.yaml").write_text("source: {url: 'sqlite:///markets.db'}\nguards: {max_invalid: 1}\n")
    assert f"{files.REPORT} names each\n" in run("build", cwd=tmp_path).stderr
    assert f"{CHECK_NAMES_EACH}\n" in run("check", cwd=tmp_path).stdout


def test_withdrawn_markets_are_one_line_however_many(tmp_path: Path, database: sqlite3.Connection) -> None:
    for number in range(1, 41):
        insert_market(database, number)
    build_now(make_config(tmp_path))
    database.execute("UPDATE markets SET is_listed = 0 WHERE id > ?", [market_id(10)])
    made = build_now(make_config(tmp_path), shrink=True)
    assert made.findings() == [f'withdrawn: 30 markets are no longer public (such as {market_id(11)}: "Question 11?")']
    assert len(made.markets.withdrawn) == 30


@pytest.mark.parametrize("bad", [0, 1])
def test_markets_that_share_an_id_are_quarantined_even_if_only_one_is_valid(
    tmp_path: Path, database: sqlite3.Connection, bad: int
) -> None:
    for number in (0, 1):
        insert_market(database, 1, prob=1.2 if number == bad else 0.5)
    insert_market(database, 2)
    made = build_now(make_config(tmp_path), invalid=True)
    assert (made.built, made.hidden, made.quarantine.total("markets")) == (1, 0, 2)
    assert [row.reason.partition(":")[0] for row in made.quarantine] == ["id", "prob"]


def test_a_build_reports_its_search_index(tmp_path: Path, database: sqlite3.Connection) -> None:
    insert_market(database, 1, question="Will the war end?", description="A war is over when it ends.")
    insert_market(database, 2, question="Élection 2026?")
    config = make_config(tmp_path, variant="extended", search="title+description")
    made = build_now(config)
    index = {key: len(body) for key, body in built_files(tmp_path / "output").items() if keys.SEARCH in key}
    assert made.content()["search"] == {
        "words": len({"will", "the", "war", "end", "a", "is", "over", "when", "it", "ends", "election", "2026"}),
        "generation": next(key.split("/")[-2] for key in index if key.endswith(keys.INDEX)),
        "objects": len(index),
        "bytes": sum(index.values()),
        "largestBytes": max(index.values()),
    }
    assert made.counts("index") == {"words": 12, "objects": len(index), "bytes": sum(index.values())}
    assert [*made.content()["run"]["seconds"]] == ["read", "render", "index", "place"]
    assert build_now(config).content()["search"] == made.content()["search"]
    figures = made.samples()
    everything = built_files(tmp_path / "output")
    assert figures[sample("objects")] == len(everything)
    assert figures[sample("bytes")] == pytest.approx(sum(map(len, everything.values())), rel=0.01)
