"""CloudFront's stand-in behind an HTTP server, for `verify` to ask; in the layout `chunks` it has a real S3 server."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from generator.config.settings import Config
from tests.support.edges.cases import Case
from tests.support.edges.cloudfront import distribution
from tests.support.edges.servers import QuietHandler, serving
from tests.support.stores.s3.server import S3Server


@contextmanager
def cloudfront_site(config: Config, folder: Path) -> Iterator[str]:
    """Serve the built site of the configuration through its rendered functions; yields the address."""
    lock = Lock()

    class Handler(QuietHandler):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self.answer
            raise AttributeError(name)

        def answer(self) -> None:
            path, _, query = self.path.partition("?")
            case = Case(self.command, path, query, 0, None, (), frozenset(), core_only=False)
            with lock:  # its scripts are files of one name
                (answer,) = edge.answers([case], "node", "raw")
            etag, asked = answer.headers.get("etag"), self.headers.get("If-None-Match", "")
            # CloudFront itself confirms copies.
            is_known = etag and etag in {one.strip().removeprefix("W/") for one in asked.split(",")}
            self.reply(replace(answer, status=304) if is_known else answer)

    with ExitStack() as stack:
        store = stack.enter_context(S3Server()) if config.layout == "chunks" else None
        edge = distribution(config, config.output, folder, store)
        port = stack.enter_context(serving(Handler))
        yield f"http://127.0.0.1:{port}"
