"""Whoever follows the change feed of a site has what the site has, whatever happens to it."""

import gzip
import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from clients import follow_changes
from generator.api import keys
from tests.support import parquet
from tests.support.campaigns import rounds
from tests.support.change_feed import HEAD, Answer, serving
from tests.support.publishing import EVERY, Site
from tests.support.rows import insert_market, insert_point, market_id
from tests.support.s3.behaviour import Fault
from tests.support.s3.wire import Request

#: Of the site; what is published is served elsewhere.
_BASE_URL: Final = b"http://127.0.0.1:8000"
_LAYOUTS: Final = ("pages", "chunks")


class Followed:
    """A site that changes at random, with followers that read it now and then."""

    def __init__(self, site: Site, url: str, folder: Path) -> None:
        self.site, self.url, self.folder = site, url, folder
        self.draw = random.Random(19)  # noqa: S311 - nothing here is secret
        self.minute = self.kills = 0
        self.known = set(EVERY)
        self.hidden = set[int]()
        self.blocked = set[int]()

    def change(self) -> None:
        """Change some markets, add one, and hide or show one."""
        for number in self.draw.sample(sorted(self.known), self.draw.randint(0, 3)):
            self.site.edit(number, prob=self.draw.choice([0.1, 1e-7, 0.25]), volume=self.draw.choice([1e22, 0.1, 12.5]))
        if self.draw.random() < 0.4:
            number = max(self.known) + 100
            self.known.add(number)
            insert_market(self.site.database, number, close_time="9999-01-01 00:00:00.000000")
        if self.draw.random() < 0.4:
            number = self.draw.choice(sorted(self.known))
            self.hidden ^= {number}
            self.site.edit(number, approval="pending" if number in self.hidden else "approved")

    def publish(self, *, kill: bool) -> None:
        """Build and publish in either layout; a kill leaves it half done."""
        self.minute += 1
        command = ("rebuild", "--as-of", f"2024-02-01T{self.minute // 60:02}:{self.minute % 60:02}:00Z")
        options = ("--allow-shrink", "--allow-cost")
        layout = self.draw.choice([*_LAYOUTS, "chunks", "chunks"])
        if not kill:
            self.site.done(*command, *options, layout=layout)
            return
        left = self.draw.randint(3, 60)

        def strike(_: Request) -> Fault | None:
            """Refuse everything after some requests: that leaves what a kill leaves, and nothing is tried again."""
            nonlocal left
            left -= 1
            return Fault(403, "AccessDenied") if left < 0 else None

        self.site.server.before = strike
        self.kills += self.site.run(*command, *options, layout=layout).exit_code != 0
        self.site.server.before = None
        self.site.server.behaviour.clock_offset_s += 3_600

    def take_down(self) -> None:
        number = self.draw.choice(sorted(self.known - self.blocked - {1}))
        self.blocked.add(number)
        self.site.done("takedown", market_id(number))

    def listed(self) -> bytes:
        """What the dump must hold, by the details that are published."""
        details = (json.loads(self.site.read(keys.detail(one)) or b"null") for one in self._ids())
        found = {detail["market"]["id"]: detail["market"] for detail in details if detail}
        return json.dumps([found[one] for one in sorted(found) if found[one]["fxFamilyMember"] is None]).encode()

    def _ids(self) -> list[str]:
        return [market_id(number) for number in self.known]

    def follow(self, follower: str) -> Path:
        """Bring a follower's file up to date."""
        file = self.folder / follower
        assert follow_changes.main([self.url + HEAD, str(file)]) == 0
        return file

    def check(self, follower: str) -> None:
        """A follower has what the site has, and no step names what is not listed."""
        file = self.follow(follower)
        lines = file.read_bytes().splitlines()
        assert json.dumps([json.loads(line) for line in lines]).encode() == self.listed()
        head = json.loads(self.site.read(HEAD.removeprefix("/")) or b"")
        assert hashlib.sha256(file.read_bytes()).hexdigest() == head["state"]
        listed = {json.loads(line)["id"] for line in lines}
        self.check_parquet(listed)
        for step in head["steps"]:
            body = gzip.decompress(self.site.read(f"v1/changes/{step['name']}") or b"")
            assert not [one for one in self._ids() if one.encode() in body and one not in listed]

    def check_parquet(self, listed: set[str]) -> None:
        """The Parquet file has just the markets that are listed, and no other file has any that is not."""
        held = {key: parquet.owners(body) for key, body in self.site.objects().items() if key.endswith(".parquet")}
        head = json.loads(self.site.read(keys.head(keys.DUMPS)) or b"")
        newest = [keys.chunk(keys.DUMPS, file["name"]) for file in head["markets"] if file["format"] == "parquet"]
        assert [held[key] for key in newest] == [listed]
        assert {key: ids - listed for key, ids in held.items() if ids - listed} == {}


@pytest.fixture
def followed(site: Site, tmp_path: Path) -> Iterator[Followed]:
    for number in EVERY:
        insert_point(site.database, "2024-01-10 00:00:00.000000", market_id=market_id(number))
    site.settings["dumps.parquet"] = "true"
    with reading(site) as url:
        yield Followed(site, url, tmp_path)


@contextmanager
def reading(site: Site) -> Iterator[str]:
    """Serve what is published; yields the address."""

    class Objects(dict[str, Answer]):
        def get(self, path: str, default: Any = None) -> Any:
            body = site.read(path.removeprefix("/"))
            return default if body is None else Answer(body.replace(_BASE_URL, server.url.encode()))

    with serving() as server:
        server.answers = Objects()
        yield server.url


def test_a_follower_has_what_the_site_has_after_builds_kills_withdrawals_takedowns_and_moves(
    followed: Followed, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ""
    for number in range(rounds(4, 200)):
        followed.change()
        if number % 3 == 1:
            followed.publish(kill=True)
            followed.follow("seldom.ndjson")
        followed.publish(kill=False)
        if number % 4 == 2:
            followed.take_down()
        followed.check("often.ndjson")
        said += capsys.readouterr().err
    followed.check("seldom.ndjson")
    assert followed.kills
    assert "markets new or changed" in said
    assert "another digest" not in said
    assert "damaged" not in said
