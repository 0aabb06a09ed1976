"""A reader that also searches, as an edge does, while publishers change what it reads."""

import json
import threading
from typing import Final
from urllib.parse import quote

from quickjs import JSException

from tests.support.faults import GoneError, Reader, Seen
from tests.support.readers import search
from tests.support.readers.search import InQuickjs

#: A search takes a hundred times as long as a page, so it is walked with these.
_LIMITS: Final = (7, 100)
_PER_THREAD: Final = threading.local()


class SearchingReader(Reader):
    """Knows a search as a list, by the name of the list that it filters, `?` and the words: `all/new?edited`.

    The router's own JavaScript evaluates it.
    """

    def limits(self, list_name: str) -> tuple[int, ...]:
        return _LIMITS if "?" in list_name else super().limits(list_name)

    def page(self, list_name: str, limit: int, at: str | None = None) -> tuple[list[Seen], str | None]:
        name, _, words = list_name.partition("?")
        if not words:
            return super().page(name, limit, at)
        status, sort = name.split("/")
        query = f"q={quote(words)}&status={status}&sort={sort}&limit={limit}{f'&cursor={at}' if at else ''}"
        try:
            answer = _engine().ask(self._text, query)
        except JSException as error:
            # Every edge answers 503 then.
            raise GoneError(f"{list_name}: {error}") from error
        if answer["status"] != 200:
            raise GoneError(f"{list_name}: {answer['status']} {answer['body']}")
        page = json.loads(answer["body"])
        return [(item["id"], item["question"], item["status"]) for item in page["items"]], page["nextCursor"]

    def _text(self, key: str) -> str | None:
        body = self._read(key)
        return None if body is None else body.decode()


def _engine() -> InQuickjs:
    """The router in an engine of this thread, since none may be used by two."""
    if not hasattr(_PER_THREAD, "engine"):
        _PER_THREAD.engine = InQuickjs(search.core())
    engine: InQuickjs = _PER_THREAD.engine
    return engine
