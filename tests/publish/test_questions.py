"""Questions are taken down, withdrawn and found as markets are, in a store and in the folder."""

import itertools
import json
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from generator.publish import record
from generator.tree.files import BLOCKED, MANIFEST, UNCHANGED
from tests.support.deaths import dying_before
from tests.support.readers import parquet
from tests.support.sites.builds import text_of
from tests.support.sites.publishing import CLOSED, PublishedSite, hour
from tests.support.sites.question_tables import create_questions, insert_member, insert_question, question_id
from tests.support.sites.rows import market_id
from tests.support.stores.s3.wire import Request

HOME: Final = "https://home.example.org"
#: Two questions: of markets 1 to 3, and of 4 and the closed one.
ONE, TWO = 0x101, 0x102
MEMBERS: Final = {ONE: (1, 2, 3), TWO: (4, CLOSED)}


@pytest.fixture(params=["pages", "chunks"])
def site(published_site: PublishedSite, request: pytest.FixtureRequest) -> PublishedSite:
    """A published site with questions that were traded since, so that walks are in retired generations."""
    published_site.settings |= {
        "variant": "extended", "layout": request.param, "guards.max_shrink": "1", "market_url": f"{HOME}/m/{{id}}",
        "question_url": f"{HOME}/q/{{key}}",
    }  # fmt: skip
    create_questions(published_site.database)
    for number, members in MEMBERS.items():
        insert_question(published_site.database, number, *members, slug=f"Slug-{number}", key=f"key {number}")
    published_site.done("rebuild", "--as-of", hour(1))
    published_site.edit(4, volume=77.0)
    published_site.edit(1, volume=78.0)
    published_site.done("rebuild", "--as-of", hour(2))
    assert published_site.record().built.retired
    assert len(of_question(published_site, ONE)) > 10
    return published_site


def change(site: PublishedSite, number: int, **columns: object) -> None:
    """Change a row of the questions."""
    names = ", ".join(f"{name} = ?" for name in columns)
    site.database.execute(f"UPDATE questions SET {names} WHERE id = ?", [*columns.values(), question_id(number)])


def of_question(site: PublishedSite, number: int, *, output: bool = True) -> list[str]:
    """The keys under v1/ that show anything of a question, in the bucket and in the folder."""
    texts = [question_id(number), f"Slug-{number}", f"Which {number}?", f"key%20{number}"]
    return traces(site, texts, output=output)


def of_label(site: PublishedSite, number: int) -> list[str]:
    return traces(site, [f'"Answer {number}"'])


def traces(site: PublishedSite, texts: list[str], *, output: bool = True) -> list[str]:
    places = {f"store {key}": body for key, body in site.objects().items()}
    places |= {f"output {key}": body for key, body in site.built().items()} if output else {}
    found = {key: text_of(key, body) for key, body in places.items()}
    return sorted(key for key, body in found.items() if any(text.encode() in body or text in key for text in texts))


def detail(site: PublishedSite, number: int) -> dict[str, object]:
    found: dict[str, object] = json.loads(site.read(keys.question(question_id(number))) or b"{}")
    return found


def size(site: PublishedSite, number: int) -> object:
    question = detail(site, number)["question"]
    assert isinstance(question, dict)
    assert site.read(keys.question_by_slug(f"slug-{number}")) == site.read(keys.question(question_id(number)))
    return question["size"]


def stopped_after(writes: int, site: PublishedSite, *command: str) -> None:
    """Run a command that is killed before the next write to the store; one that makes fewer ends."""
    left = itertools.count(writes, -1)

    def is_next(request: Request) -> bool:
        return request.method in {"PUT", "POST", "DELETE"} and next(left) <= 0

    with suppress(AssertionError), dying_before(site.server, is_next):
        site.run(*command)


# A question by itself


@pytest.mark.parametrize(
    "name", ["slug-257", f"key {ONE}", question_id(ONE).upper(), question_id(ONE)[:8], f"{HOME}/q/key%20{ONE}?from=x"]
)
def test_a_question_is_taken_down_by_any_name_with_all_its_markets(site: PublishedSite, name: str) -> None:
    told = site.done("takedown", "--question", name)
    assert of_question(site, ONE) == []
    for number in MEMBERS[ONE]:
        assert site.traces(number) == of_label(site, number) == []
    assert size(site, TWO) == 2
    site.check()
    assert f'{question_id(ONE)}: "Which {ONE}?", open, with 3 markets\n' in told.stderr
    lines = told.stdout.splitlines()
    assert lines[0].startswith(f"{market_id(1)} blocked since 2")
    assert lines[0].endswith(f", through question {question_id(ONE)}")
    assert lines[3].startswith(f"question {question_id(ONE)} blocked since 2")
    assert lines[4] == "3 markets and 1 question are blocked"
    assert "output: 3 markets and 1 question; " in lines[5]
    site.done("rebuild", "--as-of", hour(3))
    assert of_question(site, ONE) == site.traces(1) == []
    site.check()


def test_its_detail_goes_by_its_slug_and_then_by_its_id_before_anything_else(site: PublishedSite) -> None:
    before, gone = site.objects(), list[set[str]]()
    for writes in (2, 3, 4):  # after the list, and the proof that conditions hold
        stopped_after(writes, site, "takedown", "--question", question_id(ONE))
        gone.append(before.keys() - site.objects().keys())
    by_id = {keys.question(question_id(ONE)), *(keys.detail(market_id(number)) for number in MEMBERS[ONE])}
    assert gone[0] == set()
    assert keys.question_by_slug(f"slug-{ONE}") in gone[1]
    assert len(gone[1]) == len(by_id)
    assert gone[2] == gone[1] | by_id
    assert {key: body for key, body in before.items() if key not in gone[2]} == site.objects()


def test_whoever_joins_it_later_is_blocked_for_good(site: PublishedSite) -> None:
    site.done("takedown", "--question", question_id(ONE))
    insert_member(site.database, ONE, 5)
    change(site, ONE, approval="pending")
    site.database.execute("UPDATE question_members SET market_id = upper(market_id)")
    site.done("rebuild", "--as-of", hour(3))
    assert site.traces(5) == of_label(site, 5) == []
    site.check()
    assert json.loads(Path("output/report.json").read_bytes())["takenDown"] == [market_id(n) for n in (1, 2, 3, 5)]
    site.database.execute("DELETE FROM question_members")
    site.database.execute("DELETE FROM questions")
    site.done("rebuild", "--as-of", hour(4))
    assert site.traces(5) == []
    assert site.blocked_list().through(market_id(5)) == (question_id(ONE),)
    undone = site.done("takedown", "--undo", "--question", question_id(ONE))
    assert (
        f"{question_id(ONE)}: no longer blocked; the next `public-markets rebuild` publishes it again" in undone.stderr
    )
    freed = ", ".join(market_id(number) for number in (1, 2, 3, 5))
    assert f"{freed}: no longer blocked either" in undone.stderr
    assert site.blocked_ids() == frozenset()
    site.done("rebuild", "--as-of", hour(5))
    assert site.traces(5)


def test_a_market_that_joins_while_nothing_else_changes_is_seen(site: PublishedSite) -> None:
    for column in ("detail_version", "market_version"):  # with which a build that finds nothing to do ends early
        site.database.execute(f"ALTER TABLE markets ADD COLUMN {column} TEXT DEFAULT '1'")
    site.done("takedown", "--question", question_id(TWO))
    change(site, TWO, approval="pending")
    site.done("rebuild", "--as-of", hour(3))
    site.done("rebuild", "--as-of", hour(4))
    assert Path("output", UNCHANGED).exists()
    insert_member(site.database, TWO, 5)
    site.done("rebuild", "--as-of", hour(5))
    assert site.traces(5) == []


def test_whoever_joins_is_blocked_where_questions_are_switched_off(site: PublishedSite) -> None:
    for column in ("detail_version", "market_version"):
        site.database.execute(f"ALTER TABLE markets ADD COLUMN {column} TEXT DEFAULT '1'")
    site.done("takedown", "--question", question_id(TWO))
    site.settings["questions.enabled"] = "false"
    for number in (3, 4):
        site.done("rebuild", "--as-of", hour(number), "--accept", "shrink")
    assert Path("output", UNCHANGED).exists()
    insert_member(site.database, TWO, 5)
    site.done("rebuild", "--as-of", hour(5))
    assert site.traces(5) == []
    site.database.execute("ALTER TABLE question_members RENAME COLUMN market_id TO market")
    site.done("rebuild", "--as-of", hour(6))
    assert site.traces(5) == []


def test_a_dry_run_says_what_would_be_blocked_and_writes_nothing(site: PublishedSite) -> None:
    site.done("takedown", "--question", question_id(ONE))
    insert_member(site.database, ONE, 5)
    before = Path("output", BLOCKED).read_bytes()
    assert "objects of 7 markets in output" in site.run("check").stdout
    assert Path("output", BLOCKED).read_bytes() == before
    assert market_id(5) not in site.blocked_ids()


def test_an_undo_leaves_what_is_blocked_by_itself(site: PublishedSite) -> None:
    site.done("takedown", "--question", question_id(ONE))
    site.done("takedown", market_id(2), market_id(3))
    told = site.done("takedown", "--undo", market_id(1)).stderr
    assert f"{market_id(1)}: stays blocked through its question {question_id(ONE)}" in told
    assert site.blocked_ids() >= {market_id(1), market_id(2), market_id(3)}
    undone = site.done("takedown", "--undo", "--question", question_id(ONE))
    assert site.blocked_ids() == {market_id(2), market_id(3)}
    assert f"{market_id(2)}, {market_id(3)}: still blocked" in undone.stderr
    site.done("rebuild", "--as-of", hour(3))
    assert site.traces(2) == site.traces(3) == []
    assert size(site, ONE) == 1


def test_a_program_that_knows_no_questions_obeys_the_list(site: PublishedSite) -> None:
    site.done("takedown", "--question", question_id(ONE))
    written = json.loads(site.stored()[BLOCKED])
    assert all(written["markets"][market_id(number)]["isBlocked"] for number in MEMBERS[ONE])
    site.done("takedown", "--undo", "--question", question_id(ONE))
    written = json.loads(site.stored()[BLOCKED])
    assert not any(written["markets"][market_id(number)]["isBlocked"] for number in MEMBERS[ONE])


def test_it_is_taken_down_in_a_folder_without_a_target(site: PublishedSite) -> None:
    site.target, site.settings["publish.endpoint_url"] = "", ""
    site.done("takedown", "--question", f"slug-{ONE}")
    in_folder = [key for key in (*of_question(site, ONE), *site.traces(1)) if key.startswith("output")]
    assert in_folder == []
    assert site.done("takedown").stdout.endswith("3 markets and 1 question are blocked\n")


# A market of a question


def test_a_question_is_made_again_without_a_market_that_is_taken_down(site: PublishedSite) -> None:
    site.done("takedown", market_id(2))
    assert site.traces(2) == of_label(site, 2) == []
    assert size(site, ONE) == 2
    site.check()
    site.done("takedown", market_id(1), market_id(3))
    assert of_question(site, ONE) == []
    site.check()


def test_the_question_of_a_market_goes_right_after_it_whoever_is_at_work(site: PublishedSite) -> None:
    """Definitions name it, so nobody waits for the lease."""
    objects = keys.questions(question_id(ONE), f"slug-{ONE}")
    stopped_after(4, site, "takedown", market_id(2))
    assert site.read(keys.detail(market_id(2))) is None
    assert all(map(site.read, objects))
    stopped_after(4, site, "takedown", market_id(2))  # nothing tells the slug of the market any more
    assert [site.read(key) is None for key in objects] == [True, False]
    stopped_after(5, site, "takedown", market_id(2))
    assert not any(map(site.read, objects))


@pytest.mark.parametrize("writes", [2, 5, 9, 999])
def test_without_definitions_a_question_is_made_again_of_its_detail(site: PublishedSite, writes: int) -> None:
    site.settings |= {"dumps.ndjson": "false"}
    site.done("rebuild", "--as-of", hour(3))
    stopped_after(writes, site, "takedown", market_id(2))
    site.server.behaviour.clock_offset_s += 600
    site.done("takedown", market_id(2))
    assert site.traces(2) == of_label(site, 2) == []
    assert size(site, ONE) == 2
    site.check()


@pytest.mark.parametrize("lost", ["record", "version"])
def test_where_nothing_can_be_made_again_the_question_of_a_market_goes_with_it(site: PublishedSite, lost: str) -> None:
    site.settings |= {"dumps.ndjson": "false"}
    site.done("rebuild", "--as-of", hour(3))
    if lost == "record":
        site.remove(record.KEY)
    else:
        said = json.loads(site.stored()[record.KEY])
        site.put(record.KEY, json.dumps(said | {"format": 99}).encode())
    assert "the details of blocked markets were deleted" in site.run("takedown", market_id(2)).stderr
    shown = [key for key in traces(site, [market_id(2), '"Answer 2"'], output=False) if "/detail" in key]
    assert shown == []
    assert not any(map(site.read, keys.questions(question_id(ONE), f"slug-{ONE}")))
    assert size(site, TWO) == 2


@pytest.mark.parametrize("altered", [{"format": 99}, {"settings": {"variant": "other"}}], ids=["format", "version"])
def test_so_it_does_in_a_folder(site: PublishedSite, altered: dict[str, object]) -> None:
    site.settings |= {"dumps.ndjson": "false"}
    site.done("rebuild", "--as-of", hour(3))
    site.target, site.settings["publish.endpoint_url"] = "", ""
    path = Path("output", MANIFEST)
    path.write_text(json.dumps(json.loads(path.read_bytes()) | altered))
    assert "the details of blocked markets were deleted" in site.run("takedown", market_id(2)).stderr
    shown = Path("output", keys.QUESTIONS).rglob("*.json")
    assert [file for file in shown if "/detail" in str(file) and market_id(2) in file.read_text()] == []
    assert not any(Path("output", key).exists() for key in keys.questions(question_id(ONE), f"slug-{ONE}"))


@pytest.mark.campaign(short=12)
@pytest.mark.parametrize("writes", [*range(1, 14), *range(14, 120, 7)])
def test_however_a_takedown_is_killed_the_next_one_finishes_it(site: PublishedSite, writes: int) -> None:
    stopped_after(writes, site, "takedown", market_id(2))
    site.server.behaviour.clock_offset_s += 600
    site.done("takedown", market_id(2))
    assert site.traces(2) == of_label(site, 2) == []
    assert size(site, ONE) == 2
    site.check()


@pytest.mark.campaign(short=8)
@pytest.mark.parametrize("writes", [*range(1, 14), *range(14, 120, 7)])
def test_however_a_publish_is_killed_a_takedown_of_another_market_brings_nothing_back(
    site: PublishedSite, writes: int
) -> None:
    """Of what was deleted already, only a question is made again that has to be because one of its markets goes."""
    site.edit(2, approval="rejected")
    change(site, TWO, approval="pending")
    site.done("build", "--as-of", hour(3))
    stopped_after(writes, site, "publish")
    is_gone = site.read(keys.question(question_id(TWO))) is None
    site.server.behaviour.clock_offset_s += 600
    site.forget_output()
    site.done("takedown", market_id(5))
    if is_gone:
        assert of_question(site, TWO, output=False) == []
    site.done("rebuild", "--as-of", hour(4))
    assert of_question(site, TWO) == site.traces(2) == site.traces(5) == []
    assert size(site, ONE) == 2
    site.check()


@pytest.mark.parametrize(("hidden", "named"), [((), 2), ((2,), 5)], ids=["its market goes later", "its market, too"])
def test_a_takedown_brings_back_no_question_that_a_killed_publish_withdrew(
    site: PublishedSite, hidden: tuple[int, ...], named: int
) -> None:
    """That one of its markets goes explains why the detail is missing, and is not the reason."""
    change(site, ONE, approval="pending")
    for number in hidden:
        site.edit(number, approval="rejected")
    site.done("build", "--as-of", hour(3))
    for writes in range(3, 12):
        stopped_after(writes, site, "publish")
        site.server.behaviour.clock_offset_s += 600
        if site.read(keys.question(question_id(ONE))) is None:
            break
    assert site.record().work
    site.forget_output()
    for again in (9, 999):  # writes after which the takedown is killed
        stopped_after(again, site, "takedown", market_id(named))
        site.server.behaviour.clock_offset_s += 600
    assert of_question(site, ONE, output=False) == site.traces(named, output=False) == []
    change(site, ONE, approval="approved")
    site.done("rebuild", "--as-of", hour(4))
    assert size(site, ONE) == 2
    site.check()


@pytest.mark.campaign(short=4)
@pytest.mark.parametrize("dumps", ["true", "false"])
@pytest.mark.parametrize("writes", [3, 6, 9, *range(14, 60, 9)])
def test_a_killed_publish_of_a_question_costs_no_other(site: PublishedSite, writes: int, dumps: str) -> None:
    """Also where a market moved, so that the details of two questions may have it."""
    site.settings |= {"dumps.ndjson": dumps}
    site.done("rebuild", "--as-of", hour(3))
    insert_question(site.database, 0x103, 5, slug="slug-259")
    site.database.execute(
        "UPDATE question_members SET question_id = ? WHERE market_id = ?", [question_id(ONE), market_id(4)]
    )
    site.done("build", "--as-of", hour(4))
    stopped_after(writes, site, "publish")
    site.server.behaviour.clock_offset_s += 600
    site.forget_output()
    site.done("takedown", market_id(2))
    assert site.traces(2) == []
    assert size(site, ONE) in {2, 3}
    site.done("rebuild", "--as-of", hour(5))
    assert (size(site, ONE), size(site, TWO)) == (3, 1)
    site.check()


def test_fewer_questions_or_labels_are_refused_and_hidden_markets_go_all_the_same(site: PublishedSite) -> None:
    site.settings |= {"guards.max_shrink": "0.5"}
    site.edit(1, approval="pending")
    site.database.execute("UPDATE question_members SET label = ''")
    refused = site.run("rebuild", "--as-of", hour(3))
    assert refused.exit_code == 3
    assert "there would be 0 question labels, of 5, which is less than guards.max_shrink (0.5) allows" in refused.output
    assert site.traces(1, output=False) == []
    site.done("build", "--as-of", hour(4), "--accept", "shrink")
    assert site.run("publish").exit_code == 3
    site.done("publish", "--accept", "shrink")
    site.done("takedown", "--question", question_id(ONE))
    site.done("rebuild", "--as-of", hour(5))
    site.check()


def test_a_build_that_withdraws_a_market_deletes_its_question_first(site: PublishedSite) -> None:
    site.edit(2, approval="rejected")
    site.server.log.clear()
    site.done("build", "--as-of", hour(3))
    plan = site.done("publish", "--dry-run").stderr + site.done("publish", "--dry-run").stdout
    by_slug, by_id = keys.question_by_slug(f"slug-{ONE}"), keys.question(question_id(ONE))
    steps = [line for line in plan.splitlines() if by_slug in line or by_id in line]
    assert [line.partition(":")[0].split()[-2:] for line in steps[:4]] == [
        ["delete", by_slug], ["delete", by_id], ["upload", by_id], ["upload", by_slug],
    ]  # fmt: skip
    site.done("publish")
    assert site.traces(2) == of_label(site, 2) == []
    assert size(site, ONE) == 2
    site.check()


# A question that goes while its markets stay


GOING: Final = {
    "hidden": "UPDATE questions SET approval = 'pending' WHERE id = ?",
    "vanished": "DELETE FROM questions WHERE id = ?",
    "quarantined": "UPDATE questions SET title = NULL WHERE id = ?",
    "another id": "UPDATE questions SET id = 'f' || substr(id, 2), title = 'New?', slug = '', key = '' WHERE id = ?",
}


@pytest.mark.parametrize("statement", GOING.values(), ids=GOING)
def test_a_question_that_goes_is_withdrawn_and_its_markets_stay(site: PublishedSite, statement: str) -> None:
    of_markets = {entry.pair for entry in site.record().built.retired if not entry.list.startswith(keys.OF_QUESTIONS)}
    site.database.execute(statement, [question_id(ONE)])
    site.done("rebuild", "--as-of", hour(3))
    assert of_question(site, ONE) == of_label(site, 1) == []
    assert site.traces(1)
    site.check()
    left = {entry.pair for entry in site.record().built.retired}
    assert {pair for pair in of_markets if pair[0] not in keys.INDEXED} <= left, "walks of markets go on"


def test_a_build_that_is_refused_withdraws_what_is_hidden_and_not_what_is_bad(site: PublishedSite) -> None:
    site.settings |= {"guards.max_invalid": "0", "guards.max_shrink": "0.5"}
    insert_question(site.database, 0x103, 5)
    site.done("rebuild", "--as-of", hour(3))
    change(site, ONE, approval="pending")
    change(site, 0x103, title=None)
    site.edit(6, volume=-1.0)
    site.edit(4, approval="pending")
    assert site.run("rebuild", "--as-of", hour(4)).exit_code == 3
    assert of_question(site, ONE, output=False) == []
    assert of_question(site, 0x103, output=False)
    assert size(site, TWO) == 1
    assert site.traces(6, output=False)
    assert site.traces(4, output=False) == []


def test_relations_that_are_gone_end_all_that_is_of_questions(site: PublishedSite) -> None:
    site.database.execute("DROP TABLE question_members")
    site.database.execute("DROP TABLE questions")
    assert site.run("rebuild", "--as-of", hour(3)).exit_code == 3
    assert of_question(site, ONE)
    site.done("rebuild", "--as-of", hour(3), "--accept", "shrink")
    assert [key for key in site.objects() if "questions" in key] == []
    assert site.record().built.questions() == {*()}
    assert site.record().built.members == {}
    site.check()


def test_verify_deletes_what_nobody_knows_and_puts_back_what_is_missing(site: PublishedSite) -> None:
    key = keys.question(question_id(ONE))
    site.put(keys.question(question_id(0x999)), site.objects()[key])
    site.put(keys.question_by_slug("nobodys"), site.objects()[key])
    site.remove(key)
    site.put(keys.question_by_slug(f"slug-{TWO}"), b"{}")
    site.done("publish", "--verify")
    assert size(site, ONE) == 3
    assert size(site, TWO) == 2
    site.check()


def test_an_edit_ends_no_walk(site: PublishedSite) -> None:
    before = {entry.pair for entry in site.record().built.retired}
    change(site, ONE, title="Another title?")
    site.database.execute("DELETE FROM question_members WHERE market_id = ?", [market_id(2)])
    site.done("rebuild", "--as-of", hour(3))
    assert {entry.pair for entry in site.record().built.retired} >= before
    assert size(site, ONE) == 2
    # Walks are still in lists that showed the market in the question: they end if it goes now.
    site.done("takedown", market_id(2))
    assert site.traces(2) == of_label(site, 2) == []
    site.check()


# Names


def test_a_name_of_a_market_and_of_a_question_is_refused_with_the_remedy(site: PublishedSite) -> None:
    site.edit(5, slug="shared")
    change(site, TWO, slug="SHARED")
    site.done("rebuild", "--as-of", hour(3))
    sentence = (
        f"shared: may mean 1 market, {market_id(5)}, or 1 question, {question_id(TWO)}; name the one by its id, a "
        "question with `public-markets takedown --question ID`"
    )
    assert site.refused(1, "takedown", "shared") == sentence
    assert site.refused(1, "find", "shared") == sentence
    assert site.done("find", market_id(5)).stdout.splitlines()[0].startswith(market_id(5))
    site.done("takedown", "--question", "shared")
    assert of_question(site, TWO) == []
    assert site.traces(5)
    assert site.refused(1, "takedown", "shared").startswith("shared: may mean 1 market, ")
    assert f"{question_id(TWO)} (taken down)" in site.refused(1, "takedown", "shared")


def test_an_id_of_the_other_kind_is_refused(site: PublishedSite) -> None:
    assert site.refused(1, "takedown", question_id(ONE)) == (
        f"{question_id(ONE)}: is the id of a question; `public-markets takedown --question {question_id(ONE)}` takes "
        "it with its markets down"
    )
    assert site.refused(1, "takedown", "--question", market_id(1)).startswith(
        f"{market_id(1)}: is the id of a market; "
    )
    assert site.refused(1, "takedown", f"slug-{ONE}").startswith(
        f"slug-{ONE}: names no market, but 1 question: {question_id(ONE)}; "
    )
    assert site.refused(1, "takedown", "--question", "nothing").startswith("nothing: no published question has this")
    assert site.blocked_ids() == frozenset()


def test_find_finds_questions_by_words_of_their_titles_and_by_all_names(site: PublishedSite) -> None:
    line = f"{question_id(ONE)}  question   Which {ONE}? (3 markets)"
    for words in (f"which {ONE}", question_id(ONE), f"slug-{ONE}", f"key {ONE}", f"{HOME}/q/key%20{ONE}"):
        assert site.done("find", words).stdout.splitlines()[0] == line
    assert site.done("find", "which").stdout.splitlines()[-1].startswith("0 markets and 2 questions in s3://")
    site.done("takedown", "--question", f"slug-{ONE}")
    assert site.refused(1, "find", f"which {ONE}").startswith(f"which {ONE}: no market or question in")


def test_find_finds_questions_where_the_record_is_missing(site: PublishedSite) -> None:
    site.remove(record.KEY)
    line = f"{question_id(ONE)}  question   Which {ONE}? (3 markets)"
    for words in (f"which {ONE}", question_id(ONE), f"slug-{ONE}"):
        assert site.done("find", words).stdout.splitlines()[0] == line


# Links home


def urls(site: PublishedSite) -> tuple[dict[str, str], dict[str, str | None], dict[str, str | None]]:
    """The addresses in the feed of what is new, by id, in the table of markets and in that of definitions."""
    found = site.objects()
    head = json.loads(found[keys.head(keys.DUMPS)])
    (markets,) = (file["name"] for file in head["markets"] if file["format"] == "parquet")
    (definitions,) = (file["sha256"] for file in head["questions"]["files"] if file["format"] == "parquet")
    (table,) = (body for key, body in found.items() if definitions[:32] in key)
    feed = json.loads(found[keys.feed("new", "json")])["items"]
    return (
        {entry["id"].removeprefix("urn:uuid:"): entry["url"] for entry in feed},
        {row["id"]: row["url"] for row in parquet.rows(found[keys.chunk(keys.DUMPS, markets)])},
        {row["questionId"]: row["url"] for row in parquet.rows(table)},
    )


def test_feed_and_tables_link_pages_of_questions_and_those_of_markets_by_their_question(site: PublishedSite) -> None:
    site.settings |= {"dumps.parquet": "true", "market_url": f"{HOME}/q/{{question}}#{{id}}"}
    site.done("rebuild", "--as-of", hour(3))
    entries, markets, questions = urls(site)
    pages = {question_id(number): f"{HOME}/q/key%20{number}" for number in MEMBERS}
    assert pages == questions == {key: entries[key] for key in pages}
    assert markets[market_id(1)] == f"{HOME}/q/{question_id(ONE)}#{market_id(1)}"
    assert markets[market_id(5)] is None
    assert entries[market_id(5)].endswith(f"/v1/public/markets/{market_id(5)}")
    change(site, ONE, key="new")
    site.database.execute("DELETE FROM question_members WHERE market_id = ?", [market_id(1)])
    site.done("rebuild", "--as-of", hour(4))
    site.done("takedown", f"{HOME}/q/{question_id(ONE)}#{market_id(2)}")  # made again of the record alone
    entries, markets, questions = urls(site)
    assert entries[question_id(ONE)] == questions[question_id(ONE)] == f"{HOME}/q/new"
    assert (markets[market_id(1)], market_id(2) in markets) == (None, False)
    assert markets[market_id(3)] == f"{HOME}/q/{question_id(ONE)}#{market_id(3)}"
    assert traces(site, [f"key%20{ONE}"]) == []
    assert len(site.record().built.site_keys) == 2
