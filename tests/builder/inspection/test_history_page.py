"""The history page in a real browser: charts in light and dark, wide and narrow, and words where there is nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.sync_api import Browser, expect

from generator.builder.inspection.excerpts import Excerpts
from generator.builder.inspection.history import CalibrationBucket, CandleFigures, DayVolume, HistoryFigures, Move
from generator.builder.report import Report
from generator.tree import files
from tests.builder.inspection.full_sites import FULL, write_pages
from tests.support.readers.browser import Watched, Window, window
from tests.support.sites.builds import NOW
from tests.support.sites.rows import catalog_of, market_id, public_market

QUESTIONS: Final = (
    '</script><script>alert("script")</script>',
    '<img src="https://evil.example/x.png" onerror=alert(1)>',
    "هل ستمطر غدًا؟ \u202egnp.exe",
    "W" * 2_000,
    "{{ 7 * 7 }} <!-- <script> ${document.cookie} &lt;b&gt;",
    "Will it rain?",
)
WIDE, NARROW = (1100, 900), (500, 900)
Scheme = Literal["light", "dark"]

FIGURES: Final = HistoryFigures(
    as_of=NOW,
    calibration=[
        CalibrationBucket(place / 10, (place + 1) / 10, 3 * place + 1, place / 10 + 0.04, place / 10)
        for place in range(10)
    ],
    candles=CandleFigures(
        volume=[DayVolume(f"2026-01-{day:02}", 1_000.5 * (day % 7), day % 7) for day in range(1, 31)],
        moves=[Move(market_id(number), 0.05, 0.95 - number / 10) for number in range(len(QUESTIONS))],
    ),
    questions={market_id(number): question for number, question in enumerate(QUESTIONS)},
)


def placed(folder: Path, figures: HistoryFigures) -> Path:
    """The history page with the files around it, in the folder; returns its path."""
    markets = [public_market(number, question=question) for number, question in enumerate(QUESTIONS)]
    report = Report(as_of=NOW, source="sqlite:///markets.db", built=len(markets)).content()
    write_pages(folder, report, Excerpts(catalog_of(*markets)), figures, **FULL)
    return folder / files.HISTORY


@pytest.fixture(scope="module")
def wide(browser: Browser) -> Iterator[Window]:
    with window(browser, size=WIDE) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page with all figures, on disk."""
    return placed(tmp_path_factory.mktemp("history"), FIGURES).as_uri()


def shapes(watched: Watched) -> list[int]:
    """How many dots, bars and questions the charts show."""
    expect(watched.page.locator(".plot > svg")).to_have_count(3)
    marks = (
        "#calibration-plot [aria-label=dot] circle",
        "#volume-plot [aria-label=rect] rect",
        "#movers-plot [aria-label=text] text",
    )
    return [watched.page.locator(mark).count() for mark in marks]


# ── what it shows ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "dark"), (NARROW, "light")], ids=["wide-dark", "narrow-light"])
def test_the_charts_are_drawn_offline_and_everybody_can_read_the_page(
    page: str, browser: Browser, size: tuple[int, int], scheme: Scheme
) -> None:
    with window(browser, size=size, scheme=scheme) as opened:
        watched = opened.open(page)
        assert shapes(watched) == [len(FIGURES.calibration), len(FIGURES.candles.volume), len(QUESTIONS)]
        assert (watched.complaints, watched.foreign, watched.overflow()) == ([], [], 0)
        for name in ("the share of markets", "the volume per day from 2026-01-01", "each mover"):
            expect(watched.page.get_by_role("img", name=f"Chart of {name}")).to_be_visible()
        watched.page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
        assert watched.page.get_by_role("table").count() == 3
        assert watched.overflow() == 0
        assert watched.violations() == []
        colours = watched.page.locator(".plot > svg").first.evaluate(
            "one => [getComputedStyle(one).color, getComputedStyle(document.body).backgroundColor]"
        )
        assert len({*colours}) == 2


def test_questions_stay_text_wherever_they_are_shown(page: str, wide: Window) -> None:
    watched = wide.open(page)
    shapes(watched)
    assert watched.page.locator("#movers ~ .scroll a").all_text_contents() == [*QUESTIONS]
    texts = watched.page.locator("#movers-plot [aria-label=text] text").all_text_contents()
    assert [text.strip("\u2068\u2069")[:7] for text in texts] == [question[:7] for question in QUESTIONS]
    assert watched.page.locator("main img, main script, footer img").count() == 0
    height = watched.page.locator("#movers ~ .scroll tr").nth(4).bounding_box()
    assert height is not None
    assert height["height"] < 120, "2,000 letters without a space take few lines"
    watched.page.locator("#movers-plot [aria-label=dot] circle >> nth=-3").hover(force=True)
    expect(watched.page.locator("#movers-plot [aria-label=tip]")).to_contain_text("WWW")
    assert (watched.complaints, watched.foreign, watched.overflow()) == ([], [], 0)


def test_a_mover_leads_to_the_market_on_the_inspection_page_and_both_pages_to_each_other(
    page: str, wide: Window
) -> None:
    watched = wide.open(page)
    watched.page.click("a.question >> text=Will it rain?")
    expect(watched.page.locator("#market-title")).to_have_text("Will it rain?")
    watched.page.click("#market .close")
    watched.page.click("nav >> text=History")
    expect(watched.page.locator("h1")).to_have_text("History")
    watched.page.click("nav >> text=What was built")
    expect(watched.page.locator("h1")).to_have_text("What was built")
    assert (watched.complaints, watched.foreign) == ([], [])


# ── where there is nothing to show ────────────────────────────────────────────────────────────────────────────────


NOTHING: Final = (
    "No market has resolved YES or NO that had a probability a week before it closed.",
    "Nothing was traded in the last 90 days that are over.",
    "No probability changed in the 24 hours until 2026-01-31 12:00 UTC.",
)


def test_words_say_in_place_of_charts_that_there_is_nothing(tmp_path: Path, wide: Window) -> None:
    watched = wide.open(placed(tmp_path, HistoryFigures(as_of=NOW)).as_uri())
    text = watched.page.inner_text("main")
    assert [sentence for sentence in NOTHING if sentence not in text] == []
    assert watched.page.locator("svg, table").count() == 0
    assert (watched.complaints, watched.violations()) == ([], [])
