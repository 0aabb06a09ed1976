"""What agents ask of a site: each question takes `pm` two calls at most, and the answers are those of the database."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from generator.demo.database import seed
from public_markets_client import Client, reading
from public_markets_client.selecting import has_words
from tests.clients.conftest import BASE_URL
from tests.clients.faulting_proxy import Fate, FaultingProxy
from tests.clients.faulting_proxy import running as proxied
from tests.clients.test_command import COULD_BE, SKILL, Pm
from tests.support.edges.serving import UNLIMITED, served
from tests.support.readers.change_feed import Answer as Feed
from tests.support.readers.change_feed import answering
from tests.support.sites.builds import AS_OF, CHUNKED, EXTENDED, build_now, make_config

MOST_TOKENS: Final = 1_500
#: Of a minute.
MOST_REQUESTS: Final = 300
VARIANTS: Final[Mapping[str, Mapping[str, str]]] = {"core": {}, "extended": {**EXTENDED, **CHUNKED}}
CUTOFF: Final = AS_OF - timedelta(days=1)
WEEK: Final = timedelta(days=7)
_ID: Final = r"[0-9a-f]{8}-[0-9a-f-]{27}"
NO_SEARCH: Final = Feed(b'{"error":"invalid","details":[{"path":["q"],"message":"there is no search"}]}', 400)
NOBODY: Final = "00000000-0000-4000-8000-000000000000"


def tokens(text: str) -> int:
    """More than tokenizers make of it: three letters, two digits, or anything else but a space are one.

    Ids are half of most answers, and have two letters or digits to a token.
    """
    return len(re.findall(r"[A-Za-z]{1,3}|[0-9]{1,2}|[^A-Za-z0-9 ]", text))


def _instant(text: str | None) -> str | None:
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.isoformat(timespec="milliseconds")


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Truth:
    """What the database has, and what was done to it between the builds."""

    url: str
    folder: Path
    variant: str
    #: Of markets, in the order in which their probabilities were changed: what these were a day before, and are.
    moved: dict[str, tuple[float, float]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    #: How many requests the site has answered.
    fate: Fate = field(default_factory=lambda: Fate((), seed=0, share=0, in_a_row=0))

    def rows(self, what: str) -> list[tuple[Any, ...]]:
        """Of the markets in the lists, as `m`."""
        with closing(sqlite3.connect(self.folder / "markets.db")) as database:
            database.create_function("instant", 1, _instant)
            listed = (
                "approval = 'approved' AND is_listed AND id NOT IN (SELECT market_id FROM fx_members WHERE is_public)"
            )
            return database.execute(f"WITH m AS (SELECT * FROM markets WHERE {listed}) {what}").fetchall()

    def ids(self, condition: str, order: str, limit: int = 5) -> list[str]:
        popular = "trader_count DESC, volume DESC, id"
        sql = f"SELECT id FROM m WHERE {condition} ORDER BY {order}, {popular} LIMIT {limit}"
        return [row[0] for row in self.rows(sql)]

    def counts(self, column: str, condition: str) -> dict[str, int]:
        return dict(self.rows(f"SELECT {column}, count(*) FROM m WHERE {condition} GROUP BY 1"))

    def recorded(self, market_id: str, instant: datetime) -> float | None:
        """The last probability until then in a market's history."""
        sql = f"SELECT prob FROM probabilities WHERE market_id = '{market_id}' AND instant(recorded_at) <= '{{}}'"
        found = self.rows(sql.format(_iso(instant)) + " ORDER BY instant(recorded_at) DESC LIMIT 1")
        return found[0][0] if found else None

    def one(self, what: str) -> Any:
        return self.rows(what)[0][0]


#: A market's state as `pm` shows it.
STATE: Final = "status || coalesce(':' || CASE WHEN status IN ('resolved', 'cancelled') THEN resolution END, '')"
OPEN: Final = "status = 'open'"
#: A word that begins like this is in title or description.
ABOUT: Final = "(' ' || lower(question || ' ' || coalesce(description, ''))) GLOB '*[^a-z]report*'"
FILLS: Final = (
    "(SELECT count(*) FROM fills f WHERE f.market_id = m.id"
    f" AND instant(f.created_at) > '{_iso(CUTOFF)}' AND instant(f.created_at) <= '{_iso(AS_OF)}') DESC"
)
CLOSING: Final = f"{OPEN} AND instant(close_time) >= '{_iso(AS_OF)}'"
FIND: Final = "search report --limit 1"
DETAIL: Final = "market {id}"
Answer = str | Callable[[Truth], Any]


def _exclusive(truth: Truth) -> list[str]:
    """The public exclusive questions with an open market, largest volume first."""
    return [
        row[0]
        for row in truth.rows(
            "SELECT q.id FROM questions q JOIN question_members o ON o.question_id = q.id JOIN m ON m.id = o.market_id"
            " WHERE q.approval = 'approved' AND q.is_listed AND q.kind = 'exclusive'"
            " GROUP BY q.id HAVING max(m.status = 'open') ORDER BY sum(m.volume) DESC, q.id"
        )
    ]


def _shown(number: float) -> str:
    return f"{number:.10g}"


def _detail(truth: Truth) -> Any:
    """The first market that the search finds: of all, the one with most traders."""
    return truth.ids(ABOUT, "''", 1)[0]


def _field(sql: str) -> Answer:
    return lambda truth: truth.one(sql.format(id=_detail(truth)))


def _best(side: str, order: str) -> Answer:
    def best(truth: Truth) -> str:
        sql = (
            f"SELECT price, sum(amount) FROM orders WHERE market_id = '{_detail(truth)}' AND is_public"
            f" AND side = '{side}' GROUP BY price ORDER BY price {order} LIMIT 1"
        )
        found = truth.rows(sql)
        return f"\n{side}s: " + "".join(f"{_shown(amount)}@{_shown(price)}" for price, amount in found)

    return best


def _moves(sign: int) -> Answer:
    def ids(truth: Truth) -> list[str]:
        by = {one: now - then for one, (then, now) in truth.moved.items() if now != then}
        by = {one: way for one, way in by.items() if way * sign >= 0}
        return sorted(by, key=lambda one: -abs(by[one]))[:5]

    return ids


def _moves_by_history(truth: Truth) -> list[str]:
    """By the histories: those that were active, and those whose course the feed tells."""
    since = AS_OF - timedelta(days=3)
    by = dict[str, float]()
    for market_id, prob, last in truth.rows("SELECT id, prob, instant(last_activity_at) FROM m"):
        if last > _iso(since) or market_id in truth.moved:
            first = truth.rows(
                f"SELECT prob FROM probabilities WHERE market_id = '{market_id}' ORDER BY instant(recorded_at) LIMIT 1"
            )
            then = truth.recorded(market_id, since)
            by[market_id] = prob - (then if then is not None else first[0][0] if first else prob)
    return sorted(by, key=lambda one: (-abs(by[one]), one))[:5]


def _history(truth: Truth) -> str:
    first = next(iter(truth.moved))
    then = [(days, truth.recorded(first, AS_OF - timedelta(days=days))) for days in (1, 7)]
    told = [f"{days} d ago {_shown(prob)}" for days, prob in then if prob is not None]
    assert len(told) == 2
    return f"trend: now {_shown(truth.moved[first][1])}, {', '.join(told)}, "


def _leader(truth: Truth) -> str:
    sql = (
        "SELECT m.id, m.prob FROM question_members o JOIN m ON m.id = o.market_id"
        f" WHERE o.question_id = '{_exclusive(truth)[0]}' AND {OPEN} ORDER BY m.prob DESC LIMIT 1"
    )
    ((market_id, prob),) = truth.rows(sql)
    return f"\n{market_id} {_shown(prob)} "


def _rules(truth: Truth) -> str:
    text = truth.one(f"SELECT description FROM m WHERE id = '{_detail(truth)}'")
    return f"\ndescription: {' '.join(text.split())[:60]}"


#: What somebody asks, the calls that answer it, and the answer as the database has it: ids are those of the last
#: answer's rows in order, numbers its table of counts, and a text is in it. {id} is the first id of the answer before.
QUESTIONS: Final[list[tuple[str, list[str], Answer]]] = [
    ("Which market is most likely YES?", ["list --sort prob --limit 5"], lambda t: t.ids(OPEN, "prob DESC")),
    ("Which is least likely?", ["list --sort prob --reverse --limit 5"], lambda t: t.ids(OPEN, "prob")),
    ("Which is a coin toss?", ["list --sort even --limit 5"], lambda t: t.ids(OPEN, "round(abs(prob - 0.5), 9)")),
    ("Which has the largest volume?", ["list --sort volume --limit 5"], lambda t: t.ids(OPEN, "volume DESC, id")),
    ("Which has most traders?", ["list --limit 5"], lambda t: t.ids(OPEN, "''")),
    ("Which is traded most today?", ["list --sort fills24h --limit 3"], lambda t: t.ids(OPEN, FILLS, 3)),
    (
        "Which closes next?",
        ["list --min close_time=now --sort close_time --reverse --limit 5"],
        lambda t: t.ids(CLOSING, "instant(close_time)"),
    ),
    ("What is new?", ["list --sort new --limit 5"], lambda t: t.ids(OPEN, "instant(created_at) DESC, id")),
    (
        "What was resolved lately, and how?",
        ["list --status resolved --sort ended --limit 5"],
        lambda t: t.ids("status = 'resolved'", "instant(coalesce(resolved_at, close_time)) DESC, id"),
    ),
    (
        "When was the last one resolved?",
        ["list --status resolved --sort ended --limit 1"],
        lambda t: t.one("SELECT max(instant(resolved_at)) FROM m WHERE status = 'resolved'")[:16] + "Z",
    ),
    ("How many are open?", ["list --count"], lambda t: t.counts(STATE, OPEN)),
    ("How many are about report?", ["search report --count"], lambda t: t.counts(STATE, ABOUT)),
    (
        "How many of these are open?",
        ["search report --status open --count"],
        lambda t: t.counts(STATE, f"{ABOUT} AND {OPEN}"),
    ),
    ("How many were resolved YES, how many NO?", ["list --status all --count"], lambda t: t.counts(STATE, "1")),
    (
        "How much was traded on open markets?",
        ["list --count"],
        lambda t: f" {_shown(t.one(f'SELECT sum(volume) FROM m WHERE {OPEN}'))} open\n",
    ),
    (
        "How many are above 90 %?",
        ["list --min prob=0.9 --count"],
        lambda t: t.counts(STATE, f"{OPEN} AND prob >= 0.9"),
    ),
    (
        "How many began this week?",
        ["list --status all --min created_at=-7d --count"],
        lambda t: t.counts(STATE, f"instant(created_at) >= '{_iso(AS_OF - WEEK)}'"),
    ),
    (
        "How many close within a week?",
        ["list --min close_time=now --max close_time=+7d --count"],
        lambda t: t.counts(STATE, f"{CLOSING} AND instant(close_time) <= '{_iso(AS_OF + WEEK)}'"),
    ),
    (
        "How did the ones end that were resolved this week?",
        ["list --status resolved --min resolved_at=-7d --count"],
        lambda t: t.counts(STATE, f"status = 'resolved' AND instant(resolved_at) >= '{_iso(AS_OF - WEEK)}'"),
    ),
    (
        "How many large ones came true?",
        ["list --status all --is resolution=yes --min volume=1000 --count"],
        lambda t: t.counts(STATE, "status = 'resolved' AND resolution = 'YES' AND volume >= 1000"),
    ),
    (
        "How many came true?",
        ["list --is resolution=YES --count"],
        lambda t: t.counts(STATE, "status = 'resolved' AND resolution = 'YES'"),
    ),
    ("How many are resolved?", ["list --is status=resolved --count"], lambda t: t.counts(STATE, "status = 'resolved'")),
    (
        "How did all of them end?",
        ["list --is state=resolved --count"],
        lambda t: t.counts(STATE, "status = 'resolved'"),
    ),
    ("How many are open, exactly?", ["list --count"], lambda t: f"; {t.counts(STATE, OPEN)['open']} open in all)\n"),
    ("What moved today?", ["moves"], _moves(0)),
    ("What moved up today?", ["moves --up --limit 5"], _moves(1)),
    ("What moved down today?", ["moves --down --limit 5"], _moves(-1)),
    ("What moved most in three days?", ["moves --since 3d --limit 5"], _moves_by_history),
    ("What changed since yesterday?", ["changes --since 24h"], " changed since 2026-01-30T12:00Z)\n"),
    ("What became of markets in the last hour?", ["changes --since 1h"], "; 1 resolved, 1 gone, "),
    ("What is there to say of report?", [FIND, DETAIL], lambda t: f"id: {_detail(t)}\n"),
    ("How was it a day and a week ago?", ["market {a}"], _history),
    ("What are its rules?", [FIND, DETAIL], _rules),
    ("What is the best bid for it?", [FIND, DETAIL], _best("bid", "DESC")),
    ("What is the best offer?", [FIND, DETAIL], _best("ask", "ASC")),
    ("Which questions have several answers?", ["questions --is kind=exclusive --sort volume"], _exclusive),
    (
        "Who leads the largest?",
        ["questions --is kind=exclusive --sort volume --limit 1", "question {id}"],
        _leader,
    ),
    ("How do these two compare?", ["market {a} {b}"], lambda t: [*t.moved][:2]),
    ("What became of a market?", ["market {gone}"], f"404: not found; {COULD_BE}"),
    ("How old is the data?", ["about"], "as of: 2026-01-31T12:00Z, "),
    ("Where is all of it?", ["about"], f"dumps: {BASE_URL}/v1/dumps/head.json\n"),
]
#: What only a site with categories can be asked.
OF_CATEGORIES: Final[list[tuple[str, list[str], Answer]]] = [
    (
        "Which category is the largest?",
        ["list --count categories --all"],
        lambda t: dict(
            t.rows(
                "SELECT coalesce(category, '-'), count(*) FROM m LEFT JOIN market_categories ON market_id = m.id"
                f" WHERE {OPEN} GROUP BY 1"
            )
        ),
    ),
    (
        "How many are about politics?",
        ["list --category politics --count"],
        lambda t: t.counts(
            STATE, f"{OPEN} AND id IN (SELECT market_id FROM market_categories WHERE category = 'politics')"
        ),
    ),
]


@pytest.fixture(scope="module", params=VARIANTS)
def truth(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Truth]:
    """A site that was built four times in two days."""
    folder, settings = tmp_path_factory.mktemp(request.param), {**VARIANTS[request.param], "base_url": BASE_URL}
    seed(folder / "markets.db", as_of=AS_OF, markets=150, questions=True)
    options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    truth = Truth("", folder, request.param)
    _build_four_times(truth, settings)
    with (
        served(folder, *UNLIMITED, *options) as server,
        proxied(FaultingProxy(f"http://127.0.0.1:{server.port}", truth.fate, base_url=BASE_URL)) as proxy,
    ):
        yield replace(truth, url=proxy.url)


def _build_four_times(truth: Truth, settings: Mapping[str, str]) -> None:
    """The feed tells what the first two markets were a day ago; of the third, which moved once, its history alone does.

    The fourth moved and came back.
    """
    up, down, late, back, resolved, gone = truth.ids(f"{OPEN} AND prob BETWEEN 0.2 AND 0.6", "id", 6)
    truth.moved.update(
        {up: (0.2, 0.9), down: (0.8, 0.3), late: (truth.recorded(late, CUTOFF) or 0, 0.99), back: (0.4, 0.4)}
    )
    truth.gone.append(gone)
    edits = {
        50: [],
        30: [f"UPDATE markets SET prob = {truth.moved[one][0]} WHERE id = '{one}'" for one in (up, down, back)],
        2: [
            f"UPDATE markets SET prob = {now} WHERE id = '{one}'"
            for one, now in ((up, 0.9), (down, 0.3), (late, 0.99), (back, 0.7))
        ],
        0: [
            f"UPDATE markets SET prob = 0.4 WHERE id = '{back}'",
            (
                f"UPDATE markets SET status = 'resolved', resolution = 'YES', resolved_at = '2026-01-31 11:00:00'"
                f" WHERE id = '{resolved}'"
            ),
            f"UPDATE markets SET is_listed = 0 WHERE id = '{gone}'",
        ],
    }
    for hours, statements in edits.items():
        with closing(sqlite3.connect(truth.folder / "markets.db", isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)
        build_now(make_config(truth.folder, **settings), AS_OF - timedelta(hours=hours), invalid=True, shrink=True)


@pytest.fixture
def pm(truth: Truth, capsys: pytest.CaptureFixture[str]) -> Pm:
    return Pm(truth.url, capsys)


@pytest.mark.parametrize(("question", "calls", "answer"), QUESTIONS, ids=[one[0] for one in QUESTIONS])
def test_a_question_takes_two_short_answers_at_most(
    truth: Truth, pm: Pm, question: str, calls: list[str], answer: Answer
) -> None:
    _ask(truth, pm, calls, answer)


@pytest.mark.parametrize(("question", "calls", "answer"), OF_CATEGORIES, ids=[one[0] for one in OF_CATEGORIES])
def test_so_does_one_about_categories_where_there_are_some(
    truth: Truth, pm: Pm, question: str, calls: list[str], answer: Answer
) -> None:
    if truth.variant == "extended":
        _ask(truth, pm, calls, answer)
        return
    many = truth.one(f"SELECT count(*) FROM m WHERE {OPEN}")
    assert f"\n{many} " in pm("list", "--count", "category")
    pm("list", "--category", "politics", "--count", code=1)
    assert "category: this deployment has no list for it" in pm.err


def _ask(truth: Truth, pm: Pm, calls: list[str], answer: Answer) -> None:
    expected, said, before = answer if isinstance(answer, str) else answer(truth), "", truth.fate.requests
    assert expected
    assert len(calls) <= 2
    for call in calls:
        first = (re.findall(_ID, said) or [""])[0]
        a, b, *_ = truth.moved
        gone = truth.gone[0]
        said = pm(*call.format(id=first, a=a, b=b, gone=gone).split(), code=int("{gone}" in call)) or pm.err
        assert 0 < tokens(said) < MOST_TOKENS, f"{call}: {tokens(said)}"
    assert truth.fate.requests - before <= MOST_REQUESTS
    if isinstance(expected, list):
        assert re.findall(f"^(?:id: )?({_ID})", said, re.MULTILINE) == expected
    elif isinstance(expected, dict):
        rows = re.findall(r"^(\d+) \S+ (.+)$", said, re.MULTILINE)
        assert {value: int(many) for many, value in rows} == expected
        many = re.search(r"; (\d+)(?: open| resolved)? in all\)\n$", said)
        assert many
        assert "categories" in calls[-1] or int(many[1]) == sum(expected.values())
    else:
        assert expected in said


def test_thirty_questions_are_asked_and_more() -> None:
    assert len({question for question, *_ in QUESTIONS}) == len(QUESTIONS) >= 30


@pytest.mark.parametrize(
    "words", ["report", "will jap", "is", "usd jpy", "são", "BEYONCÉ play", "72%", "tiếng việt", "qqxyz"]
)
def test_words_are_found_as_the_site_finds_them(truth: Truth, words: str) -> None:
    """By `pm` in the dump, where the site has no search."""
    with Client(truth.url) as client:
        here = {one.id for one in client.dump() if has_words(f"{one.question} {one.description}", words)}
        read = reading.markets(client, "all", None, words)
        assert ({one.id for one in read.rows}, read.missing) == (here, "")
        listed = {one.id: one.json for one in client.markets(status="all")}
        assert all(one.json == listed[one.id] for one in read.rows)
    assert bool(here) is (words != "qqxyz")


def test_unspaced_words_and_short_ones_are_found_likewise() -> None:
    assert has_words("2026年の選挙", "選挙")
    assert has_words("The EU", "eu")
    assert not has_words("Europe", "eu")
    assert has_words("Électoral", "elect")
    assert not has_words("reelect", "elect")
    assert has_words("Выборы", "выбор")
    assert not has_words("довыборы", "выбор")


def test_every_example_of_the_skill_runs_and_is_short(truth: Truth, pm: Pm, tmp_path: Path) -> None:
    shown = re.findall(r"^    pm URL (.*?)(?:\s{2,}#.*)?$", SKILL, re.MULTILINE)
    market, other, *_ = truth.moved
    names = {"ID": market, "OTHER": other, "QID": _exclusive(truth)[0], "DIR": str(tmp_path), "WORDS": "report"}
    for line in shown:
        words = [names.get(word, word) for word in line.split()]
        refused = truth.variant == "core" and "--category" in words
        said = pm(*words, code=int(refused))
        assert refused or 0 < tokens(said) < MOST_TOKENS, f"{line}: {tokens(said)}"
    assert len(shown) >= 18


def test_an_answer_that_is_not_whole_says_so(truth: Truth, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a site of endless lists, without dump, feed and search."""
    with Client(truth.url) as client:
        build, item = dict(client.build().json), dict(next(client.markets()).json)
    build.pop("search", None)

    def answer(path: str, _: Mapping[str, str]) -> Feed:
        if path.endswith("build.json"):
            return Feed(json.dumps(build).encode())
        if "public/markets?" not in path:
            return Feed(b'{"error":"not found"}', 404)
        if "q=" in path:
            return NO_SEARCH
        page = int((re.findall(r"cursor=([0-9]+)", path) or ["0"])[0])
        items = [{**item, "id": f"{page:04}-{one:03}", "prob": one / 100} for one in range(100)]
        return Feed(json.dumps({"items": items, "nextCursor": str(page + 1)}).encode())

    with answering(answer) as url:
        pm = Pm(url, capsys)
        partial = "partial: only the first 10000 of the site's list were read"
        said = pm("list", "--sort", "prob", "--limit", "1")
        assert said.endswith(f"(1 of 10000; --limit N or --all shows more; {partial})\n")
        titles = "; the site has no search and no dump: words were looked for in the questions alone"
        assert pm("search", item["question"].split()[0], "--min", "prob=0.5", "--count").endswith(
            f"; at least 5000; {partial}{titles})\n"
        )


def test_a_time_ago_may_have_a_minus_or_none(pm: Pm) -> None:
    for command in ("moves", "changes"):
        said = pm(command, "--since", "24h")
        assert "since 2026-01-30T12:00Z" in said
        assert pm(command, "--since", "-24h") == pm(command, "--since=-24h") == said
    assert "since 2026-01-31T12:00Z" in pm("moves", "--since", "now")


def test_a_status_that_is_given_goes_before_that_of_a_condition(pm: Pm) -> None:
    assert pm("list", "--status", "open", "--is", "resolution=YES", "--count").endswith("; 0 open in all)\n")


def test_programs_hear_of_rows_that_are_left_out(pm: Pm) -> None:
    left_out = "pm: 20 shown; --all has the rest\n"
    for words in ("list", "search report", "prices", "list --sort prob"):
        for form, rows in (("--json", 20), ("--ndjson", 20)):
            said = pm(*words.split(), form)
            assert (len(said.splitlines()), left_out in pm.err) == (rows, True)
            pm(*words.split(), form, "--all")
            assert left_out not in pm.err
    many = len(pm("list", "--count", "id", "--ndjson").splitlines())
    assert (many > 50, left_out in pm.err) == (True, False)


def test_another_host_is_named_with_the_option_that_allows_it(
    truth: Truth, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its files are elsewhere, under a name that a shell would take for more than a word."""
    with Client(truth.url) as client:
        build, market = dict(client.build().json), next(client.markets(sort="activity"))
        item, detail = dict(market.json), dict(client.market(market.id).json)
    build.pop("search", None)
    detail["probHistory"] = [{"timestamp": "2020-01-01T00:00:00Z", "prob": 1 - item["prob"] + 0.001}]
    heads = {path: httpx.get(f"{truth.url}{path}").text for path in ("/v1/changes/head.json", "/v1/dumps/head.json")}
    answers = {path: head.replace(truth.url, "http://files;id.example:81") for path, head in heads.items()}
    assert all(answers[path] != head for path, head in heads.items())
    answers |= {"/v1/build.json": json.dumps(build), f"/v1/public/markets/{item['id']}": json.dumps(detail)}

    def answer(path: str, _: Mapping[str, str]) -> Feed:
        page = {"items": [item], "nextCursor": None}
        return NO_SEARCH if "q=" in path else Feed((answers.get(path) or json.dumps(page)).encode())

    with answering(answer) as url:
        pm = Pm(url, capsys)
        allow = "leads to another host (if that is right, pm --host 'files;id.example:81' URL … asks it)"
        for words in (["changes"], ["mirror", str(tmp_path)]):
            pm(*words, code=1)
            assert pm.err.endswith(f"{url}/v1/changes/head.json: {allow}\n")
        moved = pm("moves", "--since", "7d")
        assert (item["id"] in moved, f"partial: the feed {allow}" in moved) == (True, True)
        found = pm("search", item["question"].split()[0])
        looked = f"partial: the dump {allow}: words were looked for in the questions alone"
        assert (item["id"] in found, looked in found) == (True, True)


def test_what_a_site_does_not_publish_is_told(truth: Truth, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with Client(truth.url) as client:
        build, index = dict(client.build().json), dict(client.index().json)
    build.pop("search", None)
    index["tables"] = ["points", "fills"]

    def answer(path: str, _: Mapping[str, str]) -> Feed:
        found = {"/v1/": index, "/v1/build.json": build}.get(path)
        return Feed(json.dumps(found).encode()) if found else Feed(b'{"error":"not found"}', 404)

    with answering(answer) as url:
        pm = Pm(url, capsys)
        for words, what in (
            (["changes"], "change feed"), (["changes", "--since", "1h"], "change feed"),
            (["mirror", str(tmp_path)], "change feed"), (["prices"], "prices"), (["questions"], "questions"),
        ):  # fmt: skip
            pm(*words, code=1)
            assert f": 404: not found; the site publishes no {what}" in pm.err
        assert "\ntables: points, fills\n" in pm("about")
        assert "\nsearch: none: pm looks through the dump\n" in pm("about")
        index.pop("dumps")
        assert "\nsearch: none: pm looks through the questions of markets alone\n" in pm("about")


def test_no_control_character_reaches_the_terminal_by_these_ways(
    truth: Truth, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;title\x07\x9b\u202e x"
    with Client(truth.url) as client:
        build, item = dict(client.build().json), dict(next(client.markets()).json)
    build |= {"categories": [{"name": evil, "slug": "x"}]}
    page = {"items": [{**item, "question": evil, "category": evil}], "nextCursor": None}

    def answer(path: str, _: Mapping[str, str]) -> Feed:
        found = {"/v1/": {"license": evil}, "/v1/build.json": build}.get(path, page)
        return Feed(json.dumps(found).encode()) if "changes" not in path else Feed(b'{"error":"not found"}', 404)

    with answering(answer) as url:
        for words in ("about", "list --count category", "list --fields category,id,question", "list --sort even"):
            said = Pm(url, capsys)(*words.split())
            assert "\\u001b]0;title\\u0007" in said
            assert said.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["list", "--min", "size=3"], "there is no field size; there are id, question, "),
        (["list", "--min", "prob=x"], "prob=x: "),
        (["list", "--max", "close_time=soon"], "is no time such as 2026-01-31, now, -24h or +7d"),
        (["list", "--min", "slug=a"], "slug is a text, which has no minimum and no maximum"),
        (["list", "--is", "accepting_bets=x"], "accepting_bets is true or false"),
        (["list", "--sort", "nothing"], "there is no field nothing"),
        (["list", "--fields", "id,nothing"], "there is no field nothing"),
        (["questions", "--sort", "prob"], "there is no field prob"),
        (["moves", "--since", "yesterday"], ": yesterday is no time such as 24h, 7d or 2026-01-31\n"),
        (["moves", "--since", "soond"], ": soond is no time such as 24h, 7d or 2026-01-31\n"),
    ],
)
def test_wrong_usage_is_told_with_what_is_right(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        Pm("http://x", capsys)(*words)
    assert (ended.value.code, says in capsys.readouterr().err) == (2, True)
