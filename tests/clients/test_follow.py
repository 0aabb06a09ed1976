"""Copies that follow a site, of both clients: each equals the site's markets, or the client says why not."""

import gzip
import hashlib
import json
import logging
import os
import queue
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
from hypothesis import given, settings

from public_markets_client import (
    AnswerError,
    Client,
    ClientError,
    DuckDbStore,
    NdjsonStore,
    NotFoundError,
    Options,
    SqliteStore,
    Store,
    StoreError,
    UnavailableError,
    changes,
)
from public_markets_client.changes import Change
from tests.clients.typescript.programs import Program
from tests.downloads import states
from tests.downloads.states import IDS, Feed, State
from tests.support.campaigns import rounds
from tests.support.project import ROOT
from tests.support.readers.change_feed import HEAD, Answer, ChangeFeedSite, serving

FIRST = states.state({one: [("question", '"Snow?"'), ("prob", "0.1"), ("volume", "1e22")] for one in IDS[:9]})
SECOND = states.state({one: [("question", '"Snow?"'), ("prob", "1e-7"), ("volume", "1e22")] for one in IDS[1:10]})
THIRD = SECOND | states.state({IDS[2]: [("prob", "-0.0")]})
#: A site that asks for patience is asked once; else a request is sent twice, without a pause.
IMPATIENT: Final = Options(tries=2, pause=0, patience=0)
STORES: Final[dict[str, Callable[[Path], Store]]] = {
    "ndjson": NdjsonStore,
    "sqlite": SqliteStore,
    "duckdb": DuckDbStore,
}
#: The client for TypeScript, whose files are those of the first of these stores.
NODE: Final = "node"


@pytest.fixture(scope="module")
def server() -> Iterator[ChangeFeedSite]:
    with serving() as site:
        yield site


@pytest.fixture
def change_feed_site(server: ChangeFeedSite) -> ChangeFeedSite:
    server.answers.clear()
    server.asked.clear()
    server.begin(FIRST)
    return server


@pytest.fixture(params=[*STORES, NODE])
def follower(
    change_feed_site: ChangeFeedSite, tmp_path: Path, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> "Follower":
    """One of each client and store; a test may name some of them."""
    folder = tmp_path / "copies"
    if request.param == NODE:
        return NodeFollower(change_feed_site, folder, caplog, request.getfixturevalue("run"))
    return Follower(change_feed_site, request.param, folder, caplog)


#: A test for each client, where it does not matter what the copy is.
of_both: Final = pytest.mark.parametrize("follower", ["ndjson", NODE], indirect=True)


@pytest.fixture
def file_follower(change_feed_site: ChangeFeedSite, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> "Follower":
    """One of Python, with NDJSON."""
    return Follower(change_feed_site, "ndjson", tmp_path / "copies", caplog)


class Follower:
    """Somebody who follows a site."""

    #: Whether it says why it starts again.
    tells = True

    def __init__(self, site: ChangeFeedSite, kind: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        folder.mkdir(exist_ok=True)
        self.site, self.kind, self.path, self._caplog = site, kind, folder / f"markets.{kind}", caplog
        self.store = STORES[kind](self.path)
        self.changes = list[Change]()
        caplog.set_level(logging.INFO, "public_markets_client")

    def run(self, options: Options = IMPATIENT) -> tuple[ClientError | None, str]:
        """What went wrong, and what was said."""
        self.site.asked.clear()
        self.site.sent.clear()
        self.changes.clear()
        self._caplog.clear()
        error = None
        try:
            with Client(self.site.url, options) as client:
                self.changes += client.follow(self.store)
        except ClientError as raised:
            error = raised
        told = [one.getMessage() for one in self._caplog.records if one.name == "public_markets_client"]
        return error, "; ".join([*told, str(error or "")])

    def text(self) -> bytes:
        return b"".join(self.store.lines()) if self.path.exists() else b""

    def succeeds(self) -> str:
        before = {json.loads(line)["id"]: line for line in self.text().splitlines()} if self._is_sound() else {}
        error, said = self.run()
        assert error is None, said
        assert self.text() == states.text(self.site.feed.state), said
        assert self._told(before) == self.text(), "what was told leads from the old copy to the new one"
        assert {path.suffix for path in self.path.parent.iterdir()} <= {f".{self.kind}", ".position", ".wal"}
        return said

    def _is_sound(self) -> bool:
        try:
            return self.store.position().serial > 0 and [*changes.with_ids(self.store.lines())] != []
        except ClientError:
            return False

    def _told(self, lines: dict[str, bytes]) -> bytes:
        for change in self.changes:
            assert change.line_before == (lines[change.id] + b"\n" if change.id in lines else None)
            assert (change.kind == "added") == (change.id not in lines)
            lines.pop(change.id, None)
            if change.line:
                lines[change.id] = change.line[:-1]
        return states.text(dict(sorted(lines.items())))

    def fails(self, kind: type[ClientError] = ClientError) -> str:
        before = self.text()
        error, said = self.run()
        assert error is not None
        assert isinstance(error, kind), said
        assert isinstance(error, UnavailableError) == (kind is UnavailableError), said
        assert self.text() == before
        assert not list(self.path.parent.glob("*.part"))
        return said

    def dumps(self) -> int:
        """How often the dump was taken."""
        return sum("/dumps/" in path for path in self.site.asked)

    def write(self, *lines: bytes) -> None:
        """Alter the copy behind the client's back."""
        if self.kind == "ndjson":
            self.path.write_bytes(b"".join(lines))
            return
        ids = [json.loads(line)["id"] if b'"id"' in line else IDS[number] for number, line in enumerate(lines)]
        with closing(_connected(self.kind, self.path)) as connection:
            connection.execute("DELETE FROM markets")
            rows = [[one, line.decode()[:-1]] for one, line in zip(ids, lines, strict=True)]
            connection.executemany("INSERT INTO markets (id, line) VALUES (?, ?)", rows)
            connection.commit()

    def sql(self, statement: str, *values: object) -> list[Any]:
        with closing(_connected(self.kind, self.path)) as connection:
            found: list[Any] = connection.execute(statement, [*values]).fetchall()
            connection.commit()
            return found

    def set_position(self, **values: object) -> None:
        """Alter what is kept of the position."""
        beside = self.path.with_name("markets.ndjson.position")
        text = beside.read_text() if self.kind == "ndjson" else self.sql("SELECT json FROM position")[0][0]
        changed = json.dumps(json.loads(text) | values)
        if self.kind == "ndjson":
            beside.write_text(changed)
        else:
            self.sql("UPDATE position SET json = ?", changed)


class NodeFollower(Follower):
    """One who uses the client for TypeScript, which has another class of errors."""

    tells = False

    def __init__(self, site: ChangeFeedSite, folder: Path, caplog: pytest.LogCaptureFixture, node: Program) -> None:
        super().__init__(site, "ndjson", folder, caplog)
        self._node = node
        self.values = list[dict[str, Any]]()

    def run(self, options: Options = IMPATIENT) -> tuple[ClientError | None, str]:
        self.site.asked.clear()
        given = {"hosts": [*options.hosts], "retries": options.tries - 1, "largestFile": options.largest_file}
        script = """
        const site = new Client(given.url, { wait, ...given.options });
        let changes = [];
        const failed = await failure((async () => { changes = await all(site.follow(new FileStore(given.path))); })());
        return { changes, said: failed.message };
        """
        done = self._node(script, url=self.site.url, path=str(self.path), options=given)
        self.values = done["changes"]
        self.changes = [
            Change(one["id"], *(one[when] and b"{}" for when in ("market", "before"))) for one in self.values
        ]
        is_fine = done["said"] == "it did not fail"
        return None if is_fine else ClientError(done["said"]), "" if is_fine else done["said"]

    def fails(self, kind: type[ClientError] = ClientError) -> str:
        del kind
        return super().fails()

    def _told(self, lines: dict[str, bytes]) -> bytes:
        """It tells no lines, so a test looks at the values."""
        del lines
        return self.text()

    def text(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

    def set_position(self, **values: object) -> None:
        position = self.path.with_name("markets.ndjson.position")
        position.write_text(json.dumps({"session": "a" * 32, **values}))


def _connected(kind: str, path: Path) -> Any:
    return sqlite3.connect(path) if kind == "sqlite" else duckdb.connect(str(path))


def kinds(follower: Follower) -> list[int]:
    """How many markets were added, changed and gone."""
    told = [change.kind for change in follower.changes]
    return [told.count("added"), told.count("changed"), told.count("gone")]


def test_it_begins_with_the_dump_and_goes_on_with_steps(follower: Follower) -> None:
    assert "there is no copy yet; starting from the dump" in follower.succeeds() or not follower.tells
    assert kinds(follower) == [9, 0, 0]
    follower.succeeds()
    assert (follower.site.asked, follower.changes) == ([HEAD], [])
    follower.site.move(SECOND)
    follower.succeeds()
    assert kinds(follower) == [1, 8, 1]
    follower.site.move(THIRD)
    follower.site.move({**FIRST, **THIRD})
    follower.succeeds()
    assert len(follower.site.asked) == 3, "the head and two steps"
    assert follower.dumps() == 0


@pytest.mark.parametrize("follower", [NODE], indirect=True)
def test_a_change_tells_what_there_was_and_what_there_is(follower: NodeFollower) -> None:
    follower.succeeds()
    follower.site.move(SECOND)
    follower.succeeds()
    changes = {IDS.index(change["id"]): change for change in follower.values}
    snow = {"question": "Snow?", "volume": 1e22}
    assert changes[0] == {"kind": "gone", "id": IDS[0], "before": {"id": IDS[0], "prob": 0.1, **snow}, "market": None}
    assert changes[9] == {"kind": "added", "id": IDS[9], "before": None, "market": {"id": IDS[9], "prob": 1e-7, **snow}}
    assert (changes[1]["before"]["prob"], changes[1]["market"]["prob"]) == (0.1, 1e-7)


@pytest.mark.parametrize("follower", [NODE], indirect=True)
def test_a_file_of_the_python_client_is_taken_over(follower: Follower, file_follower: Follower) -> None:
    file_follower.succeeds()
    follower.site.move(THIRD)
    follower.succeeds()
    assert (kinds(follower), follower.dumps()) == ([1, 8, 1], 0)


def test_who_reads_the_file_meanwhile_reads_a_whole_one(file_follower: Follower) -> None:
    file_follower.succeeds()
    file_follower.site.move(SECOND)
    with file_follower.path.open("rb") as reading:
        file_follower.succeeds()
        assert reading.read() == states.text(FIRST)


class Interposed(dict[str, Answer]):
    """Answers of a site; at the first request for a path, something happens first."""

    def __init__(self, site: ChangeFeedSite, path: str, happens: Callable[[], object]) -> None:
        super().__init__(site.answers)
        self.path, self.waiting = path, [happens]

    def get(self, path: str, default: Answer) -> Answer:  # type: ignore[override]
        if path == self.path and self.waiting:
            self.waiting.pop()()
        return super().get(path, default)


@pytest.mark.parametrize("follower", STORES, indirect=True)
def test_two_programs_that_update_one_copy_do_not_mix_it(follower: Follower) -> None:
    follower.succeeds()
    follower.site.move(SECOND)

    def faster() -> None:
        with Client(follower.site.url, IMPATIENT) as client:
            assert len([*client.follow(STORES[follower.kind](follower.path))]) == 10

    follower.site.answers = Interposed(follower.site, _path_of_step(follower.site), faster)
    error, said = follower.run()
    if follower.kind == "ndjson":
        assert error is None, "it has written the same file again"
    else:
        assert "was changed by another program meanwhile; run again" in said
        assert isinstance(error, StoreError)
    assert follower.text() == states.text(SECOND)


@pytest.mark.campaign
@settings(max_examples=rounds(12, 400))
@given(history=states.histories)
def test_dump_and_steps_make_the_newest_dump_from_every_serial(history: list[State]) -> None:
    """Held against the reference in `generator.downloads.steps`: two implementations of the rules."""
    feed = Feed(history[0])
    for state in history[1:]:
        feed.move(state)
    for position, (begin, _) in enumerate(feed.steps):
        merge = changes.Merge()
        for _, body in feed.steps[position:]:
            merge.add(body_lines(gzip.decompress(body)), "")
        old = [line + b"\n" for line in begin.values()]
        became = [*merge.apply(old)]
        new = [change.line for change in became if change.line]
        assert b"".join(new) == states.text(feed.state)
        assert became == [*changes.replaced(old, new)]
        assert told(old, iter(became)) == new


def told(old: list[bytes], found: Iterator[Change]) -> list[bytes]:
    """The lines that changes lead to."""
    lines = {changes.first_value(line)[1]: line for line in old}
    lines |= {change.id: change.line or b"" for change in found}
    return [lines[one] for one in sorted(lines) if lines[one]]


def body_lines(body: bytes) -> list[bytes]:
    return [line + b"\n" for line in body.split(b"\n")[:-1]]


def _damages_copy(follower: Follower) -> None:
    follower.write(*(line.replace(b"Snow", b"Rain") for line in [*follower.store.lines()]))


def _puts_lines_out_of_order(follower: Follower) -> None:
    """Of a database, whose rows come in order: under other ids."""
    first, second, *others = [*follower.store.lines()]
    follower.write(second, first, *others)
    if follower.kind != "ndjson":
        follower.sql("UPDATE markets SET id = 'x' || id WHERE id = ?", IDS[4])


def _makes_an_id_unreadable(follower: Follower) -> None:
    """Half of a surrogate pair, as former clients let it in: no UTF-8."""
    if follower.kind == "ndjson":
        follower.path.write_bytes(b'{"id":"\xed\xa0\x80"}\n')
    elif follower.kind == "sqlite":
        follower.sql("UPDATE markets SET id = CAST(X'EDA080' AS TEXT) WHERE id = ?", IDS[4])
    else:
        follower.sql("UPDATE markets SET id = 'x' WHERE id = ?", IDS[4])


def _loses_steps(follower: Follower, at: int, *states_: State) -> None:
    """The head names all steps to these states but one."""
    for state in states_:
        follower.site.move(state)
    del follower.site.head["steps"][at]
    follower.site.put_head()


def _goes_back(follower: Follower) -> None:
    follower.site.begin(SECOND)
    follower.set_position(serial=9)


def _alters_the_step(follower: Follower, change: Callable[[bytes], bytes], **told: int) -> None:
    path = _path_of_step(follower.site)
    follower.site.answers[path] = Answer(change(follower.site.answers[path].body))
    follower.site.head["steps"][0].update(told)
    follower.site.put_head()


def _makes_an_error_in_a_step(follower: Follower) -> None:
    """The head names the step, but it does not lead to the state that the head names."""
    wrong = states.step(states.changes(FIRST, THIRD)) or b""
    follower.site.head["steps"][0] = follower.site.step(wrong)
    follower.site.put_head()


def _path_of_step(site: ChangeFeedSite) -> str:
    return f"/v1/changes/{site.head['steps'][0]['name']}"


#: Well-formed, of a length that the head tells, and yet not what it names.
ANOTHER_STEP: Final = states.step(states.changes({}, states.state({IDS[11]: []}))) or b""
#: What becomes of a copy, and what is said of that.
DAMAGE: Final[dict[str, tuple[Callable[[Follower], object], str]]] = {
    "its position": (lambda one: one.set_position(session=1), "is damaged"),
    "other lines": (_damages_copy, "the digest of the result differs"),
    "half of it is lost": (lambda one: one.write(*[*one.store.lines()][:4]), "the digest of the result differs"),
    "rubbish": (lambda one: one.write(b'"rubbish"\n', b"[]\n"), "damaged"),
    "an id that cannot be read": (_makes_an_id_unreadable, "damaged"),
    "lines out of order": (_puts_lines_out_of_order, "damaged"),
    "no copy": (lambda one: one.path.unlink(), ""),
}
#: What a site does whose steps do not lead on, and what is said of that.
LOST: Final[dict[str, tuple[Callable[[Follower], object], str]]] = {
    "begins a session": (lambda one: one.site.begin(THIRD, "b" * 32), "new session"),
    "drops steps": (lambda one: _loses_steps(one, 0, THIRD), "no steps lead"),
    "drops one within": (lambda one: _loses_steps(one, 1, THIRD, FIRST), "no steps lead"),
    "goes back": (_goes_back, "no steps lead from serial 9 to 1"),
    "lacks a step": (lambda one: one.site.answers.pop(_path_of_step(one.site)), "404: "),
    "damages it": (lambda one: _alters_the_step(one, lambda body: body[:-3] + b"xyz"), "digest differs"),
    "lengthens it": (lambda one: _alters_the_step(one, lambda body: body + b"xyz"), "is longer than the head says"),
    "has another": (
        lambda one: _alters_the_step(one, lambda _: ANOTHER_STEP, size=len(ANOTHER_STEP)), "digest differs",
    ),
    "has a wrong one": (_makes_an_error_in_a_step, "the digest of the result differs"),
}  # fmt: skip
#: The client for TypeScript sorts lines; and what sites do is the same for every store.
CASES: Final = {*product([*STORES, NODE], DAMAGE), *product(["ndjson", NODE], LOST)} - {(NODE, "lines out of order")}


@pytest.mark.parametrize(("follower", "wrong"), sorted(CASES), indirect=["follower"])
def test_it_starts_again_from_the_dump_when_steps_do_not_lead_on(follower: Follower, wrong: str) -> None:
    harm, reason = {**DAMAGE, **LOST}[wrong]
    follower.succeeds()
    follower.site.move(SECOND)
    harm(follower)
    said = follower.succeeds()
    for part in (reason, "; starting from the dump"):
        assert part in said or not follower.tells
    assert follower.dumps() == 1
    follower.succeeds()
    assert follower.dumps() == 0


def test_a_damaged_copy_is_noticed_although_nothing_is_new(follower: Follower) -> None:
    follower.succeeds()
    _damages_copy(follower)
    said = follower.succeeds()
    assert "the digest of the result differs from the site's; starting from the dump" in said or not follower.tells
    assert kinds(follower) == [0, 9, 0], "what was mended is told"


def test_it_tries_once_more_when_the_site_changes_between_head_and_dump(file_follower: Follower) -> None:
    site = file_follower.site
    dump = site.head["dump"]["url"].removeprefix(site.url)

    def moves() -> None:
        site.answers.pop(dump)
        site.move(SECOND)

    site.answers = Interposed(site, dump, moves)
    assert "404: not found; trying once more" in file_follower.succeeds()


@of_both
def test_a_dump_that_stays_wrong_is_a_failure(follower: Follower) -> None:
    follower.succeeds()
    follower.site.move(SECOND)
    follower.site.head["state"] = "0" * 64
    follower.site.put_head()
    assert ("digest of the result differs" if follower.tells else "has another digest") in follower.fails()
    assert follower.dumps() == 2


def test_an_unchanged_head_is_not_sent_again(file_follower: Follower) -> None:
    file_follower.succeeds()
    file_follower.succeeds()
    assert file_follower.site.sent == [(304, 0)]
    file_follower.site.move(SECOND)
    file_follower.succeeds()
    file_follower.succeeds()
    assert file_follower.site.sent == [(304, 0)]


@of_both
def test_a_line_of_more_than_16_mb_is_refused(follower: Follower) -> None:
    follower.succeeds()
    body = gzip.compress(bytes(17 << 20), 1)
    follower.site.begin(SECOND, "b" * 32)
    follower.site.head["dump"] |= follower.site.file("dumps/markets", body)
    follower.site.put_head()
    assert "has a line of more than 16 MB" in follower.fails()


BAD_LINES: Final = {
    "half of a pair": rb'{"id":"05","question":"\ud83d"}', "in a name": rb'{"id":"05","\udE80":1}',
    "in the wrong order": rb'{"id":"05","question":["\ude80\ud83d"]}', "in an id": rb'{"id":"\ud800"}',
    "raw": b'{"id":"05","question":"\xed\xa0\x80"}', "no UTF-8": b'{"id":"05","question":"\xff"}',
    "escaped id": rb'{"id":"\u0030"}', "other letters": '{"id":"é"}'.encode(), "no number": b'{"id":"05","prob":NaN}',
    # Searched for each of its quotation marks by whoever does not look first whether it is JSON.
    "long": b'{"id":"05","prob":"' + rb"\"" * 999_999,
    "deep": b'{"id":"05","new":' + b"[" * 9_999 + b"]" * 9_999 + b"}", "UTF-16": '{"id":"05"}'.encode("utf-16-be"),
}  # fmt: skip


@pytest.mark.parametrize("is_step", [False, True])
def test_a_line_that_some_store_could_not_keep_is_refused_and_forgotten(follower: Follower, is_step: bool) -> None:  # noqa: FBT001
    follower.succeeds()
    follower.site.move(SECOND)
    good = dict(follower.site.head)
    for name, line in BAD_LINES.items():
        if name == "deep" and not follower.tells:
            continue  # JavaScript reads it
        body = gzip.compress(line + b"\n")
        follower.site.head |= {"state": hashlib.sha256(line + b"\n").hexdigest()}
        follower.site.head["dump"] = good["dump"] | follower.site.file("dumps/markets", body)
        follower.site.head["steps"] = [follower.site.step(body)] if is_step else []
        follower.site.put_head()
        assert follower.fails(), name
    follower.site.head = good
    follower.site.put_head()
    follower.succeeds()
    assert follower.dumps() == 0, "the copy was as before"


@of_both
def test_a_file_has_no_more_bytes_than_were_allowed(follower: Follower) -> None:
    size = len(states.text(FIRST))
    error, _ = follower.run(replace(IMPATIENT, largest_file=size))
    assert error is None
    follower.site.begin(FIRST, "b" * 32)
    for allowed, asked in ((size - 1, True), (9, False)):
        error, said = follower.run(replace(IMPATIENT, largest_file=allowed))
        assert error
        assert "is longer than largest_file allows" in said or not follower.tells
        assert bool(follower.dumps()) == asked
    follower.site.head["dump"]["size"] = 10**15
    follower.site.put_head()
    follower.fails()
    assert follower.dumps() == 0


def test_steps_that_are_too_long_together_are_not_merged() -> None:
    lines = [line + b"\n" for line in FIRST.values()]
    merge = changes.Merge(sum(map(len, lines)))
    merge.add(lines, "")
    with pytest.raises(ClientError, match="too long to be merged"):
        merge.add(lines[:1], "")


@of_both
def test_a_file_of_another_host_is_asked_for_if_that_is_allowed(follower: Follower) -> None:
    with serving() as elsewhere:
        elsewhere.begin(FIRST)
        follower.site.head["dump"] = elsewhere.head["dump"]
        follower.site.put_head()
        assert "leads to another host; if that is right, allow it: hosts" in follower.fails()
        assert elsewhere.asked == []
        error, said = follower.run(replace(IMPATIENT, hosts=[elsewhere.url.removeprefix("http://")]))
        assert (error, len(elsewhere.asked)) == (None, 1), said


@of_both
def test_a_file_with_a_content_encoding_is_refused(follower: Follower) -> None:
    path = follower.site.head["dump"]["url"].removeprefix(follower.site.url)
    follower.site.answers[path].headers = {"Content-Encoding": "gzip"}
    assert "has the Content-Encoding gzip, which cannot be read" in follower.fails()


@of_both
def test_a_site_without_a_feed_is_a_failure(follower: Follower) -> None:
    follower.succeeds()
    del follower.site.answers[HEAD]
    assert "head.json" in follower.fails(NotFoundError)
    assert follower.site.asked == [HEAD]
    for body in (b"{}", b"[]", b"<html>", b"\xff", json.dumps({**follower.site.head, "serial": "7"}).encode()):
        follower.site.answers[HEAD] = Answer(body)
        assert HEAD in follower.fails(AnswerError)
    broken: dict[str, Any] = {
        "steps": [{"name": "../x", "size": 1, "asOf": "2026-01-31"}],
        "dump": {},
        "stepsUrl": None,
        "session": 1,
    }
    for name, wrong in broken.items():
        follower.site.answers[HEAD] = Answer(json.dumps({**follower.site.head, name: wrong}).encode())
        assert HEAD in follower.fails(AnswerError)
    follower.site.answers[HEAD] = Answer(status=403)
    assert "no Public Markets site answers" in follower.fails(ClientError)


@pytest.mark.parametrize("is_step", [False, True])
def test_a_site_that_does_not_answer_is_to_be_tried_later(file_follower: Follower, is_step: bool) -> None:  # noqa: FBT001
    file_follower.succeeds()
    file_follower.site.move(SECOND)
    path = _path_of_step(file_follower.site) if is_step else HEAD
    # The error is longer than the step.
    file_follower.site.answers[path] = Answer(b" " * 9_999 + b'{"error":"busy"}', 503, {"Retry-After": "10"})
    assert f"{path}: 503: busy; try again in 10 s" in file_follower.fails(UnavailableError)
    assert file_follower.site.asked.count(path) == 1, "longer than the client has patience"
    file_follower.site.answers[path] = Answer(b"{}", 500)
    assert "500: no reason given; try again later" in file_follower.fails(UnavailableError)
    assert file_follower.site.asked.count(path) == 2
    assert file_follower.dumps() == 0, "it costs a site in trouble no dump"


@of_both
@pytest.mark.parametrize("path", ["head", "dump"])
def test_what_was_cut_short_changes_no_copy(follower: Follower, path: str) -> None:
    follower.succeeds()
    follower.site.begin(SECOND, "b" * 32)
    place = HEAD if path == "head" else follower.site.head["dump"]["url"].removeprefix(follower.site.url)
    body = follower.site.answers[place].body
    headers = {"Content-Length": str(len(body)), "Content-Encoding": "identity"}
    follower.site.answers[place] = Answer(body[:-9], headers=headers)
    assert "cannot be read" in follower.fails(UnavailableError)


def test_addresses_may_be_relative_and_redirected(file_follower: Follower) -> None:
    dump = file_follower.site.head["dump"]
    path = dump["url"].removeprefix(file_follower.site.url)
    dump["url"] = "../" + path.removeprefix("/v1/")
    file_follower.site.put_head()
    file_follower.site.answers["/elsewhere"] = file_follower.site.answers[path]
    file_follower.site.answers[path] = Answer(status=302, headers={"Location": "/elsewhere"})
    file_follower.succeeds()


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("kind", STORES)
def test_a_mirror_that_is_killed_goes_on_when_it_is_run_again(
    change_feed_site: ChangeFeedSite, tmp_path: Path, kind: str
) -> None:
    site, store = change_feed_site, STORES[kind](tmp_path / f"markets.{kind}")
    program = "import sys; from public_markets_client.command import main; sys.exit(main())"
    command = [sys.executable, "-c", program, site.url, "mirror", str(tmp_path), "--to", kind]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python")}

    def killed_at(path: str) -> int:
        processes = queue.Queue["subprocess.Popen[bytes]"]()
        site.answers = Interposed(site, path, lambda: processes.get().kill())
        with subprocess.Popen(command, env=environ) as process:
            processes.put(process)
        return process.returncode

    def text() -> bytes:
        site.asked.clear()
        subprocess.run(command, env=environ, check=True)
        assert {path.suffix for path in tmp_path.iterdir()} <= {f".{kind}", ".position"}
        return b"".join(store.lines())

    assert killed_at(site.head["dump"]["url"].removeprefix(site.url)) == -signal.SIGKILL
    assert text() == states.text(FIRST)
    site.move(SECOND)
    assert killed_at(_path_of_step(site)) == -signal.SIGKILL
    assert b"".join(store.lines()) == states.text(FIRST)
    assert text() == states.text(SECOND)
    assert site.asked == [HEAD, _path_of_step(site)]


@pytest.mark.parametrize("kind", STORES)
def test_what_cannot_be_written_is_a_failure(change_feed_site: ChangeFeedSite, tmp_path: Path, kind: str) -> None:
    store = STORES[kind](tmp_path / "no" / "such" / "folder")
    with Client(change_feed_site.url, IMPATIENT) as client, pytest.raises(StoreError, match=str(tmp_path)):
        [*client.follow(store)]


def test_databases_have_columns_with_the_values_of_markets(change_feed_site: ChangeFeedSite, tmp_path: Path) -> None:
    for kind in ("sqlite", "duckdb"):
        path = tmp_path / kind
        with Client(change_feed_site.url) as client:
            assert len([*client.follow(STORES[kind](path))]) == 9
        with closing(_connected(kind, path)) as connection:
            rows = connection.execute(
                "SELECT question, prob, volume, resolution FROM markets WHERE prob < 0.2"
            ).fetchall()
            assert rows == [("Snow?", 0.1, 1e22, None)] * 9


@pytest.mark.campaign
@settings(max_examples=rounds(8, 30))
@given(history=states.histories)
def test_the_client_for_typescript_has_the_newest_dump_from_every_serial(
    run: Program, server: ChangeFeedSite, history: list[State]
) -> None:
    server.answers.clear()
    server.begin(history[0])
    script = """
    const stores = (globalThis.stores = given.isFirst ? [] : globalThis.stores);
    stores.push(new MemoryStore());
    const site = new Client(given.url);
    for (const store of stores.slice(given.from)) await all(site.follow(store));
    return stores.slice(given.from).map(({ copy }) => [...copy.lines].sort().map(([, line]) => line));
    """
    for number, state in enumerate(history):
        server.move(state)
        # At the end all follow, from whichever state they have.
        first = 0 if number == len(history) - 1 else number
        texts = run(script, url=server.url, isFirst=number == 0, **{"from": first})
        expected = [line.decode() for line in server.feed.state.values()]
        assert texts == [expected] * (number + 1 - first)
