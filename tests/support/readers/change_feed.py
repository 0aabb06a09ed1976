"""A site that has a dump and a change feed only, over HTTP in this process: for programs that follow one."""

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from tests.downloads import states
from tests.downloads.states import Feed, State
from tests.support.edges import servers
from tests.support.edges.servers import QuietHandler

HEAD: Final = "/v1/changes/head.json"


@dataclass
class Answer:
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class ChangeFeedSite:
    """What the server answers by path, and the paths it was asked for.

    Like an edge, it compresses the head for those who accept that, and answers 304 to those who have it. `sent` has the
    status of each answer and the bytes of its body.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers = dict[str, Answer]()
        self.asked = list[str]()
        self.sent = list[tuple[int, int]]()
        self.feed = Feed({})
        self.head = dict[str, Any]()
        self.serial = 0

    def begin(self, state: State, session: str = "a" * 32) -> None:
        """Publish a dump without steps."""
        self.feed, self.serial, self.head = Feed(state), 1, {"session": session}
        self._publish()

    def move(self, state: State) -> None:
        """Publish the next state, unless it is the same."""
        if state != self.feed.state:
            self.feed.move(state)
            self.serial += 1
            self._publish()

    def put_head(self) -> None:
        self.answers[HEAD] = Answer(json.dumps(self.head).encode())

    def answer(self, path: str, asked: Mapping[str, str]) -> Answer:
        self.asked.append(path)
        answer = self.answers.get(path, Answer(b'{"error":"not found"}', 404))
        if path == HEAD and answer.status == 200:
            answer = _as_edges_send(answer, asked)
        self.sent.append((answer.status, len(answer.body)))
        return answer

    def file(self, folder: str, body: bytes) -> dict[str, Any]:
        """Put a file; return what a head says of it."""
        sha256 = hashlib.sha256(body).hexdigest()
        path = f"/v1/{folder}/{sha256[:32]}.ndjson.gz"
        self.answers[path] = Answer(body)
        return {"name": path.rpartition("/")[2], "url": self.url + path, "sha256": sha256, "size": len(body)}

    def step(self, body: bytes) -> dict[str, Any]:
        """Put a step; return its entry in the head."""
        file = self.file("changes", body)
        return {"name": file["name"], "size": file["size"], "asOf": "2026-01-31T12:00:00.000Z"}

    def _publish(self) -> None:
        state = self.feed.state
        self.head |= {
            "serial": self.serial,
            "asOf": "2026-01-31T12:00:00.000Z",
            "count": len(state),
            "state": hashlib.sha256(states.text(state)).hexdigest(),
            "dump": {"format": "ndjson"} | self.file("dumps/markets", states.make(state).body),
            "stepsUrl": f"{self.url}/v1/changes/",
            "steps": [self.step(body) for _, body in self.feed.steps],
        }
        self.put_head()


def _as_edges_send(answer: Answer, asked: Mapping[str, str]) -> Answer:
    etag = f'W/"{hashlib.sha256(answer.body).hexdigest()[:16]}"'
    if asked.get("If-None-Match") == etag:
        return Answer(status=304)
    headers = {"ETag": etag, **answer.headers}
    if "gzip" not in asked.get("Accept-Encoding", "") or "Content-Encoding" in answer.headers:
        return Answer(answer.body, headers=headers)
    return Answer(gzip.compress(answer.body), headers={"Content-Encoding": "gzip", **headers})


@contextmanager
def answering(answer: Callable[[str, Mapping[str, str]], Answer]) -> Iterator[str]:
    """Answer each GET by its path and headers; yields the address."""

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.0"  # an answer may be shorter than it says

        def do_GET(self) -> None:  # noqa: N802 - the name is the library's
            found = answer(self.path, dict(self.headers))
            self.send_response(found.status)
            for name, value in ({"Content-Length": str(len(found.body))} | dict(found.headers)).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(found.body)

    with servers.serving(Handler) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def serving() -> Iterator[ChangeFeedSite]:
    """A site that is served."""
    site = ChangeFeedSite("")
    with answering(site.answer) as site.url:
        yield site
