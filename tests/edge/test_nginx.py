"""The rendered nginx configuration, run as it stands by a real nginx."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract, keys
from generator.api.contract import Variant
from generator.config.downloads import Dumps
from generator.config.settings import Config, Publish
from generator.edge import deployment
from generator.edge import nginx as nginx_values
from generator.stores.directory import Directory
from generator.stores.store import If
from tests.support.edges.cases import is_error, mismatches, on_the_wire
from tests.support.edges.servers import Answer, Client, connected, folder_for_anybody, free_port, nginx
from tests.support.edges.serving import exchange, page, target
from tests.support.sites.builds import CHUNKED, NO_LIMITS, OTHER_BUILDS, build_now, make_config
from tests.support.waiting import wait_until

CASES: Final[Mapping[Variant, int]] = {"core": 660, "extended": 820}
MARKETS: Final = f"/{keys.MARKETS}"


@contextmanager
def built(database: Path, **settings: str) -> Iterator[tuple[Path, int]]:
    """The output of a build for an nginx without a noticeable rate limit, and its port."""
    with folder_for_anybody() as folder:
        (folder / "markets.db").write_bytes(database.read_bytes())
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        build_now(make_config(folder, base_url=url, **{**NO_LIMITS, **settings}))
        yield folder / "output", port


@pytest.fixture(scope="module")
def output(demo_folder: Path) -> Iterator[Path]:
    with built(demo_folder / "markets.db") as (output, port), nginx(output, port):
        (output.parent / "port").write_text(str(port))
        yield output


@pytest.fixture
def client(output: Path) -> Iterator[Client]:
    with connected(int((output.parent / "port").read_text())) as client:
        yield client


def wrong_answers(output: Path, client: Client) -> list[str]:
    """Run the whole table."""
    cases = on_the_wire(output)
    assert len(cases) >= CASES[cases[0].variant]
    return mismatches(cases, (client.send(case.method, case.target) for case in cases), output)


def test_every_case_of_the_table(output: Path, client: Client) -> None:
    assert wrong_answers(output, client) == []


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("build", OTHER_BUILDS)
def test_every_case_of_other_builds(build: str, demo_folder: Path) -> None:
    settings = OTHER_BUILDS[build]
    with (
        built(demo_folder / "markets.db", **settings) as (output, port),
        nginx(output, port),
        connected(port) as client,
    ):
        assert wrong_answers(output, client) == []


def test_the_reads_that_a_page_needs_are_no_requests_of_the_reader(demo_folder: Path) -> None:
    rate = {"rate_limit__requests": "20", "rate_limit__window": "60 s", **CHUNKED}
    with built(demo_folder / "markets.db", **rate) as (output, port), nginx(output, port), connected(port) as client:
        place = page(client, status="all", sort="new", limit=20)["nextCursor"]
        later = target(status="all", sort="new", limit=100, cursor=place)
        assert [client.send("GET", later).status for _ in range(30)].count(200) in (20, 21)


def test_what_was_replaced_within_a_second_is_sent_again(output: Path, client: Client) -> None:
    store, path, body = Directory(output), output / keys.OPENAPI, (output / keys.OPENAPI).read_bytes()
    etags, seconds = list[str](), [0, 1]
    while seconds[0] != seconds[1]:
        seconds = list[int]()
        for letter in (b"Q", b"R"):
            store.put(keys.OPENAPI, body.replace(b"a", letter), If.ALWAYS)
            found = path.stat()
            etags.append(f'"{int(found.st_mtime):x}-{found.st_size:x}"')
            seconds.append(int(found.st_ctime))
    wait_until(lambda: client.send("GET", f"/{keys.OPENAPI}").body == path.read_bytes())
    assert client.send("GET", f"/{keys.OPENAPI}").headers["etag"] == etags[-1] != etags[-2]
    assert client.send("GET", f"/{keys.OPENAPI}", If_None_Match=etags[-1]).status == 304
    assert client.send("GET", f"/{keys.OPENAPI}", If_None_Match=etags[-2]).status == 200
    store.put(keys.OPENAPI, body, If.ALWAYS)


def test_a_range_is_no_reason_to_send_a_part(client: Client) -> None:
    assert client.send("GET", MARKETS, Range="bytes=0-9").status == 200


@pytest.mark.parametrize(
    "request_line", ["GET", "GET / HTTP/2.5", "GET /%zz HTTP/1.1", f"GET /{'a' * 70_000} HTTP/1.1", "\x00 / HTTP/1.1"]
)
def test_what_nginx_cannot_read_gets_the_contracts_error(output: Path, request_line: str) -> None:
    port = int((output.parent / "port").read_text())
    received = exchange(port, f"{request_line}\r\nHost: x\r\n\r\n".encode())
    assert received.startswith(b"HTTP/1.1 400 Bad Request")
    assert b"access-control-allow-origin: *" in received
    assert received.endswith(contract.encode(contract.FIXED_ERRORS[400]))


def test_the_whole_url_in_the_request_line_is_as_good_as_its_path(client: Client) -> None:
    written = [client.send("GET", f"{host}{MARKETS}?limit=3").body for host in ("http://127.0.0.1", "")]
    assert written[0] == written[1]


@pytest.fixture
def limited(demo_folder: Path) -> Iterator[Client]:
    """An nginx that grants 20 requests every 2 seconds."""
    rate = {"rate_limit__requests": "20", "rate_limit__window": "2 s"}
    with built(demo_folder / "markets.db", **rate) as (output, port), nginx(output, port), connected(port) as client:
        yield client


@pytest.mark.campaign(short=0)
def test_a_polite_client_never_sees_429_but_a_burst_does(limited: Client) -> None:
    for _ in range(3):  # a full window's worth at once, as often as the window allows
        assert {limited.send("GET", MARKETS).status for _ in range(20)} == {200}
        time.sleep(2)
    burst: list[Answer] = []

    def is_fast_enough() -> bool:
        begun = time.monotonic()
        burst[:] = [limited.send("GET", MARKETS) for _ in range(60)]
        duration = time.monotonic() - begun
        time.sleep(2 if duration > 1 else 0)
        return duration < 1  # or ten more were granted

    wait_until(is_fast_enough)
    refused = [answer for answer in burst if answer.status != 200]
    assert {answer.status for answer in burst[:20]} == {200}
    assert len(refused) >= 30
    assert all(is_error(answer, 429, retry_after="2") for answer in refused)
    wait_until(lambda: limited.send("GET", MARKETS).status == 200)


@pytest.mark.parametrize("requests", [1, 7, 300, 1000, 1_000_000])
@pytest.mark.parametrize("seconds", [1, 7, 60, 600, 86_400])
def test_the_rate_is_the_smallest_nginx_has_that_grants_what_is_configured(requests: int, seconds: int) -> None:
    rate = nginx_values.rate_per_minute(requests, seconds)

    def granted(per_minute: int) -> int:
        return per_minute * 1000 // 60 * seconds  # thousandths of a request, as nginx computes them

    assert granted(rate) >= requests * 1000
    assert rate == 1 or granted(rate - 1) < requests * 1000


# ── patterns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


#: How nginx writes a string.
_STRING: Final = r'"((?:[^"\\]|\\.)*)"'
_LOCATION: Final = re.compile(rf"^\s*location ~\*? {_STRING} \{{$", re.MULTILINE)
_MAP: Final = re.compile(r"^\s*map (.*?) \$\w+ \{$(.*?)^\s*\}$", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r'^\s*"~\*?((?:[^"\\]|\\.)*)" ', re.MULTILINE)
#: `*`, `+` and `{n,}` behind anything but a backslash, outside sets of characters.
_UNBOUNDED: Final = re.compile(r"[*+]|\{\d+,\}")
_SET_OR_ESCAPE: Final = re.compile(r"\\.|\[(?:[^\]\\]|\\.)+\]")
_SITES: Final = {
    "files": Config(dumps=Dumps(parquet=True)),
    "fills": Config(dumps=Dumps(parquet=True, fills=True)),
    "searches": Config(variant="extended", dumps=Dumps(parquet=True)),
    "below a path": Config(base_url="https://example.com/a.p+i/(x", dumps=Dumps(parquet=True)),
    "bucket": Config(
        variant="extended",
        dumps=Dumps(parquet=True),
        publish=Publish(target="s3://markets-example", endpoint_url="https://s3.example.com"),
    ),
}


def of_configuration(text: str) -> list[str]:
    """The patterns that nginx tries on what readers send: those of locations, and of maps of the request's target."""
    maps = [entries for source, entries in _MAP.findall(text) if "$request_uri" in source]
    found = _LOCATION.findall(text) + [entry for entries in maps for entry in _ENTRY.findall(entries)]
    return [re.sub(r'\\(["\\])', r"\1", one) for one in found]


def unbounded_parts(pattern: str) -> int:
    """How many parts of the pattern match any number of characters."""
    return len(_UNBOUNDED.findall(_SET_OR_ESCAPE.sub("x", pattern)))


def patterns_of(config: Config) -> list[str]:
    """The patterns in everything that a build renders for nginx."""
    texts = [file.text for file in deployment.render(config) if f"/{nginx_values.FOLDER}/" in file.name]
    return sorted({pattern for text in texts for pattern in of_configuration(text)})


@pytest.mark.parametrize("site", _SITES)
def test_nginx_tries_patterns_that_are_anchored_and_have_one_unbounded_part_at_most(site: str) -> None:
    found = patterns_of(_SITES[site])
    assert len(found) >= 3
    assert [one for one in found if not one.startswith("^")] == []
    assert [one for one in found if unbounded_parts(one) > 1] == []
