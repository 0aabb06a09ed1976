"""What a server does that means harm: `verify` ends, in bounded memory, and asks nobody else."""

import gzip
import json
import re
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from itertools import chain, count, repeat
from typing import Any, Final

import pytest

from generator.progress import SILENT
from generator.verify import exchange
from generator.verify.contract.run import MOST_REQUESTS, verify_contract
from generator.verify.earlier_states import EarlierStates
from generator.verify.exchange import Connections, SlowError
from generator.verify.reader import LONGEST, NoAnswerError, SiteReader
from tests.support import commands
from tests.support.sites.rows import market_id

#: What answers a request: the pieces to send for its target.
Script = Callable[[str], Iterable[bytes]]
FILE: Final = f"v1/dumps/markets/{'0' * 32}.ndjson.gz"


class Hostile:
    """A server that sends whatever its script says; `asked` are the targets, `sent` the bytes that somebody took.

    `method` is that of the last request.
    """

    def __init__(self, script: Script) -> None:
        self.asked: list[str] = []
        self.method = ""
        self.sent = 0
        self._script = script
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            request = connection.recv(1 << 16)
            if not request:  # The client's time was over before it asked.
                return
            self.method, target, *_ = request.decode().split(" ")
            self.asked.append(target)
            for piece in self._script(target):
                connection.sendall(piece)
                self.sent += len(piece)


@contextmanager
def hostile(script: Script) -> Iterator[Hostile]:
    server = Hostile(script)
    threading.Thread(target=server.run, daemon=True).start()
    try:
        yield server
    finally:
        server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()


def answer(body: bytes, *headers: str) -> list[bytes]:
    lines = ["HTTP/1.1 200 OK", "Connection: close", "Content-Type: application/json", *headers, "", ""]
    return ["\r\n".join(lines).encode(), body]


def as_json(content: object) -> list[bytes]:
    return answer(json.dumps(content).encode(), "Access-Control-Allow-Origin: *")


def reader(server: Hostile) -> SiteReader:
    return SiteReader(server.url, 1e6, print, MOST_REQUESTS)


def test_answers_that_are_kept_have_a_bound_together() -> None:
    with hostile(lambda target: answer(b"0" * 190_000, f'ETag: "{target}"')) as server:
        asked = reader(server)
        tracemalloc.start()
        for number in range(200):
            asked.get(f"v1/{number}")
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    assert 30 << 20 < kept < 34 << 20 < 200 * 190_000


def slowly(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, one at a time, with a pause in which nobody's patience for silence ends."""
    pause = threading.Event()
    for piece in pieces:
        yield piece
        pause.wait(0.02)


# ── size ──────────────────────────────────────────────────────────────────────────────────────────────────────────

PLAIN: Final = b"0" * (64 << 20)
TOO_MUCH: Final[dict[str, tuple[Callable[[], list[bytes]], str]]] = {
    "a body": (lambda: answer(PLAIN), "sends more than 16,777,216 bytes"),
    "a small body that unpacks": (
        lambda: answer(gzip.compress(PLAIN, 1), "Content-Encoding: gzip"), "sends more than 16,777,216 bytes",
    ),
    "one packed twice": (
        lambda: answer(gzip.compress(gzip.compress(PLAIN, 1)), "Content-Encoding: gzip, gzip"),
        "has the Content-Encoding 'gzip, gzip', which was not asked for",
    ),
    "one that goes on": (
        lambda: answer(gzip.compress(b"{}") + PLAIN, "Content-Encoding: gzip"), "but something shorter or longer",
    ),
    "a head": (lambda: answer(b"{}", *(f"X-{n}: {'x' * 60_000}" for n in range(20))), "has a head of more than"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TOO_MUCH)
def test_what_is_too_much_is_not_read_to_its_end(kind: str) -> None:
    make, reason = TOO_MUCH[kind]
    sent = make()
    with hostile(lambda _: sent) as server:
        tracemalloc.start()
        with pytest.raises(NoAnswerError, match=re.escape(reason)):
            reader(server).get("v1/build.json")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 3 * LONGEST
    assert server.sent < 2 * LONGEST
    assert len(server.asked) == 1


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────

ENDLESS: Final[dict[str, Script]] = {
    "a body": lambda _: slowly([*answer(b"", "Content-Length: 100000"), *repeat(b"0", 10_000)]),
    "a head": lambda _: slowly([b"HTTP/1.1 200 OK\r\n", *repeat(b"X", 10_000)]),
    "answers that announce another": lambda _: repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a trailer": lambda _: chain(answer(b"0\r\n", "Transfer-Encoding: chunked"), repeat(b"X: y\r\n" * 999)),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_answer_without_an_end_is_left(kind: str) -> None:
    connections = Connections(answer_s=0.3)
    with (
        hostile(ENDLESS[kind]) as server,
        pytest.raises(SlowError),
        connections.sent("GET", f"{server.url}/", {}) as exchange,
    ):
        b"".join(exchange.body(LONGEST))


def _another_page(target: str, numbers: Iterator[int]) -> list[bytes]:
    """A site without a dump, whose list of all markets never ends."""
    if target == "/v1/build.json":
        return as_json(BUILD)
    if "/markets?" in target:
        number = next(numbers)
        return as_json({"items": [{**ITEM, "id": market_id(number)}], "nextCursor": f"c{number}"})
    return [b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n"]


BUILD: Final[dict[str, Any]] = {
    "asOf": "2026-01-31T12:00:00.000Z", "generator": "1", "layout": "pages", "variant": "core", "markets": 1,
    "lists": {}, "snapshotSize": 6,
}  # fmt: skip
ITEM: Final[dict[str, Any]] = {
    "question": "?", "status": "open", "prob": 0.5, "volume": 1, "closeTime": "2026-02-01T00:00:00.000Z",
    "resolution": None, "createdAt": "2026-01-01T00:00:00.000Z", "resolvedAt": None,
    "lastActivityAt": "2026-01-01T00:00:00.000Z", "traderCount": 1, "fills24h": 1, "acceptingBets": True,
}  # fmt: skip


@pytest.mark.parametrize("options", [(), ("--contract",), ("--json",)])
def test_a_run_that_takes_too_long_ends_as_broken(options: tuple[str, ...]) -> None:
    numbers = count(1)
    script: Script = (
        (lambda _: slowly([*answer(b"", "Content-Length: 100000"), *repeat(b"0", 10_000)]))
        if options == ("--contract",)
        else (lambda target: _another_page(target, numbers))
    )
    with hostile(script) as server:
        ended = commands.run("verify", server.url, "--rate", "1e6", "--timeout", "1", *options)
    assert ended.returncode == 9, ended.stderr
    assert "the run ended here, after 1 second; give a large site more by --timeout" in ended.stdout
    assert len(server.asked) > (0 if options == ("--contract",) else 5)


# ── whom it asks ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "key",
    [
        "v1/dumps/../../admin", "v1/dumps/markets/../../x.ndjson.gz", f"v1/changes/{'0' * 32}.ndjson.gz?x=y",
        f"v1/dumps/markets/{'0' * 32}.ndjson.gz\n", f"v1/dumps//{'0' * 32}.parquet", "v1/dumps/head.json", "",
        f"v1/dumps/history/period=2026-1/{'0' * 32}.parquet", f"v1/dumps/fills/state=open/part=../{'0' * 32}.parquet",
    ],
)  # fmt: skip
def test_what_is_the_name_of_no_file_is_not_asked_for(key: str) -> None:
    with hostile(lambda _: answer(b"")) as server:
        with pytest.raises(NoAnswerError, match="is the name of no file"):
            reader(server).file(key, 10)
        assert server.asked == []


def test_another_host_is_asked_only_if_its_address_is_given() -> None:
    absent = [b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n"]
    with hostile(lambda _: answer(b"few")) as other, hostile(lambda _: absent) as server:
        assert reader(server).file(FILE, 3).answer.status == 404
        assert other.asked == []
        given = SiteReader(server.url, 1e6, print, files_url=f"{other.url}/below/")
        assert given.file(FILE, 3).content.size == 3
    assert other.asked == [f"/below/{FILE}"]


# ── HEAD: the head, and what must not follow it ───────────────────────────────────────────────────────────────────

HEAD: Final = b'HTTP/1.1 200 OK\r\nETag: "x"\r\nContent-Length: 2\r\n\r\n'


@pytest.mark.parametrize("body", [b"", b"{}"])
@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"])
def test_what_follows_the_head_is_seen(before: bytes, body: bytes) -> None:
    with hostile(lambda _: [before + HEAD + body]) as server:
        found = exchange.ask_bare_head(f"{server.url}/a?b=%20c", {})
    assert found == (200, {"etag": '"x"', "content-length": "2"}, body)
    assert (server.method, server.asked) == ("HEAD", ["/a?b=%20c"])


@pytest.mark.parametrize("raw", [b"", b"\x16\x03\x01", b"SSH-2.0-OpenSSH\r\n"])
def test_what_is_no_answer_to_head_is_refused(raw: bytes) -> None:
    with hostile(lambda _: [raw]) as server, pytest.raises(HTTPException):
        exchange.ask_bare_head(f"{server.url}/", {})


# ── content ───────────────────────────────────────────────────────────────────────────────────────────────────────

MALFORMED: Final = {
    "no list": {"items": 5, "nextCursor": None},
    "an id that is a path": {"items": [{"id": "../../admin?x="}], "nextCursor": "x" * 70_000},
    "an id with a line break": {"items": [{"id": "x\r\nHost: y"}], "nextCursor": "\r\n"},
    "more than a page": {"items": [*[{**ITEM, "id": market_id(n)} for n in range(101)], 5], "nextCursor": None},
    "nothing": None,
}


@pytest.mark.parametrize("kind", [*MALFORMED, "deep", "not finite"])
def test_no_body_is_a_bug(kind: str) -> None:
    body = {
        "deep": b'{"items":' + b"[" * 100_000,
        "not finite": json.dumps({"items": [{**ITEM, "id": market_id(1)}], "nextCursor": None})
        .replace("0.5", "1e400").replace('"volume": 1', '"volume": NaN').encode(),
    }.get(kind) or json.dumps(MALFORMED[kind]).encode()  # fmt: skip
    with hostile(lambda _: answer(body)) as server:
        found = verify_contract(reader(server), (), SILENT)
    assert found.mismatches
    assert not any("admin" in target or "\n" in target for target in server.asked)


@pytest.mark.parametrize("value", [{"question": 5}, {"createdAt": "now"}, {"categories": "all"}, {"status": None}])
def test_a_step_that_tells_what_no_market_can_be_is_refused(value: dict[str, object]) -> None:
    """Feeds are made anew of what a step says that a market was."""
    with pytest.raises(ValueError, match=next(iter(value))):
        EarlierStates(["a", "b"], [[{"id": market_id(1), **value}], [{"id": market_id(1), "question": "q"}]], {})


def test_a_step_that_repeats_a_market_is_refused() -> None:
    with pytest.raises(ValueError, match="more than twice"):
        EarlierStates(["a"], [[{"id": market_id(1), "prob": 0.5}] * 3], {})
