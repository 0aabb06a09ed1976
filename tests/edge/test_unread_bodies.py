"""nginx answers requests that announce a body as those without one: it neither waits for it nor takes it for a request.

A Worker never sees a request before its platform does, and `serve` is for looking at things.
"""

import http.client
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import product
from typing import Final

import pytest

from generator.api import contract, keys
from generator.tree.generation import ItemList
from tests.support.campaigns import full_tier
from tests.support.edges.edge_sites import CACHED, EdgeSite, edge_site
from tests.support.edges.servers import Answer
from tests.support.sites.rows import market_id
from tests.support.waiting import PATIENCE_S

_FILE: Final = f"v1/dumps/markets/{'0' * 32}.ndjson.gz"
_LIST: Final = "/v1/public/markets"
#: Objects, answers made of objects, refusals, and what is missing; each is asked for in several ways.
REQUESTS: Final = tuple(
    f"{method} {target}"
    for method, target in (
        *product(("GET", "HEAD"), (_LIST, f"/{keys.BUILD}", f"/{keys.LLMS}", f"/{_FILE}")),
        *product(("GET",), (f"{_LIST}?limit=0", f"{_LIST}/{market_id(1)}", "/v1//", f"/{_FILE.replace('0.', '1.')}")),
        *product(("OPTIONS", "POST", "DELETE"), (_LIST, f"/{keys.LLMS}", f"/{_FILE}")),
    )
)
#: What a body may hold that is no request.
SMUGGLED: Final = f"GET {_LIST}?limit=0 HTTP/1.1\r\nHost: x\r\n\r\n"
ANNOUNCED: Final = {
    f"Content-Length: {len(SMUGGLED)}": SMUGGLED,
    "Transfer-Encoding: chunked": f"{len(SMUGGLED):x}\r\n{SMUGGLED}\r\n0\r\n\r\n",
}
#: What may differ from one answer to the next; the last is only in those of a bucket that are not kept.
_VARYING: Final = ("date", "connection", "keep-alive", "accept-ranges")
SITES: Final = tuple(f"{name} {layout}" for name, layout in product(("nginx", "bucket", *CACHED), ("pages", "chunks")))
SHORT: Final = ["cached-nginx chunks", "nginx pages", "bucket chunks"]


@pytest.fixture(scope="module", params=full_tier(SITES, short=SHORT))
def edge(request: pytest.FixtureRequest) -> Iterator[EdgeSite]:
    name, layout = request.param.split()
    with edge_site(name, layout, dumps__parquet="true") as running:
        running.put_objects({key: contract.encode({"key": key}).decode() for key in (_FILE, keys.LLMS)})
        running.put(ItemList("open/popular", [contract.encode({"id": market_id(1)})]))
        yield running


@pytest.mark.parametrize("announced", ANNOUNCED)
def test_a_body_is_neither_waited_for_nor_taken_for_a_request(edge: EdgeSite, announced: str) -> None:
    build = edge.client.send("GET", f"/{keys.BUILD}").body
    for request in REQUESTS:
        method, _, target = request.partition(" ")
        plain = edge.client.send(method, target)
        with closing(socket.create_connection(("127.0.0.1", edge.client.port), PATIENCE_S)) as connection:
            connection.sendall(f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{announced}\r\n\r\n".encode())
            assert (request, shown(received(connection, method))) == (request, shown(plain))
            following = f"{ANNOUNCED[announced]}GET /{keys.BUILD} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            with suppress(ConnectionError):  # the edge may close the connection instead
                connection.sendall(following.encode())
                answer = received(connection, "GET")
                assert answer is None or (request, answer.body) == (request, build)


def received(connection: socket.socket, method: str) -> Answer | None:
    """The next answer; None if the connection is closed instead."""
    response = http.client.HTTPResponse(connection, method=method)
    try:
        response.begin()
    except http.client.RemoteDisconnected:
        return None
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def shown(answer: Answer | None) -> Answer | None:
    if answer is None:
        return None
    kept = {name: value for name, value in answer.headers.items() if name not in _VARYING}
    return Answer(answer.status, kept, answer.body)
