"""The definitions of questions in copies, of both clients: equal to the site's, or the client says why not."""

import gzip
import hashlib
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest

from public_markets_client import Client, ClientError, Store
from tests.clients.conftest import over_http
from tests.clients.test_follow import FIRST, IMPATIENT, NODE, SECOND, STORES
from tests.clients.typescript.programs import Program
from tests.downloads.states import IDS
from tests.questions import sites
from tests.questions.oracle import Setting
from tests.questions.served import asked, oracle_for, served
from tests.support.readers.change_feed import HEAD, ChangeFeedSite, serving
from tests.support.sites.builds import NO_LIMITS, build_now, make_config

ONE: Final = (
    '{"id":"0a","kind":"exclusive","slug":"who","title":"Who wins?","description":null,'
    '"createdAt":"2026-01-31T12:00:00.000Z","members":['
    f'{{"id":"{IDS[1]}","label":"Ada","position":1,"payout":null}},'
    f'{{"id":"{IDS[2]}","label":"Bo","position":null,"payout":0.25}}]}}\n'
).encode()
OTHER: Final = ONE.replace(b"0a", b"0b").replace(b"Who wins?", b"Wer?")


def define(site: ChangeFeedSite, lines: bytes | None, **told: object) -> None:
    """Let the head name these definitions, or none."""
    site.head.pop("questions", None)
    if lines is not None:
        file = site.file("dumps/questions", gzip.compress(lines, mtime=0))
        files = [{"format": "parquet", **file, "url": f"{site.url}/x"}, {"format": "ndjson", **file}]
        state = hashlib.sha256(lines).hexdigest()
        as_of = "2026-01-31T12:00:00.000Z"
        site.head["questions"] = {"asOf": as_of, "count": 1, "state": state, "serial": 1, "files": files} | told
    site.put_head()


class Copy:
    """A copy of one client and store, and what is in it."""

    def __init__(self, kind: str, folder: Path, run: Program | None) -> None:
        self.kind, self._run = "ndjson" if run else kind, run
        folder.mkdir()
        self.path = folder / f"markets.{self.kind}"
        self.beside = folder / "markets.ndjson.questions"
        self.store: Store = STORES[self.kind](self.path)

    def follow(self, site: ChangeFeedSite) -> str:
        """Bring it up to date; returns what went wrong."""
        site.asked.clear()
        if self._run:
            script = """
            const site = new Client(given.url, { wait, retries: 1 });
            return (await failure(all(site.follow(new FileStore(given.path))))).message;
            """
            said = self._run(script, url=site.url, path=str(self.path))
            return "" if said == "it did not fail" else said
        try:
            with Client(site.url, IMPATIENT) as client:
                deque(client.follow(self.store))
        except ClientError as error:
            return str(error)
        return ""

    def definitions(self) -> bytes | None:
        """The lines of definitions; None if there is no table."""
        if self.kind == "ndjson":
            return self.beside.read_bytes() if self.beside.exists() else None
        with closing(_connected(self.kind, self.path)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall()}
            assert ("questions" in tables) is ("question_members" in tables)
            if "questions" not in tables:
                return None
            rows = connection.execute("SELECT line FROM questions ORDER BY id").fetchall()
        return b"".join(line.encode() + b"\n" for (line,) in rows)

    def damage(self) -> None:
        if self.kind == "ndjson":
            self.beside.write_bytes(self.beside.read_bytes().replace(b"Ada", b"Eve"))
            return
        with closing(_connected(self.kind, self.path)) as connection:
            connection.execute("UPDATE questions SET line = replace(line, 'Ada', 'Eve')")
            connection.commit()

    def lose(self) -> None:
        if self.kind == "ndjson":
            self.beside.unlink()
            return
        with closing(_connected(self.kind, self.path)) as connection:
            connection.execute("DROP VIEW question_members")
            connection.execute("DROP TABLE questions")
            connection.commit()


def _connected(kind: str, path: Path) -> Any:
    return sqlite3.connect(path) if kind == "sqlite" else duckdb.connect(str(path))


@pytest.fixture(scope="module")
def server() -> Iterator[ChangeFeedSite]:
    with serving() as site:
        yield site


@pytest.fixture
def feed(server: ChangeFeedSite) -> ChangeFeedSite:
    """A site whose questions have one definition."""
    server.answers.clear()
    server.begin(FIRST)
    define(server, ONE)
    return server


@pytest.fixture(params=[*STORES, NODE])
def copy(feed: ChangeFeedSite, tmp_path: Path, request: pytest.FixtureRequest) -> Copy:
    """One that was made of that."""
    made = Copy(request.param, tmp_path / "copies", request.getfixturevalue("run") if request.param == NODE else None)
    assert made.follow(feed) == ""
    assert made.definitions() == ONE
    return made


def asked_for(feed: ChangeFeedSite) -> list[str]:
    """The folders of the files that were asked for."""
    return [path.split("/")[-2] for path in feed.asked if path != HEAD]


def test_definitions_are_replaced_when_their_state_changes_and_only_then(copy: Copy, feed: ChangeFeedSite) -> None:
    assert copy.follow(feed) == ""
    assert asked_for(feed) == []
    feed.move(SECOND)
    assert copy.follow(feed) == ""
    assert (asked_for(feed), copy.definitions()) == (["changes"], ONE)
    for lines in (ONE + OTHER, OTHER, b"", ONE):
        define(feed, lines)
        assert copy.follow(feed) == ""
        assert (asked_for(feed), copy.definitions()) == (["questions"], lines)
    define(feed, None)
    assert copy.follow(feed) == ""
    assert (asked_for(feed), copy.definitions()) == ([], None)


@pytest.mark.parametrize("harm", [Copy.damage, Copy.lose])
def test_definitions_that_are_damaged_or_lost_are_mended(
    copy: Copy, feed: ChangeFeedSite, harm: Callable[[Copy], None]
) -> None:
    """Although nothing is new; and with the next step."""
    harm(copy)
    assert copy.follow(feed) == ""
    assert copy.definitions() == ONE
    harm(copy)
    feed.move(SECOND)
    assert copy.follow(feed) == ""
    assert (asked_for(feed), copy.definitions()) == (["changes", "questions"], ONE)


BAD: Final[dict[str, Callable[[ChangeFeedSite], object]]] = {
    "another state": lambda feed: define(feed, OTHER, state="0" * 64),
    "another file": lambda feed: _spoil(feed, gzip.compress(ONE)),
    "none": lambda feed: feed.answers.pop(_path(feed)),
    "a size": lambda feed: _tell(feed, size=9),
    "no definitions": lambda feed: define(feed, b'{"title":"x"}\n'),
    "out of order": lambda feed: define(feed, OTHER + ONE),
    "no NDJSON": lambda feed: _tell(feed, format="csv"),
    "another host": lambda feed: _tell(feed, url="http://site.example/x"),
    "no digest": lambda feed: _tell(feed, sha256="x"),
}


#: Of these, those of which the head itself is to blame.
ABOUT_HEAD: Final = {"no NDJSON", "another host", "no digest"}


def _path(feed: ChangeFeedSite) -> str:
    return str(feed.head["questions"]["files"][1]["url"].removeprefix(feed.url))


def _spoil(feed: ChangeFeedSite, body: bytes) -> None:
    feed.answers[_path(feed)].body = body[:-1] + b"?"


def _tell(feed: ChangeFeedSite, **told: object) -> None:
    feed.head["questions"]["files"][1].update(told)
    feed.put_head()


@pytest.mark.parametrize("wrong", BAD)
def test_definitions_that_are_not_what_the_head_names_change_no_copy(
    copy: Copy, feed: ChangeFeedSite, wrong: str
) -> None:
    before = b"".join(copy.store.lines())
    feed.move(SECOND)
    define(feed, OTHER)
    BAD[wrong](feed)
    said = copy.follow(feed)
    assert (HEAD in said) if wrong in ABOUT_HEAD else said
    assert (b"".join(copy.store.lines()), copy.definitions()) == (before, ONE)
    feed.begin(SECOND)
    define(feed, OTHER)
    assert copy.follow(feed) == ""
    assert copy.definitions() == OTHER


@pytest.mark.parametrize("kind", STORES)
def test_a_copy_of_an_earlier_client_gets_definitions(feed: ChangeFeedSite, tmp_path: Path, kind: str) -> None:
    copy = Copy(kind, tmp_path / "copies", None)
    assert copy.follow(feed) == ""
    position = copy.store.position()
    earlier = type(position)(**{**position.__dict__, "json": {**position.json}, "questions": None})
    del earlier.json["questions"]  # type: ignore[attr-defined]
    copy.store.apply(copy.store.lines(), iter(()), earlier, position, None)
    assert copy.definitions() is None
    assert copy.follow(feed) == ""
    assert (asked_for(feed), copy.definitions()) == (["questions"], ONE)


@pytest.mark.parametrize("kind", ["sqlite", NODE])
def test_a_copy_has_the_definitions_of_a_site_through_its_rebuilds(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A title is edited, a question is hidden, then every one; no markets change."""
    copy = Copy(kind, tmp_path / "copies", request.getfixturevalue("run") if kind == NODE else None)
    builds = [served(tmp_path, sites.small)]
    paths = list[str]()

    def get(path: str) -> tuple[int, Mapping[str, str], bytes]:
        paths.append(path)
        return builds[-1](path)

    found = []
    with over_http(get) as url:
        for edit in (
            "title = title",
            "title = 'Whose?' WHERE title = 'Which?'",
            "approval = 'pending' WHERE title = 'Over?'",
            "is_listed = 0",
        ):
            with closing(sqlite3.connect(tmp_path / "markets.db", isolation_level=None)) as database:
                database.execute(f"UPDATE questions SET {edit}")
            build_now(make_config(tmp_path, **NO_LIMITS), shrink=True)
            builds.append(asked(tmp_path))
            assert copy.follow(ChangeFeedSite(url)) == ""
            oracle = oracle_for(builds[-1], tmp_path, Setting())
            assert copy.definitions() == oracle.definitions
            found.append(len(oracle.questions))
    assert found == [2, 2, 1, 0]
    assert sum("/dumps/markets/" in path for path in paths) == 1


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_databases_have_questions_and_their_markets_as_tables(feed: ChangeFeedSite, tmp_path: Path, kind: str) -> None:
    copy = Copy(kind, tmp_path / "copies", None)
    assert copy.follow(feed) == ""
    with closing(_connected(kind, copy.path)) as connection:
        questions = connection.execute("SELECT id, kind, slug, title, description FROM questions").fetchall()
        members = connection.execute("SELECT * FROM question_members ORDER BY market_id").fetchall()
        joined = connection.execute(
            "SELECT title, label, prob FROM questions JOIN question_members ON question_id = questions.id"
            " JOIN markets ON market_id = markets.id WHERE position = 1"
        ).fetchall()
    assert questions == [("0a", "exclusive", "who", "Who wins?", None)]
    assert members == [("0a", IDS[1], "Ada", 1, None), ("0a", IDS[2], "Bo", None, 0.25)]
    assert joined == [("Who wins?", "Ada", 0.1)]
