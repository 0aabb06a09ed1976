"""`verify URL` believes what a site publishes, and names whatever contradicts it."""

import gzip
import hashlib
import io
import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import contract, keys
from generator.api.downloads import DumpFile, DumpHead
from generator.downloads import parquet
from generator.errors import VerifyError
from generator.progress import SILENT
from generator.site.catalog import Catalog
from generator.verify import expected
from generator.verify.documents import check_index, check_made
from generator.verify.earlier_states import EarlierStates
from generator.verify.inquiry import Inquiry
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.parquet_files import ParquetCheck
from generator.verify.reader import SiteReader
from generator.verify.run import verify
from tests.bench import databases
from tests.support import commands
from tests.support.edges.servers import Answer, connected, free_port
from tests.support.sites.builds import AS_OF, EXTENDED, NO_LIMITS, build_now, make_config
from tests.support.sites.rows import market_id
from tests.verify.altering import Alter, Proxy, Upstream, asked_once, in_process, proxied, unaltered

SETTINGS: Final[dict[str, Any]] = {
    **EXTENDED, "layout": "chunks", "feeds__enabled": True, "search": "title+description",
    "dumps__parquet": True, "dumps__fills": True, "history__public": True,
    "license": "CC-BY-4.0", "publisher__name": "Example",
}  # fmt: skip
_ENVIRON: Final = {"PUBLIC_MARKETS_LAYOUT": "chunks", "PUBLIC_MARKETS_VARIANT": "extended"}
_FAST: Final = 1e6
#: For a site without caches on this machine.
AT_ONCE: Final = ("--rate", "1000000", "--wait", "0")


@pytest.fixture(scope="module")
def folder(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with everything that is verified, and a step of the change feed."""
    folder = tmp_path_factory.mktemp("verified")
    databases.copy_first(demo_folder / "markets.db", 80, folder / "markets.db")
    build_now(make_config(folder, **SETTINGS), AS_OF - timedelta(minutes=5))
    # So that a step tells the question before the next one.
    grown = "trader_count = trader_count + 1, question = question || '?'"
    edit(folder, f"UPDATE markets SET {grown} WHERE status = 'open' AND rowid % 3 = 0")
    build_now(make_config(folder, **SETTINGS))
    return folder


@pytest.fixture(scope="module")
def upstream(folder: Path) -> Upstream:
    return asked_once(in_process(make_config(folder, **SETTINGS, **NO_LIMITS)))


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[Proxy]:
    with proxied(upstream) as running:
        yield running


def edit(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "markets.db")) as connection:
        connection.execute(statement, values)
        connection.commit()


def mismatches(url: str, budget: int | None = 200, seed: int = 1) -> list[Mismatch]:
    return verify(SiteReader(url, _FAST, print), budget, seed, SILENT, patience_s=0).mismatches


def changed(body: bytes, change: Callable[[Any], object]) -> bytes:
    content = json.loads(body)
    change(content)
    return contract.encode(content)


_OTHER: Final = {"etag": '"other"'}


def altering(pattern: str, change: Callable[[Any], object], otherwise: Alter = unaltered) -> Alter:
    """Changes the content of all answers to targets that the pattern finds."""

    def alter(target: str, answer: Answer) -> Answer:
        if not re.search(pattern, target) or answer.status != 200 or not answer.body:
            return otherwise(target, answer)
        return replace(answer, body=changed(answer.body, change), headers={**answer.headers, **_OTHER})

    return alter


def dump_head(folder: Path) -> DumpHead:
    head = DumpHead.found_by(lambda key: (folder / "output" / key).read_bytes())
    assert head
    return head


# ── a site that is right ──────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_wrong_with_a_site_that_is_right(proxy: Proxy) -> None:
    found = verify(SiteReader(proxy.url, _FAST, print), 500, 1, SILENT, patience_s=0)
    assert found.mismatches == []
    assert found.checks > 100


def test_the_command_says_so_in_one_line_and_names_its_seed_and_what_it_covers(proxy: Proxy) -> None:
    ended = commands.run("verify", f"{proxy.url}/", *AT_ONCE, "--budget", "60", "--seed", "7")
    assert ended.returncode == 0, ended.stderr
    told = "answers as it must, as of 2026-01-31T12:00:00.000Z, though of 15 of 30 lists it was asked for a first page"
    assert re.fullmatch(rf"{proxy.url}/ {told} at most: \d+ checks in \d+ requests\n", ended.stdout)
    covered = "without categories, 15 lists walked to the end, 15 lists left at a first page, for want of --budget"
    assert ended.stderr.splitlines() == ["--seed 7 asks the same again", covered]


# ── answers that contradict the dump ──────────────────────────────────────────────────────────────────────────────

Change = Callable[[Any], object]

_LISTS: Final = r"/markets\?"
_LONGER: Final = r"sort={}&limit=(?!1$)\d+$"
_DETAILS: Final = r"/markets/[0-9a-f-]{36}$"


def _swap(page: Any) -> None:
    page["items"][0], page["items"][1] = page["items"][1], page["items"][0]


def _in_items(**values: Any) -> Change:
    return lambda page: [item.update(values) for item in page["items"]]


#: What is altered: a pattern of targets, a change of the content, and what must be said of it.
ALTERED: Final[dict[str, tuple[str, Change, Verdict, str]]] = {
    "a price in a list": (_LISTS, _in_items(prob=0.123), Verdict.WRONG, r"item 1 has prob 0\.123; the dump says"),
    "the order of a list": (_LONGER.format("volume"), _swap, Verdict.WRONG, "item 1 is market .*; the dump and the"),
    "the end of a list": (_LISTS, lambda page: page.update(nextCursor=None), Verdict.WRONG, "is the last, of"),
    "the snapshot": (
        r"/snapshot$", lambda page: page["freshMarkets"].reverse(), Verdict.WRONG, "freshMarkets: item 1 is market",
    ),
    "a detail": (
        _DETAILS, lambda page: page["market"].update(poolYes=1.5), Verdict.WRONG, r"its market has poolYes 1\.5; the",
    ),
    "a book in disorder": (
        _DETAILS, lambda page: page["orderBook"]["bids"].reverse(), Verdict.WRONG, "not best price first",
    ),
    "a title that a step changed, in a feed": (
        r"/feeds/new\.json$",
        lambda page: next(one for one in page["items"] if one["title"].endswith("??")).update(title="?"),
        Verdict.WRONG, "other texts of market",
    ),
    "what a step changed, in lists": (
        r"\?(?!.*q=)", lambda page: _in_items(**({"volume": 1.5} if page["nextCursor"] else {"question": "?"}))({
            "items": [one for one in page["items"] if one["question"].endswith("??")]
        }), Verdict.WRONG, r"has (question '\?'|volume 1\.5); the dump says",
    ),
    "an address in the index": (
        "^/v1/$", lambda index: index.update(llms="https://evil.example/v1/llms.txt"), Verdict.WRONG, "not below http",
    ),
    "where the index says that the site is": (
        "^/v1/$", lambda index: index.update(build="https://evil.example/v1/build.json"), Verdict.WRONG,
        "names the server",
    ),
    "a bound in OpenAPI": (
        r"openapi\.json$", lambda page: page["paths"]["/v1/public/markets"]["get"]["parameters"][2].update(schema={}),
        Verdict.WRONG, "they differ at #/paths//v1/public/markets/get/parameters/2/schema/",
    ),
    "the prices": (
        r"/prices\.json$", lambda page: page["markets"][0].update(prob=0.5), Verdict.WRONG, "item 1 has prob 0.5",
    ),
    "the record of accuracy": (
        r"/history\.json$", lambda page: page["horizons"][0].update(brierScore=0.5), Verdict.WRONG,
        "is not what the closes and outcomes of the dump make it",
    ),
    "yesterday's record of accuracy": (
        r"/history\.json$", lambda page: page.update(asOf="2020-01-01T00:00:00.000Z"), Verdict.STALE, "is out of date",
    ),
    "a category": (
        r"/build\.json$", lambda page: page["categories"][0].update(name="?"), Verdict.WRONG, "names the category",
    ),
    "a search": (
        r"[?&]q=", lambda page: page.update(items=[], nextCursor=None), Verdict.WRONG, "has 0 items and is the last",
    ),
    "a file of the dump": (
        r"/dataset\.json$", lambda page: page["distribution"][0].update(sha256="0" * 64), Verdict.WRONG,
        "does not name the files of the dump's head",
    ),
    "the description of the dump": (
        r"/dataset\.json$", lambda page: page.pop("distribution"), Verdict.BROKEN, "names no files",
    ),
    "the state of the change feed": (
        r"changes/head\.json$", lambda page: page.update(state="0" * 64), Verdict.WRONG, "leads to another state",
    ),
}  # fmt: skip


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("kind", ALTERED)
def test_an_altered_answer_is_named(proxy: Proxy, kind: str) -> None:
    pattern, change, verdict, text = ALTERED[kind]
    proxy.alter = altering(pattern, change)
    found = mismatches(proxy.url, seed=2)  # by which no search finds only what steps changed, so might be stale
    assert {one.verdict for one in found} == {verdict}
    assert any(re.search(text, one.text) for one in found), found
    # The other form of a feed, and OpenAPI, are compared with this one.
    assert all(re.search(pattern, one.target.replace(".atom", ".json")) or "the index" in kind for one in found), found


#: What is put in place of what, in the first entries of Atom feeds, and what is said of it.
FORGED: Final = {
    "a title": ("<entry><title>", "<entry><title>Free", "shows other texts of market"),
    "a link": ('</title><link href="http://127', '</title><link href="http://evil', "leads to 'http://evil"),
    "no market": ("<id>urn:uuid:", "<id>urn:", "shows"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_atom_feed_is_named_though_the_json_feed_is_right(proxy: Proxy, kind: str) -> None:
    before, after, text = FORGED[kind]
    proxy.alter = lambda target, answer: (
        replace(
            answer, body=answer.body.replace(before.encode(), after.encode(), 2), headers={**answer.headers, **_OTHER}
        )
        if target.endswith(".atom")
        else answer
    )
    found = mismatches(proxy.url, 60)
    assert {one.target for one in found} == {"/v1/feeds/new.atom", "/v1/feeds/resolved.atom"}
    assert all(text in one.text and one.verdict > Verdict.STALE for one in found), found


@pytest.mark.parametrize("value", ["", "text/html"])
def test_headers_that_browsers_need_are_missed(proxy: Proxy, value: str) -> None:
    headers = {"content-type": value} if value else {"access-control-allow-origin": ""}
    proxy.alter = lambda target, answer: (
        replace(answer, headers={**answer.headers, **headers}) if re.search(_LISTS, target) else answer
    )
    found = mismatches(proxy.url)
    assert {one.verdict for one in found} == {Verdict.BROKEN}
    text = "has the type 'text/html', not application/json" if value else "has no Access-Control-Allow-Origin"
    assert all(text in one.text for one in found)


# ── answers of another state ──────────────────────────────────────────────────────────────────────────────────────


def answer_as_before(proxy: Proxy, before: Upstream, pattern: str, times: int = 1_000_000) -> None:
    """Answer these targets, which the pattern finds, as the site did before all changes; each so many times."""
    proxy.alter = lambda target, answer: (
        before(target, {}) if re.search(pattern, target) and proxy.asked.count(target) <= times else answer
    )


def test_a_market_that_was_withdrawn_and_is_still_shown_is_named(
    folder: Path, upstream: Upstream, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    with proxied(in_process(make_config(tmp_path, **SETTINGS, **NO_LIMITS))) as proxy:
        with connected(proxy.port) as client:
            gone = json.loads(client.send("GET", "/v1/public/markets?sort=new").body)["items"][0]["id"]
        done = commands.run("takedown", gone, "--yes", cwd=tmp_path, **_ENVIRON)
        assert done.returncode == 0, done.stderr
        answer_as_before(proxy, upstream, r"status=open&sort=new&limit=\d+$")
        ended = commands.run("verify", proxy.url, *AT_ONCE, "--json")
    assert ended.returncode == Verdict.WITHDRAWN
    told = json.loads(ended.stdout)
    assert {one["verdict"] for one in told["mismatches"]} == {"withdrawn"}
    assert 0 <= told["seed"] < 1 << 32
    assert sum(told["lists"].values()) == 30
    assert told["mismatches"][0]["text"].startswith(f"shows market {gone}, which the dump does not have")


_CACHED: Final = {
    "build.json": r"build\.json$", "the dump": r"dumps/head", "the change feed": r"changes/head",
    "lists": r"/markets\?(?!.*cursor)",
    "details": _DETAILS, "prices": r"prices\.json$", "feeds": r"/feeds/", "the snapshot": r"/snapshot$",
    "what has no markets of its own": r"(build|head|dataset)\.json$",
}  # fmt: skip


@pytest.fixture(scope="module")
def retold(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    """The site five minutes later: prices, traders and questions have changed."""
    place = tmp_path_factory.mktemp("retold")
    shutil.copytree(folder, place, dirs_exist_ok=True)
    moved = "trader_count = trader_count + 1, prob = prob * 0.99"
    edit(place, f"UPDATE markets SET {moved} WHERE status = 'open' AND rowid % 2 = 0")
    edit(place, "UPDATE markets SET question = 'Is it so? ' || question WHERE status = 'open' AND rowid % 3 = 0")
    build_now(make_config(place, **SETTINGS), AS_OF + timedelta(minutes=5))
    return asked_once(in_process(make_config(place, **SETTINGS, **NO_LIMITS)))


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("kind", [*_CACHED][::2])
def test_copies_that_a_cache_has_until_they_expire_are_not_accused(
    retold: Upstream, upstream: Upstream, kind: str
) -> None:
    with proxied(retold) as proxy:
        answer_as_before(proxy, upstream, _CACHED[kind], times=2)
        assert mismatches(proxy.url, 300) == []


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("kind", [*_CACHED][:-1:2])
def test_copies_that_do_not_expire_are_told_with_what_they_are(retold: Upstream, upstream: Upstream, kind: str) -> None:
    with proxied(retold) as proxy:
        answer_as_before(proxy, upstream, _CACHED[kind])
        found = mismatches(proxy.url, 300)
    assert {one.verdict for one in found} == {Verdict.STALE}, found
    told = "is out of date since 2026-01-31T12:05:00.000Z; what is published is as of 2026-01-31T12:05:00.000Z"
    assert kind != "lists" or all(told in one.text for one in found)
    # A walk that begins on an old page leads on through the state that it is of.
    assert all(re.search(_CACHED[kind], one.target) or "/markets" in one.target for one in found)


def test_a_copy_of_the_description_of_the_dump_is_told_unless_it_expires(retold: Upstream, upstream: Upstream) -> None:
    with proxied(retold) as proxy:
        answer_as_before(proxy, upstream, r"dataset\.json$", times=2)
        assert mismatches(proxy.url, 300) == []
        answer_as_before(proxy, upstream, r"dataset\.json$")
        assert {(one.verdict, one.target) for one in mismatches(proxy.url, 300)} == {
            (Verdict.STALE, "/v1/dataset.json")
        }


# ── what is published beside markets ──────────────────────────────────────────────────────────────────────────────

ODD: Final[dict[str, tuple[str, Callable[[bytes], bytes], str]]] = {
    "another page": ("", lambda _: b"<html>", r"^/v1/build\.json: is not what this version publishes there \(200\)"),
    "a dump of no files": (
        r"dumps/head", lambda body: changed(body, lambda head: head.update(markets=[])), "is not what this version",
    ),
    "a search of unknown texts": (
        r"build\.json", lambda body: changed(body, lambda build: build.update(search=["tags"])), "the text 'tags'",
    ),
    "a dump that is no gzip": (r"\.ndjson\.gz", lambda _: b"{}", "is not the file that the head of the dump names"),
    "an index that is none": (r"/v1/$", lambda _: b"[]", r"/v1/: is not what this version publishes"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD)
def test_what_is_odd_is_refused_in_one_sentence(proxy: Proxy, kind: str) -> None:
    pattern, change, text = ODD[kind]
    proxy.alter = lambda target, answer: (
        replace(answer, body=change(answer.body)) if re.search(pattern, target) and answer.body else answer
    )
    with pytest.raises(VerifyError, match=text):
        mismatches(proxy.url)


STEPS: Final = {
    "to a market that is not there": (
        gzip.compress(b'{"id":"00000000-0000-4000-8000-000000000000","prob":0.5}\n'), "which is not there",
    ),
    "to no market": (gzip.compress(b'{"prob":0.5}\n'), "names no market"),
    "nowhere": (b"no gzip", "damaged gzip file"),
}  # fmt: skip


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("kind", STEPS)
def test_steps_that_lead_elsewhere_or_nowhere_are_named(proxy: Proxy, kind: str) -> None:
    body, text = STEPS[kind]
    name = f"{hashlib.sha256(body).hexdigest()[:32]}.ndjson.gz"
    proxy.alter = altering(
        r"changes/head\.json$",
        lambda head: head["steps"][-1].update(name=name, size=len(body)),
        lambda target, answer: replace(answer, status=200, body=body) if target.endswith(name) else answer,
    )
    (found,) = mismatches(proxy.url)
    assert "/changes/" in found.target
    assert text in found.text


def _each(change: Change) -> Callable[[Iterable[bytes]], list[bytes]]:
    """Changes all of them."""
    return lambda details: [changed(body, change) for body in details]


def _with_other_markets(lines: Iterable[bytes]) -> list[bytes]:
    """Lines of a dump, the second of another volume."""
    first, second, *others = lines
    return [first, *_each(lambda market: market.update(volume=0.25))([second]), *others]


def in_parquet(url: str) -> list[Mismatch]:
    """What is wrong with Parquet files, if the details of all markets are looked at."""
    reader = SiteReader(url, _FAST, print)
    site = expected.read(reader, 0)
    asked = Inquiry(reader, site, EarlierStates((), (), site.markets))
    return [*ParquetCheck(seed=1)(asked)]


def put_in_place(proxy: Proxy, file: DumpFile, body: bytes) -> None:
    """Have the site serve another body of a file, as its head names it."""
    other = file.model_copy(update={"sha256": hashlib.sha256(body).hexdigest(), "size": len(body)})

    def name_other(head: Any) -> None:
        text = contract.encode(head).replace(contract.encode(file), contract.encode(other))
        head.update(json.loads(text))

    proxy.alter = altering(
        r"dumps/head\.json$",
        name_other,
        lambda target, answer: replace(answer, body=body) if target.endswith(file.name) else answer,
    )


def test_rows_of_markets_that_the_dump_does_not_have_are_named(folder: Path, proxy: Proxy) -> None:
    """The head names the file: only its rows tell."""
    head, body = dump_head(folder), io.BytesIO()
    assert head.parquet
    lines = gzip.decompress((folder / "output" / head.ndjson.key).read_bytes()).splitlines()
    parquet.markets(body.write, _with_other_markets(lines), "extended")
    put_in_place(proxy, head.parquet, body.getvalue())
    (found,) = in_parquet(proxy.url)
    assert found.target.endswith(head.parquet.name)
    assert "has volume 0.25; the dump says" in found.text
    assert found.verdict == Verdict.WRONG


def test_a_parquet_file_of_other_columns_is_named(folder: Path, proxy: Proxy) -> None:
    head = dump_head(folder)
    file, other = head.table("history")[0], head.table("fills")[0]
    body = (folder / "output" / other.key).read_bytes()
    put_in_place(proxy, file, body)
    assert in_parquet(proxy.url) == [Mismatch(
        Verdict.WRONG, f"/{file.key}",
        "cannot be read as what it must be (columns marketId, id, amount, shares, price, timestamp)",
    )]  # fmt: skip


def test_views_over_files_of_another_state_are_named(proxy: Proxy) -> None:
    def alter(target: str, answer: Answer) -> Answer:
        other = answer.body.replace(b"/markets/", b"/markets/0") if target == f"/{keys.ATTACH}" else answer.body
        return replace(answer, body=other)

    proxy.alter = alter
    (found,) = mismatches(proxy.url)
    assert (found.verdict, found.target) == (Verdict.STALE, f"/{keys.ATTACH}")
    assert found.text == "names files of another state than the head of the dump"


def test_an_edge_that_cannot_search_is_not_accused(proxy: Proxy) -> None:
    refusal = contract.encode(contract.invalid("q", variant="extended"))
    proxy.alter = lambda target, answer: replace(answer, status=400, body=refusal) if "q=" in target else answer
    assert mismatches(proxy.url, 300) == []


def test_a_request_without_an_answer_is_told(proxy: Proxy) -> None:
    def alter(target: str, answer: Answer) -> Answer:
        if target.endswith("/snapshot"):
            raise ConnectionAbortedError
        return answer

    proxy.alter = alter
    (found,) = mismatches(proxy.url)
    assert found[:2] == (Verdict.BROKEN, "/v1/public/markets/snapshot")
    assert found.text.startswith("does not answer (")


def test_what_was_found_is_told_though_the_site_fails_then(proxy: Proxy) -> None:
    def alter(target: str, answer: Answer) -> Answer:
        is_failing = target.endswith("build.json") and "/v1/public/markets/snapshot" in proxy.asked
        status = 500 if is_failing or target.endswith("/snapshot") else answer.status
        return replace(answer, status=status)

    proxy.alter = alter
    found = mismatches(proxy.url)
    assert [one.target for one in found] == ["/v1/build.json", "/v1/public/markets/snapshot"]
    assert found[0].text.startswith("the run ended here, so what was found is told as it is, and the rest")
    assert found[1].text.startswith("is answered 500, not 200")


def test_prices_of_too_many_markets_are_not_asked_for(proxy: Proxy) -> None:
    reader = SiteReader(proxy.url, _FAST, print)
    site = expected.read(reader, 0)
    (line,) = [contract.encode(market) for market in site.markets.values() if market["status"] == "open"][:1]
    lines = [line.replace(json.loads(line)["id"].encode(), market_id(number).encode()) for number in range(20_000)]
    crowded = replace(site, catalog=Catalog.published(lines, [], site.build.as_of))
    proxy.alter = lambda target, answer: replace(answer, status=404) if "prices" in target else answer
    asked = Inquiry(reader, crowded, EarlierStates((), (), {}))
    assert [*check_made(asked), *check_index(asked)] == []
    assert "/v1/prices.json" not in proxy.asked


def test_terminals_never_get_what_a_site_makes_up(proxy: Proxy) -> None:
    proxy.alter = altering(_LISTS, _in_items(**{"\x1b[2J": 1}))
    found = mismatches(proxy.url)
    assert found
    assert all(str(one).isprintable() and r"\x1b[2J" in str(one) for one in found)


def test_a_redirect_is_not_followed_but_told(proxy: Proxy) -> None:
    proxy.alter = lambda _, answer: replace(answer, status=301, headers={"location": "https://api.example.org/"})
    with pytest.raises(VerifyError, match=r"301, which leads to 'https://api\.example\.org/'; verify that address"):
        mismatches(proxy.url)


# ── sites that cannot be verified ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("url", ["api.example.org", "ftp://api.example.org", "https://", "https://a.example/?x=1", ""])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(VerifyError, match="is no address of a site"):
        SiteReader(url, _FAST, print)


#: What the index of a site without dumps does not name.
OF_DUMPS: Final = ("dumps", "changes", "dataset", "attach")
WITHOUT_DUMP: Final[dict[str, tuple[str, Change, str]]] = {
    "nothing": (r"^$", lambda _: None, ""),
    "a list": (_LONGER.format("volume"), _swap, "item 1 is market .*; the list of all markets and the order"),
    "a detail": (_DETAILS, lambda page: page["market"].update(prob=0.123), "has prob 0.123; the list of all markets"),
}  # fmt: skip


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("kind", WITHOUT_DUMP)
def test_without_a_dump_lists_are_compared_with_each_other_and_with_details(proxy: Proxy, kind: str) -> None:
    pattern, change, text = WITHOUT_DUMP[kind]
    without_index = altering("^/v1/$", lambda index: [index.pop(name) for name in OF_DUMPS])
    of_another_version = altering(
        "build.json$", lambda build: build.update(generator="0"), without_index
    )  # its OpenAPI differs
    alter = altering(pattern, change, of_another_version)
    proxy.alter = lambda target, answer: (
        replace(answer, status=404) if "/dumps/" in target or "/changes/" in target else alter(target, answer)
    )
    found = mismatches(proxy.url)
    assert bool(found) == bool(text)
    assert any(re.search(text, one.text) for one in found) or not text, found


def test_a_site_that_asks_to_wait_is_waited_for(proxy: Proxy) -> None:
    said = list[str]()

    def alter(target: str, answer: Answer) -> Answer:
        if proxy.asked.count(target) == 1 and target.endswith("/snapshot"):
            return Answer(429, {"retry-after": "1", "content-type": "application/json"}, b"{}")
        return answer

    proxy.alter = alter
    assert verify(SiteReader(proxy.url, _FAST, said.append), 60, 1, SILENT, patience_s=0).mismatches == []
    assert said == ["/v1/public/markets/snapshot: 429; waiting 1 second, as the site asks"]


@pytest.mark.campaign(short=0)
def test_a_site_that_does_not_answer_is_told_with_its_address() -> None:
    ended = commands.run("verify", f"http://127.0.0.1:{free_port()}")
    assert ended.returncode == 1
    seed, error = ended.stderr.split("\n", 1)
    assert re.fullmatch(r"--seed \d+ asks the same again", seed)
    assert re.match(r"error: http://\S+/v1/build\.json: does not answer \(.*\); correct the address", error)
