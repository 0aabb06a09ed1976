"""A site whose answers a test writes down, and what it was asked."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from tests.support.readers.change_feed import Answer, answering


class Scripted(Answer):
    """An answer; `cut` leaves out so many bytes at the end of the body."""

    def __init__(self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None, cut: int = 0) -> None:
        whole = body if isinstance(body, bytes) else json.dumps(body).encode()
        length = {"Content-Length": str(len(whole))}
        super().__init__(whole[: len(whole) - cut], status, {**length, **(headers or {})})


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

    def answer(self, path: str, headers: Mapping[str, str]) -> Scripted:
        self.asked.append(path)
        self.headers[path].append(headers)
        waiting = self.answers.get(path, [_MISSING])
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]


@contextmanager
def scripted() -> Iterator[ScriptedSite]:
    """Serve such a site."""
    site = ScriptedSite()
    with answering(site.answer) as site.url:
        yield site
