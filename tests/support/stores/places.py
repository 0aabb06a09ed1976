"""Places to publish to, for tests of stores; each can open several stores on the same objects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest

from generator.stores.directory import Directory
from generator.stores.s3 import Bucket
from generator.stores.store import Store
from tests.support.stores.s3.server import S3Server

if TYPE_CHECKING:
    from tests.support.stores.s3.servers import Endpoint

Client = Literal["obstore", "boto3"]
CLIENTS: tuple[Client, ...] = ("obstore", "boto3")


@dataclass(frozen=True)
class Place:
    """A place for objects. `headers` returns those stored with an object; a directory has none."""

    open: Callable[[], Store]
    headers: Callable[[str], Mapping[str, str]] = lambda _: {}


def use_credentials(monkeypatch: pytest.MonkeyPatch, key_id: str = "test", secret: str = "test") -> None:  # noqa: S107
    """Give boto3 only these credentials."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": key_id,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
        "SSL_CERT_FILE": "/dev/null",  # nor has obstore read all certificates, which no store here needs
    }.items():
        monkeypatch.setenv(name, value)
    for name in (
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_CA_BUNDLE",
    ):
        monkeypatch.delenv(name, raising=False)


def open_bucket(server: S3Server, client: Client, prefix: str = "") -> Bucket:
    """Open the bucket of our own server."""
    return Bucket(server.name, prefix, endpoint_url=server.url, client=client)


def _at_home(request: pytest.FixtureRequest, client: Client, quirk: str) -> Place:
    server: S3Server = request.getfixturevalue("s3")
    if quirk:
        vars(server.behaviour)[quirk] = True
    return Place(
        lambda: open_bucket(server, client, "some/prefix/"), lambda key: server.objects()[f"some/prefix/{key}"][1]
    )


def _elsewhere(request: pytest.FixtureRequest, server: str, client: Client) -> Place:
    endpoint: Endpoint = request.getfixturevalue(server)
    use_credentials(request.getfixturevalue("monkeypatch"), endpoint.key_id, endpoint.secret)
    bucket = endpoint.new_bucket()

    def headers(key: str) -> Mapping[str, str]:
        answer = endpoint.client().head_object(Bucket=bucket, Key=key)
        return answer["ResponseMetadata"]["HTTPHeaders"]

    return Place(lambda: Bucket(bucket, "", endpoint_url=endpoint.url, client=client), headers)


def place(request: pytest.FixtureRequest) -> Place:
    """The place named by a fixture's parameter."""
    kind, client, quirk = request.param
    if kind == "directory":
        folder = request.getfixturevalue("tmp_path") / "site"
        return Place(lambda: Directory(folder))
    use_credentials(request.getfixturevalue("monkeypatch"))
    return _at_home(request, client, quirk) if kind == "s3" else _elsewhere(request, kind, client)


def _served_by(server: str) -> list[Any]:
    """The buckets of another server, which is slow to start."""
    return [pytest.param((server, client, ""), marks=pytest.mark.campaign(short=0)) for client in CLIENTS]


BUCKETS = [
    *(("s3", client, "") for client in CLIENTS),
    # Quirks of some stores.
    *(("s3", client, "bare_etags") for client in CLIENTS),
    ("s3", "obstore", "opaque_etags"),
    ("s3", "boto3", "wants_content_md5"),
    *_served_by("radosgw"),
]
