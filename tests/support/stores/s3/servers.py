"""The S3 servers that tests publish to: our own, which fails on demand, and Ceph's radosgw.

A pytest plugin: ask for `s3`, which is made anew for every test, or for `radosgw`, and there for a bucket of your own.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from tests.support.stores import radosgw as ceph
from tests.support.stores.s3.server import S3Server
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


@dataclass(frozen=True)
class Endpoint:
    """The address of an S3 server, and its access key."""

    url: str
    key_id: str = "test"
    secret: str = "test"  # noqa: S105 - of a temporary server
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def client(self) -> "S3Client":
        """A client without retries."""
        config = Config(
            read_timeout=PATIENCE_S,
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=self.key_id,
            aws_secret_access_key=self.secret,
            config=config,
        )

    def new_bucket(self) -> str:
        """Make an empty bucket and return its name."""
        name = f"bucket-{next(self._numbers)}"
        with closing(self.client()) as client:
            client.create_bucket(Bucket=name)
        return name


@pytest.fixture
def s3() -> Iterator[S3Server]:
    """Our S3 server in a thread, with an empty bucket, well-behaved by default."""
    with S3Server() as server:
        yield server


@pytest.fixture(scope="session")
def radosgw() -> Iterator[Endpoint]:
    """Ceph's S3 server, which checks signatures; without Ceph the test is skipped, or fails in CI."""
    with ceph.running() as port:
        yield Endpoint(f"http://127.0.0.1:{port}", ceph.KEY_ID, ceph.SECRET)
