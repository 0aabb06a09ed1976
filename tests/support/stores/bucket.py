"""A store behind nginx: serves a folder like a bucket without permission to list."""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import TypeAlias

from generator.api import keys
from tests.support.edges.servers import QuietHandler, serving

#: The status with which a request for this path fails, or None.
Fault: TypeAlias = Callable[[str], int | None]


def behind_nginx(port: int, store: int) -> dict[str, str]:
    """Settings of a site that nginx on `port` serves from the bucket on the port `store`."""
    return {
        "base_url": f"http://127.0.0.1:{port}",
        "publish__target": "s3://store/a prefix",
        "publish__endpoint_url": f"http://127.0.0.1:{store}",
    }


def _part(body: bytes, asked: str) -> tuple[int, bytes, str]:
    """Status, body and Content-Range for what the Range header asks for."""
    found = re.fullmatch("bytes=([0-9]*)-([0-9]*)", asked)
    if not found:
        return 200, body, ""
    start = int(found[1]) if found[1] else max(0, len(body) - int(found[2]))
    end = min(len(body), int(found[2]) + 1) if found[1] and found[2] else len(body)
    if start >= end:
        return 416, b"<Error>InvalidRange</Error>", ""
    return 206, body[start:end], f"bytes {start}-{end - 1}/{len(body)}"


@contextmanager
def bucket(output: Path, port: int, fault: Fault = lambda _: None) -> Iterator[list[str]]:
    """A store that answers 403 for missing objects, as without permission to list; yields its requests.

    `fault` is asked before each answer for the status to fail with: None for no failure, 0 for a closed connection.
    """
    asked: list[str] = []

    class Objects(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the name is the library's
            asked.append(self.path)
            failure = fault(self.path)
            if failure is not None:
                self._fail(failure)
                return
            key = self.path.removeprefix("/store/a%20prefix/")
            found = (output / key).is_file() and key.startswith("v1/")
            body = (output / key).read_bytes() if found else b"<Error>AccessDenied</Error>"
            etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
            is_known = found and self.headers["If-None-Match"] == etag
            wanted = self.headers.get("Range", "") if self.headers.get("If-Range", etag) == etag else ""
            status, part, named = _part(body, wanted if found else "")
            self.send_response(304 if is_known else status if found else 403)
            for name, value in (keys.headers(key) if found else {"Content-Type": "application/xml"}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(part)))
            self.send_header("ETag", etag)
            if named:
                self.send_header("Content-Range", named)
            if found:
                self.send_header("Accept-Ranges", "bytes")
                self.send_header("Last-Modified", formatdate((output / key).stat().st_mtime, usegmt=True))
            self.end_headers()
            if self.command == "GET" and not is_known:
                self.wfile.write(part)

        def _fail(self, status: int) -> None:
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Location", "https://store.example.com/elsewhere")
            self.send_header("Content-Length", "8")
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else b"<Error/>")

        do_HEAD = do_GET  # noqa: N815 - the name is the library's

    with serving(Objects, port):
        yield asked
