"""S3's HTTP and XML: bytes to requests, answers to bytes. Independent of buckets and faults."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

#: The content of an XML answer: element names and contents, in order.
Tree: TypeAlias = list[tuple[str, "str | Tree"]]

_NAMESPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
_KEY_ID: Final = re.compile(r"Credential=([^/]+)/")
#: The operations, most specific first: the method, and the query parameter that identifies it.
_BUCKET_OPERATIONS: Final = {
    ("POST", "delete"): "DeleteObjects",
    ("GET", "versioning"): "GetBucketVersioning",
    ("GET", "versions"): "ListObjectVersions",
    ("GET", "list-type"): "ListObjectsV2",
    ("HEAD", ""): "HeadBucket",
}
_OBJECT_OPERATIONS: Final = {"GET": "GetObject", "HEAD": "HeadObject", "PUT": "PutObject", "DELETE": "DeleteObject"}


@dataclass(frozen=True, slots=True)
class Request:
    """A request; header names are in lower case."""

    method: str
    bucket: str
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def operation(self) -> str:
        """The operation's name in S3's documentation; empty if unknown."""
        if self.key:
            return "" if self.query.keys() - {"versionId", "x-id"} else _OBJECT_OPERATIONS.get(self.method, "")
        of_method = (name for (method, name) in _BUCKET_OPERATIONS if method == self.method)
        return next((_BUCKET_OPERATIONS[self.method, name] for name in of_method if not name or name in self.query), "")

    @property
    def condition(self) -> str:
        """The condition as `if-none-match: *`; empty when there is none."""
        names = (name for name in ("if-match", "if-none-match") if name in self.headers)
        return ", ".join(f"{name}: {self.headers[name]}" for name in names)

    @property
    def key_id(self) -> str | None:
        """The id of the access key that signed the request; None if unsigned."""
        found = _KEY_ID.search(self.headers.get("authorization", ""))
        return found[1] if found else None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer before it is put on the wire."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def document(root: str, content: Tree) -> bytes:
    """An XML document of S3."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{_NAMESPACE}">{_xml(content)}</{root}>'.encode()


def _xml(content: Tree) -> str:
    return "".join(
        f"<{name}>{escape(inner) if isinstance(inner, str) else _xml(inner)}</{name}>" for name, inner in content
    )


def error(status: int, code: str, message: str) -> Answer:
    """An error answer."""
    body = f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>".encode()
    return Answer(status, body, {"Content-Type": "application/xml"})


def serialised(answer: Answer, request: Request, now: float) -> bytes:
    """The answer as it goes over the wire."""
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}", f"Date: {formatdate(now, usegmt=True)}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    if answer.status != HTTPStatus.NO_CONTENT:
        lines.append(f"Content-Length: {len(answer.body)}")
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return head if request.method == "HEAD" else head + answer.body


def truncated(answer: Answer, request: Request, now: float) -> bytes:
    """The answer, cut in the body or the first line; a cut among headers would go unnoticed."""
    whole = serialised(answer, request, now)
    return whole[:-1] if answer.body and request.method != "HEAD" else whole[: len("HTTP/1.1 ")]


async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    """Read a request; None when the client has closed the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    request_line, *lines = head[:-4].split("\r\n")
    method, target, _ = request_line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    path, _, query = target.partition("?")
    bucket, _, key = path.removeprefix("/").partition("/")
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    return Request(method, unquote(bucket), unquote(key), parameters, headers, body)
