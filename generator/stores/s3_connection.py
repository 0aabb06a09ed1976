"""boto3's session and client for one store: addresses, timeouts, the request count and the store's clock.

Knows no objects, and retries nothing: the caller must know what a failure leaves unknown.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import boto3
import botocore.session
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError, NoCredentialsError
from botocore.loaders import create_loader
from botocore.utils import get_environ_proxies

from generator.errors import StoreError
from generator.stores import clock, s3_errors
from generator.stores.s3_errors import Asked, translated
from generator.stores.store import UnavailableError, UnreachableError

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials
    from types_boto3_s3 import S3Client

#: The longest that a request may last: sent just before a publisher has to stop, it ends with the lease.
LONGEST_REQUEST: Final = timedelta(seconds=70)
#: The share of it for connecting.
_CONNECT: Final = 1 / 4
_REGION: Final = "us-east-1"
_POOL: Final = 64


@cache
def _loader(data_path: str | None) -> Any:
    """The loader of what botocore knows of services, which takes nine tenths of the time to connect."""
    return create_loader(data_path)


class Connection:
    """The connection to a store; without `endpoint_url`, to Amazon S3."""

    def __init__(self, name: str, bucket: str, endpoint_url: str | None, longest_request: timedelta) -> None:
        self.name = name
        self.bucket = bucket
        self.requests = 0
        self.timeout_s = longest_request.total_seconds()
        self.connect_timeout_s = self.timeout_s * _CONNECT
        self.read_timeout_s = self.timeout_s - self.connect_timeout_s
        self._endpoint_url = endpoint_url
        self._count_lock = threading.Lock()
        self._last_date: tuple[datetime, float] | None = None
        with self.translated(name):
            core = botocore.session.get_session()
            core.register_component("data_loader", _loader(core.get_config_variable("data_path")))
            self._session = boto3.Session(botocore_session=core)
            self.region = self._session.region_name or _REGION
            self.ca_bundle: str | None = core.get_config_variable("ca_bundle")
            if self.ca_bundle and not Path(self.ca_bundle).is_file():
                raise StoreError(f"AWS_CA_BUNDLE: {self.ca_bundle} is not a file; correct it")
            self.client = self._connected(Config())
        if self.proxy and not _is_usual(self.proxy):
            raise StoreError(
                f"{_setting(self.proxy)}: is not the address of a proxy of http or https; write it like "
                "http://user:password@host:port, its password percent-encoded"
            )

    @property
    def proxy(self) -> str | None:
        """The address of the proxy through which boto3 asks the store, as the environment has it; None without one."""
        url = self.client.meta.endpoint_url
        return get_environ_proxies(url).get(urlsplit(url).scheme)

    @contextmanager
    def translated(self, what: str) -> Iterator[None]:
        """Translate errors of boto3; `what` is the object or bucket to name in messages.

        Once the store has answered, a connection that fails is an outage: UnavailableError, never UnreachableError.
        """
        try:
            with translated(self.asked(what)):
                yield
        except UnreachableError as error:
            if self._last_date is not None:
                raise UnavailableError(str(error)) from error
            if self.proxy:
                through = f"through the proxy that {_setting(self.proxy)} sets"
                raise UnreachableError(f"{str(error).rstrip('.')}, {through}") from error
            if self._endpoint_url is None:
                region = f"region {self.region}, which AWS_DEFAULT_REGION sets"
                raise UnreachableError(f"{str(error).rstrip('.')}: Amazon S3 in {region}") from error
            raise

    def asked(self, what: str, operation: str = "") -> Asked:
        """An operation on an object or the bucket, for messages; boto3's errors name theirs."""
        return Asked(what, self.name, operation)

    def anonymous(self) -> "S3Client":
        """A client without credentials."""
        return self._connected(Config(signature_version=UNSIGNED))

    def credentials(self) -> "ReadOnlyCredentials":
        """The current credentials; boto3 renews them before they expire."""
        with self.translated(self.name):
            found = self._session.get_credentials()
            if found is None:
                raise NoCredentialsError
            return found.get_frozen_credentials()

    def count(self, **_: Any) -> None:
        """Count a request."""
        with self._count_lock:
            self.requests += 1

    def now(self) -> datetime:
        """The store's clock: the Date of its last answer, plus the time since."""
        if self._last_date is None:
            with self.translated(self.name):
                self._ask()
        if self._last_date is None:
            raise StoreError(f"{self.name}: the store's answers have no Date header; choose a store that sends it")
        said, at = self._last_date
        return said + timedelta(seconds=clock.elapsed() - at)

    def _ask(self) -> None:
        try:
            self.client.head_bucket(Bucket=self.bucket)
        except ClientError:
            return  # a refusal has a Date, too

    def _connected(self, config: Config) -> "S3Client":
        common = Config(
            connect_timeout=self.connect_timeout_s,
            read_timeout=self.read_timeout_s,
            max_pool_connections=_POOL,
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path" if self._endpoint_url else "auto"},
            # Other stores do not support the checksums that S3 added later.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        client: S3Client = self._session.client(
            "s3", region_name=self.region, endpoint_url=self._endpoint_url, config=common.merge(config)
        )
        client.meta.events.register("before-send.s3", self.count)
        client.meta.events.register("before-parse.s3", self._refuse_foreign)
        client.meta.events.register("after-call.s3", self._note_date)
        return client

    def _refuse_foreign(self, operation_model: Any, response_dict: Any, **_: Any) -> None:
        body = response_dict["body"]
        found = s3_errors.foreign(
            operation_model.name,
            response_dict["status_code"],
            response_dict["headers"],
            body if isinstance(body, bytes) else None,  # otherwise a stream that is not read yet
        )
        if found:
            if not isinstance(body, bytes):
                body.close()
            raise StoreError(
                f"{self.name}: {self.client.meta.endpoint_url} does not speak S3: it answers {operation_model.name} "
                f"with {found}; correct publish.endpoint_url, or let the proxy in between pass requests on"
            )

    def _note_date(self, http_response: Any, **_: Any) -> None:
        try:
            said = parsedate_to_datetime(http_response.headers.get("Date", ""))
        except ValueError:
            return
        self._last_date = said.replace(tzinfo=UTC), clock.elapsed()


def _setting(proxy: str) -> str:
    """The environment variable that sets this proxy, for messages: its address may have a password."""
    set_by = (name for name, value in os.environ.items() if value == proxy and name.lower().endswith("_proxy"))
    return next(set_by, "the system's proxy")


def _is_usual(proxy: str) -> bool:
    """Whether both libraries understand the address; what boto3 says of another may have its password."""
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
