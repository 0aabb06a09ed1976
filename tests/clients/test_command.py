"""The command `pm`: answers for people, programs and language models."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from public_markets_client import command, models, tables
from public_markets_client.decoding import decoded
from tests.clients.conftest import DemoSite
from tests.clients.encoding import encoded
from tests.support.project import ROOT
from tests.support.readers.change_feed import Answer, serving

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

    def top(*names: str, status: str, category: str = "") -> dict[str, Any]:
        """The detail of the market that such a list begins with."""
        found = [one for one in details if one["market"]["status"] == status]
        found = [one for one in found if not category or category in one["market"]["categories"]]
        return min(found, key=lambda one: (*(_negated(one["market"][name]) for name in names), one["market"]["id"]))

    lists = json.loads((output / keys.BUILD).read_bytes())["lists"]
    prices = json.loads((output / keys.PRICES).read_bytes())["markets"]
    popular = top("traderCount", "volume", status="open")
    resolved = top("resolvedAt", status="resolved")["market"]
    market, bids = popular["market"], popular["orderBook"]["bids"]
    return {
        **{f"many_{name.partition('/')[0]}": f" of {many};" for name, many in lists.items()},
        **{sort: top(name, status="open")["market"]["id"] for sort, name in SORTED_BY.items()},
        "popular": market["id"],
        "slug": market["slug"],
        "last_resolved": resolved["id"],
        "prob": f" {tables.shown(market['prob'])} ",
        "rules": " ".join(market["description"].split())[:60],
        "bid": f"bids: {_level(bids)}",
        "last_trade": f"first: {minute(popular['recentFills'][0]['timestamp'])}",
        "bets": f"accepting_bets: {market['acceptingBets']}",
        "politics": top("traderCount", "volume", status="open", category="politics")["market"]["id"],
        "likeliest": f" {tables.shown(max(price['prob'] for price in prices))} ",
    }


def _negated(value: Any) -> Any:
    """For a descending order; times are text and become numbers."""
    return -(int(re.sub(r"\D", "", value)) if isinstance(value, str) else value)


def minute(time: str) -> str:
    return f"{time[:16]}Z"


SOME_ID: Final = "00000000-0000-4000-8000-000000000000"
SORTED_BY: Final = {"volume": "volume", "new": "createdAt"}
TOP: Final = "list --limit 1"
DETAIL: Final = "market {id}"
#: What somebody asks, the calls that answer it, and the fact that the last answer must have. {id} is the first id of
#: the answer before, {slug} one that the asker knows.
QUESTIONS: Final[list[tuple[str, list[str], str]]] = [
    ("Which open market has most traders?", [TOP], "popular"),
    ("Which has the largest volume?", ["list --sort volume --limit 1"], "volume"),
    ("Which is the newest?", ["list --sort new --limit 1"], "new"),
    ("How many markets are open?", ["list"], "many_open"),
    ("How many were resolved?", ["list --status resolved --limit 1"], "many_resolved"),
    ("How many are there in all?", ["list --status all"], "many_all"),
    ("Which was resolved last?", ["list --status resolved --limit 1"], "last_resolved"),
    ("How likely is the most popular?", [TOP], "prob"),
    ("What are its rules?", [TOP, DETAIL], "rules"),
    ("What is the best bid?", [TOP, DETAIL], "bid"),
    ("When was the last trade?", [TOP, DETAIL], "last_trade"),
    ("Does it accept bets?", [TOP, DETAIL], "bets"),
    ("Which market has this slug?", ["market {slug}"], "popular"),
    ("Which politics market leads?", ["list --category politics --limit 1"], "politics"),
    ("How many are about politics?", ["list --category politics --status all --limit 1"], "many_all.politics"),
    ("Is there one about qqxyz?", ["search qqxyz"], "(0, all)"),
    ("What has the word will?", ["search will --status open --limit 1"], "Will "),
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


def test_a_market_is_shown_with_each_value_once(pm: Pm, demo_site: DemoSite) -> None:
    market = _item(demo_site)
    shown = [line.partition(": ")[0] for line in pm("market", market["id"]).splitlines()]
    assert len(shown) == len({*shown}) > 20
    assert "json" not in shown


def test_a_long_answer_is_cut_and_says_so(demo_site: DemoSite, pm: Pm, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(pm("list", "--all", "--status", "all").encode()) > MOST_BYTES
    assert re.search(r"\((\d+) of \d+; --limit N or --all shows more\)\n$", pm("list", "--status", "all"))
    item = {**_item(demo_site), "question": "木" * 2_000, "category": "木" * 100}
    with serving() as site:
        site.answers = _AnyPage([{**item, "id": str(at)} for at in range(50)])
        said = Pm(site.url, capsys)("search", "x")
    assert 2_000 < len(said.encode()) < MOST_BYTES
    assert re.search(r"\(\d+, and there are more; --limit N or --all shows more\)\n$", said)


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
    assert pm.err.startswith(f"pm: {pm.url}/v1/public/markets/00000000-0000-4000-8000-000000000000: 404: not found\n")
    assert "search for words" in pm.err
    pm("search", "x" * 101, code=1)
    assert re.fullmatch(r"pm: .*: 400: q: must have a letter or a digit, and at most 100 characters.*\n", pm.err)
    (tmp_path / "file").touch()
    pm("mirror", str(tmp_path / "file" / "below"), code=1)
    assert "Not a directory" in pm.err
    with serving() as site:
        elsewhere = Pm(site.url, capsys)
        elsewhere("list", code=1)
        assert elsewhere.err.endswith(
            "404: the site answers 404\npm: search for words of the question to find an id: pm URL search WORDS\n"
        )
    for wrong in (["list", "--status", "bad"], ["list", "--limit", "0"], ["nothing"], []):
        with pytest.raises(SystemExit) as ended:
            pm(*wrong)
        assert ended.value.code == 2
    assert command.main(["file:///etc", "list"]) == 1


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
