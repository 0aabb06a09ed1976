"""The rendered nginx configuration, run as it stands by a real nginx: what is nginx's own."""

import json
import re
from collections.abc import Iterator
from typing import Final

import pytest

from generator.api import contract, keys
from generator.config.downloads import Dumps
from generator.config.settings import Config, Publish
from generator.edge import deployment
from generator.edge import nginx as nginx_values
from generator.stores.directory import Directory
from generator.stores.store import If
from tests.support.edges.edge_sites import EdgeSite, edge_site, target
from tests.support.edges.serving import exchange
from tests.support.edges.windows import LISTS
from tests.support.readers import lists
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def edge() -> Iterator[EdgeSite]:
    with edge_site("cached-nginx", "pages") as running:
        lists.write(running.output / keys.OPENAPI, b'{"a":"a"}')
        running.put_pages(LISTS["open/volume"], 3)
        yield running


def test_the_reads_that_a_page_needs_are_no_requests_of_the_reader() -> None:
    with edge_site("cached-nginx", "chunks", rate_limit__requests="20", rate_limit__window="60 s") as edge:
        edge.put(LISTS["all/new"])
        place = json.loads(edge.ask("all/new", 20).body)["nextCursor"]
        later = target("all/new", 100, place)
        assert [edge.client.send("GET", later).status for _ in range(30)].count(200) in (20, 21)


def test_what_was_replaced_within_a_second_is_sent_again(edge: EdgeSite) -> None:
    client, path, body = edge.client, edge.output / keys.OPENAPI, (edge.output / keys.OPENAPI).read_bytes()
    store = Directory(edge.output)
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


@pytest.mark.parametrize(
    "request_line", ["GET", "GET / HTTP/2.5", "GET /%zz HTTP/1.1", f"GET /{'a' * 70_000} HTTP/1.1", "\x00 / HTTP/1.1"]
)
def test_what_nginx_cannot_read_gets_the_contracts_error(edge: EdgeSite, request_line: str) -> None:
    received = exchange(edge.client.port, f"{request_line}\r\nHost: x\r\n\r\n".encode())
    assert received.startswith(b"HTTP/1.1 400 Bad Request")
    assert b"access-control-allow-origin: *" in received
    assert received.endswith(contract.encode(contract.FIXED_ERRORS[400]))


def test_the_whole_url_in_the_request_line_is_as_good_as_its_path(edge: EdgeSite) -> None:
    asked = target("open/volume", 3)
    written = [edge.client.send("GET", f"{host}{asked}").body for host in ("http://127.0.0.1", "")]
    assert written[0] == written[1]


@pytest.mark.parametrize("requests", [1, 7, 300, 1000, 1_000_000])
@pytest.mark.parametrize("seconds", [1, 7, 60, 600, 86_400])
def test_the_rate_is_the_smallest_nginx_has_that_grants_what_is_configured(requests: int, seconds: int) -> None:
    rate = nginx_values.rate_per_minute(requests, seconds)

    def granted(per_minute: int) -> int:
        return per_minute * 1000 // 60 * seconds  # thousandths of a request, as nginx computes them

    assert granted(rate) >= requests * 1000
    assert rate == 1 or granted(rate - 1) < requests * 1000


# ── patterns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


_STRING: Final = r'"((?:[^"\\]|\\.)*)"'
_LOCATION: Final = re.compile(rf"^\s*location ~\*? {_STRING} \{{$", re.MULTILINE)
_MAP: Final = re.compile(r"^\s*map [^\n]*\$request_uri[^\n]* \$\w+ \{$(.*?)^\s*\}$", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r'^\s*"~\*?((?:[^"\\]|\\.)*)" ', re.MULTILINE)
_SET_OR_ESCAPE: Final = re.compile(r"\\.|\[(?:[^\]\\]|\\.)+\]")
_ALL: Final = Config(variant="extended", dumps=Dumps(parquet=True, fills=True))
_BUCKET: Final = Publish(target="s3://markets-example", endpoint_url="https://s3.example.com")


@pytest.mark.parametrize("changed", [{}, {"base_url": "https://example.com/a.p+i/(x"}, {"publish": _BUCKET}])
def test_patterns_for_what_readers_send_are_anchored_and_have_one_unbounded_part_at_most(
    changed: dict[str, object],
) -> None:
    files = deployment.render(_ALL.model_copy(update=changed))
    texts = [file.text for file in files if f"/{nginx_values.FOLDER}/" in file.name]
    found = {one for text in texts for one in _LOCATION.findall(text) + _ENTRY.findall("\n".join(_MAP.findall(text)))}
    assert len(found) >= 3
    for pattern in found:
        plain = _SET_OR_ESCAPE.sub("x", re.sub(r'\\(["\\])', r"\1", pattern))
        assert plain.startswith("^"), pattern
        assert len(re.findall(r"[*+]|\{\d+,\}", plain)) <= 1, pattern
