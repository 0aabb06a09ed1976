"""Translates an S3 store's errors: worth a retry, a failed condition, or an error with its remedy.

The only module that knows the codes. Messages name the object, the code and the store's message, never a secret.
"""

import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from generator.errors import StoreError
from generator.stores.store import ConditionFailedError, UnavailableError, UnreachableError, UnsupportedError

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


_CREDENTIALS: Final = "set the credentials where boto3 finds them, for instance AWS_ACCESS_KEY_ID or AWS_PROFILE"
_RENEW: Final = "the credentials have expired; renew them and run again"
_REGION: Final = "the bucket is in another region; set AWS_DEFAULT_REGION to its own"
_BUCKET: Final = "there is no such bucket; create it, or correct publish.target"
_FULL: Final = "the store is full, or its quota is used up; free some space there, or raise the quota"
_LOCKED: Final = "name a bucket without object lock in publish.target, as this one would keep what is withdrawn"
_REMEDIES: Final = {
    "AuthorizationHeaderMalformed": _REGION,
    "ExpiredToken": _RENEW,
    "ExpiredTokenException": _RENEW,
    "IllegalLocationConstraintException": _REGION,
    "InvalidAccessKeyId": f"the store does not know the access key; {_CREDENTIALS}",
    "InvalidBucketName": _BUCKET,
    "InvalidRegionName": _REGION,
    "InvalidToken": "the session token does not belong to the access key; renew both, or unset AWS_SESSION_TOKEN",
    "NoSuchBucket": _BUCKET,
    "PermanentRedirect": _REGION,
    "QuotaExceeded": _FULL,
    "RequestTimeTooSkewed": "this machine's clock differs from the store's; set it",
    "SignatureDoesNotMatch": f"the secret key does not belong to the access key; {_CREDENTIALS}",
    "TokenRefreshRequired": _RENEW,
    "XMinioAdminBucketQuotaExceeded": _FULL,
    "XMinioStorageFull": _FULL,
}
#: For answers without a body, such as those to HEAD.
_REMEDIES_BY_STATUS: Final = {301: _REGION, 401: _CREDENTIALS}
#: The codes of a request that the credentials are not allowed to make; every other 403 without a remedy is one, too.
_DENIED: Final = frozenset({"AccessDenied", "AllAccessDisabled"})
#: The permissions that every operation in use needs: on objects first, on the bucket second.
_NEEDED: Final[Mapping[str, tuple[str, str]]] = {
    "DeleteObject": ("s3:DeleteObject", ""),
    "DeleteObjects": ("s3:DeleteObject", ""),
    "GetBucketVersioning": ("", "s3:GetBucketVersioning"),
    # Without the second, a missing object looks like a forbidden one.
    "GetObject": ("s3:GetObject", "s3:ListBucket"),
    "HeadBucket": ("", "s3:ListBucket"),
    "HeadObject": ("s3:GetObject", "s3:ListBucket"),
    "ListObjectVersions": ("", "s3:ListBucketVersions"),
    "ListObjectsV2": ("", "s3:ListBucket"),
    "PutObject": ("s3:PutObject", ""),
}
#: Worth a retry whatever the status: the request arrived incomplete, or at a bad moment.
_TRANSIENT: Final = frozenset(
    {
        "BadDigest",
        "IncompleteBody",
        "InternalError",
        "OperationAborted",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
    }
)
_OK: Final = 200
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_NOT_IMPLEMENTED: Final = 501
_SERVER_ERROR: Final = 500
_TRANSIENT_STATUSES: Final = frozenset({408, _CONFLICT, 425, 429})
_FAILED_CONDITION_STATUSES: Final = frozenset({304, 412})
#: The statuses by which stores reject a request they do not support, or not in this form.
_UNSUPPORTED_STATUSES: Final = frozenset({400, 405, 411, _NOT_IMPLEMENTED})

#: No connection was made: the name does not resolve, nobody listens, or no TLS.
_UNREACHABLE: Final = (
    exceptions.ConnectTimeoutError,
    exceptions.EndpointConnectionError,
    exceptions.ProxyConnectionError,
    exceptions.SSLError,
)
_UNAVAILABLE: Final = (
    exceptions.ConnectionError,
    exceptions.CredentialRetrievalError,
    exceptions.HTTPClientError,
    exceptions.IncompleteReadError,
    exceptions.MetadataRetrievalError,
    ResponseParserError,
)
_WITHOUT_CREDENTIALS: Final = (
    exceptions.NoAuthTokenError,
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.ProfileNotFound,
    exceptions.SSOError,
    exceptions.TokenRetrievalError,
)
#: boto3's message for credentials that had expired when it got them; there is no exception type for it.
_STILL_EXPIRED: Final = "refreshed credentials are still expired"
#: Python's message for a header that may not be sent.
_BAD_HEADER: Final = "Invalid header value"
#: The status in a message of the object_store crate, on which obstore is built; nothing else has it.
_ANSWER: Final = re.compile(r"Server returned (?:non-2xx status|error) code: (\d{3})")
_CODE: Final = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE: Final = re.compile(r"<Message>([^<]*)</Message>")
_REDIRECT: Final = "redirect without LOCATION"


class DeniedError(StoreError):
    """The credentials are valid, but lack a permission."""


@dataclass(frozen=True)
class Asked:
    """What was asked of the store, for messages: an operation on `what`, an object or the bucket of `target`."""

    what: str
    target: str
    operation: str = ""


@contextmanager
def translated(asked: Asked) -> Iterator[None]:
    """Translate errors of boto3, which knows the operation by itself."""
    try:
        yield
    except (BotoCoreError, ClientError, ResponseParserError) as error:
        raise of_boto3(asked, error) from error
    except RuntimeError as error:
        if _STILL_EXPIRED not in str(error):
            raise
        raise StoreError(f"{asked.what}: {_RENEW}") from error


def of_boto3(asked: Asked, error: BotoCoreError | ClientError | ResponseParserError) -> Exception:
    """Translate an error of boto3."""
    what = asked.what
    if isinstance(error, ClientError):
        # Of an answer with an empty element, it is None.
        message = error.response.get("Error", {}).get("Message") or ""
        return of_answer(replace(asked, operation=error.operation_name), status_of(error), code_of(error), message)
    if problem := _connection_problem(error):
        return StoreError(f"{what}: {problem}")
    if isinstance(error, _UNREACHABLE):
        return UnreachableError(f"{what}: {_unresolved(error) or error}")
    if isinstance(error, _UNAVAILABLE):
        return UnavailableError(f"{what}: {error}")
    if isinstance(error, _WITHOUT_CREDENTIALS):
        return StoreError(f"{what}: {error}; {_CREDENTIALS}")
    return StoreError(f"{what}: {error}")


def _connection_problem(error: Exception) -> str | None:
    """Why a request could not even be sent, and the remedy; None if another attempt may succeed."""
    if _BAD_HEADER in str(error):  # it quotes the header, which may be a session token
        return "the access key or the session token holds a line break; set it without one"
    return _tls_problem(str(error)) if isinstance(error, exceptions.SSLError) else None


def _unresolved(error: Exception) -> str | None:
    """What to say of a host that has no address, which boto3 words like one that nobody listens at."""
    if not isinstance(error, exceptions.EndpointConnectionError):
        return None
    reason = error.kwargs.get("error")
    is_unresolved = any(isinstance(each, socket.gaierror) for each in (reason, getattr(reason, "__context__", None)))
    return f"the host {urlsplit(error.kwargs['endpoint_url']).hostname} does not resolve" if is_unresolved else None


def _tls_problem(text: str) -> str | None:
    """What is wrong with the TLS of the store, and the remedy; None if another attempt may succeed."""
    if "WRONG_VERSION_NUMBER" in text:
        return "the store does not speak TLS at this port; write http:// in publish.endpoint_url, or correct its port"
    if "CERTIFICATE_VERIFY_FAILED" not in text:
        return None
    if "mismatch" in text:
        return "the store's certificate is for another host; correct the host in publish.endpoint_url"
    if "expired" in text or "not yet valid" in text:
        return "the store's certificate is not valid at this time; set this machine's clock, or renew the certificate"
    return "the store's certificate is not trusted; set AWS_CA_BUNDLE to the certificate of its authority"


def of_obstore(asked: Asked, error: Exception) -> Exception:
    """Translate an error of obstore, by its text: its types do not distinguish 409 from 412."""
    what, text = asked.what, str(error)
    if answer := _ANSWER.search(text):
        code, message = _CODE.search(text), _MESSAGE.search(text)
        return of_answer(asked, int(answer[1]), code[1] if code else "", message[1] if message else "")
    if _REDIRECT in text:
        return of_answer(asked, 301, "PermanentRedirect", "")
    if isinstance(error, ValueError):
        return StoreError(f"{what}: obstore cannot write this key; choose another prefix in publish.target")
    if "invalid peer certificate" in text:
        return StoreError(f"{what}: {_tls_problem('CERTIFICATE_VERIFY_FAILED')}")
    return UnavailableError(f"{what}: {text.partition(chr(10))[0]}")


def of_answer(asked: Asked, status: int, code: str, message: str) -> Exception:
    """Translate an answer of the store, or the error it gives for one object in an answer that is a 200."""
    number = "" if status == _OK or code == str(status) else status
    answer = f"{number} {code}: {message}".strip(": ")
    said = f"{asked.what}: {answer}"
    if status in _FAILED_CONDITION_STATUSES or (status == _NOT_FOUND and code == "NoSuchKey"):
        return ConditionFailedError(said)
    is_locked = "object lock" in message.lower()
    remedy = _LOCKED if is_locked else _REMEDIES.get(code) or _REMEDIES_BY_STATUS.get(status)
    if remedy is None and is_transient(status, code):
        return UnavailableError(said)
    if (code in _DENIED and not is_locked) or (remedy is None and status == _FORBIDDEN):
        needed = f"allow these credentials {_needed(asked)}"
        return DeniedError(f"{asked.what}: {asked.operation} was refused ({answer}); {needed}")
    if status == _NOT_IMPLEMENTED:
        return UnsupportedError(said)
    return StoreError(f"{said}; {remedy}" if remedy else said)


def _needed(asked: Asked) -> str:
    """The permissions that the operation needs, and where."""
    of_objects, of_bucket = _NEEDED.get(asked.operation, (f"s3:{asked.operation}", ""))
    place = asked.target.removeprefix("s3://")
    parts = [
        *([f"{of_objects} on {place}/*"] if of_objects else []),
        *([f"{of_bucket} on the bucket {place.partition('/')[0]}"] if of_bucket else []),
    ]
    return " and ".join(parts)


def is_transient(status: int, code: str) -> bool:
    """Whether the error is transient: the same request may succeed later.

    So is 409, S3's answer to a put that met a concurrent conditional put and was not applied.
    """
    is_theirs = status >= _SERVER_ERROR and status != _NOT_IMPLEMENTED
    return is_theirs or status in _TRANSIENT_STATUSES or code in _TRANSIENT


def is_unsupported(error: ClientError) -> bool:
    """Whether the store does not support such requests, rather than refuses this one."""
    code = code_of(error)
    known = code in _REMEDIES or code in _DENIED or code in _TRANSIENT
    return status_of(error) in _UNSUPPORTED_STATUSES and not known


def is_missing(error: ClientError) -> bool:
    """Whether the store has no such object."""
    return status_of(error) == _NOT_FOUND and code_of(error) != "NoSuchBucket"


def status_of(error: ClientError) -> int:
    """The HTTP status of the answer."""
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def code_of(error: ClientError) -> str:
    """S3's code; for an answer without a body boto3 puts the status there."""
    return error.response.get("Error", {}).get("Code", "")
