"""Uploads through obstore, many times faster than boto3 with as many threads. Knows nothing but puts.

obstore starts threads with its first request, so the process must not fork after that.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from generator.stores.s3_connection import Connection
from generator.stores.s3_errors import of_obstore
from generator.stores.store import Condition, If

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ClientConfig, S3Credential

_AMAZON: Final = (".amazonaws.com", ".amazonaws.com.cn")
#: Expired long ago, so that obstore asks for the credentials with every request; boto3 renews them in time.
_EXPIRED: Final = datetime(2000, 1, 1, tzinfo=UTC)


class Uploads:
    """Uploads to the bucket of a connection. Uses the sync API only: the async one can abort a process as it exits."""

    parallel: Final = 128

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        endpoint, is_virtual = _address(connection)
        self._store = S3Store(
            connection.bucket,
            # Everything that environment variables might override.
            config={
                "aws_endpoint_url_s3": endpoint,
                "conditional_put": "etag",
                "region": connection.region,
                "request_payer": False,
                "s3_express": False,
                "skip_signature": False,
                "virtual_hosted_style_request": is_virtual,
            },
            client_options=_client_options(connection),
            retry_config={"max_retries": 0},
            # Not a bound method: the reference cycle through obstore's object would never be freed.
            credential_provider=partial(_credentials, connection),
        )

    def put(self, key: str, body: bytes, headers: Mapping[str, str], condition: Condition) -> str:
        """Write an object and return its ETag; an ETag as condition is sent as it is."""
        self._connection.credentials()  # so that boto3 reports what is wrong with them
        self._connection.count()
        try:
            result = obstore.put(
                self._store, key, body, attributes={**headers}, mode=_mode(condition), use_multipart=False
            )
        except (BaseError, OSError, ValueError) as error:
            asked = self._connection.asked(f"s3://{self._connection.bucket}/{key}", "PutObject")
            raise of_obstore(asked, error) from error
        return result["e_tag"] or ""


def _credentials(connection: Connection) -> "S3Credential":
    found = connection.credentials()
    return {
        "access_key_id": found.access_key or "",
        "secret_access_key": found.secret_key or "",
        "token": found.token,
        "expires_at": _EXPIRED,
    }


def _mode(condition: Condition) -> "PutMode":
    if isinstance(condition, str):
        return {"e_tag": condition}
    return "create" if condition is If.ABSENT else "overwrite"


def _address(connection: Connection) -> tuple[str, bool]:
    """The endpoint for obstore, and whether its host name includes the bucket, as Amazon requires of new buckets."""
    url = connection.client.meta.endpoint_url
    host = urlsplit(url).netloc
    if not host.endswith(_AMAZON) or "." in connection.bucket:  # no certificate covers a name with a dot
        return url, False
    return f"{urlsplit(url).scheme}://{connection.bucket}.{host}", True


def _client_options(connection: Connection) -> "ClientConfig":
    options: ClientConfig = {
        "allow_http": True,
        "connect_timeout": _milliseconds(connection.connect_timeout_s),
        "read_timeout": _milliseconds(connection.read_timeout_s),
        "timeout": _milliseconds(connection.timeout_s),
    }
    if connection.proxy:
        options["proxy_url"] = connection.proxy
    else:  # or it would look for one by itself, by other rules than boto3; `*` means all names, and no numbers
        options["proxy_url"] = "http://127.0.0.1:9"
        options["proxy_excludes"] = f"*,{urlsplit(connection.client.meta.endpoint_url).hostname}"
    if connection.ca_bundle:
        options["root_certificate"] = Path(connection.ca_bundle).read_bytes()
    return options


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f}ms"
