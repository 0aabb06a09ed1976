"""`verify URL` believes what a site publishes, and names whatever contradicts it."""

import gzip
import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.errors import VerifyError
from generator.progress import SILENT
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import SiteReader
from generator.verify.run import verify
from tests.support import commands
from tests.support.edges.servers import Answer, connected, free_port
from tests.support.edges.serving import UNLIMITED, Served, served
from tests.support.sites.builds import AS_OF, build_now, make_config
from tests.verify.altering import Proxy, proxied

SETTINGS: Final[dict[str, Any]] = {
    "variant": "extended", "layout": "chunks", "feeds__enabled": True, "search": "title+description",
}  # fmt: skip
OPTIONS: Final = tuple(
    part for name, value in SETTINGS.items() for part in ("--set", f"{name.replace('__', '.')}={value}")
)
_ENVIRON: Final = {"PUBLIC_MARKETS_LAYOUT": "chunks", "PUBLIC_MARKETS_VARIANT": "extended"}
_FAST: Final = 1e6


@pytest.fixture(scope="module")
def folder(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with everything that is verified."""
    folder = tmp_path_factory.mktemp("verified")
    shutil.copy(demo_folder / "markets.db", folder)
    build_now(make_config(folder, **SETTINGS))
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Served]:
    with served(folder, *UNLIMITED, *OPTIONS) as running:
        yield running


@pytest.fixture
def proxy(site: Served) -> Iterator[Proxy]:
    with proxied(site.port) as running:
        yield running


def mismatches(url: str, sample: int | None = 3) -> list[Mismatch]:
    return verify(SiteReader(url, _FAST, print), sample, SILENT).mismatches


def changed(body: bytes, change: Callable[[Any], object]) -> bytes:
    content = json.loads(body)
    change(content)
    return json.dumps(content).encode()


# ── a site that is right ──────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_wrong_with_a_site_that_is_right(site: Served) -> None:
    found = verify(SiteReader(f"http://127.0.0.1:{site.port}", _FAST, print), 30, SILENT)
    assert found.mismatches == []
    assert found.checks > 100


@pytest.mark.campaign(short=0)
def test_every_page_and_every_detail_of_a_site_can_be_verified(site: Served, proxy: Proxy) -> None:
    assert mismatches(proxy.url, None) == []
    details = {target for target in proxy.asked if re.search(r"markets/[0-9a-f-]{36}$", target)}
    assert len(details) > 100


def test_the_command_says_so_in_one_line(site: Served) -> None:
    ended = commands.run("verify", f"http://127.0.0.1:{site.port}/", "--rate", "1000000", "--sample", "3")
    assert ended.returncode == 0, ended.stderr
    assert re.fullmatch(
        rf"http://127.0.0.1:{site.port}/ answers as it must, as of \S+Z: \d+ checks in \d+ requests\n", ended.stdout
    )


# ── answers that contradict the dump ──────────────────────────────────────────────────────────────────────────────

Change = Callable[[Any], object]

_LISTS: Final = r"/markets\?"
_LONGER: Final = r"sort={}&limit=(?!1$)\d+$"
_DETAILS: Final = r"/markets/[0-9a-f-]{36}$"


def _swap(page: Any) -> None:
    page["items"][0], page["items"][1] = page["items"][1], page["items"][0]


def _in_items(**values: Any) -> Change:
    return lambda page: [item.update(values) for item in page["items"]]


def _volumes_as_text(page: Any) -> None:
    for item in page["items"]:
        item["volume"] = str(item["volume"])


#: What is altered: a pattern of targets, a change of the content, and what must be said of it.
ALTERED: Final[dict[str, tuple[str, Change, Verdict, str]]] = {
    "a price in a list": (_LISTS, _in_items(prob=0.123), Verdict.WRONG, r"item 1 has prob 0\.123; the dump says"),
    "the order of a list": (_LONGER.format("volume"), _swap, Verdict.WRONG, "item 1 is market .*; the dump and the"),
    "an item that is missing": (
        _LONGER.format("new"), lambda page: page["items"].pop(), Verdict.WRONG, "items and says that more follow",
    ),
    "the end of a list": (_LISTS, lambda page: page.update(nextCursor=None), Verdict.WRONG, "is the last, of"),
    "a property too many": (_LISTS, _in_items(score=1), Verdict.WRONG, "item 1 has score 1; the dump has none"),
    "a number as text": (_LISTS, _volumes_as_text, Verdict.BROKEN, r"items\.0\.volume"),
    "the snapshot": (
        r"/snapshot$", lambda page: page["freshMarkets"].reverse(), Verdict.WRONG, "freshMarkets: item 1 is market",
    ),
    "a detail": (
        _DETAILS, lambda page: page["market"].update(poolYes=1.5), Verdict.WRONG, r"its market has poolYes 1\.5; the",
    ),
    "a book in disorder": (
        _DETAILS, lambda page: page["orderBook"]["bids"].reverse(), Verdict.WRONG, "not best price first",
    ),
    "a history in disorder": (
        _DETAILS, lambda page: page["probHistory"].reverse(), Verdict.WRONG, "not oldest first",
    ),
    "a price out of bounds": (
        _DETAILS, lambda page: page["orderBook"].update(bids=[{"price": 1.5, "amount": 1}]), Verdict.BROKEN,
        r"orderBook\.bids\.0\.price",
    ),
    "a feed": (
        r"/feeds/new\.json$", lambda page: page["items"][0].update(title="?"), Verdict.WRONG, "other texts",
    ),
    "the prices": (
        r"/prices\.json$", lambda page: page["markets"][0].update(prob=0.5), Verdict.WRONG, "item 1 has prob 0.5",
    ),
    "a count": (
        r"/build\.json$", lambda page: page["lists"].update({"open/new": 1}), Verdict.WRONG, "says 1 for the list",
    ),
    "a category": (
        r"/build\.json$", lambda page: page["categories"][0].update(name="?"), Verdict.WRONG, "names the category",
    ),
    "a search": (r"[?&]q=", lambda page: page["items"].clear(), Verdict.WRONG, "has 0 items"),
}  # fmt: skip


@pytest.mark.campaign(short=4)
@pytest.mark.parametrize("kind", ALTERED)
def test_an_altered_answer_is_named(proxy: Proxy, kind: str) -> None:
    pattern, change, verdict, text = ALTERED[kind]

    def alter(target: str, answer: Answer) -> Answer:
        if not re.search(pattern, target) or answer.status != 200 or not answer.body:
            return answer
        return replace(answer, body=changed(answer.body, change), headers={**answer.headers, "etag": '"other"'})

    proxy.alter = alter
    found = mismatches(proxy.url)
    assert any(one.verdict == verdict and re.search(text, one.text) for one in found), found
    assert all(re.search(pattern, one.target) or "slug" in one.text or "another answer" in one.text for one in found), (
        found
    )
    assert all(re.search(pattern, one.target) or "is another answer" in one.text for one in found), found


def with_header(name: str, value: str, pattern: str = _LISTS) -> Callable[[str, Answer], Answer]:
    """Alters a header of some answers; an empty value removes it."""

    def alter(target: str, answer: Answer) -> Answer:
        if not re.search(pattern, target):
            return answer
        headers = {**answer.headers, name: value}
        return replace(
            answer, headers=headers if value else {key: text for key, text in headers.items() if key != name}
        )

    return alter


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("access-control-allow-origin", "", "has no Access-Control-Allow-Origin"),
        ("content-type", "text/html", "has the type 'text/html', not application/json"),
    ],
)
def test_headers_that_browsers_need_are_missed(proxy: Proxy, name: str, value: str, text: str) -> None:
    proxy.alter = with_header(name, value)
    found = mismatches(proxy.url)
    assert {one.verdict for one in found} == {Verdict.BROKEN}
    assert all(text in one.text for one in found)


def test_an_answer_that_fails_is_told_with_its_status(proxy: Proxy) -> None:
    proxy.alter = lambda target, answer: replace(answer, status=500) if target.endswith("/snapshot") else answer
    (found,) = mismatches(proxy.url)
    assert found == Mismatch(Verdict.BROKEN, "/v1/public/markets/snapshot", "is answered 500, not 200")


# ── answers of another state ──────────────────────────────────────────────────────────────────────────────────────


class Moving:
    """A site that changes, and its proxy, which can also answer as the site did `before`: at that port."""

    def __init__(self, folder: Path, proxy: Proxy, before: int) -> None:
        self.folder = folder
        self.proxy = proxy
        self._before = before
        self._builds = 0

    def edit(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.folder / "markets.db")) as connection:
            connection.execute(statement, values)
            connection.commit()

    def build(self) -> None:
        """Build as of five minutes later."""
        self._builds += 1
        build_now(make_config(self.folder, **SETTINGS), AS_OF + timedelta(minutes=5 * self._builds))

    def answer_as_before(self, pattern: str) -> None:
        """Answer these targets, which the pattern finds, as before all changes."""

        def alter(target: str, answer: Answer) -> Answer:
            if not re.search(pattern, target):
                return answer
            with connected(self._before) as client:
                return client.send("GET", target)

        self.proxy.alter = alter


@pytest.fixture
def moving(folder: Path, site: Served, tmp_path: Path) -> Iterator[Moving]:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    with served(tmp_path, *UNLIMITED, *OPTIONS) as running, proxied(running.port) as proxy:
        yield Moving(tmp_path, proxy, site.port)


def test_a_copy_of_an_earlier_state_is_stale_and_has_an_age(moving: Moving) -> None:
    moving.edit("UPDATE markets SET volume = volume + 1 WHERE status = 'open'")
    moving.build()
    moving.answer_as_before(r"status=(open|all)&sort=\w+&limit=\d+$")
    found = mismatches(moving.proxy.url)
    assert {one.verdict for one in found} == {Verdict.STALE}
    told = "is out of date since 2026-01-31T12:05:00.000Z; what is published is as of 2026-01-31T12:05:00.000Z"
    assert all(told in one.text for one in found)
    ended = commands.run("verify", moving.proxy.url, "--rate", "1000000")
    assert ended.returncode == Verdict.STALE
    assert "purge the CDN if they stay" in ended.stderr


@pytest.mark.campaign(short=0)
def test_an_item_that_no_state_had_is_wrong_even_where_others_are_stale(moving: Moving) -> None:
    moving.edit("UPDATE markets SET volume = volume + 1 WHERE status = 'open'")
    moving.build()

    def alter(target: str, answer: Answer) -> Answer:
        if not re.search(_LISTS, target) or not answer.body:
            return answer
        return replace(answer, body=changed(answer.body, _in_items(question="Who?")))

    moving.proxy.alter = alter
    assert {one.verdict for one in mismatches(moving.proxy.url)} == {Verdict.WRONG}


def test_a_market_that_was_withdrawn_and_is_still_shown_is_named(moving: Moving) -> None:
    with connected(moving.proxy.port) as client:
        gone = json.loads(client.send("GET", "/v1/public/markets?sort=new").body)["items"][0]["id"]
    done = commands.run("takedown", gone, "--yes", cwd=moving.folder, **_ENVIRON)
    assert done.returncode == 0, done.stderr
    moving.answer_as_before(r"status=open&sort=new&limit=\d+$")
    ended = commands.run("verify", moving.proxy.url, "--rate", "1000000", "--json")
    assert ended.returncode == Verdict.WITHDRAWN
    told = json.loads(ended.stdout)
    assert {one["verdict"] for one in told["mismatches"]} == {"withdrawn"}
    assert told["mismatches"][0]["text"].startswith(f"shows market {gone}, which the dump has no more")


@pytest.mark.campaign(short=0)
def test_a_site_that_is_built_while_it_is_verified_is_not_accused(moving: Moving) -> None:
    def alter(_: str, answer: Answer) -> Answer:
        number = len(moving.proxy.asked)
        if number in {30, 60}:
            moving.edit("UPDATE markets SET trader_count = trader_count + ?", number)
            moving.build()
        return answer

    moving.proxy.alter = alter
    assert mismatches(moving.proxy.url, 10) == []
    assert len(moving.proxy.asked) > 70, "there were two builds"


# ── sites that cannot be verified ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("url", ["api.example.org", "ftp://api.example.org", "https://", "https://a.example/?x=1", ""])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(VerifyError, match="is no address of a site"):
        SiteReader(url, _FAST, print)


def test_a_server_that_is_none_of_ours_is_refused(proxy: Proxy) -> None:
    proxy.alter = lambda _, answer: replace(
        answer, body=b"<html>", headers={**answer.headers, "content-type": "text/html"}
    )
    with pytest.raises(VerifyError, match=r"^/v1/build\.json: is not what this version publishes there \(200\)"):
        mismatches(proxy.url)


def test_a_site_without_a_dump_is_refused(proxy: Proxy) -> None:
    proxy.alter = lambda target, answer: replace(answer, status=404) if "/dumps/" in target else answer
    with pytest.raises(VerifyError, match="publishes no dump, with which"):
        mismatches(proxy.url)


def test_a_dump_that_is_not_the_one_of_its_head_is_named(proxy: Proxy) -> None:
    other = gzip.compress(b"")
    proxy.alter = lambda target, answer: replace(answer, body=other) if target.endswith(".ndjson.gz") else answer
    with pytest.raises(VerifyError, match="is not the file that the head of the dump names"):
        mismatches(proxy.url)


def test_a_site_that_asks_to_wait_is_waited_for(proxy: Proxy) -> None:
    said = list[str]()

    def alter(target: str, answer: Answer) -> Answer:
        if proxy.asked.count(target) == 1 and target.endswith("/snapshot"):
            return Answer(429, {"retry-after": "1", "content-type": "application/json"}, b"{}")
        return answer

    proxy.alter = alter
    assert verify(SiteReader(proxy.url, _FAST, said.append), 1, SILENT).mismatches == []
    assert said == ["/v1/public/markets/snapshot: 429; waiting 1 second, as the site asks"]


def test_a_site_that_does_not_answer_is_told_with_its_address() -> None:
    ended = commands.run("verify", f"http://127.0.0.1:{free_port()}")
    assert ended.returncode == 1
    assert re.match(r"error: http://\S+/v1/build\.json: does not answer \(.*\); correct the address", ended.stderr)
