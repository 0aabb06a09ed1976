"""The Cloudflare Worker in real workerd, with R2, cache and rate limit: over HTTP, as readers meet it."""

import json
import re
import subprocess
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import cursors, keys
from generator.edge import cloudflare
from tests.support.edges.cases import is_error, on_the_wire
from tests.support.edges.cloudflare import (
    NODE_FOLDER,
    UNKNOWN_METHODS,
    RunningWorker,
    environment,
    node,
    serving,
    write,
)
from tests.support.sites.builds import NO_LIMITS, VARIANTS, make_config
from tests.support.waiting import wait_until

LIMIT, PERIOD = 5, 10
PREFIX: Final = "pm/räume/"
NOWHERE: Final = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def worker(demo_folder: Path, demo_output: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """A deployment that grants more than the tests ask for."""
    folder = tmp_path_factory.mktemp("cloudflare")
    wrangler = write(make_config(demo_folder, **NO_LIMITS), folder)
    with serving(wrangler, demo_output) as running:
        running.put([keys.BUILD, keys.SNAPSHOT])
        yield running


@pytest.fixture(scope="module")
def strict(demo_folder: Path, demo_output: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """A deployment with a small rate limit and a prefix, whose objects were uploaded without headers."""
    target = f"s3://markets/{PREFIX}"
    settings = make_config(
        demo_folder, rate_limit__requests=LIMIT, rate_limit__window=f"{PERIOD} s", publish__target=target
    )
    with serving(write(settings, tmp_path_factory.mktemp("strict")), demo_output) as running:
        running.put([keys.SNAPSHOT, later_page(demo_output, 7)[0]], prefix=PREFIX, has_headers=False)
        yield running


def later_page(output: Path, position: int) -> tuple[str, str]:
    """The key of a page in mid-walk, and a request for it."""
    (path,) = (output / keys.list_prefix("all/new")).glob(f"p*/7-0/{position}.json")
    cursor = cursors.mint("all/new", path.parts[-3], position)
    return path.relative_to(output).as_posix(), f"/{keys.MARKETS}?status=all&sort=new&limit=7&cursor={cursor}"


def test_methods_that_workerd_does_not_know_never_reach_the_worker(worker: RunningWorker, demo_output: Path) -> None:
    cases = [case for case in on_the_wire(demo_output) if case.method in UNKNOWN_METHODS]
    assert {case.method for case in cases} == UNKNOWN_METHODS
    for case in cases:
        assert worker.ask(case.target, case.method).status == (500 if case.method == "CONNECT" else 501)


# ── objects ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_bucket_without_a_build_lacks_is_no_mistake_of_the_reader(
    strict: RunningWorker, demo_output: Path
) -> None:
    for target in (later_page(demo_output, 14)[1], f"/{keys.MARKETS}/{NOWHERE}"):
        assert is_error(strict.ask(target, cf_connecting_ip="192.0.2.3"), 503)


def test_the_cache_knows_objects_by_their_key_and_no_missing_ones(worker: RunningWorker, demo_output: Path) -> None:
    market = next(path for path in (demo_output / keys.DETAILS).glob("*/*.json") if path.stem != NOWHERE)
    key, target = market.relative_to(demo_output).as_posix(), f"/{keys.MARKETS}/{market.stem}"
    worker.delete(key)
    if worker.ask(target).status == HTTPStatus.OK:
        pytest.fail("another test left the market in the cache")
    worker.put([key])
    assert worker.ask(f"{target}?a=1").body == market.read_bytes()
    worker.delete(key)
    # The cache is filled after the answer.
    wait_until(lambda: worker.ask(f"/{keys.MARKETS}/{market.stem.upper()}?b=2").status != 404)
    cached = worker.ask(f"/{keys.MARKETS}/{market.stem.upper()}?b=2")
    assert cached.body == market.read_bytes()
    assert {name: cached.headers[name.lower()] for name in keys.headers(key)} == keys.headers(key)
    assert "cf-cache-status" not in cached.headers
    assert worker.ask(target, if_none_match=cached.headers["etag"]).status == HTTPStatus.NOT_MODIFIED


def test_a_bucket_that_fails_is_a_503_and_refusals_need_no_bucket(
    demo_folder: Path, demo_output: Path, tmp_path: Path
) -> None:
    wrangler = write(make_config(demo_folder), tmp_path)
    text, count = re.subn(r'\n.*"r2_buckets".*', "", wrangler.read_text("utf-8"))
    assert count == 1
    wrangler.write_text(text, "utf-8")
    with serving(wrangler, demo_output) as broken:
        assert is_error(broken.ask(f"/{keys.MARKETS}"), 503)
        assert broken.ask(f"/{keys.MARKETS}", "HEAD").body == b""
        assert [broken.ask(target).status for target in (f"/{keys.MARKETS}?limit=0", "/")] == [400, 404]
        assert [broken.ask("/", method).status for method in ("POST", "OPTIONS")] == [405, 204]


# ── the rate limit ────────────────────────────────────────────────────────────────────────────────────────────────


def test_half_an_ipv6_address_is_counted(strict: RunningWorker) -> None:
    target = f"/{keys.SNAPSHOT.removesuffix('.json')}"

    def refused(pattern: str) -> int:
        answers = (strict.ask(target, cf_connecting_ip=pattern.format(number)) for number in range(4 * LIMIT))
        return sum(answer.status == HTTPStatus.TOO_MANY_REQUESTS for answer in answers)

    assert 2 * LIMIT <= refused("2001:db8:0:1:{:x}::1") <= 3 * LIMIT
    assert refused("2001:db8:1:{:x}::1") == 0


# ── the configuration ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_prefix_is_honoured_and_headers_that_were_not_stored_are_added(
    strict: RunningWorker, demo_output: Path
) -> None:
    for key, target in ((keys.SNAPSHOT, f"/{keys.MARKETS}/snapshot"), later_page(demo_output, 7)):
        answer = strict.ask(target, cf_connecting_ip="192.0.2.2")
        assert answer.body == (demo_output / key).read_bytes()
        wanted = keys.headers(key, keys.UNPURGED_IMMUTABLE)
        assert {name: answer.headers[name.lower()] for name in wanted} == wanted


# ── wrangler's configuration ──────────────────────────────────────────────────────────────────────────────────────────


def configuration(folder: Path) -> Any:
    """What wrangler reads."""
    text = (folder / cloudflare.WRANGLER).read_text("utf-8")
    return json.loads(re.sub(r"^ *//.*$", "", text, flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("requests", "window", "granted"),
    [
        (300, 60, (300, 60)),
        (5, 10, (5, 10)),
        (5, 1, (50, 10)),
        (100, 30, (200, 60)),
        (1000, 300, (200, 60)),
        (100, 3600, (2, 60)),
        (1, 86400, (1, 60)),
    ],
)
def test_the_binding_grants_the_rate_in_a_period_it_has(
    requests: int, window: int, granted: tuple[int, int], tmp_path: Path
) -> None:
    settings = {"rate_limit__requests": requests, "rate_limit__searches": 2 * requests, "rate_limit__window": window}
    for variant in VARIANTS:
        write(make_config(tmp_path, variant=variant, **settings), tmp_path)
        assert f'"retry-after":"{granted[1]}"' in (tmp_path / cloudflare.WORKER).read_text("utf-8")
        limits = {one["name"]: one for one in configuration(tmp_path)["ratelimits"]}
        assert limits["RATE_LIMITER"]["simple"] == {"limit": granted[0], "period": granted[1]}
        assert (len(limits) == 2) is (variant == "extended")
    of_searches = limits["SEARCH_LIMITER"]
    assert of_searches["simple"]["period"] == granted[1]
    assert 2 * granted[0] - 1 <= of_searches["simple"]["limit"] <= 2 * granted[0]
    assert of_searches["namespace_id"] != limits["RATE_LIMITER"]["namespace_id"]


@pytest.mark.parametrize(
    ("base_url", "name", "routes"),
    [
        ("http://127.0.0.1:8000", "public-markets", None),
        (
            "https://api.example.com",
            "public-markets-api-example-com",
            [{"pattern": "api.example.com", "custom_domain": True}],
        ),
        ("https://example.com/markets", "public-markets-example-com", [{"pattern": "example.com/markets/*"}]),
    ],
)
def test_the_configuration_names_what_the_settings_say(base_url: str, name: str, routes: Any, tmp_path: Path) -> None:
    settings = make_config(tmp_path, base_url=base_url, publish__target="s3://markets/pm")
    write(settings, tmp_path)
    found = configuration(tmp_path)
    assert (found["name"], found.get("routes"), found["workers_dev"]) == (name, routes, routes is None)
    assert found["r2_buckets"] == [{"binding": "BUCKET", "bucket_name": "markets"}]


def test_wrangler_accepts_the_worker_and_its_configuration(tmp_path: Path) -> None:
    wrangler = write(make_config(tmp_path, base_url="https://api.example.com"), tmp_path)
    command = node("wrangler"), NODE_FOLDER / "node_modules" / "wrangler" / "bin" / "wrangler.js", "deploy", "--dry-run"
    done = subprocess.run(
        [*command, "--config", wrangler, "--outdir", tmp_path / "bundle"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    assert "env.BUCKET" in done.stdout
    assert "env.RATE_LIMITER" in done.stdout
