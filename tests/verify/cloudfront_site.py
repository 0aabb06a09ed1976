"""CloudFront's stand-in behind an HTTP server, for `verify` to ask; in the layout `chunks` it has a real S3 server."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Lock
from typing import Any

from generator.config.settings import Config
from tests.support.edges.cases import Case
from tests.support.edges.cloudfront import distribution
from tests.support.edges.servers import serving
from tests.support.stores.s3.server import S3Server


@contextmanager
def cloudfront_site(config: Config, folder: Path) -> Iterator[str]:
    """Serve the built site of the configuration through its rendered functions; yields the address."""
    lock = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

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
            status, body = (304, b"") if is_known else (answer.status, answer.body)
            self.send_response(status)
            for name, value in answer.headers.items():
                if name not in {"content-length", "transfer-encoding", "date", "server"}:
                    self.send_header(name, value)
            if status not in (204, 304):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ExitStack() as stack:
        store = stack.enter_context(S3Server()) if config.layout == "chunks" else None
        edge = distribution(config, config.output, folder, store)
        port = stack.enter_context(serving(Handler))
        yield f"http://127.0.0.1:{port}"
