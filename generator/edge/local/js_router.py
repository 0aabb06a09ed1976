"""The rendered router in a JavaScript engine: the local server runs what is deployed. It knows no rule of the API."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeAlias

import quickjs

from generator.config.settings import Config
from generator.edge import deployment
from generator.edge.router import public_paths
from generator.errors import PreviewError

#: What to do next: an answer to give, an object to serve, or objects to read (templates/edge/router.js.j2).
NextStep: TypeAlias = Mapping[str, Any]


class DamagedError(Exception):
    """An object is not what the router must cut or search; says which one."""


class Router:
    """The rendered router; it is read again when a build replaces it.

    QuickJS must stay in the thread that created it, so one thread owns it and runs every call.
    """

    _CALLS: Final = """
        function call(name, values) {
          return JSON.stringify(globalThis[name].apply(null, JSON.parse(values).concat(digest)));
        }
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, ...] | None = None
        self._context: Any = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="router")

    def route(self, method: str, path: str, query: str) -> NextStep:
        """What to do about a request."""
        return self._call("route", method, path, query)

    def cut(self, decision: NextStep, texts: Sequence[str | None]) -> NextStep:
        """What to do next, given the objects that `decision` names; None for an object that does not exist.

        Raise DamagedError if one is damaged.
        """
        try:
            return self._call("cut", decision, texts)
        except quickjs.JSException as error:
            raise DamagedError(str(error).partition("\n")[0].removeprefix("Error: ")) from error

    def missing(self, key: str) -> NextStep:
        """The answer where no object has the key."""
        return self._call("missing", key)

    def fixed(self, status: int) -> NextStep:
        """The answer that depends on the status only."""
        return self._call("fixed", status)

    def as_of_in(self, build: str) -> str:
        """The as-of in the beginning of build.json; empty if there is none."""
        return str(self._call("asOfIn", build))

    def link_in(self, decision: NextStep, end: str) -> str:
        """The Link header of the page that ends so; empty for the last page and what is no page."""
        return str(self._call("linkIn", decision, end))

    def common(self) -> Mapping[str, str]:
        """The headers to add to an object."""
        return self._call("common")

    def network_of(self, address: str) -> str:
        """What the requests of a reader's address are counted by."""
        return str(self._call("networkOf", address))

    def is_search(self, method: str, path: str, query: str) -> bool:
        """Whether a request counts as a search; only where there is search."""
        return bool(self._call("isSearch", method, path, query))

    def _call(self, name: str, *values: object) -> NextStep:
        return self._thread.submit(self._run, name, json.dumps(values)).result()

    def _run(self, name: str, values: str) -> NextStep:
        try:
            self._refresh()
        except FileNotFoundError:
            # While the folder is deleted and built anew, the last router stays in use.
            if self._context is None:
                raise
        decision: NextStep = json.loads(self._context.get("call")(name, values))
        return decision

    def _refresh(self) -> None:
        status = self._path.stat()
        stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
        if stamp != self._stamp:
            context = quickjs.Context()
            provide_digest(context)
            context.eval(self._path.read_text("utf-8") + self._CALLS)
            self._context, self._stamp = context, stamp


#: Right for ASCII only: of any other letter, the router needs to know no more than that it is not ASCII.
_ENCODER: Final = """
function TextEncoder() {}
TextEncoder.prototype.encode = function (text) {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = Math.min(text.charCodeAt(i), 255);
  return bytes;
};
"""


def provide_digest(context: Any) -> None:
    """Define what the router needs: the function `digest`, and an encoder, which QuickJS lacks.

    Text goes through JSON: a NUL would end it on the way.
    """
    context.add_callable("digestOfJson", lambda text: hashlib.sha256(json.loads(text).encode()).hexdigest())
    context.eval("function digest(text) { return digestOfJson(JSON.stringify(text)); }")
    context.eval(_ENCODER)


def load(config: Config) -> Router:
    """The router of the output folder, tried out by asking it for the list."""
    path = config.output / deployment.ROUTER
    router = Router(path)
    try:
        decision = router.route("GET", public_paths(config)[0], "")
    except (FileNotFoundError, NotADirectoryError) as error:
        remedy = "run `public-markets build` first, or `public-markets demo` for made-up markets"
        raise PreviewError(f"{config.output}: nothing is built there; {remedy}") from error
    except (OSError, UnicodeDecodeError, quickjs.JSException) as error:
        reason = str(error).partition("\n")[0]
        raise PreviewError(f"{path}: cannot be run ({reason}); build again") from error
    if "status" in decision:
        raise PreviewError(f"{config.output}: built for another base_url than {config.base_url}; build again")
    return router
