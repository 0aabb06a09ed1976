"""After a takedown, report and inspection page are those of what is left; nothing in them quotes the markets."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.builder.report_file import ReportFile
from generator.tree.files import INSPECTION, MANIFEST, QUOTING, REPORT
from generator.tree.layouts import COMPACT, LAYOUTS
from tests.site.random_sites import RandomSite, rich_site
from tests.site.taken_down import Workplace, traces, workplace
from tests.support.deaths import dying
from tests.support.sites.builds import VARIANTS
from tests.support.sites.publishing import tamper
from tests.support.sites.rows import market_id

SORTS_OF_SITES: Final = [*zip(LAYOUTS, VARIANTS, strict=True)]
_HREF: Final = re.compile(r'href="(v1/[^"]+)"')


def plain(layout: str, variant: str, **settings: Any) -> RandomSite:
    """A site without a change feed, whose next session has a name by chance, and with one spelling of a category.

    Its member of a family stays.
    """
    site = rich_site(layout, variant)
    first, second = (
        {number: replace(rows, categories=_spelled_once(number)) for number, rows in state.items()}
        for state in (site.first, site.second)
    )
    settings = {**site.settings, "changes": {"enabled": False}, **settings}
    return replace(site, settings=settings, first=first, second=second, gone=(2, 3, 5))


def _spelled_once(number: int) -> tuple[str, ...]:
    return ("Zwergsport", "obskura") if number == 5 else ("Zwergsport",)


def report_in(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / REPORT).read_bytes())
    return content


# ── the page of what is left ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("layout", "variant"), SORTS_OF_SITES)
def test_the_page_is_the_one_that_a_build_with_the_markets_blocked_gives(layout: str, variant: str) -> None:
    compare(plain(layout, variant))


def compare(site: RandomSite) -> None:
    with workplace(site) as place:
        place.build_both()
        place.copy("output", "blocked")
        place.block("blocked", site.ids)
        place.build(site.as_of, output="blocked")
        place.done("takedown", *site.ids)
        output, blocked = (place.folder / name for name in ("output", "blocked"))
        made, expected = report_in(output), report_in(blocked)
        assert {**made, "run": None} == {**expected, "run": None}
        assert made["takenDown"] == [*site.ids]
        assert made["markets"]["published"] == 7
        run = made["run"]
        assert run["written"] + run["unchanged"] == expected["run"]["written"] + expected["run"]["unchanged"]
        assert run["changed"] == [market_id(4)]
        # A build that has nothing to do makes the page from the report that it finds.
        tamper(blocked / REPORT, (output / REPORT).read_bytes())
        place.build(site.as_of, output="blocked")
        quoting = QUOTING if site.settings["dumps"].get("parquet") else (INSPECTION,)
        for name in quoting:
            assert (output / name).read_bytes() == (blocked / name).read_bytes()
        links = _HREF.findall((output / INSPECTION).read_text("utf-8"))
        assert len(links) > len(made["lists"])
        assert "6 in lists, 1 in FX families only" in (output / INSPECTION).read_text("utf-8")
        assert [link for link in links if not (output / link).is_file()] == []
        assert {(output / name).stat().st_mode & 0o777 for name in quoting} == {0o600}


# ── one site for the rest ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def made() -> Iterator[Workplace]:
    """A site with remarks about spellings of categories, and a change feed."""
    with workplace(rich_site(COMPACT, "extended")) as place:
        place.build_both()
        place.copy("output", "built")
        yield place


@pytest.fixture
def place(made: Workplace) -> Workplace:
    """The same with the output folder as it was built."""
    shutil.rmtree(made.folder / "output")
    made.copy("built", "output")
    return made


def page(place: Workplace) -> str:
    return (place.folder / "output" / INSPECTION).read_text("utf-8")


def test_the_page_leads_to_the_new_session_of_the_change_feed(place: Workplace) -> None:
    place.done("takedown", *place.site.ids)
    head = json.loads((place.folder / "output" / keys.head(keys.CHANGES)).read_bytes())
    found = report_in(place.folder / "output")
    assert (found["downloads"]["session"], found["downloads"]["steps"]) == (head["session"], 0)
    assert found["run"]["stepLines"] == 0
    assert head["session"] in page(place)
    assert (
        traces(place.site, {name: (place.folder / "output" / name).read_bytes() for name in (REPORT, INSPECTION)}) == []
    )


def test_a_takedown_that_was_killed_leaves_no_page_and_the_next_one_makes_it(place: Workplace) -> None:
    for name in (MANIFEST, REPORT):
        with dying(lambda _, path, name=name: path.name == name):  # type: ignore[misc]
            assert place.run("takedown", *place.site.ids).exit_code == 1
        assert not (place.folder / "output" / INSPECTION).exists()
    place.done("takedown")
    assert report_in(place.folder / "output")["takenDown"] == [*place.site.ids]
    assert "qx03question" not in page(place)
    assert "qx04question" in page(place)


def test_with_a_report_of_another_version_the_page_stays_away_and_the_remedy_is_named(place: Workplace) -> None:
    report = place.folder / "output" / REPORT
    tamper(report, json.dumps({**json.loads(report.read_bytes()), "generator": "0.0.1"}).encode())
    said = place.done("takedown", market_id(3)).output
    assert f"{report} is missing, damaged, or not of this version and this build; run `public-markets build`" in said
    assert not (place.folder / "output" / INSPECTION).exists()


@pytest.mark.parametrize("content", [None, b"", b"{}", b"no report"])
def test_what_is_no_report_is_not_taken_for_one(content: bytes | None) -> None:
    assert ReportFile.decoded(content) is None


def test_the_report_stays_as_old_as_the_build_and_is_left_alone_with_the_page_where_nothing_is_to_do(
    place: Workplace,
) -> None:
    """The next build finds files that changed since by comparing their times with the report's."""
    files = [place.folder / "output" / name for name in (INSPECTION, REPORT)]
    built = files[1].stat().st_mtime_ns
    place.done("takedown", market_id(3))
    assert files[1].stat().st_mtime_ns == built
    before = [(file.stat().st_ino, file.stat().st_mtime_ns) for file in files]
    for arguments in ((), (market_id(3),), ("--undo", market_id(3))):
        place.done("takedown", *arguments)
    assert [(file.stat().st_ino, file.stat().st_mtime_ns) for file in files] == before


def test_a_page_that_cannot_be_made_fails_no_takedown(place: Workplace) -> None:
    output = place.folder / "output"
    (output / INSPECTION).unlink()
    tamper(output / keys.head(keys.CHANGES), b"damaged")
    assert "the head of the dump or the change feed is damaged" in place.done("takedown").output
    assert not (output / INSPECTION).exists()


def test_a_takedown_makes_no_folder_look_built(place: Workplace) -> None:
    place.done("takedown", market_id(3), output="elsewhere")
    assert not (place.folder / "elsewhere" / INSPECTION).exists()


def test_the_settings_of_the_build_count_not_those_of_the_command(place: Workplace) -> None:
    place.settings = {"layout": "pages", "search": "off", "schedule": "60"}
    try:
        place.done("takedown", market_id(3))
    finally:
        place.settings = {}
    found = report_in(place.folder / "output")
    assert found["search"]["generation"].startswith(keys.SEARCH_LETTER)
    assert found["cost"]["schedule"] == 60
    assert f"layout {COMPACT}." in page(place)
