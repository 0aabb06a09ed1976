"""`verify URL` believes definitions as it believes the dump, and names what of questions contradicts both."""

import gzip
import hashlib
import io
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import contract, keys
from generator.downloads import definitions, parquet
from generator.progress import SILENT
from generator.verify.contract.run import MOST_REQUESTS, verify_contract
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import SiteReader
from generator.verify.run import verify
from tests.questions import random_sites, sites
from tests.support import commands
from tests.support.sites.builds import AS_OF, NO_LIMITS, build_now, make_config
from tests.verify.altering import Alter, Proxy, Upstream, asked_once, in_process, proxied
from tests.verify.test_verify import (
    OF_DUMPS,
    altering,
    answer_as_before,
    dump_head,
    edit,
    mismatches,
)

QUESTIONS: Final = "/v1/public/questions"
SETTINGS: Final[dict[str, Any]] = {
    "variant": "extended", "categories": "a,weather", "layout": "chunks", "feeds__enabled": True,
    "dumps__parquet": True, **NO_LIMITS, "guards__max_invalid": 1,
}  # fmt: skip
#: Of rows of questions, and of details.
_ROWS: Final = r"/questions\?"
_DETAILS: Final = r"/public/questions/[^?]+$"
_NOBODY: Final = "00000000-0000-4000-8000-000000000000"

Change = Callable[[Any], object]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a case for each rule of questions."""
    folder = tmp_path_factory.mktemp("earlier")
    sites.troubled(folder / "markets.db")
    build_now(make_config(folder, **SETTINGS), AS_OF - timedelta(minutes=5), invalid=True)
    return folder


@pytest.fixture(scope="module")
def folder(earlier: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same site five minutes later: some markets were traded."""
    folder = tmp_path_factory.mktemp("questions")
    shutil.copytree(earlier, folder, dirs_exist_ok=True)
    traded = "trader_count = trader_count + 1, prob = 0.625"
    edit(folder, f"UPDATE markets SET {traded} WHERE rowid % 2 = 0 AND trader_count < 1000 AND prob < 0.9")
    build_now(make_config(folder, **SETTINGS), invalid=True)
    return folder


@pytest.fixture(scope="module")
def before(earlier: Path) -> Upstream:
    return asked_once(in_process(make_config(earlier, **SETTINGS)))


@pytest.fixture(scope="module")
def upstream(folder: Path) -> Upstream:
    return asked_once(in_process(make_config(folder, **SETTINGS)))


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[Proxy]:
    with proxied(upstream) as running:
        yield running


# ── sites that are right ──────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_wrong_with_questions_that_are_right(proxy: Proxy) -> None:
    found = verify(SiteReader(proxy.url, 1e6, print), None, 1, SILENT, patience_s=0)
    assert found.mismatches == []
    assert found.lists
    assert found.lists.whole == 60
    asked = {target.partition("?")[0] for target in proxy.asked if target.startswith(f"{QUESTIONS}/")}
    assert len(asked) > 77, "details, some by slug, and markets that are no question"


def test_a_small_budget_asks_for_details_of_questions_that_rows_do_not_show_whole(proxy: Proxy) -> None:
    assert mismatches(proxy.url, 300) == []
    asked = {target.removeprefix(f"{QUESTIONS}/") for target in proxy.asked if target.startswith(f"{QUESTIONS}/")}
    with_many = {row["id"] for row in rows_of(proxy) if row["size"] > 10}
    assert len(with_many) == 4
    assert with_many <= asked


def rows_of(proxy: Proxy) -> list[Mapping[str, Any]]:
    """The first hundred rows."""
    answer = proxy.answer(f"{QUESTIONS}?status=all&sort=new&limit=100", {})
    return list(json.loads(answer.body)["items"])


@pytest.mark.parametrize(
    "settings",
    [{"questions__lists": False}, {"questions__enabled": False}, {"layout": "pages", "variant": "core"}],
    ids=["no lists", "no questions", "pages, core"],
)
def test_nothing_is_wrong_with_questions_of_other_settings(tmp_path: Path, settings: dict[str, Any]) -> None:
    sites.small(tmp_path / "markets.db")
    chosen = {**NO_LIMITS, "feeds__enabled": True, **settings}
    build_now(make_config(tmp_path, **chosen))
    with proxied(in_process(make_config(tmp_path, **chosen))) as proxy:
        assert mismatches(proxy.url, None) == []
        about = [target for target in proxy.asked if "/questions" in target]
    assert any(target.startswith(QUESTIONS) for target in about) == ("questions__enabled" not in settings)
    assert any(target.startswith(f"{QUESTIONS}?") for target in about) == ("layout" in settings)


@pytest.mark.parametrize("variant", ["core", "extended"])
def test_nothing_of_questions_breaks_the_contract(tmp_path: Path, variant: str) -> None:
    random_sites.random_site(tmp_path / "markets.db", seed=0)
    settings = {**NO_LIMITS, "variant": variant, "guards__max_invalid": 1}
    build_now(make_config(tmp_path, **settings), invalid=True)
    with proxied(in_process(make_config(tmp_path, **settings))) as proxy:
        found = verify_contract(SiteReader(proxy.url, 1e6, print, MOST_REQUESTS), (), SILENT)
        asked = [target for target in proxy.asked if target.startswith(f"{QUESTIONS}/")]
    assert found.mismatches == []
    assert len({*asked}) > 5


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("what", ["a question", "a market"])
def test_nothing_is_wrong_after_a_takedown(tmp_path: Path, what: str) -> None:
    random_sites.random_site(tmp_path / "markets.db", seed=0)
    # Some categories of its markets have no lists.
    settings: dict[str, Any] = {"variant": "extended", "categories": "a", "feeds__enabled": True}
    build_now(make_config(tmp_path, **settings, guards__max_invalid=1), invalid=True)
    with proxied(in_process(make_config(tmp_path, **settings, **NO_LIMITS))) as proxy:
        row = next(row for row in rows_of(proxy) if len(row["markets"]) > 1 and "b" in row["categories"])
        name = ["--question", row["id"]] if what == "a question" else [row["markets"][0]["id"]]
        environ = {f"PUBLIC_MARKETS_{key.upper()}": str(value) for key, value in settings.items()}
        done = commands.run("takedown", *name, "--yes", cwd=tmp_path, **environ)
        assert done.returncode == 0, done.stderr
        assert (row["id"] in {one["id"] for one in rows_of(proxy)}) == (what == "a market")
        assert mismatches(proxy.url, 300) == []


def test_nothing_is_wrong_with_relations_without_a_row(tmp_path: Path) -> None:
    sites.empty(tmp_path / "markets.db")
    build_now(make_config(tmp_path, **NO_LIMITS, feeds__enabled=True))
    with proxied(in_process(make_config(tmp_path, **NO_LIMITS, feeds__enabled=True))) as proxy:
        assert mismatches(proxy.url, None) == []


# ── answers that contradict the dump ──────────────────────────────────────────────────────────────────────────────


def _swap(items: list[Any]) -> None:
    items[0], items[1] = items[1], items[0]


def _of_questions(change: Change) -> Change:
    """Changes the rows of questions on a page."""
    return lambda page: [change(row) for row in page["items"] if row["kind"] != "single"]


def _of_small(change: Change) -> Change:
    return lambda page: [change(row) for row in page["items"] if 1 < row["size"] < 10]


def _of_singles(change: Change) -> Change:
    return lambda page: [change(row) for row in page["items"] if row["kind"] == "single"]


def _of_first_market(change: Change) -> Change:
    return _of_questions(lambda row: change(row["markets"][0]))


#: What is altered: a pattern of targets, a change of the content, and what must be said of it.
ALTERED: Final[dict[str, tuple[str, Change, Verdict, str]]] = {
    "a market in two rows": (
        _ROWS, lambda page: _of_small(lambda row: row["markets"].append(page["items"][0]["markets"][0]))(page),
        Verdict.WRONG, r"shows \d+ markets; the dump says \d+",
    ),
    "a row that is missing": (
        r"/questions\?.*limit=100$", lambda page: page["items"][:1] and page["items"].pop(0),
        Verdict.WRONG, "item 1 is .*; the dump and",
    ),
    "a market that is missing": (
        _ROWS, _of_small(lambda row: row["markets"].pop()), Verdict.WRONG, r"shows \d+ markets; the dump says \d+",
    ),
    "a sum": (_ROWS, _of_questions(lambda row: row.update(volume=1.25)), Verdict.WRONG, r"has volume 1\.25; the dump"),
    "a count": (_ROWS, _of_questions(lambda row: row.update(size=99)), Verdict.WRONG, "has size 99; the dump says"),
    "a state": (
        r"/questions\?status=open", _of_questions(lambda row: row.update(status="closed")), Verdict.WRONG,
        "has status 'closed'; the dump says 'open'",
    ),
    "a title": (_ROWS, _of_questions(lambda row: row.update(title="?")), Verdict.WRONG, r"has title '\?'; the dump"),
    "categories": (
        r"/questions\?status=all", _of_questions(lambda row: row.update(categories=["?"])), Verdict.WRONG,
        r"has categories \['\?'\]; the dump says",
    ),
    "a price": (
        _ROWS, _of_first_market(lambda one: one.update(prob=0.123)), Verdict.WRONG,
        r"shows its market 1, which has prob 0\.123; the dump says",
    ),
    "a label": (
        _ROWS, _of_first_market(lambda one: one.update(label="?")), Verdict.WRONG, r"market 1, which has label '\?'",
    ),
    "the label of a market alone": (
        _ROWS, _of_singles(lambda row: row["markets"][0].update(label="?")), Verdict.WRONG, r"has label '\?'; the dump",
    ),
    "the order of rows": (
        r"/questions\?.*limit=(?!1$)\d+$", lambda page: _swap(page["items"]) if len(page["items"]) > 1 else None,
        Verdict.WRONG, "item 1 is .*; the dump and the order say",
    ),
    "the order of markets": (
        _ROWS, _of_questions(lambda row: row["markets"].reverse()), Verdict.WRONG, "its market 1, which is market .*",
    ),
    "the end of a list": (_ROWS, lambda page: page.update(nextCursor=None), Verdict.WRONG, "is the last, of"),
    "a market that is withdrawn": (
        _ROWS, _of_first_market(lambda one: one.update(id=_NOBODY)), Verdict.WITHDRAWN, f"shows market {_NOBODY}",
    ),
    "a question that is withdrawn": (
        _ROWS, _of_questions(lambda row: row.update(id=_NOBODY)), Verdict.WITHDRAWN, f"shows question {_NOBODY}, which",
    ),
    "a detail": (
        _DETAILS, lambda page: page["question"].update(traderCount=1_000_000), Verdict.WRONG,
        "its question has traderCount 1000000; the dump says",
    ),
    "a description": (
        _DETAILS, lambda page: page["question"].update(description="?"), Verdict.WRONG, r"has description '\?'; the",
    ),
    "a position": (
        _DETAILS, lambda page: page["markets"][0].update(position=77), Verdict.WRONG, "which has position 77; the dump",
    ),
    "a payout": (
        _DETAILS, lambda page: page["markets"][0].update(payout=0.77), Verdict.WRONG, "which has payout 0.77; the dump",
    ),
    "an item in a detail": (
        _DETAILS, lambda page: page["markets"][0]["market"].update(prob=0.123), Verdict.WRONG,
        r"its market 1, which has a market that has prob 0\.123; the dump",
    ),
    "a market that a detail lacks": (
        _DETAILS, lambda page: page["markets"].pop(), Verdict.WRONG, r"shows \d+ markets; the dump says \d+",
    ),
    "a withdrawn market in a detail": (
        _DETAILS, lambda page: page["markets"][0]["market"].update(id=_NOBODY), Verdict.WITHDRAWN,
        f"shows market {_NOBODY}, which the dump does not have",
    ),
    "how many there are": (
        r"build\.json$", lambda build: build["questions"].update(count=3), Verdict.WRONG, "says 3 questions; by",
    ),
    "how many rows there are": (
        r"build\.json$", lambda build: build["questions"]["lists"].update({"all/new": 3}), Verdict.WRONG,
        "says 3 for the list questions/all/new; by the dump it has",
    ),
    "that there are any": (
        r"build\.json$", lambda build: build.pop("questions"), Verdict.WRONG, "tells of no questions, unlike the head",
    ),
    "the feed of what is new": (
        r"feeds/new\.json$", lambda feed: feed["items"][0].update(title="?"), Verdict.WRONG, "shows other texts of ",
    ),
    "the definitions in the head of the change feed": (
        r"changes/head\.json$", lambda head: head["questions"].update(count=3), Verdict.WRONG,
        "names other definitions of questions than the head of the dump",
    ),
}  # fmt: skip


@pytest.mark.campaign(short=4)
@pytest.mark.parametrize("kind", ALTERED)
def test_an_altered_answer_is_named(proxy: Proxy, kind: str) -> None:
    pattern, change, verdict, text = ALTERED[kind]
    proxy.alter = altering(pattern, change)
    found = mismatches(proxy.url, 300)
    # What a step was the first to change may have been anything.
    assert {one.verdict for one in found} - {Verdict.STALE} == {verdict}, found
    assert any(re.search(text, one.text) for one in found), found
    # The other form of a feed is compared with this one.
    assert all(re.search(pattern, one.target.replace(".atom", ".json")) for one in found), found


def test_a_market_alone_that_is_answered_as_a_question_is_named(proxy: Proxy) -> None:
    proxy.alter = lambda target, answer: (
        replace(answer, status=200) if target.startswith(f"{QUESTIONS}/") and answer.status == 404 else answer
    )
    found = mismatches(proxy.url)
    assert {(one.verdict, one.text) for one in found} == {
        (Verdict.BROKEN, "is answered 200, not 404: it is no question")
    }


# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────────


def put_in_place(proxy: Proxy, folder: Path, form: str, body: bytes, **said: object) -> None:
    """Have the site serve another file of definitions, as both heads name it and `said` of it."""
    head = dump_head(folder)
    assert head.questions
    place = next(number for number, file in enumerate(head.questions.files) if file.format == form)
    digest = hashlib.sha256(body).hexdigest()
    name = head.questions.files[place].name.replace(head.questions.files[place].sha256[:32], digest[:32])

    def name_other(page: Any) -> None:
        page["questions"].update(said)
        page["questions"]["files"][place].update(sha256=digest, size=len(body))

    served: Alter = lambda target, answer: (  # noqa: E731 - shorter so
        replace(answer, status=200, body=body) if target.endswith(name) else answer
    )
    proxy.alter = altering(r"(dumps|changes)/head\.json$", name_other, served)


def lines_of(folder: Path) -> list[Any]:
    head = dump_head(folder)
    assert head.questions
    packed = (folder / "output" / head.questions.ndjson.key).read_bytes()
    return [json.loads(line) for line in gzip.decompress(packed).splitlines()]


def unlike_definitions(url: str) -> list[Mismatch]:
    """All mismatches but those of documents that name the files of the head as it was."""
    return [one for one in mismatches(url) if one.target not in {f"/{keys.DATASET}", f"/{keys.ATTACH}"}]


def put_definitions(proxy: Proxy, folder: Path, lines: list[Any]) -> None:
    text = b"".join(contract.encode(line) + b"\n" for line in lines)
    packed = gzip.compress(text, mtime=0)
    put_in_place(proxy, folder, "ndjson", packed, count=len(lines), state=hashlib.sha256(text).hexdigest())


def _of_two(lines: list[Any]) -> None:
    lines[1]["members"].append(lines[0]["members"][0])


#: What is changed in definitions, and what is said of them.
DEFINED: Final[dict[str, tuple[Change, str]]] = {
    "a market of two": (_of_two, "has market .* in two rows, .* and "),
    "a market that is not listed": (
        lambda lines: lines[0]["members"][0].update(id=_NOBODY), f"has market {_NOBODY} in question .*, and no list",
    ),
    "the id of a market": (
        lambda lines: lines[0].update(id=lines[0]["members"][0]["id"]), "and a market has the same id",
    ),
    "another order": (lambda lines: lines.reverse(), "which is not the order of their ids"),
    "another form": (lambda lines: lines[0].update(kind="single"), "has what is no definition"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DEFINED)
def test_definitions_that_cannot_be_are_named(proxy: Proxy, folder: Path, kind: str) -> None:
    change, text = DEFINED[kind]
    lines = lines_of(folder)
    change(lines)
    put_definitions(proxy, folder, lines)
    found = unlike_definitions(proxy.url)
    assert {(one.verdict, "/dumps/questions/" in one.target) for one in found} == {(Verdict.WRONG, True)}, found
    assert any(re.search(text, one.text) for one in found), found


UNLIKE: Final[dict[str, tuple[Change, str, str]]] = {
    "a title": (lambda lines: [one.update(title="?") for one in lines], QUESTIONS, r"; the dump says '\?'"),
    "a label": (lambda lines: [one["members"][0].update(label="?") for one in lines], QUESTIONS, r"says '\?'"),
    "a description": (lambda lines: [one.update(description="?") for one in lines], f"{QUESTIONS}/", r"says '\?'"),
    "a question that is missing": (lambda lines: lines.pop(0), QUESTIONS, "shows question|order say|has size"),
    "a market that is missing": (
        lambda lines: next(one for one in lines if len(one["members"]) > 1)["members"].pop(0), QUESTIONS, "; the dump",
    ),
}  # fmt: skip


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("kind", UNLIKE)
def test_rows_and_details_unlike_their_definitions_are_named(proxy: Proxy, folder: Path, kind: str) -> None:
    change, target, text = UNLIKE[kind]
    lines = lines_of(folder)
    change(lines)
    put_definitions(proxy, folder, lines)
    found = [one for one in mismatches(proxy.url, 300) if one.target.startswith(target)]
    assert found
    assert any(re.search(text, one.text) for one in found), found


#: How a file of definitions is damaged, and what is said of it.
DAMAGED: Final[dict[str, tuple[Callable[[bytes], bytes], str]]] = {
    "another": (lambda body: body + b" ", "sends more than|is not the file that the head of the dump names"),
    "none": (lambda _: b"", "is not the file that the head of the dump names"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_another_file_than_that_of_the_head_is_named(proxy: Proxy, folder: Path, kind: str) -> None:
    damage, text = DAMAGED[kind]
    head = dump_head(folder)
    assert head.questions
    key = head.questions.ndjson.key
    proxy.alter = lambda target, answer: replace(answer, body=damage(answer.body)) if target.endswith(key) else answer
    (found,) = unlike_definitions(proxy.url)
    assert found.target.endswith(key)
    assert re.search(text, found.text), found


def test_what_is_no_gzip_is_named(proxy: Proxy, folder: Path) -> None:
    put_in_place(proxy, folder, "ndjson", b"no gzip")
    assert [(one.verdict, "is damaged (" in one.text) for one in unlike_definitions(proxy.url)] == [
        (Verdict.WRONG, True)
    ]


def test_other_questions_than_the_head_says_are_named(proxy: Proxy) -> None:
    proxy.alter = altering(r"(dumps|changes)/head\.json$", lambda head: head["questions"].update(state="0" * 64))
    (found,) = unlike_definitions(proxy.url)
    assert found.text == "has other questions than the head of the dump says"


def test_a_table_unlike_the_definitions_is_named(proxy: Proxy, folder: Path) -> None:
    lines = lines_of(folder)
    lines[0]["members"][0].update(label="?")
    body = io.BytesIO()
    rows = definitions.rows(map(contract.encode, lines))
    parquet.definitions(body.write, definitions.encoded(rows), "extended", linked=False)
    put_in_place(proxy, folder, "parquet", body.getvalue())
    (found,) = unlike_definitions(proxy.url)
    assert found.target.endswith(".parquet")
    assert re.search(r"a row has label '\?'; the definition says", found.text)


# ── answers of another state ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("pattern", [_ROWS, _DETAILS], ids=["rows", "details"])
def test_answers_of_an_earlier_state_are_stale(
    before: Upstream, upstream: Upstream, proxy: Proxy, pattern: str
) -> None:
    answer_as_before(proxy, before, pattern)
    found = mismatches(proxy.url, 300)
    assert {one.verdict for one in found} == {Verdict.STALE}, found
    assert all("is out of date since 2026-01-31T12:00:00.000Z" in one.text for one in found)


def _in_several(change: Change) -> Change:
    """Changes the rows of questions of several markets."""
    return lambda rows: [change(row) for row in rows if len(row["markets"]) > 1]


#: What nobody may have made of answers of an earlier state: of rows that were traded since, and of details.
FORGED: Final[dict[str, tuple[str, Change]]] = {
    "titles of rows": (_ROWS, lambda rows: [row.update(title="Send money") for row in rows]),
    "labels in rows": (_ROWS, _in_several(lambda row: row["markets"][0].update(label="Send money"))),
    "the order in rows": (_ROWS, _in_several(lambda row: row["markets"].reverse())),
    "sums that are known": (_ROWS, lambda rows: [row.update(volume=0.75) for row in rows]),
    "sizes": (_ROWS, lambda rows: [row.update(size=row["size"] + 1) for row in rows if row["kind"] != "single"]),
    "titles of details": (_DETAILS, lambda page: page["question"].update(title="Send money")),
    "labels in details": (_DETAILS, lambda page: page["markets"][0].update(label="Send money")),
}


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("kind", FORGED)
def test_forged_answers_of_an_earlier_state_are_wrong(before: Upstream, proxy: Proxy, kind: str) -> None:
    pattern, forge = FORGED[kind]
    now = {row["id"]: row for row in rows_of(proxy)}
    forged = altering(
        pattern,
        lambda page: forge(
            [row for row in page["items"] if now.get(row["id"]) not in (None, row)] if "items" in page else page
        ),
    )
    proxy.alter = lambda target, answer: forged(target, before(target, {})) if re.search(pattern, target) else answer
    found = mismatches(proxy.url, 300)
    # What shows none of that is right but for its age.
    assert {one.verdict for one in found} - {Verdict.STALE} == {Verdict.WRONG}, found


# ── without a dump ────────────────────────────────────────────────────────────────────────────────────────────────


def _alone(rows: list[Any]) -> Any:
    return next(row for row in rows if row["kind"] == "single")


def _doubled(page: Any) -> None:
    shown = [row for row in page["items"] if row["kind"] != "single" and row["size"] < 10]
    if len(shown) > 1:
        shown[1]["markets"].append(shown[0]["markets"][0])
        shown[1]["size"] += 1


WITHOUT_DUMP: Final[dict[str, tuple[str, Change, str]]] = {
    "nothing": ("^$", lambda _: None, ""),
    "a market in two rows": (r"/questions\?status=all&sort=new&limit=100$", _doubled, "has market .* in two rows"),
    "a market in no row": (
        r"/questions\?status=all&sort=new&limit=100$", lambda page: page["items"].remove(_alone(page["items"])),
        "has market .* in no row, though the list of all markets shows it",
    ),
    "a sum": (_ROWS, _of_questions(lambda row: row.update(volume=1.25)), r"has volume 1\.25; the list of all markets"),
    "a state": (_ROWS, _of_questions(lambda row: row.update(fills24h=77)), "has fills24h 77; the list of all markets"),
    "the order of rows": (
        r"/questions\?status=open&sort=volume&limit=100$", lambda page: _swap(page["items"]), "and the order say",
    ),
    "a detail": (
        _DETAILS, lambda page: page["question"].update(acceptingBets=None), "question.acceptingBets: Input should be",
    ),
    "an item in a detail": (
        _DETAILS, lambda page: page["markets"][0]["market"].update(prob=0.123), r"has prob 0\.123; the list of all",
    ),
}  # fmt: skip


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("kind", WITHOUT_DUMP)
def test_without_definitions_rows_are_compared_with_markets(proxy: Proxy, kind: str) -> None:
    pattern, change, text = WITHOUT_DUMP[kind]
    without_index = altering("^/v1/$", lambda index: [index.pop(name) for name in OF_DUMPS])
    # Its OpenAPI differs.
    of_another_version = altering("build.json$", lambda build: build.update(generator="0"), without_index)
    alter = altering(pattern, change, of_another_version)
    proxy.alter = lambda target, answer: (
        replace(answer, status=404) if "/dumps/" in target or "/changes/" in target else alter(target, answer)
    )
    found = mismatches(proxy.url, 400)
    assert bool(found) == bool(text), found
    assert any(re.search(text, one.text) for one in found) or not text, found
