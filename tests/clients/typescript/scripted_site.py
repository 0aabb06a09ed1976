"""A site whose answers a test writes down, and what it was asked."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from tests.support.edges.servers import serving


@dataclass(frozen=True)
class Scripted:
    """An answer; `cut` leaves out the end of the body."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int = 0

    def encoded(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


_MISSING: Final = Scripted({"error": "not found"}, 404)


class ScriptedSite:
    """Answers each request for a path with the next answer there; the last one stays."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: dict[str, list[Scripted]] = {}
        self.asked: list[str] = []
        self.headers: dict[str, list[Mapping[str, str]]] = defaultdict(list)

    def put(self, path: str, *answers: Scripted) -> None:
        self.answers[path] = [*answers]

    def next(self, path: str) -> Scripted:
        waiting = self.answers.get(path, [_MISSING])
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]


@contextmanager
def scripted() -> Iterator[ScriptedSite]:
    """Serve such a site."""
    site = ScriptedSite()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            site.headers[self.path].append(dict(self.headers))
            answer = site.next(self.path)
            body = answer.encoded()
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: len(body) - answer.cut])

        def log_message(self, *_: object) -> None: ...

    with serving(Handler) as port:
        site.url = f"http://127.0.0.1:{port}"
        yield site
