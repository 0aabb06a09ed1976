"""`public-markets serve` in this process, asked without a socket; and the files that it and other edges need."""

from contextlib import closing, nullcontext
from typing import Any

from generator.config.settings import Config
from generator.edge import deployment
from generator.edge.local import js_router
from generator.edge.local.app import LocalEdge
from generator.edge.local.reader import Hosts
from tests.support.edges.servers import Answer
from tests.support.readers import lists


def render(config: Config) -> None:
    """Write the files of all edges into the output folder, without a build."""
    for file in deployment.render(config):
        lists.write(config.output / file.name, file.text.encode())


class Local:
    """The application before the output folder of a configuration, bound to an address."""

    def __init__(self, config: Config, bound: str = "127.0.0.1") -> None:
        self._app = LocalEdge(config, js_router.load(config), Hosts(bound, bound))

    def ask(self, target: str, method: str = "GET", peer: str = "127.0.0.1", **environ: str) -> Answer:
        given: list[Any] = []
        asked = {"REQUEST_METHOD": method, "RAW_URI": target, "REMOTE_ADDR": peer, **environ}
        pieces: Any = self._app(asked, lambda *start: given.extend(start))  # type: ignore[arg-type]
        with closing(pieces) if hasattr(pieces, "close") else nullcontext():  # open files would warn
            body = b"".join(pieces)
        return Answer(int(given[0][:3]), {name.lower(): value for name, value in given[1]}, body)
