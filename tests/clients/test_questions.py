"""Questions as both clients read them, and as `pm` and the guide to the API show them."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from public_markets_client import (
    ClientError,
    ExpiredCursorError,
    NotFoundError,
    Sort,
    Status,
    tables,
)
from tests.clients.conftest import QuestionSite
from tests.clients.encoding import encoded
from tests.clients.test_clients import EXPIRED, read_asynchronously, read_at_once
from tests.clients.test_command import MOST_BYTES, Pm
from tests.clients.test_follow import NODE
from tests.clients.typescript.programs import NAME, Program, node
from tests.clients.typescript.scripted_site import Scripted, ScriptedSite
from tests.downloads.states import IDS
from tests.support.programs import require
from tests.support.project import ROOT
from tests.support.readers.pages import scripts, section

#: Reads by the name of a method and its arguments, as JSON values; raises ClientError.
Reading = Callable[..., Any]
NOBODY: Final = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(params=[read_at_once, read_asynchronously, NODE])
def read(request: pytest.FixtureRequest) -> Reading:
    """Each client."""
    if request.param != NODE:
        return lambda url, name, *given, **named: encoded(_tuple(request.param(url, name, *given, **named)))
    run: Program = request.getfixturevalue("run")
    script = """
    const site = new Client(given.url, { wait, retries: 2 });
    const { on_expired: onExpired, ...query } = given.named;
    const found = site[given.name](...given.given, query, { onExpired });
    const asked = given.name.endsWith("s") ? all(found) : found;
    const failed = await failure(asked);
    return failed.message === "it did not fail" ? { found: await asked } : { failed };
    """

    def of_node(url: str, name: str, *given: str, **named: object) -> Any:
        done = run(script, url=url, name=name, given=given, named=named)
        if "failed" in done:
            kinds = {404: NotFoundError, 400: ExpiredCursorError}
            kind = kinds.get(done["failed"]["status"], ClientError)
            raise kind(done["failed"]["message"], status=done["failed"]["status"])
        return done["found"]

    return of_node


def _tuple(found: Any) -> Any:
    return tuple(found) if isinstance(found, list) else found


# ── lists and details ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_list_comes_in_order_and_whole(read: Reading, question_site: QuestionSite) -> None:
    walked = 0
    for status, sort in {*zip(get_args(Status), get_args(Sort) * 2, strict=False), *product(["all"], get_args(Sort))}:
        found = read(question_site.url, "questions", status=status, sort=sort, limit=17)
        assert found == [row.value for row in question_site.oracle.listed(status, sort)]
        walked += len(found)
    assert walked > 500
    name, slug = next(one for one in question_site.oracle.setting.categories.items() if one[0] != one[1])
    expected = [row.value for row in question_site.oracle.listed("all", "popular", name)]
    assert read(question_site.url, "questions", status="all", category=slug) == expected != []


def test_open_questions_are_listed_unless_others_are_asked_for(read: Reading, question_site: QuestionSite) -> None:
    assert read(question_site.url, "questions") == [row.value for row in question_site.oracle.listed("open", "popular")]


def test_a_question_has_all_its_markets(read: Reading, question_site: QuestionSite) -> None:
    largest = max(question_site.oracle.questions.values(), key=lambda one: len(one.members))
    slugged = next(one for one in question_site.oracle.questions.values() if one.slug)
    for one, ref in ((largest, largest.question.id.upper()), (slugged, slugged.slug)):
        assert read(question_site.url, "question", ref) == json.loads(one.detail)
    assert len(largest.members) > 10


def test_a_market_that_stands_alone_is_no_question(read: Reading, question_site: QuestionSite) -> None:
    single = next(row for row in question_site.oracle.rows if row.value["kind"] == "single")
    with pytest.raises(NotFoundError, match="404"):
        read(question_site.url, "question", single.id)
    assert read(question_site.url, "market", single.id)["market"]["question"] == single.value["title"]


def test_a_site_without_questions_is_a_site(read: Reading, site: ScriptedSite) -> None:
    """Unlike one without lists of markets."""
    for name, given in (("questions", []), ("question", [NOBODY])):
        with pytest.raises(NotFoundError, match="404: not found"):
            read(site.url, name, *given)
    with pytest.raises(ClientError, match="no Public Markets site answers"):
        read(site.url, "markets")


#: As each client spells it.
ASKED: Final = ("/v1/public/questions?status=open&limit=100", "/v1/public/questions?limit=100&status=open")


def _page(*ids: str, cursor: str | None = None) -> Scripted:
    times = dict.fromkeys(("closeTime", "createdAt", "lastActivityAt"), "2026-01-31T12:00:00.000Z")
    counts = dict.fromkeys(("volume", "traderCount", "fills24h"), 0)
    texts = {"title": "Who?", "kind": "exclusive", "status": "open", "acceptingBets": True, "resolvedAt": None}
    rows = [{"id": one, **texts, **counts, **times, "size": 1, "markets": []} for one in ids]
    return Scripted({"items": rows, "nextCursor": cursor})


def test_an_expired_walk_goes_on_or_ends_as_one_of_markets(read: Reading, site: ScriptedSite) -> None:
    expired = Scripted({"error": "invalid request", "details": [{"path": ["cursor"], "message": EXPIRED}]}, 400)
    for path in ASKED:
        site.put(path, _page("a", "b", cursor="1"))
        site.put(f"{path}&cursor=1", expired)
    with pytest.raises(ExpiredCursorError, match="has expired"):
        read(site.url, "questions", status="open", limit=100, on_expired="error")
    for path in ASKED:
        site.put(path, _page("a", "b", cursor="1"), _page("c", "b"))
    found = read(site.url, "questions", status="open", limit=100, on_expired="restart")
    assert [one["id"] for one in found] == ["a", "b", "c"]


def test_a_list_with_a_question_twice_is_an_error(read: Reading, site: ScriptedSite) -> None:
    for path in ASKED:
        site.put(path, _page("a", "a"))
    with pytest.raises(ClientError, match="twice"):
        read(site.url, "questions", status="open", limit=100)


@pytest.mark.parametrize(
    ("ref", "body"),
    [
        (IDS[0], {"question": {"id": IDS[1]}, "markets": []}),
        (IDS[0], {"question": {"id": IDS[0]}}),
        ("x", {"question": {}, "markets": []}),
    ],
)
def test_what_is_no_such_question_is_an_error(run: Program, site: ScriptedSite, ref: str, body: object) -> None:
    site.put(f"/v1/public/questions/{ref}", Scripted(body))
    script = "return failure(new Client(given.url, { wait, retries: 0 }).question(given.ref));"
    assert run(script, url=site.url, ref=ref)["message"].endswith("is not what was asked for")


# ── the docs ──────────────────────────────────────────────────────────────────────────────────────────────────────────

GUIDE: Final = section("docs/api.md", "Questions")


def as_printed(language: str, url: str) -> str:
    """The example of the guide to the API in a language, of three lines of code, for the site at this address."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    assert len([*filter(None, text.splitlines())]) == 3
    return str(text.replace("http://127.0.0.1:8000", url))


def open_probabilities(site: QuestionSite) -> list[tuple[str, list[tuple[str, float]]]]:
    """What the examples print: the title of each open question, and label and probability of its markets."""
    rows = [row.value for row in site.oracle.listed("open", "popular")]
    return [(row["title"], [(one["label"] or "YES", one["prob"]) for one in row["markets"]]) for row in rows]


def test_one_request_has_the_open_questions_with_their_probabilities(question_site: QuestionSite) -> None:
    curl = require("curl", reason="the request shown in the docs is not made")
    (shown,) = (shlex.split(line) for line in scripts(GUIDE) if line.strip().startswith("curl "))
    url = shown[-1].replace("http://127.0.0.1:8000", question_site.url)
    page = json.loads(subprocess.check_output([curl, "-fsS", url]))
    told = [(row["title"], [(one["label"] or "YES", one["prob"]) for one in row["markets"]]) for row in page["items"]]
    assert told == open_probabilities(question_site)[:100] != []


def test_three_lines_of_python_list_the_open_questions(question_site: QuestionSite) -> None:
    text = as_printed("python", question_site.url)
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python")}
    said = subprocess.check_output([sys.executable, "-c", text], env=environ)  # titles may have line separators
    assert said.decode() == "".join(f"{title} {markets}\n" for title, markets in open_probabilities(question_site))


def test_three_lines_of_javascript_list_the_open_questions(
    question_site: QuestionSite, client: Path, tmp_path: Path
) -> None:
    text = as_printed("js", question_site.url).replace(NAME, json.dumps((client / "dist/index.js").as_uri()))
    told = re.sub(r"console\.log\((.*)\);", r"console.log(JSON.stringify([\1]));", text)
    (tmp_path / "program.mjs").write_text(told, "utf-8")
    lines = subprocess.check_output([node(), tmp_path / "program.mjs"], text=True).splitlines()
    found = [(title, [_parted(one) for one in markets]) for title, markets in map(json.loads, lines)]
    assert found == open_probabilities(question_site)


def _parted(text: str) -> tuple[str, float]:
    label, _, prob = text.rpartition(" ")
    return label, float(prob)


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def pm(question_site: QuestionSite, capsys: pytest.CaptureFixture[str]) -> Pm:
    return Pm(question_site.url, capsys)


def test_questions_are_listed_with_the_probabilities_of_their_markets(pm: Pm, question_site: QuestionSite) -> None:
    said = pm("questions", "--status", "all", "--sort", "volume")
    assert 1_000 < len(said.encode()) < MOST_BYTES
    head, *rows, last = said.splitlines()
    assert head.split()[:3] == ["id", "kind", "size"]
    listed = question_site.oracle.listed("all", "volume")
    for row, one in zip(rows, listed, strict=False):
        assert row.startswith(f"{one.id} {one.value['kind']} {one.value['size']} ")
        assert all(f"{market['prob']:.10g}" in row for market in one.value["markets"][:2])
    assert last == f"({len(rows)} of {len(listed)}; --limit N or --all shows more)"
    of_category = question_site.oracle.listed("open", "popular", "weather")
    assert pm("questions", "--category", "weather", "--limit", "1").endswith(
        f"(1 of {len(of_category)}; --limit N or --all shows more)\n"
    )
    assert len(pm("questions", "--all").splitlines()) == 2 + len(question_site.oracle.listed("open", "popular"))


def test_programs_get_questions_as_the_site_has_them(pm: Pm, question_site: QuestionSite) -> None:
    rows = [row.value for row in question_site.oracle.listed("archive", "ended")]
    assert json.loads(pm("questions", "--status", "archive", "--all", "--json")) == rows != []
    assert [json.loads(line) for line in pm("questions", "--status", "archive", "--ndjson").splitlines()] == rows[:20]
    for one in [*question_site.oracle.questions.values()][:5]:
        assert json.loads(pm("question", one.question.id, "--json")) == json.loads(one.detail)


def test_a_question_is_shown_with_each_of_its_markets(pm: Pm, question_site: QuestionSite) -> None:
    settled = next(
        one for one in question_site.oracle.questions.values()
        if any(market["payout"] is not None for market in json.loads(one.detail)["markets"])
    )  # fmt: skip
    lines = pm("question", settled.question.id).splitlines()
    for market in json.loads(settled.detail)["markets"]:
        (line,) = (line for line in lines if line.startswith(f"{market['market']['id']} "))
        assert line.endswith(tables.cut(market["label"]))
        assert market["payout"] is None or f", pays {market['payout']:.10g} " in line
    largest = max(question_site.oracle.questions.values(), key=lambda one: len(one.members))
    assert len(pm("question", largest.question.id).encode()) < MOST_BYTES


def test_a_question_that_is_not_found_may_be_a_market(pm: Pm) -> None:
    assert pm("question", NOBODY, code=1) == ""
    assert pm.err.endswith(
        "404: not found; to find its id: pm URL questions; those of the kind single are markets: pm URL market ID\n"
    )


def test_a_question_of_a_thousand_markets_is_cut_and_says_so(
    question_site: QuestionSite, site: ScriptedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    detail = json.loads(next(iter(question_site.oracle.questions.values())).detail)
    detail["markets"] = detail["markets"][:1] * 1_000
    site.put(f"/v1/public/questions/{NOBODY}", Scripted(detail))
    said = Pm(site.url, capsys)("question", NOBODY)
    assert 2_000 < len(said.encode()) < MOST_BYTES
    assert said.splitlines()[-1].endswith(" lines more; --json has all)")
