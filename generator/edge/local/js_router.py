"""The rendered router in a JavaScript engine, for the local server: what is previewed is what is deployed.

It knows no rule of the API; it only puts the router's questions and hands over what objects hold.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeAlias

import quickjs

from generator.config.settings import Config
from generator.edge import render as edge
from generator.errors import PreviewError

#: What to do next: an answer to give, an object to answer with, or objects to read (templates/edge/router.js.j2).
Found: TypeAlias = Mapping[str, Any]


class Router:
    """The rendered router in a JavaScript engine; a build that lands is noticed at the next question.

    QuickJS must stay in the thread that made it: one thread owns it, everyone else asks there.
    """

    _QUESTIONS: Final = """
        const QUESTIONS = { route: route, cut: cut, missing: missing, fixed: fixed, cors: cors };
        function ask(question, words) {
          return JSON.stringify(QUESTIONS[question].apply(null, JSON.parse(words).concat(digest)));
        }
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, ...] | None = None
        self._context: Any = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="router")

    def route(self, method: str, path: str, query: str) -> Found:
        """What to do about a request."""
        return self._ask("route", method, path, query)

    def cut(self, found: Found, texts: Sequence[str | None]) -> Found:
        """What to do next, now that the objects which `found` names were read; None for what is not there."""
        return self._ask("cut", found, texts)

    def missing(self, key: str) -> Found:
        """The answer where there is no object of that key."""
        return self._ask("missing", key)

    def fixed(self, status: int) -> Found:
        """The answer that depends on the status only."""
        return self._ask("fixed", status)

    def cors(self) -> Mapping[str, str]:
        """The headers to add to an object that is answered."""
        return self._ask("cors")

    def _ask(self, question: str, *words: object) -> Found:
        return self._thread.submit(self._answer, question, json.dumps(words)).result()

    def _answer(self, question: str, words: str) -> Found:
        try:
            self._refresh()
        except FileNotFoundError:
            # Whoever deletes the folder to build it anew keeps the router that was read before.
            if self._context is None:
                raise
        found: Found = json.loads(self._context.get("ask")(question, words))
        return found

    def _refresh(self) -> None:
        found = self._path.stat()
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        if stamp != self._stamp:
            context = quickjs.Context()
            context.add_callable("digest", lambda text: hashlib.sha256(text.encode()).hexdigest())
            context.eval(self._path.read_text("utf-8") + self._QUESTIONS)
            self._context, self._stamp = context, stamp


def try_out(router: Router, config: Config) -> str:
    """Ask the router for the list, so that what cannot work is said at once; returns the list's path."""
    path, _ = edge.public_paths(config)
    try:
        found = router.route("GET", path, "")
    except (FileNotFoundError, NotADirectoryError) as error:
        remedy = "run `public-markets build` first, or `public-markets demo` for made-up markets"
        raise PreviewError(f"{config.output}: nothing is built there; {remedy}") from error
    except (OSError, UnicodeDecodeError, quickjs.JSException) as error:
        reason = str(error).partition("\n")[0]
        raise PreviewError(f"{config.output / edge.ROUTER}: cannot be run ({reason}); build again") from error
    if "status" in found:
        raise PreviewError(f"{config.output}: was built for another base_url than {config.base_url}; build again")
    return path
