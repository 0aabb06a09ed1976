"""How the checker asks a site: any edge, by one function; it keeps what it got, to look for canaries."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from tests.questions import raw_json

#: A path with its query → status, headers by name in lower case, body.
Get: TypeAlias = Callable[[str], tuple[int, Mapping[str, str], bytes]]
MARKETS: Final = "/v1/public/markets"
QUESTIONS: Final = "/v1/public/questions"
#: More pages than any list has in tests.
_MOST_PAGES: Final = 100_000


class UnexpectedError(Exception):
    """An answer with which the checker cannot go on; the message is a sentence."""


class Site:
    """A site that is asked, with all that it answered."""

    def __init__(self, get: Get) -> None:
        self._get = get
        self.bodies: dict[str, bytes] = {}

    def ask(self, path: str) -> tuple[int, Mapping[str, str], bytes]:
        status, headers, body = self._get(path)
        self.bodies[path] = body
        return status, {name.lower(): value for name, value in headers.items()}, body

    def body(self, path: str) -> bytes:
        """The body of what must be there."""
        status, _, body = self.ask(path)
        if status != 200:
            raise UnexpectedError(f"{path} is a {status}, not a 200")
        return body

    def found(self, path: str) -> Any:
        return json.loads(self.body(path))

    def page(self, resource: str, **parameters: object) -> tuple[list[str], str | None, Mapping[str, str]]:
        """A page: its items as they are written, its cursor, its headers."""
        path = f"{resource}?{urlencode(parameters)}" if parameters else resource
        status, headers, body = self.ask(path)
        if status != 200:
            raise UnexpectedError(f"{path} is a {status}: {body[:200].decode(errors='replace')}")
        written = raw_json.properties(body.decode())
        if [*written] != ["items", "nextCursor"]:
            raise UnexpectedError(f"{path} has the properties {[*written]}")
        cursor = json.loads(written["nextCursor"])
        return raw_json.elements(written["items"]), cursor, headers

    def pages(self, resource: str, limits: Sequence[int], **parameters: object) -> Iterator[tuple[list[str], bool]]:
        """A walk, with each limit in turn: the items of each page, and whether another follows."""
        asked = dict(parameters)
        for limit, _ in zip(cycle(limits), range(_MOST_PAGES), strict=False):
            items, cursor, _ = self.page(resource, **asked, limit=limit)
            if len(items) > limit:
                raise UnexpectedError(f"a page of {resource} {asked} has {len(items)} items for a limit of {limit}")
            yield items, cursor is not None
            if cursor is None:
                return
            asked["cursor"] = cursor
        raise UnexpectedError(f"a walk of {resource} {parameters} does not end")

    def walk(self, resource: str, limits: Sequence[int], **parameters: object) -> list[str]:
        return [item for items, _ in self.pages(resource, limits, **parameters) for item in items]
