"""The HTML pages in a real browser: from disk and over `serve`, on desktop and phone, in light and dark mode."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import Browser, expect

from generator.api import keys
from generator.api.contract import SORTS
from generator.builder.inspection.excerpts import Excerpts
from generator.builder.report import Report
from generator.site.catalog import Catalog
from generator.tree import files
from tests.builder.inspection.full_sites import write_pages
from tests.support.edges.serving import UNLIMITED, Served, served
from tests.support.readers.browser import DESKTOP, PHONE, Watched, Window, window
from tests.support.sites.builds import AS_OF, build_now, make_config
from tests.support.sites.rows import (
    create_database,
    insert_fill,
    insert_fx_member,
    insert_market,
    insert_order,
    insert_point,
    market_id,
    public_market,
)

HOSTILE: Final = (
    '</script><script>alert("script")</script>',
    '<img src="https://evil.example/x.png" onerror=alert(1)>',
    '"><a href=javascript:alert(2)>x</a>',
    "هل ستمطر غدًا؟ \u202egnp.exe",
    "🎲👩‍🚀 Zürich ☃️",
    "W" * 400,
    "{{ 7 * 7 }} {% raw %} ${document.cookie} &lt;b&gt; <!-- <script>",
)
#: The site offers search, which changes nothing else.
SEARCH: Final = {"variant": "extended", "search": "title+description"}


def fill(database: sqlite3.Connection) -> None:
    """Fifty markets, hostile ones first; one hidden, one broken, one in an FX family."""
    for number, question in enumerate(HOSTILE, 1):
        insert_market(database, number, question=question, description=question, trader_count=1000 - number)
    for number in range(11, 54):
        status = ("open", "closed", "resolved", "cancelled")[number % 4]
        insert_market(database, number, status=status, trader_count=number, volume=number * 1.5)
    insert_market(database, 60, question="CANARY hidden", approval="pending")
    insert_market(database, 61, question="Broken <b>market</b>?", prob=1.2)
    insert_market(database, 62, question="Will EUR/USD fix at 1.08?", trader_count=1)
    insert_fx_member(database, market_id=market_id(62))
    for day in range(1, 29):
        insert_point(database, f"2026-01-{day:02} 00:00:00.000000", day / 50)
    for number in range(9):
        insert_fill(database, number)
        insert_order(database, price=0.4 - number / 100)
    insert_fill(database, 99, amount=-1.0)


@pytest.fixture(scope="module")
def rebuilt_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with its second build: one market is new, one edited, one withdrawn since the first."""
    folder = tmp_path_factory.mktemp("site")
    with closing(create_database(folder / "markets.db")) as database:
        fill(database)
        insert_market(database, 70, question="To be withdrawn?")
        build_now(make_config(folder, **SEARCH), invalid=True)
        database.execute("UPDATE markets SET is_listed = 0 WHERE id = ?", [market_id(70)])
        database.execute("UPDATE markets SET question = 'Edited?' WHERE id = ?", [market_id(11)])
        insert_market(database, 71, question="Brand new?")
    build_now(make_config(folder, **SEARCH), AS_OF + timedelta(minutes=1), invalid=True)
    # Commands leave it, and builds alone do not.
    (folder / "output" / files.STATUS).write_text("<!doctype html>")
    return folder


@pytest.fixture(scope="module")
def desktop(browser: Browser) -> Iterator[Window]:
    with window(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def server(rebuilt_folder: Path) -> Iterator[Served]:
    with served(rebuilt_folder, *UNLIMITED, *(f"--set={name}={value}" for name, value in SEARCH.items())) as server:
        yield server


def on_disk(site: Path, name: str = "index.html") -> str:
    return (site / "output" / name).as_uri()


@pytest.fixture
def disk(rebuilt_folder: Path, desktop: Window) -> Iterator[Watched]:
    watched = desktop.open(on_disk(rebuilt_folder))
    yield watched
    assert (watched.complaints, watched.foreign) == ([], [])


@pytest.fixture
def live(server: Served, desktop: Window) -> Iterator[Watched]:
    watched = desktop.open(f"http://127.0.0.1:{server.port}/inspect/")
    yield watched
    assert watched.foreign == []


def find(watched: Watched, query: str) -> tuple[list[str], str]:
    """Search; returns the questions shown and the text about markets that are not public."""
    watched.page.fill("#query", query)
    questions = watched.page.locator("#markets tbody a").all_inner_texts()
    return questions, watched.page.inner_text("#verdicts")


def read(watched: Watched, number: int) -> str:
    """Open a market and return the text of its dialog."""
    watched.page.fill("#query", market_id(number))
    watched.page.click("#markets tbody a")
    expect(watched.page.locator("#market")).to_be_visible()
    return watched.page.inner_text("#market")


# ── from disk ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_page_describes_the_build_without_network_requests(disk: Watched, rebuilt_folder: Path) -> None:
    summary = disk.page.inner_text("main > section:first-child").split("\n")
    figures = dict(pairwise(summary))
    assert [figures[name] for name in ("Published", "Hidden", "Quarantined", "Taken down")] == ["52", "2", "1", "0"]
    assert "open 20" in " ".join(summary)
    assert f"sqlite:///{rebuilt_folder}/markets.db" in disk.page.inner_text("header")
    assert "2026-01-31 12:01 UTC" in disk.page.inner_text("header")
    expect(disk.page.locator("#calls-form")).to_be_hidden()
    expect(disk.page.locator("#find-api")).to_be_hidden()
    assert disk.page.inner_text("#search-index").startswith("The search index has ")
    assert "52\n51 in lists, 1 in FX families only" in disk.page.inner_text("main > section:first-child")
    assert "52 markets published. 1 of them in no list" in disk.page.inner_text("#found")
    assert disk.page.inner_text("#fx").startswith("The status all holds 51 of the 52 published markets. The other is ")
    disk.page.fill("#query", market_id(62))
    assert "in no list" in disk.page.inner_text("#markets")
    assert "EURUSD ≥ 1.08" in read(disk, 62)


@pytest.mark.campaign(short=0)
def test_untrusted_texts_stay_text_cut_in_the_table_and_whole_in_the_dialog(disk: Watched) -> None:
    for number, text in enumerate(HOSTILE, 1):
        questions, _ = find(disk, market_id(number))
        assert questions == [text]
        assert (disk.page.locator("#markets tbody a").bounding_box() or {"height": 999})["height"] < 120
        assert text in read(disk, number).replace("\n", "")
        disk.page.keyboard.press("Escape")
    assert disk.page.locator("main img, dialog img, main a[href^=javascript]").count() == 0
    assert disk.overflow() == 0


def test_a_search_says_why_a_market_is_public_or_not(disk: Watched) -> None:
    assert find(disk, "edited?") == (["Edited?"], "")
    questions, verdict = find(disk, "broken market")
    assert questions == []
    assert verdict.startswith("Quarantined: Broken <b>market</b>? ")
    assert "prob: " in verdict
    assert find(disk, market_id(61))[1] == verdict
    _, verdict = find(disk, market_id(70))
    assert verdict.startswith(f"Withdrawn: {market_id(70)}. This build withdrew it")
    questions, verdict = find(disk, "canary hidden")
    assert questions == []
    assert "one of the 2 hidden markets" in verdict
    expect(disk.page.locator("#unknown")).to_have_attribute("open", "")
    find(disk, market_id(99))
    assert market_id(99) in disk.page.inner_text("#ask")
    find(disk, "'; DROP TABLE markets; --")
    assert "DROP" not in disk.page.inner_text("#ask"), "the query for the database takes ids only"


@pytest.mark.campaign(short=0)
def test_markets_are_sorted_as_the_api_sorts_them(disk: Watched, rebuilt_folder: Path) -> None:
    for status, sort in product(("open", "archive", "all"), SORTS):
        disk.page.select_option("#find-status", status)
        disk.page.select_option("#find-sort", sort)
        while disk.page.locator("#more").is_visible():
            disk.page.click("#more")
        shown = disk.page.locator("#markets tbody a").evaluate_all("links => links.map((one) => one.dataset.market)")
        first = json.loads((rebuilt_folder / "output" / keys.first_page(f"{status}/{sort}", 100)).read_bytes())
        assert [one for one in shown if one != market_id(62)] == [item["id"] for item in first["items"]], (status, sort)


def test_a_market_is_shown_with_its_history_order_book_and_fills(disk: Watched) -> None:
    text = read(disk, 1)
    for words in ("Probability", "50.0%", "open, takes bets", "Bids, best first (5 of 9)", "Newest first (5 of 9)"):
        assert words in text
    label = disk.page.locator(".chart").get_attribute("aria-label") or ""
    assert label.startswith("Probability from 2.0% on 2026-01-01 00:00 UTC to 56.0% on 2026-01-28 00:00 UTC")
    disk.page.focus(".chart")
    disk.page.keyboard.press("Home")
    assert disk.page.inner_text(".readout") == "2026-01-01 00:00 UTC: 2.0%"
    disk.page.keyboard.press("ArrowRight")
    assert disk.page.inner_text(".readout") == "2026-01-02 00:00 UTC: 4.0%"


def test_what_changed_is_named(disk: Watched) -> None:
    disk.page.locator("#changes details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    added, changed, withdrawn = disk.page.locator("#changes details").all_inner_texts()
    assert added.split() == ["Added", "1", market_id(71), "Brand", "new?"]
    assert changed.split() == ["Changed", "1", market_id(11), "Edited?"]
    assert market_id(70) in withdrawn
    disk.page.click("#changes a >> text=Brand new?")
    expect(disk.page.locator("#market-title")).to_have_text("Brand new?")


def test_quarantined_rows_can_be_filtered(disk: Watched) -> None:
    disk.page.click("#quarantine-fold summary")
    rows = disk.page.locator("#quarantine-rows tbody tr")
    expect(rows).to_have_count(2)
    disk.page.select_option("#quarantine-relation", "fills")
    expect(rows).to_have_count(1)
    assert "amount: " in rows.inner_text()
    disk.page.select_option("#quarantine-relation", "")
    disk.page.fill("#quarantine-query", "broken <B>")
    assert "Broken <b>market</b>?" in rows.inner_text()
    disk.page.fill("#quarantine-query", "nothing of the kind")
    expect(rows).to_have_count(0)


def test_every_link_on_disk_leads_to_a_file(disk: Watched, rebuilt_folder: Path) -> None:
    links: list[str] = disk.page.eval_on_selector_all(
        "a[href]", "links => links.map((one) => one.getAttribute('href'))"
    )
    files = {link for link in links if not link.startswith("#")}
    assert len(files) > 100
    assert [link for link in files if not (rebuilt_folder / "output" / link).is_file()] == []


def test_without_scripts_the_page_still_describes_the_build(rebuilt_folder: Path, browser: Browser) -> None:
    with window(browser, scripts=False) as opened:
        watched = opened.open(on_disk(rebuilt_folder))
        text = watched.page.text_content("main") or ""
        for words in ("52", HOSTILE[0], "prob: ", "open/popular", market_id(70), "Search needs JavaScript"):
            assert words in text
        expect(watched.page.locator("#markets tbody tr")).to_have_count(20)
        expect(watched.page.locator("#find-form")).to_be_hidden()
        assert watched.foreign == []


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "dark"), (PHONE, "light")])
def test_the_page_is_accessible(
    rebuilt_folder: Path, browser: Browser, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    with window(browser, size=size, scheme=scheme) as opened:
        watched = opened.open(on_disk(rebuilt_folder))
        find(watched, "broken")
        watched.page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
        assert watched.violations() == []
        read(watched, 1)
        assert watched.violations() == []
        assert watched.overflow() == 0
        assert watched.complaints == []


def test_a_market_without_an_excerpt_can_be_read_from_its_file(
    tmp_path: Path, database: sqlite3.Connection, desktop: Window
) -> None:
    insert_market(database, 1, question="Popular?")
    insert_market(database, 2, question="Unknown?", description="Rules of the unknown.")
    build_now(make_config(tmp_path))
    page = tmp_path / "output" / "index.html"
    data = page.read_text("utf-8")
    before, start, rest = data.partition('"excerpts":[')
    page.write_text(before + start + "]}" + rest[rest.index("</script>") :], "utf-8")
    watched = desktop.open(page.as_uri())
    assert "excerpts of only the 0 most popular markets" in read(watched, 2)
    watched.page.set_input_files("#market-file", tmp_path / "output" / keys.detail(market_id(2)))
    expect(watched.page.locator("#market-body")).to_contain_text("Rules of the unknown.")


def test_the_page_tells_what_earlier_builds_withdrew_what_it_does_not_hold_and_where_the_site_shows_a_market(
    tmp_path: Path, desktop: Window
) -> None:
    run = Report().content()["run"] | {"withdrawnEarlier": [{"id": market_id(8), "asOf": "2026-01-05T10:00:00.000Z"}]}
    markets = {"published": 50_000, "hidden": 3, "quarantined": 0}
    told: dict[str, Any] = {"takenDown": [market_id(7)], "run": run, "markets": markets}
    made = Report(as_of="2026-01-31T12:00:00.000Z", built=1, hidden=3).content() | told
    catalog = Catalog([public_market(close_time="9999-12-31 23:59:59")], as_of=made["asOf"], hidden=3)
    write_pages(tmp_path, made, Excerpts(catalog, "https://example.org/m/{id}?from=page"))
    watched = desktop.open((tmp_path / files.INSPECTION).as_uri())
    assert find(watched, market_id(7))[1].startswith(f"Taken down: {market_id(7)}. It stays blocked until ")
    verdict = f"Withdrawn: {market_id(8)}. The build of 2026-01-05 10:00 UTC withdrew it."
    assert find(watched, market_id(8))[1] == verdict
    assert "This page holds 1 of 50,000 markets." in find(watched, market_id(9))[1]
    assert watched.page.locator("#verdicts a").first.get_attribute("href") == keys.detail(market_id(9))
    home = f"https://example.org/m/{market_id(1)}?from=page"
    assert find(watched, "question")[0] == ["Question 1?", "↗"]
    assert watched.page.locator("#markets a.page").get_attribute("href") == home
    assert watched.page.locator("#markets tbody td").last.inner_text() == "none", "it never closes"
    watched.page.goto(f"{watched.page.url}#market={market_id(1)}")
    assert watched.page.locator("#market-body a.page").get_attribute("href") == home
    assert "Closes\tnone" in watched.page.inner_text("#market")


# ── over serve ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_live_calls_show_request_and_response(live: Watched, server: Served) -> None:
    page = live.page
    page.select_option("#call-status", "all")
    page.select_option("#call-sort", "new")
    page.fill("#call-limit", "3")
    line = f"curl -i 'http://127.0.0.1:{server.port}/{keys.MARKETS}?status=all&sort=new&limit=3'"
    assert page.inner_text("#call-line") == line
    page.click("text=Send")
    expect(page.locator("#call-said")).to_contain_text("Answered")
    body = json.loads(page.inner_text("#call-body"))
    assert (page.inner_text("#call-status-line"), len(body["items"])) == ("200 OK", 3)
    assert "content-type: application/json; charset=utf-8" in page.inner_text("#call-headers").split("\n")
    page.click("#call-next")
    expect(page.locator("#call-line")).to_contain_text(f"cursor={body['nextCursor']}")
    expect(page.locator("#call-body")).not_to_contain_text(body["items"][0]["id"])
    assert live.complaints == []


# ── the API's documentation ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_the_documentation_opens_over_http(server: Served, desktop: Window) -> None:
    watched = desktop.open(f"http://127.0.0.1:{server.port}/inspect/api.html")
    for title in ("List public markets", "Get markets for a landing page", "Get one market"):
        watched.page.get_by_text(title).last.wait_for()
    watched.page.click("text=What was built")
    expect(watched.page.locator("h1")).to_have_text("What was built")
    assert (watched.complaints, watched.foreign) == ([], [])
