"""The inspection page shows what is published, and what needs a person, in a frame that commands leave beside it."""

import re

import pytest
from playwright.sync_api import Browser, expect

from generator.tree import files
from tests.support.readers.browser import window
from tests.support.sites.publishing import PublishedSite

AS_OF = "2024-01-31T12:00:00.000Z"
HOSTILE = '</script><script>alert("hold")</script><b>\N{SNOWMAN}'


@pytest.mark.parametrize("scripts", [True, False])
def test_the_page_shows_the_status_in_a_frame_whatever_the_reason_says(
    published_site: PublishedSite, browser: Browser, *, scripts: bool
) -> None:
    published_site.done("hold", HOSTILE)
    with window(browser, scripts=scripts) as opened:
        watched = opened.open((published_site.folder / "output" / files.INSPECTION).as_uri())
        frame = watched.page.frame_locator("iframe.status")
        expect(frame.locator(".lines li").first).to_contain_text(f"published: as of {AS_OF}")
        for line in (frame.locator(".lines li").nth(2), frame.locator(".needs li").first):
            expect(line).to_contain_text(HOSTILE)
        assert (" days ago)" in frame.locator(".lines li").first.inner_text()) == scripts
        assert frame.locator("[data-as-of]").count() == 0
        if scripts:
            assert watched.overflow() <= 0
        assert (watched.complaints, watched.foreign) == ([], [])
        if scripts:
            watched = opened.open((published_site.folder / "output" / files.STATUS).as_uri())
            # A frame has the headings of its page.
            assert watched.violations("page-has-heading-one") == []


def test_the_page_blames_cron_only_if_no_run_has_ended_for_long(
    published_site: PublishedSite, browser: Browser
) -> None:
    """The build is of 2024, and the run that published it ended just now; then that is of 2024, too."""
    published_site.done("publish")
    path = published_site.folder / "output" / files.STATUS
    with window(browser) as opened:
        for advice in ("runs end here, so see what the last one said", "check that cron runs, and how `rebuild` ended"):
            shown = opened.open(path.as_uri()).page.locator("[data-as-of]:visible")
            expect(shown).to_have_count(1)
            expect(shown).to_contain_text(re.compile(rf"\(\d+ days ago\) is older than 3 .*; {advice}$"))
            text = path.read_text("utf-8")
            path.unlink()
            path.write_text(re.sub(r'data-(ran|as-of)="[^"]*"', rf'data-\1="{AS_OF}"', text), "utf-8")
