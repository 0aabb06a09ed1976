"""What `check` reports about a store, and how a monitor notices that cron has stalled."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Final

import pytest

from generator.config.settings import Config
from generator.publish import record, states, store_checks
from tests.support.edges.servers import serving
from tests.support.sites.publishing import FX, PublishedSite, hour
from tests.support.sites.rows import market_id
from tests.support.stores.records import split
from tests.support.stores.s3.behaviour import Fault
from tests.support.stores.s3.wire import Request

NAME = "s3://markets/api"
KEEPS = f"fine: {NAME}: can be written, and honours conditional puts"
NO_CDN = (
    "warning: publish: no CDN is configured, so cached copies of withdrawn markets may remain; set "
    "publish.cloudfront_distribution or publish.purge_command, or publish.cdn: none if nothing caches; until then, "
    "shared caches are told to keep pages for 5 minutes only, instead of a year"
)
FIRST = datetime(2024, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def published_site(published_site: PublishedSite) -> PublishedSite:
    """The published site, with the store's clock ten minutes after the build."""
    at(published_site, FIRST + timedelta(minutes=10))
    published_site.settings["base_url"] = "http://127.0.0.1:8000"
    return published_site


def at(site: PublishedSite, moment: datetime) -> None:
    site.server.clock = moment.timestamp


def found(site: PublishedSite, code: int = 0, **settings: str) -> list[str]:
    """The findings about the store; without the clocks, which are years apart here."""
    result = site.run("check", **settings)
    assert result.exit_code == code, result.output
    others = (
        "sqlite:",
        "rows:",
        "fills:",
        "probabilities:",
        "layout ",
        "output:",
        "base_url:",
        f"{NAME}: this machine's clock",
    )
    lines = result.stdout.splitlines()
    return [line for line in lines if not line.partition(": ")[2].startswith(others) and not line.startswith("`")]


def test_a_healthy_store_is_reported_with_what_is_published(published_site: PublishedSite) -> None:
    before = published_site.stored()
    assert found(published_site) == [
        f"fine: {NAME}: 11 markets are published as of 2024-01-31T12:00:00.000Z, 10 minutes ago",
        KEEPS,
        NO_CDN,
    ]
    assert published_site.stored() == before, "the probe deletes its object"


def test_nothing_is_said_of_caches_where_there_are_none(published_site: PublishedSite) -> None:
    # There is no CDN to wait for.
    published_site.settings["publish.cdn"] = "none"
    assert found(published_site)[1:] == [KEEPS]
    gone = published_site.done("takedown", market_id(FX))
    assert "CDN" not in gone.stdout + gone.stderr
    assert re.search(r"; browsers keep copies until \S+Z at most$", gone.stdout.strip())


def test_an_empty_bucket_is_fine(empty: PublishedSite) -> None:
    assert found(empty)[:2] == [f"fine: {NAME}: can be read; nothing is published there yet", KEEPS]


def test_somebody_elses_objects_are_an_error(empty: PublishedSite) -> None:
    empty.put("v1/index.html", b"hello")
    (line,) = [line for line in found(empty, 1) if line.startswith("error")]
    assert line.startswith(f"error: {NAME}: holds v1/index.html but no record of this program")


def test_all_problems_of_a_store_are_reported_at_once(published_site: PublishedSite) -> None:
    published_site.server.behaviour.ignores_conditions = published_site.server.behaviour.open_to_everyone = True
    published_site.server.bucket.versioning = "Enabled"
    lines = found(published_site, 1, base_url="https://other.example")
    assert [line.split(";")[0].split(", ")[0] for line in lines[:-1]] == [
        f"fine: {NAME}: 11 markets are published as of 2024-01-31T12:00:00.000Z",
        f"error: {NAME}: holds the site http://127.0.0.1:8000",
        f"error: {NAME}: ignores conditional puts (If-Match",
        f"warning: {NAME}: anyone can write here without credentials",
        f"warning: {NAME}: anyone can read manifest.json at {published_site.server.url}/markets/api/manifest.json",
        f"warning: {NAME}: keeps old versions",
    ]
    assert lines[-1] == NO_CDN


def test_a_single_writer_causes_a_warning(published_site: PublishedSite) -> None:
    lines = found(published_site, publish__single_writer="true")
    assert any(line.startswith(f"warning: {NAME}: publish.single_writer declares") for line in lines)
    assert KEEPS not in lines


def test_a_clock_difference_is_reported_in_seconds(published_site: PublishedSite) -> None:
    at(published_site, datetime.now(UTC) - timedelta(seconds=90))
    warnings = [line for line in published_site.done("check").stdout.splitlines() if "clock" in line]
    assert [line.split(" s ")[1] for line in warnings] == ["ahead of the store's; set it: it dates the builds"]
    at(published_site, datetime.now(UTC) + timedelta(seconds=10))
    assert "clock" not in published_site.done("check").stdout


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("body", [None, b"{}\n[]"], ids=["missing", "altered"])
def test_a_damaged_state_of_the_record_is_an_error_with_the_remedy(
    published_site: PublishedSite, body: bytes | None
) -> None:
    published_site.edit(1, question="New?")
    with split():
        published_site.done("rebuild", "--as-of", hour(1))
        whole = published_site.stored()
        at(published_site, datetime.fromisoformat(hour(1)) + timedelta(minutes=10))
        assert f"fine: {NAME}: the record's state is whole" in found(published_site)
        damaged = states.key(record.decoded(whole[record.KEY]).built.state)
        published_site.remove(damaged) if body is None else published_site.put(damaged, body)
        said = f"error: {NAME}: {damaged}: {'missing' if body is None else 'altered'}; it is part of the record, which "
        assert f"{said}`public-markets rebuild --verify` writes anew" in found(published_site, 1)
        assert published_site.stored().keys() == whole.keys() - ({damaged} if body is None else set()), (
            "it repairs nothing"
        )


#: By what a store refuses: how it does so, and what is said of it.
REFUSALS: Final[dict[str, tuple[Callable[[Request], Fault | None], str]]] = {
    "every write": (
        lambda request: Fault(403, "AccessDenied") if request.method in ("PUT", "POST") else None,
        r"/probe-\w+\.json: PutObject was refused \(403 AccessDenied.*; allow .* s3:PutObject on markets/api/\*$",
    ),
    "conditions": (
        lambda request: Fault(501, "NotImplemented") if request.condition else None,
        r": does not support conditional puts \(If-Match, If-None-Match\), so two .*publish\.single_writer: true$",
    ),
    "another protocol": (
        lambda _: Fault(404, page="<html>Not Found", headers={"Content-Type": "text/html"}),
        r": http://\S+ does not speak S3: it answers GetObject with 404 and ",
    ),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_store_that_refuses_requests_is_reported_in_one_error(published_site: PublishedSite, refusal: str) -> None:
    published_site.server.before, said = REFUSALS[refusal]
    (line,) = [line for line in found(published_site, 1) if line.startswith("error")]
    assert re.match(f"error: {NAME}{said}", line), line


def test_a_key_that_may_not_delete_is_reported_by_the_operation(published_site: PublishedSite) -> None:
    behaviour = published_site.server.behaviour
    behaviour.delete_errors, behaviour.delete_code = 1.0, "AccessDenied"
    (line,) = [line for line in found(published_site, 1) if line.startswith("error")]
    assert ": DeleteObject was refused (AccessDenied: We failed.); allow these credentials s3:DeleteObject on " in line


def test_a_directory_is_checked_like_a_bucket(published_site: PublishedSite) -> None:
    published_site.target, published_site.settings["publish.endpoint_url"] = "./site", ""
    assert found(published_site) == [
        "fine: site: can be read; nothing is published there yet",
        "fine: site: can be written, and honours conditional puts",
    ]


# ── monitoring ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("minutes", "age"), [(0, "0 minutes"), (59, "59 minutes"), (179, "3 hours")])
def test_a_fresh_site_passes(published_site: PublishedSite, minutes: int, age: str) -> None:
    at(published_site, FIRST + timedelta(minutes=minutes))
    assert published_site.done("check", "--published").stdout == (
        f"{NAME}: 11 markets are published as of 2024-01-31T12:00:00.000Z, {age} ago\n"
    )
    assert published_site.requests("check", "--published") == ["GetObject manifest.json"]


def test_a_site_older_than_three_schedules_fails(published_site: PublishedSite) -> None:
    at(published_site, FIRST + timedelta(minutes=181))
    assert published_site.refused(1, "check", "--published") == (
        f"{NAME}: 11 markets are published as of 2024-01-31T12:00:00.000Z, 3 hours ago, which is more than 3 "
        "schedules of 60 minutes; check that cron runs, and how the last `public-markets rebuild` ended"
    )
    published_site.done("check", "--published", schedule="120")
    assert any("; check that cron runs" in line for line in found(published_site))


def test_a_site_from_the_future_fails_because_it_would_never_look_stale(published_site: PublishedSite) -> None:
    at(published_site, FIRST - timedelta(minutes=45))
    problem = (
        f"{NAME}: 11 markets are published as of 2024-01-31T12:00:00.000Z, 45 minutes from now: the clock of a machine "
        "that built was ahead; set it, then run `public-markets rebuild --accept older` once"
    )
    assert published_site.refused(1, "check", "--published") == problem
    assert f"warning: {problem}" in found(published_site)


@pytest.mark.parametrize(("minutes", "is_ahead"), [(0, False), (3, True)])
def test_whoever_publishes_a_site_from_the_future_is_told(
    published_site: PublishedSite, minutes: int, *, is_ahead: bool
) -> None:
    at(published_site, FIRST + timedelta(minutes=57))
    stderr = published_site.done("rebuild", "--as-of", f"2024-01-31T12:{57 + minutes - 1:02}:00Z").stderr
    assert ("which is ahead of the store's clock (2024-01-31T12:57" in stderr) is is_ahead


def test_an_empty_store_fails(empty: PublishedSite) -> None:
    assert empty.refused(1, "check", "--published") == (
        f"{NAME}: nothing is published there; run `public-markets rebuild`"
    )


NO_TARGET = {"publish__target": "", "publish__endpoint_url": ""}


@pytest.mark.parametrize(
    ("minutes", "problem"),
    [
        (10, None),
        (179, None),
        (182, "check that cron runs, and how the last `public-markets build` ended"),
        (-45, "this machine's clock was ahead when it built; set it, then run `public-markets build`"),
    ],
)
def test_without_a_target_the_output_folder_is_what_must_be_fresh_by_this_machines_clock(
    published_site: PublishedSite, minutes: int, problem: str | None
) -> None:
    built_at = datetime.now(UTC) - timedelta(minutes=minutes)
    published_site.done("build", "--as-of", built_at.isoformat(), **NO_TARGET)
    words = ("check", "--published")
    if problem is None:
        told = published_site.done(*words, **NO_TARGET).stdout
        assert f"/: 11 markets are published as of {built_at:%Y-%m-%dT%H:%M}" in told
        assert re.search(r", (1[01] minutes|3 hours) ago\n$", told)
        assert published_site.requests(*words, **NO_TARGET) == []
    else:
        assert published_site.refused(1, *words, **NO_TARGET).endswith(problem)


@contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """Serve everything in the folder, as a web server with the wrong root does; yield its address."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with serving(handler) as port:
        yield f"http://127.0.0.1:{port}"


def told_of_reading(lines: list[str]) -> list[str]:
    return [line.split(" at ")[0].partition("anyone can read ")[2] for line in lines if "anyone can read" in line]


def test_a_record_and_a_blocked_list_that_anyone_can_read_are_reported(published_site: PublishedSite) -> None:
    assert told_of_reading(found(published_site)) == []
    published_site.done("takedown", market_id(FX))
    published_site.server.behaviour.open_to_everyone = True
    assert told_of_reading(found(published_site)) == ["manifest.json", "blocked.json"]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("setting", ["base_url", "dumps__base_url"])
def test_what_readers_reach_by_an_address_of_the_settings_is_tried_there(
    published_site: PublishedSite, tmp_path: Path, setting: str
) -> None:
    store = tmp_path / "store"
    elsewhere = {"publish__target": str(store), "publish__endpoint_url": ""}
    published_site.done("publish", **elsewhere)
    published_site.done("takedown", market_id(FX), **elsewhere)
    with web_server(store) as address:
        told = published_site.run("check", **elsewhere, **{setting: address}).stdout.splitlines()
        assert told_of_reading(told) == ["manifest.json", "blocked.json"]
        assert f"anyone can read blocked.json at {address}/blocked.json, and so learns" in "".join(told)
    with web_server(store / "v1") as address:
        assert told_of_reading(published_site.run("check", **elsewhere, **{setting: address}).stdout.splitlines()) == []


@pytest.mark.parametrize(
    ("endpoint", "is_warned"),
    [("http://minio.example.com:9000", True), ("https://minio.example.com:9000", False), ("http://[::1]:9000", False)],
)
def test_an_endpoint_elsewhere_without_tls_is_reported(endpoint: str, *, is_warned: bool) -> None:
    publish = {"target": "s3://markets", "endpoint_url": endpoint}
    told = store_checks.plain_endpoint(Config.model_validate({"publish": publish}))
    assert (told is not None) == is_warned
    assert not told or told.startswith(f"publish.endpoint_url: {endpoint} is without TLS")
