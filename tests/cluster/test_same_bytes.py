"""A build on a cluster leaves the same bytes as one with forked workers, whatever happens to the workers."""

from contextlib import ExitStack
from typing import Final

import pytest

from generator.api import keys
from generator.cluster import engine
from tests.cluster.sites import ClusterSite, assert_same, everything
from tests.support.campaigns import every_pair
from tests.support.cluster import Cluster
from tests.support.sites.builds import EXTENDED
from tests.support.sites.question_tables import member_row, question_id, question_row

LATER: Final = "2026-02-01T13:00:00.000Z"
#: Variants and layouts, without versions of details and with them.
KINDS: Final = [
    pytest.param({**variant, "layout": layout}, has_versions, id=f"{name}-{layout}{'-versions' * has_versions}")
    for has_versions, layout, (name, variant) in every_pair(
        (False, True), ("pages", "chunks"), (("core", {}), ("extended", EXTENDED))
    )
]


def change(site: ClusterSite, *, has_versions: bool) -> None:
    """Make some trades, hide and edit markets, and add a bad market and a bad fill."""
    (*traded, edited, bad, worse), hidden = (
        [market for (market,) in site.execute(f"SELECT id FROM markets WHERE approval = 'approved' ORDER BY {order}")]
        for order in ("id LIMIT 8", "id DESC LIMIT 3")
    )
    edit = ", market_version = market_version + 1" if has_versions else ""
    told = f", detail_version = detail_version + 1{edit}" if has_versions else ""
    for number, market in enumerate((*traded, worse)):
        site.rows.insert(
            "fills", id=f"{number:08}-0000-4000-9000-000000000000", market_id=market, price=0.5, shares=1,
            amount=-1 if market == worse else number + 1, created_at="2026-01-31 12:30:00",
        )  # fmt: skip
        site.execute(f"UPDATE markets SET volume = volume + 1{told} WHERE id = %s", market)
    site.execute(f"UPDATE markets SET question = 'Edited?'{edit} WHERE id = %s", edited)
    site.execute(f"UPDATE markets SET prob = 7{edit} WHERE id = %s", bad)
    site.execute("UPDATE markets SET approval = 'pending' WHERE id = ANY(%s)", hidden)
    site.execute("UPDATE questions SET title = 'Which, edited?' WHERE id = %s", question_id(1))
    site.execute("UPDATE questions SET is_listed = false WHERE id = %s", question_id(2))
    site.execute("DELETE FROM question_members WHERE question_id = %s AND position = 2", question_id(4))


def insert_questions(site: ClusterSite) -> None:
    """Have four questions of three markets each."""
    site.rows.create_questions()
    markets = [market for (market,) in site.execute("SELECT id FROM markets ORDER BY id LIMIT 12")]
    for number in range(1, 5):
        site.rows.insert("questions", **question_row(number))
        for position, market in enumerate(markets[number * 3 - 3 : number * 3]):
            site.rows.insert("question_members", **member_row(number, position, market_id=market))


@pytest.mark.campaign(short=0)
@pytest.mark.usefixtures("few_limits")
@pytest.mark.parametrize(("settings", "has_versions"), KINDS)
def test_bytes_equal_those_of_forked_workers_in_a_first_build_and_after_changes(
    cluster_site: ClusterSite, workers: Cluster, settings: dict[str, str], *, has_versions: bool
) -> None:
    full = {"dumps.parquet": "true", "dumps.fills": "true", "history.public": "true"}
    cluster_site.settings = {**settings, "guards.max_invalid": "0.1", "guards.max_shrink": "0.6", **full}
    if has_versions:
        for name in ("detail_version", "market_version"):
            cluster_site.execute(f"ALTER TABLE markets ADD COLUMN {name} integer DEFAULT 1")
    insert_questions(cluster_site)
    first = cluster_site.build(workers.address)
    assert_same(first, cluster_site.build(None, "forked"))
    assert {keys.question(question_id(number)) for number in range(1, 5)} <= first.keys()
    change(cluster_site, has_versions=has_versions)
    later = cluster_site.build(workers.address, as_of=LATER)
    assert_same(later, cluster_site.build(None, "forked", as_of=LATER))
    assert b"Edited?" in later["report.json"] + later["index.html"]
    assert b"Which, edited?" in later[keys.question(question_id(1))]
    assert keys.question(question_id(2)) not in later


def assert_like_forked(demo: ClusterSite, name: str) -> None:
    assert_same(everything(demo.output(name)), everything(demo.output("forked")))


def test_a_worker_that_is_killed_in_the_middle_of_a_range_changes_no_byte(demo: ClusterSite, workers: Cluster) -> None:
    with ExitStack() as later:
        with demo.held():
            running = demo.begin(workers.address, "killed")
            victim = demo.worker_at_gate(workers, running)
            later.enter_context(demo.edited())
            victim.kill()
            assert demo.worker_at_gate(workers, running) != victim
        ended = running.wait()
    assert ended.returncode == 0, ended.stderr
    assert_like_forked(demo, "killed")


def test_a_worker_that_loses_the_database_in_the_middle_of_a_range_tries_again(
    demo: ClusterSite, workers: Cluster
) -> None:
    with demo.held():
        running = demo.begin(workers.address, "lost")
        for _ in range(engine.ATTEMPTS - 1):
            demo.worker_at_gate(workers, running)
            assert demo.cut_off_held()
        demo.worker_at_gate(workers, running)
    ended = running.wait()
    assert ended.returncode == 0, ended.stderr
    assert_like_forked(demo, "lost")
