"""Tells answers of an S3 store from those of a web server, a proxy or a console. Pure."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

#: S3 gives the reason of every error in such a document, if it sends a body.
_ERROR: Final = re.compile(rb"\s*(<\?xml[^>]*>)?\s*<Error\b")
_WEB_PAGE: Final = "text/html"
#: Answers that proxies in front of a store make themselves while it is busy.
_BUSY: Final = frozenset({408, 425, 429})
_WANTS_TLS: Final = re.compile(rb"HTTPS (port|server)", re.IGNORECASE)


def foreign(operation: str, status: int, headers: Mapping[str, str], body: bytes | None) -> str | None:
    """What an answer that is not an S3 store's is, to end the sentence `answers with …`; None if it may be a store's.

    `body` is None where it was not read, and empty where there is none, as in answers to HEAD.
    """
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _BUSY:
        return None
    if status >= HTTPStatus.MULTIPLE_CHOICES:
        return _foreign_error(status, headers, body or b"")
    if operation != "GetObject":  # some servers call their empty answers text/html
        return None
    kind = _kind(headers)
    if kind == _WEB_PAGE or "etag" not in {name.lower() for name in headers}:
        return f"{status} and {kind or 'no ETag'}"
    return None


def _foreign_error(status: int, headers: Mapping[str, str], body: bytes) -> str | None:
    if body and not _ERROR.match(body):
        wants_tls = ", and wants https://" if _WANTS_TLS.search(body) else ""
        return f"{status} and {_kind(headers) or 'text'}{wants_tls}"
    place = headers.get("Location")
    if place and not body and not any(name.lower().startswith("x-amz-") for name in headers):
        return f"{status}, a redirect to {place}"
    return None


def _kind(headers: Mapping[str, str]) -> str:
    """The media type, without its parameters."""
    return headers.get("Content-Type", "").partition(";")[0].strip().lower()
