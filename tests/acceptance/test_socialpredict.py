"""SocialPredict's schema through its views: every published number beside a plain computation from the bets."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.source.test_questions import gathered
from tests.support.postgres import Server
from tests.support.sites.builds import build_now, details, files, make_config
from tests.support.sites.socialpredict import SCHEMA, MadeSite
from tests.support.sites.views import (
    SQL,
    VIEWS,
    ExistingSite,
    apply,
    assert_nothing_private,
    assert_nothing_to_mend,
)

FILE: Final = SQL / "socialpredict-views.sql"
#: Everything that a site can publish.
SETTINGS: Final = {
    "source__schema": "public_api", "variant": "extended", "layout": "chunks", "dumps__parquet": True,
    "detail__recent_fills": 1000,
}  # fmt: skip


@pytest.fixture(scope="module")
def made() -> MadeSite:
    return MadeSite()


@pytest.fixture(scope="module")
def existing_site(postgres: Server, made: MadeSite) -> ExistingSite:
    site = apply(postgres, SCHEMA.read_text(), FILE.read_text())
    with closing(site.server.connect(site.name)) as owner:
        made.insert(owner)  # PostgreSQL has no statistics of these rows, as on a site's first day
    return site


@pytest.fixture(scope="module")
def published(existing_site: ExistingSite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("socialpredict")
    assert_nothing_to_mend(existing_site, folder)
    report = build_now(make_config(folder, source__url=existing_site.url, **SETTINGS))
    assert (report.quarantine.total(), report.remarks) == (0, [])
    return folder / "output"


@pytest.fixture
def owner(existing_site: ExistingSite) -> Iterator[Any]:
    """A connection of the owner whose changes are undone."""
    with closing(existing_site.server.connect(existing_site.name)) as owner, owner.transaction(force_rollback=True):
        yield owner


@pytest.fixture(scope="module")
def expected(existing_site: ExistingSite, made: MadeSite) -> dict[str, dict[str, Any]]:
    with closing(existing_site.server.connect(existing_site.name)) as owner:
        ((key,),) = owner.execute("SELECT key FROM public_api.fill_id_key").fetchall()
    return made.expected(key)


def test_every_published_number_follows_from_the_bets(published: Path, expected: dict[str, dict[str, Any]]) -> None:
    found = details(published)
    for detail in found.values():
        detail["recentFills"].sort(key=lambda fill: (fill["timestamp"], fill["id"]))
    assert found.keys() == expected.keys()
    assert [key for key in expected if found[key] != expected[key]] == []
    bets = [bet for detail in found.values() for bet in detail["recentFills"]]
    statuses = Counter(detail["market"]["status"] for detail in found.values())
    assert len(found) > 190
    assert len(bets) > 3_000
    assert min(statuses.values()) > 30
    assert statuses.keys() == {"open", "closed", "resolved", "cancelled"}


def test_groups_are_questions_of_their_public_markets(
    existing_site: ExistingSite, made: MadeSite, tmp_path: Path
) -> None:
    with closing(existing_site.server.connect(existing_site.name)) as owner:
        ((key,),) = owner.execute("SELECT key FROM public_api.fill_id_key").fetchall()
        numbers = dict(owner.execute("SELECT question_id::text, number FROM public_api.question_ids").fetchall())
    found, quarantine = gathered(tmp_path, existing_site.url, **SETTINGS)
    assert ([*found.questions], found.remarks, [*quarantine]) == (made.expected_questions(key), [], [])
    assert {numbers[question.id] for question in found.questions} == {1, 2}
    members = [member for question in found.questions for member in question.members]
    assert max(len(question.members) for question in found.questions) > 10
    assert {len(str(member.label)) < 100 for member in members} == {True, False}
    assert None in {member.position for member in members}


def test_a_blank_answer_is_none_and_an_answer_that_is_deleted_leaves_its_market_alone(
    owner: Any, made: MadeSite
) -> None:
    placed = "SELECT m.market_id, m.label FROM public_api.question_members AS m"
    before = dict(owner.execute(placed).fetchall())
    owner.execute("UPDATE market_group_members SET answer_label = ' ' WHERE group_id = 1")
    assert dict(owner.execute(placed).fetchall()).keys() == before.keys()
    owner.execute("UPDATE market_group_members SET deleted_at = now() WHERE group_id = 2")
    assert {label for _, label in owner.execute(placed).fetchall()} == {None}
    owner.execute("UPDATE market_groups SET lifecycle_status = 'proposed' WHERE id = 1")
    assert owner.execute(placed).fetchall() == owner.execute("SELECT id FROM public_api.questions").fetchall() == []


def test_nothing_of_users_or_of_what_is_not_public_is_published_or_in_any_row(published: Path, reader: Any) -> None:
    assert_nothing_private(reader, published, "detail_version", questions=True)
    assert {".parquet", ".gz", ".atom", ".json"} <= {Path(key).suffix for key in files(published, "")}


def test_a_condition_that_fails_on_purpose_sees_no_hidden_row(reader: Any) -> None:
    trap = "CASE WHEN question LIKE 'CANARY%' THEN question::integer ELSE 1 END = 1"
    assert reader.execute(f"SELECT count(*) > 190 FROM markets WHERE {trap}").fetchone() == (True,)


def versions(connection: Any) -> dict[str, str]:
    return dict(connection.execute("SELECT id::text, detail_version FROM public_api.markets").fetchall())


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO bets (id, market_id, amount, placed_at, outcome) VALUES (0, %(market)s, 5, now(), 'YES')",
        "UPDATE bets SET amount = amount + 1 WHERE id = (SELECT min(id) FROM bets WHERE market_id = %(market)s)",
        "UPDATE bets SET placed_at = placed_at - interval '1 us' WHERE market_id = %(market)s",
        "UPDATE bets SET deleted_at = now() WHERE id = (SELECT min(id) FROM bets WHERE market_id = %(market)s)",
        "DELETE FROM bets WHERE id = (SELECT min(id) FROM bets WHERE market_id = %(market)s)",
        "UPDATE markets SET created_at = created_at - interval '1 day' WHERE id = %(market)s",
    ],
)
def test_every_change_of_a_bet_changes_the_version_of_its_market_and_of_no_other(
    owner: Any, made: MadeSite, change: str
) -> None:
    market = made.played()
    owner.execute("UPDATE bets SET deleted_at = NULL")
    before = versions(owner)
    ((own,),) = owner.execute(
        "SELECT market_id::text FROM public_api.visible_markets WHERE number = %s", [market]
    ).fetchall()
    owner.execute(change, {"market": market})
    after = versions(owner)
    assert {key for key in before if after[key] != before[key]} == {own}


def test_the_values_at_the_top_are_those_of_the_site(postgres: Server) -> None:
    script = FILE.read_text()
    for default, other in {"search_path = public;": "search_path = site;", "_probability = 0.5;": "_probability = 0.2;",
                           "_subsidy = 10;": "_subsidy = 40;"}.items():  # fmt: skip
        assert script.index(default) < 2_500
        script = script.replace(default, other)
    schema = f"CREATE SCHEMA site; SET search_path = site; {SCHEMA.read_text()}; RESET search_path;"
    site = apply(postgres, schema, script)
    with closing(site.server.connect(site.name)) as owner:
        owner.execute(
            "INSERT INTO site.markets (question_title, created_at, lifecycle_status) VALUES ('?', now(), 'published');"
            "INSERT INTO site.bets (market_id, amount, placed_at, outcome) VALUES (1, 10, now(), 'NO')"
        )
        assert owner.execute("SELECT prob FROM public_api.markets").fetchall() == [(8 / 50,)]
        assert owner.execute("SELECT prob FROM public_api.probabilities ORDER BY 1").fetchall() == [(8 / 50,), (0.2,)]


def test_sums_that_are_impossible_cost_the_market_and_not_the_build(owner: Any, made: MadeSite) -> None:
    market = [made.played()]
    owner.execute("UPDATE bets SET deleted_at = NULL, amount = 0 WHERE market_id = %s", market)
    owner.execute(
        "INSERT INTO bets (id, market_id, amount, placed_at, outcome) VALUES (0, %s, -10, now(), 'NO')", market
    )
    found = owner.execute("SELECT prob, volume FROM public_api.markets WHERE prob IS NULL").fetchall()
    assert found == [(None, 0)]
    assert owner.execute("SELECT count(*) FROM public_api.probabilities WHERE prob IS NULL").fetchone() == (1,)


def test_role_and_secret_are_those_of_the_first_example() -> None:
    first, this = VIEWS.read_text(), FILE.read_text()
    role = this[this.index("-- ── the role ─") :]
    (own,) = re.findall(r"-- PostgreSQL cannot estimate.*?jit = off;\n", role, re.DOTALL)
    assert role.replace(own, "") == first[first.index("-- ── the role ─") :]
    (secret,) = re.findall(r"CREATE TABLE IF NOT EXISTS public_api\.fill_id_key.*?;\nINSERT.*?;\n", first, re.DOTALL)
    assert secret in this
