"""The command `pm`: answers for people, programs and language models."""

import fcntl
import hashlib
import json
import os
import pty
import re
import shlex
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from public_markets_client import __version__, command, models, tables
from public_markets_client.decoding import decoded
from tests.clients.conftest import DemoSite
from tests.clients.encoding import encoded
from tests.clients.faulting_proxy import Fate, FaultingProxy, running
from tests.downloads import states
from tests.downloads.states import IDS
from tests.support.project import ROOT
from tests.support.readers.change_feed import Answer, serving
from tests.support.waiting import wait_until

#: Four bytes a token.
MOST_BYTES: Final = 1_500 * 4
SKILL: Final = (ROOT / "clients/python/SKILL.md").read_text("utf-8")


class Pm:
    """Runs `pm URL …` in this process."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url, self._capsys = url, capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        assert command.main([self.url, *words]) == code
        out, self.err = self._capsys.readouterr()
        return out


#: The command as a program of its own.
PM: Final = [sys.executable, "-c", "import sys; from public_markets_pm import main; sys.exit(main())"]
ENVIRON: Final = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "clients/python")}


def on_a_terminal(columns: int, *words: str) -> str:
    """What it prints on one that is so wide."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([*PM, *words], stdout=its, stderr=its, env=ENVIRON):
        os.close(its)
        said = b""
        with suppress(OSError):  # as Linux says that nobody writes any more
            while part := os.read(ours, 1 << 16):
                said += part
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


@pytest.fixture
def pm(demo_site: DemoSite, capsys: pytest.CaptureFixture[str]) -> Pm:
    return Pm(demo_site.url, capsys)


def details_of(output: Path) -> list[dict[str, Any]]:
    """The detail of every listed market."""
    paths = (output / keys.detail(SOME_ID)).parents[1].rglob("*-*-*-*-*.json")
    found = [json.loads(path.read_bytes()) for path in paths]
    return [one for one in found if one["market"]["fxFamilyMember"] is None]


@pytest.fixture(scope="module")
def facts(demo_site: DemoSite) -> dict[str, str]:
    """What is true of the site, from its files, by name."""
    output = demo_site.folder / "output"
    details = details_of(output)

    listed = [one for one in details if one["market"]["status"] == "open"]
    largest = min(listed, key=lambda one: (-one["market"]["volume"], one["market"]["id"]))["market"]
    popular = min(
        listed, key=lambda one: (-one["market"]["traderCount"], -one["market"]["volume"], one["market"]["id"])
    )
    lists = json.loads((output / keys.BUILD).read_bytes())["lists"]
    prices = json.loads((output / keys.PRICES).read_bytes())["markets"]
    return {
        **{f"many_{name.partition('/')[0]}": f" of {many};" for name, many in lists.items()},
        "many_politics": f" of {sum('politics' in one['market']['categories'] for one in details)};",
        "popular": popular["market"]["id"],
        "volume": largest["id"],
        "slug": popular["market"]["slug"],
        "rules": " ".join(popular["market"]["description"].split())[:60],
        "bid": f"bids: {_level(popular['orderBook']['bids'])}",
        "likeliest": f" {tables.shown(max(price['prob'] for price in prices))} ",
    }


SOME_ID: Final = "00000000-0000-4000-8000-000000000000"
COULD_BE: Final = "it was withdrawn or hidden, or never was: sites do not say which"
NO_PRICES: Final = "the site publishes no prices; pm URL list --all has those of markets"
TOP: Final = "list --limit 1"
DETAIL: Final = "market {id}"
#: What somebody asks, the calls that answer it, and the fact that the last answer must have. {id} is the first id of
#: the answer before, {slug} one that the asker knows.
QUESTIONS: Final[list[tuple[str, list[str], str]]] = [
    ("Which open market has most traders?", [TOP], "popular"),
    ("Which has the largest volume?", ["list --sort volume --limit 1"], "volume"),
    ("How many markets are open?", ["list"], "many_open"),
    ("What are its rules?", [TOP, DETAIL], "rules"),
    ("What is the best bid?", [TOP, DETAIL], "bid"),
    ("Which market has this slug?", ["market {slug}"], "popular"),
    ("How many are about politics?", ["list --category politics --status all --limit 1"], "many_politics"),
    ("Is there one about qqxyz?", ["search qqxyz"], "(0, all)"),
    ("What is the likeliest?", ["prices --sort prob --limit 1"], "likeliest"),
    ("What did the last build change?", ["changes"], "(0, all)"),
]


def _level(levels: list[dict[str, float]]) -> str:
    return f"{tables.shown(levels[0]['amount'])}@{tables.shown(levels[0]['price'])}" if levels else "\n"


@pytest.mark.parametrize(("question", "calls", "answer"), QUESTIONS, ids=[question for question, *_ in QUESTIONS])
def test_a_question_is_answered_shortly(
    pm: Pm, facts: dict[str, str], question: str, calls: list[str], answer: str
) -> None:
    said = ""
    assert len(calls) <= 3
    for call in calls:
        market_id = (re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", said) or [""])[0]
        said = pm(*call.format(id=market_id, slug=facts["slug"]).split())
        assert 0 < len(said.encode()) < MOST_BYTES
    assert facts.get(answer, answer) in said, question


def test_a_long_answer_is_cut_and_says_so(demo_site: DemoSite, pm: Pm, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(pm("list", "--all", "--status", "all").encode()) > MOST_BYTES
    assert re.search(r"\((\d+) of \d+; --limit N or --all shows more\)\n$", pm("list", "--status", "all"))
    item = {**_item(demo_site), "question": "木" * 2_000, "category": "木" * 100}
    with serving() as site:
        site.answers = _AnyPage([{**item, "id": str(at)} for at in range(50)])
        said = Pm(site.url, capsys)("search", "x")
    assert 2_000 < len(said.encode()) < MOST_BYTES
    assert said.endswith(" of 50; --limit N or --all shows more)\n")


def test_a_search_says_how_many_there_are_as_far_as_it_asks(pm: Pm) -> None:
    many = len(pm("search", "will", "--all", "--ndjson").splitlines())
    assert many > 50
    assert pm("search", "will", "--limit", "3").endswith(
        f"(3 of {many if many < 104 else 'at least 104'}; --limit N or --all shows more)\n"
    )
    few = len(pm("search", "will", "--category", "politics", "--all", "--ndjson").splitlines())
    assert pm("search", "will", "--category", "politics", "--limit", "1").endswith(
        f"(1 of {few}; --limit N or --all shows more)\n"
    )


@pytest.mark.parametrize("words", [["list"], ["list", "--status", "all"], ["search", "will"]])
def test_markets_are_sorted_by_probability(pm: Pm, words: list[str]) -> None:
    usual = [json.loads(line) for line in pm(*words, "--all", "--ndjson").splitlines()]
    told = [json.loads(line) for line in pm(*words, "--sort", "prob", "--all", "--ndjson").splitlines()]
    assert told == sorted(usual, key=lambda one: one["prob"], reverse=True) != usual
    assert f" of {len(usual)};" in pm(*words, "--sort", "prob", "--limit", "2")


@pytest.mark.parametrize("many", [1, 1_000])
def test_changes_have_the_questions_of_their_markets(
    capsys: pytest.CaptureFixture[str], demo_site: DemoSite, many: int
) -> None:
    """They are in the lists of a small site, and else in details."""
    detail = details_of(demo_site.folder / "output")[0]
    market_id, question = detail["market"]["id"], tables.cut(detail["market"]["question"])
    with serving() as site:
        site.begin(states.state({one: [("prob", "0.1")] for one in (IDS[1], market_id)}))
        site.move(states.state({IDS[0]: [("question", '"Snow?"')], market_id: [("prob", "0.2")]}))
        build = {**json.loads((demo_site.folder / "output" / keys.BUILD).read_bytes()), "markets": many}
        site.answers["/v1/build.json"] = Answer(json.dumps(build).encode())
        page = {"items": [details_of(demo_site.folder / "output")[1]["market"], detail["market"]], "nextCursor": None}
        path, body = ("?status=all&limit=100", page) if many == 1 else (f"/{market_id}", detail)
        site.answers[f"/v1/public/markets{path}"] = Answer(json.dumps(body).encode())
        told = Pm(site.url, capsys)("changes")
    gone = f"gone: a market whose id has the SHA-256 digest {hashlib.sha256(IDS[1].encode()).hexdigest()}"
    rows = sorted([f"{market_id} prob=0.2 {question}", f"{IDS[0]} Snow?"])
    assert told.splitlines() == ["id changes question", gone, *rows, "(3, all)"]


@pytest.mark.parametrize("columns", [20, 80, 100, 132])
def test_rows_fit_the_terminal(demo_site: DemoSite, pm: Pm, columns: int) -> None:
    """Wide letters, too."""
    whole = pm("list", "--limit", "40").splitlines()
    with serving() as site:
        site.answers = _AnyPage([{**_item(demo_site), "question": "木" * 99}])
        wide = on_a_terminal(columns, site.url, "list").splitlines()
    *rows, _ = on_a_terminal(columns, demo_site.url, "list", "--limit", "40").splitlines()
    assert max(map(len, rows)) <= columns < max(map(len, whole))
    assert 2 * wide[1].count("木") + len(wide[1].replace("木", "")) <= columns
    assert len(rows) == 41
    assert rows[0] == {132: whole[0], 100: "id prob volume trader_count fills24h question"}.get(
        columns, "id prob question"
    )


class _AnyPage(dict[str, Answer]):
    """Whatever is asked for."""

    def __init__(self, items: list[dict[str, Any]]) -> None:
        super().__init__()
        self.page = Answer(json.dumps({"items": items, "nextCursor": None}).encode())

    def get(self, *_: object) -> Answer:
        return self.page


def _item(demo_site: DemoSite) -> dict[str, Any]:
    market: dict[str, Any] = details_of(demo_site.folder / "output")[0]["market"]
    return market


@pytest.mark.parametrize("words", [["list"], ["search", "will"], ["prices"], ["list", "--status", "all", "--all"]])
def test_programs_get_the_values_of_the_site(pm: Pm, words: list[str]) -> None:
    lines = [json.loads(line) for line in pm(*words, "--ndjson").splitlines()]
    assert json.loads(pm(*words, "--json")) == lines
    assert len(lines) > 5
    kind = models.Price if words == ["prices"] else models.Market
    assert [encoded(decoded(kind, line)) for line in lines] == lines


def test_a_market_for_programs_is_the_detail(pm: Pm, demo_site: DemoSite) -> None:
    for detail in details_of(demo_site.folder / "output")[:5]:
        assert json.loads(pm("market", detail["market"]["id"], "--json")) == detail


@pytest.mark.parametrize("kind", ["sqlite", "ndjson", "duckdb"])
def test_a_mirror_is_made_and_then_brought_up_to_date(pm: Pm, facts: dict[str, str], tmp_path: Path, kind: str) -> None:
    many = int(facts["many_all"].strip(" of;"))
    assert pm("mirror", str(tmp_path / "a/copy"), "--to", kind).endswith(f"{many} added, 0 changed, 0 gone; serial 1\n")
    assert "there is no copy yet; starting from the dump" in pm.err
    assert pm("mirror", str(tmp_path / "a/copy"), "--to", kind).endswith("0 added, 0 changed, 0 gone; serial 1\n")
    told = [json.loads(line) for line in pm("mirror", str(tmp_path / "b"), "--to", kind, "--ndjson").splitlines()]
    assert [one["kind"] for one in told] == ["added"] * many
    assert told[0]["market"]["id"] == told[0]["id"]


def test_a_mirror_is_sqlite_by_itself(pm: Pm, facts: dict[str, str], tmp_path: Path) -> None:
    pm("mirror", str(tmp_path))
    with closing(sqlite3.connect(tmp_path / "markets.sqlite")) as database:
        rows = database.execute("SELECT status, count(*) FROM markets GROUP BY status").fetchall()
    assert f" of {dict(rows)['open']};" == facts["many_open"]


def test_what_goes_wrong_is_one_sentence_with_an_exit_code(
    pm: Pm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pm("market", "00000000-0000-4000-8000-000000000000", code=1) == ""
    address = f"{pm.url}/v1/public/markets/00000000-0000-4000-8000-000000000000"
    assert pm.err == f"pm: {address}: 404: not found; {COULD_BE}; to find its id: pm URL search WORDS\n"
    pm("search", "x" * 101, code=1)
    assert re.fullmatch(r"pm: .*: 400: q: must have a letter or a digit, and at most 100 characters.*\n", pm.err)
    (tmp_path / "file").touch()
    pm("mirror", str(tmp_path / "file" / "below"), code=1)
    assert "Not a directory" in pm.err
    with serving() as site:
        elsewhere = Pm(site.url, capsys)
        elsewhere("list", code=1)
        assert elsewhere.err == f"pm: no Public Markets site answers at {site.url}; give the address before /v1\n"
        elsewhere("prices", code=1)
        assert elsewhere.err == f"pm: {site.url}/v1/prices.json: 404: not found; {NO_PRICES}\n"
    for wrong in (["list", "--status", "bad"], ["list", "--limit", "0"], ["nothing"], []):
        with pytest.raises(SystemExit) as ended:
            pm(*wrong)
        assert ended.value.code == 2
    capsys.readouterr()
    for words in (["file:///etc", "list"], ["list"], ["search", "will", "win"], ["list", "--limit", "5"]):
        assert command.main(words) == 1
        said = (
            f"pm: no Public Markets site answers at {words[0]}; give the address before /v1, with https:// or http://"
        )
        assert capsys.readouterr().err == f"{said}\n"


def test_its_version_is_told(pm: Pm, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        pm("--version")
    assert capsys.readouterr().out == f"pm {__version__}\n"


def test_who_interrupts_it_sees_no_traceback(demo_site: DemoSite, tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environ = {**ENVIRON, "PYTHONPATH": f"{tmp_path}:{ENVIRON['PYTHONPATH']}"}
    interruptible = ["env", "--default-signal=INT", *PM]  # whoever runs the tests may ignore it
    soon = subprocess.run([*interruptible, demo_site.url, "list"], env=environ, capture_output=True, check=False)
    assert (soon.returncode, soon.stderr) == (130, b""), "while modules are read"
    always = Fate(("stall",), seed=1, share=1, in_a_row=99)
    with running(FaultingProxy(demo_site.url, always)) as proxy:
        process = subprocess.Popen([*interruptible, proxy.url, "list"], stderr=subprocess.PIPE, env=ENVIRON)
        wait_until(lambda: always.injected["stall"] > 0)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert (process.returncode, said) == (130, b"")


def test_who_reads_no_further_hears_no_complaint(demo_site: DemoSite) -> None:
    command = f"{shlex.join(PM)} {demo_site.url} list --all --status all --json | head -c 9"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], env=ENVIRON, capture_output=True, check=False)
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 9, b"")


def test_no_control_character_of_a_site_reaches_the_terminal(
    demo_site: DemoSite, capsys: pytest.CaptureFixture[str]
) -> None:
    item = {**_item(demo_site), "question": "\x1b]0;title\x07\x9b\u202e\ud800 x"}
    with serving() as site:
        site.answers = _AnyPage([item])
        for form in ([], ["--json"], ["--ndjson"]):
            said = Pm(site.url, capsys)("search", "x", *form)
            assert said.replace("\n", "").isprintable()
            assert "\\u001b" in said
            if form:
                assert item["question"] in {json.loads(line)["question"] for line in said.strip("[]\n").splitlines()}


def test_the_skill_fits_on_a_page_and_its_commands_are_understood() -> None:
    assert len(SKILL.splitlines()) <= 60
    assert SKILL.startswith("---\nname: ")
    shown = re.findall(r"^    pm URL (.*?)(?:\s{2,}#.*)?$", SKILL, re.MULTILINE)
    assert len(shown) >= 6
    parser = command._parser()  # noqa: SLF001 - what it understands is the point
    for words in shown:
        assert parser.parse_args(["http://x", *words.split()]).run
