"""Translates an S3 store's errors: worth a retry, a failed condition, or an error with its remedy.

The only module that knows the codes. Messages name the object, the code and the store's message, never a secret.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from generator.errors import StoreError
from generator.publish.stores.store import ConditionFailedError, UnavailableError

_CREDENTIALS: Final = "set the credentials where boto3 finds them, for instance AWS_ACCESS_KEY_ID or AWS_PROFILE"
_RENEW: Final = "the credentials have expired; renew them and run again"
_REGION: Final = "the bucket is in another region; set AWS_DEFAULT_REGION to its own"
_PERMISSIONS: Final = "allow these credentials s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket here"
_BUCKET: Final = "there is no such bucket; create it, or correct publish.target"
_REMEDIES: Final = {
    "AccessDenied": _PERMISSIONS,
    "AllAccessDisabled": _PERMISSIONS,
    "AuthorizationHeaderMalformed": _REGION,
    "ExpiredToken": _RENEW,
    "ExpiredTokenException": _RENEW,
    "IllegalLocationConstraintException": _REGION,
    "InvalidAccessKeyId": f"the store does not know the access key; {_CREDENTIALS}",
    "InvalidBucketName": _BUCKET,
    "InvalidToken": _RENEW,
    "NoSuchBucket": _BUCKET,
    "PermanentRedirect": _REGION,
    "RequestTimeTooSkewed": "this machine's clock differs from the store's; set it",
    "SignatureDoesNotMatch": f"the secret key does not belong to the access key; {_CREDENTIALS}",
    "TokenRefreshRequired": _RENEW,
}
#: For answers without a body, such as those to HEAD.
_REMEDIES_BY_STATUS: Final = {301: _REGION, 401: _CREDENTIALS, 403: _PERMISSIONS}
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
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_NOT_IMPLEMENTED: Final = 501
_SERVER_ERROR: Final = 500
_TRANSIENT_STATUSES: Final = frozenset({408, _CONFLICT, 425, 429})
_FAILED_CONDITION_STATUSES: Final = frozenset({304, 412})
#: The statuses by which stores reject a request they do not support, or not in this form.
_UNSUPPORTED_STATUSES: Final = frozenset({400, 405, 411, _NOT_IMPLEMENTED})

_UNREACHABLE: Final = (
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
#: The status in a message of the object_store crate, on which obstore is built; nothing else has it.
_ANSWER: Final = re.compile(r"Server returned (?:non-2xx status|error) code: (\d{3})")
_CODE: Final = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE: Final = re.compile(r"<Message>([^<]*)</Message>")
_REDIRECT: Final = "redirect without LOCATION"


class DeniedError(StoreError):
    """The credentials are valid, but lack a permission."""


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Translate errors of boto3; `what` is the object or bucket to name in messages."""
    try:
        yield
    except (BotoCoreError, ClientError, ResponseParserError) as error:
        raise of_boto3(what, error) from error
    except RuntimeError as error:
        if _STILL_EXPIRED not in str(error):
            raise
        raise StoreError(f"{what}: {_RENEW}") from error


def of_boto3(what: str, error: BotoCoreError | ClientError | ResponseParserError) -> Exception:
    """Translate an error of boto3."""
    if isinstance(error, ClientError):
        return of_answer(what, status_of(error), code_of(error), error.response.get("Error", {}).get("Message", ""))
    if isinstance(error, exceptions.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return StoreError(
            f"{what}: the store's certificate is not trusted; set AWS_CA_BUNDLE to the certificate of its authority"
        )
    if isinstance(error, _UNREACHABLE):
        return UnavailableError(f"{what}: {error}")
    if isinstance(error, _WITHOUT_CREDENTIALS):
        return StoreError(f"{what}: {error}; {_CREDENTIALS}")
    return StoreError(f"{what}: {error}")


def of_obstore(what: str, error: Exception) -> Exception:
    """Translate an error of obstore, by its text: its types do not distinguish 409 from 412."""
    text = str(error)
    if answer := _ANSWER.search(text):
        code, message = _CODE.search(text), _MESSAGE.search(text)
        return of_answer(what, int(answer[1]), code[1] if code else "", message[1] if message else "")
    if _REDIRECT in text:
        return of_answer(what, 301, "PermanentRedirect", "")
    if isinstance(error, ValueError):
        return StoreError(f"{what}: obstore cannot write this key; choose another prefix in publish.target")
    if "invalid peer certificate" in text:
        return StoreError(
            f"{what}: the store's certificate is not trusted; set AWS_CA_BUNDLE to the certificate of its authority"
        )
    return UnavailableError(f"{what}: {text.partition(chr(10))[0]}")


def of_answer(what: str, status: int, code: str, message: str) -> Exception:
    """Translate an answer of the store."""
    said = f"{what}: {status} {code}: {message}".rstrip(": ")
    if status in _FAILED_CONDITION_STATUSES or (status == _NOT_FOUND and code == "NoSuchKey"):
        return ConditionFailedError(said)
    remedy = _REMEDIES.get(code) or _REMEDIES_BY_STATUS.get(status)
    if remedy is None and is_transient(status, code):
        return UnavailableError(said)
    if remedy is _PERMISSIONS:
        return DeniedError(f"{said}; {remedy}")
    return StoreError(f"{said}; {remedy}" if remedy else said)


def is_transient(status: int, code: str) -> bool:
    """Whether the error is transient: the same request may succeed later.

    So is 409, S3's answer to a put that met a concurrent conditional put and was not applied.
    """
    is_theirs = status >= _SERVER_ERROR and status != _NOT_IMPLEMENTED
    return is_theirs or status in _TRANSIENT_STATUSES or code in _TRANSIENT


def is_unsupported(error: ClientError) -> bool:
    """Whether the store does not support such requests, rather than refuses this one."""
    known = code_of(error) in _REMEDIES or code_of(error) in _TRANSIENT
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
