"""A published site to which anything may happen, and followers of its change feed that read it from the bucket."""

import hashlib
import json
import logging
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx

from generator.api import downloads, keys
from generator.api.downloads import ENTRY_SIZE, STEP_LIFETIME
from generator.errors import BUILD_GUARDS
from public_markets_client import Client, ClientError, NdjsonStore, Options
from public_markets_client.site import LOG
from tests.downloads import states
from tests.support import limits
from tests.support.deaths import Kill
from tests.support.faults import Reader
from tests.support.readers import parquet
from tests.support.readers.change_feed import HEAD, Answer, serving
from tests.support.sites.builds import files, text_of
from tests.support.sites.publishing import EVERY, FX, PublishedSite, copy_output, slug
from tests.support.sites.rows import insert_market, market_id
from tests.support.waiting import PATIENCE_S

CHANGES: Final = keys.head(keys.CHANGES)
DUMPS: Final = keys.head(keys.DUMPS)
#: Of the site; what is published is served elsewhere.
_BASE_URL: Final = "http://127.0.0.1:8000"
#: Words that only one market has, with its number; the id appears in lists of what is blocked, too.
_WORDS: Final = re.compile(rb"canary(\d+)x|slug-of-(\d+)-")
_IDS: Final = re.compile(rb"([0-9a-f]{8})-0000-4000-8000-000000000000")
#: What a follower says if it finds that files do not fit together.
DOUBTS: Final = ("damaged", "differs", "answers 404")


@dataclass
class Followed:
    """The site, its changes and commands, and what its followers must find.

    `texts` are the dumps that were published, by session and serial.
    """

    site: PublishedSite
    url: str
    folder: Path
    draw: random.Random
    now: datetime = datetime(2024, 2, 1, tzinfo=UTC)
    kills: int = 0
    #: Of the last command that built and published.
    writes: int = 0
    known: set[int] = field(default_factory=lambda: {*EVERY})
    hidden: set[int] = field(default_factory=set)
    blocked: set[int] = field(default_factory=set)
    #: What the last command that was completed left public.
    public: set[int] = field(default_factory=set)
    texts: dict[tuple[str, int], bytes] = field(default_factory=dict)
    #: How often a follower came without starting from a dump.
    by_steps: int = 0
    #: Followers that may find that a backup took the place of what they follow.
    astray: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for number in self.known:
            self.site.edit(number, **_texts(number))
        self.publish()

    # what happens

    def add(self) -> None:
        number = max(self.known) + 100
        self.known.add(number)
        insert_market(self.site.database, number, close_time="9999-01-01 00:00:00.000000", **_texts(number))

    def edit(self) -> None:
        for number in self.draw.sample(sorted(self.known), self.draw.randint(0, 3)):
            prob, volume = self.draw.choice([0.1, 1e-7, 0.25]), self.draw.choice([1e22, 0.1, 12.5])
            self.site.edit(number, prob=prob, volume=volume, trader_count=self.draw.randint(0, 9))

    def hide(self, number: int) -> None:
        self.hidden.add(number)
        self.site.edit(number, approval="pending")

    def show(self, number: int) -> None:
        self.hidden.remove(number)
        self.site.edit(number, approval="approved")

    def delete(self, number: int) -> None:
        self.known.remove(number)
        self.hidden.discard(number)
        self.site.database.execute("DELETE FROM fx_members WHERE market_id = ?", [market_id(number)])
        self.site.database.execute("DELETE FROM markets WHERE id = ?", [market_id(number)])

    def any_shown(self) -> int:
        """The number of a market that is public, but not the first, so that there is always one."""
        return self.draw.choice(sorted(self.known - self.hidden - self.blocked - {1}))

    def take_down(self, number: int, *, undo: bool = False) -> None:
        self.blocked ^= {number}
        self.site.done("takedown", market_id(number), *(["--undo"] if undo else []))
        self.public = self.public - self.blocked

    def build(self, **settings: str) -> None:
        self.site.done("build", *self._next(), *_ACCEPTED, **settings)

    def publish(self, **settings: str) -> None:
        """Build and publish."""
        never = Kill(_MANY)
        with never.over(self.site.server):
            self.site.done("rebuild", *self._next(), *_ACCEPTED, *_LIFTED, **settings)
        self.writes = _MANY - never.left
        self._is_published()

    def publish_built(self) -> None:
        """Publish the last build."""
        self.site.done("publish", *_LIFTED)
        self._is_published()

    def fail_to_build(self) -> None:
        """A guard refuses the build; hidden markets are withdrawn from what is published, not from the folder."""
        self.site.edit(1, prob=7)
        settings = {"guards__max_invalid": "0", "guards__max_shrink": "0.9"}
        result = self.site.run("rebuild", *self._next(), **settings)
        assert result.exit_code == 3, result.output
        self.site.edit(1, prob=0.5)
        self.public = self.public & (self.known - self.hidden)

    def _is_published(self) -> None:
        self.public = self.known - self.hidden - self.blocked

    def kill(self, writes: int, *command: str) -> None:
        """Kill a command, by default one that builds and publishes; its lease expires."""
        kill = Kill(writes)
        with kill.over(self.site.server):
            result = self.site.run(*(command or ("rebuild", *self._next(), *_ACCEPTED, *_LIFTED)))
            assert kill.has_struck or result.exit_code == 0, result.output
        self.kills += kill.has_struck
        self.site.server.behaviour.clock_offset_s += 3_600

    def save(self) -> Path:
        """Make a backup of the output folder."""
        place = self.site.folder / "backup"
        shutil.rmtree(place, ignore_errors=True)
        copy_output(self.output, place)
        return place

    def restore(self, backup: Path) -> None:
        """Publish from the backup of an output folder: the same session goes on elsewhere."""
        shutil.rmtree(self.output)
        copy_output(backup, self.output)
        self.texts.clear()
        self.publish()
        self.astray = {file.name for file in self.folder.glob("*.ndjson")}

    @property
    def output(self) -> Path:
        return self.site.folder / self.site.settings.get("output", "output")

    def _next(self) -> tuple[str, str]:
        self.now += timedelta(minutes=1)
        return "--as-of", self.now.isoformat()

    # what followers find

    def head(self, key: str = CHANGES) -> dict[str, Any] | None:
        body = self.site.read(key)
        return None if body is None else json.loads(body)

    def follow(self, follower: str) -> None:
        """A follower comes: it has what the head says, or says that there is none."""
        file, head = self.folder / follower, self.head()
        before = file.read_bytes() if file.exists() else None
        said = self._run(file)
        if head is None:
            assert "head.json: 404: " in said, said
            assert before == (file.read_bytes() if file.exists() else None)
            return
        assert hashlib.sha256(file.read_bytes()).hexdigest() == head["state"], said
        assert follower in self.astray or not any(doubt in said for doubt in DOUBTS), said
        self.astray.discard(follower)

    def follow_during(self, follower: str, action: Callable[[], object]) -> None:
        """A follower comes, and the action takes place once it has read the head.

        What the head names is still there, unless the action withdraws markets.
        """
        file, before, waiting = self.folder / follower, self.head(), [action]
        was_public = self.public

        def then(request: httpx.Request) -> None:
            if waiting and request.url.path != HEAD:
                waiting.pop()()

        said = self._run(file, then)
        after = self.head()
        if before and after:
            assert _sha256(file.read_bytes()) in {before["state"], after["state"]}, said
            assert was_public - self.public or not any(doubt in said for doubt in DOUBTS), said

    def _run(self, file: Path, before_request: Callable[[httpx.Request], None] = lambda _: None) -> str:
        said = _Sentences()
        LOG.addHandler(said)
        LOG.setLevel(logging.INFO)
        try:
            # The certificates of the store, which it would load, are of no use here.
            with httpx.Client(event_hooks={"request": [before_request]}, timeout=PATIENCE_S, verify=False) as http:  # noqa: S501
                client = Client(self.url, Options(tries=2, pause=0), http)
                said.sentences.append(f"told of {len([*client.follow(NdjsonStore(file))])} markets")
                self.by_steps += not any("starting from the dump" in one for one in said.sentences)
        except ClientError as error:
            said.sentences.append(str(error))
            assert self.head() is None, said.sentences
        finally:
            LOG.removeHandler(said)
        return "; ".join(said.sentences)

    # what must hold

    def check(self) -> None:
        """At any moment: heads name files that are there, and every step that is kept leads where it says."""
        for key in (DUMPS, CHANGES):
            if head := self.head(key):
                of_dump = [*head.get("markets", ()), *head.get("history", ()), *head.get("fills", ())]
                if key == CHANGES:
                    assert head["stepsUrl"] == f"{_BASE_URL}/{keys.chunk(keys.CHANGES, '')}"
                    of_dump = [head["dump"]]
                text, *_ = [self._checked_file(keys.DUMPS, file, key) for file in of_dump]
                for step in head.get("steps", ()):
                    self._checked_file(keys.CHANGES, step, key)
                assert hashlib.sha256(text).hexdigest() == head["state"]
                assert text.count(b"\n") == head["count"]
                if key == CHANGES:
                    self._check_steps(head, text)

    def _checked_file(self, download: str, file: dict[str, Any], head: str) -> bytes:
        """What is in a file, which is just what a head says of it."""
        key = keys.chunk(download, file["name"])
        body = self.site.read(key)
        assert body is not None, f"{head} names {key}, which is missing"
        assert len(body) == file["size"]
        assert downloads.is_named_by(key, body)
        if download == keys.DUMPS:
            assert (file["url"], file["sha256"]) == (f"{_BASE_URL}/{key}", _sha256(body))
        return text_of(key, body)

    def _check_steps(self, head: dict[str, Any], text: bytes) -> None:
        session, found = head["session"], head["steps"]
        assert self.texts.setdefault((session, head["serial"]), text) == text, "a serial has one state"
        assert sum(step["size"] + ENTRY_SIZE for step in found) <= head["dump"]["size"]
        assert all(_instant(step) >= self.now - STEP_LIFETIME for step in found)
        bodies = [self.site.read(keys.chunk(keys.CHANGES, step["name"])) or b"" for step in found]
        for number, serial in enumerate(range(head["serial"] - len(found), head["serial"])):
            if (known := self.texts.get((session, serial))) is not None:
                lines = {json.loads(line)["id"]: line for line in known.splitlines()}
                for body in bodies[number:]:
                    lines = states.applied(lines, body)
                assert states.text(lines) == text, f"from serial {serial}"

    def check_complete(self, *, output: bool = True) -> None:
        """After a publish that was completed: the dump is the site, and shows nothing else, like all other objects.

        `output`: as does the output folder.
        """
        public = self.public
        if head := self.head(DUMPS):
            text = self._checked_file(keys.DUMPS, head["markets"][0], DUMPS)
            lines = [json.loads(line) for line in text.splitlines()]
            assert [line["id"] for line in lines] == [market_id(number) for number in sorted(public - {FX})]
            details = [json.loads(self.site.read(keys.detail(line["id"])) or b"{}")["market"] for line in lines]
            assert json.dumps(lines) == json.dumps(details)
            listed = [question for _, question, _ in Reader(self.site.read).walk("all/new", 100)]
            assert sorted(listed) == sorted(line["question"] for line in lines)
            changes = self.head()
            assert changes is None or (changes["state"], changes["dump"]) == (head["state"], head["markets"][0])
            self._check_parquet(head, {line["id"] for line in lines})
        self._check_traces(public, output=output)

    def _check_parquet(self, head: dict[str, Any], listed: set[str]) -> None:
        """The Parquet file has the markets that are listed, and no file has any that is not."""
        held = {key: parquet.owners(body) for key, body in self.site.objects().items() if key.endswith(".parquet")}
        assert {key: ids - listed for key, ids in held.items() if ids - listed} == {}
        newest = [keys.chunk(keys.DUMPS, file["name"]) for file in head["markets"] if file["format"] == "parquet"]
        assert all(held[key] == listed for key in newest)
        assert len(newest) == ("dumps.parquet" in self.site.settings)

    def _check_traces(self, public: set[int], *, output: bool) -> None:
        """No object of the bucket, no file of the output folder and no follower shows other markets."""
        built = {f"output/{key}": body for key, body in files(self.output, "").items()} if output else {}
        for key, body in {**self.site.stored(), **built, **self._copies()}.items():
            text = key.encode() + text_of(key, body)
            shown = {int(one or other) for one, other in _WORDS.findall(text)}
            if "v1/" in key:
                shown |= {int(one, 16) for one in _IDS.findall(text)}
            assert shown <= public, (key, shown - public)

    def _copies(self) -> dict[str, bytes]:
        """The files of followers that are up to date."""
        head = self.head()
        found = {file.name: file.read_bytes() for file in self.folder.glob("*.ndjson")}
        return {name: body for name, body in found.items() if head and _sha256(body) == head["state"]}


class _Sentences(logging.Handler):
    """Keeps what a client has to say."""

    def __init__(self) -> None:
        super().__init__()
        self.sentences = list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        self.sentences.append(record.getMessage())


_MANY: Final = 1 << 20
#: What the markets do is drawn, so guards of builds see accidents; the others are those of publishes.
_ACCEPTED: Final = tuple(f"--accept={name}" for name in BUILD_GUARDS)
_LIFTED: Final = ("--accept=shrink", "--accept=cost", "--accept=older")


def _texts(number: int) -> dict[str, str]:
    return {"question": f"canary{number}x?", "description": f"About canary{number}x.", "slug": slug(number)}


def _instant(step: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(step["asOf"])


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@contextmanager
def quick(site: PublishedSite) -> Iterator[None]:
    """Begin a site anew with one limit, which lists are walked by: pages for others would take most of the time."""
    for key in site.stored():
        site.remove(key)
    site.forget_output()
    with limits.only((100,)):
        yield


@contextmanager
def reading(site: PublishedSite) -> Iterator[str]:
    """Serve what is published; yields the address."""

    class Objects(dict[str, Answer]):
        def get(self, path: str, default: Any = None) -> Any:
            body = site.read(path.removeprefix("/"))
            return default if body is None else Answer(body.replace(_BASE_URL.encode(), server.url.encode()))

    with serving() as server:
        server.answers = Objects()
        yield server.url
