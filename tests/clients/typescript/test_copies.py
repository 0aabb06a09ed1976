"""Copies that the TypeScript client keeps: each equals the site's markets, or the client says why not."""

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings

from tests.clients.typescript.programs import Program
from tests.clients.typescript.scripted_site import Scripted, ScriptedSite
from tests.downloads import states
from tests.downloads.states import IDS, State
from tests.support.campaigns import rounds
from tests.support.readers.change_feed import HEAD, Answer, ChangeFeedSite, serving

FIRST: Final = states.state({one: [("question", '"Snow?"'), ("prob", "0.1"), ("volume", "1e22")] for one in IDS[:9]})
SECOND: Final = states.state(
    {one: [("question", '"Snow?"'), ("prob", "1e-7"), ("volume", "1e22")] for one in IDS[1:10]}
)
THIRD: Final = SECOND | states.state({IDS[2]: [("prob", "-0.0")]})


@pytest.fixture(scope="module")
def feed_server() -> Iterator[ChangeFeedSite]:
    with serving() as served:
        yield served


@pytest.fixture
def feed_site(feed_server: ChangeFeedSite) -> ChangeFeedSite:
    feed_server.answers.clear()
    feed_server.begin(FIRST)
    return feed_server


class Follower:
    """Somebody who follows a site into a file."""

    def __init__(self, run: Program, site: ChangeFeedSite, path: Path) -> None:
        self.site, self.path, self._run = site, path, run
        self.options: dict[str, Any] = {}
        self.position = path.with_name(f"{path.name}.position")

    def look(self) -> dict[str, Any]:
        """Look once; returns what changed, or the error."""
        self.site.asked.clear()
        script = """
        const site = new Client(given.url, { wait, retries: 1, ...given.options });
        let changes = null;
        const failed = await failure((async () => { changes = await all(site.follow(new FileStore(given.path))); })());
        return { changes, failed, waits: [...waits] };
        """
        done: dict[str, Any] = self._run(script, url=self.site.url, path=str(self.path), options=self.options)
        assert sorted(self.path.parent.iterdir()) in ([], [self.path], [self.position], [self.path, self.position])
        return done

    def succeeds(self) -> list[str]:
        """Look once; returns what happened to whom."""
        done = self.look()
        assert done["changes"] is not None, done["failed"]
        assert self.path.read_bytes() == states.text(self.site.feed.state)
        return [f"{change['kind']} {IDS.index(change['id'])}" for change in done["changes"]]

    def fails(self) -> str:
        before = self.path.read_bytes() if self.path.exists() else None
        done = self.look()
        assert done["changes"] is None
        assert (self.path.read_bytes() if self.path.exists() else None) == before
        return str(done["failed"]["message"])

    def dumps(self) -> int:
        """How often the dump was taken."""
        return sum("/dumps/" in path for path in self.site.asked)


@pytest.fixture
def follower(run: Program, feed_site: ChangeFeedSite, tmp_path: Path) -> Follower:
    return Follower(run, feed_site, tmp_path / "markets.ndjson")


def test_a_copy_begins_with_the_dump_and_goes_on_with_steps(follower: Follower) -> None:
    assert follower.succeeds() == [f"added {number}" for number in range(9)]
    assert follower.succeeds() == []
    assert follower.site.asked == [HEAD]
    follower.site.move(SECOND)
    assert follower.succeeds() == ["gone 0", *(f"changed {number}" for number in range(1, 9)), "added 9"]
    follower.site.move(THIRD)
    follower.site.move({**FIRST, **THIRD})
    assert follower.succeeds() == ["added 0", "changed 2"]
    assert (len(follower.site.asked), follower.dumps()) == (3, 0), "the head and two steps"


def test_a_change_tells_what_there_was_and_what_there_is(follower: Follower) -> None:
    follower.look()
    follower.site.move(SECOND)
    changes = {IDS.index(change["id"]): change for change in follower.look()["changes"]}
    snow = {"question": "Snow?", "volume": 1e22}
    assert changes[0] == {"kind": "gone", "id": IDS[0], "before": {"id": IDS[0], "prob": 0.1, **snow}, "market": None}
    assert changes[9] == {"kind": "added", "id": IDS[9], "before": None, "market": {"id": IDS[9], "prob": 1e-7, **snow}}
    assert (changes[1]["before"]["prob"], changes[1]["market"]["prob"]) == (0.1, 1e-7)


def test_a_file_of_the_python_client_is_taken_over(follower: Follower) -> None:
    follower.path.write_bytes(states.text(FIRST))
    follower.position.write_text(json.dumps({"session": "a" * 32, "serial": 1, "state": "", "url": "", "etag": None}))
    follower.site.move(THIRD)
    assert "gone 0" in follower.succeeds()
    assert follower.dumps() == 0


@pytest.mark.parametrize(
    "wrong",
    ["position", "lines", "cut", "rubbish", "no file", "session", "no steps", "serial", "step is gone",
     "step is damaged", "step is longer", "step is another", "step leads elsewhere"],
)  # fmt: skip
def test_a_copy_begins_with_the_dump_again_where_steps_do_not_lead_on(follower: Follower, wrong: str) -> None:
    follower.succeeds()
    follower.site.move(SECOND)
    _spoil(follower, wrong)
    follower.succeeds()
    assert follower.dumps() == 1
    # Where the head tells, its dump is taken; else a newer head may name better files.
    is_told = wrong in {"position", "cut", "rubbish", "no file", "session", "no steps", "serial"}
    assert follower.site.asked.count(HEAD) == (1 if is_told else 2)
    assert follower.succeeds() == []
    assert follower.dumps() == 0


def _spoil(follower: Follower, wrong: str) -> None:
    site, path = follower.site, follower.path
    step = f"/v1/changes/{site.head['steps'][0]['name']}"
    body = site.answers[step].body
    another = states.step(states.changes({}, states.state({IDS[11]: []}))) or b""
    elsewhere = states.step(states.changes(FIRST, THIRD)) or b""
    changes: dict[str, Callable[[], Any]] = {
        "position": lambda: follower.position.write_bytes(b'{"session":1}'),
        "lines": lambda: path.write_bytes(path.read_bytes().replace(b"1e22", b"1e21")),
        "cut": lambda: path.write_bytes(path.read_bytes()[:200]),
        "rubbish": lambda: path.write_bytes(b"\x00rubbish\n\n"),
        "no file": path.unlink,
        "session": lambda: site.begin(THIRD, "b" * 32),
        "no steps": lambda: site.head.update(steps=[]),
        "serial": lambda: follower.position.write_text(json.dumps({"session": "a" * 32, "serial": 9})),
        "step is gone": lambda: site.answers.pop(step),
        "step is damaged": lambda: site.answers.update({step: Answer(body[:-3] + b"xyz")}),
        "step is longer": lambda: site.answers.update({step: Answer(body + b"xyz")}),
        "step is another": lambda: site.answers.update({step: Answer(another.ljust(len(body), b"x")[: len(body)])}),
        "step leads elsewhere": lambda: site.head["steps"].__setitem__(0, site.step(elsewhere)),
    }
    changes[wrong]()
    site.put_head()


def test_a_damaged_copy_is_noticed_although_nothing_is_new(follower: Follower) -> None:
    follower.succeeds()
    follower.path.write_bytes(follower.path.read_bytes().replace(b"Snow", b"Rain"))
    assert follower.succeeds() == [f"changed {number}" for number in range(9)]


def test_a_dump_that_stays_wrong_is_an_error_and_leaves_the_copy(follower: Follower) -> None:
    follower.succeeds()
    follower.site.move(SECOND)
    follower.site.head["state"] = "0" * 64
    follower.site.put_head()
    assert follower.fails().endswith(f"{HEAD} has another digest than the copy")
    assert follower.dumps() == 2


#: The last one is searched for each of its quotation marks by whoever does not look first whether it is JSON.
BAD_LINES: Final = [
    rb'{"id":"05","question":"\ud83d"}', rb'{"id":"05","\udE80":1}', rb'{"id":"05","question":["\ude80\ud83d"]}',
    rb'{"id":"\ud800"}', b'{"id":"05","question":"\xed\xa0\x80"}', b'{"id":"05","question":"\xff"}',
    rb'{"id":"\u0030"}', '{"id":"é"}'.encode(), b'{"id":"05","prob":NaN}', '{"id":"05"}'.encode("utf-16-be"),
    b'{"id":"%s","prob":"%s' % (IDS[1].encode(), rb"\"" * 999_999),
]  # fmt: skip


@pytest.mark.parametrize("wrong", BAD_LINES, ids=range(len(BAD_LINES)))
@pytest.mark.parametrize("is_step", [False, True])
def test_a_line_that_some_store_could_not_keep_is_refused_and_forgotten(
    follower: Follower,
    wrong: bytes,
    is_step: bool,  # noqa: FBT001
) -> None:
    follower.succeeds()
    follower.site.move(SECOND)
    good, body = dict(follower.site.head), gzip.compress(wrong + b"\n")
    follower.site.head |= {"state": hashlib.sha256(wrong + b"\n").hexdigest()}
    follower.site.head["dump"] = good["dump"] | follower.site.file("dumps/markets", body)
    follower.site.head["steps"] = [follower.site.step(body)] if is_step else []
    follower.site.put_head()
    assert "is damaged" in follower.fails() or b"id" in wrong
    follower.site.head = good
    follower.site.put_head()
    follower.succeeds()
    assert follower.dumps() == 0, "the copy was as before"


def test_a_line_of_more_than_16_mb_is_refused(follower: Follower) -> None:
    follower.succeeds()
    follower.site.begin(SECOND, "b" * 32)
    follower.site.head["dump"] |= follower.site.file("dumps/markets", gzip.compress(bytes(17 << 20), 1))
    follower.site.put_head()
    assert follower.fails().endswith("is damaged: has a line of more than 16 MB")


def test_a_file_has_no_more_bytes_than_were_allowed(follower: Follower) -> None:
    size = len(states.text(FIRST))
    for allowed, problem in ((size - 1, f"is damaged: holds more than {size - 1} bytes"), (9, "largestFile allows")):
        follower.options = {"largestFile": allowed}
        assert follower.fails().endswith(problem)
    follower.options = {"largestFile": size}
    follower.succeeds()


def test_a_file_of_another_host_is_asked_for_if_that_is_allowed(follower: Follower) -> None:
    with serving() as elsewhere:
        elsewhere.begin(FIRST)
        follower.site.head["dump"] = elsewhere.head["dump"]
        follower.site.put_head()
        assert "leads to another host; if that is right, allow it: hosts" in follower.fails()
        assert elsewhere.asked == []
        follower.options = {"hosts": [elsewhere.url.removeprefix("http://")]}
        follower.succeeds()
        assert len(elsewhere.asked) == 1


def test_a_file_with_a_content_encoding_is_refused(follower: Follower) -> None:
    path = follower.site.head["dump"]["url"].removeprefix(follower.site.url)
    follower.site.answers[path].headers = {"Content-Encoding": "gzip"}
    assert "has the Content-Encoding gzip, which cannot be read" in follower.fails()


def test_a_site_without_a_feed_is_an_error(follower: Follower) -> None:
    follower.succeeds()
    good = dict(follower.site.head)
    del follower.site.answers[HEAD]
    assert "head.json answers 404" in follower.fails()
    assert follower.site.asked == [HEAD]
    broken: dict[str, Any] = {
        "serial": "7",
        "steps": [{"name": "../x", "size": 1}],
        "dump": {},
        "stepsUrl": None,
        "state": "",
        "session": 1,
    }
    for name, value in broken.items():
        follower.site.answers[HEAD] = Answer(json.dumps({**good, name: value}).encode())
        assert follower.fails().endswith("head.json is not what was asked for")


def test_who_follows_goes_on_until_it_ends(run: Program, feed_site: ChangeFeedSite) -> None:
    script = """
    const store = new MemoryStore();
    const site = new Client(given.url, { wait: async (ms) => { waits.push(ms); } });
    let count = 0;
    for await (const change of site.follow(store, { interval: 5000 })) {
      count += 1;
      if (count === given.first) await fetch(given.url + "/move");
      if (change.kind === "gone") break;
    }
    return { count, serial: store.copy.serial, waits: [...waits] };
    """

    class Moving(dict[str, Answer]):
        """A request for `/move` is the next build."""

        def get(self, path: str, default: Answer) -> Answer:  # type: ignore[override]
            if path == "/move":
                feed_site.answers = {**feed_site.answers}
                feed_site.move(SECOND)
            return super().get(path, default)

    feed_site.answers = Moving(feed_site.answers)
    assert run(script, url=feed_site.url, first=9) == {"count": 10, "serial": 2, "waits": [5000]}


@settings(max_examples=rounds(8, 30))
@given(history=states.histories)
def test_dump_and_steps_make_the_newest_dump_from_every_serial(
    run: Program, feed_server: ChangeFeedSite, history: list[State]
) -> None:
    """Held against the reference in `generator.downloads.steps`: two implementations of the rules."""
    feed_server.answers.clear()
    feed_server.begin(history[0])
    script = """
    const stores = (globalThis.stores = given.isFirst ? [] : globalThis.stores);
    stores.push(new MemoryStore());
    const site = new Client(given.url);
    for (const store of stores.slice(given.from)) await all(site.follow(store));
    return stores.slice(given.from).map(({ copy }) => [...copy.lines].sort().map(([, line]) => line));
    """
    for number, state in enumerate(history):
        feed_server.move(state)
        # At the end all follow, from whichever state they have.
        first = 0 if number == len(history) - 1 else number
        texts = run(script, url=feed_server.url, isFirst=number == 0, **{"from": first})
        expected = [line.decode() for line in feed_server.feed.state.values()]
        assert texts == [expected] * (number + 1 - first)


def test_a_dump_is_checked_before_its_first_market_comes(run: Program, site: ScriptedSite) -> None:
    made = states.make(FIRST).body
    digest = hashlib.sha256(made).hexdigest()
    head = {"markets": [{"format": "ndjson", "url": "../x.gz", "sha256": digest, "size": len(made)}]}
    site.put("/v1/dumps/head.json", Scripted(head))
    site.put("/v1/x.gz", Scripted(made[:-1] + b"?"), Scripted({}, 404), Scripted(made))
    script = "return all(new Client(given.url, { wait, retries: 1 }).dump());"
    assert run(script, url=site.url) == [json.loads(line) for line in FIRST.values()]
    assert [path for path in site.asked if path == "/v1/dumps/head.json"] == ["/v1/dumps/head.json"] * 2
    site.put("/v1/x.gz", Scripted(made[:-1] + b"?"))
    script = """
    const found = [];
    const failed = await failure((async () => {
      for await (const market of new Client(given.url, { wait, retries: 1 }).dump()) found.push(market);
    })());
    return [found, failed.message];
    """
    assert run(script, url=site.url) == [[], f"{site.url}/v1/x.gz is not the file that the head names"]
    site.put("/v1/dumps/head.json", Scripted({"markets": []}))
    assert run(script, url=site.url)[1].endswith("/v1/dumps/head.json names no NDJSON")
