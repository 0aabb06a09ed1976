"""Shared by the fault tests: a changing database, an oracle for its lists, readers, and builders to kill."""

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from generator.api import contract, cursors, keys
from generator.api.contract import SORTS, STATES_OF_FILTER
from generator.tree import files, fingerprints, manifest, manifest_file, pages
from generator.tree.folder import Output
from generator.tree.generations import object_keys
from generator.tree.manifest import Manifest
from generator.tree.pages import size_at
from tests.support.project import ROOT
from tests.support.sites.builds import AS_OF, manifest_in
from tests.support.sites.question_tables import create_questions, insert_question, question_id
from tests.support.sites.rows import create_database, insert_market, market_id, tell_row_versions
from tests.support.waiting import PATIENCE_S, wait_until

#: What a reader sees of a market in a list.
Seen = tuple[str, str, str]
#: Every list by name, in order.
State = dict[str, list[Seen]]

MARKETS: Final = 60
#: The names in every output folder, and those that a folder may have: of versions, and of the words of searches.
NAMES: Final = {".lock", "api.html", "dumps.json", "edge", "index.html", "manifest.json", "report.json", "v1", "vendor"}
OTHER_NAMES: Final = frozenset({files.FINGERPRINTS, files.HISTORY, files.STATUS, files.UNCHANGED, files.WORDS})
STATUSES: Final = ("open", "open", "open", "closed", "resolved", "cancelled")
LIST_NAMES: Final = tuple(keys.list_name(status, sort) for status in STATES_OF_FILTER for sort in SORTS)
#: Those of questions that are looked at, and how many questions there are, of three markets each.
QUESTION_LISTS: Final = ("questions/all/new", "questions/open/new")
QUESTIONS: Final = 12
LIMITS_WALKED: Final = (1, 7, 20, 100)
ORDERS: Final = {
    "popular": "trader_count DESC, volume DESC", "activity": "last_activity_at DESC", "volume": "volume DESC",
    "new": "created_at DESC", "ended": "coalesce(resolved_at, close_time) DESC",
}  # fmt: skip


#: A file system in memory where available: several times faster, and a kill leaves the same.
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - mkdtemp makes the names in it
ROOM: Final = 1 << 30


@contextmanager
def fast_folder(otherwise: Path) -> Iterator[Path]:
    """A folder for repeated builds."""
    if not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ROOM:
        yield otherwise
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


def day(number: int) -> str:
    """A time in the database's format; numbers 25 apart have equal times, so that there are ties."""
    return f"2026-01-{1 + number % 25:02} 12:00:00.000000"


class World:
    """A database whose markets change step by step, and what every list must show; so do questions, if it has some."""

    def __init__(self, folder: Path, *, has_questions: bool = False) -> None:
        self.folder = folder
        self.step = 0
        self._withdrawals = 0
        self.database = create_database(folder / "markets.db")
        # Markets here have no rows besides their own, so builds read no detail twice.
        self.database.execute("ALTER TABLE markets ADD COLUMN detail_version INTEGER DEFAULT 1")
        tell_row_versions(self.database)
        for number in range(1, MARKETS + 1):
            self.add(number, status=STATUSES[number % len(STATUSES)])
        self.has_questions = has_questions
        if has_questions:
            create_questions(self.database)
            for number in range(1, QUESTIONS + 1):
                insert_question(self.database, number, *range(number * 3 - 2, number * 3 + 1), created_at=day(number))

    def close(self) -> None:
        self.database.close()

    def add(self, number: int, **columns: Any) -> str:
        settled = columns.get("status") in ("resolved", "cancelled")
        values = {
            "volume": float(number * 37 % 23),
            "trader_count": number * 7 % 5,
            "created_at": day(number),
            "last_activity_at": day(number * 3),
            "close_time": day(number * 7).replace("2026-01", "2026-03"),
            "resolution": "YES" if columns.get("status") == "resolved" else None,
            "resolved_at": day(number * 11) if settled else None,
        }
        return insert_market(self.database, number, **values | columns)

    def advance(self, *, withdraw: bool = False) -> None:
        """Change texts in every list, move statuses, add a market; withdraw one and restore the last one."""
        self.step += 1
        step = self.step
        for offset in (0, 3, 4, 5):  # one of each status
            number = (step * 6 + offset) % MARKETS or MARKETS
            self.edit(number, question=f"Question {number}, edition {step}?")
        moved = f"Moved at {step}?"
        self.edit(1 + step * 6 % MARKETS, status="closed" if step % 2 else "open", question=moved)
        self.edit(3 + step * 6 % MARKETS, status="open" if step % 2 else "closed", question=moved)
        if step % 8 == 0:
            self.add(1000 + step, status="open")
        if self.has_questions:
            self._advance_questions()
        if withdraw:
            self._withdrawals += 1
            self.withdraw(2 + self._withdrawals * 6 % MARKETS)

    def _advance_questions(self) -> None:
        """Edit one, hide one and restore the last one, and have a market leave one and join another."""
        edited, hidden, left = (1 + (self.step * 5 + offset) % QUESTIONS for offset in (0, 3, 7))
        execute = self.database.execute
        execute("UPDATE questions SET title = ? WHERE id = ?", [f"Which, at {self.step}?", question_id(edited)])
        execute("UPDATE questions SET approval = 'approved'")
        execute("UPDATE questions SET approval = 'pending' WHERE id = ?", [question_id(hidden)])
        moved = [question_id(1 + left % QUESTIONS), market_id(left * 3)]
        execute("UPDATE question_members SET question_id = ? WHERE market_id = ?", moved)

    def edit(self, number: int, **columns: Any) -> None:
        names = ", ".join(f"{name} = ?" for name in columns)
        self.database.execute(f"UPDATE markets SET {names} WHERE id = ?", [*columns.values(), market_id(number)])

    def withdraw(self, number: int) -> None:
        self.database.execute("UPDATE markets SET approval = 'approved'")
        self.edit(number, approval="rejected")

    def state(self) -> State:
        """Every list, selected and sorted by the database itself."""
        return {
            keys.list_name(status, sort): self._list(states, ORDERS[sort])
            for status, states in STATES_OF_FILTER.items()
            for sort in SORTS
        } | (self._question_lists() if self.has_questions else {})

    def _question_lists(self) -> State:
        """The rows of questions, and of the markets that are in none, latest first."""
        alone = {
            market: (created, f"{question} {market}", status)
            for market, question, status, created in self.database.execute(
                "SELECT id, question, status, created_at FROM markets WHERE approval = 'approved' AND is_listed"
            )
        }
        rows = list[tuple[str, str, str, str]]()
        for question, title, created in self.database.execute(
            "SELECT id, title, created_at FROM questions WHERE approval = 'approved'"
        ):
            found = self.database.execute(
                "SELECT id, status, resolution FROM question_members JOIN markets ON id = market_id "
                "WHERE question_id = ? ORDER BY status != 'open', coalesce(resolution, '') != 'YES', position, id",
                [question],
            )
            members = [(market, status) for market, status, _ in found if market in alone]
            if members:
                status = next(one for one in contract.MARKET_STATUSES if one in dict(members).values())
                rows.append((created, question, " ".join([title, *dict(members)]), status))
            for market, _ in members:
                del alone[market]
        rows += [(created, market, title, status) for market, (created, title, status) in alone.items()]
        rows.sort(key=lambda row: row[1])
        rows.sort(key=lambda row: row[0], reverse=True)
        every = [row[1:] for row in rows]
        return dict(zip(QUESTION_LISTS, (every, [row for row in every if row[2] == "open"]), strict=True))

    def _list(self, states: tuple[str, ...], order: str) -> list[Seen]:
        wanted = ", ".join("?" * len(states))
        return self.database.execute(
            "SELECT id, question, status FROM markets WHERE approval = 'approved' AND is_listed "
            f"AND status IN ({wanted}) ORDER BY {order}, id",
            states,
        ).fetchall()


class GoneError(Exception):
    """The page is missing: a reader gets a 400 and starts again."""


@dataclass(frozen=True)
class Walk:
    """A walk in progress: the items expected, those seen so far, and the next cursor."""

    list_name: str
    limit: int
    whole: list[Seen]
    seen: list[Seen]
    at: str | None


def _following(list_name: str, generation: str, position: int, count: int) -> str | None:
    return cursors.mint(list_name, generation, position) if position < count else None


@lru_cache(maxsize=10_000)
def _parsed(body: bytes) -> Any:
    """The content of an object, most of which are read again and again: to be left as it is."""
    return json.loads(body)


def seen(item: Mapping[str, Any]) -> Seen:
    """What is compared of an item; of a row of questions, its markets, too."""
    if "question" in item:
        return item["id"], item["question"], item["status"]
    return item["id"], " ".join([item["title"], *(market["id"] for market in item["markets"])]), item["status"]


class Reader:
    """Reads only objects under `v1/`, as an edge would. `read` returns an object's bytes by key."""

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        self._read = read

    @classmethod
    def of_folder(cls, output: Path) -> "Reader":
        """Read the result of a build."""

        def read(key: str) -> bytes | None:
            try:
                return (output / key).read_bytes()
            except FileNotFoundError:
                return None

        return cls(read)

    def page(self, list_name: str, limit: int, at: str | None = None) -> tuple[list[Seen], str | None]:
        if at is None:
            items, at = self._first_page(list_name, limit)
        else:
            items, at = self._later_page(list_name, limit, cursors.read(list_name, at))
        assert len(items) <= limit, (list_name, at)
        return [*map(seen, items)], at

    def _first_page(self, list_name: str, limit: int) -> tuple[list[dict[str, Any]], str | None]:
        """Read in the layout that is present; during a change of layout both are."""
        key = keys.first_page(list_name, limit)
        if self._read(key) is not None:
            page = self._get(key)
            return page["items"], page["nextCursor"]
        head = self._get(keys.head(list_name))
        items = head["items"][:limit]
        return items, _following(list_name, head["generation"], len(items), head["count"])

    def _later_page(
        self, list_name: str, limit: int, place: cursors.WalkPlace
    ) -> tuple[list[dict[str, Any]], str | None]:
        if place.generation.startswith(pages.LETTER):
            size = size_at(place.position, limit)
            page = self._get(keys.page(list_name, place.generation, size, place.position))
            return page["items"], page["nextCursor"]
        index = self._get(keys.index(list_name, place.generation))
        end = min(place.position + limit, index["count"])
        items, start = [], 0
        for chunk_end, name in index["chunks"]:
            if start < end and chunk_end > place.position:
                chunk = self._get(keys.chunk(list_name, name))["items"]
                items += chunk[max(0, place.position - start) : end - start]
            start = chunk_end
        assert len(items) == end - place.position, "a page has as many items as it can"
        return items, _following(list_name, place.generation, end, index["count"])

    def _get(self, key: str) -> Any:
        body = self._read(key)
        if body is None:
            raise GoneError(key)
        return _parsed(body)

    def walk(self, list_name: str, limit: int, at: str | None = None) -> list[Seen]:
        """All items from the cursor, or from the first page, to the end."""
        items, at = self.page(list_name, limit, at)
        while at is not None:
            more, at = self.page(list_name, limit, at)
            assert more, f"{list_name}: an empty page in the middle"
            items += more
        return items

    def begin(self, list_name: str, limit: int) -> Walk:
        """Read one page, and remember how the walk would end now."""
        items, at = self.page(list_name, limit)
        return Walk(list_name, limit, self.walk(list_name, limit), items, at)

    def finish(self, walk: Walk) -> None:
        """Walk to the end; it must be exact."""
        items = walk.seen + (self.walk(walk.list_name, walk.limit, walk.at) if walk.at else [])
        if items != walk.whole:
            raise AssertionError(f"a walk of {walk.list_name} by {walk.limit} is not exact")

    def limits(self, list_name: str) -> tuple[int, ...]:  # noqa: ARG002 - searches have others
        """The limits that the list is walked with."""
        return LIMITS_WALKED

    def check(self, *states: State, lists: tuple[str, ...] = LIST_NAMES) -> None:
        """Every list, walked with every limit, must show one and the same state."""
        for name in lists:
            possible = [state[name] for state in states]
            for limit in self.limits(name):
                if self.walk(name, limit) not in possible:
                    raise AssertionError(f"{name} by {limit}: neither old nor new")


def expected_keys(record: Manifest) -> set[str]:
    """Every key under `v1/` that the manifest accounts for."""
    immutable = {key for (name, _), generation in record.generations().items() for key in object_keys(name, generation)}
    return {*record.objects, *immutable}


def check_whole(output: Path) -> Manifest:
    """After a build that was not killed: complete, no leftovers, nothing missing or damaged."""
    record = manifest_in(output)
    assert record.complete
    found = {path.relative_to(output).as_posix() for path in (output / "v1").rglob("*") if not path.is_dir()}
    assert found == expected_keys(record)
    for key, digest in record.objects.items():
        assert manifest.digest(key, (output / key).read_bytes()) == digest, key
    root = manifest_file.decoded(output, (output / "manifest.json").read_bytes())
    states = {path.name for path in (output / files.STATES).glob("*")}
    assert states == {root.state} - {""}
    made = fingerprints.parsed(Output(output, output).read(files.FINGERPRINTS))
    of_details = {path.name for path in (output / files.FINGERPRINT_SHARDS).glob("*")}
    assert of_details == {*(made.shards if made else ())}
    folders = [files.STATES[:-1]] * bool(states) + [files.FINGERPRINT_SHARDS[:-1]] * bool(of_details)
    assert {path.name for path in output.iterdir()} - {*OTHER_NAMES, *folders} == NAMES
    return record


@dataclass
class Fault:
    """Which process is killed at which call; see `fault_runner`."""

    call: str
    number: int = 1
    after: bool = False
    who: str = "main"
    victim: str = "self"
    signal: int = signal.SIGKILL
    every: int = 0


@cache
def _server(*modules: str) -> subprocess.Popen[str]:
    """The process that forks all commands of this one which need these modules."""
    command = [sys.executable, "-m", "tests.support.fault_runner", *modules]
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate, timeout=PATIENCE_S)
    return server


class Runner:
    """Runs commands in forked processes, one at a time, with this process's limits; `modules` prepare all of them.

    Those of `each` do so in every process, so that others fork from the same one.
    """

    def __init__(self, log: Path, *modules: str, each: Sequence[str] = ()) -> None:
        self._log = log
        self._each = each
        self._group = 0
        self._is_running = False
        self._server = _server(*modules)
        #: The calls of the last process, by the runner's labels.
        self.calls: Counter[str] = Counter()

    def close(self) -> None:
        with suppress(ProcessLookupError):
            if self._group:
                os.killpg(self._group, signal.SIGKILL)
        if self._is_running:
            self.end()

    def begin(self, arguments: list[str], fault: Fault | None = None) -> int:
        """Begin a command; returns its process id. `end` must follow."""
        job = {
            "arguments": arguments,
            # What a killed command leaves goes with the test's folder.
            "environ": {**os.environ, "TMPDIR": str(self._log.parent)},
            "log": str(self._log),
            "limits": [*pages.LIMITS],
            "modules": [*self._each],
            "fault": vars(fault) if fault else None,
        }
        assert self._server.stdin
        self._server.stdin.write(f"{json.dumps(job)}\n")
        self._server.stdin.flush()
        self._group = int(self._answer()["pid"])
        self._is_running = True
        return self._group

    def end(self) -> int:
        answer = self._answer()
        self._is_running = False
        self.calls = Counter(answer["calls"])
        return int(answer["code"])

    def _answer(self) -> dict[str, Any]:
        assert self._server.stdout
        answer: dict[str, Any] = json.loads(self._server.stdout.readline())
        return answer

    def log(self) -> str:
        return self._log.read_text()

    def await_orphans(self) -> None:
        """Workers must end right after their command."""
        wait_until(lambda: not processes_of(self._group))


@dataclass
class Builds:
    """Builders in separate processes, one at a time."""

    world: World
    output: Path
    as_of: datetime = AS_OF
    kills: int = 0
    #: More settings.
    settings: dict[str, str] = field(default_factory=dict)
    #: What prepares the processes, see `Runner`.
    modules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._runner = Runner(self.world.folder / "build.log", each=self.modules)

    def close(self) -> None:
        self._runner.close()

    def arguments(self, output: Path, as_of: datetime) -> list[str]:
        (self.world.folder / "config.yaml").touch()
        settings = {"source.url": f"sqlite:///{self.world.folder / 'markets.db'}", "output": output}
        settings |= {"cursor.lifetime": 180, **self.settings}
        overrides = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        config = str(self.world.folder / "config.yaml")
        return ["build", "--config", config, "--as-of", as_of.isoformat(), *overrides]

    def begin(self, fault: Fault | None = None, output: Path | None = None) -> int:
        """Begin a build; returns its process id. `end` must follow."""
        return self._runner.begin(self.arguments(output or self.output, self.as_of), fault)

    def end(self) -> int:
        return self._runner.end()

    def log(self) -> str:
        return self._runner.log()

    def build(self, output: Path | None = None, *, later: timedelta = timedelta(minutes=1)) -> None:
        """Build to completion."""
        self.as_of += later
        self.begin(output=output)
        assert self.end() == 0, self.log()

    def die(self, fault: Fault, *, later: timedelta = timedelta(minutes=1)) -> None:
        """Build until the main process is killed."""
        self.as_of += later
        self.begin(fault)
        assert self.end() == -signal.SIGKILL, f"{fault} never came: {self.log()}"
        self._runner.await_orphans()
        self.kills += 1


#: The states of a process that has ended: nobody has waited for it yet, or it is gone.
ENDED: Final = ("Z", "X")


def processes_of(group: int) -> list[int]:
    """The running processes of a group."""
    return [pid for pid, fields in _processes() if int(fields[2]) == group and fields[0] not in ENDED]


def children_of(parent: int) -> list[int]:
    return [pid for pid, fields in _processes() if int(fields[1]) == parent and fields[0] not in ENDED]


def state_of(pid: int) -> str:
    """The state of a process, as in proc(5): a letter, such as `T` while it is stopped."""
    return _stat(pid)[0]


def _processes() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            yield int(folder.name), _stat(int(folder.name))


def _stat(pid: int) -> list[str]:
    """The fields of a process's `stat`, starting with state, parent, group."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it ended meanwhile
        return ["X", "0", "0"]
