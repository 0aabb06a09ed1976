"""The client program: its file equals the site's, or it says why not."""

import gzip
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from clients import follow_changes
from tests.downloads import states
from tests.downloads.states import IDS, Feed, State
from tests.support.campaigns import rounds
from tests.support.readers.change_feed import HEAD, Answer, ChangeFeedSite, serving
from tests.support.sites.builds import ROOT

FIRST = states.state({one: [("question", '"Snow?"'), ("prob", "0.1"), ("volume", "1e22")] for one in IDS[:9]})
SECOND = states.state({one: [("question", '"Snow?"'), ("prob", "1e-7"), ("volume", "1e22")] for one in IDS[1:10]})
THIRD = SECOND | states.state({IDS[2]: [("prob", "-0.0")]})


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


@pytest.fixture
def follower(change_feed_site: ChangeFeedSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> "Follower":
    return Follower(change_feed_site, tmp_path / "markets.ndjson", capsys)


class Follower:
    """Somebody who follows a site."""

    def __init__(self, site: ChangeFeedSite, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.site, self.path, self._capsys = site, path, capsys
        self.position = path.with_name("markets.ndjson.position")

    def run(self, *options: str) -> tuple[int, str]:
        """The exit code, and what was said."""
        self.site.asked.clear()
        self.site.sent.clear()
        code = follow_changes.main([self.site.url + HEAD, str(self.path), *options])
        said = self._capsys.readouterr()
        assert said.out == ""
        return code, said.err

    def succeeds(self) -> str:
        code, said = self.run()
        assert (code, self.path.read_bytes()) == (0, states.text(self.site.feed.state)), said
        assert sorted(self.path.parent.iterdir()) == [self.path, self.position]
        return said

    def fails(self, code: int, *options: str) -> str:
        before = self.path.read_bytes() if self.path.exists() else None
        found, said = self.run(*options)
        assert found == code, said
        assert (self.path.read_bytes() if self.path.exists() else None) == before
        assert not list(self.path.parent.glob("*.part"))
        return said

    def dumps(self) -> int:
        """How often the dump was taken."""
        return sum("/dumps/" in path for path in self.site.asked)


def test_it_begins_with_the_dump_and_goes_on_with_steps(follower: Follower) -> None:
    assert "there is no copy yet; starting from the dump" in follower.succeeds()
    assert "nothing new" in follower.succeeds()
    assert follower.site.asked == [HEAD]
    follower.site.move(SECOND)
    assert "9 markets new or changed, 1 gone" in follower.succeeds()
    follower.site.move(THIRD)
    follower.site.move({**FIRST, **THIRD})
    follower.succeeds()
    assert len(follower.site.asked) == 3, "the head and two steps"
    assert follower.dumps() == 0


def test_steps_since_the_last_run_are_merged(follower: Follower) -> None:
    """The newest value of each property, whichever step has it."""
    follower.succeeds()
    for prob, volume in [("0.2", "1e22"), ("0.3", "1e22"), ("0.3", "5")]:
        values = [("question", '"Snow?"'), ("prob", prob), ("volume", volume)]
        follower.site.move(FIRST | {IDS[3]: states.line(IDS[3], values)})
    assert "1 markets new or changed, 0 gone" in follower.succeeds()
    assert len(follower.site.asked) == 4


def test_who_reads_the_file_meanwhile_reads_a_whole_one(follower: Follower) -> None:
    follower.succeeds()
    follower.site.move(SECOND)
    with follower.path.open("rb") as reading:
        follower.succeeds()
        assert reading.read() == states.text(FIRST)


def test_a_file_that_is_too_long_is_not_read_to_its_end(change_feed_site: ChangeFeedSite) -> None:
    dump = follow_changes.read_head(change_feed_site.url + HEAD, 9, {})["dump"]
    with pytest.raises(follow_changes.StartAgainError, match="longer"):
        next(follow_changes.lines_of({**dump, "size": 10}, 9))
    assert next(follow_changes.lines_of(dump, 9)) in states.text(FIRST)


@settings(max_examples=rounds(12, 400))
@given(history=states.histories)
def test_dump_and_steps_make_the_newest_dump_from_every_serial(history: list[State]) -> None:
    """Held against the reference in `generator.downloads.steps`: two implementations of the rules."""
    feed = Feed(history[0])
    for state in history[1:]:
        feed.move(state)
    for position, (begin, _) in enumerate(feed.steps):
        merge = follow_changes.Merge()
        for _, body in feed.steps[position:]:
            merge.add(gzip.decompress(body).splitlines(keepends=True))
        found = b"".join(merge.apply(line + b"\n" for line in begin.values()))
        assert found == states.text(feed.state)


def _damages_position(follower: Follower) -> None:
    follower.position.write_bytes(b'{"session":1}')


def _damages_file(follower: Follower) -> None:
    follower.path.write_bytes(follower.path.read_bytes().replace(b"Snow", b"Rain"))


def _cuts_file(follower: Follower) -> None:
    body = follower.path.read_bytes()
    follower.path.write_bytes(body[: len(body) // 2])


def _makes_rubbish_of_file(follower: Follower) -> None:
    follower.path.write_bytes(b"\x00rubbish\n\n")


def _removes_file(follower: Follower) -> None:
    follower.path.unlink()


def _begins_a_session(follower: Follower) -> None:
    follower.site.begin(THIRD, "b" * 32)


def _drops_steps(follower: Follower) -> None:
    follower.site.move(THIRD)
    follower.site.head["steps"] = follower.site.head["steps"][1:]
    follower.site.put_head()


def _loses_a_step_within(follower: Follower) -> None:
    follower.site.move(THIRD)
    follower.site.move(FIRST)
    del follower.site.head["steps"][1]
    follower.site.put_head()


def _goes_back(follower: Follower) -> None:
    follower.site.begin(SECOND)
    follower.position.write_bytes(json.dumps({"session": "a" * 32, "serial": 9}).encode())


def _removes_a_step(follower: Follower) -> None:
    del follower.site.answers[_path_of_step(follower.site)]


def _damages_a_step(follower: Follower) -> None:
    body = follower.site.answers[_path_of_step(follower.site)].body
    follower.site.answers[_path_of_step(follower.site)] = Answer(body[:-3] + b"xyz")


def _lengthens_a_step(follower: Follower) -> None:
    body = follower.site.answers[_path_of_step(follower.site)].body
    follower.site.answers[_path_of_step(follower.site)] = Answer(body + b"xyz")


def _puts_another_step_in_its_place(follower: Follower) -> None:
    """Well-formed, of the same length, and yet not what the head names."""
    other = states.step(states.changes({}, states.state({IDS[11]: []}))) or b""
    follower.site.answers[_path_of_step(follower.site)] = Answer(other)
    follower.site.head["steps"][0]["size"] = len(other)
    follower.site.put_head()


def _makes_an_error_in_a_step(follower: Follower) -> None:
    """The head names the step, but it does not lead to the state that the head names."""
    wrong = states.step(states.changes(FIRST, THIRD)) or b""
    follower.site.head["steps"][0] = follower.site.step(wrong)
    follower.site.put_head()


def _path_of_step(site: ChangeFeedSite) -> str:
    return f"/v1/changes/{site.head['steps'][0]['name']}"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (_damages_position, "is damaged"),
        (_damages_file, "the digest of the result differs"),
        (_cuts_file, "damaged"),
        (_makes_rubbish_of_file, "damaged"),
        (_removes_file, "is gone"),
        (_begins_a_session, "new session"),
        (_drops_steps, "no steps lead"),
        (_loses_a_step_within, "no steps lead"),
        (_goes_back, "no steps lead from serial 9 to 1"),
        (_removes_a_step, "answers 404"),
        (_damages_a_step, "is damaged"),
        (_lengthens_a_step, "is longer than the head says"),
        (_puts_another_step_in_its_place, "digest differs"),
        (_makes_an_error_in_a_step, "the digest of the result differs"),
    ],
)
def test_it_starts_again_from_the_dump_when_steps_do_not_lead_on(
    follower: Follower, wrong: Callable[[Follower], None], reason: str
) -> None:
    follower.succeeds()
    follower.site.move(SECOND)
    wrong(follower)
    said = follower.succeeds()
    assert reason in said
    assert "; starting from the dump" in said
    assert follower.dumps() == 1
    assert "nothing new" in follower.succeeds()


def test_a_damaged_file_is_noticed_although_nothing_is_new(follower: Follower) -> None:
    follower.succeeds()
    _damages_file(follower)
    assert "has changed or is damaged; starting from the dump" in follower.succeeds()


def test_it_tries_once_more_when_the_site_changes_between_head_and_dump(follower: Follower) -> None:
    dump = follower.site.head["dump"]["url"].removeprefix(follower.site.url)

    class Moving(dict[str, Answer]):
        """The first request for the dump finds that the site has a newer one."""

        def get(self, path: str, default: Answer) -> Answer:  # type: ignore[override]
            if path == dump:
                follower.site.answers = {one: answer for one, answer in self.items() if one != dump}
                follower.site.move(SECOND)
                return default
            return super().get(path, default)

    follower.site.answers = Moving(follower.site.answers)
    assert "answers 404; trying once more" in follower.succeeds()


def test_a_dump_that_stays_wrong_is_a_failure(follower: Follower) -> None:
    follower.site.head["state"] = "0" * 64
    follower.site.put_head()
    assert follower.fails(1).count("the digest of the result differs from the site's") == 2
    assert follower.dumps() == 2


def test_an_unchanged_head_is_not_sent_again(follower: Follower) -> None:
    follower.succeeds()
    assert "nothing new" in follower.succeeds()
    assert follower.site.sent == [(304, 0)]
    follower.site.move(SECOND)
    follower.succeeds()
    assert "nothing new" in follower.succeeds()
    assert follower.site.sent == [(304, 0)]


def test_a_head_that_changed_although_nothing_is_new_is_sent_once(follower: Follower) -> None:
    follower.site.move(SECOND)
    follower.succeeds()
    follower.site.head["steps"] = []
    follower.site.put_head()
    for statuses in ([200], [304]):
        assert "nothing new" in follower.succeeds()
        assert [status for status, _ in follower.site.sent] == statuses


def test_a_file_that_is_damaged_is_made_anew_although_the_head_is_unchanged(follower: Follower) -> None:
    follower.succeeds()
    _damages_file(follower)
    assert "has changed or is damaged; starting from the dump" in follower.succeeds()
    assert [status for status, _ in follower.site.sent] == [304, 200, 200]


@pytest.mark.parametrize(
    "known",
    [{"url": "http://elsewhere.example/v1/changes/head.json"}, {"etag": None}, {"etag": 'W/"x"\n'}, {"state": 7}],
)
def test_a_head_of_which_too_little_is_known_is_asked_for_without_a_condition(
    follower: Follower, known: dict[str, Any]
) -> None:
    follower.succeeds()
    follower.position.write_bytes(json.dumps(json.loads(follower.position.read_bytes()) | known).encode())
    assert "nothing new" in follower.succeeds()
    assert follower.site.sent[0][0] == 200
    assert "nothing new" in follower.succeeds()
    assert follower.site.sent == [(304, 0)]


def test_the_head_comes_compressed(follower: Follower) -> None:
    for number in range(30):
        follower.site.move(FIRST | {IDS[3]: states.line(IDS[3], [("prob", str(number))])})
    follower.succeeds()
    assert follower.site.sent[0][1] < len(follower.site.answers[HEAD].body) * 2 / 3


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_head_without_end_is_not_read_to_its_end(
    follower: Follower,
    monkeypatch: pytest.MonkeyPatch,
    is_compressed: bool,  # noqa: FBT001
) -> None:
    follower.succeeds()
    monkeypatch.setattr(follow_changes, "MOST_BYTES_OF_A_HEAD", 1 << 20)
    body = json.dumps(follower.site.head).encode() + bytes([32]) * (1 << 20)
    headers = {"Content-Encoding": "gzip" if is_compressed else "identity"}
    follower.site.answers[HEAD] = Answer(gzip.compress(body) if is_compressed else body, headers=headers)
    assert "is not the head of a change feed" in follower.fails(1)
    follower.site.answers[HEAD] = Answer(b"no gzip", headers={"Content-Encoding": "gzip"})
    assert "is not the head of a change feed" in follower.fails(1)


def test_a_line_of_more_than_16_mb_is_refused(follower: Follower) -> None:
    follower.succeeds()
    body = gzip.compress(bytes(17 << 20), 1)
    follower.site.begin(SECOND, "b" * 32)
    follower.site.head["dump"] |= follower.site.file("dumps/markets", body)
    follower.site.put_head()
    assert follower.fails(1).count("has a line of more than 16 MB") == 2


class Counted(bytes):
    """A piece of a file; `copied` counts the bytes that were copied to put it and others together."""

    copied = 0

    def __radd__(self, other: bytes) -> bytes:
        Counted.copied += len(other) + len(self)
        return bytes(other) + bytes(self)


@pytest.mark.parametrize("pieces", [16, 64])
def test_a_file_without_line_breaks_is_read_in_linear_time(pieces: int) -> None:
    Counted.copied = 0
    lines = [*follow_changes.split([Counted(1_000)] * pieces, "the file")]
    assert lines == [bytes(1_000 * pieces)]
    assert Counted.copied <= 1_000 * pieces


def test_no_more_of_a_line_is_read_than_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_changes, "LONGEST_LINE", 5_000)
    pieces = iter([b"1\n", *[bytes(1_000)] * 9])
    lines = follow_changes.split(pieces, "the file")
    assert next(lines) == b"1\n"
    with pytest.raises(follow_changes.StartAgainError, match="the file has a line of more"):
        next(lines)
    assert len([*pieces]) == 3


def test_a_site_without_a_feed_is_a_failure(follower: Follower) -> None:
    follower.succeeds()
    del follower.site.answers[HEAD]
    assert "head.json answers 404" in follower.fails(1)
    assert follower.site.asked == [HEAD]
    for body in (b"{}", b"[]", b"<html>", b"\xff", json.dumps({**follower.site.head, "serial": "7"}).encode()):
        follower.site.answers[HEAD] = Answer(body)
        assert "is not the head of a change feed" in follower.fails(1)
    broken: dict[str, Any] = {"steps": [{"name": "../x", "size": 1}], "dump": {}, "stepsUrl": None}
    for name, wrong in broken.items():
        follower.site.answers[HEAD] = Answer(json.dumps({**follower.site.head, name: wrong}).encode())
        assert "is not the head of a change feed" in follower.fails(1)
    follower.site.answers[HEAD] = Answer(status=403)
    assert "answers 403" in follower.fails(1)


@pytest.mark.parametrize("is_step", [False, True])
def test_a_site_that_does_not_answer_is_to_be_tried_later(follower: Follower, is_step: bool) -> None:  # noqa: FBT001
    follower.succeeds()
    follower.site.move(SECOND)
    path = _path_of_step(follower.site) if is_step else HEAD
    follower.site.answers[path] = Answer(b"{}", 503, {"Retry-After": "10"})
    assert f"{path} answers 503: try again in 10 s" in follower.fails(3)
    follower.site.answers[path] = Answer(b"{}", 500)
    assert "answers 500: try again later" in follower.fails(3)
    assert follower.dumps() == 0, "it costs a site in trouble no dump"


def test_a_site_that_cannot_be_reached_is_to_be_tried_later(follower: Follower) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        follower.site.answers[HEAD] = Answer(
            status=302, headers={"Location": f"http://127.0.0.1:{silent.getsockname()[1]}/"}
        )
        assert "took more than 0.05 s" in follower.fails(3, "--timeout", "0.05")
    assert "Connection refused" in follower.fails(3)


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x", "/etc/hostname", "http:/"])
def test_it_opens_addresses_of_http_alone(follower: Follower, address: str, tmp_path: Path) -> None:
    assert follow_changes.main([address, str(tmp_path / "x")]) in {1, 3}
    assert not [*tmp_path.iterdir()]
    follower.site.answers[HEAD] = Answer(status=302, headers={"Location": address})
    assert follower.run()[0] in {1, 3}
    follower.site.put_head()
    follower.site.head["dump"]["url"] = address
    follower.site.put_head()
    assert follower.run()[0] in {1, 3}
    assert not follower.path.exists()


@pytest.mark.parametrize("address", ["http://[x", "/é", f"http://{'a' * 70}.com/", "http://127.0.0.1:x/"])
@pytest.mark.parametrize("place", ["dump", "stepsUrl"])
def test_an_address_that_is_none_is_a_failure(follower: Follower, place: str, address: str) -> None:
    follower.succeeds()
    follower.site.move(SECOND)
    if place == "dump":
        follower.position.unlink()
        follower.site.head["dump"]["url"] = address
    else:
        follower.site.head["stepsUrl"] = f"{address}/"
    follower.site.put_head()
    assert follower.run()[0] in {1, 3}
    assert follower.path.read_bytes() == states.text(FIRST)


def test_no_control_character_of_a_site_reaches_the_terminal(follower: Follower) -> None:
    follower.site.answers[HEAD] = Answer(b"{}", 503, {"Retry-After": "\x1b[31m5"})
    assert "try again in ?[31m5 s" in follower.fails(3)
    follower.site.head["dump"]["url"] = "/\x1b]0;title\x07\x9b"
    follower.site.put_head()
    assert follower.run()[1].replace("\n", "").isprintable()


@pytest.mark.parametrize("path", ["head", "dump"])
def test_an_answer_that_was_cut_short_is_to_be_tried_again_later(follower: Follower, path: str) -> None:
    place = HEAD if path == "head" else follower.site.head["dump"]["url"].removeprefix(follower.site.url)
    body = follower.site.answers[place].body
    headers = {"Content-Encoding": "identity"} if path == "head" else {}
    follower.site.answers[place] = Answer(body[:-9], headers={"Content-Length": str(len(body)), **headers})
    assert "cannot be read (its last 9 bytes are missing): try again later" in follower.fails(3)


def test_addresses_may_be_relative_and_redirected(follower: Follower) -> None:
    dump = follower.site.head["dump"]
    path = dump["url"].removeprefix(follower.site.url)
    dump["url"] = "../" + path.removeprefix("/v1/")
    follower.site.put_head()
    follower.site.answers["/elsewhere"] = follower.site.answers[path]
    follower.site.answers[path] = Answer(status=302, headers={"Location": "/elsewhere"})
    follower.succeeds()


def test_what_cannot_be_written_is_a_failure(follower: Follower, tmp_path: Path) -> None:
    assert follow_changes.main([follower.site.url + HEAD, str(tmp_path / "no" / "such" / "folder")]) == 1


def test_it_runs_as_one_file_without_the_project(tmp_path: Path) -> None:
    program = tmp_path / "follow_changes.py"
    program.write_bytes((ROOT / "clients" / "follow_changes.py").read_bytes())
    done = subprocess.run([sys.executable, "-I", str(program), "--help"], cwd=tmp_path, capture_output=True, check=True)
    assert b"Exit codes:" in done.stdout
