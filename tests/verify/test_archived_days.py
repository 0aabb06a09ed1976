"""`verify URL` compares archived days with the index of the archive, and names who is shown on a day and not public."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from generator.api.archive import ArchiveHead
from generator.verify.mismatches import Verdict
from tests.bench import databases
from tests.support.edges.servers import Answer
from tests.support.edges.serving import UNLIMITED, served
from tests.support.sites.builds import AS_OF, build_now, make_config
from tests.verify.altering import Proxy, proxied
from tests.verify.test_verify import changed, edit, mismatches

DAY: Final = "2026-01-29"


@pytest.fixture(scope="module")
def archived(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with two days that are over."""
    folder = tmp_path_factory.mktemp("archived")
    databases.copy_first(demo_folder / "markets.db", 40, folder / "markets.db")
    for days in (2, 1, 0):
        build_now(make_config(folder, layout="chunks", archive__days=5), AS_OF - timedelta(days=days))
        edit(folder, "UPDATE markets SET volume = volume + 1")
    return folder


@pytest.fixture(scope="module")
def port(archived: Path) -> Iterator[int]:
    with served(archived, *UNLIMITED, "--set", "layout=chunks", "--set", "archive.days=5") as running:
        yield running.port


@pytest.fixture
def proxy(port: int) -> Iterator[Proxy]:
    with proxied(port) as running:
        yield running


def head_of(folder: Path) -> ArchiveHead:
    head = ArchiveHead.found_by(lambda key: (folder / "output" / key).read_bytes())
    assert head
    return head


def test_every_day_and_its_file_is_asked_for_and_nothing_is_wrong(archived: Path, proxy: Proxy) -> None:
    assert mismatches(proxy.url, None) == []
    for day in head_of(archived).days:
        assert f"/{keys.archived_day(day.date)}" in proxy.asked
        assert f"/{day.files('')[0].key}" in proxy.asked


@pytest.mark.campaign(short=0)
def test_a_sample_asks_for_as_many_days(proxy: Proxy) -> None:
    assert mismatches(proxy.url, 1) == []
    assert len([target for target in proxy.asked if keys.is_archived_day(target[1:])]) == 1


#: What is answered otherwise, and what is said of it; without a pattern, the first file of the first day.
CHANGES: Final[dict[str, tuple[str, Callable[[Answer], Answer], str]]] = {
    "the object of a day": (
        rf"archive/{DAY}",
        lambda answer: replace(answer, body=changed(answer.body, lambda day: day.update(count=7))),
        "is not what the index",
    ),
    "a day that is missing": (rf"archive/{DAY}", lambda answer: replace(answer, status=404), "is answered 404"),
    "the index": (r"archive/index", lambda answer: replace(answer, body=b"{}"), "Field required"),
    "a file": (
        "", lambda answer: replace(answer, body=gzip.compress(b"")), "is not the file that the archive names",
    ),
}  # fmt: skip


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("kind", CHANGES)
def test_what_is_not_as_the_index_says_is_named(archived: Path, proxy: Proxy, kind: str) -> None:
    pattern, change, text = CHANGES[kind]
    pattern = pattern or head_of(archived).days[0].files("")[0].name
    proxy.alter = lambda target, answer: (
        replace(change(answer), headers={**answer.headers, "etag": '"other"'})
        if re.search(pattern, target) and answer.status == 200
        else answer
    )
    (found,) = mismatches(proxy.url, None)
    assert re.search(pattern, found.target)
    assert text in found.text


@pytest.mark.campaign(short=0)
def test_a_market_that_is_shown_on_a_day_and_not_public_is_named(archived: Path, tmp_path: Path) -> None:
    """The site is as an attacker, or a cache, would have it: the market is out of everything but a day."""
    ndjson = archived / "output" / head_of(archived).days[0].files("")[0].key
    gone = json.loads(gzip.decompress(ndjson.read_bytes()).splitlines()[0])["id"]
    folder = tmp_path / "without"
    folder.mkdir()
    databases.copy_first(archived / "markets.db", 40, folder / "markets.db")
    edit(folder, "DELETE FROM markets WHERE id = ?", gone)
    build_now(make_config(folder, layout="chunks"), AS_OF, shrink=True)
    with served(folder, *UNLIMITED, "--set", "layout=chunks") as running, proxied(running.port) as other:

        def alter(target: str, answer: Answer) -> Answer:
            path = archived / "output" / target[1:]
            is_of_archive = target.startswith("/v1/dumps/") and answer.status == 404 and path.is_file()
            headers = {**answer.headers, "content-type": "application/json"}
            return replace(answer, status=200, body=path.read_bytes(), headers=headers) if is_of_archive else answer

        other.alter = alter
        found = mismatches(other.url, None)
    assert {one.verdict for one in found} == {Verdict.WITHDRAWN}
    assert all(gone in one.text for one in found)
