"""The Cloudflare Worker in real workerd, with R2, cache and rate limit: over HTTP, as readers meet it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import contract, cursors, keys
from generator.api.contract import Variant
from generator.edge import cloudflare, responses, router
from generator.search.generation import BLOCK_SIZES
from tests.support.edges.cases import Case, on_the_wire
from tests.support.edges.cloudflare import (
    NODE_FOLDER,
    RunningWorker,
    as_handed_over,
    environment,
    mismatches,
    node,
    serving,
    write,
)
from tests.support.edges.servers import Answer
from tests.support.sites.builds import NO_LIMITS, OTHER_BUILDS, VARIANTS, Outputs, make_config
from tests.support.waiting import wait_until

#: Of the table's cases; a few more are answered by workerd itself.
CASES: Final[Mapping[Variant, int]] = {"core": 660, "extended": 820}
#: Of those, the ones whose path a URL object changes.
RESPELT: Final = 20
#: Of the table's methods, those that workerd refuses without asking a Worker.
UNKNOWN_METHODS: Final = frozenset(["CONNECT", "FOO", "get", "Get", "GETT", "BREW", "__proto__", "constructor"])
WALKED: Final = "all/new"
WALK_LIMIT: Final = 7
LIMIT, PERIOD = 5, 10
PREFIX: Final = "pm/räume/"
NOWHERE: Final = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def worker(demo_folder: Path, demo_output: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """A deployment that grants more than the tests ask for."""
    folder = tmp_path_factory.mktemp("cloudflare")
    wrangler = write(make_config(demo_folder, **NO_LIMITS), folder)
    with serving(wrangler, demo_output) as running:
        named = {str(case.key) for case in on_the_wire(demo_output) if case.status == HTTPStatus.OK and case.key}
        running.put(sorted(named | set(walked_keys(demo_output))))
        yield running


@pytest.fixture(scope="module")
def strict(demo_folder: Path, demo_output: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """A deployment with a small rate limit and a prefix, whose objects were uploaded without headers."""
    target = f"s3://markets/{PREFIX}"
    settings = make_config(
        demo_folder, rate_limit__requests=LIMIT, rate_limit__window=f"{PERIOD} s", publish__target=target
    )
    with serving(write(settings, tmp_path_factory.mktemp("strict")), demo_output) as running:
        wanted = keys.SNAPSHOT, next(key for key in walked_keys(demo_output) if keys.is_immutable(key))
        running.put(wanted, prefix=PREFIX, has_headers=False)
        yield running


def wanted(cases: Sequence[Case], output: Path) -> set[str]:
    """The keys of what is needed to answer the cases: the objects themselves, and all from which pages are cut."""
    named = {str(case.key) for case in cases if case.status == HTTPStatus.OK and case.key}
    made_of = [*(output / keys.LISTS).rglob(f"{keys.CHUNKS}/*/*.json")]
    if cases[0].can_search:  # Items are in `all/<sort>`, in its chunks or on its pages of these sizes.
        made_of += (output / keys.LISTS).glob("all/*/*/index.json")
        for size, following in pairwise([*BLOCK_SIZES, sys.maxsize]):
            pages = (output / keys.LISTS).glob(f"all/*/*/{size}-*/*.json")
            made_of += (path for path in pages if size <= int(path.stem) < following)
    return {*named, *(path.relative_to(output).as_posix() for path in made_of)}


def manifest(output: Path) -> Any:
    return json.loads((output / "manifest.json").read_text("utf-8"))


def generation(output: Path) -> str:
    return str(manifest(output)["current"][WALKED]["generation"])


def walked_keys(output: Path) -> list[str]:
    """The pages of a walk, in its order."""
    folder = output / keys.generation_prefix(WALKED, generation(output))
    pages = sorted(folder.glob(f"{WALK_LIMIT}-*/*.json"), key=lambda path: int(path.stem))
    return [keys.first_page(WALKED, WALK_LIMIT), *(path.relative_to(output).as_posix() for path in pages)]


def list_target(**parameters: object) -> str:
    status, sort = WALKED.split("/")
    given = {"status": status, "sort": sort, "limit": WALK_LIMIT, **parameters}
    return f"/{keys.MARKETS}?" + "&".join(f"{name}={value}" for name, value in given.items())


def has_cors(answer: Answer) -> bool:
    return all(answer.headers.get(name) == value for name, value in responses.COMMON.items())


def error(answer: Answer) -> contract.ErrorResponse:
    assert answer.headers["content-type"] == keys.CONTENT_TYPE
    assert has_cors(answer)
    return contract.ErrorResponse.model_validate_json(answer.body)


# ── the table of requests ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_every_case_of_the_table(worker: RunningWorker, demo_folder: Path, demo_output: Path, tmp_path: Path) -> None:
    core = router.render(make_config(demo_folder))
    cases = [case for case in on_the_wire(demo_output) if case.method not in UNKNOWN_METHODS]
    assert len(cases) >= CASES["core"]
    handed_over = as_handed_over(cases, core, tmp_path, demo_output)
    assert sum(case != seen for case, seen in zip(cases, handed_over, strict=True)) >= RESPELT
    wrong = mismatches(worker, handed_over, demo_output)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong[:10]])


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("build", OTHER_BUILDS)
def test_every_case_of_other_builds(build: str, demo_folder: Path, outputs: Outputs, tmp_path: Path) -> None:
    output = outputs(*build.split("-"))
    settings = make_config(demo_folder, **NO_LIMITS, **OTHER_BUILDS[build])
    cases = [case for case in on_the_wire(output) if case.method not in UNKNOWN_METHODS]
    assert len(cases) >= CASES[cases[0].variant]
    handed_over = as_handed_over(cases, router.render(settings), tmp_path, output)
    with serving(write(settings, tmp_path), output) as running:
        running.put(sorted(wanted(handed_over, output)))
        wrong = mismatches(running, handed_over, output)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong[:10]])


def test_methods_that_workerd_does_not_know_never_reach_the_worker(worker: RunningWorker, demo_output: Path) -> None:
    cases = [case for case in on_the_wire(demo_output) if case.method in UNKNOWN_METHODS]
    assert {case.method for case in cases} == UNKNOWN_METHODS
    for case in cases:
        assert worker.ask(case.target, case.method).status == (500 if case.method == "CONNECT" else 501)


# ── objects ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reader_who_has_the_object_gets_304_and_who_has_another_gets_this_one(worker: RunningWorker) -> None:
    target = f"/{keys.SNAPSHOT.removesuffix('.json')}"
    first = worker.ask(target)
    etag = first.headers["etag"]
    assert re.fullmatch('"[0-9a-f]{32}"', etag)
    for known in (etag, f"W/{etag}", f'"other", {etag}', f'"other",W/{etag}', "*"):
        again = worker.ask(target, if_none_match=known)
        assert (again.status, again.body) == (HTTPStatus.NOT_MODIFIED, b"")
        assert has_cors(again)
        assert [again.headers[name] for name in ("etag", "cache-control")] == [etag, first.headers["cache-control"]]
    for other in ('"other"', etag.strip('"'), f'"{etag}"', ""):
        assert worker.ask(target, if_none_match=other).body == first.body


def test_a_missing_page_is_a_400_and_a_missing_market_a_404(worker: RunningWorker, demo_output: Path) -> None:
    gone = cursors.mint(WALKED, generation(demo_output), 10**8 * WALK_LIMIT)
    withdrawn = worker.ask(list_target(cursor=gone))
    assert (withdrawn.status, error(withdrawn)) == (HTTPStatus.BAD_REQUEST, contract.invalid("cursor.gone"))
    unknown = worker.ask(f"/{keys.MARKETS}/{NOWHERE}")
    assert (unknown.status, error(unknown)) == (HTTPStatus.NOT_FOUND, contract.FIXED_ERRORS[404])


def test_what_a_bucket_without_a_build_lacks_is_no_mistake_of_the_reader(
    strict: RunningWorker, demo_output: Path
) -> None:
    gone = cursors.mint(WALKED, generation(demo_output), 10**8 * WALK_LIMIT)
    for target in (list_target(cursor=gone), f"/{keys.MARKETS}/{NOWHERE}"):
        answer = strict.ask(target, cf_connecting_ip="192.0.2.3")
        assert (answer.status, answer.headers["cache-control"]) == (HTTPStatus.SERVICE_UNAVAILABLE, "no-store")
        assert error(answer) == contract.FIXED_ERRORS[503]


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
        failed = broken.ask(list_target())
        assert (failed.status, error(failed).error) == (503, "temporarily unavailable")
        assert (failed.headers["cache-control"], failed.headers["retry-after"]) == ("no-store", "10")
        assert broken.ask(list_target(), "HEAD").body == b""
        assert [broken.ask(target).status for target in (list_target(limit=0), "/")] == [400, 404]
        assert [broken.ask("/", method).status for method in ("POST", "OPTIONS")] == [405, 204]


# ── the rate limit ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_a_burst_gets_429_until_it_has_waited_and_a_polite_reader_never(strict: RunningWorker) -> None:
    target = f"/{keys.SNAPSHOT.removesuffix('.json')}"
    burst = [strict.ask(target, cf_connecting_ip="192.0.2.1") for _ in range(4 * LIMIT)]
    polite = [strict.ask(target, cf_connecting_ip="2001:db8::1") for _ in range(LIMIT)]
    # Twice the limit passes if a period ends meanwhile.
    refused = [answer for answer in burst if answer.status != HTTPStatus.OK]
    assert {answer.status for answer in burst[:LIMIT]} == {HTTPStatus.OK}
    assert 2 * LIMIT <= len(refused) <= 3 * LIMIT
    for answer in refused:
        assert (answer.status, error(answer)) == (HTTPStatus.TOO_MANY_REQUESTS, contract.FIXED_ERRORS[429])
        assert (answer.headers["retry-after"], answer.headers["cache-control"]) == (str(PERIOD), "no-store")
    assert {answer.status for answer in polite} == {HTTPStatus.OK}
    wait_until(lambda: strict.ask(target, cf_connecting_ip="192.0.2.1").status == HTTPStatus.OK)


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
    page = next(key for key in walked_keys(demo_output) if keys.is_immutable(key))
    at = cursors.mint(WALKED, generation(demo_output), int(Path(page).stem))
    for key, target in ((keys.SNAPSHOT, f"/{keys.MARKETS}/snapshot"), (page, list_target(cursor=at))):
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
