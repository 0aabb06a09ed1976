"""The S3 servers that tests publish to: our own, which fails on demand, moto, and Ceph's radosgw.

A pytest plugin: ask for `s3`, `moto` or `radosgw`. Only the first is made anew for every test: ask the other two for a
bucket of your own.
"""

import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import IO, TYPE_CHECKING, Any, Final

import boto3
import pytest
from botocore.config import Config

from tests.support.edges.servers import mortal
from tests.support.project import ROOT
from tests.support.stores import radosgw as ceph
from tests.support.stores.s3.server import S3Server
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

_MOTO_LISTENS: Final = re.compile(r"Running on http://127\.0\.0\.1:(\d+)")


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


@dataclass(frozen=True)
class SeparateServer:
    """Our S3 server in a separate process."""

    port: int

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.port}"

    def behave(self, **behaviour: Any) -> None:
        """Set fields of Behaviour."""
        self._ask("POST", "/-/behaviour", json.dumps(behaviour))

    def log(self) -> list[dict[str, Any]]:
        """The fields of each Entry so far."""
        entries: list[dict[str, Any]] = json.loads(self._ask("GET", "/-/requests"))
        return entries

    def _ask(self, method: str, target: str, body: str | None = None) -> bytes:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as connection:
            connection.request(method, target, body)
            answer = connection.getresponse()
            content = answer.read()
        assert answer.status < 300, content
        return content


@pytest.fixture
def s3() -> Iterator[S3Server]:
    """Our S3 server in a thread, with an empty bucket, well-behaved by default."""
    with S3Server() as server:
        yield server


@contextmanager
def separate_s3_server() -> Iterator[SeparateServer]:
    """Run our S3 server in a separate process during the block."""
    command = mortal(sys.executable, "-m", "tests.support.stores.s3.server")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, "the S3 server ended before it listened"
            yield SeparateServer(int(line))
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def moto() -> Iterator[Endpoint]:
    """moto's S3 server. It checks no signatures, and is slow."""
    with tempfile.TemporaryFile("w+") as log:
        command = mortal(sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0")
        with subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                yield Endpoint(f"http://127.0.0.1:{_moto_port(process, log)}")
            finally:
                process.terminate()


def _moto_port(process: "subprocess.Popen[bytes]", log: IO[str]) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        log.seek(0)
        if listens := _MOTO_LISTENS.search(log.read()):
            return int(listens[1])
        time.sleep(0.05)
    log.seek(0)
    pytest.fail(f"moto does not start:\n{log.read()}")


@pytest.fixture(scope="session")
def radosgw() -> Iterator[Endpoint]:
    """Ceph's S3 server, which checks signatures; without Ceph the test is skipped, or fails in CI."""
    with ceph.running() as port:
        yield Endpoint(f"http://127.0.0.1:{port}", ceph.KEY_ID, ceph.SECRET)
