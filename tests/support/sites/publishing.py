"""Shared by the tests of publishing: a published site, copied for each test, its commands and readers."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, chdir, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from generator.api import keys
from generator.api.contract import SORTS, STATES_OF_FILTER
from generator.cli.main import main
from generator.publish import copies, record
from generator.publish.record import Published
from generator.stores.store import Store
from generator.tree import blocklist
from generator.tree.blocklist import BlockedList, Decision, Hold
from generator.tree.generations import object_keys
from tests.support import limits
from tests.support.faults import expected_keys, fast_folder
from tests.support.sites.builds import files, text_of
from tests.support.sites.rows import (
    create_database,
    insert_fill,
    insert_fx_member,
    insert_market,
    insert_point,
    market_id,
)
from tests.support.stores.places import open_bucket, use_credentials
from tests.support.stores.s3.bucket import RefusedError
from tests.support.stores.s3.server import BUCKET, S3Server

#: The as-of time of the published site; later ones are real times, or hours of that day.
FIRST: Final = "2024-01-31T12:00:00Z"
LONG_AGO: Final = "2024-01-01T00:00:00.000Z"
LISTS: Final = tuple(keys.list_name(status, sort) for status in STATES_OF_FILTER for sort in SORTS)
PREFIX: Final = "api/"
#: The numbers of the site's markets. The last one is a member of an FX family, so only its detail shows it.
OPEN, CLOSED, RESOLVED, CANCELLED, FX = (1, 2, 3, 4, 5, 6, 7), 8, 9, 10, 11
EVERY: Final = (*OPEN, CLOSED, RESOLVED, CANCELLED, FX)
_STATUSES: Final = {CLOSED: "closed", RESOLVED: "resolved", CANCELLED: "cancelled"}


def hour(number: int, minute: int = 0) -> str:
    """A time on the day after `FIRST`."""
    return f"2024-02-01T{number:02}:{minute:02}:00Z"


def populate(database: sqlite3.Connection) -> None:
    """Fill a database with the site's markets and a hidden one."""
    for number in EVERY:
        status = _STATUSES.get(number, "open")
        settled = "2024-01-20 00:00:00.000000" if number in (RESOLVED, CANCELLED) else None
        answer = "YES" if number == RESOLVED else None
        insert_market(
            database, number, status=status, resolution=answer, resolved_at=settled, slug=slug(number),
            volume=float(number), close_time="9999-01-01 00:00:00.000000",
            created_at="2024-01-01 00:00:00.000000", last_activity_at="2024-01-15 00:00:00.000000",
        )  # fmt: skip
    insert_fx_member(database, market_id=market_id(FX))
    insert_market(database, 99, approval="pending")


def slug(number: int) -> str:
    return f"slug-of-{number}-"


@dataclass
class PublishedSite:
    """A database, a folder to build in, and a bucket; the real commands run on them, in this process."""

    folder: Path
    server: S3Server
    database: sqlite3.Connection
    target: str = f"s3://{BUCKET}/{PREFIX}"
    settings: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, **settings: str) -> Result:
        """Run a command; write `cursor__lifetime="1 h"` for cursor.lifetime."""
        given = {"publish.target": self.target, "publish.endpoint_url": self.server.url, **self.settings}
        given |= {name.replace("__", "."): value for name, value in settings.items()}
        overrides = [argument for name, value in given.items() if value for argument in ("--set", f"{name}={value}")]
        return CliRunner().invoke(main, [*arguments, *overrides])

    def done(self, *arguments: str, **settings: str) -> Result:
        """Run a command that must succeed."""
        result = self.run(*arguments, **settings)
        assert result.exit_code == 0, result.output
        return result

    def refused(self, code: int, *arguments: str, **settings: str) -> str:
        """Run a command that must end with this code and one message; returns the message."""
        before = self.objects()
        result = self.run(*arguments, **settings)
        assert result.exit_code == code, result.output
        errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1, result.stderr
        assert "bug" not in errors[0]
        assert self.objects() == before, "a refusal changes nothing"
        return errors[0].removeprefix("error: ")

    def requests(self, *arguments: str, **settings: str) -> list[str]:
        """Run a command; returns its requests to the store."""
        self.server.log.clear()
        self.done(*arguments, **settings)
        return [f"{entry.operation} {entry.key.removeprefix(PREFIX)}" for entry in self.server.log]

    def edit(self, number: int, **columns: Any) -> None:
        """Change a row of the markets."""
        names = ", ".join(f"{name} = ?" for name in columns)
        self.database.execute(f"UPDATE markets SET {names} WHERE id = ?", [*columns.values(), market_id(number)])

    # Contents

    def store(self) -> Store:
        return open_bucket(self.server, "obstore", PREFIX)

    def stored(self) -> dict[str, bytes]:
        """Every object of the store, by its key."""
        return {key.removeprefix(PREFIX): body for key, (body, _) in self.server.objects().items()}

    def read(self, key: str) -> bytes | None:
        """An object, as an edge reads it."""
        with suppress(RefusedError):
            return self.server.bucket.get(PREFIX + key).body
        return None

    def objects(self) -> dict[str, bytes]:
        """The objects under v1/."""
        return {key: body for key, body in self.stored().items() if key.startswith("v1/")}

    def record(self) -> Published:
        return record.decoded(self.stored()[record.KEY])

    def block(self, number: int) -> None:
        """Block a market long ago, by a takedown on another machine that was killed right after that."""
        decisions = {market_id(number): Decision(at=LONG_AGO, is_blocked=True)}
        self.put(blocklist.KEY, BlockedList(markets=decisions, hold=self.hold()).encoded())

    def blocked_list(self) -> BlockedList:
        return blocklist.decode(self.stored().get(blocklist.KEY, b"{}"))

    def blocked_ids(self) -> frozenset[str]:
        return self.blocked_list().ids()

    def hold(self) -> Hold | None:
        """The hold, which is beside the blocked markets."""
        return self.blocked_list().hold

    def put(self, key: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Change an object directly, without a publisher."""
        self.server.bucket.put(PREFIX + key, body, headers or {})

    def remove(self, key: str) -> None:
        """Delete an object directly."""
        self.server.bucket.delete(PREFIX + key)

    def built(self, output: str = "output") -> dict[str, bytes]:
        """The files of a folder under v1/."""
        return files(self.folder / output)

    def forget_output(self) -> None:
        """Delete the output folder, as on an ephemeral machine."""
        shutil.rmtree(self.folder / "output")

    def check(self, output: str = "output") -> None:
        """The store holds exactly the build and the retired generations; no lease is held."""
        stated = self.record()
        assert stated.work is None
        assert stated.due == ()
        assert stated.built.complete
        objects = self.objects()
        assert objects.keys() == expected_keys(stated.built)
        built = self.built(output)
        current = {key for name, entry in stated.built.current.items() for key in object_keys(name, entry)}
        expected = stated.built.objects.keys() | current
        assert {key: objects[key] for key in expected} == {key: built[key] for key in expected}

    def traces(self, number: int, *, output: bool = True) -> list[str]:
        """The keys under v1/ that show anything of a market, in the bucket and in the folder."""
        texts = [market_id(number).encode(), slug(number).encode(), f"Question {number}?".encode()]
        places = {f"store {key}": body for key, body in self.objects().items()}
        places |= {f"output {key}": body for key, body in self.built().items()} if output else {}
        return sorted(
            key
            for key, body in places.items()
            if any(text in text_of(key, body) or text.decode() in key for text in texts)
        )


# Fixtures


@dataclass(frozen=True)
class Original:
    """The first publish, made once."""

    folder: Path
    objects: Mapping[str, tuple[bytes, Mapping[str, str]]]


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bool], Original]]:
    """The site built and published at FIRST: with pages for all hundred limits (True), or with few of them."""
    with ExitStack() as stack:

        @cache
        def made(is_whole: bool) -> Original:  # noqa: FBT001 - the key of a cache
            # For the build alone: the fixture outlives the tests that want these limits.
            with nullcontext() if is_whole else limits.only(limits.FEWEST):
                return stack.enter_context(published_once(tmp_path_factory.mktemp("original")))

        yield made


@contextmanager
def published_once(place: Path) -> Iterator[Original]:
    """Build and publish the site at FIRST, to be copied."""
    with (
        fast_folder(place) as folder,
        S3Server() as server,
        closing(create_database(folder / "markets.db")) as database,
        pytest.MonkeyPatch.context() as patch,
    ):
        with chdir(folder):
            use_credentials(patch)
            populate(database)
            write_config(folder)
            PublishedSite(folder, server, database).done("rebuild", "--as-of", FIRST)
        yield Original(folder, server.objects())


def write_config(folder: Path) -> None:
    (folder / "config.yaml").write_text("source:\n  url: sqlite:///markets.db\n", "utf-8")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries without waits."""
    monkeypatch.setattr("time.sleep", lambda _: None)


@pytest.fixture
def site_server() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


def wait_for_fills(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Have a second CDN invalidation come so long after the first."""
    monkeypatch.setattr(copies, "FILL_S", seconds)


@pytest.fixture
def published_site(
    request: pytest.FixtureRequest,
    original: Callable[[bool], Original],
    site_server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[PublishedSite]:
    """A copy of the published site; the working directory is its folder."""
    is_whole = request.node.get_closest_marker("every_limit") is not None
    first = original(is_whole)
    use_credentials(monkeypatch)
    wait_for_fills(monkeypatch, 0)
    with (
        nullcontext() if is_whole else limits.only(limits.FEWEST),
        tempfile.TemporaryDirectory(dir=first.folder.parent) as name,
        closing(sqlite3.connect(shutil.copy(first.folder / "markets.db", name), isolation_level=None)) as database,
    ):
        folder = Path(name)
        write_config(folder)
        copy_output(first.folder / "output", folder / "output")
        for key, (body, headers) in first.objects.items():
            site_server.bucket.put(key, body, headers)
        monkeypatch.chdir(folder)
        yield PublishedSite(folder, site_server, database)


@pytest.fixture
def empty(published_site: PublishedSite) -> PublishedSite:
    """A site that was built but not published."""
    for key in published_site.stored():
        published_site.remove(key)
    return published_site


def fill_parquet(site: PublishedSite) -> None:
    """Have the next builds make Parquet files, with histories and fills of every market."""
    for number in EVERY:
        insert_point(site.database, "2024-01-10 00:00:00.000000", market_id=market_id(number))
        insert_fill(site.database, number, market_id=market_id(number))
    site.settings["dumps.parquet"] = "true"


def copy_output(source: Path, target: Path) -> None:
    """Copy an output folder, with a lock that nobody has had."""
    shutil.copytree(source, target, copy_function=link_or_copy)
    (target / ".lock").unlink()
    (target / ".lock").touch()


def link_or_copy(source: str, target: str) -> None:
    """Copy a file of an output folder: as a hard link, as files are replaced and not written to, but for the lock."""
    if Path(source).name == ".lock":
        shutil.copy2(source, target)
    else:
        os.link(source, target)


def tamper(path: Path, body: bytes) -> None:
    """Replace a file's content without changing other links to it."""
    path.unlink(missing_ok=True)
    path.write_bytes(body)
