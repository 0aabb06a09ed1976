"""boto3's session and client for one store: addresses, time-outs, counted requests, and what the store's clock said.

It knows no objects. Nothing is tried twice here: whoever asked must know what a failure leaves unknown.
"""

import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
import botocore.session
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError, NoCredentialsError

from generator.errors import StoreError
from generator.publish.stores.s3_errors import translated

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials
    from types_boto3_s3 import S3Client

CONNECT_TIMEOUT_S: Final = 10
READ_TIMEOUT_S: Final = 60
_REGION: Final = "us-east-1"
_POOL: Final = 64
#: Goes on while the machine sleeps, where there is such a clock.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Connection:
    """Requests to a store. `endpoint_url` None means Amazon's own."""

    def __init__(self, name: str, bucket: str, endpoint_url: str | None) -> None:
        self.name = name
        self.bucket = bucket
        self.requests = 0
        self._endpoint_url = endpoint_url
        self._counting = threading.Lock()
        self._heard: tuple[datetime, float] | None = None
        with translated(name):
            core = botocore.session.get_session()
            self._session = boto3.Session(botocore_session=core)
            self.region = self._session.region_name or _REGION
            self.ca_bundle: str | None = core.get_config_variable("ca_bundle")
            if self.ca_bundle and not Path(self.ca_bundle).is_file():
                raise StoreError(f"{self.ca_bundle}: is no file; correct AWS_CA_BUNDLE, which names it")
            self.client = self._connected(Config())

    def anonymous(self) -> "S3Client":
        """A client without credentials."""
        return self._connected(Config(signature_version=UNSIGNED))

    def credentials(self) -> "ReadOnlyCredentials":
        """The credentials of this moment; boto3 renews them when they are about to expire."""
        with translated(self.name):
            found = self._session.get_credentials()
            if found is None:
                raise NoCredentialsError
            return found.get_frozen_credentials()

    def count(self, **_: Any) -> None:
        """Count a request."""
        with self._counting:
            self.requests += 1

    def now(self) -> datetime:
        """The store's clock: what its last answer said, and the time that has passed since."""
        if self._heard is None:
            with translated(self.name):
                self._ask()
        if self._heard is None:
            raise StoreError(f"{self.name}: the store's answers have no Date; publish to one that sends it")
        said, at = self._heard
        return said + timedelta(seconds=time.clock_gettime(_CLOCK) - at)

    def _ask(self) -> None:
        try:
            self.client.head_bucket(Bucket=self.bucket)
        except ClientError:
            return  # a refusal has a date, too

    def _connected(self, config: Config) -> "S3Client":
        common = Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            max_pool_connections=_POOL,
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path" if self._endpoint_url else "auto"},
            # Of the checksums that S3 learned later other stores know little.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        client: S3Client = self._session.client(
            "s3", region_name=self.region, endpoint_url=self._endpoint_url, config=common.merge(config)
        )
        client.meta.events.register("before-send.s3", self.count)
        client.meta.events.register("after-call.s3", self._hear)
        return client

    def _hear(self, http_response: Any, **_: Any) -> None:
        try:
            said = parsedate_to_datetime(http_response.headers.get("Date", ""))
        except ValueError:
            return
        self._heard = said.replace(tzinfo=UTC), time.clock_gettime(_CLOCK)
