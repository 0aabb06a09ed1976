"""A dry run says what a publish, or a rebuild, would do, and changes nothing."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from tests.support.campaigns import every_pair
from tests.support.deaths import dying_before
from tests.support.readers.followed import quick
from tests.support.sites.publishing import PREFIX, PublishedSite, hour
from tests.support.sites.rows import market_id
from tests.support.stores.s3.wire import Request

FORECAST: Final = re.compile(
    r"dry run, nothing was changed; would publish (.*): upload (\d+) objects? \((\d+) bytes?\), "
    r"leave (\d+) unchanged, delete (\d+), retain (\d+)"
)
BUILD_FORECAST: Final = re.compile(
    r"dry run: would build (.*): write (\d+) files? \((\d+) bytes?\), leave (\d+) unchanged, delete (\d+), "
    r"(\d+) rows? quarantined, [0-9.]+ s"
)


def check_figures(pattern: re.Pattern[str], forecast: str, summary: str) -> None:
    """The run that was to come says the same; only it knows what that took in the end."""
    found = pattern.fullmatch(forecast)
    assert found, forecast
    figures = [number for group in found.groups() for number in re.findall(r"\d+", group)]
    assert re.findall(r"\d+", summary.rpartition(", ")[0]) == figures, summary


def state(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every file in a folder but its lock, with its rights and the time of its last change of any kind."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    found = {path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat()) for path in paths}
    return {name: (body, of.st_mode, of.st_ctime_ns) for name, (body, of) in found.items()}


# ── what a dry run says is what the real run then does ────────────────────────────────────────────────────────────


def nothing_published(site: PublishedSite) -> None:
    for key in site.stored():
        site.remove(key)


def nothing_changed(site: PublishedSite) -> None:
    assert site.stored()


def changed(site: PublishedSite) -> None:
    site.edit(1, question="Else?")
    site.edit(9, approval="rejected")


def purge(site: PublishedSite) -> None:
    site.edit(1, question="Regretted?")
    site.done("rebuild", "--as-of", hour(1))
    site.edit(1, question="Else?")


def takedown_elsewhere(site: PublishedSite) -> None:
    site.edit(2, question="Else?")
    site.done("takedown", market_id(1), output="elsewhere")


def takedown_pending(site: PublishedSite) -> None:
    """Killed when the market was blocked, and nothing deleted yet."""

    def is_deletion(request: Request) -> bool:
        return request.operation == "DeleteObjects"

    with dying_before(site.server, is_deletion):
        site.run("takedown", market_id(1), output="elsewhere")
    assert keys.detail(market_id(1)) in site.objects()


def killed(site: PublishedSite) -> None:
    site.edit(1, question="Else?")
    site.edit(9, approval="rejected")

    def is_first_page(request: Request) -> bool:
        return request.operation == "PutObject" and keys.is_first_page(request.key.removeprefix(PREFIX))

    with dying_before(site.server, is_first_page):
        site.run("rebuild", "--as-of", hour(1))
    assert site.record().work


#: What happened, the options of the runs, and what a dry run must mention at least.
CASES: Final[dict[str, tuple[Callable[[PublishedSite], None], tuple[str, ...], str]]] = {
    "first publish": (nothing_published, (), r"upload v1/build.json: new"),
    "unchanged": (nothing_changed, (), ""),
    "unchanged, verified": (nothing_changed, ("--verify",), ""),
    "changed": (changed, (), rf"delete {keys.detail(market_id(9))}: its market is no longer public"),
    "purge": (purge, ("--purge-retired",), r"delete v1/\S+ \(\d+ objects?\): retired, and --purge-retired was given"),
    "takedown elsewhere": (takedown_elsewhere, (), rf"upload {keys.detail(market_id(2))}: changed"),
    "takedown pending": (takedown_pending, (), rf"delete {keys.detail(market_id(1))}: its market is no longer public"),
    "killed": (killed, (), r"upload v1/\S+: left by an interrupted publish.*"),
}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("case", "command", "layout"), every_pair(CASES, ["publish", "rebuild"], ["pages", "chunks"]))
def test_a_dry_run_says_what_the_real_run_then_does_and_changes_nothing(
    case: str, command: str, layout: str, published_site: PublishedSite
) -> None:
    happened, options, expected = CASES[case]
    with quick(published_site):
        published_site.settings["layout"] = layout
        published_site.done("rebuild", "--as-of", hour(0), "--accept=older")
        happened(published_site)
        published_site.server.behaviour.clock_offset_s += 600  # the lease of a killed run is over
        later = ["--as-of", hour(0 if case.startswith("unchanged") else 2)]
        if command == "publish":
            published_site.done("build", *later)
        arguments = [command, *options, *(later if command == "rebuild" else [])]
        check(published_site, arguments, expected)


def check(site: PublishedSite, arguments: list[str], expected: str) -> None:
    before, output = site.stored(), state(site.folder / "output")
    site.server.log.clear()
    *said, forecast = site.done(*arguments, "--dry-run").stdout.splitlines()
    assert (site.stored(), state(site.folder / "output")) == (before, output)
    assert {entry.operation for entry in site.server.log} <= {"GetObject", "HeadObject", "ListObjectsV2"}
    *built, summary = site.done(*arguments).stdout.splitlines()
    check_figures(FORECAST, forecast, summary)
    if arguments[0] == "rebuild":
        check_figures(BUILD_FORECAST, said.pop(0), built.pop())
    assert built == []
    assert all(re.fullmatch(r"(upload|delete) v1/\S+( \(\d+ objects?\))?: [a-z].*", step) for step in said)
    assert bool(said) == bool(expected)
    assert not expected or any(re.fullmatch(expected, step) for step in said), said
    after = site.stored()
    told = {"upload": set[str](), "delete": set[str]()}
    for verb, place in (step.split()[:2] for step in said):
        told[verb].add(place.rstrip(":"))
    new = {key for key, body in after.items() if key.startswith("v1/") and before.get(key) != body}
    gone = {key for key in before.keys() - after.keys() if key.startswith("v1/")}
    assert {key for key in new if not is_told(key, told["upload"])} == set()
    assert {key for key in gone if not is_told(key, told["delete"])} == set()
    site.check()


def is_told(key: str, places: set[str]) -> bool:
    """Whether an object, or the generation that it may belong to, is named.

    Chunks lie beside their generations, as do files of downloads; the name of a new session is drawn.
    """
    folders = [place for place in places if place.endswith("/")]
    is_download = key.startswith(tuple(f"v1/{name}/" for name in keys.DOWNLOADS))
    beside = "/".join(key.split("/")[:2]) if is_download else key.partition("/chunks/")[0]
    is_chunk = is_download or beside != key
    return key in places or any(
        key.startswith(place) or (is_chunk and place.startswith(f"{beside}/")) for place in folders
    )


# ── single properties ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_of_a_first_publish_asks_nothing_of_single_objects(empty: PublishedSite) -> None:
    *steps, summary = empty.done("publish", "--dry-run").stdout.splitlines()
    assert empty.stored() == {}
    assert len(empty.server.log) < 12 < len(steps)
    assert {step.rpartition(": ")[2] for step in steps} == {"new"}
    assert f"upload {len(empty.built())} objects" in summary


def test_a_dry_run_says_what_names_each_row_as_its_own_report_is_gone(published_site: PublishedSite) -> None:
    for number in (1, 2):
        published_site.edit(number, question="")
    said = published_site.done("rebuild", "--dry-run", "--as-of", hour(1)).stderr.splitlines()
    assert [line.partition(" (such as ")[0] for line in said] == [
        "WARNING: markets: 2 remarks: question is empty",
        "`public-markets check --all` names each",
    ]
